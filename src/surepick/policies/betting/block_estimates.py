"""What one block of probes shows of the gaps: an estimate whose weights are fixed by the counts alone.

The proof of docs/bet-gap-e.md rests on this file. With whitened rows X of the probes in the block, N the
diagonal of their counts and m the block's own averages of the readings,

    A = M^+ X' N,  M = X' N X,  D_j = y_j.(A m),  v_j = y_j' A N^-1 A' y_j,  r_j = y_j - X' A' y_j.

Any A would do: D_j has the mean gap_j - r_j.mu and a variance proxy of exactly v_j, as long as both are
computed from the A that is used, which is a function of the counts and the problem. Least squares makes v_j
small and r_j rounding. `bias` bounds |r_j.mu|; where it is not small against sqrt(v_j), or not a number,
nothing is bet: that catches a difference that this block does not show, a failed factorisation and a nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.probes import Probes
from surepick.design.information import Dense, Diagonal, Information, information_of

TOLERATED = 0.01  # standard errors of bias with which bets are still made, lowered by it
_FAR = 2.0**20  # times the largest average seen so far, and the noise: how large the mean of a reading may be
LEAST_PIVOT, _RANK = 1e-6, 1e-9  # of a Cholesky factor; of singular values


class Shown(NamedTuple):
    """What a block shows of each gap."""

    gap: FloatArray
    variance: FloatArray
    bias: FloatArray  # bounds how far the gap's mean lies from the truth

    @property
    def counts(self) -> BoolArray:
        """Where bets are settled; comparisons with a nan are false."""
        seen = (self.variance > 0) & (self.variance < np.inf)
        return np.asarray(seen & (self.bias <= TOLERATED * np.sqrt(np.where(seen, self.variance, 0.0))))


class Estimator(Protocol):
    """How gaps are read off a block, for one way to keep information."""

    @property
    def information(self) -> Information:
        """Of the probes."""
        ...

    def show(self, away: FloatArray, counts: IntArray, means: FloatArray, largest: float) -> Shown:
        """Gaps y.mu for rows `away` from a block's counts and whitened averages.

        Averages of several blocks of the same counts may stand side by side. `largest` is the largest
        whitened average of the past, by size.
        """
        ...

    def means(self, matrix: FloatArray, vector: FloatArray) -> FloatArray:
        """The arms' means, in the information's coordinates, from M and X'N m of all that was seen."""
        ...

    def spread(self, matrix: FloatArray, away: FloatArray) -> FloatArray:
        """y' M^-1 y of each row, for planning; large, or infinite, where M does not show it."""
        ...

    def vector(self, sums: FloatArray) -> FloatArray:
        """X' (whitened sums of readings)."""
        ...


def estimator_for(probes: Probes) -> Estimator:
    """Return the estimator for these probes, chosen by the problem alone, never by the data."""
    information = information_of(probes)
    if isinstance(information, Diagonal):
        size = np.sqrt(information.precision) * np.sign(probes.rows.data)
        return DiagonalEstimator(information, size, probes)
    assert isinstance(information, Dense)
    return DenseEstimator(information, probes)


@dataclass(frozen=True, eq=False)
class DiagonalEstimator:
    """Every reading is of one arm: a mean per arm, weighted by precision. There is no bias."""

    information: Diagonal
    size: FloatArray  # (n_readings,) the whitened coefficient
    probes: Probes

    def show(self, away: FloatArray, counts: IntArray, means: FloatArray, largest: float) -> Shown:
        """Infinite variance where an arm of the difference was not seen."""
        del largest  # there is no bias to bound
        n = counts[self.information.owner]
        precision = self.information.matrix(counts.astype(float))
        columns = [np.where(n > 0, n * column, 0.0) for column in np.atleast_2d(means.T)]
        seen = np.column_stack([self.means(precision, self.vector(sums)) for sums in columns])
        variance = self.spread(precision, away)
        if self.probes.dependent:
            used = np.flatnonzero(n)
            arm = self.information.arm[used]
            weights = away[:, arm] * (self.size[used] * n[used] / precision[arm])
            together = self.probes.variances(weights, used, n[used].astype(float))
            variance = np.where(variance < np.inf, together, np.inf)
        gap = away @ seen if means.ndim == 2 else away @ seen[:, 0]
        return Shown(gap, variance, np.zeros(len(away)))

    def means(self, matrix: FloatArray, vector: FloatArray) -> FloatArray:
        """0 for an arm without a measurement."""
        return np.divide(vector, matrix, out=np.zeros_like(vector), where=matrix > 0)

    def spread(self, matrix: FloatArray, away: FloatArray) -> FloatArray:
        """A sum over arms."""
        inverse = np.divide(1.0, matrix, out=np.zeros_like(matrix), where=matrix > 0)
        unseen = (away[:, matrix <= 0] != 0).any(axis=1)
        return np.where(unseen, np.inf, (away * away) @ inverse)

    def vector(self, sums: FloatArray) -> FloatArray:
        """A sum per arm."""
        found = self.information
        return np.asarray(np.bincount(found.arm, self.size * sums, minlength=found.n_arms), dtype=float)


