"""Contrasts between plans, and what one batch shows of them: estimates whose weights the counts alone fix.

One use of a probe gives readings with means x.mu. With whitened rows X (noise of scale 1), N the diagonal of
a batch's counts, m the batch's own averages, and y a contrast (one plan minus another),

    A = (X'NX)^+ X'N,   D = y.(A m),   v = y' A N^-1 A' y,   bias >= |(y - X'A'y).mu|.

Any A would be sound as long as D, v and the bias are computed from the A that is used: D has the mean y.mu up
to the bias, and the variance proxy v. Least squares makes v small and the bias rounding. Where every reading
is of one arm with noise of its own, X'NX is diagonal and there is no bias (`DiagonalReadings`); single arms
are the case of one reading each. Everything else is `DenseReadings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense, divided
from surepick.core.oracle_problem import AnyProblem
from surepick.core.probes import VALUE, Entries, Probes, span
from surepick.design.information import Dense, Diagonal

MEAN_BOUND = 2.0**20  # no reading's mean exceeds this many times the largest average so far and the noise
TOLERATED_BIAS = 0.01  # standard errors of bias with which a bet is still made, lowered by the bias
_LEAST_PIVOT, _RANK = 1e-6, 1e-9  # of a scaled Cholesky factor; of singular values
_RIDGE = 1e-9  # of the uniform design: estimates exist from the first measurement on


class Contrasts:
    """Rows y = plan - other plan, in the coordinates of the readings; sparse or dense.

    The gap is y.mu + constant: what the plans differ by in arms whose means are known.
    """

    def __init__(
        self, rows: Any, squares: Any = None, constant: FloatArray | float = 0.0, rounding: float = 0.0
    ) -> None:
        self.rows = rows  # (n, d)
        self.squares = rows * rows if squares is None else squares
        self.constant = np.broadcast_to(np.asarray(constant, dtype=float), (int(rows.shape[0]),))
        self.rounding = rounding  # relative error of the rows; a bet is lowered by what it may amount to

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def take(self, which: Any) -> Contrasts:
        """Return some of the contrasts."""
        return Contrasts(self.rows[which], self.squares[which], self.constant[which], self.rounding)

    def dense(self) -> FloatArray:
        """Return the rows as an array."""
        return as_dense(self.rows)

    def support(self) -> BoolArray:
        """Return, by coordinate, whether any contrast is not 0 there."""
        return np.asarray(self.squares.T @ np.ones(len(self)) > 0)


def arm_probes(problem: AnyProblem) -> Probes:
    """Return the probes of a problem, freed of arms whose means are known.

    Single arms have one reading each, and unknown noise scale 1.
    """
    if problem.probes is not None:
        return problem.probes.without_arms(problem.is_known)
    n = problem.n_arms
    each = np.arange(n)
    entries = Entries(np.ones(n), each, np.arange(n + 1), (n, n))
    scale = np.ones(n) if problem.noise_scale is None else problem.noise_scale
    return Probes(problem.arm_names, ((VALUE,),) * n, entries, problem.costs, scale)


def readings_of(probes: Probes, basis: FloatArray | None = None) -> DiagonalReadings | DenseReadings:
    """Return the estimator of contrasts for these probes: diagonal if it can be, else dense.

    The problem alone decides, never the data: the estimator is fixed before every batch.
    """
    if basis is None and (probes.is_diagonal or (probes.unknown and _reads_one_arm_a_use(probes))):
        return DiagonalReadings(probes)
    return DenseReadings(probes, basis)


def _reads_one_arm_a_use(probes: Probes) -> bool:
    """Return whether every use of a probe gives one reading, of one arm.

    Then X'NX is diagonal even if the noise is unknown: only readings of one use can be correlated, and
    here no use has two of them.
    """
    n_arms_of_reading = np.diff(probes.entries.indptr)
    return not probes.share_uses and bool((n_arms_of_reading == 1).all())


def show(
    readings: DiagonalReadings | DenseReadings,
    contrasts: Contrasts,
    uses: IntArray,
    averages: FloatArray,
    largest: float,
) -> tuple[FloatArray, FloatArray]:
    """Return D and v of each contrast from a batch's uses and averages, (n_readings,) or (n_readings, G).

    D is lowered by a bound on its bias; it is (n,) or, for G replicates of these uses, (n, G). v is infinite
    where the batch does not show a gap. `largest` is the largest whitened average before the batch.
    """
    weights, variance, bias = readings.use_weights(contrasts, uses, largest)
    sums = (uses[readings.owner] * averages.T).T
    gap = np.asarray(((weights @ sums).T + contrasts.constant - bias).T)
    if contrasts.rounding:  # replicates are lowered alike: their factor then does not rise
        size = abs(weights) @ np.abs(sums)
        gap -= contrasts.rounding * (size if gap.ndim == 1 else size.max(axis=1, keepdims=True))
    return gap, variance


class DiagonalReadings(Diagonal):
    """Every reading is of one arm, with noise of its own: a mean per arm, weighted by precision."""

    basis = None

    def __init__(self, probes: Probes) -> None:
        self.probes, self.costs = probes, probes.costs
        arm, amount = probes.entries.indices.astype(np.int64), probes.entries.data
        self._coefficient = amount / probes.noise_scale  # whitened
        super().__init__(arm, self._coefficient**2, probes.owner, len(probes), probes.entries.shape[1])
        self.is_ordered = np.array_equal(arm, np.arange(self.n_arms))  # reading s is of arm s
        self.is_plain = self.is_ordered and bool((amount == 1).all())

    def vector(self, sums: FloatArray) -> FloatArray:
        """Return X' times the whitened sums of readings."""
        white = ((self._coefficient / self.probes.noise_scale) * sums.T).T
        found = np.zeros((self.n_arms, *sums.shape[1:]))
        if self.is_single:
            found[self.arm] = white
        else:
            np.add.at(found, self.arm, white)
        return found

    def means(self, matrix: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the estimated mean of each arm; 0 where nothing is known of it."""
        return divided(vector, matrix)

    def gap_variance(self, matrix: FloatArray, contrasts: Contrasts) -> FloatArray:
        """Return y' M^-1 y of each contrast; infinite where one of its arms was not measured."""
        if matrix.min() > 0:
            return np.asarray(contrasts.squares @ (1.0 / matrix))
        is_unseen = np.where(matrix > 0, 0.0, 1.0)
        return np.where(contrasts.squares @ is_unseen > 0, np.inf, contrasts.squares @ divided(1.0, matrix))

    def use_weights(
        self, contrasts: Contrasts, uses: IntArray, largest: float
    ) -> tuple[Any, FloatArray, FloatArray]:
        """Return w, v and a bound on the bias of each contrast, from the uses of a batch alone.

        w, (n, n_readings), dense or sparse, is the weight of a reading in one use: y.mu is the sum over uses
        of w times the reading's mean, up to the bias. v is infinite where the batch does not show a gap.
        """
        del largest  # there is no bias to bound
        matrix = self.matrix(uses)
        inverse = divided(1.0, matrix)
        arm = self.arm
        each = np.where(uses[self.owner] > 0, self._coefficient / self.probes.noise_scale * inverse[arm], 0.0)
        rows = contrasts.rows[:, arm] if not self.is_ordered else contrasts.rows
        weights = rows * each if isinstance(rows, np.ndarray) else rows.multiply(each).tocsr()
        return weights, self.gap_variance(matrix, contrasts), np.zeros(len(contrasts))


class DenseReadings(Dense):
    """Readings mix arms or share noise: generalised least squares within the batch, in their span."""

    is_single = is_plain = False

    def __init__(self, probes: Probes, basis: FloatArray | None = None) -> None:
        self.probes, self.costs = probes, probes.costs
        if basis is None:
            basis = span(probes.rows)
            # where every arm can be estimated the arms themselves are the coordinates: nothing is rotated
            basis = np.eye(len(basis)) if len(basis) == probes.rows.shape[1] else basis
        rows = np.ascontiguousarray(probes.whitened @ basis.T)
        super().__init__(rows, probes.owner, len(probes), basis)
        self._white = as_dense(probes.whitened)  # (n_readings, n_arms), in the caller's coordinates
        n = len(self.rows)
        self._average = self.rows.T @ self.rows / n  # information of a reading in the uniform design
        self._trace = max(float(np.trace(self._average)), 1e-300)
        least = float(np.linalg.eigvalsh(self._average)[0]) * n
        self._reach = np.sqrt(n / max(least, 1e-300))  # |mu| <= reach times the largest mean of a reading

    def coordinates(self, plans: Any) -> FloatArray:
        """Return the plans, less their mean, in the basis."""
        dense = as_dense(plans)
        return np.asarray((dense - dense.mean(axis=0)) @ self.basis.T)

    def vector(self, sums: FloatArray) -> FloatArray:
        """Return X' times the whitened sums of readings."""
        return np.asarray(self.probes.whiten(sums) @ self.rows)

    def means(self, matrix: FloatArray, vector: FloatArray) -> FloatArray:
        """Return the least-squares estimate of mu in the basis, with a trace of the uniform design."""
        return np.asarray(np.linalg.solve(self._ridge(matrix), vector))

    def gap_variance(self, matrix: FloatArray, contrasts: Contrasts) -> FloatArray:
        """Return y' M^-1 y of each contrast; huge where M does not show it."""
        from scipy.linalg.lapack import dposv  # the wrappers of scipy.linalg take longer than the solution

        solved = dposv(self._ridge(matrix), contrasts.rows.T, lower=1)[1]
        return np.asarray(np.einsum("jd,dj->j", contrasts.rows, solved))

    def _ridge(self, matrix: FloatArray) -> FloatArray:
        trace = float(matrix.diagonal().sum()) / self._trace
        return np.asarray(matrix + (_RIDGE * trace + 1e-30) * self._average)

    def use_weights(
        self, contrasts: Contrasts, uses: IntArray, largest: float
    ) -> tuple[Any, FloatArray, FloatArray]:
        """Return w, v and a bound on the bias of each contrast; v is infinite where it is no rounding.

        With A = (X'NX)^+ X'N of the readings in the batch, (rank, n_used), and contrasts y, (n, rank):

            w = y A N^-1 (of one use),   v = y A N^-1 A' y',   bias = |y - y A X| times the largest |mu|.

        A mean of a reading is at most `MEAN_BOUND` (1 + largest) noise scales, `largest` being the largest
        whitened average before the batch, and |mu| at most `_reach` times that. A bias that is more than
        rounding shows a contrast that is not in the span of the batch, a failed factorisation or a nan.
        """
        used = np.flatnonzero(uses[self.owner])
        n = uses[self.owner[used]].astype(float)
        y, A = contrasts.rows, _least_squares(self.rows[used], n)
        variance = np.einsum("jd,jd->j", y @ ((A / n) @ A.T), y)
        # the residual in the caller's coordinates, so that rounding of the basis is part of it
        residual = y @ (self.basis - A @ self._white[used])
        bias = np.linalg.norm(residual, axis=1) * self._reach * MEAN_BOUND * (1.0 + largest)
        is_shown = bias <= TOLERATED_BIAS * np.sqrt(np.maximum(variance, 0.0))  # false for a nan
        each = np.zeros((len(contrasts), len(self.owner)))
        each[:, used] = y @ A / n
        weights = self.probes.unwhiten_weights(each)
        return weights, np.where(is_shown, variance, np.inf), np.where(is_shown, bias, 0.0)


def _least_squares(rows: FloatArray, n: FloatArray) -> FloatArray:
    """Return (X'NX)^+ X'N, by Cholesky and one Newton step, or by the SVD at low rank.

    Low rank is common: one rival that is left needs one direction.
    """
    from scipy.linalg import cho_factor, cho_solve

    matrix = rows.T @ (n[:, None] * rows)
    diagonal = np.diag(matrix)
    if len(rows) >= len(matrix) and diagonal.min() > 1e-12 * diagonal.max():
        scale = 1.0 / np.sqrt(diagonal)
        try:
            factor = cho_factor(matrix * np.outer(scale, scale), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            factor = None
        if factor is not None and np.abs(np.diag(factor[0])).min() > _LEAST_PIVOT:
            found = scale[:, None] * cho_solve(factor, scale[:, None] * (rows.T * n), check_finite=False)
            return np.asarray(2 * found - (found @ rows) @ found)
    left, sizes, right = np.linalg.svd(np.sqrt(n)[:, None] * rows, full_matrices=False)
    kept = sizes > _RANK * sizes[0]
    return np.asarray(((right[kept].T / sizes[kept]) @ left[:, kept].T) * np.sqrt(n))
