"""The run that fixed-budget methods share: phases sized by the budget, plans dropped after each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.policies.picking.pooled import PickingPolicy, PooledRun


@dataclass(frozen=True)
class BudgetPolicy(PickingPolicy):
    """The settings of methods that divide a budget over phases; they have no guarantee."""

    budget: int | None = None

    _answers_with: ClassVar[str] = (
        "the plan that is left after the budget; theory says how fast its errors fall with the budget, and "
        "bounds none of this run"
    )

    def __post_init__(self) -> None:
        if self.budget is not None and not self.budget >= 1:
            raise ParameterError(
                f"budget is a number of measurements, 1 or more, got {self.budget!r}", field="budget"
            )


class BudgetPhases(PooledRun, ABC):
    """A run that divides a budget over phases and ends with the plan that is left.

    The budget is the policy's own, or what the loop or session has left when the run begins, if that is less.
    Plans and means are those of the arms on which plans differ, the `_arms`.
    """

    def __init__(self, problem: Problem, name: str, budget: int | None) -> None:
        super().__init__(problem)
        dense = as_dense(problem.oriented)
        self._arms = np.flatnonzero(problem.relevant)
        self._plans: FloatArray = np.ascontiguousarray(dense[:, self._arms])  # (n_plans, n_used)
        self._name, self._budget, self._horizon = name, budget, budget
        self._alive: BoolArray = np.ones(problem.n_plans, dtype=bool)
        self._phase = 1

    @property
    @abstractmethod
    def n_phases(self) -> int:
        """How many phases there are at most."""

    @abstractmethod
    def request(self) -> IntArray:
        """Return how often to measure each of the used arms in this phase."""

    @abstractmethod
    def narrow(self) -> None:
        """Drop plans now that this phase is measured."""

    def allow(self, left: int) -> None:
        """Take what is left at the beginning for the budget."""
        super().allow(left)
        if self._phase == 1:
            self._horizon = left if self._budget is None else min(left, self._budget)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return the next phase; after the last one the end of the budget, which proves no plan."""
        del rng  # nothing is drawn
        if self._is_over:
            return Stop(None)
        counts = np.zeros(self._problem.n_arms, dtype=np.int64)
        counts[self._arms] = self.request()
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool a phase and drop plans by it; phases that the budget leaves empty are over at once."""
        super().absorb(counts, sums)
        self.narrow()
        self._phase += 1
        while not self._is_over and not self.request().any():
            self.narrow()
            self._phase += 1

    def standing(self) -> Standing:
        """Return the plan that looks best among those left, the next of them, and their gap."""
        if self._phase == 1:
            return Standing()
        values = np.where(self._alive, self._plans @ self._means, -np.inf)
        lead = int(np.argmax(values))
        if self._alive.sum() == 1:
            return Standing(lead)
        values_of_others = values.copy()
        values_of_others[lead] = -np.inf
        rival = int(np.argmax(values_of_others))
        return Standing(lead, rival, float(values[lead] - values[rival]))

    @property
    def _is_over(self) -> bool:
        return self._phase > self.n_phases or int(self._alive.sum()) == 1

    @property
    def _total(self) -> int:
        """The whole budget."""
        if self._horizon is None:
            raise ParameterError(
                f"{self._name} divides a budget over its phases and was given none; give {self._name}"
                "(budget=...), or run it with a budget",
                field="budget",
            )
        if self._horizon < len(self._arms):
            raise ParameterError(
                f"{self._name} measures each of the {len(self._arms)} arms on which plans differ at least "
                f"once, and the budget is {self._horizon}; give a larger one, or use Pick",
                field="budget",
            )
        return self._horizon

    @property
    def _counts(self) -> IntArray:
        counts: IntArray = self._evidence.counts[self._arms]
        return counts

    @property
    def _means(self) -> FloatArray:
        return np.asarray(np.nan_to_num(self._evidence.means)[self._arms])
