"""What was measured, arm by arm, beside what would have been best to measure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.design import optimal_allocation
from surepick.oracle import OracleProblem
from surepick.problem import BoolArray, FloatArray
from surepick.views.look import Look, noise_variance

MOST_RIVALS = 256  # that an allocation looks at: the closest; the others are satisfied by it
TOLERANCE = 0.02  # of the allocation; the estimates are rougher


@dataclass(frozen=True)
class Arm:
    """One arm: what is known of it, how often it was measured, and how often it should have been."""

    arm: int
    name: str
    mean: float | None  # None: not measured yet
    error: float | None  # the standard deviation of the mean, under the noise scale
    count: int
    share: float  # of all measurements
    best_share: float | None  # if the estimates were right
    best_count: float | None  # that share of all measurements
    missing: int  # measurements that the open round waits for
    cost: float  # of one measurement
    noise_scale: float | None
    in_lead: float  # what the lead has of it
    matters: bool  # whether plans differ in it


@dataclass(frozen=True)
class Arms:
    """The arms from place `first` on, the most measured first; `n_arms` is how many there are in all."""

    n_arms: int
    n_matter: int
    n_measurements: int
    cost: float
    by_cost: bool  # whether the best shares are those of the least cost, because prices differ
    first: int
    rows: tuple[Arm, ...]


def arms(look: Look, *, first: int = 0, n: int | None = None) -> Arms:
    """The arms, `n` of them from place `first` on, all unless given.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> session = sp.Session.create("memory://", sp.Problem([[1, 0], [0, 1]]), sp.CombGapE(), name="trips")
    >>> for value in (3.0, 1.0):
    ...     _ = session.tell(session.ask()[0], value)
    >>> [(arm.name, arm.mean, arm.count, round(arm.best_share, 2)) for arm in arms(look(session)).rows]
    [('arm 0', 3.0, 1, 0.5), ('arm 1', 1.0, 1, 0.5)]
    """
    problem, counts = look.problem, look.evidence.counts
    best, missing = best_shares(look), dict(look.missing)
    matters = _matters(look)
    lead = np.zeros(problem.n_arms) if look.lead is None else look.vector(look.lead)
    total = look.n_used
    order = np.lexsort((np.arange(problem.n_arms), ~matters, -counts))
    last = None if n is None else first + n
    rows = tuple(
        Arm(
            arm=s,
            name=problem.arm_names[s],
            mean=float(look.evidence.means[s]) if counts[s] else None,
            error=float(np.sqrt(look.variance[s])) if counts[s] else None,
            count=int(counts[s]),
            share=int(counts[s]) / max(total, 1),
            best_share=None if best is None else float(best[s]),
            best_count=None if best is None else float(best[s] * total),
            missing=missing.get(s, 0),
            cost=float(problem.costs[s]),
            noise_scale=None if problem.noise_scale is None else float(problem.noise_scale[s]),
            in_lead=float(lead[s]),
            matters=bool(matters[s]),
        )
        for s in order[first:last].tolist()
    )
    return Arms(problem.n_arms, int(matters.sum()), total, look.cost, _by_cost(look), first, rows)


def best_shares(look: Look) -> FloatArray | None:
    """The shares of measurements that would rule out the closest rivals soonest, if the estimates were right.

    Gaps are softened by one standard error, so that a rival that looks tied does not claim everything. None
    while there is no lead, and where plans are not listed.
    """
    if look.gaps is None or not np.isfinite(look.variance[_matters(look)]).all():
        return None
    assert isinstance(look.lead, int)
    gap, error, order = look.gaps
    close = order[:MOST_RIVALS]
    reach = np.maximum(gap[close] + look.epsilon, 0.0) ** 2 + error[close] ** 2
    squares = look.differences(look.lead, close) ** 2 * noise_variance(look.problem) / reach[:, None]
    costs = look.problem.costs if _by_cost(look) else None
    return optimal_allocation(squares, tolerance=TOLERANCE, costs=costs).weights


def _by_cost(look: Look) -> bool:
    return bool(np.ptp(look.problem.costs) > 0)


def _matters(look: Look) -> BoolArray:
    if isinstance(look.problem, OracleProblem):
        return np.ones(look.problem.n_arms, dtype=bool)
    return look.problem.relevant
