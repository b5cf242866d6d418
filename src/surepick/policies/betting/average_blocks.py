"""How a block of PolyBet within epsilon is planned: the lead against its rivals, whole counts, rates of bets.

Everything here is fixed before the block, from the past alone; none of it bears on the guarantee.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray

_BINDS = 0.01  # of the dual weight


class Tuning(NamedTuple):
    """The constants of PolyBet within epsilon. None bears on the guarantee; set on other instances."""

    first_stake: float = 0.5  # of the cash
    stake: float = 0.4  # of the cash, later
    restart: float = 1.5  # growth of the measurements between stakes
    ripe: float = 1.8  # standard errors that the lead must be ahead of all rivals, epsilon included
    smoothing: float = 8.0  # squared standard errors added to squared gaps: calm allocations
    calm: float = 0.15  # share of the new allocation in the one that is used
    block_share: float = 0.15  # a block is at most this share of what was spent
    need_share: float = 0.25  # and of what seems to be needed still
    slack: float = 1.5  # nats above the target that a run is expected to need
    lowest_rate: float = 4.0  # rates reach from the least that suits a rival that binds, divided by this
    highest_rate: float = 2.0  # to the largest, times this
    rate_ratio: float = 1.5
    rounds: int = 4  # of looking for rivals, before a block
    draws: int = 6  # plans of draws around the means, before a block


TUNING = Tuning()


class View(NamedTuple):
    """The lead against all known rivals, by the estimates."""

    lead: FloatArray
    gap: FloatArray  # (n_rivals,) with epsilon
    squares: FloatArray  # (n_rivals, n_arms) squared differences to the lead
    spread: FloatArray  # (n_rivals,) variance of the gap
    urgency: FloatArray
    share: FloatArray  # (n_arms,) of cost
    worst: float  # the largest urgency-weighted variance for one unit of cost

    @property
    def clear(self) -> float:
        """Standard errors by which the lead is ahead of the closest rival."""
        return float((self.gap / np.sqrt(np.maximum(self.spread, 1e-300))).min())

    def rates(self, price: FloatArray, dual: FloatArray, epsilon: float) -> FloatArray | None:
        """Rates of bets that suit the rivals that bind, from low to high; None where none does."""
        variance = self.squares @ (price / np.maximum(self.share, 1e-300))
        binds = (dual > _BINDS) & (self.spread > 1e-6 * self.spread.max())
        if not binds.any():
            return None
        best = np.maximum(self.gap, 0.5 * epsilon)[binds] / variance[binds]
        low, high = float(best.min()) / TUNING.lowest_rate, float(best.max()) * TUNING.highest_rate
        n_rates = max(2, math.ceil(math.log(high / low) / math.log(TUNING.rate_ratio)) + 1)
        return np.geomspace(low, high, n_rates)

    def weight(self, variance: FloatArray, dual: FloatArray, counts: IntArray) -> float:
        """What these counts are worth for the rivals that bind, in units of cost."""
        spread = variance / np.maximum(counts, 1)
        return self.worst / max(float(dual @ (self.urgency * (self.squares @ spread))), 1e-300)


def whole_counts(share: FloatArray, costs: FloatArray, relevant: BoolArray, budget: float) -> IntArray:
    """Counts in proportion to shares of cost; every arm that matters gets one at least."""
    budget = max(budget, float(costs[relevant].sum()))
    return np.where(relevant, np.maximum(np.rint(share * budget / costs), 1), 0).astype(np.int64)
