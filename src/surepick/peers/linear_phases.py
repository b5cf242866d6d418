"""Phases of linear bandits (see `phases`): XYAdaptive and PolyALBA.

Both assume independent sub-Gaussian measurements of the given scale, and are proved: what a phase uses does
not depend on its readings, so that fixed-count tails hold. Costs are not used.

**XYAdaptive**: Soare, Lazaric & Munos (2014), Best-Arm Identification in Linear Bandits (XY-adaptive
allocation). In phase j, with Y the differences of the plans left, A = I before the phase, rho = max over Y of
y'A^-1 y and alpha = 1/10, while t = 0 or rho/t >= alpha times its value at the end of the phase before (1/(d
(d + 1) + 1) at first, in d dimensions): use the vector x with the least max over Y of y'(A + x x')^-1 y, and
add x x' to A. Then drop every plan that some other is ahead of by its radius, with log_term = log(2 pi^2 K^2
j^2 / (6 delta)); over K^2 pairs and all phases that is half of delta. Deviations: means are least squares of
the phase alone, without the I that A begins with, which would pull them towards 0; a difference that the
phase did not read drops no plan. Dropped plans do not come back, as in the program of Fiez et al., whose
logarithm this is. Where vectors are equally good the one used least is taken (there: one at random), since
no single use helps several pairs that are known equally badly. The paper's rho is divided by t although A is
not: read as printed. A phase ends after 100,000 uses. Every probe must have one reading. A use costs a pass
over vectors times pairs of plans.

**PolyALBA**: Du, Kuroki & Chen (2021), Combinatorial Pure Exploration with Full-Bandit or Partial Linear
Feedback, which puts a first stage before ALBA of Tao, Blanco & Zhou (2018), Best Arm Identification in Linear
Bandits with Linear Dimension Dependency. A measurement is the value of one plan. Phase q has the resolution e
= 2^-q, delta_q = (6/pi^2) delta/q^2, and uses of the plans left in the shares of their G-optimal design, N =
8 g log(2K/delta_q) / e^2 in all, g = the largest x'M^-1 x of a plan left, x, where M is what one use in these
shares tells; then every plan is dropped whose estimate is worse than the best by more than e. In the first
stage all plans are measured, and none is dropped until at most d, the rank of the plans, are left. Proof:
counts are at least the shares of N, so that each plan's value is off by more than e/2 with probability at
most delta_q/K. Deviations (reconstructed): the paper draws plans at random from the design, and its N has 2 +
(6 + e/2) d in place of 2g for it; here the design is rounded up, with tails of its own. Resolutions continue
in the second stage, where the paper begins anew at 1/2. Its first stage finds the d best plans by an oracle;
here plans are listed. A phase costs one design, some hundred steps of K d^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense
from surepick.core.problem import Problem
from surepick.design.information import information_of
from surepick.errors import ProblemError
from surepick.peers.linear import Readings, readings_of
from surepick.peers.phases import PhasedRun
from surepick.peers.sequential import single_arms
from surepick.policies.sound import SoundPolicy

ALPHA = 0.1
_LONGEST = 10**5  # uses in a phase
_TIE = 1e-9  # relative
_PARALLEL = 1e-9  # of a cosine
_CLOSE = 0.02  # of d: how far the largest x'M^-1 x of the design may be above it
_MOST_STEPS = 2000
_SUPPORT = 1e-5  # least share of a plan in the design
_RANK = 1e-9  # of the largest eigenvalue: information below it is none


class XYAdaptiveRun(PhasedRun):
    """A run of XYAdaptive."""

    def __init__(self, problem: Problem, policy: XYAdaptive) -> None:
        readings = readings_of(problem, policy.name)
        if len(readings.rows) != len(readings):
            raise ProblemError(
                "XYAdaptive measures vectors, one number a use, and here some probe has several readings; "
                "use BetGapE, LinGame or FWS, which take them"
            )
        super().__init__(readings, policy)
        d = readings.rows.shape[1]
        self._precision = 1.0 / (d * (d + 1) + 1)  # the rho/t that the last designed phase comes to

    @property
    def _log_term(self) -> float:
        return math.log(math.pi**2 * self._n_plans**2 * self._number**2 / (3.0 * self._delta))

    def _design(self, rng: np.random.Generator) -> IntArray:
        """Return the whole phase, one greedy use after another."""
        first, second = np.triu_indices(len(self._active), 1)
        rows, pairs = self._readings.rows, self._plans[first] - self._plans[second]
        lengths = np.einsum("pd,pd->p", pairs, pairs)
        counts, self._precision = greedy(lengths, rows @ pairs.T, rows @ rows.T, ALPHA * self._precision)
        return counts


@dataclass(frozen=True)
class XYAdaptive(SoundPolicy, run=XYAdaptiveRun):
    """Phases of greedy uses for the differences that still matter."""

    takes_probes: ClassVar[bool] = True


def greedy(
    lengths: FloatArray,  # (n_pairs,) y'A^-1 y
    across: FloatArray,  # (n_vectors, n_pairs) x'A^-1 y
    between: FloatArray,  # (n_vectors, n_vectors) x'A^-1 x
    goal: float,
) -> tuple[IntArray, float]:
    """Return the uses of each vector until rho/t is below the goal, and rho/t then; a phase too long ends.

    A use of x changes A^-1 by one dyad (Sherman and Morrison), and with it the three arrays:

        (A + x x')^-1 = A^-1 - A^-1 x x'A^-1 / (1 + x'A^-1 x).
    """
    counts = np.zeros(len(across), dtype=np.int64)
    rho = math.inf
    for t in range(1, _LONGEST + 1):
        # the largest y'A^-1 y of all pairs after one more use of each vector
        worst = (lengths - across**2 / (1.0 + np.diag(between))[:, None]).max(axis=1)
        rho = float(worst.min())
        best = int(np.argmin(np.where(worst <= rho * (1.0 + _TIE), counts, _LONGEST)))
        counts[best] += 1
        if rho < goal * t:
            return counts, rho / t
        divisor = 1.0 + between[best, best]
        lengths = lengths - across[best] ** 2 / divisor
        step = between[:, best] / divisor
        between = between - np.outer(step, between[best])
        across = across - np.outer(step, across[best])
    return counts, rho / _LONGEST


class PolyALBARun(PhasedRun):
    """A run of PolyALBA; `_option` is what measures each plan."""

    def __init__(self, problem: Problem, policy: PolyALBA) -> None:
        readings = readings_of(problem, policy.name)
        super().__init__(readings, policy)
        if problem.probes is None:  # single arms, less what is common to all
            mine = single_arms(problem, policy.name)
            self._vectors = np.asarray(mine.factor[:, None] * (mine.numbers[:, None] == readings.numbers))
        else:
            self._vectors = np.asarray(information_of(problem.probes).coordinates(as_dense(problem.oriented)))
        self._option = _own_options(readings, self._vectors)
        self._dimension = int(np.linalg.matrix_rank(self._vectors))

    @property
    def _log_term(self) -> float:
        return math.log(math.pi**2 * len(self._option) * self._number**2 / (3.0 * self._delta))

    def _design(self, rng: np.random.Generator) -> IntArray:
        """Return the G-optimal design of the plans left, not less their average, rounded up to N uses."""
        options, vectors = self._option[self._active], self._vectors[self._active]
        rows = self._readings.rows[options]
        shares = g_optimal(rows)
        inverse = np.linalg.pinv(rows.T @ (shares[:, None] * rows), rcond=_RANK, hermitian=True)
        largest = float(np.einsum("kd,de,ke->k", vectors, inverse, vectors).max())
        n = math.ceil(8.0 * largest * self._log_term * 4.0**self._number)
        counts = np.zeros(len(self._readings), dtype=np.int64)
        np.add.at(counts, options, np.ceil(n * shares).astype(np.int64))
        return counts

    def _survivors(self, values: FloatArray, matrix: FloatArray, inverse: FloatArray) -> BoolArray:
        """Return the plans within the resolution of the best; in the first stage all while they are many."""
        near = np.asarray(values.max() - values <= 2.0**-self._number)
        stays_first = len(near) > self._dimension and near.sum() > self._dimension
        return np.ones(len(near), dtype=bool) if stays_first else near


@dataclass(frozen=True)
class PolyALBA(SoundPolicy, run=PolyALBARun):
    """Least-squares elimination where a measurement is the value of a whole plan (the full bandit)."""

    takes_probes: ClassVar[bool] = True


def g_optimal(rows: FloatArray) -> FloatArray:
    """Return shares that make the largest x'M^-1 x of the rows nearly as small as it can be, their rank.

    Shares are multiplied by x'M^-1 x / rank, which ends at the D-optimal design, the same by Kiefer and
    Wolfowitz.

    >>> g_optimal(np.array([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]])).round(1).tolist()
    [0.5, 0.5, 0.0]
    """
    rank = int(np.linalg.matrix_rank(rows))
    shares = np.full(len(rows), 1.0 / len(rows))
    for _ in range(_MOST_STEPS):
        matrix = rows.T @ (shares[:, None] * rows)
        values = np.einsum("kd,de,ke->k", rows, np.linalg.pinv(matrix, rcond=_RANK, hermitian=True), rows)
        if values.max() <= (1.0 + _CLOSE) * rank:
            break
        shares = shares * values / rank
        shares /= shares.sum()
    shares = np.where(shares > _SUPPORT, shares, 0.0)
    return np.asarray(shares / shares.sum())


def _own_options(readings: Readings, vectors: FloatArray) -> IntArray:
    """Return for each plan an option whose one reading is the plan's value, or a multiple of it."""
    is_alone = np.bincount(readings.owner, minlength=len(readings))[readings.owner] == 1
    rows = readings.rows / np.maximum(np.linalg.norm(readings.rows, axis=1), 1e-300)[:, None]
    plans = vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)[:, None]
    cosines = np.abs(plans @ rows.T) * is_alone  # (n_plans, n_readings)
    if (cosines.max(axis=1) < 1.0 - _PARALLEL).any():
        raise ProblemError(
            "PolyALBA measures whole plans, one number a use, and here some plan cannot be measured by "
            'itself; give the problem measure="plans", or use BetGapE'
        )
    return np.asarray(readings.owner[np.argmax(cosines, axis=1)])
