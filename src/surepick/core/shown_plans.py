"""What an oracle has shown so far, to notice when it is not exact: a wrong oracle makes a wrong promise."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.branches import Branch
from surepick.core.oracle_problem import OracleProblem
from surepick.core.wording import counted
from surepick.errors import ProblemError

ALARM = 1e-7  # an oracle is called wrong when it misses a plan it has shown by this share of the weights
_REMEMBERED = 64  # plans an oracle's answers are compared with
_SHOWN_ARMS = 12  # of a plan, in a message


class ShownPlans:
    """The last plans that an oracle has shown, with which its next ones are compared."""

    def __init__(self, problem: OracleProblem) -> None:
        self._problem = problem
        self._plans = np.zeros((_REMEMBERED, problem.n_arms))
        self._keys: list[bytes] = []  # in the order of the rows
        self._known: set[bytes] = set()  # the same
        self._next = 0  # the row that is overwritten next

    def compare(self, weights: FloatArray, branch: Branch | None, plan: FloatArray) -> None:
        """Refuse a plan that is worse than one of the same branch that was shown before; remember it."""
        if self._keys:
            seen = self._plans[: len(self._keys)]
            values = seen @ weights
            if branch is not None:
                values = np.where(branch.holds(seen), values, -np.inf)
            k = int(values.argmax())
            excess = float(values[k] - plan @ weights)
            if excess > 0 and excess > ALARM * self._sizes(weights, plan, seen[k]):
                least = "smallest" if self._problem.minimize else "largest"
                raise ProblemError(
                    f"the oracle is not exact: its plan {self._brief(plan)} is worse by {excess:g} than "
                    f"{self._brief(seen[k])}, which it returned before; either the first is not the best "
                    "under the weights that it was given, or the second is not a plan. It must return the "
                    f"plan with the {least} total (goal={self._problem.goal!r}), for weights of any "
                    "sign and size, and always out of the same plans",
                    field="best",
                )
        if (key := plan.tobytes()) not in self._known:
            self._known.difference_update(self._keys[self._next : self._next + 1])
            self._known.add(key)
            self._plans[self._next] = plan
            self._keys[self._next : self._next + 1] = [key]
            self._next = (self._next + 1) % _REMEMBERED

    def _sizes(self, weights: FloatArray, one: FloatArray, other: FloatArray) -> float:
        return float(np.abs(weights) @ np.maximum(np.abs(one), np.abs(other)))

    def refuse_none(self, branch: Branch) -> None:
        """Refuse an answer that the branch is empty when a plan of it was shown before."""
        inside = self._plans[: len(self._keys)][branch.holds(self._plans[: len(self._keys)])]
        if len(inside):
            raise ProblemError(
                "best_within returned None, for no plan within the bounds, though "
                f"{self._brief(inside[0])}, which it returned before, lies within them; bounds are inclusive",
                field="best_within",
            )

    def _brief(self, plan: FloatArray) -> str:
        """A plan by the names of its arms, not too long."""
        used = np.flatnonzero(plan)[:_SHOWN_ARMS]
        short = np.zeros(len(plan))
        short[used] = np.abs(plan[used])
        more = " + ..." if np.count_nonzero(plan) > len(used) else ""
        return f"'{counted(self._problem.arm_names, short)}{more}'"
