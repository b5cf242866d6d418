"""BetGapE: every plan but the best one can be bet against until the bets have made a fortune.

Ours; the proof is in docs/bet-gap-e.md, line by line with the names of this file.

Assumption: measurements are independent and sub-Gaussian with the noise scale of the problem (Gaussian, or
bounded with half the width of the range as the scale); or, with `noise="bounded variance"`, of a standard
deviation that is at most the noise scale.

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

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.core.policy import known_deviation
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.policies.betting.all_leads import MOST_PLANS, AllLeadsRun
from surepick.policies.betting.arriving import grown
from surepick.policies.betting.block_run import BettingPolicy, Block
from surepick.policies.betting.books import make_books, put_past, refill, state_of
from surepick.policies.betting.last_call import LastCall, LastCallRun, fitted, last_counts, tested
from surepick.policies.betting.parted_run import probe_run, single_arm_run
from surepick.policies.betting.probe_run import ProbeRun
from surepick.policies.betting.tuning import first_uses

MOST_ENTRIES = 2_000_000  # plans times arms up to which unknown noise is learned from replicates


@dataclass(frozen=True)
class BetGapE(BettingPolicy):
    """The best plan with few measurements, and wrong with probability at most `delta`.

    With `epsilon` above 0 the answer may be up to that much worse than the best plan, and ties end.
    `max_batch` limits how many measurements are asked for at once. Larger blocks are asked for in parts.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise_scale=1)
    >>> sp.simulate(problem, sp.BetGapE(delta=0.05), sp.Gaussian([1.0, 0.0]), seed=1).plan
    0
    """

    name: ClassVar[str] = "BetGapE"
    version: ClassVar[int] = 5
    takes_past: ClassVar[bool] = True
    takes_probes: ClassVar[bool] = True

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return whether a run learns the noise of this problem while it measures, without a pilot.

        Its tables are dense, so that thousands of arms in thousands of plans take a pilot still.
        """
        return problem.is_listed and problem.n_plans * problem.n_arms <= MOST_ENTRIES

    def start(self, problem: Problem) -> BetRun | AllLeadsRun | ProbeRun:
        """A fresh run on this problem."""
        if problem.probes is not None:
            return probe_run(problem, self)
        if problem.noise_scale is None and self.learns_noise(problem):
            return single_arm_run(problem, self)
        if self.epsilon and problem.n_plans <= MOST_PLANS:
            return AllLeadsRun(problem, self)
        return BetRun(problem, self)


