"""OBet where plans are played: one play reads every arm of its plan, and no play is ever listed.

A block is a number of plays, fixed before the first of them. Readings are of single arms with noise of their
own, so that a block shows each arm n_s times, n_s the plays that hold it, and every step of the proof in
docs/theory.md holds as it stands: it knows of a block its counts per arm, that they are fixed beforehand, and
that every arm on which plans that are left differ is among them. The last is what the *cover* is for.

What is new is which counts can be had. Shares of plays are found by column generation (`play_allocation`):
the play that is missing most is the oracle's best plan for the prices of the arms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plays import Plays, play_finder
from surepick.core.run import Measure
from surepick.design.play_allocation import (
    PlayEffort,
    covering_plays,
    even,
    play_allocation,
    rounded,
)
from surepick.policies.betting.block_run import Block
from surepick.policies.betting.obet import Field, OBetRun, Tuning
from surepick.policies.betting.prior_bets import Priors
from surepick.policies.betting.wealth import Bet, Singles

if TYPE_CHECKING:
    from surepick.policies.betting.obet import OBet

TUNING = Tuning(
    rows_share=0.05,
    first_stake=0.98,
    ladder_share=0.97,
    need_share=0.1,
)
# shares of the noise that gaps may be about, and what part of the stake each gets
PRIORS = ((0.1, 0.85), (1.0, 0.1), (0.02, 0.05))
DISTRUST = 1.0  # standard errors that a lead chosen by luck too is distrusted by
_EFFORT = PlayEffort(tolerance=0.02, steps=40, most_calls=4)
_MOST_PLAYS = 200  # kept from block to block
_WORKING_SET = 256  # rivals that a division looks at


@dataclass(eq=False)
class PlayBlock(Block[Bet]):
    """A block of plays; counts are those of their readings."""

    plays: Plays = field(kw_only=True)
    to_play: Plays = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.to_play = self.plays

    @property
    def n_plays(self) -> int:
        """Plays that it takes."""
        return self.plays.n_uses

    def next_plays(self, max_batch: int | None) -> Plays:
        """The plays that are missing, no more than max_batch of them."""
        return self.to_play if max_batch is None else self.to_play.first(max_batch)

    def next_request(self, max_batch: int | None) -> IntArray:
        """The readings of the next plays."""
        return self.next_plays(max_batch).counts

    def play(self, max_batch: int | None) -> None:
        """Count the next plays as played."""
        self.to_play = self.to_play.without(self.next_plays(max_batch))


class PlayRun(OBetRun):
    """A run of OBet whose measurements are plays; owned and changed by whoever started it."""

    _tuning = TUNING

    def __init__(self, problem: OracleProblem, policy: OBet) -> None:
        super().__init__(problem, policy)
        self._find_play = play_finder(self._plans, self._everything)
        self._price = self._variance  # of readings; what a play costs is the same for all
        pool = covering_plays(self._find_play, self._relevant, np.zeros(problem.n_arms))
        self._division = even(pool)
        self._share = self._division.weights
        self._none = Evidence.none_of(problem)
        self._evidence = self._waiting = self._none

    def _singles(self) -> Singles:
        return Priors(PRIORS, DISTRUST)

    def _request(self, block: Block[Bet]) -> Measure:
        assert isinstance(block, PlayBlock)
        plays = block.next_plays(self._policy.max_batch)
        return Measure(plays.counts, plays)

    def _first_block(self) -> PlayBlock:
        pool = self._division.plays
        return _block(Plays(pool, np.ones(len(pool), dtype=np.int64)), None)

    def _block_for(self, field: Field, dual: FloatArray) -> PlayBlock:
        plays = self._choose_plays(field)
        nearest = int(np.argmax(self._urgency(field) * (field.away**2 @ self._price_per_share())))
        second = self._lead - field.away[nearest]
        return _block(plays, replace(self._place_bet(field, dual, plays.counts), second=second))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in the plays that were asked for; bets are settled when the block is complete."""
        block = self._block
        super().absorb(counts, sums)
        if isinstance(block, PlayBlock):
            block.play(self._policy.max_batch)

    def _solve(self) -> tuple[Field, FloatArray]:
        """Shares of plays for the rivals that are worst off."""
        field = self._working_field()
        squares = field.away**2 * self._price * self._urgency(field)[:, None]
        start = replace(self._division, dual=np.zeros(0))
        found = play_allocation(squares, self._find_play, _EFFORT, start)
        self._division = found.kept(_MOST_PLAYS)
        self._share = found.weights
        return field, found.dual

    def _choose_plays(self, field: Field) -> Plays:
        """Whole plays in proportion to the shares; together they read every arm that is not fixed."""
        tuning = self._tuning
        budget = min(
            tuning.block_share * self._evidence.n_measurements, tuning.need_share * self._need(field)
        )
        free = self._account.branch.lower < self._account.branch.upper
        uses = rounded(self._division.shares, max(1, round(budget)))
        plays = self._covered(Plays(self._division.plays[uses > 0], uses[uses > 0]), free)
        if self._left is not None and plays.n_uses > self._left:
            few = covering_plays(self._find_play, free, self._share)  # bets are about all of these arms
            if len(few) <= self._left:
                plays = Plays(few, np.ones(len(few), dtype=np.int64))
        return plays

    def _covered(self, plays: Plays, wanted: BoolArray) -> Plays:
        more = covering_plays(self._find_play, wanted & (plays.counts == 0), self._share)
        ones = np.ones(len(more), dtype=np.int64)
        return Plays(np.vstack([plays.plans, more]), np.append(plays.uses, ones))

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one."""
        division, block = self._division, self._block
        played: list[Any] = []
        if isinstance(block, PlayBlock):
            played = [block.plays.plans, block.plays.uses, block.to_play.uses]
        counted = [self._evidence.plays, self._waiting.plays]
        return super().state() | {"pool": [division.plays, division.shares, *counted], "played": played}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        super().restore(state)
        plays, shares, n_plays, n_waiting = state["pool"]
        self._division = replace(even(plays), shares=shares)
        self._evidence = self._evidence.with_sums(self._evidence.counts, self._evidence.sums, n_plays)
        self._waiting = self._waiting.with_sums(self._waiting.counts, self._waiting.sums, n_waiting)
        if state["played"]:
            plans, uses, left = state["played"]
            whole = self._block
            assert whole is not None
            self._block = _block(Plays(plans, uses), whole.bets)
            self._block.to_play = Plays(plans, left)
            self._block.left, self._block.sums, self._block.lost = whole.left, whole.sums, whole.lost


def _block(plays: Plays, bets: Bet | None) -> PlayBlock:
    return PlayBlock(plays.counts, bets, plays=plays)
