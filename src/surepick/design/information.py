"""What measurements by probes tell: the information matrix M(n) = sum_o n_o sum_k x_ok x_ok', and its prices.

Rows are whitened: the noise of each reading has scale 1. Where every reading is of one arm, M is diagonal and
is kept as one number per arm (`Diagonal`); otherwise all work is done in an orthonormal basis of what the
readings can show (`Dense`). Both answer the same three questions, which is all that a design needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.probes import Probes
from surepick.core.telling_apart import span

TRACE = 1e-10  # of the even design: keeps M regular, and is counted in all prices


class Information(Protocol):
    """Rows of readings, by probe, and what a division of the measurements between the probes is worth."""

    @property
    def n_probes(self) -> int:
        """How many probes there are."""
        ...

    def coordinates(self, vectors: Any) -> Any:
        """Differences of plans, (n, n_arms), in the coordinates of M."""
        ...

    def matrix(self, counts: FloatArray) -> FloatArray:
        """M of so many uses of each probe."""
        ...

    def play(self, share: FloatArray, costs: FloatArray, probes: BoolArray | None) -> Play:
        """What a spending of these shares of cost is worth, among all probes or these alone."""
        ...


class Play(Protocol):
    """A spending, ready to be priced."""

    def prices(self, targets: Any, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """z' M^-1 z of each target, and of each probe g = (1/c) sum_k sum_j dual_j (x_k' M^-1 z_j)^2."""
        ...


def information_of(probes: Probes, basis: FloatArray | None = None) -> Information:
    """The information of these probes, kept as their readings allow; in this basis, if it is known."""
    rows = probes.whitened
    if probes.is_diagonal:
        return Diagonal(rows.indices.astype(np.int64), rows.data**2, probes.owner, len(probes), rows.shape[1])
    basis = span(probes.rows) if basis is None else basis
    return Dense(np.ascontiguousarray(rows @ basis.T), probes.owner, len(probes), basis)


@dataclass(frozen=True, eq=False)
class Dense:
    """Readings that mix arms."""

    rows: FloatArray  # (n_readings, rank) whitened, in the basis
    owner: IntArray  # (n_readings,)
    n_probes: int
    basis: FloatArray  # (rank, n_arms) orthonormal

    def coordinates(self, vectors: Any) -> Any:
        """In the basis of what the readings can show."""
        return np.asarray(vectors @ self.basis.T)

    def matrix(self, counts: FloatArray) -> FloatArray:
        """(rank, rank)."""
        weights = counts[self.owner]
        used = weights > 0
        rows = self.rows[used]
        return np.asarray(rows.T @ (weights[used, None] * rows))

    def play(self, share: FloatArray, costs: FloatArray, probes: BoolArray | None) -> Play:
        """M of the shares, factored."""
        keep = slice(None) if probes is None else np.flatnonzero(probes[self.owner])
        rows, owner = self.rows[keep], self.owner[keep]
        weights = ((1 - TRACE) * share / costs)[owner]
        matrix = rows.T @ (weights[:, None] * rows) + TRACE * self.even(costs)
        return _DensePlay(matrix, rows, owner, costs)

    def even(self, costs: FloatArray) -> FloatArray:
        """M of one share for every probe; kept for the prices that were asked last."""
        kept: tuple[FloatArray, FloatArray] | None = self.__dict__.get("_kept")
        if kept is None or kept[0] is not costs:
            even = self.matrix(1.0 / (self.n_probes * costs))
            kept = self.__dict__["_kept"] = (costs, even)
        return kept[1]


@dataclass(frozen=True, eq=False)
class _DensePlay:
    information: FloatArray
    rows: FloatArray
    owner: IntArray
    costs: FloatArray

    def prices(self, targets: Any, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By one factorisation; the cheaper of two ways to sum over targets."""
        from scipy.linalg import cho_factor, cho_solve

        factor = cho_factor(self.information, lower=True, check_finite=False)
        solved = cho_solve(factor, targets.T, check_finite=False)  # (rank, n)
        values = np.einsum("jd,dj->j", targets, solved)
        if np.count_nonzero(dual) < len(self.information):
            some = dual > 0
            uses = ((self.rows @ (solved[:, some] * np.sqrt(dual[some]))) ** 2).sum(axis=1)
        else:
            uses = np.einsum("rd,rd->r", self.rows @ ((solved * dual) @ solved.T), self.rows)
        total = np.bincount(self.owner, uses, minlength=len(self.costs)) / self.costs
        return values, np.maximum(total, 0.0)


@dataclass(frozen=True, eq=False)
class Diagonal:
    """Readings of one arm each."""

    arm: IntArray  # (n_readings,)
    precision: FloatArray  # (n_readings,) of one reading: coefficient^2 / noise_scale^2
    owner: IntArray  # (n_readings,)
    n_probes: int
    n_arms: int

    @cached_property
    def is_single(self) -> bool:
        """Whether every arm is read by one probe alone, and by one reading."""
        return len(self.owner) == self.n_probes == len(np.unique(self.arm))

    def coordinates(self, vectors: Any) -> Any:
        """The arms themselves."""
        return vectors

    def matrix(self, counts: FloatArray) -> FloatArray:
        """(n_arms,): the diagonal."""
        weights = counts[self.owner] * self.precision
        return np.asarray(np.bincount(self.arm, weights, minlength=self.n_arms), dtype=float)

    def play(self, share: FloatArray, costs: FloatArray, probes: BoolArray | None) -> Play:
        """The diagonal of M."""
        del probes  # pricing all of them is cheap
        even = self.matrix(1.0 / (self.n_probes * costs))
        return _DiagonalPlay(self, self.matrix((1 - TRACE) * share / costs) + TRACE * even, costs)


@dataclass(frozen=True, eq=False)
class _DiagonalPlay:
    readings: Diagonal
    information: FloatArray  # (n_arms,)
    costs: FloatArray

    def prices(self, targets: Any, dual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By sums over arms; an arm that no probe reads is in no difference."""
        readings, m = self.readings, self.information
        inverse = np.divide(1.0, m, out=np.zeros_like(m), where=m > 0)
        squares = targets * targets
        values = np.asarray(squares @ inverse)
        pull = np.asarray(dual @ squares) * inverse**2  # (n_arms,) sum_j dual_j z_js^2 / m_s^2
        uses = readings.precision * pull[readings.arm]
        return values, np.bincount(readings.owner, uses, minlength=readings.n_probes) / self.costs
