"""When to stop between single arms: the lead is ahead of every other by more than a radius.

The radii are those of the gap policies (`policies/gap/radius`), for pairs of single arms: with n_i
measurements of arm i of noise scale R_i,

    radius_ij^2 = 2 (R_i^2 inflation(n_i) + R_j^2 inflation(n_j)) (level + base + term(n_i) + term(n_j)).

With inflation 1/n that is the generalised likelihood ratio test of Track-and-Stop and of the top-two rules,
gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)) > threshold, and holds for every rule that chooses arms. What is promised
is what the radius promises: `kaufmann-koolen` is that of these papers' proofs, `heuristic` the threshold
log((1 + log t)/delta) of most published experiments, which promises nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.run import Standing
from surepick.peers.selection.candidates import CandidatesRun
from surepick.policies.gap import radius as radii
from surepick.policies.sound import RadiusPolicy


@dataclass(frozen=True)
class PairwisePolicy(RadiusPolicy):
    """What policies between single arms have that stop by a radius."""

    radius: str = "kaufmann-koolen"


@dataclass(frozen=True)
class PairRadius:
    """The radius of the gap between the lead and each other candidate."""

    radius: radii.Radius
    delta: float
    n_plans: int
    base: float  # of a pair

    @classmethod
    def of(cls, name: str, delta: float, n_plans: int) -> PairRadius:
        """The radius with this name, between this many candidates."""
        radius = radii.radius_named(name)
        return cls(radius, delta, n_plans, float(radii.support_base(radius, n_plans, 2, delta)[2]))

    def __call__(self, lead: int, counts: IntArray, scale: FloatArray) -> FloatArray:
        """For each candidate; that of the lead itself has no meaning."""
        code, total = self.radius.code, float(counts.sum())
        lam = radii.lam_index(total / len(counts))
        lam_value, weight = radii.lam_value(lam), radii.lam_log_weight(lam)
        spread = scale**2 * [radii.inflation(code, n, lam_value) for n in counts.tolist()]
        term = np.array([radii.term(code, n, lam_value) for n in counts.tolist()])
        log_plans = math.log(self.n_plans if code == radii.PUBLISHED else self.n_plans - 1)
        level = radii.level(code, total, math.log(self.delta), log_plans, weight) + self.base
        if code == radii.NORMAL_MIXTURE_JOINT:
            return np.sqrt(2.0 * (spread[lead] + spread) * (level + term.sum()))
        return np.sqrt(2.0 * (spread[lead] + spread) * (level + term[lead] + term))


class PairwiseRun(CandidatesRun):
    """A run that measures every arm once, then by its own rule, until the lead is ahead of all others."""

    def __init__(self, problem: Problem, policy: PairwisePolicy) -> None:
        super().__init__(problem, policy.name)
        self._epsilon = policy.epsilon
        self._radius = PairRadius.of(policy.radius, policy.delta, self._candidates.n_plans)

    def choose(self, rng: np.random.Generator) -> IntArray:
        """What to measure once every arm has been."""
        raise NotImplementedError

    def next_counts(self, rng: np.random.Generator) -> IntArray:
        """Every arm once at first."""
        return self.choose(rng) if self._counts.all() else (self._counts == 0).astype(np.int64)

    def update(self, counts: IntArray, sums: FloatArray) -> None:
        """Answer if the lead is ahead of every other by more than the radius."""
        del counts, sums
        if self._counts.all():
            lead = self._lead
            ahead = self._means[lead] - self._means + self._epsilon
            ahead[lead] = np.inf
            radius = self._radius(lead, self._counts, self._scale)
            self._answer = lead if (ahead > radius).all() else None

    def standing(self) -> Standing:
        """The lead, the candidate that is hardest to tell from it, their gap and its radius."""
        if not self._counts.all():
            return Standing()
        lead, means = self._lead, self._means
        radius = self._radius(lead, self._counts, self._scale)
        slack = means[lead] - means - radius
        slack[lead] = np.inf
        rival = int(np.argmin(slack))
        return Standing(lead, rival, float(means[lead] - means[rival]), float(radius[rival]))

    @property
    def _lead(self) -> int:
        return int(np.argmax(self._means))

    def _costs(self, lead: int) -> FloatArray:
        """gap^2 / (2 (R_i^2/n_i + R_j^2/n_j)) for each other candidate: how well it is told from this one.

        Below 0 for those that look better, so that the one that looks better by most is the hardest.
        """
        variance = self._scale**2 / self._counts
        gap = self._means[lead] - self._means + self._epsilon
        cost = gap * np.abs(gap) / (2.0 * (variance[lead] + variance))
        cost[lead] = np.inf
        return np.asarray(cost)
