"""What measurements by probes tell: the information matrix M(n) = sum_o n_o sum_k x_ok x_ok', and its prices.

Rows are whitened: the noise of each reading has scale 1. Where every reading is of one arm, M is diagonal and
is kept as one number per arm (`Diagonal`); otherwise all work is done in an orthonormal basis of what the
readings can show (`Dense`).

`prices(shares, costs, targets, in_play)` returns z' M^-1 z of each target z under these shares of cost, and a
function of weights on the targets: for each probe o, (1/c_o) sum_k sum_j dual_j (x_ok' M^-1 z_j)^2. With
`in_play` only these probes are priced; the others must have no shares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, divided
from surepick.core.probes import Probes, span

TRACE = 1e-10  # of the uniform design: keeps M regular, and is counted in all prices
Prices: TypeAlias = tuple[FloatArray, Callable[[FloatArray], FloatArray]]


def information_of(probes: Probes) -> Diagonal | Dense:
    """Return the information of these probes, kept as their readings allow."""
    rows = probes.whitened
    if probes.is_diagonal:
        return Diagonal(rows.indices.astype(np.int64), rows.data**2, probes.owner, len(probes), rows.shape[1])
    basis = span(probes.rows)
    return Dense(np.ascontiguousarray(rows @ basis.T), probes.owner, len(probes), basis)


@dataclass(frozen=True, eq=False)
class Dense:
    """Readings that mix arms."""

    rows: FloatArray  # (n_readings, rank) whitened, in the basis
    owner: IntArray  # (n_readings,)
    n_probes: int
    basis: FloatArray  # (rank, n_arms) orthonormal

    def coordinates(self, vectors: Any) -> Any:
        """Return differences of plans, (n, n_arms), in the basis of what the readings can show."""
        return np.asarray(vectors @ self.basis.T)

    def matrix(self, counts: FloatArray | IntArray) -> FloatArray:
        """Return M, (rank, rank), for these uses of each probe."""
        weights = counts[self.owner]
        used = weights > 0
        rows = self.rows[used]
        return np.asarray(rows.T @ (weights[used, None] * rows))

    def prices(
        self, shares: FloatArray, costs: FloatArray, targets: FloatArray, in_play: BoolArray | None = None
    ) -> Prices:
        """Return the variance z' M^-1 z of each target z, and a function that prices the probes for it.

        - shares: of the cost that each probe o gets, so that it is used shares_o / costs_o times per cost.
        - targets: (n, rank), in the basis.
        - in_play: the probes to price; all others have no share, and a price of 0.

        The function takes dual weights on the targets. Its price of probe o is minus the derivative of
        sum_j dual_j z_j' M^-1 z_j in the share of o: what more of it would take off these variances.
        """
        from scipy.linalg.lapack import dposv  # scipy.linalg's wrappers would take half of the time

        keep = slice(None) if in_play is None else np.flatnonzero(in_play[self.owner])
        rows, owner = self.rows[keep], self.owner[keep]
        weights = ((1 - TRACE) * shares / costs)[owner]  # (n_readings,) uses per cost
        # a trace of the uniform design keeps M regular
        matrix = rows.T @ (weights[:, None] * rows) + TRACE * self._uniform(costs)
        solved = dposv(matrix, targets.T, lower=1)[1]  # M^-1 z, (rank, n)

        def uses(dual: FloatArray) -> FloatArray:
            """Return, for each probe o, (1/c_o) sum_k sum_j dual_j (x_ok' M^-1 z_j)^2."""
            if np.count_nonzero(dual) < len(matrix):
                # few targets: sum_j (x' sqrt(dual_j) M^-1 z_j)^2
                some = dual > 0
                each = ((rows @ (solved[:, some] * np.sqrt(dual[some]))) ** 2).sum(axis=1)
            else:
                # many targets: x' B x, with B = sum_j dual_j (M^-1 z_j)(M^-1 z_j)' of size (rank, rank)
                each = np.einsum("rd,rd->r", rows @ ((solved * dual) @ solved.T), rows)
            # rounding may leave a quadratic form just below 0
            return np.maximum(np.bincount(owner, each, minlength=self.n_probes) / costs, 0.0)

        variances = np.einsum("jd,dj->j", targets, solved)
        return variances, uses

    def _uniform(self, costs: FloatArray) -> FloatArray:
        """Return M of the uniform design (an equal share of cost per probe), cached for the last `costs`."""
        kept: tuple[FloatArray, FloatArray] | None = self.__dict__.get("_kept")
        if kept is None or kept[0] is not costs:
            kept = self.__dict__["_kept"] = (costs, self.matrix(1.0 / (self.n_probes * costs)))
        return kept[1]


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
        """Return the vectors: the arms are the coordinates."""
        return vectors

    def matrix(self, counts: FloatArray | IntArray) -> FloatArray:
        """Return the diagonal of M, (n_arms,), for these uses of each probe."""
        weights = counts[self.owner] * self.precision
        return np.asarray(np.bincount(self.arm, weights, minlength=self.n_arms), dtype=float)

    def prices(
        self, shares: FloatArray, costs: FloatArray, targets: FloatArray, in_play: BoolArray | None = None
    ) -> Prices:
        """Return what `Dense.prices` returns; M is diagonal, so that sums over arms give it.

        An arm that no probe reads has the inverse 0: no target has a coefficient there.
        """
        del in_play  # pricing all probes is cheap
        m = self.matrix(((1 - TRACE) * shares + TRACE / self.n_probes) / costs)
        inverse = divided(1.0, m)
        squares = targets * targets

        def uses(dual: FloatArray) -> FloatArray:
            """Return, for each probe o, (1/c_o) sum_k sum_j dual_j (x_ok' M^-1 z_j)^2, M diagonal."""
            pull = (dual @ squares) * inverse**2  # (n_arms,) sum_j dual_j z_js^2 / m_s^2
            each = self.precision * pull[self.arm]  # (n_readings,)
            return np.asarray(np.bincount(self.owner, each, minlength=self.n_probes) / costs)

        return np.asarray(squares @ inverse), uses
