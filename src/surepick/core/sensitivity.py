"""Sensitivity: which means keep the answer, one arm at a time or all together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence, arm_means, behind, mean_variance, noise_variance, squares_of
from surepick.core.oracle_problem import AnyProblem
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.core.run import Answer
from surepick.core.wording import counted

_EASIER = 10.0  # times as many measurements as half of the neighbours take make a call close
_SMALL_CHANGE = 1e-12  # of the sizes of what is added up: a loss below this is none
_LEAST = 1e-9  # amounts are near 1: steps below this lead nowhere
_ERRORS = 2.0  # standard errors within which an estimate may be nothing
_DIGITS = 4  # of amounts


@dataclass(frozen=True)
class CloseCall:
    """What another plan does instead, what it loses, and the epsilon that would end the question."""

    more: str  # what it has more of than the plan
    less: str
    loss: float  # against the plan, by the means at hand
    error: float  # standard error of the loss; 0 where the means are given
    epsilon: float | None  # None where no epsilon stands out

    @property
    def is_tie(self) -> bool:
        """Whether the two are the same by means that are given."""
        return self.loss == 0.0 and self.error == 0.0

    @property
    def change(self) -> str:
        """What the other plan does differently, in words."""
        return f"{self.more} instead of {self.less}"

    def sentence(self, unit: str = "") -> str:
        """In words.

        >>> CloseCall("4 x rail", "4 x road", 0.0, 0.0, 2.1).sentence()
        '4 x rail instead of 4 x road changes nothing: a tie, which epsilon = 2.1 would end'
        >>> CloseCall("rail", "road", 0.3, 0.9, 2.1).sentence("h")
        'rail instead of road loses 0.3 ± 0.9 h by the estimates, maybe nothing; epsilon = 2.1 would end it'
        """
        unit, change = f" {unit}" if unit else "", self.change
        end = "" if self.epsilon is None else f"epsilon = {_plain(self.epsilon)} would end"
        if self.is_tie:
            return f"{change} changes nothing: a tie{end and f', which {end}'}"
        said = f"{change} loses {self.loss:.3g}{unit}"
        if self.error:
            said = f"{change} loses {self.loss:.3g} ± {self.error:.2g}{unit} by the estimates"
            said += ", maybe nothing" * (abs(self.loss) <= _ERRORS * self.error)
        return f"{said}{end and f'; {end} it'}"


def _plain(number: float) -> str:
    """Two digits, without powers of ten where that can be."""
    return f"{float(f'{number:.2g}'):,g}"


def call_data(call: CloseCall | None) -> dict[str, Any] | None:
    """Return this call as JSON values."""
    return None if call is None else {"change": call.change, "loss": call.loss, "epsilon": call.epsilon}


def close_call(
    problem: Polytope, plan: Answer, neighbours: FloatArray, means: FloatArray
) -> CloseCall | None:
    """The neighbour of the best plan that any method needs most measurements for, under means that are given.

    The epsilon is what the nearest of the easier half of its neighbours loses; None where the closest one
    takes less than ten times what that half does.
    """
    if not len(neighbours):
        return None
    away = neighbours - problem.vector(plan)
    loss, sizes = -problem.sign * away @ means, np.abs(away) @ np.abs(means)
    loss = np.where(np.abs(loss) <= _SMALL_CHANGE * sizes, 0.0, np.maximum(loss, 0.0))
    scale = np.ones(len(means)) if problem.noise_scale is None else problem.noise_scale
    with np.errstate(divide="ignore"):
        need = (np.abs(away) @ scale / loss) ** 2
    k = int(np.argmax(need))
    middle = float(np.sort(need)[(len(need) - 1) // 2])
    easy = loss[(need <= middle) & (loss > loss[k])] if need[k] >= _EASIER * middle else loss[:0]
    epsilon = float(f"{easy.min():.2g}") if len(easy) else None
    return _named(problem, away[k], float(loss[k]), 0.0, epsilon)


def estimated_call(problem: AnyProblem, plan: Answer | None, evidence: Evidence) -> CloseCall | None:
    """The neighbour of a vertex that the estimates tell worst from it; None where that is not known.

    The epsilon is the most that the two differ by, up to two standard errors.
    """
    if not isinstance(problem, Polytope) or plan is None or problem.noise_scale is None:
        return None
    if not evidence.counts[problem.relevant].all():
        return None
    neighbours = _neighbours(problem, problem.vector(plan))
    if not len(neighbours):
        return None
    away = neighbours - problem.vector(plan)
    variance = np.where(evidence.counts > 0, mean_variance(problem, evidence), 0.0)
    loss, error = -problem.sign * away @ arm_means(problem, evidence), np.sqrt(away**2 @ variance)
    k = int(np.argmin(loss / np.maximum(error, 1e-300)))
    most = abs(float(loss[k])) + _ERRORS * float(error[k])
    return _named(problem, away[k], float(loss[k]), float(error[k]), most)


def _named(
    problem: Polytope, away: FloatArray, loss: float, error: float, epsilon: float | None
) -> CloseCall:
    digits = _DIGITS - 1 - math.floor(math.log10(max(float(np.abs(away).max()), 1e-300)))
    more = np.round(away, digits) + 0.0
    names = problem.arm_names
    gained, lost = counted(names, np.maximum(more, 0.0)), counted(names, np.maximum(-more, 0.0))
    return CloseCall(gained, lost, loss, error, epsilon)


def _neighbours(problem: Polytope, vertex: FloatArray) -> FloatArray:
    """The vertices next to this one by the edges of one basis; none where it is no vertex."""
    form = problem.form
    basis, at = form.basis_near(vertex)
    values = form.vertex(basis, at)
    if not np.allclose(form.plan(values), vertex, rtol=0, atol=1e-9 * form.unit):
        return np.zeros((0, problem.n_arms))
    steps = form.directions(basis, at)
    room = np.where(steps > 0, form.upper - values, values - form.lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(np.abs(steps) > _LEAST, room / np.abs(steps), np.inf).min(axis=1, initial=np.inf)
    found = [form.plan(values + t * step) for t, step in zip(far, steps, strict=True) if _LEAST < t < np.inf]
    return np.array(found).reshape(len(found), problem.n_arms)


_MOST_ENTRIES = 5_000_000  # of a list of plans whose ranging is computed
_ROUNDING = 1e-9  # of the sizes of what is added up: a gap below this is none


def ranging(problem: Polytope, plan: Answer, means: FloatArray) -> FloatArray | None:
    """Return for each arm the interval of its mean in which the plan stays best, others fixed, (n_arms, 2).

    An edge e improves the value by e.means, so that the mean of arm s may move by t while e.means + t e_s
    stays on its side of 0. None where the plan is no vertex that is best under these means. At a degenerate
    vertex the edges of one basis are taken: there the plan may stay best a little further.

    >>> problem = Polytope(A_eq=[[1, 1]], b_eq=[1.0], goal="largest")
    >>> ranging(problem, (1.0, 0.0), np.array([3.0, 2.0])).tolist()
    [[2.0, inf], [-inf, 3.0]]
    """
    form, vertex = problem.form, problem.vector(plan)
    basis, at = form.basis_near(vertex)
    if not np.allclose(form.plan(form.vertex(basis, at)), vertex, rtol=0, atol=1e-9 * form.unit):
        return None
    edges = problem.sign * form.directions(basis, at)[:, : form.n_arms]
    gaps, sizes = -edges @ means, np.abs(edges) @ np.abs(means)
    if (gaps < -_ROUNDING * sizes).any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = np.maximum(gaps, 0.0)[:, None] / edges
    up = np.where(edges > 0, moves, np.inf).min(axis=0, initial=np.inf)
    down = np.where(edges < 0, moves, -np.inf).max(axis=0, initial=-np.inf)
    return np.column_stack([means + down, means + up])


def listed_ranging(problem: Problem, plan: int, means: FloatArray) -> FloatArray | None:
    """Return `ranging` for a plan of a list: its gap to every other plan keeps its sign.

    None where another plan is better under these means, and where plans are too many.

    >>> problem = Problem([[1, 0], [0, 1]], goal="smallest")
    >>> listed_ranging(problem, 1, np.array([3.0, 2.0])).tolist()
    [[2.0, inf], [-inf, 3.0]]
    """
    plans = problem.oriented
    if problem.n_plans * problem.n_arms > _MOST_ENTRIES:
        return None
    dense = plans if isinstance(plans, np.ndarray) else plans.toarray()
    ahead = dense[plan] - dense  # (n_plans, n_arms)
    gaps, sizes = ahead @ means, np.abs(ahead) @ np.abs(means)
    if (gaps < -_ROUNDING * sizes).any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = -np.maximum(gaps, 0.0)[:, None] / ahead
    down = np.where(ahead > 0, moves, -np.inf).max(axis=0)
    up = np.where(ahead < 0, moves, np.inf).min(axis=0)
    return np.column_stack([means + down, means + up])


def named_ranging(
    problem: AnyProblem, plan: Answer | None, evidence: Evidence
) -> Mapping[str, tuple[float, float]] | None:
    """Return the intervals of `ranging` at the estimates, by arm name; None where they are not known."""
    if plan is None or problem.probes is not None or not evidence.counts[problem.relevant].all():
        return None
    means = arm_means(problem, evidence)
    if isinstance(problem, Polytope):
        found = ranging(problem, plan, means)
    elif problem.is_listed and isinstance(plan, int):
        found = listed_ranging(problem, plan, means)
    else:
        return None
    if found is None:
        return None
    return {name: (low, high) for name, (low, high) in zip(problem.arm_names, found.tolist(), strict=True)}


_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


def worth_of_one(
    problem: AnyProblem, evidence: Evidence, plan: Answer | None, epsilon: float = 0.0
) -> FloatArray | None:
    """Return for each arm how much one more measurement reduces the plan's expected loss, over all rivals.

    With T_s measurements of arm s the gap to rival j has variance v_j = sum_s y_s^2 R_s^2 / T_s, and what is
    lost to j on average is sqrt(v_j) psi(z_j), z_j = gap_j / sqrt(v_j), whose derivative by v_j is
    phi(z_j) / (2 sqrt(v_j)). None where plans are not listed or an arm that matters has no measurement.

    >>> from surepick.core.problem import Problem
    >>> seen = Evidence(np.array([4, 4, 2]), np.array([4.0, 3.2, 0.4]))
    >>> worth = worth_of_one(Problem(np.eye(3), goal="largest"), seen, 0)
    >>> (worth / worth.max()).round(3).tolist()
    [0.841, 0.541, 1.0]
    """
    if not problem.is_listed or not isinstance(plan, int) or problem.probes is not None:
        return None
    if not evidence.counts[problem.relevant].all():
        return None
    plans, row = problem.oriented, problem.vector(plan) * problem.sign
    squares = squares_of(plans)
    variance = np.where(evidence.counts > 0, mean_variance(problem, evidence), 0.0)
    gap, error = behind(problem, plan, arm_means(problem, evidence), variance, squares)
    error[plan] = 0.0
    differs = error > 0
    error = np.where(differs, error, 1.0)
    density = np.exp(-0.5 * ((gap + epsilon) / error) ** 2) / _ROOT_TWO_PI
    weight = np.where(differs, density / (2.0 * error), 0.0)
    across = float(weight.sum()) * row**2 - 2.0 * row * np.asarray(weight @ plans)
    moved = np.maximum(across + np.asarray(weight @ squares), 0.0)  # sum_j w_j y_js^2, multiplied out
    n = np.maximum(evidence.counts, 1)
    return np.asarray(np.where(problem.relevant, noise_variance(problem) * moved / (n * (n + 1.0)), 0.0))


@dataclass(frozen=True)
class Turn:
    """What would have to be true for another plan to win: one mean beyond `at`, the rest as estimated.

    Of all arms the one that has to move by the fewest of its standard errors.
    """

    rival: Answer
    rival_name: str
    arm: int
    arm_name: str
    above: bool  # whether the mean would have to be above `at`, or below
    at: float
    mean: float
    error: float

    @property
    def n_errors(self) -> float:
        """How many standard errors that is away."""
        return abs(self.at - self.mean) / self.error

    def sentence(self, unit: str = "") -> str:
        """In words.

        >>> Turn(1, "by rail", 0, "road", True, 23.0, 20.0, 1.5).sentence("min")
        '“by rail” would win if road were above 23 min: it is estimated at 20 ± 1.5, 2 errors from there'
        """
        side, unit = "above" if self.above else "below", f" {unit}" if unit else ""
        away = f"{self.n_errors:.2g} {'error' if f'{self.n_errors:.2g}' == '1' else 'errors'} from there"
        return (
            f"“{self.rival_name}” would win if {self.arm_name} were {side} {self.at:.4g}{unit}: it is "
            f"estimated at {self.mean:.4g} ± {self.error:.2g}, {away}"
        )


def turn(problem: AnyProblem, evidence: Evidence, lead: Answer | None, rival: Answer | None) -> Turn | None:
    """Return the change of one arm that would make this rival win; None where that is not known.

    >>> from surepick.core.problem import Problem
    >>> problem = Problem(
    ...     [[1, 0], [0, 1]], arms=["tea", "coffee"], plan_names=["A", "B"], noise=1, goal="largest"
    ... )
    >>> found = turn(problem, Evidence(np.array([4, 16]), np.array([12.0, 32.0])), 0, 1)
    >>> found.arm_name, found.above, found.at
    ('tea', False, 2.0)
    """
    if lead is None or rival is None or lead == rival or problem.noise_scale is None:
        return None
    if problem.probes is not None:  # it is about single arms
        return None
    ahead = problem.sign * (problem.vector(lead) - problem.vector(rival))
    means, variance = arm_means(problem, evidence), mean_variance(problem, evidence)
    differs = np.flatnonzero((ahead != 0) & ~problem.is_known)
    if not len(differs) or not np.isfinite(variance[differs]).all():
        return None
    move = -float(ahead @ means) / ahead[differs]
    nearest = int(np.argmin(np.abs(move) / np.sqrt(variance[differs])))
    arm, by = int(differs[nearest]), float(move[nearest])
    name, error = problem.name_of(rival) or "", math.sqrt(float(variance[arm]))
    at, mean = float(means[arm]) + by, float(means[arm])
    return Turn(rival, name, arm, problem.arm_names[arm], by > 0, at, mean, error)
