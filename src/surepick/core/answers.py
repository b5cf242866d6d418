"""Facts about an answer: what the plan does, which plans are left beside it, and which means keep it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from surepick.core.arrays import FloatArray, as_dense
from surepick.core.evidence import Evidence, estimates
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy
from surepick.core.polytopes.polytope import Polytope
from surepick.core.run import Answer, Standing
from surepick.core.wording import shortened

_DUST = 1e-9  # of a plan's largest entry; less of an arm is nothing
LONGEST_NAME = 60  # letters of a plan's name within a sentence
_SECONDS = 2.0  # for finding a whole plan near an average
_NUMBERED = re.compile(r"\w+ (\d+)")


def amounts(problem: AnyProblem, plan: Answer) -> dict[str, float]:
    """Return the amount of each arm that the plan uses.

    >>> from surepick.core.problem import Problem
    >>> amounts(Problem([[1, 0, 2.5], [0, 1, 0]], arms=["road", "rail", "sea"], goal="largest"), 0)
    {'road': 1.0, 'sea': 2.5}
    """
    vector = problem.vector(plan)
    used = np.flatnonzero(np.abs(vector) > _DUST * np.abs(vector).max(initial=0.0))
    return {problem.arm_names[s]: float(f"{vector[s]:.12g}") for s in used}


def whole_plan(problem: AnyProblem, plan: Answer | None) -> tuple[float, ...] | None:
    """Return the plan of whole amounts nearest to an average of plans, which can be shipped as it is.

    None where the plan is whole already, where rows or bounds of the polytope are not whole numbers (a whole
    plan need not exist there), and for plans of other problems. What is proved of the average is not proved
    of the whole plan: `between` estimates what it loses.

    >>> problem = Polytope(A_eq=[[1, 1, 1]], b_eq=[4], goal="largest")
    >>> whole_plan(problem, (1.2, 2.8, 0.0))
    (1.0, 3.0, 0.0)
    """
    if not isinstance(problem, Polytope) or plan is None:
        return None
    rows = problem.rows
    near = problem.vector(plan)
    n = problem.n_arms
    bounds = np.concatenate([rows.lower, rows.upper])
    numbers = np.concatenate([rows.a_ub.ravel(), rows.a_eq.ravel(), rows.b_ub, rows.b_eq, bounds])
    finite = numbers[np.isfinite(numbers)]
    if (finite != np.rint(finite)).any() or np.abs(near - np.rint(near)).max() <= _DUST * np.abs(near).max():
        return None
    from scipy.optimize import Bounds, LinearConstraint, milp

    # minimise the sum of t >= |x - near|, where x are whole amounts that keep the rows
    eye = np.eye(n)
    matrix = np.vstack([rows.a_ub, rows.a_eq])
    keep = np.hstack([matrix, np.zeros_like(matrix)])
    least = np.concatenate([np.full(len(rows.b_ub), -np.inf), rows.b_eq])
    found = milp(
        np.repeat([0.0, 1.0], n),
        integrality=np.repeat([1, 0], n),
        bounds=Bounds(np.append(rows.lower, np.zeros(n)), np.append(rows.upper, np.full(n, np.inf))),
        constraints=[
            LinearConstraint(keep, least, np.concatenate([rows.b_ub, rows.b_eq])),
            LinearConstraint(np.hstack([eye, -eye]), -np.inf, near),
            LinearConstraint(np.hstack([eye, eye]), near, np.inf),
        ],
        options={"time_limit": _SECONDS},
    )
    return None if found.x is None else tuple((np.rint(found.x[:n]) + 0.0).tolist())


def listed(amounts: dict[str, float], length: int | None = None) -> str:
    """Return arms with their amounts, which are left out where all are 1; cut off where it gets long."""
    plain = all(amount == 1 for amount in amounts.values())
    words = ", ".join(name if plain else f"{name} {amount:.4g}" for name, amount in amounts.items())
    return shortened(words or "nothing", len(words) + 9 if length is None else length)


def called(problem: AnyProblem, plan: Answer | None, length: int = LONGEST_NAME) -> str | None:
    """Return the plan's name; where that is a number only, with what the plan does.

    >>> from surepick.core.problem import Problem
    >>> called(Problem([[1, 0], [0, 2]], arms=["road", "rail"], goal="largest"), 1)
    'plan 1 (rail 2)'
    """
    if plan is None:
        return None
    name = problem.name_of(plan)
    numbered = _NUMBERED.fullmatch(name or "") if isinstance(plan, int) else None
    if name is not None and not (numbered and int(numbered[1]) == plan):
        return name
    return f"{name} ({listed(amounts(problem, plan), length)})"


def value_of(problem: AnyProblem, plan: Answer, evidence: Evidence) -> tuple[float, float] | None:
    """Return the plan's estimated value and its standard deviation; None while an arm of it is unmeasured."""
    (value,), (error,) = estimates(problem, evidence).gaps(problem.vector(plan)[None])
    return (float(value), float(error)) if np.isfinite(error) else None


def measured(value: tuple[float, float] | None, unit: str) -> str | None:
    """Return a value with its standard deviation and its unit: "51.23 ± 0.51 min"."""
    return None if value is None else f"{value[0]:.4g} ± {value[1]:.2g}" + (f" {unit}" if unit else "")


MOST_NAMED = 12  # plans; of longer lists the first are named


