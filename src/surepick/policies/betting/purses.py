"""The wealth of bets against every plan, where gaps come from probes: the purses of BetGapE, as arrays.

The bets, stakes and constants are those of `blocks`, whose compiled steps read gaps off single arms. What
may be bet, and why it is at best fair, is in docs/bet-gap-e.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.policies.betting.books import NOTHING
from surepick.policies.betting.tuning import TUNING

_OLD_LEADS = 8  # leads whose pieces are kept; forgetting one only loses wealth
_NO_RUNG = np.zeros(0)


class Settled(NamedTuple):
    """Bets that a block decides: what was bet against each plan, and what the block showed of its gap."""

    plans: IntArray
    gap: FloatArray  # (n,); where noise is unknown (n, n_parts), as each part of the block shows it
    spread: FloatArray  # its variance; where noise is unknown, what that of one part is thought to be
    centre: FloatArray  # of the mixture; no bet where it is negative
    prior: FloatArray  # variance of the mixture
    unit: FloatArray  # of the ladder's rungs


class Purses:
    """Log wealth against every plan; changed by the run that owns it."""

    def __init__(self, n_plans: int, delta: float, epsilon: float) -> None:
        log_plans = math.log(n_plans)
        learnt = TUNING.ladder_share - TUNING.ladder_share_per_log * log_plans
        self.epsilon, self.target = epsilon, -math.log(delta)
        self._ladder_share = max(TUNING.least_ladder_share, learnt)
        self._rung = TUNING.top_rung * 0.5 ** (np.arange(0 if epsilon else TUNING.rungs) / 2)
        self._log_cash, self.next_stake = 0.0, 0.0
        self._purse = np.full((n_plans, len(self._rung) + 1), NOTHING)  # the ladder and, last, the mixture
        self.now, self.peak = np.zeros(n_plans), np.zeros(n_plans)
        # with epsilon, by lead: bets that are fair only if it is more than epsilon worse; the last used last
        self._pieces: dict[int, tuple[FloatArray, FloatArray]] = {}  # purse and peak, each (n_plans,)

    def peaks_for(self, lead: int) -> FloatArray:
        """The largest log wealth so far against each plan, as a rival of this lead."""
        piece = self._pieces.get(lead)
        return self.peak.copy() if piece is None else np.maximum(self.peak, piece[1])

    @property
    def old_leads(self) -> tuple[int, ...]:
        """The leads that have pieces."""
        return tuple(self._pieces)

    def put_stakes(self, lead: int, measured: int) -> None:
        """At the start, and whenever the measurements have grown enough, put some of the cash on bets."""
        if measured < self.next_stake:
            return
        is_first, self.next_stake = self.next_stake == 0.0, TUNING.restart * measured
        if self.epsilon:
            stake = self._take_cash(TUNING.stake_with_epsilon)
            purse, _ = self._own_piece(lead)
            np.logaddexp(purse, stake + math.log(TUNING.piece_share), out=purse)
            stake += math.log1p(-TUNING.piece_share)
        elif is_first:
            stake, n = self._take_cash(TUNING.first_stake), len(self._rung)
            ladder = self._purse[:, :n]
            np.logaddexp(ladder, stake + math.log(self._ladder_share / n), out=ladder)
            stake += math.log1p(-self._ladder_share)
        else:
            stake = self._take_cash(TUNING.stake)
        self._purse[:, -1] = np.logaddexp(self._purse[:, -1], stake)

    def settle(self, bets: Settled) -> None:
        """Multiply the stakes of the bets against these plans by their factors."""
        purse = self._purse[bets.plans]
        _settle(bets, self._rung, purse)
        self._purse[bets.plans] = purse

    def settle_piece(self, lead: int, bets: Settled) -> None:
        """The same in the piece of this lead, where a gap counts from -epsilon on."""
        own, _ = self._own_piece(lead)
        purse = own[bets.plans, None]
        _settle(
            bets._replace(gap=bets.gap + self.epsilon, centre=bets.centre + self.epsilon), _NO_RUNG, purse
        )
        own[bets.plans] = purse[:, 0]

    def count(self, plans: IntArray, lead: int) -> None:
        """Bring log wealth and its peaks up to date; a plan whose peak reaches the target is ruled out."""
        purse = self._purse[plans]
        top = np.maximum(purse.max(axis=1), self._log_cash)
        total = top + np.log(np.exp(purse - top[:, None]).sum(axis=1) + np.exp(self._log_cash - top))
        self.peak[plans] = np.maximum(self.peak[plans], total)
        piece = self._pieces.get(lead)
        if piece is not None:
            total = np.logaddexp(total, piece[0][plans])
            piece[1][plans] = np.maximum(piece[1][plans], total)
        self.now[plans] = total

    def _take_cash(self, share: float) -> float:
        stake = self._log_cash + math.log(share)
        self._log_cash += math.log1p(-share)
        return stake

    def _own_piece(self, lead: int) -> tuple[FloatArray, FloatArray]:
        """The piece of this lead; an old one may be forgotten for it, which only loses wealth."""
        n = len(self.now)
        piece = self._pieces.pop(lead, None) or (np.full(n, NOTHING), np.zeros(n))
        if len(self._pieces) >= _OLD_LEADS:
            del self._pieces[next(iter(self._pieces))]
        self._pieces[lead] = piece
        return piece

    def state(self) -> dict[str, Any]:
        """All that new purses need to become these."""
        return {
            "cash": np.array([self._log_cash, self.next_stake]),
            "purse": self._purse.copy(),
            "now": self.now.copy(),
            "peak": self.peak.copy(),
            "pieces": [[lead, *map(np.copy, piece)] for lead, piece in self._pieces.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the purses whose state this is."""
        self._log_cash, self.next_stake = state["cash"].tolist()
        self._purse[...], self.now[...], self.peak[...] = state["purse"], state["now"], state["peak"]
        self._pieces = {int(lead): (purse.copy(), peak.copy()) for lead, purse, peak in state["pieces"]}


def _settle(bets: Settled, rung: FloatArray, purse: FloatArray) -> None:
    """Multiply these purses by their factors: with the noise that is known, or whatever it is."""
    if bets.gap.ndim == 2:
        from surepick.policies.betting.by_parts import settle_parts

        settle_parts(bets, rung, purse)
        return
    from surepick.policies.betting.bets import settle_singles

    settle_singles(bets.gap, bets.spread, bets.centre, bets.prior, bets.unit, rung, purse)
