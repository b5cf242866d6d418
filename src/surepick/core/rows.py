"""Rows and bounds of a polytope as they are given, checked; those that leave no plan, or one, are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, read_only
from surepick.errors import ProblemError

_TRIED_ROWS = 60  # rows that are left out one by one to name the one that leaves no plan


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows and bounds of a polytope as they were given, and the names of its arms."""

    a_ub: FloatArray  # (n_ub, n_arms): a_ub x <= b_ub
    b_ub: FloatArray
    a_eq: FloatArray  # (n_eq, n_arms): a_eq x = b_eq
    b_eq: FloatArray
    lower: FloatArray  # (n_arms,)
    upper: FloatArray
    names: tuple[str, ...]

    def without(self, row: int) -> Rows:
        """The same without one row, counted from the first of a_ub to the last of a_eq."""
        values = dict(self.__dict__)
        kind, k = ("ub", row) if row < len(self.b_ub) else ("eq", row - len(self.b_ub))
        for part in (f"a_{kind}", f"b_{kind}"):
            values[part] = np.delete(values[part], k, axis=0)
        return Rows(**values)

    def best(self, weights: FloatArray) -> Any:
        """What HiGHS answers when it looks for the least weights.x."""
        from scipy.optimize import linprog

        return linprog(  # type: ignore[call-overload]
            weights,
            A_ub=self.a_ub if len(self.b_ub) else None,
            b_ub=self.b_ub if len(self.b_ub) else None,
            A_eq=self.a_eq if len(self.b_eq) else None,
            b_eq=self.b_eq if len(self.b_eq) else None,
            bounds=np.column_stack([self.lower, self.upper]),
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )


def as_rows(given: dict[str, Any], names: tuple[str, ...]) -> Rows:
    """Rows and bounds as checked arrays."""
    n = len(names)
    a_ub, b_ub = _sided(given, "ub", n)
    a_eq, b_eq = _sided(given, "eq", n)
    lower, upper = (_bound(what, given.get(what, default), names) for what, default in _DEFAULT_BOUNDS)
    bad = np.flatnonzero(~(lower <= upper) | (lower == np.inf) | (upper == -np.inf))
    if bad.size:
        s = int(bad[0])
        raise ProblemError(
            f"lower must not exceed upper, got {lower[s]:g} and {upper[s]:g} for arm {s} ({names[s]!r})",
            field="lower",
        )
    for array in (a_ub, b_ub, a_eq, b_eq, lower, upper):
        read_only(array)
    return Rows(a_ub, b_ub, a_eq, b_eq, lower, upper, names)


_DEFAULT_BOUNDS = (("lower", 0.0), ("upper", np.inf))


def _sided(given: dict[str, Any], kind: str, n_arms: int) -> tuple[FloatArray, FloatArray]:
    left, right = given.get(f"A_{kind}"), given.get(f"b_{kind}")
    if left is None and right is None:
        return np.zeros((0, n_arms)), np.zeros(0)
    if left is None or right is None:
        raise ProblemError(
            f"A_{kind} and b_{kind} belong together; give both or neither",
            field=f"A_{kind}" if left is None else f"b_{kind}",
        )
    left = left.toarray() if hasattr(left, "toarray") else left
    try:
        matrix, side = np.array(left, dtype=float, ndmin=2), np.array(right, dtype=float, ndmin=1)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProblemError(f"A_{kind} and b_{kind} must be numbers: {error}", field=f"A_{kind}") from None
    if matrix.ndim != 2 or matrix.shape[1] != n_arms or side.shape != (len(matrix),):
        raise ProblemError(
            f"A_{kind} must have a column for each of the {n_arms} arms and b_{kind} a number for each of "
            f"its rows, got shapes {matrix.shape} and {side.shape}",
            field=f"A_{kind}",
        )
    if not (np.isfinite(matrix).all() and np.isfinite(side).all()):
        row = int(np.flatnonzero(~(np.isfinite(matrix).all(axis=1) & np.isfinite(side)))[0])
        raise ProblemError(
            f"row {row} of A_{kind} and b_{kind} must be finite; leave out a row without a limit",
            field=f"A_{kind}",
        )
    return matrix, side


def _bound(what: str, given: npt.ArrayLike, names: Sequence[str]) -> FloatArray:
    try:
        values = np.broadcast_to(np.asarray(given, dtype=float), (len(names),)).copy()
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"{what} must be one number or one for each of the {len(names)} arms, got {given!r}", field=what
        ) from None
    if np.isnan(values).any():
        s = int(np.flatnonzero(np.isnan(values))[0])
        raise ProblemError(f"{what} of arm {s} ({names[s]!r}) must be a number, got nan", field=what)
    return values


def refuse_empty(rows: Rows) -> None:
    """Refuse rows that leave no plan, naming one that would have to go, or that leave a single one."""
    n = len(rows.names)
    if rows.best(np.zeros(n)).status == 2:
        raise ProblemError(f"there is no plan: {_why_empty(rows)}; check rows and bounds")
    toward = np.random.default_rng(n).uniform(0.5, 1.5, n)
    ends = [rows.best(sign * toward) for sign in (1.0, -1.0)]
    if all(end.status == 0 for end in ends):
        low, high = float(ends[0].x @ toward), float(ends[1].x @ toward)
        if high - low <= 1e-9 * float(np.abs(ends[0].x) @ toward) and np.allclose(
            ends[0].x, ends[1].x, atol=1e-9
        ):
            raise ProblemError(
                "the rows and bounds leave one plan only; with one plan there is nothing to choose"
            )


def _why_empty(rows: Rows) -> str:
    n_ub, n_eq = len(rows.b_ub), len(rows.b_eq)
    if n_ub + n_eq <= _TRIED_ROWS:
        for row in range(n_ub + n_eq):
            if rows.without(row).best(np.zeros(len(rows.names))).status != 2:
                kind, k = ("A_ub", row) if row < n_ub else ("A_eq", row - n_ub)
                return (
                    f"no amounts keep all rows and bounds, and without row {k} of {kind} there would be some"
                )
    return "no amounts keep all rows and bounds"
