"""Noise and spread in percent: `spread = "10%"` is of the guess, `noise = "5%"` of guess plus spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.errors import ParameterError
from surepick.inputs.section import Section
from surepick.tables import cell_number


def with_shares(document: Section) -> Section:
    """Return the document with its percentages as numbers; refused where there is no guess."""
    keys = [key for key in ("spread", "noise") if _has_share(document.values.get(key))]
    if not keys:
        return document
    names, guess, shape = _guess(document, keys[0])
    spread = _numbers(document, "spread", names, np.abs(guess))
    values = dict(document.values)
    if "spread" in keys:
        values["spread"] = _as_given(names, spread.reshape(shape) if names is None else spread)
    if "noise" in keys:
        noise = _numbers(document, "noise", names, np.abs(guess) + spread)
        values["noise"] = _as_given(names, noise[np.isfinite(noise)] if names is None else noise)
    return replace(document, values=values)


def _has_share(given: Any) -> bool:
    parts = given.values() if isinstance(given, dict) else given if isinstance(given, list) else [given]
    return any(isinstance(part, str) and part.strip().endswith("%") for part in parts)


def _guess(document: Section, key: str) -> tuple[list[str] | None, FloatArray, tuple[int, ...]]:
    """Return the arm names if the guess has them, the guess of each arm, and its shape in the file."""
    given = document.values.get("guess")
    if isinstance(given, str) and (table := document.attachment("guess", empty=np.nan)) is not None:
        if len(table.column_names) == 1:
            return list(table.row_names), table.numbers[:, 0], (len(table.row_names),)
        return None, table.numbers.ravel(), table.numbers.shape
    if isinstance(given, dict):
        return list(given), np.array(list(given.values()), dtype=float), (len(given),)
    if not isinstance(given, list):
        raise document.error(f"{key} in percent needs a guess to take it of; give guess, or a number", key)
    array = np.array(given, dtype=float)
    return None, array.ravel(), array.shape


def _numbers(document: Section, key: str, names: list[str] | None, of: FloatArray) -> FloatArray:
    """Return one number per arm from this key of the file; percentages are of the numbers `of`."""
    given = document.values.get(key, 0.0)
    if isinstance(given, dict):
        if names is None or set(given) != set(names):
            raise document.wrong(key, "given by the names of the arms, as the guess is")
        given = [given[name] for name in names]
    parts = np.ravel(np.array(given, dtype=object))
    if len(parts) not in (1, len(of)):
        raise document.wrong(key, f"one number, or one for each of {len(of)} arms")
    shares = np.broadcast_to(parts, of.shape)
    return np.array(
        [_number(document, key, part, float(base)) for part, base in zip(shares, of, strict=True)]
    )


def _number(document: Section, key: str, part: Any, base: float) -> float:
    if not isinstance(part, str):
        return float(part)
    try:
        return cell_number(part.strip().removesuffix("%").strip()) / 100 * base
    except ParameterError:
        raise document.wrong(key, 'numbers, or percentages such as "10%"') from None


def _as_given(names: list[str] | None, numbers: FloatArray) -> Any:
    return numbers.tolist() if names is None else dict(zip(names, numbers.tolist(), strict=True))