def among(problem: AnyProblem, policy: Policy, standing: Standing) -> str | None:
    """Return in one sentence which plans the best one is among; None while nothing is proved of that.

    >>> from surepick.core.problem import Problem
    >>> from surepick.policies import BetGapE
    >>> problem = Problem(
    ...     [[1, 0, 0], [0, 1, 0], [0, 0, 1]], plan_names=["road", "rail", "ship"], goal="largest"
    ... )
    >>> among(problem, BetGapE(), Standing(leader=0, remaining=(0, 2)))
    'the best of 3 plans is one of these 2: road, ship; wrong with probability at most 0.05'
    """
    if not policy.guarantee.proved:
        return None
    if isinstance(problem, Polytope):
        return _unless(problem, policy, standing)
    if standing.remaining is None or not problem.is_listed:
        return None
    n, n_plans, epsilon = len(standing.remaining), problem.n_plans, policy.epsilon
    if n in (0, n_plans):
        return None
    listing = problem.about.listing
    plans = f"{n_plans:,} plans" if listing is None or listing.is_complete else listing.words
    chance = f"wrong with probability at most {policy.delta:g}"
    names = named(problem, standing)
    if n == 1:
        what = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
        return f"{names[0]} is {what} of {plans}; {chance}"
    listed = ", ".join(names) + (", ..." if n > len(names) else "")
    if epsilon == 0:
        return f"the best of {plans} is one of these {n:,}: {listed}; {chance}"
    return f"of {plans} one of these {n:,} is within {epsilon:g} of the best: {listed}; {chance}"


def _unless(problem: Polytope, policy: Policy, standing: Standing) -> str | None:
    """Return how the best plan of a polytope may differ from the leader; None while that may be anything."""
    n = 0 if standing.unless is None else len(standing.unless)
    if not n or n >= problem.form.n_edges:
        return None
    names = [shortened(name, LONGEST_NAME) for name in (standing.unless or ())[:MOST_NAMED]]
    listed = names[0] if n == 1 else f"one of these {n:,}: {', '.join(names)}" + ", ..." * (n > len(names))
    return (
        f"the leader is the best plan, or the best has another amount of {listed}; wrong with probability at "
        f"most {policy.delta:g}"
    )


def also_good(problem: AnyProblem, policy: Policy, standing: Standing) -> str | None:
    """Return which plans beside the leader are proved to be within epsilon of the best; None if none is."""
    others = [plan for plan in standing.good if plan != standing.leader]
    if not others or not problem.is_listed or not policy.guarantee.proved:
        return None
    names = [shortened(problem.name_of(plan) or "", LONGEST_NAME) for plan in others[:MOST_NAMED]]
    listed = ", ".join(names) + (", ..." if len(others) > len(names) else "")
    chance = f"all of them together wrong with probability at most {policy.delta:g}"
    return f"also within {policy.epsilon:g} of the best: {listed}; {chance}"


def named(problem: AnyProblem, standing: Standing, most: int = MOST_NAMED) -> list[str]:
    """Return the names of the plans that are not ruled out, the leader first, at most `most` of them."""
    plans = sorted(standing.remaining or (), key=lambda plan: plan != standing.leader)
    return [shortened(problem.name_of(plan) or "", LONGEST_NAME) for plan in plans[:most]]


_MOST_ENTRIES = 5_000_000  # of a list of plans whose ranging is computed
_ROUNDING = 1e-9  # of the sizes of what is added up: a gap below this is none


def ranging(problem: AnyProblem, plan: Answer, means: FloatArray) -> FloatArray | None:
    """Return for each arm the interval of its mean in which the plan stays best, others fixed, (n_arms, 2).

    Each contrast c (the plan minus another one, or minus an edge's step) has the gap c.means, and the mean of
    arm s may move by t while c.means + t c_s stays on its side of 0. None where the plan is not best under
    these means, and where plans are behind an oracle or too many. At a degenerate vertex the edges of one
    basis are taken: there the plan may stay best a little further.

    >>> problem = Polytope(A_eq=[[1, 1]], b_eq=[1.0], goal="largest")
    >>> ranging(problem, (1.0, 0.0), np.array([3.0, 2.0])).tolist()
    [[2.0, inf], [-inf, 3.0]]
    """
    if isinstance(problem, Polytope):
        form, vertex = problem.form, problem.vector(plan)
        basis, at = form.basis_near(vertex)
        if not np.allclose(form.plan(form.vertex(basis, at)), vertex, rtol=0, atol=1e-9 * form.unit):
            return None  # an average of plans is at no vertex, and other plans are as good
        contrasts = -problem.sign * form.directions(basis, at)[:, : problem.n_arms]
    elif problem.is_listed and problem.n_plans * problem.n_arms <= _MOST_ENTRIES:
        plans = as_dense(problem.oriented)
        contrasts = plans[plan] - plans  # type: ignore[index]
    else:
        return None
    gaps, sizes = contrasts @ means, np.abs(contrasts) @ np.abs(means)
    if (gaps < -_ROUNDING * sizes).any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        moves = -np.maximum(gaps, 0.0)[:, None] / contrasts
    down = np.where(contrasts > 0, moves, -np.inf).max(axis=0, initial=-np.inf)
    up = np.where(contrasts < 0, moves, np.inf).min(axis=0, initial=np.inf)
    return np.column_stack([means + down, means + up])


def named_ranging(
    problem: AnyProblem, plan: Answer | None, evidence: Evidence
) -> Mapping[str, tuple[float, float]] | None:
    """Return the intervals of `ranging` at the estimates, by arm name; None where they are not known."""
    if plan is None or problem.probes is not None or not evidence.counts[problem.relevant].all():
        return None
    found = ranging(problem, plan, estimates(problem, evidence).means)
    if found is None:
        return None
    return {name: (low, high) for name, (low, high) in zip(problem.arm_names, found.tolist(), strict=True)}
