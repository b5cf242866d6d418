"""Pick where plans cannot be listed: the rivals are the plans that posterior draws find best.

A few draws from N(mean, R^2 / count) after each block, each with one call of the oracle; the distinct plans
of the last 64 of them stand for all plans, with the weights that they would have in a list. The draws are a
function of what was measured, so that the same measurements give the same decisions.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plan_sets import plan_oracle
from surepick.core.run import Standing
from surepick.policies.picking.pick import PickRun

DRAWS = 4  # after each block
FIRST_DRAWS = 32
KEPT = 64


class OraclePickRun(PickRun):
    """A run of Pick that asks an oracle."""

    def __init__(self, problem: OracleProblem, *, epsilon: float, max_batch: int | None) -> None:
        super().__init__(cast(Any, problem), epsilon=epsilon, max_batch=max_batch)  # it asks for no list
        self._plans = plan_oracle(problem)
        self._lead = np.zeros(problem.n_arms)
        self._drawn = np.zeros((0, problem.n_arms))  # the best plans of the last draws

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool what was measured, and draw rivals."""
        super().absorb(counts, sums)
        if self._is_started:
            self._draw()

    def _draw(self) -> None:
        n = DRAWS if len(self._drawn) else FIRST_DRAWS
        rng = np.random.default_rng(self._evidence.n_measurements)
        means, variance = self._estimates()
        worlds = means + np.sqrt(variance) * rng.standard_normal((n, len(means)))
        self._drawn = np.vstack([self._drawn, self._plans.best_of_each(worlds)])[-KEPT:]
        self._lead = self._plans.best_of_all(means)

    def _rivals(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Lead minus each distinct rival, their gaps, and their weights relative to the largest."""
        away = self._lead - np.unique(self._drawn, axis=0)
        away = away[(away != 0).any(axis=1)]
        means, variance = self._estimates()
        gap, error = away @ means, np.sqrt(away**2 @ variance)
        return away, gap, self._weights(gap, error) if len(away) else gap

    def _gains(self) -> FloatArray:
        """a_s over the rivals; where no draw has found one, as if every arm mattered alike."""
        away, _, weight = self._rivals()
        return self._variance * (weight @ away**2 if len(away) else np.ones(len(self._variance)))

    def standing(self) -> Standing:
        """The leader, the rival that is most worth comparing it with, and their gap."""
        if not len(self._drawn):
            return Standing()
        away, gap, weight = self._rivals()
        lead = self._plans.answer(self._lead)
        if not len(away):
            return Standing(lead)
        k = int(np.argmax(weight))
        return Standing(lead, self._plans.answer(self._lead - away[k]), float(gap[k]))
