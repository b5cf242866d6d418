"""The run that betting policies share: fix a block, measure it whole, settle its bets, choose a lead."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, first_few
from surepick.core.evidence import Evidence
from surepick.core.past import Past
from surepick.errors import ParameterError
from surepick.policies.sound import WithinPolicy

MOST_LOST = 2.0**-48  # of a sum: at 1e10 noise scales from zero a few hundred-thousandths of a scale
B = TypeVar("B")  # the bets of a block


@dataclass(frozen=True)
class BettingPolicy(WithinPolicy):
    """What policies have that find the best plan by bets; `max_batch` is the most to ask for at once."""

    max_batch: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_max_batch(self.max_batch)


class BlockPolicy(Protocol):
    """What a run of blocks needs to know of its policy."""

    @property
    def name(self) -> str:
        """As people know it."""
        ...

    @property
    def max_batch(self) -> int | None:
        """The most measurements to ask for at once."""
        ...


@dataclass(eq=False)
class Block(Generic[B]):
    """The measurements of one block, fixed before the first of them, and what is still missing."""

    counts: IntArray
    bets: B | None  # None in the first block, of which nothing is known
    n_sums: int | None = None  # readings, where they are not one for each count
    left: IntArray = field(init=False)
    sums: FloatArray = field(init=False)
    lost: FloatArray = field(init=False)  # by rounding, in adding up the parts

    def __post_init__(self) -> None:
        self.left = self.counts  # replaced, never changed
        self.sums = np.zeros(len(self.counts) if self.n_sums is None else self.n_sums)
        self.lost = np.zeros(len(self.sums))

    def add(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in a part of it, with what the sum loses (Neumaier's way)."""
        before, self.sums = self.sums, self.sums + sums
        larger, smaller = np.where(np.abs(before) >= np.abs(sums), (before, sums), (sums, before))
        self.lost = self.lost + ((larger - self.sums) + smaller)
        self.left = self.left - counts

    @property
    def total(self) -> FloatArray:
        """Its sums; what thousands of parts have lost is put back, the few bits of some parts are not."""
        matters = np.abs(self.lost) > MOST_LOST * np.abs(self.sums)
        return np.asarray(self.sums + np.where(matters, self.lost, 0.0))

    @property
    def is_untouched(self) -> bool:
        """Whether no part of it has been measured yet."""
        return self.left is self.counts

    @property
    def n_plays(self) -> int:
        """Plays that it takes; 0 where arms are measured one by one."""
        return 0

    def next_request(self, max_batch: int | None) -> IntArray:
        """The missing measurements, lowest arms first, no more than max_batch of them."""
        if max_batch is None:
            return self.left.copy()
        return first_few(self.left, max_batch)


