"""The limit where plans are not listed: behind an oracle, and of a polytope.

**Behind an oracle** every set of rivals bounds T* from below. With A = sum_s R_s^2 (best_s - plan_s)^2 / w_s
the variance of a rival's gap G under shares w, T*/2 is the least over shares of the largest A / G^2. The
rivals found so far give shares and a lower end t. A rival with a larger ratio is looked for in each branch
"differs from the best plan on arm s". Since G^2 >= 2 c G - c^2, with equality at c = G, the oracle maximises
A - t (2 c G - c^2), with c the gap of the hardest rival known there, and once more with c half-way to the gap
of the plan that came back. That is affine in a plan of zeros and ones; for other plans A is replaced by its
secant over the branch, and by its tangent at that rival.

Where whole plans are measured (plan probes), shares are those of plans, found by column generation
(`design.play_allocation`), and seeing every arm takes at least the *fractional* cover by plans.

**Of a polytope** every plan is the best vertex plus multiples of its edges, so that some plan is better in
another world if and only if some edge improves there. A basis of the vertex names one edge for each variable
that is not basic. A degenerate vertex has many bases; the edges of length above zero of all of them are its
edges. If there are too many bases to look at, the edges found give a lower end.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, divided
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plan_sets import Branch, FindPlay, PlanSet, plan_set, play_finder, spanned
from surepick.core.policy import known_deviation
from surepick.core.polytopes.polytope import Polytope
from surepick.core.polytopes.standard_form import BASIC
from surepick.core.run import Answer
from surepick.design.allocation import Allocation, optimal_allocation
from surepick.design.play_allocation import PlayAllocation, covering_plays, play_allocation
from surepick.errors import ProblemError
from surepick.limits.value import WHOLE, Bracket, Limit, Once, least_of, no_limit, raised
from surepick.policies.polytopes.edges import Edges, Vertices, exchanged

_MOST_CALLS = 20_000  # of the oracle for one bracket
_MOST_ROUNDS = 60  # of looking for harder rivals
_GUESSES = (
    2  # of the gap c at which the bound is tight: that of a known rival, then half-way to the one found
)
_ABOVE = 1e-3  # a rival is missing when its ratio is above the level by this share
_STEPS, _PLAN_CALLS = 300, 200  # of a design over plans between two calls of the oracle; calls for one design
_MOST_COLUMNS = 200  # plans in a cover
MOST_BASES = 300  # of one vertex that are looked at
_AT_BOUND = 1e-9  # amounts of a polytope are near 1
_ROUNDING = 1e-12  # of the sizes of what is added up in the gain of an edge


def oracle_limit(
    problem: OracleProblem, means: FloatArray, delta: float, tolerance: float, epsilon: float
) -> Limit:
    """Return the limit by column generation, in measurements and in cost."""
    # a known mean takes no measurements: its variance is 0
    variance = np.where(problem.is_known, 0.0, known_deviation(problem, plays=True) ** 2)
    means = np.where(problem.is_known, problem.known_means, means)
    plans = plan_set(problem)
    branch = spanned(plans)
    best = plans.best(means, branch)
    assert best is not None
    if not branch.free.size:
        raise ProblemError("all plans are the same; with one plan there is nothing to choose")
    find = play_finder(plans, branch) if problem.plays else None
    rivals = Rivals(plans, branch, best, means, find)
    measured = branch.free[~problem.is_known[branch.free]]
    answer, once, price = plans.answer(best), Once.of(problem.costs, measured), float(problem.costs[0])
    if not epsilon and (tied := rivals.tied()):
        return no_limit(answer, delta, problem.n_arms, once, tied)
    rivals.shift = raised(rivals.least_gap, epsilon)
    time = rivals.bracket(variance, tolerance)
    cost = time.at_price(price)
    if find is not None:
        n = least_plan_cover(find, branch.lower < branch.upper)
        once = Once(int(n + WHOLE), price * n)
    elif np.ptp(problem.costs) > 0:
        found = rivals.bracket(variance * problem.costs, tolerance)
        uses = found.shares / problem.costs
        cost = Bracket(found.lower, found.upper, uses / uses.sum())
    return Limit(answer, delta, time, cost, once, epsilon=epsilon, is_paired=rivals.shift > epsilon)


class Rivals:
    """The plans that are not the best one, found by an oracle as they are needed; `rows` only grows."""

    def __init__(
        self, plans: PlanSet, branch: Branch, best: FloatArray, means: FloatArray, find: FindPlay | None
    ) -> None:
        self._plans, self._best, self._means, self._find = plans, best, means, find
        self.rows = np.zeros((0, len(best)))
        self._keys = {best.tobytes()}
        self._is_binary = bool((branch.upper - branch.lower <= 1).all())
        self._parts = [
            part for arm in branch.free for part in branch.apart(int(arm), float(best[arm]), plans.step)
        ]
        for part in self._parts:
            self._ask(means, part)
        self.shift = 0.0  # what gaps are raised by
        self._design: PlayAllocation | None = None
        if find is not None:
            cover = covering_plays(find, branch.lower < branch.upper, np.zeros(len(best)))
            self._design = PlayAllocation.uniform(cover)

    @property
    def least_gap(self) -> float:
        """The gap of the second best plan; the first rows are the best ones that differ on each arm."""
        return float(((self._best - self.rows) @ self._means).min())

    def tied(self) -> tuple[Answer, ...]:
        """Return the first rival whose gap may be rounding alone, if there is one."""
        sizes = (np.abs(self.rows) + np.abs(self._best)) @ np.abs(self._means)
        at = np.flatnonzero(self._gaps(self.rows) <= np.finfo(float).eps * len(self._means) * sizes)
        return () if not at.size else (self._plans.answer(self.rows[int(at[0])]),)

    def bracket(self, price: FloatArray, tolerance: float) -> Bracket:
        """Return a lower end of T* for these variances, and shares that nearly attain it."""
        calls = self._plans.n_calls
        found = self._divide(price, tolerance)
        for _ in range(_MOST_ROUNDS):
            if not self._add_harder(price, found) or self._plans.n_calls - calls > _MOST_CALLS:
                break
            found = self._divide(price, tolerance)
        return Bracket.twice(found.lower, math.inf, found.weights)

    def _divide(self, price: FloatArray, tolerance: float) -> Allocation | PlayAllocation:
        squares = price * ((self._best - self.rows) / self._gaps(self.rows)[:, None]) ** 2
        if self._find is None or self._design is None:
            return optimal_allocation(squares, tolerance=tolerance / 4)
        self._design = play_allocation(
            squares,
            self._find,
            self._design,
            tolerance=tolerance / 4,
            most_steps=_STEPS,
            most_calls=_PLAN_CALLS,
        )
        return self._design

    def _add_harder(self, price: FloatArray, found: Allocation | PlayAllocation) -> bool:
        """Ask each branch for a rival with a larger ratio; return whether one was found."""
        level, n_known = found.lower, len(self.rows)
        inverse = divided(price, found.weights)
        ratio, gaps = self._ratios(self.rows, inverse), self._gaps(self.rows)
        for part in self._parts:
            inside = np.flatnonzero(part.holds(self.rows[:n_known]))
            if not inside.size:
                continue
            hardest = inside[np.argmax(ratio[inside])]
            open_arms = part.lower < part.upper
            secant = inverse * (part.lower + part.upper - 2 * self._best)
            tangent = 2 * inverse * (self.rows[hardest] - self._best)
            for slope in [secant] if self._is_binary else [secant, tangent]:
                c = float(gaps[hardest])
                for _ in range(_GUESSES):
                    plan = self._ask(np.where(open_arms, slope, 0.0) + 2 * level * c * self._means, part)
                    if plan is None:
                        break
                    self._take_apart(plan)
                    c = 0.5 * (c + float(self._gaps(plan)))
        return bool((self._ratios(self.rows[n_known:], inverse) > level * (1 + _ABOVE)).any())

    def _gaps(self, plans: FloatArray) -> FloatArray:
        return np.asarray((self._best - plans) @ self._means + self.shift)

    def _ratios(self, plans: FloatArray, inverse: FloatArray) -> FloatArray:
        return np.asarray((self._best - plans) ** 2 @ inverse / self._gaps(plans) ** 2)

    def _ask(self, weights: FloatArray, branch: Branch) -> FloatArray | None:
        """Return the best plan of the branch under these weights; a rival that is new becomes a row."""
        plan = self._plans.best(weights, branch)
        if plan is not None and plan.tobytes() not in self._keys:
            self._keys.add(plan.tobytes())
            self.rows = np.vstack([self.rows, plan])
        return plan

    def _take_apart(self, plan: FloatArray) -> None:
        """Ask for the exchanges that this plan is made of: the best plans between it and the best one."""
        between = Branch(np.minimum(plan, self._best), np.maximum(plan, self._best))
        left = np.flatnonzero(plan != self._best)
        while left.size > 2:
            part = self._ask(self._means, between.pinned(int(left[0]), float(plan[left[0]])))
            if part is None:
                break
            left = left[1:][(part == self._best)[left[1:]]]


def least_plan_cover(find: FindPlay, wanted: BoolArray) -> float:
    """Return how many plans reading every wanted arm takes at least, by fractions; a bound from below.

    The dual is sum y for y >= 0 with y.x <= 1 on every plan x. Whatever y is, sum y / max over plans of y.x
    is below the cover, and the oracle finds that maximum.

    >>> plans = np.array([[1.0, 1, 0], [0, 1, 1], [1, 0, 1]])
    >>> least_plan_cover(lambda w: plans[np.argmax(plans @ w)], np.ones(3, dtype=bool))
    1.5
    """
    from scipy.optimize import linprog

    plans, least = covering_plays(find, wanted, np.zeros(len(wanted))), 1.0
    for _ in range(_MOST_COLUMNS):
        found: Any = linprog(-np.ones(int(wanted.sum())), A_ub=plans[:, wanted], b_ub=np.ones(len(plans)))
        if not found.success:
            return least
        prices = np.zeros(len(wanted))
        prices[wanted] = np.maximum(found.x, 0.0)
        plan = find(prices)
        worst = max(float(plan @ prices), 1e-300)
        least = max(least, round(float(prices.sum()) / max(worst, 1.0), 9))
        if worst <= 1 + WHOLE:
            break
        plans = np.vstack([plans, plan])
    return least


def edge_limit(problem: Polytope, means: FloatArray, delta: float, tolerance: float, epsilon: float) -> Limit:
    """Return the limit over the edges at the best vertex; only a lower end where these are too many.

    Within epsilon the rivals are the plans at the other ends of the edges.
    """
    if not problem.relevant.any():
        raise ProblemError("no arm of unknown mean differs between plans; nothing has to be measured")
    means = np.where(problem.is_known, problem.known_means, means)
    noise = np.where(problem.is_known, 0.0, known_deviation(problem))  # a known mean takes no measurements
    vertices = Vertices(problem)
    first = vertices.best(means, vertices.first)
    best = tuple(problem.form.plan(first.values).tolist())
    gains, ends, is_complete = _edges_of(vertices, first)
    once = Once.of(problem.costs, np.flatnonzero(gains.any(axis=0) & ~problem.is_known))
    if epsilon:
        rows = problem.sign * (np.array(best) - ends)
        found = least_of(rows, rows @ means + 2 * epsilon, noise, problem.costs, tolerance)
        return Limit(best, delta, *found, once, epsilon=epsilon, is_paired=True)
    gaps = -gains @ means
    if (tied := gaps <= _ROUNDING * (np.abs(gains) @ np.abs(means))).any():
        plans = tuple(tuple(plan) for plan in ends[tied].tolist())
        return no_limit(best, delta, problem.n_arms, once, plans)
    time, cost = least_of(-gains, gaps, noise, problem.costs, tolerance)
    if not is_complete:
        time, cost = replace(time, upper=math.inf), replace(cost, upper=math.inf)
    return Limit(best, delta, time, cost, once)


def _edges_of(vertices: Vertices, first: Edges) -> tuple[FloatArray, FloatArray, bool]:
    """Return the gains along the edges of a vertex, the plans at their other ends, and whether these are all.

    `first` has the edges of one of its bases.
    """
    found: dict[bytes, tuple[FloatArray, FloatArray]] = {}
    todo, seen, is_complete = [first.at], {first.at.tobytes()}, True
    while todo:
        edges = vertices.edges(todo.pop())
        for k in np.flatnonzero(edges.is_edge).tolist():
            if vertices.length(edges, k) > _AT_BOUND:
                gains = edges.gains[k]
                key = np.round(gains / np.abs(gains).max(), 9).tobytes()
                found.setdefault(key, (gains, vertices.neighbour(edges, k)))
        moving = np.flatnonzero(edges.at != BASIC)
        for leaving, bound in vertices.degenerate(edges):  # the bases of the same vertex one exchange away
            for entering in moving[np.abs(edges.full[:, leaving]) > _AT_BOUND].tolist():
                at = exchanged(edges.at, leaving, bound, entering)
                if at.tobytes() in seen:
                    continue
                if len(seen) < MOST_BASES:
                    seen.add(at.tobytes())
                    todo.append(at)
                else:
                    is_complete = False
    gains, ends = (np.array(part) for part in zip(*found.values(), strict=True))
    return gains, ends, is_complete
