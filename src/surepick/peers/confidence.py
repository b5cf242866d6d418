"""Confidence bounds of arms: LUCB and UGapE between single arms, GenLUCB between sets of arms.

All have a radius rad_s = R_s sqrt(2 log_term / n_s) for each arm, and assume independent sub-Gaussian
measurements with the noise scale of the problem. All are proved: log_term has a share of delta for each arm,
each count up to t and each round t. Costs are not used. A round costs a few passes over the arms or plans.

- **LUCB**: Kalyanakrishnan, Tewari, Auer & Stone (2012), PAC Subset Selection in Stochastic Multi-Armed
  Bandits, for one arm (LUCB1). Lead h = largest mean, rival l = largest mean + rad of the others, log_term =
  log(5 K t^4 / (4 delta)); stop if the rival's upper bound is less than epsilon above the leader's lower
  bound, else measure both. Deviations: with epsilon = 0 the bounds must part; t counts measurements.
- **UGapE**: Gabillon, Ghavamzadeh & Lazaric (2012), Best Arm Identification: A Unified Approach to Fixed
  Budget and Fixed Confidence (UGapEc). With U, L = mean +- rad, log_term = log(4 K t^3 / delta): B_k = the
  largest U of the other arms less L_k; name J = argmin B_k, stop if B_J < epsilon, else measure the wider of
  J and the arm of largest U other than J. Reconstructed (the text could not be read here), with the constant
  c = 1/2 of its proof; UGapEb is left out, whose bounds need the unknown gaps.
- **GenLUCB**: Du, Kuroki & Chen (2021), Combinatorial Pure Exploration with Bottleneck Reward Function, in
  its form for general rewards, as Nakamura & Sugiyama describe it (CombGapE, appendix B); here the reward is
  the sum. With log_term = log(4 d t^3 / delta), t = measurements so far + 1: M = the plan with the largest
  value at means - rad, M' = the other plan with the largest value at means + rad; stop when the first value
  is at least the second, else measure the widest arm that M or M' has. d counts the arms on which plans
  differ; the others are not measured. Plans must be sets of arms: between real plans M, M' and their union
  are not clear.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.problem import Problem
from surepick.core.run import Standing
from surepick.peers.sequential import Candidates, CandidatesRun, relevant_arms, single_arms
from surepick.policies.sound import SoundPolicy, WithinPolicy


class BoundsRun(CandidatesRun):
    """A run that stops when the leader's lower bound is above the upper bound of its strongest rival."""

    def __init__(self, candidates: Candidates, policy: SoundPolicy, plans: FloatArray | None = None) -> None:
        super().__init__(candidates)
        self._delta, self._epsilon = policy.delta, policy.epsilon
        self._plans = np.eye(len(candidates)) if plans is None else plans  # (n_plans, n_candidates)

    @abstractmethod
    def _bounds(self) -> tuple[int, int, float]:
        """Return the leader, its rival, and the rival's upper bound minus the leader's lower bound."""

    def _judge(self) -> int | None:
        leader, _, overlap = self._bounds()
        return leader if overlap <= 0 or overlap < self._epsilon else None

    def _compare(self) -> Standing:
        """Return the leader, its rival, their gap and the sum of their radii."""
        leader, rival, overlap = self._bounds()
        gap = float((self._plans[leader] - self._plans[rival]) @ self._means)
        return Standing(leader, rival, gap, gap + overlap)

    def _radii(self, factor: float, t: float, power: int) -> FloatArray:
        """Return rad of each candidate, R sqrt(2 log_term / n), log_term = log(factor d t^power / delta)."""
        log_term = math.log(factor * len(self._counts) * t**power / self._delta)
        return np.asarray(self._scale * np.sqrt(2.0 * log_term / self._counts))


class LUCBRun(BoundsRun):
    """A run of LUCB."""

    def __init__(self, problem: Problem, policy: WithinPolicy) -> None:
        super().__init__(single_arms(problem, policy.name), policy)

    def _choose(self, rng: np.random.Generator) -> IntArray:
        return self._once(*self._bounds()[:2])

    def _bounds(self) -> tuple[int, int, float]:
        leader = self._best
        rad = self._radii(1.25, float(self._counts.sum()), 4)
        upper = self._means + rad
        upper[leader] = -np.inf
        rival = int(np.argmax(upper))
        return leader, rival, float(upper[rival] - self._means[leader] + rad[leader])


@dataclass(frozen=True)
class LUCB(WithinPolicy, run=LUCBRun):
    """Lower and upper confidence bounds: the leader and its strongest rival, two measurements a round."""


class UGapERun(LUCBRun):
    """A run of UGapE."""

    def _choose(self, rng: np.random.Generator) -> IntArray:
        leader, rival, _ = self._bounds()
        widths = self._scale / np.sqrt(self._counts)
        return self._once(leader if widths[leader] > widths[rival] else rival)

    def _bounds(self) -> tuple[int, int, float]:
        """Return J, the other arm of largest U, and B_J."""
        rad = self._radii(4.0, float(self._counts.sum()), 3)
        upper = self._means + rad
        first, second = np.argsort(-upper, kind="stable")[:2]
        # of each arm the other one with the largest upper bound: the first, or of the first the second
        rivals = np.where(np.arange(len(upper)) == first, second, first)
        costs = upper[rivals] - (self._means - rad)  # B_k
        leader = int(np.argmin(costs))
        return leader, int(rivals[leader]), float(costs[leader])


@dataclass(frozen=True)
class UGapE(WithinPolicy, run=UGapERun):
    """Unified gap-based exploration: one measurement a round, of the leader or its strongest rival."""


class GenLUCBRun(BoundsRun):
    """A run of GenLUCB."""

    def __init__(self, problem: Problem, policy: GenLUCB) -> None:
        arms = relevant_arms(problem)
        super().__init__(arms, policy, np.ascontiguousarray(as_dense(problem.oriented)[:, arms.numbers]))

    def _choose(self, rng: np.random.Generator) -> IntArray:
        best, other, _ = self._bounds()
        united = (self._plans[best] != 0) | (self._plans[other] != 0)
        return self._once(int(np.argmax(np.where(united, self._rad(), -np.inf))))

    def _rad(self) -> FloatArray:
        return self._radii(4.0, float(self._counts.sum()) + 1.0, 3)

    def _bounds(self) -> tuple[int, int, float]:
        """Return M, M', and how far the best of the other is above the worst of the one."""
        values = self._plans @ self._means
        width = np.abs(self._plans) @ self._rad()  # of a plan: the radii of its arms together
        best = int(np.argmax(values - width))
        upper = values + width
        upper[best] = -np.inf
        other = int(np.argmax(upper))
        return best, other, float(upper[other] - (values[best] - width[best]))


@dataclass(frozen=True)
class GenLUCB(SoundPolicy, run=GenLUCBRun):
    """The plan with the largest pessimistic value against the largest optimistic one, for sets of arms."""

    _sets_only: ClassVar[str] = (
        "with real amounts it is not clear which arms two plans have in common; use CLUCB or CombGapE, which "
        "take any numbers"
    )
