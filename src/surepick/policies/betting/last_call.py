"""The last block of a run as a test instead of a bet: what it proves, and how it is divided.

Before the block it is fixed that it is the last one, its counts, and the lead i. Let D_j be the lead's gap to
plan j by the block's own means, v_j its variance, z = D_j / sqrt(v_j). Then

    p_j = 1 - Phi(z) for Gaussian noise, exp(-z^2 / 2) for sub-Gaussian noise, 1 / (1 + z^2) for noise of
    bounded variance (Cantelli); 1 where z <= 0,

and with E_j the wealth of the bets against plan j *now*, not its peak, E_j / p_j is the evidence against it.
The proof is in docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.measurable import BOUNDED_VARIANCE, SUB_GAUSSIAN_NOISE
from surepick.design.counts import cut
from surepick.design.rounding import round_allocation
from surepick.errors import ParameterError
from surepick.policies.betting.block_run import B, Block, BlockPolicy, BlockRun

GAUSSIAN_NOISE = "Gaussian"
_LEAST_SHARE = 1e-9  # of an arm that must be measured: it gets one


@dataclass(eq=False)
class LastCall:
    """What was called, and what came of it; changed by the run that it belongs to."""

    left: int  # measurements still to come
    gaussian: bool  # whether the noise is Gaussian, which makes the test sharper
    is_open: bool = False  # whether the block that is the test has been fixed
    lead: int = -1  # that was tested
    evidence: FloatArray | None = None  # (n_plans,) log(E_j / p_j), when it is over

    def state(self) -> list[Any]:
        """As arrays and numbers."""
        return [self.left, self.gaussian, self.is_open, self.lead, self.evidence]


class LastCallRun(BlockRun[B]):
    """A run of blocks whose last one may be a test."""

    def __init__(self, policy: BlockPolicy, relevant: BoolArray) -> None:
        super().__init__(policy, relevant)
        self._last: LastCall | None = None

    def call_last(self, n: int, *, gaussian: bool) -> None:
        """These n measurements are the last: the rest after an open block is one block, and a test."""
        if self._last is not None:
            raise ParameterError("the last call was made already; nothing comes after it")
        block = self._block  # it is finished first; what was measured of it before the call is none of the n
        begun = 0 if block is None else int((block.counts - block.left).sum())
        self._last = LastCall(n + begun, gaussian)

    def _close_block(self, block: Block[B]) -> None:
        if self._last is not None:
            self._last.left -= int(block.counts.sum())
        super()._close_block(block)


def log_p(gap: FloatArray, error: FloatArray, tails: str = SUB_GAUSSIAN_NOISE) -> FloatArray:
    """log p of "this plan is no worse than the lead", from its gap in the last block and the gap's error.

    1 where the gap is not above 0, for Gaussian noise too: if the noise is smaller than its stated scale, the
    normal tail bounds upper tails alone. And 1 where the error is infinite: an arm was not measured.

    >>> log_p(np.array([0.9, -1.0]), np.array([0.2**0.5, 1.0]), GAUSSIAN_NOISE).round(4).tolist()
    [-3.8128, 0.0]
    """
    from scipy.special import log_ndtr

    z = np.divide(gap, error, out=np.zeros(len(gap)), where=np.isfinite(error) & (error > 0))
    bounds = {GAUSSIAN_NOISE: lambda z: log_ndtr(-z), BOUNDED_VARIANCE: lambda z: -np.log1p(z * z)}
    tail = bounds[tails](z) if tails in bounds else -0.5 * z * z
    return np.where(z > 0, tail, 0.0)


def errors_for(nats: float, *, gaussian: bool) -> float:
    """How many errors a gap must be above 0 for p = exp(-nats).

    >>> round(errors_for(3.0, gaussian=False), 3), round(errors_for(3.0, gaussian=True), 3)
    (2.449, 1.647)
    """
    from scipy.special import ndtri_exp

    return max(float(-ndtri_exp(-nats)), 1e-9) if gaussian else math.sqrt(2.0 * nats)


def fitted(
    last: LastCall | None, left: int | None, counts: IntArray, lead: int, test: Callable[[int], IntArray]
) -> IntArray:
    """The counts of an untouched block: those of the test, if the last call was made, or cut to a budget.

    Its bets stay: they depend on nothing but the past, as do the counts.
    """
    if last is not None and not last.is_open:
        last.is_open, last.lead = True, lead
        return test(last.left)
    if last is None and left is not None and 0 < left < int(counts.sum()):
        return cut(counts, left)
    return counts


def last_counts(share: FloatArray, costs: FloatArray, differs: IntArray, n: int) -> IntArray:
    """The counts of the last block: n in all, in these shares of cost, one at least where plans differ.

    `differs` has the arms on which a rival differs from the lead; if they are more than n, those of the
    largest shares are measured once.
    """
    weights = np.zeros(len(share))
    weights[differs] = np.maximum(share[differs] / costs[differs], _LEAST_SHARE / costs.max())
    if n >= len(differs):
        return round_allocation(weights, n)
    counts = np.zeros(len(share), dtype=np.int64)
    counts[np.argsort(-weights, kind="stable")[:n]] = 1
    return counts
