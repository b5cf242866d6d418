"""How far plans are apart by the evidence, and how well that is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, Plans
from surepick.core.evidence import Evidence
from surepick.core.oracle_problem import AnyProblem
from surepick.core.pooled import pooled
from surepick.core.problem import Problem
from surepick.core.run import Answer

SAME = 1e-12  # of a plan's square: a smaller difference in unmeasured arms is rounding


def noise_variance(problem: AnyProblem) -> FloatArray:
    """The variance of one measurement of each arm; 1 while it is unknown."""
    return np.ones(problem.n_arms) if problem.noise_scale is None else problem.noise_scale**2


def arm_means(problem: AnyProblem, evidence: Evidence) -> FloatArray:
    """The estimate of each arm's mean, or what is known of it; 0 where nothing is."""
    if problem.probes is not None:
        return pooled(problem, evidence).means
    return np.where(problem.is_known, problem.known_means, np.nan_to_num(evidence.means))


def mean_variance(problem: AnyProblem, evidence: Evidence) -> FloatArray:
    """The variance of each arm's mean under the noise scale; 0 where it is known, infinite if unmeasured."""
    if problem.probes is not None:
        return pooled(problem, evidence).variances
    is_known = problem.is_known
    nothing = np.where(is_known, 0.0, np.inf)
    measured = (evidence.counts > 0) & ~is_known
    return np.asarray(np.divide(noise_variance(problem), evidence.counts, out=nothing, where=measured))


def between(problem: AnyProblem, lead: Answer, rival: Answer, evidence: Evidence) -> tuple[float, float]:
    """How far the rival is behind the lead, and the standard deviation of that.

    It is infinite where they differ in an arm that was not measured; the estimate of such an arm is 0.

    >>> problem = Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], goal="largest")
    >>> evidence = Evidence(np.array([4, 4, 0]), np.array([12.0, 8.0, 0.0]))
    >>> between(problem, 0, 1, evidence), between(problem, 0, 2, evidence)
    ((1.0, 0.7071067811865476), (3.0, inf))
    """
    difference = problem.sign * (problem.vector(lead) - problem.vector(rival))
    if problem.probes is not None:
        (gap_read,), (error,) = pooled(problem, evidence).gaps(difference[None])
        return float(gap_read), float(error)
    differs = difference != 0
    variance = mean_variance(problem, evidence)[differs]
    gap = float(difference @ arm_means(problem, evidence))
    return gap, math.sqrt(float(difference[differs] ** 2 @ variance))


def in_errors(gap: FloatArray, error: FloatArray) -> FloatArray:
    """The gaps in units of their errors; 0 where nothing is known."""
    known = np.isfinite(error) & (error > 0)
    return np.asarray(np.divide(gap, error, out=np.zeros_like(gap), where=known))


def closest_first(
    lead: int, gap: FloatArray, error: FloatArray, log_evidence: FloatArray | None = None
) -> IntArray:
    """The rivals of the lead, the hardest to rule out first: the one home of "closest rival".

    That is by the proved evidence against them where there is some, then by the gap in units of its error.
    """
    order: IntArray = np.argsort(in_errors(gap, error), kind="stable")
    order = order[order != lead]
    if log_evidence is not None:
        by_evidence: IntArray = order[np.argsort(np.maximum(log_evidence[order], 0.0), kind="stable")]
        return by_evidence
    return order


def runner_up(lead: int, gap: FloatArray) -> int | None:
    """The plan that looks best after the lead; its gap is the smallest, however well it is known.

    >>> runner_up(0, np.array([0.0, 3.0, 1.0]))
    2
    """
    others = np.delete(np.arange(len(gap)), lead)
    return int(others[np.argmin(gap[others])]) if len(others) else None


def squares_of(plans: Plans) -> Plans:
    """Every entry squared."""
    if isinstance(plans, np.ndarray):
        return np.asarray(plans**2)
    found: Plans = plans.multiply(plans).tocsr()
    return found


def behind_by(
    problem: Problem, plan: int, evidence: Evidence, squares: Plans | None = None
) -> tuple[FloatArray, FloatArray]:
    """How far every plan is behind this one by the evidence, and the standard deviation of that."""
    if problem.probes is None:
        means, variance = arm_means(problem, evidence), mean_variance(problem, evidence)
        return behind(problem, plan, means, variance, squares)
    plans: Any = problem.oriented
    dense = plans if isinstance(plans, np.ndarray) else plans.toarray()
    return pooled(problem, evidence).gaps(problem.sign * problem.vector(plan) - dense)


def behind(
    problem: Problem, plan: int, means: FloatArray, variance: FloatArray, squares: Plans | None = None
) -> tuple[FloatArray, FloatArray]:
    """How far every plan is behind this one, and the standard deviation of that, as `between` has it.

    `means` and `variance` are those of the arms' estimates (see `mean_variance`); `squares` are those of the
    oriented plans, for who asks often.

    >>> problem = Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], goal="largest")
    >>> gap, error = behind(problem, 0, np.array([3.0, 2.0, 0.0]), np.array([0.25, 0.25, np.inf]))
    >>> gap.tolist(), error.round(2).tolist()
    ([0.0, 1.0, 3.0], [0.0, 0.71, inf])
    """
    plans, row = problem.oriented, problem.vector(plan) * problem.sign
    squares = squares_of(plans) if squares is None else squares
    gap = float(row @ means) - np.asarray(plans @ means)

    def squared_distance(weights: FloatArray) -> FloatArray:  # (row - plan)^2 @ weights, multiplied out
        return np.asarray(float(row**2 @ weights) - 2.0 * (plans @ (row * weights)) + squares @ weights)

    unknown = ~np.isfinite(variance)
    error = np.sqrt(np.maximum(squared_distance(np.where(unknown, 0.0, variance)), 0.0))
    if unknown.any():
        apart = squared_distance(unknown.astype(float)) > SAME * (1.0 + float(row @ row))
        error = np.where(apart, np.inf, error)
    return gap, error
