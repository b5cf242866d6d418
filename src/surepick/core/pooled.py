"""What readings say of the arms, all of them together: for people to look at; nothing is decided by it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence
from surepick.core.known import without_columns
from surepick.core.measurable import Measurable

_RANK = 1e-10  # of the largest eigenvalue: information below it is none
_SHOWN = 1e-6  # of a difference's length that may lie outside of what was read


@dataclass(frozen=True, eq=False)
class Pooled:
    """Least squares over all readings: the arms' means and their covariance, within what was read."""

    means: FloatArray  # (n_arms,) the shortest that fit the readings
    root: FloatArray  # (n_arms, rank): the covariance is root root'
    basis: FloatArray  # (n_arms, rank) orthonormal: what was read

    def gaps(self, away: FloatArray) -> tuple[FloatArray, FloatArray]:
        """away.means of each row and its standard deviation; infinite where it was not read."""
        error = np.linalg.norm(away @ self.root, axis=1)
        rest = np.linalg.norm(away - (away @ self.basis) @ self.basis.T, axis=1)
        unread = rest > _SHOWN * np.linalg.norm(away, axis=1)
        return np.asarray(away @ self.means), np.where(unread, np.inf, error)

    @property
    def variances(self) -> FloatArray:
        """(n_arms,): of each arm's mean by itself; infinite where it was not read apart from others."""
        return np.asarray(self.gaps(np.eye(len(self.means)))[1] ** 2)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Worlds that a flat prior leaves open, (n, n_arms)."""
        return np.asarray(self.means + rng.standard_normal((n, self.root.shape[1])) @ self.root.T)


def pooled(problem: Measurable, evidence: Evidence) -> Pooled:
    """All that the readings of this evidence say, with the means that are known.

    >>> from surepick.core.problem import Problem
    >>> problem = Problem(
    ...     [[1, 0], [0, 1]], measure={"both": {"arm 0": 1, "arm 1": 1}, "one": ["arm 0"]}, goal="largest"
    ... )
    >>> seen = Evidence.none_of(problem).with_sums(np.array([2, 4]), np.array([6.0, 4.0]))
    >>> pooled(problem, seen).means.round(6).tolist()
    [1.0, 2.0]
    """
    probes, is_known = problem.probes, problem.is_known
    assert probes is not None
    rows, n, sums = probes.whitened, evidence.each, evidence.sums
    if is_known.any():
        sums = sums - n * (probes.rows @ problem.known_means)
        rows = without_columns(rows, is_known)
    information = np.asarray((rows.T @ (rows * n[:, None])).todense())
    sizes, vectors = np.linalg.eigh(information)
    read = sizes > _RANK * max(float(sizes[-1]), 1e-300)
    basis, sizes = vectors[:, read], sizes[read]
    pull = np.asarray(rows.T @ probes.whiten(sums))
    known = np.eye(len(is_known))[:, is_known]  # they are as good as read, and without error
    return Pooled(
        basis @ ((basis.T @ pull) / sizes) + problem.known_means,
        np.hstack([basis / np.sqrt(sizes), 0.0 * known]),
        np.hstack([basis, known]),
    )
