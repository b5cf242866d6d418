"""How good the lead probably is: estimates from the measurements, which prove nothing and never say so.

The means are drawn from N(estimate, R^2 / count), what a flat prior leaves open. In each such world some plan
is the best; `chance` is how often that is the lead, `expected_loss` how much it loses on average. They are
calibrated after `Pick` (docs/how-to/what-can-i-say-now.md); what a policy proves is its `risk`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, Plans
from surepick.core.evidence import Evidence
from surepick.core.gaps import arm_means, mean_variance
from surepick.core.oracle_problem import AnyProblem
from surepick.core.pooled import pooled
from surepick.core.run import Answer

N_WORLDS = 300
FEWEST_WORLDS = 40
MOST_WORK = 2e7  # worlds times entries of plans: fewer worlds where plans are many
SAME = 1e-12  # of the largest value: smaller losses are rounding


@dataclass(frozen=True)
class Estimate:
    """How good a plan probably is: the chance that it is the best, and how much it loses on average."""

    chance: float
    expected_loss: float


def estimate(problem: AnyProblem, evidence: Evidence, plan: Answer | None) -> Estimate | None:
    """The chance that this plan is the best, and what it loses on average if it is taken.

    None where plans are not listed, where an arm that matters has no measurement, and without a plan. The
    same evidence gives the same estimate.

    >>> from surepick.core.problem import Problem
    >>> seen = Evidence(np.array([4, 4]), np.array([6.0, 4.0]))
    >>> found = estimate(Problem([[1, 0], [0, 1]], goal="largest"), seen, 0)
    >>> abs(found.chance - 0.76) < 0.06, abs(found.expected_loss - 0.1) < 0.03
    (True, True)
    """
    if not problem.is_listed or not isinstance(plan, int):
        return None
    if problem.probes is None and not evidence.counts[problem.relevant].all():
        return None
    plans = problem.oriented
    n_entries = plans.size if isinstance(plans, np.ndarray) else plans.nnz
    n_worlds = int(np.clip(MOST_WORK / max(n_entries, 1), FEWEST_WORLDS, N_WORLDS))
    rng = np.random.default_rng(evidence.n_measurements)
    if problem.probes is not None:
        found = pooled(problem, evidence)
        if not all(
            np.isfinite(found.gaps(problem.sign * problem.vector(plan) - part)[1]).all()
            for part in _dense(plans)
        ):
            return None
        worlds = found.draw(n_worlds, rng)
    else:
        error = np.sqrt(np.where(evidence.counts > 0, mean_variance(problem, evidence), 0.0))
        worlds = arm_means(problem, evidence) + error * rng.standard_normal((n_worlds, problem.n_arms))
    values = np.asarray(plans @ worlds.T)  # (n_plans, n_worlds)
    best = values.max(axis=0)
    loss = best - values[plan]
    right = loss <= SAME * np.abs(values).max()
    return Estimate(float(right.mean()), float(np.where(right, 0.0, loss).mean()))


def _dense(plans: Plans, rows: int = 4096) -> Iterator[FloatArray]:
    for low in range(0, plans.shape[0], rows):
        part = plans[low : low + rows]
        yield part if isinstance(part, np.ndarray) else np.asarray(part.toarray())
