"""Cost ranging: how far each mean may move, alone, before another plan of a polytope is best."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Answer
from surepick.core.polytope import Polytope

_ROUNDING = 1e-9  # of the sizes of what is added up: a gap below this is none


def ranging(problem: Polytope, plan: Answer, means: FloatArray) -> FloatArray | None:
    """For every arm the interval of its mean in which the plan stays best, all others as given, (n_arms, 2).

    An edge e improves the value by e.means, so that the mean of arm s may move by t while e.means + t e_s
    stays on its side of 0. None where the plan is no vertex that is best under these means. At a degenerate
    vertex the edges of one basis are taken: there the plan may stay best a little further.

    >>> problem = Polytope(A_eq=[[1, 1]], b_eq=[1.0])
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


def named_ranging(
    problem: AnyProblem, plan: Answer | None, evidence: Evidence
) -> Mapping[str, tuple[float, float]] | None:
    """The same at the estimates, by the names of the arms; None where it is not known."""
    if plan is None or not isinstance(problem, Polytope) or not evidence.counts[problem.relevant].all():
        return None
    found = ranging(problem, plan, np.nan_to_num(evidence.means))
    if found is None:
        return None
    return {name: (low, high) for name, (low, high) in zip(problem.arm_names, found.tolist(), strict=True)}
