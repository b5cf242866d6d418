"""The state of any run as arrays and numbers, so that a long session opens without replaying its log.

A run is an object of this package; its state is whatever differs from a run that has just been started, or
what the run itself says it is (`KeptRun`). Only arrays, numbers, text and containers of them are kept: no
code, no pickles. A run whose state holds anything else is not kept at all, and its session is replayed from
the log instead, which gives the same run.
"""

from __future__ import annotations

import base64
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from surepick.oracle import OracleProblem
from surepick.policy import Run
from surepick.problem import Problem

_PLAIN = (bool, int, float, str, type(None))
_FIXED = (Problem, OracleProblem, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)

_ABSENT = object()

Path = tuple[str, ...]


@runtime_checkable
class KeptRun(Run, Protocol):
    """A run that says itself what its state is: arrays, numbers, and lists and dictionaries of them."""

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is; called on a fresh run."""
        ...


class _NotKeptError(Exception):
    """The state holds something that is neither an array nor plain."""


def run_to_json(run: Run, start: Callable[[], Run]) -> dict[str, Any] | None:
    """What differs between the run and a fresh one, or None when it holds more than arrays and numbers.

    `start` gives fresh runs of the same policy on the same problem. The answer is tried out before it is
    given: a fresh run restored from it has exactly the state of the run.
    """
    if isinstance(run, KeptRun):
        return _own_state(run, start())
    try:
        now, before = dict(_parts(run)), dict(_parts(start()))
        changed = {path: value for path, value in now.items() if not _same(value, before.get(path, _ABSENT))}
        state = {"/".join(path): _encode(value) for path, value in changed.items()}
        trial = start()
        restore_run(trial, state)
        again = dict(_parts(trial))
    except (_NotKeptError, AttributeError):
        return None
    return state if again.keys() == now.keys() and all(_same(again[p], now[p]) for p in now) else None


def restore_run(fresh: Run, state: Mapping[str, Any]) -> None:
    """Turn a fresh run into the one whose state was kept."""
    if isinstance(fresh, KeptRun):
        fresh.restore(_decode_all(state))
        return
    for name, value in state.items():
        path = name.split("/")
        owner: object = fresh
        for step in path[:-1]:
            owner = getattr(owner, step)
        _put(owner, path[-1], _decode(value))


def _own_state(run: KeptRun, trial: Run) -> dict[str, Any] | None:
    assert isinstance(trial, KeptRun)
    now = run.state()
    kept: dict[str, Any] = _encode_all(now)
    trial.restore(_decode_all(kept))
    return kept if _encode_all(trial.state()) == kept else None


def _encode_all(value: Any) -> Any:
    """Arrays and numbers at any depth of lists and of dictionaries with text as keys."""
    if isinstance(value, dict):
        return {str(name): _encode_all(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode_all(item) for item in value]
    return _encode(value)


def _decode_all(kept: Any) -> Any:
    if isinstance(kept, list):
        return [_decode_all(item) for item in kept]
    if "plain" in kept or "bytes" in kept:
        return _decode(kept)
    return {name: _decode_all(item) for name, item in kept.items()}


def _parts(owner: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every array and plain value that can be reached from the object by attribute names."""
    for name, value in _attributes(owner):
        here = (*path, name)
        if isinstance(value, _FIXED):
            continue
        if isinstance(value, np.ndarray | np.generic) or _is_plain(value):
            yield here, value
        else:
            yield from _parts(value, here)


def _attributes(owner: object) -> Iterator[tuple[str, Any]]:
    if not type(owner).__module__.startswith("surepick."):
        raise _NotKeptError(f"{type(owner)} is neither an array, plain, nor of this package")
    if isinstance(owner, tuple) and hasattr(owner, "_asdict"):
        yield from owner._asdict().items()
    elif hasattr(owner, "__dict__"):
        yield from vars(owner).items()
    else:
        raise _NotKeptError(type(owner))


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple) and not hasattr(value, "_asdict"):
        # JSON does not tell tuples from lists: one is marked as such, not those within
        return all(_is_plain(item) and not isinstance(item, tuple) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return isinstance(value, _PLAIN)


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype) and a.shape == b.shape and a.tobytes() == b.tobytes()
    return bool(a == b) or bool(a != a)  # only nan differs from itself


def _encode(value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic):
        return {"plain": value, "tuple": True} if isinstance(value, tuple) else {"plain": value}
    array = np.asarray(value)
    text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    scalar = isinstance(value, np.generic)
    return {"dtype": array.dtype.str, "shape": list(array.shape), "scalar": scalar, "bytes": text}


def _decode(data: Mapping[str, Any]) -> Any:
    if "plain" in data:
        return tuple(data["plain"]) if data.get("tuple") else data["plain"]
    flat = np.frombuffer(base64.b64decode(data["bytes"]), dtype=np.dtype(data["dtype"]))
    array = flat.reshape(data["shape"]).copy()
    return array[()] if data["scalar"] else array


def _put(owner: object, name: str, value: Any) -> None:
    """In place where an array of this shape is there already: others may hold on to it."""
    held = getattr(owner, name, None)
    if isinstance(held, np.ndarray) and isinstance(value, np.ndarray) and held.shape == value.shape:
        held[...] = value
    else:
        object.__setattr__(owner, name, value)  # also where the owner is a frozen dataclass
