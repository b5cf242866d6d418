"""The leader against the other plans: their gaps, the evidence for it, and what to measure next."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence, between, closest_first, noise_variance
from surepick.core.oracle_problem import AnyProblem
from surepick.core.run import Standing
from surepick.design.allocation import optimal_allocation
from surepick.design.information import information_of
from surepick.design.minimax import minimax

LEAST_RISK = 1e-300  # a smaller one is shown as this one, which has a logarithm
LEAST_NEEDED = 1e-9
MOST_ALLOCATED = 256  # rivals that an allocation looks at: the closest; the others are satisfied by it
ALLOCATION_TOLERANCE = 0.02  # the estimates are rougher
PROBE_TOLERANCE, PROBE_STEPS = 0.05, 100  # the same where probes are measured
MOST_KEPT = 128  # allocations


class Gaps(NamedTuple):
    """Every plan against the leader: how far behind it is by the estimates, and how well that is known."""

    gap: FloatArray  # (n_plans,)
    error: FloatArray  # (n_plans,) its standard deviation under the noise scale
    order: IntArray  # the rivals, closest first: by gap in units of its error

    @classmethod
    def of(cls, lead: int, gap: FloatArray, error: FloatArray) -> Gaps:
        """These gaps to the leader and their errors, with the rivals in order."""
        gap[lead] = error[lead] = 0.0  # whatever rounding makes of it
        return cls(gap, error, closest_first(lead, gap, error))


class Weight(NamedTuple):
    """What speaks against the closest rival of the leader, as logarithms."""

    log_evidence: float
    needed: float  # at which the policy would rule the rival out
    proved: bool  # valid at any moment, by the policy's own proof

    @property
    def toward(self) -> float:
        """The share of what is needed that is there, between 0 and 1."""
        return min(1.0, self.log_evidence / self.needed)


def weigh(
    problem: AnyProblem, standing: Standing, evidence: Evidence, *, delta: float, epsilon: float
) -> Weight | None:
    """The evidence against the closest rival of a standing; None while there is none.

    Where the policy has a proved risk, the evidence is 1/risk and has to reach 1/delta. Otherwise it is how
    many times more likely the measurements are under the estimated gap than under a tie, exp(z^2/2) for a
    gap of z standard errors, and what is needed follows from the policy's own radius in the same way.
    """
    plain = math.log(1 / delta)
    if standing.risk is not None:
        return Weight(-math.log(max(standing.risk, LEAST_RISK)), plain, True)
    if standing.leader is None or standing.rival is None:
        return None
    gap, error = between(problem, standing.leader, standing.rival, evidence)
    if not 0 < error < math.inf:
        return None
    z = max(gap + epsilon, 0.0) / error
    asked = plain if standing.radius is None else (standing.radius / error) ** 2 / 2
    return Weight(z**2 / 2, max(asked, LEAST_NEEDED), False)


def best_shares(
    problem: AnyProblem, differences: FloatArray, gap: FloatArray, error: FloatArray
) -> FloatArray:
    """The shares of measurements that rule out the rivals with these gaps soonest, were the estimates right.

    Gaps are softened by one standard error, so that a rival that looks tied does not claim everything. Where
    prices differ they are the shares of the least cost.
    """
    reach = np.maximum(gap, 0.0) ** 2 + error**2
    if problem.probes is not None:
        information, prices = information_of(problem.probes), problem.probes.costs
        targets = information.coordinates(differences / np.sqrt(reach)[:, None])
        found = minimax(information, targets, prices, tolerance=PROBE_TOLERANCE, most_steps=PROBE_STEPS)
        uses = found.shares / prices
        return np.asarray(uses / uses.sum())
    squares = differences**2 * noise_variance(problem) / reach[:, None]
    costs = problem.costs if np.ptp(problem.costs) > 0 else None
    return optimal_allocation(squares, tolerance=ALLOCATION_TOLERANCE, costs=costs).weights


SHARES: dict[object, FloatArray] = {}  # by the state of a log: a page that is drawn again solves nothing
