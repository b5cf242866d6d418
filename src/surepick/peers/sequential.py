"""The loop of methods that measure one thing at a time: everything once, then one choice a round, and a test.

`SequentialRun` is the loop, `ArmsRun` the loop where every plan is one arm, and `PairwiseRun` stops between
such arms when the leader is ahead of every other by more than a radius. The radii are those of the gap
policies (`policies/gap/radius`), for pairs of single arms: with n_i measurements of arm i of noise scale R_i,

    radius_ij^2 = 2 (R_i^2 inflation(n_i) + R_j^2 inflation(n_j)) (level + base + term(n_i) + term(n_j)).

With inflation 1/n that is the generalised likelihood ratio test of Track-and-Stop and of the top-two rules,
gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)) > threshold, and holds for every rule that chooses arms. The guarantee is
that of the radius: `kaufmann-koolen` is that of these papers' proofs, `heuristic` the threshold
log((1 + log t)/delta) of most published experiments, which has no proof.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import known_noise_scale
from surepick.core.probes import Probes
from surepick.core.problem import Problem
from surepick.core.run import Answer, Measure, Standing, Stop
from surepick.errors import ProblemError
from surepick.policies.gap import radius as radii
from surepick.policies.sound import RadiusPolicy


@dataclass(frozen=True, eq=False)
class SingleArms:
    """For each plan its own arm: up to a constant common to all, the value is `factor` times a reading.

    Methods for single arms then see candidates, in the order of plans, with noise of scale `scale`. A *way*
    is what is used to read a candidate: its arm, or a probe that may read several at once.
    """

    n_ways: int
    way: IntArray  # (n_plans,)
    reading: IntArray  # (n_plans,) where it stands among the sums: the way, where arms are measured
    factor: FloatArray  # (n_plans,) larger is better, whatever the problem says
    scale: FloatArray  # (n_plans,) noise of one measurement of the candidate
    costs: FloatArray  # (n_plans,)

    @property
    def n_plans(self) -> int:
        """The number of candidates."""
        return len(self.way)

    def counts(self, of_plans: IntArray) -> IntArray:
        """Counts of the candidates as counts of the ways; one use reads all candidates that it can."""
        found = np.zeros(self.n_ways, dtype=np.int64)
        np.maximum.at(found, self.way, of_plans)
        return found

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Counts of the ways and sums of the readings as those of the candidates."""
        return counts[self.way], self.factor * sums[self.reading]


def single_arms(problem: Problem, policy: str) -> SingleArms:
    """The arm of each plan, or a clear error that this policy needs plans of single arms.

    What all plans have in common does not matter: the plans may share amounts of every arm.

    >>> found = single_arms(Problem([[5, 2], [3, 4]], noise=1, goal="largest"), "LUCB")
    >>> found.way.tolist(), found.factor.tolist()
    ([0, 1], [2.0, 2.0])
    """
    scale = known_noise_scale(problem)
    arm, factor = _arms_of_plans(problem, policy)
    return SingleArms(problem.n_arms, arm, arm, factor, np.abs(factor) * scale[arm], problem.costs[arm])


def read_arms(problem: Problem, policy: str) -> SingleArms:
    """Return `single_arms` for a problem whose probes may read several arms in one use.

    Each arm is always read by the same probe, chosen greedily: the one that reads most remaining arms first.

    >>> read_arms(
    ...     Problem([[1, 0], [0, 1]], measure={"both": ["arm 0", "arm 1"]}, goal="largest"), "KN"
    ... ).way.tolist()
    [0, 0]
    """
    probes = problem.probes
    if probes is None:
        return single_arms(problem, policy)
    arm, factor = _arms_of_plans(problem, policy)
    reading = _readings_of_arms(probes, arm, policy, problem.arm_names)
    factor = factor / probes.rows[reading, arm]
    way = probes.owner[reading]
    scale = np.abs(factor) * probes.noise_scale[reading]
    return SingleArms(len(probes), way, reading, factor, scale, problem.costs[way])


def _readings_of_arms(probes: Probes, arms: IntArray, policy: str, names: tuple[str, ...]) -> IntArray:
    """Return for each of these arms a reading of it alone; probes are chosen greedily to be few."""
    alone = np.flatnonzero(np.diff(probes.rows.indptr) == 1)
    read = probes.rows.indices[probes.rows.indptr[alone]]  # the arm of each
    found = {}
    left = set(arms.tolist())
    while left:
        wanted = np.isin(read, list(left))
        if not wanted.any():
            raise ProblemError(
                f"{policy} needs a reading of every arm by itself, and no probe reads {names[min(left)]!r} "
                "so; give one that does, or use BetGapE, which takes any mixes",
                field="policy",
            )
        probe = int(np.argmax(np.bincount(probes.owner[alone[wanted]], minlength=len(probes))))
        for reading in alone[wanted & (probes.owner[alone] == probe)][::-1]:  # the first of several
            found[int(probes.rows.indices[probes.rows.indptr[reading]])] = int(reading)
        left -= found.keys()
    return np.array([found[arm] for arm in arms.tolist()], dtype=np.int64)


