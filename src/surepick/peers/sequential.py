"""The loop of methods that measure one thing at a time: everything once, then one choice a round, and a test.

A *measurement option* is something that a method can measure: an arm, a candidate or a probe. `Candidates`
are options whose values are single readings; `linear.Readings` are those of linear bandits. `SequentialRun`
is the loop, and `PairwiseRun` stops between single arms when the leader is ahead of every other by more than
a radius of the gap policies (`policies/gap/radius`): with n_i measurements of arm i of noise scale R_i,

    radius_ij^2 = 2 (R_i^2 inflation(n_i) + R_j^2 inflation(n_j)) (level + base + term(n_i) + term(n_j)).

With inflation 1/n that is the generalised likelihood ratio test of Track-and-Stop and of the top-two rules,
gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)) > threshold, and holds for every rule that chooses arms. The guarantee is
that of the radius: `kaufmann-koolen` is that of these papers' proofs, `heuristic` the threshold
log((1 + log t)/delta) of most published experiments, which has no proof.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import known_noise_scale
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.core.run import Answer, Measure, Run, Standing, Stop
from surepick.errors import ProblemError
from surepick.policies.gap import radius as radii
from surepick.policies.sound import RadiusPolicy


@dataclass(frozen=True, eq=False)
class Options:
    """What a method can measure, by numbers among all arms or probes of the problem."""

    numbers: IntArray  # (n_options,)
    n_all: int  # arms or probes of the problem

    def __len__(self) -> int:
        return len(self.numbers)

    def counts(self, of_options: IntArray) -> IntArray:
        """Return counts of the options as counts of all arms or probes."""
        found = np.zeros(self.n_all, dtype=np.int64)
        found[self.numbers] = of_options
        return found

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return what was measured: counts of the options, and sums in the method's coordinates."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Candidates(Options):
    """Arms as options: up to a constant common to all, a value is `factor` times a measurement of the arm."""

    factor: FloatArray  # (n_options,)
    scale: FloatArray  # (n_options,) noise of one value

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return counts and sums of the candidates."""
        return counts[self.numbers], self.factor * sums[self.numbers]


def relevant_arms(problem: AnyProblem) -> Candidates:
    """Return the arms on which plans differ, as they are."""
    arms = np.flatnonzero(problem.relevant)
    return Candidates(arms, problem.n_arms, np.ones(len(arms)), known_noise_scale(problem)[arms])


def single_arms(problem: Problem, policy: str, *, learns_noise: bool = False) -> Candidates:
    """Return the arm of each plan, in the order of plans; larger is better, whatever the goal.

    What all plans have in common does not matter: the plans may share amounts of every arm. Other plans are
    refused, with what to use instead. With `learns_noise` the scales of unknown noise count as 1.

    >>> found = single_arms(Problem([[5, 2], [3, 4]], noise=1, goal="largest"), "LUCB")
    >>> found.numbers.tolist(), found.factor.tolist()
    ([0, 1], [2.0, 2.0])
    """
    refuse_probes(problem, policy)
    is_unknown = learns_noise and not problem.knows_noise
    scale = np.ones(problem.n_arms) if is_unknown else known_noise_scale(problem)
    arms = np.flatnonzero(problem.relevant)
    plans = as_dense(problem.oriented)[:, arms]
    own_arm, factor = np.full(problem.n_plans, -1), np.zeros(problem.n_plans)
    if problem.n_plans == len(arms) == 2:  # either column tells them apart: each gets what it has more of
        own_arm, factor = arms, (plans[0] - plans[1]) * [1.0, -1.0]
    else:
        for s, column in zip(arms.tolist(), plans.T, strict=True):
            common = np.median(column)  # of three plans or more all but one are equal here
            odd = np.flatnonzero(column != common)
            if problem.n_plans != len(arms) or len(odd) != 1 or own_arm[odd[0]] >= 0:
                raise ProblemError(
                    f"{policy} chooses between single arms, and here plans share arms or have several "
                    f"({problem.n_plans} plans, {len(arms)} arms on which they differ); use BetGapE, or "
                    "CombGapE, which take any plans",
                    field="policy",
                )
            own_arm[odd[0]], factor[odd[0]] = s, column[odd[0]] - common
    return Candidates(own_arm, problem.n_arms, factor, np.abs(factor) * scale[own_arm])