class DenseEstimator:
    """Readings mix arms: generalised least squares within the block."""

    def __init__(self, information: Dense, probes: Probes) -> None:
        self.information, self._probes = information, probes
        self._rows: Any = probes.whitened  # (n_readings, n_arms) as the caller gave them
        n = len(information.rows)
        self._even = information.rows.T @ information.rows / n
        least = np.linalg.eigvalsh(self._even)[0] * n
        # |mu| <= |X mu| / least singular value, and no reading's mean is larger than `_FAR` says
        self._reach = np.sqrt(n / max(float(least), 1e-300))

    def show(self, away: FloatArray, counts: IntArray, means: FloatArray, largest: float) -> Shown:
        """By weights that this block's counts give; see above."""
        used = np.flatnonzero(counts[self.information.owner])
        n = counts[self.information.owner[used]].astype(float)
        rows = self.information.rows[used]
        weights = self._weights(rows, n)  # A: (rank, n_used)
        gap = away @ (weights @ means[used])
        if self._probes.dependent:
            variance = self._probes.variances(away @ weights, used, n)
        else:
            spread = (weights / n) @ weights.T
            variance = np.einsum("jd,jd->j", away @ spread, away)
        # the residual in the caller's coordinates, so that rounding of the basis is inside
        shown = np.asarray((self._rows[used].T @ weights.T).T)  # A X: (rank, n_arms)
        residual = away @ (self.information.basis - shown)
        bias = np.linalg.norm(residual, axis=1) * self._reach * _FAR * (1.0 + largest)
        return Shown(gap, variance, bias)

    def _weights(self, rows: FloatArray, n: FloatArray) -> FloatArray:
        return _pseudo_inverse(rows, n)

    def means(self, matrix: FloatArray, vector: FloatArray) -> FloatArray:
        """With a trace of every probe, so that it is there from the first measurement on."""
        return np.asarray(np.linalg.solve(self._regular(matrix), vector))

    def spread(self, matrix: FloatArray, away: FloatArray) -> FloatArray:
        """With the same trace."""
        from scipy.linalg import cho_factor, cho_solve

        factor = cho_factor(self._regular(matrix), lower=True, check_finite=False)
        return np.einsum("jd,dj->j", away, cho_solve(factor, away.T, check_finite=False))

    def vector(self, sums: FloatArray) -> FloatArray:
        """In the basis."""
        return np.asarray(sums @ self.information.rows)

    def _regular(self, matrix: FloatArray) -> FloatArray:
        trace = float(np.trace(matrix)) / max(float(np.trace(self._even)), 1e-300)
        return np.asarray(matrix + (1e-9 * trace + 1e-30) * self._even)


def _pseudo_inverse(rows: FloatArray, n: FloatArray) -> FloatArray:
    """M^+ X' N by Cholesky and one Newton step, which squares the residual; by the SVD at low rank.

    Low rank is common: one rival left needs one direction.
    """
    matrix = rows.T @ (n[:, None] * rows)
    diagonal = np.diag(matrix)
    if len(rows) >= len(matrix) and diagonal.min() > 1e-12 * diagonal.max():
        from scipy.linalg import cho_factor, cho_solve

        scale = 1.0 / np.sqrt(diagonal)
        try:
            factor = cho_factor(matrix * np.outer(scale, scale), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            factor = None
        if factor is not None and np.abs(np.diag(factor[0])).min() > LEAST_PIVOT:
            found = scale[:, None] * cho_solve(factor, scale[:, None] * (rows.T * n), check_finite=False)
            return np.asarray(2 * found - (found @ rows) @ found)
    left, sizes, right = np.linalg.svd(np.sqrt(n)[:, None] * rows, full_matrices=False)
    kept = sizes > _RANK * sizes[0]
    return np.asarray(((right[kept].T / sizes[kept]) @ left[:, kept].T) * np.sqrt(n))
