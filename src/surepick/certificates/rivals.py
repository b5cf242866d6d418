"""The plans closest to the answer, as a certificate states them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence, arm_means, behind_by, mean_variance
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.plan_sets import plan_set
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.core.run import Answer
from surepick.errors import ProblemError

MOST_RIVALS = 100  # the closest ones; the others are further away


@dataclass(frozen=True)
class Rival:
    """How far a plan is behind the answer, by the measurements that were used.

    `gap` is the estimated difference in value, larger is further behind; `error` is its standard deviation
    under the noise scale. They show the evidence; the guarantee is the certificate's `guarantee`.
    """

    plan: Answer
    plan_name: str
    gap: float
    error: float


def rivals_of(problem: Problem, evidence: Evidence, lead: int) -> tuple[Rival, ...]:
    """Every other plan, the closest first: by its gap to the leader in units of the gap's error."""
    gap, error = behind_by(problem, lead, evidence)
    error = np.where(np.isfinite(error), error, 0.0)  # infinite where an arm was not measured
    distance = np.divide(gap, error, out=np.full(len(gap), np.inf), where=error > 0)
    distance[lead] = np.inf
    order = np.argsort(distance, kind="stable")
    names = problem.plan_names
    return tuple(Rival(int(k), names[k], float(gap[k]), float(error[k])) for k in order if k != lead)


def unlisted_rivals(problem: OracleProblem, evidence: Evidence, lead: Answer) -> tuple[Rival, ...]:
    """Return, for each arm, the best-looking plan that differs from the leader there; the closest first.

    >>> from surepick.problems import top_k_family
    >>> problem = top_k_family(["tea", "coffee", "cocoa"], 2, goal="largest").oracle_problem()
    >>> evidence = Evidence(np.array([9, 9, 9]), np.array([27.0, 18.0, 9.0]))
    >>> [(rival.plan_name, rival.gap) for rival in unlisted_rivals(problem, evidence, (1.0, 1.0, 0.0))]
    [('tea + cocoa', 1.0), ('coffee + cocoa', 2.0)]
    """
    means, variance = _estimates(problem, evidence)
    sign = -1.0 if problem.minimize else 1.0
    found = []
    for plan in dict.fromkeys(_best_apart(problem, means, sign * problem.vector(lead))):
        ahead = problem.vector(lead) - problem.vector(plan)
        gap, error = sign * float(ahead @ means), float(np.sqrt(ahead**2 @ variance))
        found.append(Rival(plan, problem.name_of(plan) or "", gap, error))
    return tuple(sorted(found, key=lambda rival: rival.gap / rival.error if rival.error > 0 else np.inf))


def _best_apart(problem: OracleProblem, means: FloatArray, lead: FloatArray) -> Iterator[tuple[float, ...]]:
    """Yield, for each arm, the best plans under these means with less, and with more, of it than the leader.

    For a polytope, yield the neighbours of the leader: if none of them is better, no plan is.
    """
    if isinstance(problem, Polytope):
        from surepick.policies.polytopes.edges import neighbours  # imports Numba, which takes half a second

        vertex = problem.sign * lead
        yield from (tuple(plan.tolist()) for plan in neighbours(problem, vertex))
        return
    plans = plan_set(problem)
    everything = plans.everything()
    try:
        for arm, value in enumerate(lead.tolist()):
            for part in everything.apart(arm, value, plans.step):
                plan = plans.best(means, part)
                if plan is not None:
                    answer = plans.answer(plan)
                    assert isinstance(answer, tuple)
                    yield answer
    except ProblemError:
        return  # plans of a kind that cannot be asked for by branches


def _estimates(problem: AnyProblem, evidence: Evidence) -> tuple[FloatArray, FloatArray]:
    """Mean of each arm and its variance; zero for an arm that was not measured."""
    variance = mean_variance(problem, evidence)
    return arm_means(problem, evidence), np.where(np.isfinite(variance), variance, 0.0)
