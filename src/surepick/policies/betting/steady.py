"""Planning that comes to the same counts on every machine, so that a log made on one is verified on another.

Products by BLAS and logarithms differ in their last bits from machine to machine. Probes or plans that are
alike tie, and then the last bit decides: with version 3 and before, a log of whole plans (`probes="plans"`)
was called forged on a machine with another BLAS. So what to measure is computed by `steady_kernels`, which
every machine rounds alike, from numbers that are *rounded* first where they come from elsewhere. Two machines
see the same ones unless a number lies within its last bits of the middle between two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.probes import Probes
from surepick.core.telling_apart import APART, span
from surepick.design.information import Dense
from surepick.policies.betting.block_estimates import LEAST_PIVOT, DenseEstimator

_ROW_BITS = 30  # of the largest entry of a row of readings
_SHORT = 1e-9  # of a reading brought to length 1: what is left of it that counts as rounding
_LEVELS = (1e-3, 0.0, -1.0)  # of the largest share: probes that a cover is looked for among


def rounded(values: Any, bits: int) -> FloatArray:
    """Each number to this many binary digits.

    >>> rounded(np.array([1 / 3, 1000.0, 0.0]), 4).tolist()
    [0.34375, 1024.0, 0.0]
    """
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(mantissa * 2.0**bits), exponent - bits))


def on_grid(values: FloatArray, bits: int) -> FloatArray:
    """Numbers, or numbers by row, on a grid of this many binary digits of the largest of them.

    >>> on_grid(np.array([1.0, 0.26, 1e-9]), 2).tolist()
    [1.0, 0.5, 0.0]
    """
    _, exponent = np.frexp(np.abs(values).max(axis=-1, keepdims=True))
    return np.asarray(np.ldexp(np.rint(np.ldexp(values, bits - exponent)), exponent - bits))


@dataclass(frozen=True, eq=False)
class Steady(Dense):
    """Readings that mix arms, for planning that is the same everywhere."""

    @cached_property
    def planned(self) -> FloatArray:
        """The rows as planning sees them: whitening by a covariance leaves last bits."""
        return on_grid(self.rows, _ROW_BITS)

    @property
    def is_full(self) -> bool:
        """Whether the readings show all arms, which then are the basis."""
        return len(self.basis) == self.basis.shape[1]

    def coordinates(self, vectors: Any) -> Any:
        """In the basis; the arms themselves where readings show all of them."""
        from surepick.policies.betting.steady_counts import in_basis

        if self.is_full:
            return np.array(vectors, dtype=float)
        return in_basis(np.ascontiguousarray(vectors, dtype=float), self.basis)

    def matrix(self, counts: FloatArray) -> FloatArray:
        """(rank, rank)."""
        from surepick.policies.betting.steady_kernels import information

        return information(self.planned, np.asarray(counts[self.owner], dtype=float))

    def divided(
        self,
        targets: FloatArray,  # (n, rank)
        costs: FloatArray,
        start: tuple[FloatArray, FloatArray],
        effort: tuple[float, int, int],
    ) -> tuple[FloatArray, FloatArray]:
        """Shares of cost for these targets, and how much each binds, from those on."""
        from surepick.policies.betting.steady_kernels import divide

        shares, dual = (part.copy() for part in start)
        readings = self.planned, self.owner, costs, self.even(costs)
        divide(readings, np.ascontiguousarray(targets.T), shares, dual, effort)
        return shares, dual

    def cover(self, shares: FloatArray, costs: FloatArray, away: FloatArray) -> BoolArray:
        """Probes whose readings show all differences, those with large shares first; see `covers`."""
        from surepick.policies.betting.steady_counts import find_cover

        probes = self.planned, self.owner, costs, shares
        return find_cover(probes, away, _LEVELS)

    def fill(
        self, counts: FloatArray, known: FloatArray, some: IntArray, targets: FloatArray, budget: Any
    ) -> None:
        """Add uses of these readings one by one until the budget, (costs, sum), is spent; see `covers`."""
        from surepick.policies.betting.steady_counts import fill_counts

        readings = self.planned[some], self.owner[some], budget[0], known
        fill_counts(readings, np.ascontiguousarray(targets.T), counts, budget[1])


class SteadyEstimator(DenseEstimator):
    """What planning sees of the past, alike everywhere; what a block shows is as ever."""

    information: Steady

    def __init__(self, information: Steady, probes: Probes) -> None:
        super().__init__(information, probes)
        self._even = information.matrix(np.full(len(probes), 1.0)) / len(information.rows)
        if information.is_full:
            self._rows = information.rows  # the same numbers, at hand

    def _weights(self, rows: FloatArray, n: FloatArray) -> FloatArray:
        """M^+ X' N with less around it where M is regular."""
        matrix = rows.T @ (n[:, None] * rows)
        diagonal = matrix.diagonal()
        if len(rows) >= len(matrix) and diagonal.min() > 1e-12 * diagonal.max():
            scale = 1.0 / np.sqrt(diagonal)
            scaled = matrix * (scale[:, None] * scale)
            try:
                pivots = np.linalg.cholesky(scaled).diagonal()
            except np.linalg.LinAlgError:
                return super()._weights(rows, n)
            if pivots.min() > LEAST_PIVOT:
                found = (np.linalg.inv(scaled) * (scale[:, None] * scale)) @ (rows.T * n)
                return np.asarray(2 * found - (found @ rows) @ found)
        return super()._weights(rows, n)

    def means(self, matrix: FloatArray, vector: FloatArray) -> FloatArray:
        """By loops of our own."""
        from surepick.policies.betting.steady_kernels import solved

        return solved(matrix, self._even, vector)

    def spread(self, matrix: FloatArray, away: FloatArray) -> FloatArray:
        """By loops of our own."""
        from surepick.policies.betting.steady_kernels import spreads

        return spreads(matrix, self._even, away)

    def vector(self, sums: FloatArray) -> FloatArray:
        """By loops of our own."""
        from surepick.policies.betting.steady_kernels import together

        return together(self.information.planned, sums)


def steady_estimator(probes: Probes, plans: FloatArray, basis: FloatArray | None = None) -> SteadyEstimator:
    """For probes whose readings mix arms; `basis` is that of the same readings, if known."""
    basis = _basis(probes, plans) if basis is None else basis
    rows = probes.whitened
    full = len(basis) == basis.shape[1]
    inside = np.ascontiguousarray(rows.toarray() if full else rows @ basis.T)
    return SteadyEstimator(Steady(inside, probes.owner, len(probes), basis), probes)


def _basis(probes: Probes, plans: FloatArray) -> FloatArray:
    """An orthonormal basis of what the readings show: the arms themselves where that is all of them."""
    from surepick.policies.betting.steady_counts import in_basis, orthonormal

    rows = probes.rows
    if (np.diff(rows.indptr) <= 1).all():
        return span(rows)
    dense = rows.toarray()
    size = np.sqrt((dense * dense).sum(axis=1, keepdims=True))
    dense = dense[size[:, 0] > 0] / size[size[:, 0] > 0]
    basis = orthonormal(np.ascontiguousarray(dense.T), _SHORT)
    if len(basis) == basis.shape[1]:
        return np.eye(len(basis))
    away = plans - plans[0]
    outside = away - in_basis(in_basis(away, basis), np.ascontiguousarray(basis.T))
    if np.abs(outside).max() <= APART * np.abs(plans).max():
        return basis
    return span(rows)  # readings that are nearly alike: what telling apart has found is what counts
