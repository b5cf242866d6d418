"""The proof that a vertex is best, as a certificate states it, and its check by arithmetic alone.

A proof names the variables that are not basic and, for each, how the plan moves when it leaves its bound by 1
(an edge), with the log of the evidence that this does not improve. With the rows of the polytope,
arithmetic alone shows that these edges span every plan: they solve the equations, and on the variables
that are not basic they are the identity, so that x - v = sum_j |x_j - v_j| e_j for every plan x.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytope import Polytope
from surepick.core.run import Answer
from surepick.core.standard_form import AT_LOWER, BASIC, ROUNDING, StandardForm

_MET = 1e-8  # how far an equation or a bound may be missed; amounts are near 1


def proof_of(
    problem: Polytope, at: IntArray, directions: FloatArray, log_evidence: FloatArray
) -> dict[str, Any]:
    """The proof as JSON values; `directions` and `log_evidence` are of the variables that are not basic."""
    names, edges = variable_names(problem), []
    moving = np.flatnonzero(at != BASIC).tolist()
    for j, direction, known in zip(moving, directions, log_evidence.tolist(), strict=True):
        if not direction.any():
            continue
        arms = direction[: problem.n_arms]
        edges.append(
            {
                "leaves": names[j],
                "bound": "lower" if at[j] == AT_LOWER else "upper",
                "moves": {problem.arm_names[s]: float(arms[s]) for s in np.flatnonzero(arms).tolist()},
                "log_evidence": known if arms.any() else None,  # a step that moves no arm changes no value
            }
        )
    return {"edges": edges}


def variable_names(problem: Polytope) -> list[str]:
    """The arms, and the slack of every row of A_ub."""
    n_slacks = len(problem.form.lower) - problem.n_arms
    return [*problem.arm_names, *(f"slack of row {k}" for k in range(n_slacks))]


def objections(problem: Polytope, plan: Answer, proof: Mapping[str, Any], delta: float) -> list[str]:
    """Return what is wrong with a proof that this plan is best; empty if it holds."""
    form, edges = problem.form, proof["edges"]
    n_arms, n_slacks = problem.n_arms, len(form.lower) - problem.n_arms
    numbers = {name: j for j, name in enumerate(variable_names(problem))}
    leaving = [numbers.get(edge["leaves"], -1) for edge in edges]
    if len({*leaving} - {-1}) != len(edges):
        return ["the edges are not those of a basis"]
    steps = np.zeros((len(edges), len(form.lower)))
    for k, edge in enumerate(edges):
        for arm, amount in edge["moves"].items():
            steps[k, problem.arm(arm)] = amount
    slacks = form.matrix[:n_slacks, :n_arms]
    steps[:, n_arms:] = -steps[:, :n_arms] @ slacks.T
    if not _spans(form, steps, leaving):
        return ["the edges are not those of a basis"]
    vertex = problem.vector(plan) / form.unit
    values = np.append(vertex, form.right[:n_slacks] - slacks @ vertex)
    is_low = np.array([edge["bound"] == "lower" for edge in edges])
    ends = np.where(is_low, form.lower[leaving], form.upper[leaving])
    unit_steps = np.diag(np.where(is_low, 1.0, -1.0))
    weak = [
        edge["leaves"]
        for edge, step in zip(edges, steps[:, :n_arms], strict=True)
        if edge["moves"] and not _is_shown(problem, step, edge["log_evidence"], delta)
    ]
    found = {
        "the plan does not keep the rows": np.abs(form.matrix @ values - form.right),
        "the plan does not keep the bounds": np.maximum(form.lower - values, values - form.upper),
        "a variable that leaves its bound is not at it": np.abs(values[leaving] - ends),
        "an edge leaves the rows": np.abs(steps @ form.matrix.T),
        "an edge moves a variable that should stay at its bound": np.abs(steps[:, leaving] - unit_steps),
    }
    wrong = [words for words, missed in found.items() if not missed.max(initial=0.0) <= _MET]
    return [*wrong, *(f"the evidence on the edge of {name!r} is not enough" for name in weak[:1])]


def _is_shown(problem: Polytope, step: FloatArray, log_evidence: float | None, delta: float) -> bool:
    """Return whether an edge does not improve: by known means alone, or by the evidence."""
    if not (step[~problem.is_known]).any():
        gains = problem.sign * step * problem.known_means
        return float(gains.sum()) <= ROUNDING * float(np.abs(gains).sum())
    return (log_evidence or 0.0) >= -math.log(delta)


def _spans(form: StandardForm, steps: FloatArray, leaving: list[int]) -> bool:
    """Return whether the columns of A that neither leave a bound nor are fixed have full column rank.

    Then A w = 0 forces w = 0 for w = x - v - sum_j |x_j - v_j| e_j, so every plan x is v plus non-negative
    steps along the edges. w is 0 on the variables that leave a bound, and on fixed ones that no edge moves.
    """
    still = (form.upper <= form.lower) & ~steps.any(axis=0)
    still[leaving] = True
    others = form.matrix[:, ~still]
    rank = int(np.linalg.matrix_rank(others)) if others.size else 0
    return rank == int(others.shape[1])
