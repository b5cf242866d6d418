"""Numbers with names in the state of compiled loops.

Compiled code takes its state as a NamedTuple of arrays, in which no number can change. A record can: it is a
piece of memory whose fields compiled code and Python read and write in place. A class declares the fields,

    class Now:
        lead: int
        stopped: bool
        score: float

and `make_record(Now, lead=-1)` in a NamedTuple lets a line read `race.now.lead`. `make_records(Arm, 9)` is an
array of them: `race.arms[s].count` in compiled code, `race.arms["count"]` for all of them in Python. Records
are passed on by their address, so that functions of wide states are compiled sooner, too.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast, get_type_hints

import numpy as np
import numpy.typing as npt

_Fields = TypeVar("_Fields")
RecordArray: TypeAlias = npt.NDArray[np.void]

_KINDS = {int: np.int64, float: np.float64, bool: np.bool_}


def make_record(fields: type[_Fields], **values: float) -> _Fields:
    """One record with these fields, zero where no value is given.

    >>> class Now:
    ...     lead: int
    ...     score: float
    >>> now = make_record(Now, lead=-1)
    >>> now.score = 0.5
    >>> now.lead, now.score
    (np.int64(-1), np.float64(0.5))
    """
    record: Any = make_records(fields, 1)[0]
    for name, value in values.items():
        record[name] = value
    return cast(_Fields, record)


def make_records(fields: type, n: int) -> RecordArray:
    """An array of `n` records with these fields, all zero."""
    return np.zeros(n, dtype=_layout(fields))


@functools.cache
def _layout(fields: type) -> np.dtype[np.void]:
    layout = [(name, _KINDS[kind]) for name, kind in get_type_hints(fields).items()]
    return np.dtype((np.record, np.dtype(layout, align=True)))


def arrays_of(state: Any, names: Sequence[str]) -> dict[str, Any]:
    """Copies of these arrays of a NamedTuple."""
    return {name: getattr(state, name).copy() for name in names}


def refill(state: Any, kept: Mapping[str, Any]) -> None:
    """Put the arrays that `arrays_of` gave back into a NamedTuple of arrays of the same shapes."""
    for name, array in kept.items():
        put(getattr(state, name), array, name)


def put(held: Any, array: Any, name: str) -> None:
    """Put a kept array back into one of the same shape; the name is for the error."""
    if held.shape != array.shape:
        raise ValueError(f"{name} has shape {array.shape} in the state and {held.shape} in the run")
    held[...] = array
