"""What is proved before there is an answer: the plans that the best one is among, in words."""

from __future__ import annotations

from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy, epsilon_of
from surepick.core.polytope import Polytope
from surepick.core.promise import Promise
from surepick.core.run import Standing
from surepick.core.wording import shortened

MOST_NAMED = 12  # plans; of longer lists the first are named
LONGEST_NAME = 60  # letters


def among(problem: AnyProblem, policy: Policy, standing: Standing) -> str | None:
    """Which plans the best one is among, in one sentence; None while none is ruled out, or nothing proved.

    >>> from surepick.core.problem import Problem
    >>> from surepick.policies import BetGapE
    >>> problem = Problem(
    ...     [[1, 0, 0], [0, 1, 0], [0, 0, 1]], plan_names=["road", "rail", "ship"], goal="largest"
    ... )
    >>> among(problem, BetGapE(), Standing(lead=0, remaining=(0, 2)))
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
    """In what the best plan of a polytope differs from the lead, if it does; None while that may be anything.

    >>> from surepick.policies import BetGapE
    >>> problem = Polytope(A_ub=[[1, 1, 1]], b_ub=[1.0], arms=["tea", "milk", "jam"], goal="largest")
    >>> _unless(problem, BetGapE(), Standing(lead=(1.0, 0.0, 0.0), unless=("milk",)))
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
    >>> print(also_good(problem, BetGapE(epsilon=0.3), Standing(lead=0, good=(0, 2))))
    also within 0.3 of the best: ship; all of them together wrong with probability at most 0.05
    """
    others = [plan for plan in standing.good if plan != standing.lead]
    if not others or not problem.is_listed or not Promise.read(policy.guarantee).proved:
        return None
    names = [shortened(problem.name_of(plan) or "", LONGEST_NAME) for plan in others[:MOST_NAMED]]
    listed = ", ".join(names) + (", ..." if len(others) > len(names) else "")
    chance = f"all of them together wrong with probability at most {policy.delta:g}"
    return f"also within {epsilon_of(policy):g} of the best: {listed}; {chance}"


def named(problem: AnyProblem, standing: Standing, most: int = MOST_NAMED) -> list[str]:
    """The names of the plans that are not ruled out, the lead first, at most so many of them.

    >>> from surepick.core.problem import Problem
    >>> named(
    ...     Problem([[1, 0], [0, 1]], plan_names=["road", "rail"], goal="largest"),
    ...     Standing(lead=1, remaining=(0, 1)),
    ... )
    ['rail', 'road']
    """
    plans = sorted(standing.remaining or (), key=lambda plan: plan != standing.lead)
    return [shortened(problem.name_of(plan) or "", LONGEST_NAME) for plan in plans[:most]]
