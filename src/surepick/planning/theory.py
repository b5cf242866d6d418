"""What the paper's theory says of an instance: its gaps, its bound for CombGapE, the terms of its rivals.

These quantities need the true means: they are for experiments and reports, and no policy sees them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, overload

import numpy as np

from surepick.core.arrays import FloatArray, Numbers, as_dense
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plan_sets import PlanSet, plan_set, spanned
from surepick.core.policy import check_delta, known_deviation
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.planning.differences import differences_of
from surepick.planning.limit import limit
from surepick.planning.limit_value import LIMIT_FORMULA, Limit

DIFFERS = 1e-9  # plans differ in an arm when by more than this share of the arm's largest coefficient
MOST_PAIR_WORK = 10**11  # n_plans^2 * n_arms beyond which the theory report would take many minutes
_PAPER_LOWER = "R^2 sum_s log(1/delta)/Delta_(s)^2"
_RAGE = "(T*/2) log(1/Delta_min) log(1/delta)"
_BLOCK = 2**17  # numbers held at once when looking over pairs: 1 MB, within a core's cache


@dataclass(frozen=True, eq=False)
class Theory:
    """The paper's quantities of an instance, and the bounds they make.

    Bounds given only up to a constant (`rage_term`, `gen_ts_explore_term`, `paper_lower_term`) are the
    expressions without it: compare their sizes, not their values.
    """

    delta: float
    noise_scale: float  # R: the largest of the arms, since the paper has one for all
    arm_gaps: FloatArray  # (n_arms,) Delta_(s): min over plans that differ from the best in arm s; else inf
    spreads: FloatArray  # (n_arms,) V_s of Theorem 4.2; 0 where no plan differs from the best
    largest_ratio: float  # A of Theorem 4.2
    smallest_gap: float  # Delta_min
    characteristic_time: float  # T* with the one noise scale above
    lower_bound: float  # the limit, see `Limit.measurements`
    paper_lower_term: float  # R^2 sum_s log(1/delta) / Delta_(s)^2
    comb_gap_e_bound: float  # Theorem 4.2, with its C solved for
    rage_term: float  # (T*/2) max(log(1/Delta_min), 1) log(1/delta)
    gen_ts_explore_term: float  # R^2 sum_s V_s / Delta_(s)^2 log(1/delta): the order the paper gives

    def rows(self) -> list[tuple[str, str, float]]:
        """What to show: name, formula and number of every scalar of the report."""
        hardness = "R^2 sum_s V_s/Delta_(s)^2"
        return [
            ("the limit", LIMIT_FORMULA, self.lower_bound),
            ("paper's lower bound, up to a constant", _PAPER_LOWER, self.paper_lower_term),
            ("CombGapE, Theorem 4.2", f"8 {hardness} log(2 K^2 C^2/delta) + A d", self.comb_gap_e_bound),
            ("RAGE, up to a constant", _RAGE, self.rage_term),
            ("GenTS-Explore, up to a constant", f"{hardness} log(1/delta)", self.gen_ts_explore_term),
            ("characteristic time", "T*", self.characteristic_time),
            ("smallest gap", "Delta_min", self.smallest_gap),
            ("largest ratio of differences", "A", self.largest_ratio),
            ("largest spread", "max_s V_s", float(self.spreads.max())),
        ]


@dataclass(frozen=True, eq=False)
class UnlistedTheory:
    """Those of the paper's quantities that can be found without a list of plans, and why others cannot.

    T* is the lower end of its bracket. Bounds up to a constant are as in `Theory`.
    """

    delta: float
    noise_scale: float
    arm_gaps: FloatArray  # (n_arms,)
    smallest_gap: float
    characteristic_time: float
    lower_bound: float
    paper_lower_term: float
    rage_term: float

    left_out: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "largest spread and largest ratio of differences, V_s and A",
            "they look at the two plans that are farthest apart, and an oracle finds one best plan at a time",
        ),
        ("CombGapE, Theorem 4.2, and GenTS-Explore's term", "they are made of V_s and A"),
    )

    def rows(self) -> list[tuple[str, str, float]]:
        """What to show: name, formula and number of every scalar of the report."""
        return [
            ("the limit", LIMIT_FORMULA, self.lower_bound),
            ("paper's lower bound, up to a constant", _PAPER_LOWER, self.paper_lower_term),
            ("RAGE, up to a constant", _RAGE, self.rage_term),
            ("characteristic time, lower end", "T*", self.characteristic_time),
            ("smallest gap", "Delta_min", self.smallest_gap),
        ]


@dataclass(frozen=True, eq=False)
class ProbeTheory:
    """What the theory says where probes are measured: T* in measurements and in cost, and RAGE's term.

    The bracket of T* is a thousandth wide; `limit` has its ends.
    """

    delta: float
    noise_scale: float  # the largest of the readings
    smallest_gap: float
    characteristic_time: float
    characteristic_cost: float
    lower_bound: float
    cost_lower_bound: float
    rage_term: float

    left_out: ClassVar[tuple[tuple[str, str], ...]] = (
        ("arm gaps, V_s and A, and the bounds made of them", "they are about arms measured one by one"),
    )

    def rows(self) -> list[tuple[str, str, float]]:
        """What to show: name, formula and number of every scalar of the report."""
        return [
            ("the limit", "max(T* kl(delta, 1 - delta), (1 - 2 delta) cover)", self.lower_bound),
            ("the limit in cost", "the same, in cost", self.cost_lower_bound),
            ("RAGE, up to a constant", _RAGE, self.rage_term),
            ("characteristic time", "T* = 2 min_u max_j z' M(u)^+ z", self.characteristic_time),
            ("the same in cost", "T*", self.characteristic_cost),
            ("smallest gap", "Delta_min", self.smallest_gap),
        ]


@overload
def theory(problem: Problem, means: Numbers, delta: float = 0.05) -> Theory: ...


@overload
def theory(problem: OracleProblem, means: Numbers, delta: float = 0.05) -> UnlistedTheory: ...


def theory(problem: Problem | OracleProblem, means: Numbers, delta: float = 0.05) -> Theory | UnlistedTheory:
    """The paper's Delta_(s), V_s and A, its bound for CombGapE, and the terms of its rivals.

    V_s and A look at all pairs of plans: n_plans^2 n_arms operations. Two plans count as different in an arm
    when they differ by more than `DIFFERS` of the arm's largest coefficient; without that, rounding in a
    plan builder would make A huge. The bound for CombGapE is proved for the published radius, whose own proof
    has holes: it says what the paper promises. Where plans cannot be listed, the report has what an oracle
    can find (`UnlistedTheory`).

    >>> report = theory(Problem([[1, 0], [0, 1]], noise_scale=1), [0.5, 0.0])
    >>> report.arm_gaps.tolist(), report.spreads.tolist(), report.largest_ratio
    ([0.5, 0.5], [2.0, 2.0], 1.0)
    """
    check_delta(delta)
    means = problem.as_means(means)
    if not problem.is_listed:
        return _unlisted_theory(problem, means, delta)
    refuse_probes(problem, "the paper's theory of arm gaps")
    if problem.n_plans**2 * problem.n_arms > MOST_PAIR_WORK:
        raise ParameterError(
            f"the theory report looks at all pairs of {problem.n_plans} plans and {problem.n_arms} arms, "
            "which is too many; use limit(), which does not"
        )
    scale = float(known_deviation(problem).max())
    best = problem.best(means)
    plans = as_dense(problem.oriented)
    differences, gaps = differences_of(problem, means, best)
    coarse = DIFFERS * np.abs(plans).max(axis=0)  # (d,)
    sizes = np.abs(as_dense(differences))
    away = np.where(sizes > coarse, sizes, 0.0)  # (K, d) |pi*_s - pi_s| where they differ
    arm_gaps = _arm_gaps(away, gaps)
    spreads, ratio = _pair_maxima(plans, away, coarse)
    hardness = scale**2 * float(_over_squares(spreads, arm_gaps).sum())
    found = limit(Problem(plans, noise_scale=scale), means, delta=delta)
    smallest = float(np.delete(gaps, best).min())
    information = math.log(1 / delta)
    return Theory(
        delta=delta,
        noise_scale=scale,
        arm_gaps=arm_gaps,
        spreads=spreads,
        largest_ratio=ratio,
        smallest_gap=smallest,
        characteristic_time=found.characteristic_time,
        lower_bound=found.lower_bound,
        paper_lower_term=_paper_lower_term(scale, arm_gaps, delta),
        comb_gap_e_bound=_theorem_bound(8 * hardness, problem.n_plans, delta, ratio * problem.n_arms),
        rage_term=_rage_term(found, smallest),
        gen_ts_explore_term=hardness * information,
    )


def _unlisted_theory(problem: OracleProblem, means: FloatArray, delta: float) -> UnlistedTheory:
    scale = float(known_deviation(problem).max())
    plans = plan_set(problem)
    arm_gaps, smallest = _asked_arm_gaps(plans, means)
    found = limit(problem.with_noise(np.full(problem.n_arms, scale)), means, delta=delta)
    return UnlistedTheory(
        delta=delta,
        noise_scale=scale,
        arm_gaps=arm_gaps,
        smallest_gap=smallest if found.is_finite else 0.0,
        characteristic_time=found.characteristic_time,
        lower_bound=found.lower_bound,
        paper_lower_term=_paper_lower_term(scale, arm_gaps, delta) if found.is_finite else math.inf,
        rage_term=_rage_term(found, smallest) if found.is_finite else math.inf,
    )


def probe_theory(problem: Problem, means: Numbers, delta: float = 0.05) -> ProbeTheory:
    """What can be said where probes are measured: T* in measurements and in cost, and RAGE's term.

    >>> round(probe_theory(Problem([[1, 0], [0, 1]], probes="plans"), [0.5, 0.0]).characteristic_time, 2)
    32.0
    """
    check_delta(delta)
    means = problem.as_means(means)
    best = problem.best(means)
    _, gaps = differences_of(problem, means, best)
    found, smallest = limit(problem, means, delta=delta), float(np.delete(gaps, best).min())
    return ProbeTheory(
        delta=delta,
        noise_scale=float(problem.noise_scale.max()) if problem.noise_scale is not None else math.nan,
        smallest_gap=smallest,
        characteristic_time=found.characteristic_time,
        characteristic_cost=found.characteristic_cost,
        lower_bound=found.lower_bound,
        cost_lower_bound=found.cost_lower_bound,
        rage_term=_rage_term(found, smallest) if found.is_finite else math.inf,
    )


def _asked_arm_gaps(plans: PlanSet, means: FloatArray) -> tuple[FloatArray, float]:
    """Delta_(s) = min of gap / |difference in arm s|, by an oracle (Dinkelbach), and the least gap."""
    branch, _ = spanned(plans)
    best = plans.best(means, branch)
    assert best is not None
    ratios, smallest = np.full(len(means), np.inf), math.inf
    for arm in branch.free:
        for part in branch.apart(int(arm), float(best[arm]), plans.step):
            plan, ratio = plans.best(means, part), math.inf
            while plan is not None:
                gap, away = float((best - plan) @ means), float(plan[arm] - best[arm])
                smallest = min(smallest, gap)
                if gap / abs(away) >= ratio:
                    break
                ratio = gap / abs(away)
                weights = means.copy()
                weights[arm] += ratio * np.sign(away)
                plan = plans.best(weights, part) if part.lower[arm] < part.upper[arm] else None
            ratios[arm] = min(ratios[arm], ratio)
    return ratios, smallest


def _paper_lower_term(scale: float, arm_gaps: FloatArray, delta: float) -> float:
    squares = float(_over_squares(np.ones(len(arm_gaps)), arm_gaps).sum())
    return scale**2 * squares * math.log(1 / delta)


def _rage_term(found: Limit, smallest_gap: float) -> float:
    return found.characteristic_time / 2 * _at_least_one(smallest_gap) * math.log(1 / found.delta)


def _arm_gaps(away: FloatArray, gaps: FloatArray) -> FloatArray:
    """Delta_(s) = min over plans with away_ks > 0 of gap_k / away_ks.

    The paper prints a maximum; its proofs use the minimum.
    """
    ratios = np.divide(gaps[:, None], away, out=np.full_like(away, np.inf), where=away > 0)
    return np.asarray(ratios.min(axis=0))


def _pair_maxima(plans: FloatArray, away: FloatArray, coarse: FloatArray) -> tuple[FloatArray, float]:
    """V_s = max |pi_s - pi'_s| |pi - pi'|_1 / |pi*_s - pi_s|^2, A = max |pi_u - pi'_u| / |pi_s - pi'_s|."""
    n_plans, n_arms = plans.shape
    spreads, ratio = np.zeros(n_arms), 1.0
    step = max(1, _BLOCK // (n_plans * n_arms))
    for low in range(0, n_plans, step):
        block = slice(low, low + step)
        apart = np.abs(plans[block, None, :] - plans[None, :, :])  # (b, K, d)
        least = np.where(apart > coarse, apart, np.inf).min(axis=2)  # (b, K)
        ratio = max(ratio, float((apart.max(axis=2) / least).max()))
        apart *= apart.sum(axis=2)[:, :, None]
        most = apart.max(axis=1)  # (b, d)
        scaled = np.divide(most, away[block] ** 2, out=np.zeros_like(most), where=away[block] > 0)
        spreads = np.maximum(spreads, scaled.max(axis=0))
    return spreads, ratio


def _over_squares(numerators: FloatArray, arm_gaps: FloatArray) -> FloatArray:
    """numerator_s / Delta_(s)^2: 0 where no plan differs from the best, infinite where one ties with it."""
    squares = arm_gaps**2
    return np.divide(numerators, squares, out=np.full_like(squares, np.inf), where=squares > 0)


def _theorem_bound(factor: float, n_plans: int, delta: float, shift: float) -> float:
    """The largest t with t = factor log(2 K^2 t^2 / delta) + shift: where the proof's inequality ends."""
    if not math.isfinite(factor):
        return math.inf
    constant = factor * math.log(2 * n_plans**2 / delta) + shift
    t = 4 * factor + 2 * constant
    while t - 2 * factor * math.log(t) < constant:
        t *= 2
    for _ in range(100):  # Newton from above on a convex function: monotone
        step = (t - 2 * factor * math.log(t) - constant) / (1 - 2 * factor / t)
        t -= step
        if abs(step) <= 1e-14 * t:
            break
    return t


def _at_least_one(smallest_gap: float) -> float:
    """log(1/Delta_min), and at least one phase."""
    return max(math.log(1 / smallest_gap), 1.0) if smallest_gap > 0 else math.inf
