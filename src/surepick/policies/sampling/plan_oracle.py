"""What a policy that needs no list of plans sees of a problem: the best plan for given weights."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.oracle_problem import OracleProblem
from surepick.core.policy import Answer, known_noise_scale
from surepick.core.problem import Problem
from surepick.errors import ProblemError


class PlanOracle(Protocol):
    """What a policy that needs no list of plans sees of a problem."""

    @property
    def n_arms(self) -> int:
        """The number of quantities that can be measured."""
        ...

    @property
    def arms(self) -> IntArray:
        """The arms that may matter."""
        ...

    @property
    def noise_scale(self) -> FloatArray:
        """The noise scale of each arm."""
        ...

    @property
    def costs(self) -> FloatArray:
        """The price of a measurement of each arm."""
        ...

    @property
    def log_n_plans(self) -> float:
        """The logarithm of the number of plans, or of a bound on it."""
        ...

    def best(self, weights: FloatArray) -> FloatArray:
        """The plan with the largest value under these weights."""
        ...

    def best_of_each(self, weights: FloatArray) -> FloatArray:
        """The same for every row of weights: one plan a row."""
        ...

    def answer(self, plan: FloatArray) -> Answer:
        """How this plan is called in a result."""
        ...


class CallableOracle:
    """The oracle of an `OracleProblem`; plans are called by their vectors.

    Inside, larger is better: where the problem minimises, plans are the negated vectors.
    """

    def __init__(self, problem: OracleProblem) -> None:
        if problem.n_plans is None:
            raise ProblemError(
                "this policy needs a bound on the number of plans; pass n_plans to OracleProblem, such as "
                "n_plans=2**n_arms for plans of zeros and ones"
            )
        self._problem = problem
        self._sign = -1.0 if problem.minimize else 1.0
        self.n_arms, self.costs = problem.n_arms, problem.costs
        self.arms = np.arange(problem.n_arms)
        self.noise_scale = known_noise_scale(problem)
        self.log_n_plans = math.log(problem.n_plans)

    def best(self, weights: FloatArray) -> FloatArray:
        """One call of the oracle, checked."""
        return self._sign * self._problem.best_plan(weights) + 0.0

    def best_of_each(self, weights: FloatArray) -> FloatArray:
        """One call a row."""
        return np.array([self.best(row) for row in weights])

    def answer(self, plan: FloatArray) -> tuple[float, ...]:
        """The vector as a tuple."""
        return tuple((self._sign * plan + 0.0).tolist())


class ListedOracle:
    """A list of plans asked as an oracle; ties go to the lowest index, plans are called by their index."""

    def __init__(self, problem: Problem) -> None:
        plans = problem.oriented
        self._plans = np.ascontiguousarray(plans if isinstance(plans, np.ndarray) else plans.toarray())
        self._index = {row.tobytes(): k for k, row in enumerate(self._plans)}
        self.n_arms, self.costs = problem.n_arms, problem.costs
        self.arms = np.flatnonzero(problem.relevant)
        self.noise_scale = known_noise_scale(problem)
        self.log_n_plans = math.log(problem.n_plans)

    def best(self, weights: FloatArray) -> FloatArray:
        """The first plan of largest value."""
        return np.asarray(self._plans[np.argmax(self._plans @ weights)])

    def best_of_each(self, weights: FloatArray) -> FloatArray:
        """All rows in one matrix product."""
        return np.asarray(self._plans[np.argmax(weights @ self._plans.T, axis=1)])

    def answer(self, plan: FloatArray) -> int:
        """The index of this plan."""
        return self._index[plan.tobytes()]
