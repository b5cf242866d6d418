"""Cost ranging: how far each mean may move, alone, before another plan is best."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence
from surepick.core.gaps import arm_means
from surepick.core.oracle_problem import AnyProblem
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.core.run import Answer

_MOST_ENTRIES = 5_000_000  # of a list of plans whose ranging is computed
_ROUNDING = 1e-9  # of the sizes of what is added up: a gap below this is none


def ranging(problem: Polytope, plan: Answer, means: FloatArray) -> FloatArray | None:
    """For every arm the interval of its mean in which the plan stays best, all others as given, (n_arms, 2).

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
    """The same for a plan of a list: its gap to every other plan stays on its side of 0.

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
    """The same at the estimates, by the names of the arms; None where it is not known."""
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
