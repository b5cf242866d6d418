"""LUCB: measure the lead and the arm that could still be better, until their bounds part.

Paper: Kalyanakrishnan, Tewari, Auer & Stone (2012), PAC Subset Selection in Stochastic Multi-Armed Bandits,
for one arm (LUCB1). In round t, with K arms and beta_i = R_i sqrt(2 log(5 K t^4 / (4 delta)) / n_i): lead h =
largest mean, l = largest mean + beta of the others; stop if mean_l + beta_l - (mean_h - beta_h) < epsilon,
else measure both.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem (paper: within [0, 1],
whose scale is 1/2). Proof status: proved: one tail for each arm, each count up to t and each round t adds up
to 4/5 of the sum of 1/t^3, below delta.

Deviations: with epsilon = 0 the bounds must part (the paper needs epsilon above 0 to stop on ties); t counts
measurements, which is more than rounds. Costs are not used.

Cost of a round: two passes over the arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.problem import Problem
from surepick.core.run import Standing
from surepick.peers.sequential import ArmsRun
from surepick.policies.sound import WithinPolicy


@dataclass(frozen=True)
class LUCB(WithinPolicy):
    """Lower and upper confidence bounds: the lead and its strongest rival, two measurements a round.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.4, 0.0]), policy=sp.policies.LUCB(), seed=1).plan
    0
    """

    name: ClassVar[str] = "LUCB"

    def start(self, problem: Problem) -> LUCBRun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return LUCBRun(problem, self)


class LUCBRun(ArmsRun):
    """A run of LUCB."""

    def __init__(self, problem: Problem, policy: LUCB) -> None:
        super().__init__(problem, policy.name)
        self._policy = policy

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the lead and the rival."""
        del rng  # nothing is drawn
        return self._once(*self._pair()[:2])

    def judge(self) -> int | None:
        """Answer when the bounds have parted."""
        lead, _, apart = self._pair()
        return lead if apart > -self._policy.epsilon else None

    def compare(self) -> Standing:
        """Return the lead, the rival, their gap and the sum of their radii."""
        lead, rival, apart = self._pair()
        gap = float(self._means[lead] - self._means[rival])
        return Standing(lead, rival, gap, gap - apart)

    def _pair(self) -> tuple[int, int, float]:
        """Return the lead, the rival, and the lead's lower bound less the rival's upper one."""
        t, means = float(self._counts.sum()), self._means
        log_term = math.log(1.25 * len(means) * t**4 / self._policy.delta)
        beta = self._scale * np.sqrt(2.0 * log_term / self._counts)
        lead = int(np.argmax(means))
        upper = means + beta
        upper[lead] = -np.inf
        rival = int(np.argmax(upper))
        return lead, rival, float(means[lead] - beta[lead] - upper[rival])
