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

Where probes are measured, M(u) is the information that a unit of cost buys in shares u, z_k = y_k / gap_k,
and T* = 2 min_u max_k z_k' M(u)^+ z_k: the closest world in which plan k is as good as the best is at
gap_k^2 / (y_k' M^+ y_k). The second bound is a cover there: every direction in which some difference of plans
shows must be hit, by a probe that reads it, with probability 1 - 2 delta; so the expected uses are at least
(1 - 2 delta) times the least *fractional* cover. The least whole cover is no bound: four readings in two
dimensions, any two of which are enough, have a fractional cover of 4/3.

**Within epsilon** a plan is good if it is at most epsilon worse than the best. If the best one alone is good,
another world has to make a rival better than it by epsilon: gaps are raised by epsilon. Else take two worlds
mu + u and mu - u with (best - rival).u > 2 epsilon + gap. A plan x that is good in both has
2 x.mu >= (best + rival).mu + (best - rival).u - 2 epsilon > 2 best.mu, so that there is none: the answer is
bad in one of the two with probability 1/2 at least, and may be so there with probability delta. Gaps are
raised by 2 epsilon, and kl(1/2, delta) takes the place of kl(delta, 1 - delta).

Plans that are not listed, behind an oracle or of a polytope, are in `unlisted`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, as_dense
from surepick.core.given.numbers import Numbers
from surepick.core.oracle_problem import OracleProblem
from surepick.core.policy import check_delta, check_epsilon, known_deviation
from surepick.core.polytopes.polytope import Polytope
from surepick.core.probes import Probes
from surepick.core.problem import Problem
from surepick.design.allocation import TIGHTEST
from surepick.design.information import information_of
from surepick.design.minimax import minimax
from surepick.errors import ParameterError, ProblemError
from surepick.limits.unlisted import edge_limit, oracle_limit
from surepick.limits.value import WHOLE, Bracket, Limit, Once, least_of, no_limit, raised

_ROUGH_TOLERANCE = 1e-3  # of T* behind an oracle and with probes, where further digits come slowly
_MOST_COVERED = 10**5  # readings for which a cover is looked for


def limit(
    problem: Problem | OracleProblem,
    means: Numbers,
    *,
    delta: float = 0.05,
    tolerance: float = 1e-8,
    epsilon: float = 0.0,
) -> Limit:
    """Return how few measurements any method needs on this problem under these means, on average.

    The limit is T* kl(delta, 1 - delta), or if that is more, 1 - 2 delta measurements of each arm in which
    plans differ. T*, the time that telling the best plan from its rivals takes, is found to a certified
    relative `tolerance`, with probes or an oracle at best 1e-3. With an oracle it is a lower bound, by the
    hardest rivals that were found. With `epsilon` the limit is a lower bound for a plan within epsilon.

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
    truth = problem.as_means(means)
    problem.refuse_contrary(truth, "means")
    if isinstance(problem, Polytope):
        return edge_limit(problem, truth, delta, tolerance, epsilon)
    if not problem.is_listed:
        return oracle_limit(problem, truth, delta, max(tolerance, _ROUGH_TOLERANCE), epsilon)
    found = _listed_limit(problem, truth, delta, tolerance, epsilon)
    return replace(found, setup_cost=problem.setup_cost) if problem.setup_cost else found


def _listed_limit(
    problem: Problem, means: FloatArray, delta: float, tolerance: float, epsilon: float
) -> Limit:
    """Return the limit over all rows of a list; T* is exact where single arms are measured."""
    plans, constants, may_be_best = problem.plan_parts
    values = problem.sign * problem.values(means)
    best = int(np.argmax(np.where(may_be_best, values, -np.inf)))
    rivals = np.flatnonzero(may_be_best & (np.arange(problem.n_plans) != best))
    if not rivals.size:
        raise ProblemError(
            f"plan {problem.plan_names[best]!r} is best by what is known; nothing has to be measured",
            field="known",
        )
    if isinstance(plans, np.ndarray):
        differences: Any = plans[best] - plans[rivals]
    else:
        from scipy import sparse

        ones = sparse.csr_array(np.ones((len(rivals), 1)))
        differences = sparse.csr_array(ones @ plans[[best]] - plans[rivals])
        differences.eliminate_zeros()
    sizes = abs(plans) @ np.abs(means) + np.abs(constants)
    rounding = np.finfo(float).eps * problem.n_arms * (sizes[rivals] + sizes[best])
    gaps = np.asarray(differences @ means) + constants[best] - constants[rivals]
    tied = tuple(rivals[gaps <= rounding].tolist()) if not epsilon else ()
    shift = raised(float(values[best] - np.delete(values, best).max()), epsilon)
    gaps = gaps + shift
    if problem.probes is not None:
        targets = None if tied else as_dense(differences) / gaps[:, None]
        found = _probe_limit(problem, best, tied, targets, delta, tolerance)
        return replace(found, epsilon=epsilon, is_paired=shift > epsilon)
    once = Once.of(problem.costs, np.flatnonzero(problem.relevant))
    if tied:
        return no_limit(best, delta, problem.n_arms, once, tied)
    time, cost = least_of(differences, gaps, known_deviation(problem), problem.costs, tolerance)
    return Limit(best, delta, time, cost, once, epsilon=epsilon, is_paired=shift > epsilon)


def _probe_limit(
    problem: Problem,
    best: int,
    tied: tuple[int, ...],
    targets: FloatArray | None,
    delta: float,
    tolerance: float,
) -> Limit:
    """Return the limit where probes are measured; shares are of uses of each probe.

    `targets` are (best - plan) / gap, None where plans tie.
    """
    probes = problem.probes
    assert probes is not None
    n, costs = len(probes), probes.costs
    uses = int(least_cover(probes, problem.relevant, np.ones(n)) + WHOLE)
    once = Once(uses, least_cover(probes, problem.relevant, costs))
    if targets is None:
        return no_limit(best, delta, n, once, tied)
    information, tolerance = information_of(probes), max(tolerance, _ROUGH_TOLERANCE)
    known = information.coordinates(targets)
    found = minimax(information, known, np.ones(n), tolerance=tolerance)
    time = Bracket.twice(found.lower, found.upper, found.shares)
    if np.ptp(costs) == 0:
        return Limit(best, delta, time, time.at_price(float(costs[0])), once)
    found = minimax(information, known, costs, tolerance=tolerance, start=found.shares, dual=found.dual)
    uses_of_each = found.shares / costs
    cost = Bracket.twice(found.lower, found.upper, uses_of_each / uses_of_each.sum())
    return Limit(best, delta, time, cost, once)


def least_cover(probes: Probes, differs: BoolArray, prices: FloatArray) -> float:
    """Return the least price, by fractions, of seeing every arm in which plans differ; of one probe if mixed.

    >>> from surepick.core.problem import Problem
    >>> routes = Problem([[1, 1, 0], [0, 1, 1], [1, 0, 1]], measure="plan arms", noise=1, goal="largest")
    >>> least_cover(routes.probes, np.ones(3, dtype=bool), np.ones(3))
    1.5
    """
    if not probes.is_diagonal or probes.n_readings > _MOST_COVERED:
        return float(prices.min())
    from scipy import sparse
    from scipy.optimize import linprog

    reads = sparse.csr_array(
        (np.ones(probes.n_readings), (probes.rows.indices, probes.owner)),
        shape=(len(differs), len(probes)),
    )[np.flatnonzero(differs)]
    reads.data[:] = 1.0
    cover: Any = -reads
    found: Any = linprog(prices, A_ub=cover, b_ub=-np.ones(reads.shape[0]), method="highs")
    return float(found.fun) if found.success else float(prices.min())
