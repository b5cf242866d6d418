"""T* where plans cannot be listed: rows found by an oracle, and a proof that none of them is missing.

With A the variance of a rival's gap G under given shares, T*/2 is the least over shares of the largest
A / G^2. The rows of any plans give a lower end. For the upper end, A <= t G^2 is proved for all rivals.

Let n_s = |plan_s - best_s|, affine on a branch where best_s is not strictly between its bounds, and g_s a
number that G is not below where n_s > 0. If r >= 0 and r_0 + r.n <= G on the branch, then, since G >= 0,

    G^2 >= (r_0 + r.n) G >= r_0 G + sum_s r_s g_s n_s        and        G^2 >= 2 c G - c^2 for every c.

The right sides are affine, and so is A for plans of zeros and ones (else a secant is above it). So A <= t G^2
follows from two statements about affine functions on the branch, each of which the oracle settles:

    r_0 + r.n <= t_0 G,    A <= r_0 G + sum_s r_s g_s n_s + sum_c t_c (2 c G - c^2),    t = t_0 + sum_c t_c.

A linear program over the plans seen finds the r and t with the least t (`rival_program`); `_Node` proves a t
near it. Where it is too large, the branch is split at an arm: g_s grows in the parts. (A plan that is the
union of several exchanges of arms has a small A / G^2; the tangents 2 c G - c^2 alone do not know that, and
leave factors of 2 to 40.)
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.branches import Branch
from surepick.core.plan_sets import PlanSet
from surepick.core.run import Answer
from surepick.design.allocation import Allocation, optimal_allocation
from surepick.design.play_allocation import PlayAllocation
from surepick.planning.rival_program import Program, Seen

_MOST_CALLS = 20_000  # of the oracle for one bracket
_MOST_WORK = 1_500_000  # entries of the linear programs for one bracket: some ten seconds
_LOWER_TOLERANCE = 2.5e-3  # of the lower end
_MOST_ROUNDS = 60  # of a column generation
_MOST_PROGRAMS = 12  # for one branch
_NEWTON_STEPS = 8
_FLAT = 1e-7  # a ratio is found when this share of it is left
_ABOVE = 1e-3  # a row is missing when it is above the level by this share


class FoundRivals:
    """The plans that are not the best one, found by an oracle as they are needed; `rows` only grows."""

    def __init__(self, plans: PlanSet, branch: Branch, best: FloatArray, means: FloatArray) -> None:
        self.plans, self.best, self.means = plans, best, means
        self.rows = np.zeros((0, len(best)))
        self._keys = {best.tobytes()}
        self.calls_left, self.work_left = _MOST_CALLS, _MOST_WORK
        nothing = _Least(self, np.full(len(best), np.inf), np.tile(best, (len(best), 1)))
        self._branch, self._least = nothing.within(branch)

    def tied(self) -> tuple[Answer, ...]:
        """The first rival whose gap may be rounding alone, if there is one."""
        sizes = (np.abs(self.rows) + np.abs(self.best)) @ np.abs(self.means)
        rounding = np.finfo(float).eps * len(self.means) * sizes
        at = np.flatnonzero(self.gaps(self.rows) <= rounding)
        return () if not at.size else (self.plans.answer(self.rows[int(at[0])]),)

    def gaps(self, plans: FloatArray) -> FloatArray:
        """By how much each of these plans is worse than the best one."""
        return np.asarray((self.best - plans) @ self.means)

    def bracket(self, price: FloatArray, tolerance: float) -> tuple[tuple[float, float], FloatArray]:
        """A lower and an upper end of the least over shares of the largest A / G^2, and shares for it."""
        self.calls_left, self.work_left = _MOST_CALLS, _MOST_WORK
        lower, upper, shares = 0.0, math.inf, np.zeros(len(price))
        for _ in range(_MOST_ROUNDS):
            found = self._divide(price, tolerance)
            lower = max(lower, found.lower)
            proof = _Proof(self, price, found.weights, lower, tolerance)
            proved = proof.run(self._branch, self._least)
            if proved < upper or not shares.any():
                upper, shares = proved, found.weights
            if upper <= lower * (1 + tolerance) or not proof.is_row_missing or not self.may_go_on:
                break
        lower = max(lower, self._divide(price, tolerance).lower)
        return (lower, max(lower, upper)), shares

    @property
    def may_go_on(self) -> bool:
        """Whether there is time left."""
        return self.calls_left > 0 and self.work_left > 0

    def _divide(self, price: FloatArray, tolerance: float) -> Allocation | PlayAllocation:
        squares = price * ((self.best - self.rows) / self.gaps(self.rows)[:, None]) ** 2
        return optimal_allocation(squares, tolerance=min(tolerance / 4, _LOWER_TOLERANCE))

    def ask(self, weights: FloatArray, branch: Branch) -> FloatArray | None:
        """The best plan of the branch under these weights; a rival that is new becomes a row."""
        self.calls_left -= 1
        plan = self.plans.best(weights, branch)
        if plan is not None and plan.tobytes() not in self._keys:
            self._keys.add(plan.tobytes())
            self.rows = np.vstack([self.rows, plan])
        return plan

    def take_apart(self, plan: FloatArray) -> None:
        """Find the exchanges that this plan is made of: the best plans between it and the best one."""
        between = Branch(np.minimum(plan, self.best), np.maximum(plan, self.best))
        left = np.flatnonzero(plan != self.best)
        while left.size > 2:
            part = self.ask(self.means, between.pinned(int(left[0]), float(plan[left[0]])))
            if part is None:
                break
            left = left[1:][(part == self.best)[left[1:]]]


@dataclass(frozen=True, eq=False)
class _Least:
    """For every arm a number that no gap of a plan that differs there is below, and such a plan."""

    rivals: FoundRivals
    gap: FloatArray  # (n_arms,) infinite where no plan of the branch differs from the best one
    plan: FloatArray  # (n_arms, n_arms)

    def within(self, branch: Branch) -> tuple[Branch, _Least]:
        """The same for a part of the branch, and the part without arms on which no plan differs."""
        gap, plan, best, plans = self.gap.copy(), self.plan.copy(), self.rivals.best, self.rivals.plans
        for arm in branch.free:
            if plan[arm, arm] != best[arm] and branch.holds(plan[arm]):
                continue  # the least of all is in this part
            gap[arm] = np.inf
            for part in branch.apart(int(arm), float(best[arm]), plans.step):
                found = self.rivals.ask(self.rivals.means, part)
                if found is None:
                    continue
                this = float(self.rivals.gaps(found)) - plans.slack(self.rivals.means, part)
                if this < gap[arm]:
                    gap[arm], plan[arm] = this, found
            if np.isinf(gap[arm]):
                branch = branch.pinned(int(arm), float(best[arm]))
        return branch, _Least(self.rivals, gap, plan)


class _Proof:
    """A look over all rivals, for given shares. It ends at `level`, which is raised where a row is above."""

    def __init__(
        self, rivals: FoundRivals, price: FloatArray, shares: FloatArray, lower: float, tolerance: float
    ) -> None:
        self.rivals = rivals
        self.inverse = np.divide(price, shares, out=np.zeros(len(price)), where=shares > 0)
        self.level, self.tolerance = lower * (1 + tolerance), tolerance
        self.is_row_missing = False
        self._n_rows = len(rivals.rows)  # before it began

    def run(self, branch: Branch, least: _Least) -> float:
        """An upper end of A / G^2 over all rivals, infinite where a missing row was found at once.

        The branch about which least is proved is split while there is time.
        """
        first = _Node(self, branch, least)
        if first.search() and self.rivals.may_go_on:
            return math.inf
        ticket, single = itertools.count(), 0.0  # the largest of branches with one plan
        heap = [(-first.proved, next(ticket), first)]
        while heap and -heap[0][0] > max(self.level, single) and self.rivals.may_go_on:
            proved, _, node = heapq.heappop(heap)
            if node.is_single:
                single = max(single, -proved)
            for part in node.parts():
                part.search()
                heapq.heappush(heap, (max(proved, -part.proved), next(ticket), part))
        self.look_at(self._n_rows)
        return max([single, *(-worst for worst, _, _ in heap)])

    def look_at(self, first: int) -> bool:
        """Whether one of the rows from this one on is above the level, which is then raised."""
        new = self.rivals.rows[first:]
        if not len(new):
            return False
        ratio = float(((self.rivals.best - new) ** 2 @ self.inverse / self.rivals.gaps(new) ** 2).max())
        if ratio <= self.level * (1 + _ABOVE):
            return False
        self.is_row_missing, self.level = True, ratio
        return True


class _Node:
    """A branch of rivals; `search` finds `proved`, a number that A / G^2 does not exceed on it."""

    def __init__(self, proof: _Proof, branch: Branch, least: _Least) -> None:
        self._proof, self._rivals = proof, proof.rivals
        self._branch, self._least = branch, least
        best, inverse, low, high = self._rivals.best, proof.inverse, branch.lower, branch.upper
        self._has_best = bool(branch.holds(best))
        # A is not above constant + slope.plan on the branch
        self._slope = np.where(low < high, inverse * (low + high - 2 * best), 0.0)
        self._constant = float(inverse @ np.where(low < high, best * best - low * high, (best - low) ** 2))
        outside = (best <= low) | (best >= high)
        self._arms = branch.free[outside[branch.free]]  # where n_s is affine
        self._inside = branch.free[~outside[branch.free]]
        self._sign = np.where(best <= low, 1.0, -1.0)[self._arms]
        self.proved = math.inf
        self._split_at = -1

    def search(self) -> bool:
        """Find a small number that A / G^2 does not exceed; whether a row above the level was met first."""
        if not self._has_best and self._rivals.ask(self._rivals.means, self._branch) is None:
            self.proved = 0.0
            return False
        if self._inside.size and self._has_best:  # no line is above A there and 0 at the best plan
            self._split_at = int(self._inside[0])
            return False
        missing, active = False, np.zeros(0, dtype=bool)
        for _ in range(_MOST_PROGRAMS):
            program = self._program(active)
            first = len(self._rivals.rows)
            shown = self._prove(program)
            if self.proved <= max(self._proof.level, program.value * (1 + self._proof.tolerance)):
                break
            for plan in shown:
                self._rivals.take_apart(plan)
            missing |= self._proof.look_at(first)
            if len(self._rivals.rows) == first or (missing and self._has_best):
                break
            active = program.active
        weakest = program.weakest()
        self._split_at = int(self._arms[weakest]) if weakest >= 0 else -1
        return missing

    def _program(self, active: BoolArray) -> Program:
        """The linear program over the plans of this branch that were seen."""
        rivals = self._rivals
        inside = self._branch.holds(rivals.rows)
        plans = rivals.rows[inside]
        seen = Seen(
            places=np.flatnonzero(inside),
            n_rows=len(rivals.rows),
            gaps=rivals.gaps(plans),
            spreads=self._constant + plans @ self._slope,
            away=np.abs(plans - rivals.best)[:, self._arms],
            least=self._least.gap[self._arms],
            has_best=self._has_best,
        )
        program = Program(seen, self._proof.level, active)
        rivals.work_left -= program.work
        return program

    @property
    def is_single(self) -> bool:
        """Whether there is one plan here at most."""
        return not self._branch.free.size

    def parts(self) -> list[_Node]:
        """The same rivals in smaller branches."""
        if self.is_single:
            return []
        arm = self._split_at if self._split_at >= 0 else int(self._branch.free[0])
        best, low, high = (float(a[arm]) for a in (self._rivals.best, self._branch.lower, self._branch.upper))
        step = self._rivals.plans.step
        if low <= best <= high:
            branches = [*self._branch.apart(arm, best, step), self._branch.pinned(arm, best)]
        else:
            branches = list(self._branch.apart(arm, math.floor((low + high) / 2) + step / 2, step / 2))
        smaller = (self._least.within(branch) for branch in branches)
        nodes = [_Node(self._proof, branch, least) for branch, least in smaller]
        return [node for node in nodes if not (node.is_single and node._has_best)]

    def _prove(self, program: Program) -> list[FloatArray]:
        """Turn a solution into a proof for all plans of the branch; returns plans that break its rules."""
        means, best = self._rivals.means, self._rivals.best
        pull, weighted = np.zeros(len(best)), np.zeros(len(best))
        pull[self._arms] = self._sign * program.r
        weighted[self._arms] = self._sign * program.r * self._least.gap[self._arms]
        gap = _Line(float(best @ means), -means)
        away = _Line(program.constant - float(pull @ best), pull)
        below = gap.times(program.constant + program.tilt).plus(
            _Line(-program.drop - float(weighted @ best), weighted)
        )
        spread = _Line(self._constant, self._slope)
        base, rounding, shown = self._largest_ratio(away, gap, program.base)
        factor, cover_rounding, more = self._largest_ratio(spread, below, 1.0)
        least = self._least_gap()
        if math.isfinite(base) and math.isfinite(factor) and least > 0:
            value = (base + program.value - program.base) * factor
            value += factor * rounding / least + cover_rounding / least**2
            self.proved = min(self.proved, value)
        return shown + more

    def _least_gap(self) -> float:
        if self._has_best:
            return float(self._least.gap[self._arms].min())
        first = self._rivals.ask(self._rivals.means, self._branch)
        assert first is not None
        return float(self._rivals.gaps(first)) - self._rivals.plans.slack(self._rivals.means, self._branch)

    def _largest_ratio(
        self, top: _Line, bottom: _Line, ratio: float
    ) -> tuple[float, float, list[FloatArray]]:
        """c with top <= c bottom + e on the branch, e, and plans above the first c (Newton's method)."""
        shown: list[FloatArray] = []
        for _ in range(_NEWTON_STEPS):
            weights = top.slope - ratio * bottom.slope
            plan = self._rivals.ask(weights, self._branch)
            assert plan is not None
            above, under = top.at(plan), bottom.at(plan)
            excess = above - ratio * under
            if excess <= _FLAT * abs(above) or (plan == self._rivals.best).all():
                rounding = self._rivals.plans.slack(weights, self._branch)
                return ratio, max(excess, 0.0) + rounding, shown
            shown.append(plan)
            if under <= 0:
                break
            ratio = above / under
        return math.inf, 0.0, shown


@dataclass(frozen=True, eq=False)
class _Line:
    """An affine function of a plan."""

    constant: float
    slope: FloatArray

    def at(self, plan: FloatArray) -> float:
        return self.constant + float(self.slope @ plan)

    def times(self, factor: float) -> _Line:
        return _Line(factor * self.constant, factor * self.slope)

    def plus(self, other: _Line) -> _Line:
        return _Line(self.constant + other.constant, self.slope + other.slope)
