"""BetGapE: every plan but the best one can be bet against until the bets have made a fortune.

Ours; the proof is in docs/bet-gap-e.md, line by line with the names of this file.

Assumption: measurements are independent and sub-Gaussian with the noise scale of the problem (Gaussian, or
bounded with half the width of the range as the scale).

Proof status: wrong with probability at most delta, at any time and under any stop, without a union over
plans, arms or time. For every plan j a wealth is kept that bets against "j is best". Under that hypothesis
it is a non-negative supermartingale started at 1, so it ever reaches 1/delta with probability at most delta
(Ville's inequality). j is dropped when it does; the answer is the lead when no rival of it is left.

Cost of a block: a few passes over the non-zeros of the plans that are left. A block is a batch: its
measurements can be taken in any order and by many workers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence
from surepick.core.policy import Measure, Standing, Stop, check_delta, check_epsilon, known_noise_scale
from surepick.core.problem import Problem
from surepick.core.promise import SUB_GAUSSIAN, promise
from surepick.kernels.records import arrays_of, refill
from surepick.policies.betting.block_run import Block, BlockRun, check_max_batch
from surepick.policies.betting.tuning import TUNING


@dataclass(frozen=True)
class BetGapE:
    """The best plan with few measurements, and wrong with probability at most `delta`.

    With `epsilon` above 0 the answer may be up to that much worse than the best plan, and ties end.
    `max_batch` limits how many measurements are asked for at once. Larger blocks are asked for in parts.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]])
    >>> sp.simulate(problem, sp.BetGapE(delta=0.05), sp.Gaussian([1.0, 0.0]), seed=1).plan
    0
    """

    delta: float = 0.05
    epsilon: float = 0.0
    max_batch: int | None = None

    name: ClassVar[str] = "BetGapE"
    version: ClassVar[int] = 2
    randomized: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_epsilon(self.epsilon)
        check_max_batch(self.max_batch)

    @property
    def guarantee(self) -> str:
        """The promise and its assumption."""
        return promise(self.delta, self.epsilon, SUB_GAUSSIAN)

    def start(self, problem: Problem) -> BetRun:
        """A fresh run on this problem."""
        _warm_up()
        return BetRun(problem, self)


class BetRun(BlockRun[int]):
    """A run of BetGapE: wealth per plan, a block at a time; owned and changed by whoever started it.

    What it knows is in `block_kernels.Books`. A block's bets are there too; the block knows their number.
    """

    def __init__(self, problem: Problem, policy: BetGapE) -> None:
        from surepick.policies.betting import blocks as kernels

        super().__init__(policy, problem.relevant)
        self._kernels = kernels
        self._problem, self._policy = problem, policy
        variance = known_noise_scale(problem) ** 2
        self._table = kernels.make_table(problem, variance, policy.delta, policy.epsilon, TUNING)
        self._books = kernels.make_books(problem, policy.epsilon, TUNING)
        self._room = kernels.make_scratch(problem)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or the lead when no rival is left."""
        if self._block is None and self._lead < 0:
            self._block = Block(self._problem.relevant.astype(np.int64), None)
        if self._block is None and not self._is_stopped:
            self._kernels.open_block(self._table, self._books, *self._room, TUNING)
            self._block = None if self._is_stopped else self._booked_block()
        if self._block is None:
            return Stop(self._lead)
        return Measure(self._block.next_request(self._policy.max_batch))

    @property
    def takes_whole_blocks(self) -> bool:
        """Whether a block is asked for at once and not in parts."""
        return self._policy.max_batch is None

    def drive_blocks(
        self, means: FloatArray, scale: FloatArray, draws: FloatArray, budget: int
    ) -> tuple[int, int]:
        """Measure normal arms and decide in compiled code, for as many blocks as draws and budget allow.

        How many draws were used, one for each arm of a block, and how many blocks were measured.
        """
        if self._block is None or not self._block.is_untouched or self._waiting.counts.any():
            return 0, 0
        books, past = self._books, self._books.past
        use = self._kernels.advance(self._table, books, *self._room, TUNING, means, scale, draws, budget)
        self._evidence = Evidence(past.counts.copy(), past.sums.copy())
        self._block = None if self._is_stopped else self._booked_block()
        return use

    def standing(self) -> Standing:
        """The lead, the rival with the least wealth against it, and the risk of declaring the lead now."""
        if self._lead < 0:
            return Standing()
        peak = self.log_evidence()
        peak[self._lead] = np.inf
        rival = int(np.argmin(peak))
        table, past, (scratch, _) = self._table, self._books.past, self._room
        with np.errstate(divide="ignore"):
            weight = table.variance / past.counts
        gap, spread = self._kernels.compare_one(
            table.rows, self._books.lead, rival, weight, past.means, scratch
        )
        radius = math.sqrt(2 * spread * table.question.target)
        return Standing(self._lead, rival, float(gap), radius, min(1.0, math.exp(-float(peak[rival]))))

    def log_evidence(self) -> FloatArray:
        """The largest log wealth so far in bets against each plan, as a rival of the current lead."""
        peak, pieces = self._books.wealth.peak.copy(), self._books.pieces
        for own in np.flatnonzero(pieces.owner == self._lead) if self._lead >= 0 else ():
            np.maximum(peak, pieces.peak[own], out=peak)
        return peak

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one, as arrays and numbers."""
        state = self._measured_state() | {"status": self._books.status.copy()}
        for name, record in self._records():
            state[name] = arrays_of(record, record._fields)
        return state

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._books.status[:] = state["status"]
        for name, record in self._records():
            refill(record, state[name])
        self._restore_measured(state, self._n_bets if self._lead >= 0 else None)

    def _records(self) -> list[tuple[str, Any]]:
        """The parts of the books by name."""
        return [(name, getattr(self._books, name)) for name in self._books._fields if name != "status"]

    @property
    def _is_stopped(self) -> bool:
        return bool(self._books.status[self._kernels.STOPPED])

    @property
    def _n_bets(self) -> int:
        return int(self._books.bets.size[self._kernels.N_BETS])

    @property
    def _lead(self) -> int:
        """The plan that looks best; -1 before the first block."""
        return int(self._books.lead.whole[self._kernels.PLAN])

    def _booked_block(self) -> Block[int]:
        return Block(self._books.division.block.copy(), self._n_bets)

    def _settle(self, bets: int, seen: Evidence) -> None:
        """Multiply every stake by its bet's factor, a function of what this block alone has shown."""
        self._kernels.settle_block(self._table, self._books, self._room[0], seen.sums)

    def _choose_lead(self) -> None:
        """The plan that looks best, now that the past has grown."""
        past = self._books.past
        past.counts[:], past.sums[:] = self._evidence.counts, self._evidence.sums
        self._kernels.choose_lead(self._table, self._books, self._room[0], TUNING)


@functools.cache
def _warm_up() -> None:
    """Compile the passes, or load them from the cache, so that no run has to wait for it half-way."""
    run = BetRun(Problem([[1.0, 0.0], [0.0, 1.0]]), BetGapE())
    for _ in range(2):
        decision = run.decide()
        assert isinstance(decision, Measure)
        run.absorb(decision.counts, np.zeros(2))
    run.decide()
    run.drive_blocks(np.zeros(2), np.ones(2), np.zeros(2), 10)
    run.standing()