class BlockRun(ABC, Generic[B]):
    """What was measured, block by block; subclasses open blocks, settle their bets and choose the lead."""

    def __init__(self, policy: BlockPolicy, relevant: BoolArray, none: Evidence | None = None) -> None:
        self._asker = policy
        self._relevant = relevant
        self._none = Evidence.none(len(relevant)) if none is None else none
        self._evidence = self._none
        self._waiting = self._none  # came unasked while a block was open
        self._block: Block[B] | None = None
        self._left: int | None = None  # of a budget
        self._is_known = np.zeros(len(relevant), dtype=bool)  # arms of which something was thought before
        # the past: measurements that it is worth, and their sums
        self._worth, self._thought = np.zeros(len(relevant)), np.zeros(len(relevant))

    def _first_counts(self) -> IntArray:
        """One measurement of each arm that matters and of which nothing is known."""
        return (self._relevant & ~self._is_known).astype(np.int64)

    def _lengthen(self, relevant: BoolArray) -> None:
        """Go on between two blocks with these arms, the old ones first."""
        n = len(relevant)
        self._relevant, self._none = relevant, self._none.lengthened(n)
        self._evidence, self._waiting = self._evidence.lengthened(n), self._waiting.lengthened(n)
        new = np.zeros(n - len(self._is_known))
        self._is_known = np.append(self._is_known, new > 0)
        self._worth, self._thought = np.append(self._worth, new), np.append(self._thought, new)

    def _put_past(self, past: Past) -> None:
        """Begin with this past: it informs lead, division and bets from the start, and wins none."""
        self._is_known = past.worth > 0
        self._worth, self._thought = past.worth, past.worth * past.means
        if self._is_started:
            self._choose_lead()

    def _known_counts(self) -> FloatArray:
        """How often each arm was measured, with what the past is worth."""
        return np.asarray(self._evidence.counts + self._worth)

    def _known_means(self) -> FloatArray:
        """The means of all measurements and the past; 0 where there are none."""
        known = self._known_counts()
        return np.divide(
            self._evidence.sums + self._thought, known, out=np.zeros(len(known)), where=known > 0
        )

    def allow(self, left: int) -> None:
        """Cut the next block to this many measurements; the first needs one of each arm and is never cut."""
        self._left = left

    @property
    def may_grow(self) -> bool:
        """Whether no block is open: its counts and bets were fixed without the plans that have come."""
        return self._block is None

    @property
    def evidence(self) -> Evidence:
        """All blocks that are complete."""
        return self._evidence

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in the part of the block that was asked for; bets are settled when the block is complete."""
        block = self._block
        if block is None or not np.array_equal(counts, block.next_request(self._asker.max_batch)):
            raise ParameterError(
                f"{self._asker.name} takes the complete answer to its last request, no more and no less: "
                "its bets hold for counts that were fixed before the first measurement"
            )
        block.add(counts, sums)
        if not block.left.any():
            self._close_block(block)

    @property
    def recalls_unasked(self) -> bool:
        """As past: bets may depend on anything that was known before them."""
        return True

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in measurements that no block asked for: they inform lead, gaps and bets, and win none.

        While a block is open they wait, since its bets were made without them.
        """
        self._waiting = self._waiting + self._none.with_sums(counts, sums)
        if self._block is None:
            self._remember(self._none)

    def _measured_state(self) -> dict[str, Any]:
        """What was measured, as arrays; the bets of an open block are its run's to keep."""
        block = self._block
        return {
            "evidence": [self._evidence.counts, self._evidence.sums],
            "waiting": [self._waiting.counts, self._waiting.sums],
            "block": [] if block is None else [block.counts, block.left, block.sums, block.lost],
        }

    def _restore_measured(self, state: Mapping[str, Any], bets: B | None) -> None:
        """Have measured what is in this state, with these bets on the block that is open."""
        none = self._none
        self._evidence, self._waiting = (none.with_sums(*state[name]) for name in ("evidence", "waiting"))
        self._block = None
        if state["block"]:
            counts, left, sums, lost = state["block"]
            self._block = Block(counts, bets, len(none.sums))
            if not np.array_equal(left, counts):
                self._block.left, self._block.sums, self._block.lost = left, sums, lost

    @property
    def _is_started(self) -> bool:
        """Whether something is known of every arm that matters."""
        return bool(((self._evidence.counts > 0) | self._is_known)[self._relevant].all())

    def _close_block(self, block: Block[B]) -> None:
        """Settle the bets with the block's own means; then pool it with the past and choose the lead."""
        seen = self._none.with_sums(block.counts, block.total, block.n_plays)
        if block.bets is not None:
            self._settle(block.bets, seen)
        self._block = None
        self._remember(seen)

    def _remember(self, seen: Evidence) -> None:
        """Pool what was seen, and what has come unasked meanwhile, with the past; then choose the lead."""
        self._evidence = self._evidence + seen + self._waiting
        self._waiting = self._none
        if self._is_started:
            self._choose_lead()

    @abstractmethod
    def _settle(self, bets: B, seen: Evidence) -> None:
        """Multiply every stake by its bet's factor, a function of what this block alone has shown."""

    @abstractmethod
    def _choose_lead(self) -> None:
        """The plan that looks best, now that the past has grown."""


def check_max_batch(max_batch: int | None) -> None:
    """Refuse a batch of no measurement.

    >>> check_max_batch(None)
    """
    if max_batch is not None and not max_batch >= 1:
        raise ParameterError(
            f"max_batch is the most measurements to ask for at once, 1 or more, got {max_batch!r}",
            field="max_batch",
        )
