"""Numbers with names in the state of compiled loops.

Compiled code takes its state as a NamedTuple of arrays, in which no number can change. A record can: it is a
piece of memory whose fields compiled code and Python read and write in place. A class declares the fields,

    class Now:
        lead: int
        stopped: bool
        score: float

and `make_record(Now, lead=-1)` in a NamedTuple lets a line read `state.now.lead`. Records are passed on by
their address, so that functions of wide states are compiled sooner, too.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast, get_type_hints

import numpy as np

_Fields = TypeVar("_Fields")

_KINDS = {int: np.int64, float: np.float64, bool: np.bool_}


def make_record(fields: type[_Fields], **values: float) -> _Fields:
    """Return a record with these fields, zero where no value is given.

    >>> class Now:
    ...     lead: int
    ...     score: float
    >>> now = make_record(Now, lead=-1)
    >>> now.score = 0.5
    >>> now.lead, now.score
    (np.int64(-1), np.float64(0.5))
    """
    record: Any = np.zeros(1, dtype=_layout(fields))[0]
    for name, value in values.items():
        record[name] = value
    return cast(_Fields, record)


def _layout(fields: type) -> np.dtype[np.void]:
    layout = [(name, _KINDS[kind]) for name, kind in get_type_hints(fields).items()]
    return np.dtype((np.record, np.dtype(layout, align=True)))
