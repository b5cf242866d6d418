"""Gaussian noise of unknown scale where a bet is on all plans at once: behind an oracle, and on a polytope
within epsilon.

The Student factor of replicates is not affine in a plan, so that no oracle call or linear program could bound
it over all plans. The factor of `inference.learned_scale` is. It needs a rough bound on the scale of every
arm, which takes `SHARE` of delta and tightens as more is measured; the bets have the rest of delta.

Theory: consider the run until a bound is too small, which ever happens with probability at most `SHARE` *
delta. Until then the bets of every batch are fair given all before it, so that the wealth is a
supermartingale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, golden_multiples
from surepick.core.oracle_problem import AnyProblem
from surepick.core.polytopes.polytope import Polytope
from surepick.core.run import Standing
from surepick.errors import ParameterError
from surepick.inference.contrasts import arm_probes
from surepick.inference.learned_scale import LearnedScale
from surepick.policies.betting.batch import Batch
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.question import Question
from surepick.policies.oracles.plan_probes import PlanProbeRun

SHARE = 0.2  # of delta, for the bounds
# Measurements of each arm in the first batch. On a polytope some plans are far from the leader, and bets on
# them are too large for Lemma 3 until the bounds are tight.
FIRST_USES, FIRST_USES_OF_POLYTOPE = 5, 16


class LearnedScaleRun(BatchRun):
    """A run that measures every arm a few times first, and bounds its noise by all that was measured."""

    STATE: ClassVar[tuple[str, ...]] = (*BatchRun.STATE, "_is_late", "_n_restarts")

    def __init__(self, problem: AnyProblem, policy: Any, ask: Callable[[float], Question]) -> None:
        """Prepare a run that has measured nothing; `ask` returns the question for a part of delta."""
        self._problem, self._ask = problem, ask
        self._is_late = False  # whether a smaller delta waits for the end of a batch
        self._n_restarts = 0  # for smaller deltas
        first_uses = FIRST_USES_OF_POLYTOPE if isinstance(problem, Polytope) else FIRST_USES
        self._begin(policy, LearnedScale(arm_probes(problem), SHARE * policy.delta, first_uses))

    def _begin(self, policy: Any, noise: LearnedScale) -> None:
        super().__init__(self._problem, policy, self._ask((1 - SHARE) * self._level(policy)), noise)

    def _level(self, policy: Any) -> float:
        """Return the error probability of the bets that are made now, and of their bounds.

        Each restart halves it: their sum is at most the first smaller delta, however often a user asks for a
        smaller one and whatever the values that led to it.
        """
        return float(policy.delta * 0.5**self._n_restarts)

    @property
    def may_call_final_batch(self) -> bool:
        """Whether a final batch may be called now: not before bets are made."""
        return self._is_started

    def call_final_batch(self, n: int, *, gaussian: bool) -> None:
        """Make these n measurements a final batch, of noise that is Gaussian by assumption."""
        del gaussian
        if not self._is_started:
            raise ParameterError(
                "the noise is still being learned; call the final batch when every arm has been measured",
                field="final_batch",
            )
        super().call_final_batch(n, gaussian=True)

    def lower_delta(self, policy: Any, delta: float) -> None:
        """Continue with a smaller delta: wider bounds, and bets that begin anew, guided by all values."""
        self._policy, self._proposal = policy, None
        self._is_late = self._batch is not None
        if not self._is_late:
            self._begin_anew()

    def settle(self, batch: Batch) -> None:
        """Settle the bets of a batch; then a smaller delta that waited takes effect."""
        super().settle(batch)
        if self._is_late:
            self._begin_anew()

    def _begin_anew(self) -> None:
        noise, known = self._noise, self._prior.plus(self.counts, self.sums)
        assert isinstance(noise, LearnedScale)
        self._is_late = False
        self._n_restarts += 1
        noise.level = SHARE * self._level(self._policy)
        self._begin(self._policy, noise)
        self._prior = known
        self._join()

    def _numbers(self, leader: Any) -> tuple[float, float]:
        """Return what a decision records of the values before it, those before a smaller delta among them."""
        value_sum, wealth = super()._numbers(leader)
        return value_sum + float((1.0 + golden_multiples(len(self.sums))) @ self._prior.sums), wealth

    def standing(self) -> Standing:
        """Return where the bets stand, with the risk that a bound is too small added to theirs."""
        standing = super().standing()
        if standing.risk is None:
            return standing
        return dataclasses.replace(standing, risk=min(1.0, standing.risk + SHARE * self._level(self._policy)))

    def noise_estimate(self) -> FloatArray:
        """Return the noise as it is estimated; nan before every arm was measured."""
        found = super().noise_estimate()
        return found if self._is_started else np.full(len(found), np.nan)


class LearnedScalePlanRun(LearnedScaleRun, PlanProbeRun):
    """The same, where requests are whole plans."""
