"""Sets of plans that are asked, not listed: for the best plan of all, or for the best one within a box.

A *branch* is the plans whose entries lie within bounds, one pair of bounds per arm. Any problem can be asked
for its best plan of all. Three kinds of sets can find the best plan of a branch:

- plans of zeros and ones behind a plain `best(weights)`: a bound can only pin an entry, and a weight that
  outweighs all others together does that. A plan that comes back with another entry proves the branch empty;
- whole numbers behind a `best_within(weights, lower, upper)` of the problem's own;
- listed plans, by looking.

Inside, larger is better: where the problem minimises, plans are the negated vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense, first_true
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.polytopes.polytope import Polytope
from surepick.core.polytopes.standard_form import ROUNDING
from surepick.core.problem import Problem
from surepick.core.run import Answer
from surepick.core.wording import counted
from surepick.errors import ProblemError


@dataclass(frozen=True, eq=False)
class Branch:
    """The plans whose entries lie within these bounds."""

    lower: FloatArray  # (n_arms,)
    upper: FloatArray  # (n_arms,)

    @property
    def free(self) -> IntArray:
        """The arms that are not pinned to one value."""
        return np.flatnonzero(self.lower < self.upper)

    def holds(self, plans: FloatArray) -> FloatArray:
        """Return which of these plans (rows) are in the branch."""
        return np.asarray(((plans >= self.lower) & (plans <= self.upper)).all(axis=-1))

    def pinned(self, arm: int, value: float) -> Branch:
        """Return the plans of this branch with this value on this arm."""
        return self._with(arm, value, value)

    def apart(self, arm: int, value: float, step: float) -> Iterator[Branch]:
        """Return the plans of this branch with another value on this arm: those below it and those above.

        `step` is the least difference of two values; 0 where any number may be one.
        """
        below = value - step if step else float(np.nextafter(value, -np.inf))
        above = value + step if step else float(np.nextafter(value, np.inf))
        if self.lower[arm] <= below:
            yield self._with(arm, self.lower[arm], below)
        if self.upper[arm] >= above:
            yield self._with(arm, above, self.upper[arm])

    def without(self, plan: FloatArray, step: float, *, one_size: bool = False) -> Iterator[Branch]:
        """Branches that hold every plan of this one but `plan`, and no plan twice (Lawler's partition).

        The i-th agrees with the plan on the first i free arms and differs on the next; both ways, so that
        plans that contain others are not lost. Where all entries of a plan always add up to the same sum
        (`one_size`), another plan must fall below this one somewhere and rise above it elsewhere, so that
        looking at the arms where it can fall is enough, or at those where it can rise.
        """
        rest, arms = self, self.free
        if one_size:
            falls, rises = arms[plan[arms] > self.lower[arms]], arms[plan[arms] < self.upper[arms]]
            arms = falls if len(falls) <= len(rises) else rises
        for arm in arms:
            yield from rest.apart(arm, plan[arm], step)
            rest = rest.pinned(arm, plan[arm])

    def _with(self, arm: int, low: float, high: float) -> Branch:
        lower, upper = self.lower.copy(), self.upper.copy()
        lower[arm], upper[arm] = low, high
        return Branch(lower, upper)


ALARM = 1e-7  # an oracle is called wrong when it misses a plan it has shown by this share of the weights
_REMEMBERED = 64  # plans an oracle's answers are compared with
_SHOWN_ARMS = 12  # of a plan, in a message


class ShownPlans:
    """The last plans that an oracle has returned, with which its next ones are compared."""

    def __init__(self, problem: OracleProblem) -> None:
        self._problem = problem
        self._plans: dict[bytes, FloatArray] = {}  # by their bytes, the one returned first in front

    def _within(self, branch: Branch | None) -> FloatArray:
        """Return the plans of a branch, or all of them, as rows."""
        plans = np.array(list(self._plans.values())).reshape(len(self._plans), self._problem.n_arms)
        return plans if branch is None else plans[branch.holds(plans)]

    def compare(self, weights: FloatArray, branch: Branch | None, plan: FloatArray) -> None:
        """Refuse a plan that is worse than an earlier one of the same branch; remember it."""
        earlier = self._within(branch)
        if len(earlier):
            best = earlier[np.argmax(earlier @ weights)]
            excess = float((best - plan) @ weights)
            sizes = float(np.abs(weights) @ np.maximum(np.abs(plan), np.abs(best)))
            if excess > ALARM * sizes:
                raise ProblemError(
                    f"the oracle is not exact: its plan {self._brief(plan)} is worse by {excess:g} than "
                    f"{self._brief(best)}, which it returned before; it must return the plan with the "
                    f"{self._problem.goal} total for any weights, always out of the same plans",
                    field="best",
                )
        if plan.tobytes() not in self._plans:
            if len(self._plans) == _REMEMBERED:
                del self._plans[next(iter(self._plans))]
            self._plans[plan.tobytes()] = plan

    def refuse_none(self, branch: Branch) -> None:
        """Refuse an answer that the branch is empty when a plan of it was returned before."""
        inside = self._within(branch)
        if len(inside):
            raise ProblemError(
                "best_within returned None, for no plan within the bounds, though "
                f"{self._brief(inside[0])}, which it returned before, lies within them; bounds are inclusive",
                field="best_within",
            )

    def _brief(self, plan: FloatArray) -> str:
        """Return a plan by the names of its first arms, for a message."""
        used = np.flatnonzero(plan)
        amounts = np.abs(plan[used[:_SHOWN_ARMS]])
        names = [self._problem.arm_names[s] for s in used[:_SHOWN_ARMS]]
        more = " + ..." if len(used) > _SHOWN_ARMS else ""
        return f"'{counted(names, amounts)}{more}'"


_NEARLY = 1e-4  # a solver's 0.99999 is within this of a whole number


class PlanSet:
    """Plans behind an oracle, asked for the best one of all or, in subclasses, of a branch.

    In a result a plan is its vector. The plans of a `Polytope` have no branches.
    """

    step: float = 1.0  # the least difference of two entries on one arm; 0 where it is not known
    n_calls: int = 0  # of `best` so far

    def __init__(self, problem: OracleProblem) -> None:
        self._problem, self._sign = problem, problem.sign
        self._shown = ShownPlans(problem)

    def best_of_all(self, weights: FloatArray) -> FloatArray:
        """Return a plan with the largest value under these weights."""
        return self._sign * self._problem.best_plan(weights) + 0.0

    def best_of_each(self, weights: FloatArray) -> FloatArray:
        """Return a plan with the largest value for each row of weights, one plan a row."""
        return np.array([self.best_of_all(row) for row in weights])

    def answer(self, plan: FloatArray) -> Answer:
        """Return the plan in the form that results use: its index, or its vector."""
        return tuple((self._sign * plan + 0.0).tolist())

    def everything(self) -> Branch:
        """Return a branch that holds all plans; raise an error for a `Polytope`, which has no branches."""
        raise ProblemError(
            "this method searches the plans in parts, which a Polytope with its real amounts does not have; "
            "use BetGapE"
        )

    def best(self, weights: FloatArray, branch: Branch) -> FloatArray | None:
        """Return a plan of the branch with the largest value; None when the branch is empty."""
        raise NotImplementedError

    def has(self, plan: FloatArray) -> bool:
        """Return whether this is one of the plans."""
        found = self.best(np.zeros(len(plan)), Branch(plan, plan)) if self.everything().holds(plan) else None
        return found is not None and np.array_equal(found, plan)

    def slack(self, weights: FloatArray, branch: Branch) -> float:
        """Return how far below the true maximum the value of `best` may lie, by rounding."""
        return ROUNDING * float(np.abs(weights) @ np.maximum(np.abs(branch.lower), np.abs(branch.upper)))


def plan_set(problem: AnyProblem) -> PlanSet:
    """Return the plans of a problem, to be asked for the best of all or of a branch.

    >>> import surepick as sp
    >>> plans = plan_set(sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], goal="largest"))
    >>> rest = plans.everything().pinned(1, 0.0)
    >>> plans.best(np.array([0.1, 0.9, 0.3]), rest).tolist()
    [0.0, 0.0, 1.0]
    """
    if problem.is_listed:
        return ListedPlans(problem)
    if isinstance(problem, Polytope):
        return PlanSet(problem)
    return ZeroOnePlans(problem) if problem.best_within is None else WholeNumberPlans(problem)


def spanned(plans: PlanSet) -> Branch:
    """Return the smallest box that holds all plans.

    >>> import surepick as sp
    >>> box = spanned(plan_set(sp.Problem([[1, 0, 1], [0, 2, 1]], goal="largest")))
    >>> box.lower.tolist(), box.upper.tolist()
    ([0.0, 0.0, 1.0], [1.0, 2.0, 1.0])
    """
    box = plans.everything()
    first = plans.best(np.zeros(len(box.lower)), box)
    if first is None:
        raise ProblemError(
            "there is no plan: the oracle's plan for weights of 0 is not within its bounds", field="best"
        )
    lower, upper = first.copy(), first.copy()
    for arm in box.free:
        for sign in (1.0, -1.0):
            if (upper[arm] < box.upper[arm]) if sign > 0 else (lower[arm] > box.lower[arm]):
                weights = np.zeros(len(first))
                weights[arm] = sign
                plan = plans.best(weights, box)
                assert plan is not None
                lower, upper = np.minimum(lower, plan), np.maximum(upper, plan)
    return Branch(lower, upper)


class WholeNumberPlans(PlanSet):
    """Plans of whole numbers behind an oracle that respects bounds."""

    def everything(self) -> Branch:
        n = self._problem.n_arms
        return Branch(np.full(n, -np.inf), np.full(n, np.inf))  # `spanned` finds finite bounds

    def best(self, weights: FloatArray, branch: Branch) -> FloatArray | None:
        self.n_calls += 1
        low, high = (branch.lower, branch.upper) if self._sign > 0 else (-branch.upper, -branch.lower)
        if np.isinf(low).all() and np.isinf(high).all():
            plan: FloatArray | None = self._problem.best_plan(weights)
        else:
            plan = self._problem.best_plan_within(weights, low, high)
        if plan is None:
            self._shown.refuse_none(branch)
            return None
        s = first_true((plan != np.rint(plan)) | (plan < low) | (plan > high))
        if s is not None:
            raise ProblemError(
                f"best_within must return whole numbers within the bounds, got {float(plan[s])!r} for "
                f"arm {s} ({self._problem.arm_names[s]!r}), between {low[s]:g} and {high[s]:g}; "
                f"{_advice(plan[s])}",
                field="best_within",
            )
        plan = self._sign * plan + 0.0
        self._shown.compare(weights, branch, plan)
        return plan


class ZeroOnePlans(PlanSet):
    """Plans of zeros and ones behind an oracle."""

    def everything(self) -> Branch:
        low, high = (-1.0, 0.0) if self._problem.minimize else (0.0, 1.0)
        return Branch(np.full(self._problem.n_arms, low), np.full(self._problem.n_arms, high))

    def best(self, weights: FloatArray, branch: Branch) -> FloatArray | None:
        # One call of the oracle, in which a pinned entry is worth more than all others together: twice their
        # sum. So a plan that has all pinned entries wins, if there is one.
        is_free = branch.upper - branch.lower  # by arm: 1, or 0 if its entry is pinned
        towards = branch.lower + branch.upper - self._sign  # by arm: 0, or 1 or -1 towards the pinned value
        asked = weights * is_free + (2 * float(np.abs(weights) @ is_free) or 1.0) * towards
        plan = self._problem.best_plan(asked)
        self.n_calls += 1
        s = first_true(plan * plan != plan)  # equal for 0 and 1 alone
        if s is not None:
            raise ProblemError(
                f"plans behind best() must be of zeros and ones, got {float(plan[s])!r} for arm {s} "
                f"({self._problem.arm_names[s]!r}); {_advice(plan[s])}",
                field="best",
            )
        plan = self._sign * plan + 0.0
        self._shown.compare(asked, None, plan)
        return plan if branch.holds(plan) else None

    def slack(self, weights: FloatArray, branch: Branch) -> float:
        free = branch.upper - branch.lower
        rest = float(np.abs(weights) @ free)
        return ROUNDING * rest * (1 + 2 * (len(free) - int(np.count_nonzero(free))))


def _advice(entry: float) -> str:
    """Return advice for an entry of a plan that is not allowed."""
    if entry != np.rint(entry) and abs(entry - np.rint(entry)) < _NEARLY:
        return "a solver that leaves rounding errors needs np.rint around its plan"
    return (
        "whole numbers need best_within, an oracle that respects bounds; amounts within linear limits become "
        "an sp.Polytope, for BetGapE, and other numbers need a list of the plans: between them no bound can "
        "tell plans apart"
    )


class ListedPlans(PlanSet):
    """Plans in a list; ties go to the lowest index, and in a result a plan is its index."""

    step = 0.0

    def __init__(self, problem: Problem) -> None:
        self._plans = np.ascontiguousarray(as_dense(problem.oriented)) + 0.0
        self._index = {row.tobytes(): k for k, row in enumerate(self._plans)}

    def best_of_all(self, weights: FloatArray) -> FloatArray:
        return np.asarray(self._plans[np.argmax(self._plans @ weights)])

    def best_of_each(self, weights: FloatArray) -> FloatArray:
        return np.asarray(self._plans[np.argmax(weights @ self._plans.T, axis=1)])

    def everything(self) -> Branch:
        return Branch(self._plans.min(axis=0), self._plans.max(axis=0))

    def best(self, weights: FloatArray, branch: Branch) -> FloatArray | None:
        self.n_calls += 1
        inside = np.flatnonzero(branch.holds(self._plans))
        if not inside.size:
            return None
        return np.asarray(self._plans[inside[np.argmax(self._plans[inside] @ weights)]])

    def answer(self, plan: FloatArray) -> int:
        return self._index[plan.tobytes()]


# The play with the largest sum of these numbers, none of them negative.
FindPlay: TypeAlias = Callable[[FloatArray], FloatArray]


def play_finder(plans: PlanSet, box: Branch) -> FindPlay:
    """Return a function that finds the best play of these plans, all of which lie in the box.

    Inside, plans that are minimised are negated, and their entries 0 or -1: a play has zeros and ones.
    """
    ends = set(box.lower.tolist()) | set(box.upper.tolist())
    if not (ends <= {0.0, 1.0} or ends <= {0.0, -1.0}):
        raise ProblemError(
            'measure="plan arms" is for plans of zeros and ones, and some plan uses an arm more than once; '
            "list the plans in a Problem with probes of its own",
            field="measure",
        )
    sign = -1.0 if -1.0 in ends else 1.0

    def find(weights: FloatArray) -> FloatArray:
        plan = plans.best(sign * weights, box)
        assert plan is not None
        return np.abs(plan)

    return find
