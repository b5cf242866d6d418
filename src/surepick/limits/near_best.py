"""The limit of a polytope within epsilon, from both sides.

A plan is *good* if it is within epsilon of the best one. Larger is better, y = x - pi, v_s = R_s^2.

*The upper end.* A plan x stays good in every world in which no plan pi is more than epsilon better. So

    T(x, w) = 2 max_pi sum_s v_s y_s^2 / w_s / (y.mu + epsilon)^2

is the characteristic time of telling x, with the shares w, from all other worlds. The least T(x, w) over
good plans x and all shares is what methods can come near to as delta goes to 0 (Degenne and Koolen 2019). Any
x and w give an upper end; that no plan pi exceeds it is proved by the boxes of `core.proofs`.

*The lower end*, for every delta. If in a world lambda no plan is good that is good under mu, a method must
tell the two apart: sum_s E[T_s] (mu_s - lambda_s)^2 / (2 v_s) >= kl(delta, 1 - delta). So for worlds of this
kind, with weights q that sum to 1,

    E[measurements] >= kl(delta, 1 - delta) / max_s sum_lambda q_lambda (mu_s - lambda_s)^2 / (2 v_s).

Each world is checked by a bound that holds whatever a solver says (`safe_bound`). Where many plans are good,
a world that makes all of them bad at once is far away, and *pairs* of worlds mu + u, mu - u are better: if
(p - q).u > 2 epsilon + (loss of p) + (loss of q) for two plans p and q, no plan is good in both, so that the
answer is bad in one of them with probability 1/2 at least, and is allowed delta there. That needs
kl(1/2, delta), and the hardest pairs are rows of an allocation as rivals are.

An arm is left unmeasured with probability at most 2 delta if no good plan has as much of it as some plan has,
or as little: were its mean large enough, or small enough, all of them would be bad. The proofs are in
docs/theory.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.polytope import Polytope
from surepick.core.proofs import NATS, Inequality, errors_ahead, system_of
from surepick.core.standard_form import BASIC, ROUNDING, safe_bound
from surepick.design.allocation import optimal_allocation
from surepick.policies.polytopes.box_cuts import ALIVE, COVERED
from surepick.policies.polytopes.covering import Effort, cover
from surepick.policies.polytopes.rivals import Rivals
from surepick.policies.polytopes.simplex import SOLVED, empty_tableau, restore, solve

_DRAWS = 8  # plans of draws around the means, of each width
_WIDTHS = (0.03, 0.1, 0.3, 1.0)  # of draws, in units of the range of the means
_LOCAL = 20  # rivals from which others are looked for
_STEPS = (0.3, 0.1, 0.03, 0.01)  # of the way to another plan
_WITHIN = 0.9  # of epsilon that the plan of the upper end may lose
_TOLERANCE = 2e-3  # of shares
_EVEN = 0.02  # of equal shares in the shares: rivals that are not known may need any arm
_LEAST = 1e-12  # share of an arm that does not matter
_CUTS = 12  # good plans that one alternative has to make bad
_MIXED = 0.1  # of equal shares, in the shares that alternatives are near by
_HALVINGS = 16
_FURTHEST = 100.0  # times the change that should do, before an alternative is given up
_MORE = 1e-7  # of amounts near 1: what another plan must have more of an arm


class Search(NamedTuple):
    """The effort of the search. It affects how wide the bracket is, not whether it holds."""

    rounds: int  # of looking for harder rivals and better plans
    moves: int  # in a row towards a better plan
    programs: int  # of one proof
    proofs: int  # that may end with a plan that was not known
    shrink: tuple[float, ...]  # of a ratio, until all plans are proved to keep it
    alternatives: int  # rounds of looking for alternatives
    rivals: int  # plans that alternatives are looked for with, each round
    paired: int  # plans of which pairs are made


CAREFUL = Search(100, 10, 60_000, 20, (1.0, 0.99, 0.97, 0.95, 0.9, 0.8, 0.65, 0.5, 0.3, 0.1), 10, 60, 100)
QUICK = Search(10, 6, 3_000, 3, (0.97, 0.9, 0.8, 0.65, 0.5, 0.3, 0.1), 2, 12, 40)


class Ends(NamedTuple):
    """The two ends of the characteristic time, and the plan and shares of the upper one."""

    lower: float
    upper: float
    pairs: float  # what pairs of alternatives give, for kl(1/2, delta)
    plan: FloatArray  # (n_arms,) in units of the form
    shares: FloatArray  # (n_arms,)


class _Shares(NamedTuple):
    """The allocation of measurements that tells a plan from all known ones."""

    shares: FloatArray  # (n_arms,)
    value: float  # the largest need
    dual: FloatArray  # (n_rivals,) how much each binds
    need: FloatArray  # (n_rivals,) variance by the squared gap, for one measurement


class GoodPlans:
    """The plans within epsilon of the best under some means, in units of the form; it has scratch."""

    def __init__(
        self, problem: Polytope, means: FloatArray, best: FloatArray, basis: IntArray, epsilon: float
    ) -> None:
        """`basis` is one of the best plan: every search starts from it."""
        none = np.zeros(0)
        nothing = Inequality(0.0, means, 0.0, means, means, 0.0, 0.0, none, none)
        self._system, self._n_arms = system_of(problem.form, nothing), len(means)
        low = float(best @ means) - epsilon
        low -= ROUNDING * (float(np.abs(best) @ np.abs(means)) + epsilon)
        self._system.lower[-1] = min(max(low, self._system.lower[-1]), self._system.upper[-1])
        bounds = self._system.lower, self._system.upper
        self._tableau = empty_tableau(self._system.matrix, self._system.right, bounds)
        self._first = np.append(basis, BASIC)

    def most(self, weights: FloatArray) -> tuple[float, FloatArray]:
        """Return a number that weights.x never exceeds on good plans, and the good plan a solver found."""
        tableau, system, n = self._tableau, self._system, self._n_arms
        costs = np.zeros(len(system.lower))
        costs[:n] = -weights
        tableau.at[:] = self._first
        if not restore(tableau) or solve(tableau, costs) != SOLVED:
            return math.inf, tableau.values[:n].copy()
        basis = tableau.basis
        prices: FloatArray = np.linalg.solve(system.matrix[:, basis].T, costs[basis]).astype(float)
        return -safe_bound(system, costs, prices), tableau.values[:n].copy()


class NearBest:
    """Bounds on the measurements needed to find a plan within epsilon of the best.

    Mutable: it collects the plans that matter as it searches.
    """

    def __init__(self, problem: Polytope, means: FloatArray, epsilon: float, search: Search) -> None:
        form, self._problem, self._epsilon, self._search = problem.form, problem, epsilon, search
        means = np.where(problem.is_known, problem.known_means, means)
        self._means = np.where(form.moves, problem.sign * form.unit * means, 0.0)
        self._rivals = Rivals(problem)
        self._rivals.choose_lead(self._means)
        self.best: FloatArray = self._rivals.lead  # in units of the form
        self._good = GoodPlans(problem, self._means, self.best, self._rivals.at, epsilon)
        width = float(np.ptp(self._means))
        for k, share in enumerate(_WIDTHS):
            self._rivals.draw(self._means, np.full(problem.n_arms, share * width), k, _DRAWS)

    def has_to_be_measured(self) -> BoolArray:
        """Return which arms, (n_arms,), could make all good plans bad by their mean alone."""
        needed = np.zeros(len(self._means), dtype=bool)
        for s in np.flatnonzero(self._problem.relevant).tolist():
            for side in (1.0, -1.0):
                weights = np.zeros(len(self._means))
                weights[s] = side
                most = float(weights @ self._rivals.best(weights))
                needed[s] |= most > self._good.most(weights)[0] + _MORE
        return needed

    def ends(self, variance: FloatArray) -> Ends:
        """Return both ends of the characteristic time for these variances, or variances times prices."""
        scaled = np.where(self._problem.relevant, variance * self._problem.form.unit**2, 0.0)
        upper, plan, shares = self._upper(scaled)
        return Ends(min(self._lower(scaled, shares), upper), upper, self._pairs(scaled), plan, shares)

    def _upper(self, variance: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return an upper bound, proved over all plans, and the plan and shares that attain it.

        It begins at the best plan and moves to plans that need less.
        """
        plan, found = self.best, self._shares(self.best, variance)
        for _ in range(self._search.rounds):
            n_known = len(self._rivals.plans)
            harder = self._ahead(plan, variance, found.shares, 0.999 / math.sqrt(found.value))
            self._rivals.find(harder, np.argsort(-found.need, kind="stable")[:_LOCAL])
            plan, moved = self._moved(plan, variance, self._shares(plan, variance, found))
            if len(self._rivals.plans) == n_known and moved.value >= 0.995 * found.value:
                break
            found = moved
        for shrink in self._search.shrink:
            for _ in range(self._search.proofs):
                ratio = shrink / math.sqrt(moved.value)
                inequality = self._ahead(plan, variance, moved.shares, ratio)
                effort = Effort(self._rivals.first, (2 * self._epsilon / ratio) ** 2, self._search.programs)
                proof = cover(inequality, system_of(self._problem.form, inequality), effort)
                if proof.status == COVERED:
                    return 2.0 / ratio**2, plan, moved.shares
                if proof.status != ALIVE or not self._rivals.add_near(inequality, proof.alive):
                    break
                moved = self._shares(plan, variance, moved)
        return math.inf, plan, moved.shares

    def _shares(self, plan: FloatArray, variance: FloatArray, last: _Shares | None = None) -> _Shares:
        """Return shares that are nearly best for telling the plan from all known ones, none of them zero."""
        away = plan - self._rivals.plans
        squares = away**2 * variance / (away @ self._means + self._epsilon)[:, None] ** 2
        start = None
        if last is not None:
            start = np.append(last.dual, np.full(len(squares) - len(last.dual), 1e-3))
        found = optimal_allocation(squares, tolerance=_TOLERANCE, start=start)
        moves = variance > 0
        shares = (1 - _EVEN) * found.weights + _EVEN * moves / np.count_nonzero(moves)
        need = squares @ (1.0 / np.where(moves, shares, 1.0))
        return _Shares(shares, float(need.max()), found.dual, need)

    def _ahead(self, plan: FloatArray, variance: FloatArray, shares: FloatArray, ratio: float) -> Inequality:
        """Return the inequality: (plan - x).mu + epsilon is at least `ratio` errors for all plans x."""
        per_arm = variance / np.maximum(shares, _LEAST)
        ahead = errors_ahead(plan, self._means, per_arm, self._epsilon, rounded=True)
        return ahead._replace(target=ratio)

    def _moved(self, plan: FloatArray, variance: FloatArray, found: _Shares) -> tuple[FloatArray, _Shares]:
        """Return the plan after some steps towards known plans along which the need falls."""
        for _ in range(self._search.moves):
            away = plan - self._rivals.plans
            gap = away @ self._means + self._epsilon
            weight = found.dual / gap
            slope = (weight / gap) @ away * variance / np.maximum(found.shares, _LEAST)
            slope -= float(weight @ found.need) * self._means
            target = self._rivals.plans[int(np.argmin(self._rivals.plans @ slope))]
            for step in _STEPS:
                other = plan + step * (target - plan)
                if float((self.best - other) @ self._means) > _WITHIN * self._epsilon:
                    continue
                tried = self._shares(other, variance, found)
                if tried.value < (1 - 1e-3) * found.value:
                    plan, found = other, tried
                    break
            else:
                break
        return plan, found

    def _lower(self, variance: FloatArray, shares: FloatArray) -> float:
        """Return a lower bound: telling mu from alternatives in which no plan that is good under mu is good.

        Rows are change_s^2 / (2 variance_s) of the alternatives found so far. The value of the game between
        weights on them and shares of the arms is the largest rate that separates mu from all of them.
        """
        rows, best, moves = list[FloatArray](), 0.0, variance > 0
        per = np.where(moves, 1.0 / np.where(moves, 2.0 * variance, 1.0), 0.0)
        away = self.best - self._rivals.plans
        gap = away @ self._means
        is_bad = gap > self._epsilon * (1 + 1e-6)
        bad, away, gap = self._rivals.plans[is_bad], away[is_bad], gap[is_bad]
        for _ in range(self._search.alternatives):
            near = (1 - _MIXED) * shares + _MIXED * moves / np.count_nonzero(moves)
            error = variance / np.maximum(near, _LEAST)
            errors_apart = gap**2 / np.maximum(away**2 @ error, 1e-300)
            for plan in bad[np.argsort(errors_apart, kind="stable")[: self._search.rivals]]:
                change = self._alternative(plan, error)
                if change is not None:
                    rows.append(change**2 * per)
            if not rows:
                return 0.0
            weights, shares = _game(np.array(rows))
            best = max(best, 1.0 / float((weights @ np.array(rows)).max()))
        return best

    def _pairs(self, variance: FloatArray) -> float:
        """Return a lower bound: telling mu from pairs of alternatives such that every plan is bad in one."""
        plans = self._rivals.plans
        loss = self._good.most(self._means)[0] - plans @ self._means
        loss += NATS * (np.abs(plans) @ np.abs(self._means) + self._epsilon)
        kept = np.argsort(loss, kind="stable")[: self._search.paired]
        one, other = np.triu_indices(len(kept), 1)
        away = (plans[kept[one]] - plans[kept[other]]) ** 2 * variance
        need = 2 * self._epsilon + loss[kept[one]] + loss[kept[other]]
        return 2 * optimal_allocation(away / need[:, None] ** 2, tolerance=_TOLERANCE).lower

    def _alternative(self, plan: FloatArray, error: FloatArray) -> FloatArray | None:
        """Return the least change of the means, by these errors, with which this plan beats all good ones."""
        from scipy.optimize import nnls

        cuts, root = [self.best], np.sqrt(error)
        unit, change = np.append(np.zeros(len(error)), 1.0), np.zeros(len(error))
        for _ in range(_CUTS):
            away = plan - np.array(cuts)
            system = np.vstack([(away * root).T, self._epsilon - away @ self._means])
            left = system @ nnls(system, unit)[0] - unit
            if not left[-1] < -1e-12:
                return None
            change = -left[:-1] / left[-1] * root
            found = self._good.most(self._means + change)[1]
            if float((plan - found) @ (self._means + change)) >= self._epsilon * (1 - 1e-3):
                break
            cuts.append(found)
        return self._checked(change)

    def _checked(self, change: FloatArray) -> FloatArray | None:
        """Return the change, as large as is needed to make all good plans bad for certain, and not larger."""

        def is_bad_for_all(size: float) -> bool:
            means = self._means + size * change
            rival = self._rivals.best(means)
            least = float(rival @ means) - NATS * float(np.abs(rival) @ np.abs(means))
            return least - self._good.most(means)[0] > self._epsilon

        low, high = 0.0, 1.0
        while not is_bad_for_all(high):
            low, high = high, 1.02 * high if high < 1.2 else 2 * high
            if high > _FURTHEST:
                return None
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if is_bad_for_all(middle) else (middle, high)
        return high * change


def _game(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return weights of the rows whose largest mixed entry is least, and the shares that answer them."""
    from scipy.optimize import linprog

    scale = float(rows.max())
    k, n = rows.shape
    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=np.hstack([-rows / scale, np.ones((k, 1))]),
        b_ub=np.zeros(k),
        A_eq=np.append(np.ones(n), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * n + [(None, None)],
    )
    if found.status != 0 or found.x is None:
        return np.full(k, 1.0 / k), np.full(n, 1.0 / n)
    weights = np.maximum(-found.ineqlin.marginals, 0.0)
    return weights / weights.sum(), np.asarray(found.x[:n])
