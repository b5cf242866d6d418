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

Where plans cannot be listed, T* is bracketed by column generation (`unlisted_limit`). Of a polytope it is
exact, and over few rows: every plan is the best vertex plus multiples of its edges, so that some plan is
better in another world if and only if some edge improves there (`vertex_edges`); within epsilon of its best
there is a bracket (`epsilon_limit`). Where probes are measured instead of single arms, see `probe_limit`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surepick.core.arrays import FloatArray, Numbers, as_dense
from surepick.core.branches import Branch
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plan_sets import plan_set, spanned
from surepick.core.plays import FindPlay, play_finder
from surepick.core.policy import check_delta, check_epsilon, known_deviation
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.core.run import Answer
from surepick.design.probe_allocation import ProbeAllocation
from surepick.errors import ParameterError, ProblemError
from surepick.planning.differences import differences_of, scaled_squares
from surepick.planning.limit_value import Bracket, Limit, Once, limit_of, no_limit
from surepick.planning.play_limit import PlayedRivals, least_play_cover
from surepick.planning.polytope_limit import edge_limit, least_of, near_best_limit
from surepick.planning.probe_limit import least_cover, probe_times
from surepick.planning.unlisted_limit import FoundRivals

_WHOLE = 1e-9  # a cover this little below a whole number of uses is that number
_ORACLE_TOLERANCE = 1e-3  # of T* where plans are found by an oracle


def limit(
    problem: Problem | OracleProblem,
    means: Numbers,
    *,
    delta: float = 0.05,
    tolerance: float = 1e-8,
    epsilon: float = 0.0,
) -> Limit:
    """T* of this problem under these means, to a certified relative `tolerance`, and how to attain it.

    Where plans are known by an oracle, or measured by probes, the bracket is certified too, and at best a
    thousandth wide. With `epsilon`, which is for a `Polytope`, it is about a plan within epsilon of the best,
    and the bracket is wide; a tolerance of .1 or more has it found quickly, and wider.

    >>> problem = Problem([[3, 0, 1], [0, 2, 2], [1, 1, 3], [2, 2, 0], [0, 0, 4]], noise_scale=1)
    >>> found = limit(problem, [1, 0.5, 0.3])
    >>> round(found.characteristic_time, 4), found.allocation.round(3).tolist()
    (355.5556, [0.25, 0.5, 0.25])
    """
    check_delta(delta)
    check_epsilon(epsilon)
    problem.refuse_contrary(problem.as_means(means), "means")
    if isinstance(problem, Polytope):
        seen = problem.as_means(means)
        if epsilon:
            return near_best_limit(problem, seen, delta, tolerance, epsilon)
        return edge_limit(problem, seen, delta, tolerance)
    if epsilon:
        raise ParameterError(
            "a limit within epsilon is known for the plans of a Polytope only, got "
            f"{type(problem).__name__}; leave epsilon out: finding the best plan itself never takes fewer",
            field="epsilon",
        )
    if not problem.is_listed:
        return _oracle_limit(problem, problem.as_means(means), delta, max(tolerance, _ORACLE_TOLERANCE))
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
        times = None
        if not tied:
            times = probe_times(problem.probes, as_dense(differences[rivals]) / gaps[rivals, None], tolerance)
        return _probe_limit(problem, best, tied, times, delta)
    noise, once = known_deviation(problem), Once.of(problem.costs, np.flatnonzero(problem.relevant))
    if tied:
        return no_limit(best, delta, problem.n_arms, once, tied)
    squares = scaled_squares(differences[rivals], gaps[rivals], noise)
    return limit_of(best, delta, *least_of(squares, problem.costs, tolerance), once)


def _probe_limit(
    problem: Problem,
    best: int,
    tied: tuple[int, ...],
    times: tuple[ProbeAllocation, ProbeAllocation] | None,
    delta: float,
) -> Limit:
    """The limit where probes are measured; allocations are shares of uses of each probe."""
    probes = problem.probes
    assert probes is not None
    n = len(probes)
    uses = int(least_cover(probes, problem.relevant, np.ones(n)) + _WHOLE)
    once = Once(uses, least_cover(probes, problem.relevant, probes.costs))
    if times is None:
        return no_limit(best, delta, n, once, tied)
    time, cost = times
    unit = float(probes.costs[0]) if cost is time else 1.0
    spending = cost.shares if cost is time else cost.shares / probes.costs
    in_uses = Bracket.around(time.lower, time.upper, time.shares)
    in_cost = Bracket.around(cost.lower, cost.upper, spending / spending.sum(), 2.0 * unit)
    return limit_of(best, delta, in_uses, in_cost, once)


def _oracle_limit(problem: OracleProblem, means: FloatArray, delta: float, tolerance: float) -> Limit:
    """The limit by column generation, in measurements and in cost."""
    variance = known_deviation(problem, plays=True) ** 2
    plans = plan_set(problem)
    branch, _ = spanned(plans)
    best = plans.best(means, branch)
    assert best is not None
    if not branch.free.size:
        raise ProblemError("all plans are the same; with one plan there is nothing to choose")
    find = play_finder(plans, branch) if problem.plays else None
    rivals = (
        FoundRivals(plans, branch, best, means)
        if find is None
        else PlayedRivals(plans, branch, best, means, find)
    )
    tied = rivals.tied()
    answer, once = plans.answer(best), Once.of(problem.costs, branch.free)
    if tied:
        return no_limit(answer, delta, problem.n_arms, once, tied)
    (lower, upper), shares = rivals.bracket(variance, tolerance)
    time = Bracket.from_below(lower, upper, shares)
    if find is not None:
        return _play_limit(answer, delta, time, (find, branch), float(problem.costs[0]))
    spending, unit = shares, float(problem.costs[0])
    if np.ptp(problem.costs) > 0:
        (lower, upper), shares = rivals.bracket(variance * problem.costs, tolerance)
        spending, unit = shares / problem.costs, 1.0
    cost = Bracket.from_below(lower, upper, spending / spending.sum(), 2.0 * unit)
    return limit_of(answer, delta, time, cost, once)


def _play_limit(
    best: Answer, delta: float, time: Bracket, play: tuple[FindPlay, Branch], price: float
) -> Limit:
    """The limit where plans are played, all at one price; allocations say which plays read each arm."""
    find, branch = play
    once = least_play_cover(find, branch.lower < branch.upper)
    cost = Bracket.from_below(time.lower, time.upper, time.shares, price)
    return limit_of(best, delta, time, cost, Once(int(once + _WHOLE), price * once))
