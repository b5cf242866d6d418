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

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, Numbers
from surepick.core.branches import Branch
from surepick.core.cards import card, note
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plan_sets import plan_set, spanned
from surepick.core.plays import FindPlay, play_finder
from surepick.core.policy import check_delta, check_epsilon, known_deviation
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.core.run import Answer
from surepick.design.allocation import Allocation, optimal_allocation
from surepick.design.probe_allocation import ProbeAllocation
from surepick.errors import ParameterError, ProblemError
from surepick.planning.differences import dense, differences_of, scaled_squares
from surepick.planning.epsilon_limit import CAREFUL, QUICK, NearBest
from surepick.planning.play_limit import PlayedRivals, least_play_cover
from surepick.planning.probe_limit import least_cover, probe_times
from surepick.planning.unlisted_limit import FoundRivals
from surepick.planning.vertex_edges import VertexEdges

LIMIT_FORMULA = "max(T* kl(delta, 1 - delta), (1 - 2 delta) relevant arms)"
_WHOLE = 1e-9  # a cover this little below a whole number of uses is that number
_ORACLE_TOLERANCE = 1e-3  # of T* where plans are found by an oracle
_ROUGH = 0.1  # a tolerance from which on the bracket within epsilon is looked for quickly


@dataclass(frozen=True, eq=False)
class Limit:
    """How few measurements any method needs to find the best plan, with a certified bracket.

    `characteristic_time` is T*, between `lower` and `upper`; `allocation` is the share of measurements of
    each arm that attains it. `characteristic_cost`, `cost_lower`, `cost_upper` and `cost_allocation` (again
    shares of measurements) are the same when cost is counted instead. When rivals tie with the best plan no
    number of measurements is enough: all of them are infinite, `tied` says which, the allocations are empty.
    Plans are indices; of an `OracleProblem` they are vectors, and `characteristic_time` is the lower end.
    With `epsilon` it is about finding a plan within epsilon of the best: `lower` holds for every delta, and
    `upper` is what methods can come near to as delta goes to 0. The two may be far apart.
    """

    best: Answer
    delta: float
    characteristic_time: float
    lower: float
    upper: float
    allocation: FloatArray  # (n_arms,) shares of measurements; (n_probes,) with probes; plays that read it
    characteristic_cost: float
    cost_lower: float
    cost_upper: float
    cost_allocation: FloatArray  # (n_arms,) shares of measurements when cost is what counts
    n_relevant: int  # arms in which plans differ; with probes, uses that seeing them all takes at least
    tied: tuple[Answer, ...]
    relevant_cost: float  # of measuring each of those arms once, or of those uses
    suggested_epsilon: float | None = None  # where plans of a polytope tie: one that would end it
    epsilon: float = 0.0  # how much worse than the best the answer may be
    pair_time: float = 0.0  # with epsilon: times kl(1/2, delta), another bound; see `epsilon_limit`
    pair_cost: float = 0.0  # the same in cost

    def __repr__(self) -> str:
        found = f"{self.lower_bound:.4g} measurements" if self.is_finite else "infinite: plans tie"
        return f"Limit({found}, delta={self.delta:g})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            ("measurements", self.lower_bound),
            ("cost", self.cost_lower_bound),
            ("delta", self.delta),
            *([("epsilon", self.epsilon)] if self.epsilon else []),
            ("characteristic time", f"{self.characteristic_time:.6g}"),
        ]
        return card("Limit of any method", rows, note(self.explanation + "."))

    @property
    def is_finite(self) -> bool:
        """Whether the best plan is unique, so that measurements can find it."""
        return not self.tied

    @property
    def lower_bound(self) -> float:
        """The limit: the expected measurements of every method that keeps its promise are at least these."""
        return self.measurements()

    @property
    def upper_bound(self) -> float:
        """The same at the upper end: measurements that methods come near to as delta goes to 0."""
        return fewest(self.upper, self.n_relevant, self.delta)

    @property
    def cost_lower_bound(self) -> float:
        """The same for the expected cost of the measurements."""
        least = fewest(self.cost_lower, self.relevant_cost, self.delta)
        return max(least, self.pair_cost * half_kl(self.delta)) if self.epsilon else least

    def measurements(self, delta: float | None = None) -> float:
        """The limit at another delta: max(T* kl(delta, 1 - delta), (1 - 2 delta) n_relevant).

        >>> found = limit(Problem([[1, 0], [0, 1]]), [1.0, 0.0])
        >>> round(found.measurements(0.05), 2), round(found.measurements(0.001), 2)
        (21.2, 55.14)
        """
        delta = self.delta if delta is None else delta
        least = fewest(self.lower, self.n_relevant, delta)
        return max(least, self.pair_time * half_kl(delta)) if self.epsilon else least

    @property
    def explanation(self) -> str:
        """One sentence for people: the limit, or why there is none."""
        if self.tied:
            tie = (
                f"{len(self.tied)} plan(s) tie with the best, so no number of measurements can tell them "
                "apart; ask for a plan within epsilon of the best instead"
            )
            nearest = self.suggested_epsilon
            if nearest is None:
                return tie
            return (
                f"{tie}: epsilon = {nearest:.3g}, say, which is what the nearest plan loses that does not tie"
            )
        asked = f" and asked for a plan within {self.epsilon:g} of the best" if self.epsilon else ""
        least = (
            f"every method that is wrong with probability at most {self.delta:g}{asked} needs at least "
            f"{self.lower_bound:.4g} measurements on average"
        )
        if not self.epsilon:
            return least
        return f"{least}, and the best possible one at most {self.upper_bound:.4g} as delta falls"


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

    >>> problem = Problem([[3, 0, 1], [0, 2, 2], [1, 1, 3], [2, 2, 0], [0, 0, 4]])
    >>> found = limit(problem, [1, 0.5, 0.3])
    >>> round(found.characteristic_time, 4), found.allocation.round(3).tolist()
    (355.5556, [0.25, 0.5, 0.25])
    """
    check_delta(delta)
    check_epsilon(epsilon)
    if epsilon:
        return _near_best_limit(problem, means, delta, tolerance, epsilon)
    if isinstance(problem, Polytope):
        return _polytope_limit(problem, problem.as_means(means), delta, tolerance)
    if not problem.is_listed:
        return _oracle_limit(problem, problem.as_means(means), delta, max(tolerance, _ORACLE_TOLERANCE))
    best = problem.best(means)
    differences, gaps = differences_of(problem, problem.as_means(means), best)
    tied = tuple(int(k) for k in np.flatnonzero(gaps == 0) if k != best)
    rivals = np.flatnonzero(np.arange(problem.n_plans) != best)
    if problem.probes is not None:
        times = None
        if not tied:
            times = probe_times(problem.probes, dense(differences[rivals]) / gaps[rivals, None], tolerance)
        return _probe_limit(problem, best, tied, times, delta)
    noise = known_deviation(problem)
    if tied:
        return _no_limit(best, delta, problem.costs, np.flatnonzero(problem.relevant), tied)
    squares = scaled_squares(differences[rivals], gaps[rivals], noise)
    time = optimal_allocation(squares, tolerance=tolerance)
    cost, unit = _cost_allocation(squares, problem.costs, time, tolerance)
    return Limit(
        best,
        delta,
        *_times(time, 2.0),
        time.weights,
        *_times(cost, 2.0 * unit),
        cost.weights,
        int(problem.relevant.sum()),
        (),
        float(problem.costs[problem.relevant].sum()),
    )


def fewest(characteristic_time: float, once: float, delta: float) -> float:
    """The limit: what every method needs at this delta, if seeing each arm that matters once takes `once`."""
    check_delta(delta)
    return max(characteristic_time * binary_kl(delta), (1 - 2 * delta) * once)


def binary_kl(delta: float) -> float:
    """kl(delta, 1 - delta): the information that an answer wrong with probability delta needs, in nats.

    From delta = 1/2 on no information is needed.

    >>> round(binary_kl(0.05), 4), binary_kl(0.7)
    (2.65, 0.0)
    """
    return (1 - 2 * delta) * math.log((1 - delta) / delta) if delta < 0.5 else 0.0


def half_kl(delta: float) -> float:
    """kl(1/2, delta): what an answer needs that is as good as one of two worlds allows, in nats.

    >>> round(half_kl(0.05), 4), half_kl(0.5)
    (0.8304, 0.0)
    """
    return -0.5 * math.log(4 * delta * (1 - delta)) if delta < 0.5 else 0.0


def _no_limit(
    best: Answer, delta: float, costs: FloatArray, relevant: IntArray, tied: tuple[Answer, ...]
) -> Limit:
    nothing = np.zeros(len(costs))
    infinite = (math.inf, math.inf, math.inf)
    once = float(costs[relevant].sum())
    return Limit(best, delta, *infinite, nothing, *infinite, nothing, len(relevant), tied, once)


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
    uses = int(least_cover(probes, problem.relevant, np.ones(len(probes))) + _WHOLE)
    once = least_cover(probes, problem.relevant, probes.costs)
    if times is None:
        nothing, infinite = np.zeros(len(probes)), (math.inf,) * 3
        return Limit(best, delta, *infinite, nothing, *infinite, nothing, uses, tied, once)
    time, cost = times
    unit = float(probes.costs[0]) if cost is time else 1.0
    spending = cost.shares if cost is time else cost.shares / probes.costs
    return Limit(
        best,
        delta,
        *_bracket(time.lower, time.upper, 2.0),
        time.shares,
        *_bracket(cost.lower, cost.upper, 2.0 * unit),
        spending / spending.sum(),
        uses,
        (),
        once,
    )


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
    answer = plans.answer(best)
    if tied:
        return _no_limit(answer, delta, problem.costs, branch.free, tied)
    if find is not None:
        return _play_limit(answer, delta, rivals.bracket(variance, tolerance), (find, branch), problem)
    time, shares = rivals.bracket(variance, tolerance)
    cost, spending = time, shares
    if np.ptp(problem.costs) > 0:
        cost, spending = rivals.bracket(variance * problem.costs, tolerance)
        spending = spending / problem.costs
    unit = 1.0 if np.ptp(problem.costs) > 0 else float(problem.costs[0])
    return Limit(
        answer,
        delta,
        *(2 * time[0], 2 * time[0], 2 * time[1]),
        shares,
        *(2 * unit * cost[0], 2 * unit * cost[0], 2 * unit * cost[1]),
        spending / spending.sum(),
        len(branch.free),
        (),
        float(problem.costs[branch.free].sum()),
    )


def _play_limit(
    best: Answer,
    delta: float,
    found: tuple[tuple[float, float], FloatArray],
    play: tuple[FindPlay, Branch],
    problem: OracleProblem,
) -> Limit:
    """The limit where plans are played, all at one price; allocations say which plays read each arm."""
    (lower, upper), shares = found
    find, branch = play
    once, price = least_play_cover(find, branch.lower < branch.upper), float(problem.costs[0])
    return Limit(
        best,
        delta,
        *(2 * lower, 2 * lower, 2 * upper),
        shares,
        *(2 * price * lower, 2 * price * lower, 2 * price * upper),
        shares,
        int(once + _WHOLE),
        (),
        price * once,
    )


def _polytope_limit(problem: Polytope, means: FloatArray, delta: float, tolerance: float) -> Limit:
    """The limit over the edges at the best vertex; a bracket where there are too many to find them all."""
    noise = known_deviation(problem)
    at_best = VertexEdges(problem, means, noise)
    relevant = np.flatnonzero(at_best.differences.any(axis=0))
    tied = at_best.tied()
    if tied:
        none = _no_limit(at_best.best, delta, problem.costs, relevant, tied)
        return replace(none, suggested_epsilon=at_best.nearest_loss())
    rows, above = at_best.differences, at_best.above()
    squares = scaled_squares(rows, rows @ means, noise)
    time = optimal_allocation(squares, tolerance=tolerance)
    cost, unit = _cost_allocation(squares, problem.costs, time, tolerance)
    times, costs = _times(time, 2.0), _times(cost, 2.0 * unit)
    if not at_best.is_complete:  # what was found is a lower end; a whole basis is an upper one
        upper = cost_upper = math.inf
        if above is not None:
            more = scaled_squares(above, above @ means, noise)
            time = optimal_allocation(more, tolerance=tolerance)
            cost, unit = _cost_allocation(more, problem.costs, time, tolerance)
            upper, cost_upper = 2 * time.value, 2 * unit * cost.value
        times, costs = (times[1], times[1], upper), (costs[1], costs[1], cost_upper)
    return Limit(
        at_best.best,
        delta,
        *times,
        time.weights,
        *costs,
        cost.weights,
        len(relevant),
        (),
        float(problem.costs[relevant].sum()),
    )


def _near_best_limit(
    problem: Problem | OracleProblem, means: Numbers, delta: float, tolerance: float, epsilon: float
) -> Limit:
    """The bracket within epsilon, in measurements and in cost."""
    if not isinstance(problem, Polytope):
        raise ParameterError(
            "a limit within epsilon is known for the plans of a Polytope only, got "
            f"{type(problem).__name__}; leave epsilon out: finding the best plan itself never takes fewer",
            field="epsilon",
        )
    variance, costs = known_deviation(problem) ** 2, problem.costs
    near = NearBest(problem, problem.as_means(means), epsilon, QUICK if tolerance >= _ROUGH else CAREFUL)
    needed = near.has_to_be_measured()
    time = near.ends(variance)
    cost, spending, unit = time, time.shares, float(costs[0])
    if np.ptp(costs) > 0:
        cost, unit = near.ends(variance * costs), 1.0
        spending = cost.shares / costs
    # the best plan is within any epsilon: where epsilon is tiny, edges show more than boxes
    exact = _polytope_limit(problem, problem.as_means(means), delta, max(tolerance, _ORACLE_TOLERANCE))
    shares, spending = time.shares, spending / spending.sum()
    if exact.upper < time.upper:
        shares, spending = exact.allocation, exact.cost_allocation
    return Limit(
        tuple(problem.form.plan(near.best).tolist()),
        delta,
        *(time.lower, time.lower, min(time.upper, exact.upper)),
        shares,
        *(unit * cost.lower, unit * cost.lower, min(unit * cost.upper, exact.cost_upper)),
        spending,
        int(needed.sum()),
        (),
        float(costs[needed].sum()),
        epsilon=epsilon,
        pair_time=time.pairs,
        pair_cost=unit * cost.pairs,
    )


def _times(found: Allocation, factor: float) -> tuple[float, float, float]:
    """The middle of the bracket and its two ends."""
    return _bracket(found.lower, found.value, factor)


def _bracket(lower: float, upper: float, factor: float) -> tuple[float, float, float]:
    return factor * (lower + upper) / 2, factor * lower, factor * upper


def _cost_allocation(
    squares: Any, costs: FloatArray, time: Allocation, tolerance: float
) -> tuple[Allocation, float]:
    """The allocation of least cost and the price of its unit; equal costs need no second solution."""
    if (costs == costs[0]).all():
        return time, float(costs[0])
    return optimal_allocation(squares, tolerance=tolerance, costs=costs, start=time.dual), 1.0