# Standings


def best_two(values: FloatArray, plans: IntArray | None = None) -> Standing:
    """Return the plan of the largest value, the next one and their gap; `plans` are their numbers, if given.

    >>> best_two(np.array([1.0, 3.0, 2.5]))
    Standing(leader=1, rival=2, gap=0.5, ...)
    """
    order = np.argsort(-values, kind="stable")[:2]
    leader, *rivals = (order if plans is None else plans[order]).tolist()
    if not rivals:
        return Standing(leader)
    return Standing(leader, rivals[0], float(values[order[0]] - values[order[1]]))


def among(standing: Standing, remaining: IntArray) -> Standing:
    """Return the standing with the plans that are left, one of which is the best; the last one is proved."""
    left = tuple(sorted(remaining.tolist()))
    return replace(standing, remaining=left, good=left if len(left) == 1 else ())


# Thresholds of gaps and counts


def heuristic_level(total: float, delta: float) -> float:
    """Return log((1 + log t)/delta), the threshold of most published experiments, which has no proof."""
    return math.log(1.0 + math.log(total)) - math.log(delta)


def mixture_lam(counts: IntArray) -> tuple[float, float]:
    """Return the lam of the normal mixture that suits these counts, and log p, its part of delta.

    See `policies/gap/radius`: all of the grid of lam holds at once, so that each round may use any.
    """
    index = radii.lam_index(float(counts.sum()) / len(counts))
    return radii.lam_value(index), radii.lam_log_weight(index)


def d_tracking(counts: IntArray, shares: FloatArray) -> int:
    """Return the option furthest behind its share, unless one has fewer than sqrt(t) - n/2 measurements.

    This is the D-tracking of Garivier & Kaufmann (2016); the least measured option is then next.
    """
    total = float(counts.sum())
    if counts.min() < math.sqrt(total) - len(counts) / 2:
        return int(np.argmin(counts))
    return int(np.argmax(total * shares - counts))


# Runs


class RoundRun(Run):
    """A run whose `_decide` is called once a round, and may draw or change what the method remembers.

    The `absorb` of a subclass begins with that of this class, which ends the round.
    """

    _decision: Measure | Stop | None = None

    @abstractmethod
    def _decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return what to measure in this round, or the answer."""

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return the decision of this round: the same one until something is absorbed."""
        if self._decision is None:
            self._decision = self._decide(rng)
        return self._decision

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Begin a new round."""
        self._decision = None


class SequentialRun(RoundRun):
    """Measure every option once; then, round by round, `_judge` whether to answer and `_choose` what is next.

    `_counts` are those of the options, `_sums` what was measured in the method's own coordinates. A run that
    stops by radii has `_gaps_and_radii`; others have their own `_judge` and `_compare`.
    """

    _epsilon: float = 0.0

    def __init__(self, options: Options, n_sums: int) -> None:
        self._options = options
        self._counts: IntArray = np.zeros(len(options), dtype=np.int64)
        self._sums: FloatArray = np.zeros(n_sums)
        self._answer: Answer | None = None

    @abstractmethod
    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Return how often to measure each option next, once every option has been measured."""

    def _gaps_and_radii(self) -> tuple[Answer, FloatArray, FloatArray]:
        """Return the leader, its lead over each rival (infinite for itself), and the radii of these."""
        raise NotImplementedError

    def _judge(self) -> Answer | None:
        """Return the answer, or None if more is needed."""
        leader, gaps, widths = self._gaps_and_radii()
        return leader if (gaps + self._epsilon > widths).all() else None

    def _compare(self) -> Standing:
        """Return the leader, the rival that is hardest to tell from it, their gap and its radius."""
        leader, gaps, widths = self._gaps_and_radii()
        rival = int(np.argmin(gaps - widths))
        return Standing(leader, rival, float(gaps[rival]), float(widths[rival]))

    def _decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return every option once, the method's choice, or the answer."""
        if self._answer is not None:
            return Stop(self._answer)
        chosen = self._choose(rng) if self._counts.all() else (self._counts == 0).astype(np.int64)
        return Measure(self._options.counts(chosen))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was measured, and judge."""
        super().absorb(counts, sums)
        own_counts, own_sums = self._options.seen(counts, sums)
        self._add(own_counts, own_sums)
        self._answer = self._judge() if self._counts.all() else None

    def _add(self, counts: IntArray, sums: FloatArray) -> None:
        """Add counts of the options, and sums in the method's coordinates."""
        self._counts = self._counts + counts
        self._sums = self._sums + sums

    def standing(self) -> Standing:
        """Return the leader and its rival; nothing before every option has been measured."""
        return self._compare() if self._counts.all() else Standing()

    def _once(self, *options: int) -> IntArray:
        """Return counts of one measurement of each of these options."""
        counts = np.zeros(len(self._counts), dtype=np.int64)
        counts[list(options)] = 1
        return counts


