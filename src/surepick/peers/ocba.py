"""OCBA and LinearOCBA: divide a budget so that the best arm, or plan, is probably found.

Paper: Chen, Lin, Yucesan & Chick (2000), Simulation Budget Allocation for Further Enhancing the Efficiency of
Ordinal Optimization. With b the arm that looks best, gaps g_i = mean_b - mean_i and noise scales R_i, the
bound 1 - sum_i Phi(-g_i / sqrt(R_i^2/N_i + R_b^2/N_b)) on the chance of a correct selection is about largest
at

    N_i proportional to (R_i / g_i)^2 for i other than b,     N_b = R_b sqrt(sum_i (N_i / R_i)^2).

Every arm is measured `first` times, and then the allocation is computed anew before each block, which goes to
the arms that are furthest below it.

Assumption: none is needed. Proof status: none; the allocation is right for long runs and N_b much larger than
the others, and no error of a run is bounded.

Deviations: the noise scales are the problem's, where the paper plugs in estimates, so that fewer first
measurements are needed; a block is 1% of the past; arms that tie with the best count as a gap of a thousandth
of a noise scale. Costs are not used.

Cost of a block: one pass over the arms, and one for each of its measurements.

LinearOCBA is reconstructed: where plans share arms the same bound, 1 - sum_j Phi(-z_j) over the rivals j of
the leader with z_j = gap_j / sqrt(v_j), v_j = sum_s y_s^2 R_s^2 / T_s, is climbed step by step. One
more measurement of arm s raises it in proportion to

    a_s / (T_s (T_s + 1) cost_s),     a_s = R_s^2 sum_j w_j y_js^2,     w_j = phi(z_j) z_j / v_j.

That is Pick with other weights: OCBA counts mistakes, Pick what they cost. Its blocks cost what Pick's do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.peers.sequential import single_arms
from surepick.policies.picking.pick import BLOCK_SHARE, PickRun
from surepick.policies.picking.pooled import PickingPolicy, PooledRun

SMALLEST_GAP = 1e-3  # in noise scales of the two arms
SMALLEST_Z = 1e-3  # a plan that ties with the leader still counts


@dataclass(frozen=True)
class OCBA(PickingPolicy):
    """Optimal computing budget allocation: single arms, a budget, the arm that looks best at its end.

    It never stops by itself. `first` is how often every arm is measured before the allocation is trusted.
    """

    first: int = 3

    name: ClassVar[str] = "OCBA"

    def __post_init__(self) -> None:
        if not self.first >= 1:
            raise ParameterError(
                f"first is how often to measure every arm first, 1 or more, got {self.first!r}", field="first"
            )

    def start(self, problem: Problem) -> OCBARun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return OCBARun(problem, self.first)


@dataclass(frozen=True)
class LinearOCBA(PickingPolicy):
    """OCBA for any plans: a budget, the plan that looks best at its end. It never stops by itself."""

    name: ClassVar[str] = "LinearOCBA"

    def start(self, problem: Problem) -> LinearOCBARun:
        """Return a fresh run on this problem."""
        return LinearOCBARun(problem, epsilon=0.0, max_batch=None)


class OCBARun(PooledRun):
    """A run of OCBA: counts and sums."""

    def __init__(self, problem: Problem, first: int) -> None:
        super().__init__(problem)
        self._candidates, self._first = single_arms(problem, OCBA.name), first

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return one more of every arm at first, then the next block; it never stops by itself."""
        del rng  # nothing is drawn
        counts, _ = self._seen()
        if counts.min() < self._first:
            return Measure(self._candidates.counts((counts == counts.min()).astype(np.int64)))
        n = max(1, int(BLOCK_SHARE * self._evidence.n_measurements))
        n = min(n, self._left) if self._left is not None and self._left > 0 else n
        return Measure(self._candidates.counts(self._fill(n)))

    def standing(self) -> Standing:
        """Return the arm that looks best, the next one, and their gap."""
        counts, sums = self._seen()
        if not counts.all():
            return Standing()
        means = sums / counts
        lead, rival = (int(k) for k in np.argsort(-means, kind="stable")[:2])
        return Standing(lead, rival, float(means[lead] - means[rival]))

    def _seen(self) -> tuple[IntArray, FloatArray]:
        return self._candidates.seen(self._evidence.counts, self._evidence.sums)

    def _fill(self, n: int) -> IntArray:
        """Return n measurements, one by one to the arm that is furthest below its share."""
        counts, sums = self._seen()
        target = allocation(sums / counts, self._candidates.scale) * (counts.sum() + n)
        block = np.zeros(len(counts), dtype=np.int64)
        for _ in range(n):
            block[np.argmax(target - counts - block)] += 1
        return block


class LinearOCBARun(PickRun):
    """A run of Pick with OCBA's weights."""

    def _log_weight(self, z: FloatArray, error: FloatArray) -> FloatArray:
        """Return log of phi(z) z / v up to a constant."""
        return np.asarray(-0.5 * z**2 + np.log(np.maximum(z, SMALLEST_Z)) - 2.0 * np.log(error))


def allocation(means: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the shares of OCBA for these means and noise scales.

    >>> allocation(np.array([2.0, 1.0, 0.0]), np.ones(3)).round(3).tolist()
    [0.452, 0.438, 0.11]
    """
    lead = int(np.argmax(means))
    gap = np.maximum(means[lead] - means, SMALLEST_GAP * (scale + scale[lead]))
    share = (scale / gap) ** 2
    share[lead] = 0.0
    share[lead] = scale[lead] * np.sqrt(((share / scale) ** 2).sum())
    return np.asarray(share / share.sum())