def _arms_of_plans(problem: Problem, policy: str) -> tuple[IntArray, FloatArray]:
    """Return for each plan its arm, and its amount beyond what all plans have; larger is better."""
    plans = problem.oriented
    dense = plans if isinstance(plans, np.ndarray) else plans.toarray()
    arms = np.flatnonzero(problem.relevant)
    own = _own_arms(dense[:, arms])
    if own is None:
        raise ProblemError(
            f"{policy} chooses between single arms, and here plans share arms or "
            f"have several ({problem.n_plans} plans, {len(arms)} arms on which they differ); use BetGapE, "
            "or CombGapE, which take any plans",
            field="policy",
        )
    place, factor = own
    return arms[place], factor


def _own_arms(plans: FloatArray) -> tuple[IntArray, FloatArray] | None:
    """Return for each plan the column in which it alone differs from all others, and by how much."""
    n_plans, n_arms = plans.shape
    if n_plans != n_arms:
        return None
    if n_plans == 2:  # either reading of the two columns is right: each plan gets the one it has more of
        more = plans[0] - plans[1]
        return np.arange(2), np.array([more[0], -more[1]])
    place, factor = np.full(n_plans, -1), np.zeros(n_plans)
    for s in range(n_arms):
        common = np.median(plans[:, s])  # at least three plans, all but one of which are equal
        odd = np.flatnonzero(plans[:, s] != common)
        if len(odd) != 1 or place[odd[0]] >= 0:
            return None
        place[odd[0]], factor[odd[0]] = s, plans[odd[0], s] - common
    return place, factor


class SequentialRun(ABC):
    """Measure every way once, then as `choose` says, until `judge` has an answer.

    A *way* is something that can be measured: an arm, a candidate or a probe. `_counts` are those of the
    ways, `_sums` what was measured in the method's own coordinates. Only `absorb` changes a run.
    """

    def __init__(self, n_ways: int, n_sums: int) -> None:
        self._counts: IntArray = np.zeros(n_ways, dtype=np.int64)
        self._sums: FloatArray = np.zeros(n_sums)
        self._answer: Answer | None = None

    @abstractmethod
    def choose(self, rng: np.random.Generator) -> IntArray:
        """Return how often to measure each way next, once every way has been measured."""

    @abstractmethod
    def judge(self) -> Answer | None:
        """Return the answer, or None if more is needed."""

    @abstractmethod
    def compare(self) -> Standing:
        """Return the leader and its rival, once every way has been measured."""

    @abstractmethod
    def request(self, counts: IntArray) -> IntArray:
        """Return counts of the ways as counts of arms or probes."""

    @abstractmethod
    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return what was measured as counts of the ways and additions to `_sums`."""

    def advance(self) -> None:
        """Keep what the last choice was made by; called before its measurements are added."""
        return

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return every way once, the method's choice, or the answer."""
        if self._answer is not None:
            return Stop(self._answer)
        started = self._counts.all()
        return Measure(self.request(self.choose(rng) if started else (self._counts == 0).astype(np.int64)))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was measured, and judge."""
        if self._counts.all():
            self.advance()
        mine, added = self.seen(counts, sums)
        self._counts, self._sums = self._counts + mine, self._sums + added
        self._answer = self.judge() if self._counts.all() else None

    def standing(self) -> Standing:
        """Return the leader and its rival; nothing before every way has been measured."""
        return self.compare() if self._counts.all() else Standing()

    def _once(self, *ways: int) -> IntArray:
        """Return one measurement of each of these."""
        counts = np.zeros(len(self._counts), dtype=np.int64)
        counts[list(ways)] = 1
        return counts


class RelevantArmsRun(SequentialRun):
    """A run whose ways are the arms on which plans differ."""

    def __init__(self, problem: AnyProblem) -> None:
        self._arms, self._n_arms = np.flatnonzero(problem.relevant), problem.n_arms
        self._scale = known_noise_scale(problem)[self._arms]
        super().__init__(len(self._arms), len(self._arms))

    def request(self, counts: IntArray) -> IntArray:
        """Return counts of the arms that matter as counts of all arms."""
        found = np.zeros(self._n_arms, dtype=np.int64)
        found[self._arms] = counts
        return found

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return counts and sums of the arms that matter."""
        return counts[self._arms], sums[self._arms]

    @property
    def _means(self) -> FloatArray:
        return np.asarray(self._sums / self._counts)