class CandidatesRun(SequentialRun):
    """A run over candidates, whose means are averages of their values."""

    def __init__(self, candidates: Candidates) -> None:
        super().__init__(candidates, len(candidates))
        self._scale = candidates.scale

    @property
    def _means(self) -> FloatArray:
        return np.asarray(self._sums / np.maximum(self._counts, 1))

    @property
    def _best(self) -> int:
        """The candidate with the largest mean."""
        return int(np.argmax(self._means))


@dataclass(frozen=True)
class PairwisePolicy(RadiusPolicy):
    """The settings of policies between single arms that stop by a radius."""

    radius: str = "kaufmann-koolen"


def pair_radius(name: str, delta: float, leader: int, counts: IntArray, scale: FloatArray) -> FloatArray:
    """Return this radius of the gap of each candidate to the leader; that of the leader has no meaning."""
    radius = radii.radius_named(name)
    code = radius.code
    n_plans = len(counts)
    lam, log_weight = mixture_lam(counts)
    variance = scale**2 * [radii.inflation(code, n, lam) for n in counts.tolist()]
    term = np.array([radii.term(code, n, lam) for n in counts.tolist()])
    log_union = math.log(n_plans if code == radii.PUBLISHED else n_plans - 1)
    level = radii.level(code, float(counts.sum()), math.log(delta), log_union, log_weight)
    level += float(radii.support_base(radius, n_plans, 2, delta)[2])  # of a pair
    terms = term.sum() if code == radii.NORMAL_MIXTURE_JOINT else term[leader] + term
    return np.sqrt(2 * (variance[leader] + variance) * (level + terms))


class PairwiseRun(CandidatesRun):
    """A run that stops when the leader is ahead of all others by more than the radius."""

    def __init__(self, problem: Problem, policy: PairwisePolicy) -> None:
        super().__init__(single_arms(problem, policy.name))
        self._policy, self._epsilon = policy, policy.epsilon

    def _gaps_and_radii(self) -> tuple[int, FloatArray, FloatArray]:
        """Return the leader, and for each plan its gap to the leader and the confidence radius of the gap."""
        leader, policy = self._best, self._policy
        gaps = self._means[leader] - self._means
        gaps[leader] = np.inf
        return leader, gaps, pair_radius(policy.radius, policy.delta, leader, self._counts, self._scale)

    def _costs(self, leader: int) -> FloatArray:
        """Return gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)) of this candidate i to each other one, j.

        The cost is negative for those that look better, so that the one that looks better by most is first.
        """
        variance = self._scale**2 / self._counts
        gap = self._means[leader] - self._means + self._epsilon
        cost = gap * np.abs(gap) / (2.0 * (variance[leader] + variance))
        cost[leader] = np.inf
        return np.asarray(cost)
