"""XYAdaptive: phases whose uses are chosen greedily for the differences of the plans that are left.

Paper: Soare, Lazaric & Munos (2014), Best-Arm Identification in Linear Bandits (XY-adaptive allocation). In
phase j, with Y the differences of the plans left, A = I before the phase, rho = max over Y of y'A^-1 y and
alpha = 1/10, while t = 0 or rho/t >= alpha times its value at the end of the phase before (1/(d (d + 1) + 1)
at first, in d dimensions):

    use the vector x with the least max over Y of y'(A + x x')^-1 y, and add x x' to A;

then drop every plan z that some z' is ahead of, y = z' - z: y.means >= sqrt(2 y'M^-1 y log(2 pi^2 K^2 j^2 /
(6 delta))).

Assumption: independent sub-Gaussian readings of the given scale. Proof status: proved. What a phase uses, and
how long it is, does not depend on its readings, so that fixed-count tails hold (`phases`); over K^2
pairs and all phases they add up to half of delta.

Deviations: means are least squares of the phase alone, without the I that A begins with, which would pull
them towards 0; a difference that the phase did not read drops no plan. Dropped plans do not come back, as in
the program of Fiez et al., whose logarithm this is; of the paper's own log(K^2/delta) the constants are open.
Where ways are equally good the one used least is taken (there: one at random), since several pairs may be
known equally badly and no single use helps all. Reconstructed where the paper's rho is divided by t although
A is not divided by it: read as printed. A phase ends after a million uses. Every probe must have one reading.
Costs are not used.

Cost of a phase: for each use a pass over ways times pairs of plans, compiled.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.errors import ProblemError
from surepick.kernels import compiled
from surepick.peers.linear import readings_of
from surepick.peers.phases import PhasedRun
from surepick.policies.sound import SoundPolicy

ALPHA = 0.1
_LONGEST = 10**6  # uses in a phase
_TIE = 1e-9  # relative


@dataclass(frozen=True)
class XYAdaptive(SoundPolicy):
    """Phases of greedy uses for the differences that still matter.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0.5, 0.5]], measure="plans", noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.0]), policy=sp.policies.XYAdaptive(), seed=1).plan
    0
    """

    name: ClassVar[str] = "XYAdaptive"
    takes_probes: ClassVar[bool] = True

    def start(self, problem: Problem) -> XYAdaptiveRun:
        """Return a fresh run on this problem."""
        return XYAdaptiveRun(problem, self)


class XYAdaptiveRun(PhasedRun):
    """A run of XYAdaptive; `_goal` is the rho/t that the phase before came to."""

    def __init__(self, problem: Problem, policy: XYAdaptive) -> None:
        readings = readings_of(problem, policy.name)
        if len(readings.rows) != readings.n_ways:
            raise ProblemError(
                "XYAdaptive measures vectors, one number a use, and here some probe has several readings; "
                "use BetGapE, LinGame or FWS, which take them"
            )
        super().__init__(readings)
        d = readings.rows.shape[1]
        self._delta, self._goal = policy.delta, 1.0 / (d * (d + 1) + 1)
        self._planned: tuple[IntArray, float] | None = None  # counts and rho/t of this phase, once known

    @property
    def log_term(self) -> float:
        """log(2 pi^2 K^2 j^2 / (6 delta))."""
        return math.log(math.pi**2 * self.n_plans**2 * self._number**2 / (3.0 * self._delta))

    def design(self, plans: FloatArray, rng: np.random.Generator | None = None) -> IntArray:
        """Return the whole phase, one greedy use after another."""
        del rng  # nothing is drawn
        if self._planned is None:
            first, second = np.triu_indices(len(plans), 1)
            rows, pairs = self._readings.rows, plans[first] - plans[second]
            lengths, across = np.einsum("pd,pd->p", pairs, pairs), rows @ pairs.T
            counts = np.zeros(len(rows), dtype=np.int64)
            reached = greedy(lengths, across, rows @ rows.T, counts, ALPHA * self._goal)
            self._planned = counts, reached
        return self._planned[0]

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in the phase; the next one is to be as much better again."""
        self.design(self.plans)
        assert self._planned is not None
        self._goal = self._planned[1]
        super().absorb(counts, sums)
        self._planned = None


@compiled
def greedy(
    lengths: FloatArray,  # (n_pairs,) y'A^-1 y
    across: FloatArray,  # (n_ways, n_pairs) x'A^-1 y
    between: FloatArray,  # (n_ways, n_ways) x'A^-1 x
    counts: IntArray,  # (n_ways,) written
    goal: float,
) -> float:
    """Use ways until rho/t is below the goal, and return rho/t then. A phase that would be too long ends.

    A use changes A^-1 by one dyad (Sherman and Morrison), and with it the three arrays, in place.
    """
    n_ways, n_pairs = across.shape
    least = np.inf
    for t in range(1, _LONGEST + 1):
        best, least = 0, np.inf
        for o in range(n_ways):
            worst, scale = 0.0, 1.0 / (1.0 + between[o, o])
            for p in range(n_pairs):
                worst = max(worst, lengths[p] - across[o, p] * across[o, p] * scale)
                if worst > least * (1.0 + _TIE):
                    break
            if worst < least * (1.0 - _TIE) or (worst <= least * (1.0 + _TIE) and counts[o] < counts[best]):
                best, least = o, worst
        counts[best] += 1
        scale = 1.0 / (1.0 + between[best, best])
        for p in range(n_pairs):
            lengths[p] -= across[best, p] * across[best, p] * scale
        for o in range(n_ways):
            if o != best:
                factor = between[o, best] * scale
                for p in range(n_pairs):
                    across[o, p] -= factor * across[best, p]
                for q in range(n_ways):
                    if q != best:
                        between[o, q] -= factor * between[best, q]
        for p in range(n_pairs):
            across[best, p] *= scale
        for o in range(n_ways):
            between[best, o] *= scale
            between[o, best] = between[best, o]
        if least < goal * t:
            return least / t
    return least / _LONGEST
