"""UGapE: name the arm whose worst-case gap is smallest, and measure it or its strongest rival.

Paper: Gabillon, Ghavamzadeh & Lazaric (2012), Best Arm Identification: A Unified Approach to Fixed Budget and
Fixed Confidence, for one arm and fixed confidence (UGapEc). With K arms, t measurements so far, beta_k =
R_k sqrt(2 log(4 K t^3 / delta) / n_k), upper and lower bounds U_k, L_k = mean_k +- beta_k:

    1. B_k = the largest U_i of the other arms, less L_k: what naming k could cost at most;
    2. J = argmin B_k, u = the arm other than J with the largest U; stop with J if B_J < epsilon;
    3. measure the one of J and u with the wider bounds.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem (paper: within a range
b, whose scale is b/2). Proof status: proved: one tail for each arm, count up to t and round t adds up to
delta/2 times the sum of 1/t^2, below delta; while the bounds hold, naming J costs at most B_J.

Deviations: with epsilon = 0 the bounds must part (B_J <= 0); the paper's constant c is 1/2, as in its proof.
UGapEb, the variant for a budget, is left out: its bounds need the sum of the squared inverse gaps, which is
unknown (SuccessiveRejects needs no such thing). Reconstructed: the text of the paper could not be read here.
Costs are not used.

Cost of a round: a few passes over the arms.
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
class UGapE(WithinPolicy):
    """Unified gap-based exploration: one measurement a round, of the named arm or its strongest rival.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.4, 0.0]), policy=sp.policies.UGapE(), seed=1).plan
    0
    """

    name: ClassVar[str] = "UGapE"

    def start(self, problem: Problem) -> UGapERun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return UGapERun(problem, self)


class UGapERun(ArmsRun):
    """A run of UGapE."""

    def __init__(self, problem: Problem, policy: UGapE) -> None:
        super().__init__(problem, policy.name)
        self._policy = policy

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the named arm or its rival, whichever is less well known."""
        del rng  # nothing is drawn
        named, rival, _ = self.bounds()
        widths = self._scale / np.sqrt(self._counts)
        return self._once(named if widths[named] > widths[rival] else rival)

    def judge(self) -> int | None:
        """Answer when naming J costs less than epsilon."""
        named, _, cost = self.bounds()
        return named if cost <= 0 or cost < self._policy.epsilon else None

    def compare(self) -> Standing:
        """Return the named arm, its rival, their gap and the sum of their radii."""
        named, rival, cost = self.bounds()
        gap = float(self._means[named] - self._means[rival])
        return Standing(named, rival, gap, gap + cost)

    def bounds(self) -> tuple[int, int, float]:
        """Return J, u and B_J."""
        t, means = float(self._counts.sum()), self._means
        log_term = math.log(4.0 * len(means) * t**3 / self._policy.delta)
        beta = self._scale * np.sqrt(2.0 * log_term / self._counts)
        upper = means + beta
        first, second = np.argsort(-upper, kind="stable")[:2]
        rivals = np.where(np.arange(len(means)) == first, second, first)  # the best upper bound of the others
        costs = upper[rivals] - (means - beta)
        named = int(np.argmin(costs))
        return named, int(rivals[named]), float(costs[named])
