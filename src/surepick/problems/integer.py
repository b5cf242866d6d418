"""Integer programs by HiGHS, through SciPy: solved to proven optimality, or refused when time is up.

A small program can keep HiGHS busy for hours. One gets `SECONDS`; inside `solving_within` all get what is
said there, together.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from surepick.core.arrays import BoolArray, FloatArray
from surepick.errors import ProblemError

SECONDS = 60.0  # for one program; each draw solves one, so longer ones would take hours
_deadline: ContextVar[tuple[float, float] | None] = ContextVar(
    "deadline", default=None
)  # and how long it was
_OUT_OF_TIME = 1  # SciPy's status
Rows = tuple[FloatArray, Any, Any]  # a matrix, and what its rows lie between


@contextmanager
def solving_within(seconds: float) -> Iterator[None]:
    """Refuse with a `ProblemError` when the programs that are solved in here take longer, all together."""
    token = _deadline.set((time.monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def least(costs: FloatArray, whole: BoolArray, bounds: tuple[Any, Any], rows: Sequence[Rows]) -> Any:
    """Return the answer of HiGHS to: minimise these costs, with a gap of 0 instead of its default 1e-4."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    until, allowed = _deadline.get() or (float("inf"), SECONDS)
    left = min(SECONDS, until - time.monotonic())
    if left <= 0:
        raise _out_of_time("programs were", allowed)
    answer = milp(
        costs,
        integrality=whole.astype(int),
        bounds=Bounds(*bounds),
        constraints=[LinearConstraint(*row) for row in rows],
        options={"mip_rel_gap": 0.0, "time_limit": left},
    )
    if answer.status == _OUT_OF_TIME:
        raise _out_of_time("program was", min(allowed, SECONDS))
    return answer


def _out_of_time(what: str, seconds: float) -> ProblemError:
    return ProblemError(
        f"the integer {what} not solved within {seconds:g} seconds; make it smaller, or list fewer plans"
    )