class BetRun(LastCallRun[int]):
    """A run of BetGapE: wealth per plan, a block at a time; owned and changed by whoever started it.

    What it knows is in `Books`. A block's bets are there too; the block knows their number.
    """

    def __init__(self, problem: Problem, policy: BetGapE) -> None:
        from surepick.policies.betting import blocks

        super().__init__(policy, problem.relevant)
        self._blocks = blocks
        self._problem, self._policy = problem, policy
        variance = known_deviation(problem) ** 2
        self._books = make_books(problem, variance, policy.delta, policy.epsilon)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or the lead when no rival is left."""
        now, last = self._books.now, self._last
        if last is not None and last.evidence is not None:
            return Stop(int(now.lead) if self._is_good(int(now.lead)) else None)
        if last is not None and self._block is None and last.left <= 0 and not now.is_stopped:
            return Stop(None)  # the block that was open has taken all that were left: there is no test
        if self._block is None and now.lead < 0:
            self._block = Block(self._first_counts(), None)
        if self._block is None and not now.is_stopped:
            self._take(self._blocks.OPEN)
            self._block = self._booked_block()
        if self._block is None:
            return Stop(int(now.lead))
        if self._block.is_untouched and self._block.bets is not None:
            self._fit(self._block)
        return Measure(self._block.next_request(self._policy.max_batch))

    def _fit(self, block: Block[int]) -> None:
        """Make an open block the last one, if that was called, or cut it to what is left of a budget."""
        arms, share, lead = self._books.arms, self._books.division.share, int(self._books.now.lead)
        differs = np.flatnonzero(arms["differs"])
        test = functools.partial(last_counts, share, arms["cost"], differs)
        counts = fitted(self._last, self._left, block.counts, lead, test)
        if counts is not block.counts:
            self._books.arms["block"] = counts
            self._block = Block(counts, block.bets)

    def remember(self, past: Past) -> None:
        """Begin with this past: it informs lead, division and bets from the first block on, and wins none."""
        self._is_known = past.worth > 0
        put_past(self._books, past)
        if self._is_started:
            self._choose_lead()

    def grow(self, problem: Problem) -> None:
        """Go on with more plans, the old ones first; between two blocks. See `arriving`."""
        if self._block is not None or self._last is not None:
            raise ParameterError("plans arrive between two blocks, and not after the last call")
        self._books = grown(self._books, problem, self._policy.delta, self._policy.epsilon)
        self._problem = problem
        self._lengthen(problem.relevant)
        if self._is_started:
            self._choose_lead()

    def _first_counts(self) -> IntArray:
        """One of each arm that matters and of which nothing is known; of newcomers the unmeasured ones."""
        counts = super()._first_counts()
        has_led = bool((self._books.nominations.slots["owner"] >= 0).any())
        counts = np.where(self._evidence.counts > 0, 0, counts) if has_led else counts
        return counts * first_uses(float(counts @ self._problem.costs), self._problem.setup_cost)

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
        if self._last is not None:
            return 0, 0
        world, arms = self._blocks.World(means, scale, draws), self._books.arms
        use = self._blocks.advance(self._books, self._blocks.DRIVE, world, budget)
        self._evidence = Evidence(arms["count"].copy(), arms["total"].copy())
        self._block = self._booked_block()
        return use

    def standing(self) -> Standing:
        """The lead, the rival with the least wealth against it, and the risk of declaring the lead now.

        And the plans that are not ruled out, with the proof of the answer: see docs/bet-gap-e.md.
        """
        books, lead = self._books, int(self._books.now.lead)
        if lead < 0:
            return Standing()
        peak = self.log_evidence()
        peak[lead] = -np.inf  # it stays, whatever was bet against it
        remaining = tuple(np.flatnonzero(peak < books.question.target).tolist())
        peak[lead] = np.inf
        rival = int(np.argmin(peak))
        gap, variance = self._gap_to(rival)
        radius = math.sqrt(2 * variance * books.question.target)
        risk = min(1.0, math.exp(-float(peak[rival])))
        return Standing(lead, rival, gap, radius, risk, remaining, self._good())

    def _gap_to(self, rival: int) -> tuple[float, float]:
        """Return the estimated gap between the leader and this plan, and its variance; inf if unmeasured."""
        rows, arms = self._books.rows, self._books.arms
        contrast = arms["lead"].copy()
        entries = slice(rows.start[rival], rows.start[rival + 1])
        contrast[rows.where[entries]] -= rows.value[entries]
        used = contrast != 0.0
        known = arms["count"][used] + arms["past"][used]
        of_means = np.full(len(known), np.inf)
        np.divide(arms["variance"][used], known, out=of_means, where=known > 0)
        return float(contrast @ arms["average"]), float(contrast[used] ** 2 @ of_means)

    def log_evidence(self) -> FloatArray:
        """The largest log wealth so far in bets against each plan, as a rival of the current lead."""
        return self._evidence_for(int(self._books.now.lead))

    def _evidence_for(self, lead: int) -> FloatArray:
        """The same as a rival of this lead, which with epsilon may have a piece of its own."""
        peak: FloatArray = self._books.plans["peak"].copy()
        pieces = self._books.pieces
        for own in np.flatnonzero(pieces.slots["owner"] == lead) if lead >= 0 else ():
            np.maximum(peak, pieces.peak[own], out=peak)
        last = self._last
        if last is not None and last.evidence is not None and (lead == last.lead or not self._policy.epsilon):
            np.maximum(peak, last.evidence, out=peak)
        return peak

    def _good(self) -> tuple[int, ...]:
        """The leads, now or earlier, all of whose rivals are ruled out: within epsilon of the best."""
        leads = {int(self._books.now.lead), *self._books.pieces.slots["owner"].tolist()} - {-1}
        return tuple(lead for lead in sorted(leads) if self._is_good(lead))

    def _is_good(self, lead: int) -> bool:
        peak = self._evidence_for(lead)
        peak[lead] = np.inf
        return bool(peak.min() >= self._books.question.target)

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one, as arrays and numbers."""
        called = {} if self._last is None else {"last_call": self._last.state()}
        return self._measured_state() | state_of(self._books) | called

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        refill(self._books, state)
        now = self._books.now
        self._last = LastCall(*state["last_call"]) if "last_call" in state else None
        self._restore_measured(state, int(now.n_bets) if now.lead >= 0 else None)

    def _take(self, step: int) -> None:
        self._blocks.advance(self._books, step, self._blocks.NO_WORLD, 0)

    def _booked_block(self) -> Block[int] | None:
        now = self._books.now
        return None if now.is_stopped else Block(self._books.arms["block"].copy(), int(now.n_bets))

    def _settle(self, bets: int, seen: Evidence) -> None:
        """Multiply every stake by its bet's factor, a function of what this block alone has shown."""
        if self._last is not None and self._last.is_open:
            self._test(self._last, seen)
            return
        self._books.arms["block_sum"] = seen.sums
        self._take(self._blocks.SETTLE)

    def _test(self, last: LastCall, seen: Evidence) -> None:
        last.evidence = tested(self._problem, last, seen, self._books.plans["now"], self._policy.epsilon)

    def _choose_lead(self) -> None:
        """The plan that looks best, now that the past has grown."""
        arms = self._books.arms
        arms["count"], arms["total"] = self._evidence.counts, self._evidence.sums
        self._take(self._blocks.CHOOSE)
