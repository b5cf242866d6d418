"""Plans as people say them: by what they do, not by their number."""

from __future__ import annotations

import re

import numpy as np

from surepick.core.evidence import Evidence, arm_means, mean_variance, pooled
from surepick.core.guarantee import Promise
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy, epsilon_of
from surepick.core.polytope import Polytope
from surepick.core.run import Answer, Standing
from surepick.core.wording import shortened

ROUNDING = 1e-9  # of a plan's largest entry; less of an arm is nothing
LONGEST = 60  # letters of what a plan does, within a sentence
_NUMBERED = re.compile(r"\w+ (\d+)")


def amounts(problem: AnyProblem, plan: Answer) -> dict[str, float]:
    """Return the amount of each arm that the plan uses.

    >>> from surepick.core.problem import Problem
    >>> amounts(Problem([[1, 0, 2.5], [0, 1, 0]], arms=["road", "rail", "sea"], goal="largest"), 0)
    {'road': 1.0, 'sea': 2.5}
    """
    vector = problem.vector(plan)
    used = np.flatnonzero(np.abs(vector) > ROUNDING * np.abs(vector).max(initial=0.0))
    return {problem.arm_names[s]: float(vector[s]) for s in used}


def listed(amounts: dict[str, float], length: int | None = None) -> str:
    """Arms with their amounts, which are left out where all are 1; cut off where it gets long.

    >>> listed({"Boston -> Portland": 12.2, "Salem -> Reno": 3.0}), listed({"road": 1.0, "sea": 1.0})
    ('Boston -> Portland 12.2, Salem -> Reno 3', 'road, sea')
    """
    plain = all(amount == 1 for amount in amounts.values())
    words = ", ".join(name if plain else f"{name} {amount:.4g}" for name, amount in amounts.items())
    return shortened(words or "nothing", len(words) + 9 if length is None else length)


def has_own_name(problem: AnyProblem, plan: Answer) -> bool:
    """Whether the plan was given a name, or its name says what it does; "plan 4" is only its number."""
    numbered = _NUMBERED.fullmatch(problem.name_of(plan) or "") if isinstance(plan, int) else None
    return numbered is None or int(numbered[1]) != plan


def called(problem: AnyProblem, plan: Answer | None, length: int = LONGEST) -> str | None:
    """The plan's name; where that is a number only, with what the plan does.

    >>> from surepick.core.problem import Problem
    >>> called(Problem([[1, 0], [0, 2]], arms=["road", "rail"], goal="largest"), 1)
    'plan 1 (rail 2)'
    """
    if plan is None:
        return None
    name = problem.name_of(plan)
    if name is not None and has_own_name(problem, plan):
        return name
    return f"{name} ({listed(amounts(problem, plan), length)})"


def value_of(problem: AnyProblem, plan: Answer, evidence: Evidence) -> tuple[float, float] | None:
    """The plan's value by the estimates and its standard deviation; None while an arm of it is unmeasured."""
    vector = problem.vector(plan)
    if problem.probes is not None:
        (value,), (error,) = pooled(problem, evidence).gaps(vector[None])
        return (float(value), float(error)) if np.isfinite(error) else None
    used = vector != 0
    variance = mean_variance(problem, evidence)
    if not np.isfinite(variance[used]).all():
        return None
    means = arm_means(problem, evidence)
    return float(vector[used] @ means[used]), float(np.sqrt(vector[used] ** 2 @ variance[used]))


def measured(value: tuple[float, float] | None, unit: str) -> str | None:
    """A value with its standard deviation and its unit.

    >>> measured((51.234, 0.512), "min"), measured(None, "min")
    ('51.23 ± 0.51 min', None)
    """
    return None if value is None else f"{value[0]:.4g} ± {value[1]:.2g}" + (f" {unit}" if unit else "")


MOST_NAMED = 12  # plans; of longer lists the first are named
LONGEST_NAME = 60  # letters


def among(problem: AnyProblem, policy: Policy, standing: Standing) -> str | None:
    """Which plans the best one is among, in one sentence; None while none is ruled out, or nothing proved.

    >>> from surepick.core.problem import Problem
    >>> from surepick.policies import BetGapE
    >>> problem = Problem(
    ...     [[1, 0, 0], [0, 1, 0], [0, 0, 1]], plan_names=["road", "rail", "ship"], goal="largest"
    ... )
    >>> among(problem, BetGapE(), Standing(leader=0, remaining=(0, 2)))
    'the best of 3 plans is one of these 2: road, ship; wrong with probability at most 0.05'
    """
    if not Promise.read(policy.guarantee).proved:
        return None
    if isinstance(problem, Polytope):
        return _unless(problem, policy, standing)
    if standing.remaining is None or not problem.is_listed:
        return None
    n, n_plans, epsilon = len(standing.remaining), problem.n_plans, epsilon_of(policy)
    if n == n_plans:
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
    """Return how the best plan of a polytope may differ from the lead; None while that may be anything.

    >>> from surepick.policies import BetGapE
    >>> problem = Polytope(A_ub=[[1, 1, 1]], b_ub=[1.0], arms=["tea", "milk", "jam"], goal="largest")
    >>> _unless(problem, BetGapE(), Standing(leader=(1.0, 0.0, 0.0), unless=("milk",)))
    'the lead is the best plan, or the best has another amount of milk; wrong with probability at most 0.05'
    """
    n = 0 if standing.unless is None else len(standing.unless)
    if not n or n >= problem.form.n_edges:
        return None
    names = [shortened(name, LONGEST_NAME) for name in (standing.unless or ())[:MOST_NAMED]]
    listed = names[0] if n == 1 else f"one of these {n:,}: {', '.join(names)}" + ", ..." * (n > len(names))
    return (
        f"the lead is the best plan, or the best has another amount of {listed}; wrong with probability at "
        f"most {policy.delta:g}"
    )


def also_good(problem: AnyProblem, policy: Policy, standing: Standing) -> str | None:
    """Which plans beside the lead are proved to be within epsilon of the best; None where there is none.

    >>> from surepick.core.problem import Problem
    >>> from surepick.policies import BetGapE
    >>> problem = Problem(
    ...     [[1, 0, 0], [0, 1, 0], [0, 0, 1]], plan_names=["road", "rail", "ship"], goal="largest"
    ... )
    >>> print(also_good(problem, BetGapE(epsilon=0.3), Standing(leader=0, good=(0, 2))))
    also within 0.3 of the best: ship; all of them together wrong with probability at most 0.05
    """
    others = [plan for plan in standing.good if plan != standing.leader]
    if not others or not problem.is_listed or not Promise.read(policy.guarantee).proved:
        return None
    names = [shortened(problem.name_of(plan) or "", LONGEST_NAME) for plan in others[:MOST_NAMED]]
    listed = ", ".join(names) + (", ..." if len(others) > len(names) else "")
    chance = f"all of them together wrong with probability at most {policy.delta:g}"
    return f"also within {epsilon_of(policy):g} of the best: {listed}; {chance}"


def named(problem: AnyProblem, standing: Standing, most: int = MOST_NAMED) -> list[str]:
    """The names of the plans that are not ruled out, the leader first, at most `most` of them.

    >>> from surepick.core.problem import Problem
    >>> named(
    ...     Problem([[1, 0], [0, 1]], plan_names=["road", "rail"], goal="largest"),
    ...     Standing(leader=1, remaining=(0, 1)),
    ... )
    ['rail', 'road']
    """
    plans = sorted(standing.remaining or (), key=lambda plan: plan != standing.leader)
    return [shortened(problem.name_of(plan) or "", LONGEST_NAME) for plan in plans[:most]]
