"""GenLUCB: the plan that is best at its worst against the plan that is best at its best.

Paper: Du, Kuroki & Chen (2021), Combinatorial Pure Exploration with Bottleneck Reward Function, in its form
for general rewards, as Nakamura & Sugiyama describe it (CombGapE, appendix B); here the reward is the sum.
With rad_s = R_s sqrt(2 log(4 d t^3 / delta) / T_s), t = measurements so far + 1: M = the plan with the
largest value at means - rad, M' = the other plan with the largest value at means + rad; stop when the first
of these values is at least the second, else measure the arm of largest rad among those that M or M' has.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem.

Proof status: proved: every arm, every count up to t and every round t have their own share of delta, as in
CLUCB; while all intervals hold, M is at least as good as every other plan at the stop.

Deviations: d counts the arms on which plans differ, and the others are not measured. Plans must be sets of
arms: between real plans it is not clear what M, M' and their union are, as the paper says. Costs are not
used.

Cost of a round: one pass over all entries of the plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.plan_sets import check_zeros_and_ones
from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.policies.sound import SoundPolicy

NO_UNION = (
    "with real amounts it is not clear which arms two plans have in common; use CLUCB or CombGapE, which "
    "take any numbers"
)


@dataclass(frozen=True)
class GenLUCB(SoundPolicy):
    """The plan with the largest pessimistic value against the largest optimistic one, for sets of arms.

    >>> import surepick as sp
    >>> problem = sp.problems.top_k(["a", "b", "c"], 2, noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([2.0, 1.0, 0.0]), policy=sp.policies.GenLUCB(), seed=1).plan_name
    'a + b'
    """

    name: ClassVar[str] = "GenLUCB"

    def start(self, problem: Problem) -> GenLUCBRun:
        """A fresh run on this problem, whose plans must be sets of arms."""
        check_zeros_and_ones(problem, self.name, NO_UNION)
        return GenLUCBRun(problem, self.delta)


class GenLUCBRun:
    """A run of GenLUCB: counts and sums of the arms on which plans differ. It changes by `absorb` alone."""

    def __init__(self, problem: Problem, delta: float) -> None:
        dense = as_dense(problem.oriented)
        self._arms = np.flatnonzero(problem.relevant)
        self._scale = known_noise_scale(problem)[self._arms]
        self._plans: FloatArray = np.ascontiguousarray(dense[:, self._arms])
        self._delta, self._n_arms = delta, problem.n_arms
        self._counts: IntArray = np.zeros(len(self._arms), dtype=np.int64)
        self._sums: FloatArray = np.zeros(len(self._arms))

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Every arm once at first; then the widest arm of the two plans, or the answer."""
        del rng  # nothing is drawn
        counts = np.zeros(self._n_arms, dtype=np.int64)
        missing = self._counts == 0
        if missing.any():
            counts[self._arms[missing]] = 1
            return Measure(counts)
        best, other, apart, rad = self._compare()
        if apart >= 0:
            return Stop(best)
        united = (self._plans[best] != 0) | (self._plans[other] != 0)
        counts[self._arms[np.argmax(np.where(united, rad, -np.inf))]] = 1
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was measured."""
        self._counts, self._sums = self._counts + counts[self._arms], self._sums + sums[self._arms]

    def standing(self) -> Standing:
        """The plan that is best at its worst, the one that could still beat it, and how far they lap."""
        if not self._counts.all():
            return Standing()
        best, other, apart, _ = self._compare()
        gap = float((self._plans[best] - self._plans[other]) @ (self._sums / self._counts))
        return Standing(best, other, gap, gap - apart)

    def _compare(self) -> tuple[int, int, float, FloatArray]:
        """M, M', how far the worst of the one is above the best of the other, and the arms' radii."""
        t, d = float(self._counts.sum()) + 1.0, len(self._counts)
        rad = self._scale * np.sqrt(2.0 * math.log(4.0 * d * t**3 / self._delta) / self._counts)
        values, width = self._plans @ (self._sums / self._counts), np.abs(self._plans) @ rad
        best = int(np.argmax(values - width))
        upper = values + width
        upper[best] = -np.inf
        other = int(np.argmax(upper))
        return best, other, float(values[best] - width[best] - upper[other]), rad