class ArmsRun(SequentialRun):
    """A run over plans that are single arms, the candidates; larger is better, `_scale` their noise."""

    def __init__(self, problem: Problem, name: str, *, by_probes: bool = False) -> None:
        self._candidates = (read_arms if by_probes else single_arms)(problem, name)
        super().__init__(self._candidates.n_plans, self._candidates.n_plans)
        self._scale = self._candidates.scale

    def request(self, counts: IntArray) -> IntArray:
        """Return counts of the candidates as counts of arms or probes."""
        return self._candidates.counts(counts)

    def seen(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return counts and sums of the candidates."""
        return self._candidates.seen(counts, sums)

    def compare(self) -> Standing:
        """Return the candidate that looks best, the next one, and their gap."""
        means = self._means
        lead, rival = (int(k) for k in np.argsort(-means, kind="stable")[:2])
        return Standing(lead, rival, float(means[lead] - means[rival]))

    @property
    def _means(self) -> FloatArray:
        return np.asarray(self._sums / np.maximum(self._counts, 1))

    @property
    def _lead(self) -> int:
        return int(np.argmax(self._means))


@dataclass(frozen=True)
class PairwisePolicy(RadiusPolicy):
    """The settings of policies between single arms that stop by a radius."""

    radius: str = "kaufmann-koolen"


@dataclass(frozen=True)
class PairRadius:
    """The radius of the gap between the leader and each other candidate."""

    radius: radii.Radius
    delta: float
    n_plans: int
    base: float  # of a pair

    @classmethod
    def of(cls, name: str, delta: float, n_plans: int) -> PairRadius:
        """Return the radius with this name, between this many candidates."""
        radius = radii.radius_named(name)
        return cls(radius, delta, n_plans, float(radii.support_base(radius, n_plans, 2, delta)[2]))

    def __call__(self, lead: int, counts: IntArray, scale: FloatArray) -> FloatArray:
        """Return the radius of each candidate; that of the leader itself has no meaning."""
        code, total = self.radius.code, float(counts.sum())
        lam = radii.lam_index(total / len(counts))
        lam_value, weight = radii.lam_value(lam), radii.lam_log_weight(lam)
        variance = scale**2 * [radii.inflation(code, n, lam_value) for n in counts.tolist()]
        term = np.array([radii.term(code, n, lam_value) for n in counts.tolist()])
        log_plans = math.log(self.n_plans if code == radii.PUBLISHED else self.n_plans - 1)
        level = radii.level(code, total, math.log(self.delta), log_plans, weight) + self.base
        joint = code == radii.NORMAL_MIXTURE_JOINT
        return np.sqrt(
            2.0 * (variance[lead] + variance) * (level + (term.sum() if joint else term[lead] + term))
        )


class PairwiseRun(ArmsRun):
    """A run that stops when the leader is ahead of all others by more than the radius."""

    def __init__(self, problem: Problem, policy: PairwisePolicy) -> None:
        super().__init__(problem, policy.name)
        self._epsilon = policy.epsilon
        self._radius = PairRadius.of(policy.radius, policy.delta, self._candidates.n_plans)

    def judge(self) -> int | None:
        """Answer if the leader is ahead of every other by more than the radius."""
        lead = self._lead
        ahead = self._means[lead] - self._means + self._epsilon
        ahead[lead] = np.inf
        return lead if (ahead > self._radius(lead, self._counts, self._scale)).all() else None

    def compare(self) -> Standing:
        """Return the leader, the candidate that is hardest to tell from it, their gap and its radius."""
        lead, means = self._lead, self._means
        radius = self._radius(lead, self._counts, self._scale)
        slack = means[lead] - means - radius
        slack[lead] = np.inf
        rival = int(np.argmin(slack))
        return Standing(lead, rival, float(means[lead] - means[rival]), float(radius[rival]))

    def _costs(self, lead: int) -> FloatArray:
        """Return gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)) for each other candidate j of this one, i.

        The cost is negative for those that look better, so that the one that looks better by most is first.
        """
        variance = self._scale**2 / self._counts
        gap = self._means[lead] - self._means + self._epsilon
        cost = gap * np.abs(gap) / (2.0 * (variance[lead] + variance))
        cost[lead] = np.inf
        return np.asarray(cost)
