"""BetGapE on probes whose noise is not known: blocks of equal parts, and bets on how the parts agree.

Nothing is assumed of the noise but that it is Gaussian and independent from use to use: neither its scale nor
how the readings of one use depend on each other. Every part of a block uses each probe equally often, so that
the gap that a part shows has the same unknown variance in all of them, whatever the probes, the weights and
the covariances are; `by_parts` bets on that. No share of delta is spent on the noise.

The covariances are estimated from all blocks so far, for the weights and for what to measure next. A bad
estimate costs measurements, never correctness.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, first_few
from surepick.core.evidence import Evidence
from surepick.core.probes import VALUE, Entries, Probes
from surepick.core.problem import Problem
from surepick.policies.betting.block_estimates import Estimator, estimator_for
from surepick.policies.betting.block_run import Block
from surepick.policies.betting.noise_seen import NoiseSeen
from surepick.policies.betting.probe_run import Bets, ProbePolicy, ProbeRun
from surepick.policies.betting.steady import Steady, steady_estimator

FEWEST_PARTS, MOST_PARTS = 4, 12  # of a block
_ROUNDING = 1e-12  # of a gap: parts that differ by less are equal


@dataclass(eq=False)
class PartedBlock(Block[Bets]):
    """A block whose parts, of the same counts, are measured one after another and kept apart."""

    n_parts: int = FEWEST_PARTS
    parts: list[FloatArray] = field(default_factory=list)  # (n_readings,) sums of those that are complete
    begun: FloatArray = field(init=False)  # sums of the part that is not

    def __post_init__(self) -> None:
        super().__post_init__()
        self.begun = np.zeros(len(self.sums))

    @property
    def part(self) -> IntArray:
        """The counts of one part."""
        return np.asarray(self.counts // self.n_parts)

    @property
    def _left_of_part(self) -> IntArray:
        return np.asarray(self.left - (self.n_parts - 1 - len(self.parts)) * self.part)

    def next_request(self, max_batch: int | None) -> IntArray:
        """What is missing of the part that was begun, no more than max_batch of it."""
        left = self._left_of_part
        return left if max_batch is None else first_few(left, max_batch)

    def add(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in what was asked for."""
        super().add(counts, sums)
        self.begun = self.begun + sums
        if not self._left_of_part.any():
            self.parts = [*self.parts, self.begun]
            self.begun = np.zeros(len(sums))


class PartedRun(ProbeRun):
    """A run of BetGapE on probes of unknown noise; changed by whoever started it."""

    _covers = 1.0  # of a part
    _batches = FEWEST_PARTS

    def __init__(
        self, problem: Problem, policy: ProbePolicy, probes: Probes | None = None, *, even: bool = False
    ) -> None:
        super().__init__(problem, policy, probes, even=even)
        self._basis = self._information.basis if isinstance(self._information, Steady) else None
        self._noise = NoiseSeen(self._probes)
        self._n_parts = FEWEST_PARTS

    def _budget(self, least: float, wished: float) -> float:
        """Of one part: a cover, or what makes the block as long as wished with the most parts."""
        most = FEWEST_PARTS if self._setup_cost else MOST_PARTS  # every part is a batch
        each = max(least, wished / most)
        self._n_parts = int(np.clip(round(wished / each), FEWEST_PARTS, most))
        return each

    def _new_block(self, counts: IntArray, bets: Bets | None) -> Block[Bets]:
        n = FEWEST_PARTS if bets is None else self._n_parts
        return PartedBlock(n * counts, bets, len(self._none.sums), n_parts=n)

    def _close_block(self, block: Block[Bets]) -> None:
        """Settle by the parts; the noise that they show is for the blocks to come."""
        assert isinstance(block, PartedBlock)
        n = block.part[self._probes.owner]
        averages = np.column_stack([np.divide(s, n, out=0 * s, where=n > 0) for s in block.parts])
        if block.bets is not None:
            self._settle_shown(block.bets, block.part, averages)
        self._noise.add(block.part, averages)
        self._noise.refuse_unusable()
        super()._close_block(block)

    def _varies(self, gap: FloatArray, away: FloatArray) -> BoolArray:
        """Return which gaps differ from part to part by more than rounding.

        Equal parts have probability 0 under Gaussian noise, so that skipping their bets costs the proof
        nothing; coarse readings, whose parts are often equal, would win them by rounding alone.
        """
        del away
        return np.asarray(np.ptp(gap, axis=1) > _ROUNDING * np.abs(gap).max(axis=1))

    def _settle(self, bets: Bets, seen: Evidence) -> None:
        """Nothing: the bets were settled by the parts."""

    def _choose_lead(self) -> None:
        """With the past as the noise that is estimated now weighs it."""
        self._weigh()
        super()._choose_lead()
        away = self._plans[self._lead] - self._plans
        self._unit = np.sqrt(np.maximum(self._estimator.spread(self._first, away), 1e-300))

    def _weigh(self) -> None:
        self._probes = self._noise.probes()
        self._estimator = self._weighed(self._probes)
        self._information = self._estimator.information
        self._first = self._information.matrix(self._counts_of_first().astype(float))
        self._matrix = self._information.matrix(self._evidence.counts.astype(float))
        self._vector = self._estimator.vector(self._probes.whiten(self._evidence.sums))

    def _weighed(self, probes: Probes) -> Estimator:
        """How gaps are read off blocks with this noise."""
        if self._basis is None:
            return estimator_for(probes)
        return steady_estimator(probes, self._plans, self._basis)

    def noise_estimate(self) -> FloatArray:
        """Return the standard deviation of each reading as it is estimated now."""
        return self._noise.probes().noise_scale

    def _nomination(self, lead: int) -> FloatArray:
        """M of the counts when this lead was nominated, as it is weighed now."""
        return self._information.matrix(super()._nomination(lead))

    def _mark(self) -> FloatArray:
        """The counts: what they are worth changes with the noise that is estimated."""
        return self._evidence.counts.astype(float)

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one, as arrays and numbers."""
        block = self._block
        assert block is None or isinstance(block, PartedBlock)
        parts = [] if block is None else [block.n_parts, block.begun, *block.parts]
        return super().state() | {"noise": self._noise.state(), "parts": parts}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        super().restore(state)
        self._noise.restore(state["noise"])
        if self._is_started:
            self._weigh()
        if self._block is not None:
            plain, (n, begun, *parts) = self._block, state["parts"]
            block = PartedBlock(plain.counts, plain.bets, plain.n_sums, n_parts=int(n), parts=list(parts))
            block.left, block.sums, block.lost, block.begun = plain.left, plain.sums, plain.lost, begun
            self._block = block


def probe_run(problem: Problem, policy: ProbePolicy, *, even: bool = False) -> ProbeRun:
    """Return a fresh run on the problem's probes, whose noise is known or not."""
    assert problem.probes is not None
    return (PartedRun if problem.probes.unknown else ProbeRun)(problem, policy, even=even)


def single_arm_run(problem: Problem, policy: ProbePolicy) -> PartedRun:
    """Return a fresh run on single arms of unknown noise: every arm is a probe with one reading."""
    n = problem.n_arms
    each = np.arange(n)
    entries = Entries(np.ones(n), each, np.arange(n + 1), (n, n))
    probes = Probes(problem.arm_names, ((VALUE,),) * n, entries, problem.costs, np.ones(n))
    return PartedRun(problem, policy, probes)
