"""The limit: how few measurements any method needs on an instance, on average.

Take a method that is wrong with probability at most delta < 1/2 whatever the means are, and Gaussian noise.
With y_k = best - plan k,

    E[measurements] >= T* kl(delta, 1 - delta),
    T* = 2 min_w max_{k != best} sum_s R_s^2 y_ks^2 / (w_s gap_k^2),

by the usual change of measure (Garivier and Kaufmann 2016) over the worlds in which a rival wins. Where T* is
small another bound is larger: an arm in which some plan differs from the best is left unmeasured with
probability at most 2 delta. For as long as it is not measured, a world in which its mean makes that plan
better looks the same; there the answer may be this world's best plan with probability at most delta, and here
it may be anything else with probability at most delta. So

    E[measurements] >= (1 - 2 delta) x the number of arms in which plans differ.

The larger of both is *the limit*: the one unit of every "multiple of the limit", and the same in cost. These
quantities need the true means: they are for experiments and reports, and no policy sees them.

Where plans cannot be listed, T* is bounded from below (`oracle`). Of a polytope it is exact, and over few
rows, and within epsilon of its best there is a bracket (`polytope`). Where probes are measured instead of
single arms, see `probes`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surepick.core.arrays import FloatArray, Numbers, as_dense
from surepick.core.oracle_problem import OracleProblem
from surepick.core.policy import check_delta, check_epsilon, known_deviation
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.design.allocation import TIGHTEST
from surepick.errors import ParameterError, ProblemError
from surepick.limits.oracle import oracle_limit
from surepick.limits.polytope import polytope_limit
from surepick.limits.probes import probe_limit
from surepick.limits.rows import differences_of, least_of, scaled_squares
from surepick.limits.value import Limit, Once, no_limit

_ORACLE_TOLERANCE = 1e-3  # of T* where plans are found by an oracle


def limit(
    problem: Problem | OracleProblem,
    means: Numbers,
    *,
    delta: float = 0.05,
    tolerance: float = 1e-8,
    epsilon: float = 0.0,
) -> Limit:
    """Return how few measurements any method needs on this problem under these means, on average.

    T* is found to a certified relative `tolerance`, at best a thousandth where probes are measured or plans
    are known by an oracle; behind an oracle it is bounded from below. With `epsilon`, which is for a
    `Polytope`, it is about a plan within epsilon of the best, and a wide bracket; a tolerance of .1 or more
    has it found quickly, and wider.

    >>> problem = Problem([[3, 0, 1], [0, 2, 2], [1, 1, 3], [2, 2, 0], [0, 0, 4]], noise=1, goal="largest")
    >>> found = limit(problem, [1, 0.5, 0.3])
    >>> round(found.time.value, 4), found.shares.round(3).tolist()
    (355.5556, [0.25, 0.5, 0.25])
    """
    check_delta(delta)
    check_epsilon(epsilon)
    if not TIGHTEST <= tolerance < 1:
        raise ParameterError(
            f"tolerance must be between {TIGHTEST:g} and 1, got {tolerance!r}; try 1e-3", field="tolerance"
        )
    problem.refuse_contrary(problem.as_means(means), "means")
    if isinstance(problem, Polytope):
        return polytope_limit(problem, problem.as_means(means), delta, tolerance, epsilon)
    if epsilon:
        raise ParameterError(
            "a limit within epsilon is known for the plans of a Polytope only, got "
            f"{type(problem).__name__}; leave epsilon out: finding the best plan itself never takes fewer",
            field="epsilon",
        )
    if not problem.is_listed:
        return oracle_limit(problem, problem.as_means(means), delta, max(tolerance, _ORACLE_TOLERANCE))
    found = _listed_limit(problem, problem.as_means(means), delta, tolerance)
    return replace(found, setup_cost=problem.setup_cost) if problem.setup_cost else found


def _listed_limit(problem: Problem, means: FloatArray, delta: float, tolerance: float) -> Limit:
    """The limit over all rows of a list; T* is exact where single arms are measured."""
    may_be_best = problem.plan_parts.may_be_best
    values = problem.sign * problem.values(means)
    best = int(np.argmax(np.where(may_be_best, values, -np.inf)))
    if may_be_best.sum() == 1:
        raise ProblemError(
            f"plan {problem.plan_names[best]!r} is best by what is known; nothing has to be measured",
            field="known",
        )
    differences, gaps = differences_of(problem, means, best)
    rivals = np.flatnonzero(may_be_best & (np.arange(problem.n_plans) != best))
    tied = tuple(int(k) for k in rivals[gaps[rivals] == 0])
    if problem.probes is not None:
        targets = None if tied else as_dense(differences[rivals]) / gaps[rivals, None]
        return probe_limit(problem, best, tied, targets, delta, tolerance)
    noise, once = known_deviation(problem), Once.of(problem.costs, np.flatnonzero(problem.relevant))
    if tied:
        return no_limit(best, delta, problem.n_arms, once, tied)
    squares = scaled_squares(differences[rivals], gaps[rivals], noise)
    return Limit(best, delta, *least_of(squares, problem.costs, tolerance), once)
