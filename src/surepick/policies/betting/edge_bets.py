"""The passes over the edges of a lead: estimates of their gains, and what bets on them bring; compiled."""

from __future__ import annotations

from typing import NamedTuple

from surepick.core.arrays import BoolArray, FloatArray
from surepick.kernels.compiled import compiled
from surepick.kernels.plan_rows import NonZeros
from surepick.policies.betting.bets import log_add, log_mixture

NOTHING = -1e300  # log of an empty purse: finite, so that differences of logs stay numbers
_ROUNDING = 2.0**-40  # of the sizes of what is added up: directions of edges carry rounding of their own


class EdgeBets(NamedTuple):
    """What is bet on each edge in a block, that it does not improve, fixed before the block is measured."""

    is_open: BoolArray  # (n_edges,) whether there is a bet
    centre: FloatArray  # (n_edges,) of the mixture over gaps
    prior: FloatArray  # (n_edges,) its variance


class Purses(NamedTuple):
    """The log wealth of the bets on each edge of one basis."""

    purse: FloatArray  # (n_edges,)
    peak: FloatArray  # (n_edges,) the largest so far, cash included: what Ville's inequality bounds


@compiled
def compare_edges(
    rows: NonZeros, average: FloatArray, weight: FloatArray, gap: FloatArray, spread: FloatArray
) -> None:
    """gap = - gain.average, rounded down, and spread = sum_s gain_s^2 weight_s of every edge."""
    for k in range(len(gap)):
        total, size, square = 0.0, 0.0, 0.0
        for t in range(rows.start[k], rows.start[k + 1]):
            s, y = rows.where[t], rows.value[t]
            total -= y * average[s]
            size += abs(y * average[s])
            square += y * y * weight[s]
        gap[k], spread[k] = total - _ROUNDING * size, square


@compiled
def settle_edges(
    bets: EdgeBets, purses: Purses, gap: FloatArray, spread: FloatArray, log_cash: float
) -> None:
    """Multiply the purses by their bets' factors, functions of what this block alone has shown."""
    for k in range(len(gap)):
        if bets.is_open[k]:
            if bets.centre[k] >= 0.0 and purses.purse[k] > NOTHING:
                purses.purse[k] += log_mixture(gap[k], spread[k], bets.centre[k], bets.prior[k])
            purses.peak[k] = max(purses.peak[k], log_add(log_cash, purses.purse[k]))
