"""The limit where probes are measured.

With z_j = (best - plan_j) / gap_j and M(u) the information that a unit of cost buys in shares u,

    E[cost] >= T* kl(delta, 1 - delta),  T* = 2 min_u max_j z_j' M(u)^+ z_j,

for every method that is wrong with probability at most delta, and Gaussian noise: sum_o E[N_o] |mu - mu'|^2
in the norm of probe o is at least 2 kl, and the closest world mu' in which plan j is as good as the best is
at gap_j^2 / (y_j' M^+ y_j). The same with prices 1 bounds the measurements.

The second bound of `limit` is a cover here: if no probe that is used tells a world from one in which another
plan is best, the answer is wrong too often. Every direction w in which some difference of plans shows must be
hit, by a probe that reads it, with probability 1 - 2 delta; so the expected uses are at least (1 - 2 delta)
times the least *fractional* cover. The least whole cover is no bound: four readings in two dimensions, any
two of which are enough, have a fractional cover of 4/3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.probes import Probes
from surepick.core.problem import Problem
from surepick.design.information import information_of
from surepick.design.minimax import Design, minimax
from surepick.limits.value import Bracket, Limit, Once, no_limit

PROBE_TOLERANCE = 1e-3  # of T*: where the best design uses few probes, further digits come slowly
_WHOLE = 1e-9  # a cover this little below a whole number of uses is that number
_MOST_COVERED = 10**5  # readings for which a cover is looked for


def probe_limit(
    problem: Problem,
    best: int,
    tied: tuple[int, ...],
    targets: FloatArray | None,
    delta: float,
    tolerance: float,
) -> Limit:
    """Return the limit where probes are measured; shares are of uses of each probe.

    `targets` are (best - plan) / gap, None where plans tie.
    """
    probes = problem.probes
    assert probes is not None
    n = len(probes)
    uses = int(least_cover(probes, problem.relevant, np.ones(n)) + _WHOLE)
    once = Once(uses, least_cover(probes, problem.relevant, probes.costs))
    if targets is None:
        return no_limit(best, delta, n, once, tied)
    time, cost = probe_times(probes, targets, tolerance)
    unit = float(probes.costs[0]) if cost is time else 1.0
    spending = cost.shares if cost is time else cost.shares / probes.costs
    return Limit(
        best,
        delta,
        Bracket.twice(time.lower, time.upper, time.shares),
        Bracket.twice(cost.lower, cost.upper, spending / spending.sum(), unit),
        once,
    )


def probe_times(probes: Probes, targets: FloatArray, tolerance: float) -> tuple[Design, Design]:
    """The best division by measurements and by cost; targets are (best - plan) / gap."""
    information = information_of(probes)
    known = information.coordinates(targets)
    tolerance = max(tolerance, PROBE_TOLERANCE)
    time = minimax(information, known, np.ones(len(probes)), tolerance=tolerance)
    if np.ptp(probes.costs) == 0:
        return time, time
    cost = minimax(information, known, probes.costs, tolerance=tolerance, start=time.shares, dual=time.dual)
    return time, cost


def least_cover(probes: Probes, differs: BoolArray, prices: FloatArray) -> float:
    """The least price, by fractions, of seeing every arm in which plans differ; one probe where they mix.

    >>> from surepick.core.problem import Problem
    >>> routes = Problem([[1, 1, 0], [0, 1, 1], [1, 0, 1]], measure="plan arms", noise=1, goal="largest")
    >>> least_cover(routes.probes, np.ones(3, dtype=bool), np.ones(3))
    1.5
    """
    if not probes.is_diagonal or probes.n_readings > _MOST_COVERED:
        return float(prices.min())
    from scipy import sparse
    from scipy.optimize import linprog

    reads = sparse.csr_array(
        (np.ones(probes.n_readings), (probes.rows.indices, probes.owner)),
        shape=(len(differs), len(probes)),
    )[np.flatnonzero(differs)]
    reads.data[:] = 1.0
    cover: Any = -reads
    found: Any = linprog(prices, A_ub=cover, b_ub=-np.ones(reads.shape[0]), method="highs")
    return float(found.fun) if found.success else float(prices.min())
