"""The state of a run as JSON text, so that a long session opens without replaying its log.

A run says itself what its state is (`KeptRun`): arrays, numbers, text, and containers of them. No code, no
pickles. The session of a run that cannot say it is replayed from the log instead, which gives the same run.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from surepick.core.run import Answer, KeptRun, Run

_ARRAY = "ndarray"


def run_to_json(run: Run) -> Any | None:
    """The state of the run as JSON values, or None when it does not say what its state is."""
    return to_json(run.state()) if isinstance(run, KeptRun) else None


def restore_run(fresh: Run, kept: Any) -> None:
    """Turn a fresh run into the one whose state was kept."""
    if not isinstance(fresh, KeptRun):
        raise TypeError(f"{type(fresh).__name__} does not say what its state is")
    fresh.restore(from_json(kept))


def as_answer(plan: int | list[float]) -> Answer:
    """A plan that comes from JSON, where a vector is a list."""
    return tuple(plan) if isinstance(plan, list) else plan


def to_json(value: Any) -> Any:
    """Arrays and numbers at any depth of lists and of dictionaries with text as keys, as JSON values.

    >>> from_json(to_json({"counts": np.arange(3), "cash": 0.5}))
    {'counts': array([0, 1, 2]), 'cash': 0.5}
    """
    if isinstance(value, np.ndarray):
        text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {_ARRAY: value.dtype.str, "shape": list(value.shape), "bytes": text}
    if isinstance(value, dict):
        return {str(name): to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a state holds arrays, numbers, text and containers of them, not {type(value).__name__}")


def from_json(kept: Any) -> Any:
    """What `to_json` was given; tuples come back as lists."""
    if isinstance(kept, list):
        return [from_json(item) for item in kept]
    if not isinstance(kept, Mapping):
        return kept
    if _ARRAY not in kept:
        return {name: from_json(item) for name, item in kept.items()}
    flat = np.frombuffer(base64.b64decode(kept["bytes"]), dtype=np.dtype(kept[_ARRAY]))
    return flat.reshape(kept["shape"]).copy()
