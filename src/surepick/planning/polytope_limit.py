"""The limit over all plans of a polytope: by the edges at its best vertex, or within epsilon of it.

Every plan is the best vertex plus multiples of its edges, so that some plan is better in another world if and
only if some edge improves there (`vertex_edges`); within epsilon of the best there is a bracket
(`epsilon_limit`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.close_call import close_call
from surepick.core.policy import known_deviation
from surepick.core.polytope import Polytope
from surepick.design.allocation import optimal_allocation
from surepick.planning.differences import scaled_squares
from surepick.planning.epsilon_limit import CAREFUL, QUICK, NearBest
from surepick.planning.limit_value import Bracket, Limit, Once, limit_of, no_limit
from surepick.planning.vertex_edges import VertexEdges

_ROUGH = 0.1  # a tolerance from which on the bracket within epsilon is looked for quickly
_EXACT_TOLERANCE = 1e-3  # of T* where it is looked at beside that bracket


def edge_limit(problem: Polytope, means: FloatArray, delta: float, tolerance: float) -> Limit:
    """The limit over the edges at the best vertex; a bracket where there are too many to find them all."""
    noise = known_deviation(problem)
    at_best = VertexEdges(problem, means, noise)
    once = Once.of(problem.costs, np.flatnonzero(at_best.differences.any(axis=0)))
    tied, closest = at_best.tied(), close_call(problem, at_best.best, at_best.neighbours, means)
    epsilon = None if closest is None else closest.epsilon
    if tied:
        none = no_limit(at_best.best, delta, problem.n_arms, once, tied)
        return replace(none, suggested_epsilon=epsilon, closest=closest)
    rows, above = at_best.differences, at_best.above()
    time, cost = least_of(scaled_squares(rows, rows @ means, noise), problem.costs, tolerance)
    if not at_best.is_complete:  # what was found is a lower end; a whole basis is an upper one
        ends = replace(time, upper=math.inf), replace(cost, upper=math.inf)
        if above is not None:
            ends = least_of(scaled_squares(above, above @ means, noise), problem.costs, tolerance)
        time, cost = (
            replace(end, value=one.lower, lower=one.lower)
            for end, one in zip(ends, (time, cost), strict=True)
        )
    found = limit_of(at_best.best, delta, time, cost, once)
    return replace(found, suggested_epsilon=epsilon, closest=closest)


def near_best_limit(
    problem: Polytope, means: FloatArray, delta: float, tolerance: float, epsilon: float
) -> Limit:
    """The bracket within epsilon, in measurements and in cost."""
    variance, costs = known_deviation(problem) ** 2, problem.costs
    near = NearBest(problem, means, epsilon, QUICK if tolerance >= _ROUGH else CAREFUL)
    needed = near.has_to_be_measured()
    time = near.ends(variance)
    cost, spending, unit = time, time.shares, float(costs[0])
    if np.ptp(costs) > 0:
        cost, unit = near.ends(variance * costs), 1.0
        spending = cost.shares / costs
    # the best plan is within any epsilon: where epsilon is tiny, edges show more than boxes
    exact = edge_limit(problem, means, delta, max(tolerance, _EXACT_TOLERANCE))
    shares, spending = time.shares, spending / spending.sum()
    if exact.upper < time.upper:
        shares, spending = exact.allocation, exact.cost_allocation
    found = limit_of(
        tuple(problem.form.plan(near.best).tolist()),
        delta,
        Bracket.from_below(time.lower, min(time.upper, exact.upper), shares, 1.0),
        Bracket.from_below(unit * cost.lower, min(unit * cost.upper, exact.cost_upper), spending, 1.0),
        Once(int(needed.sum()), float(costs[needed].sum())),
    )
    return replace(found, epsilon=epsilon, pair_time=time.pairs, pair_cost=unit * cost.pairs)


def least_of(squares: Any, costs: FloatArray, tolerance: float) -> tuple[Bracket, Bracket]:
    """T* over these rows, and the least cost; equal costs need no second solution."""
    time = optimal_allocation(squares, tolerance=tolerance)
    cost, unit = time, float(costs[0])
    if not (costs == costs[0]).all():
        cost, unit = optimal_allocation(squares, tolerance=tolerance, costs=costs, start=time.dual), 1.0
    return (
        Bracket.around(time.lower, time.value, time.weights),
        Bracket.around(cost.lower, cost.value, cost.weights, 2.0 * unit),
    )
