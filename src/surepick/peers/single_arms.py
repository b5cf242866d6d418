"""Plans that each stand for one arm of their own, as methods for single arms need them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.policy import known_noise_scale
from surepick.core.probes import Probes
from surepick.core.problem import Problem
from surepick.errors import ProblemError


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
    if probes.dependent and probes.share_uses:
        raise ProblemError(
            f"{policy} takes the noise of one use to be jointly Gaussian, and this problem says that "
            'readings may depend in any way; say readings="unknown" if it is Gaussian, or use BetGapE',
            field="policy",
        )
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
