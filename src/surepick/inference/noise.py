"""Covariances of unknown noise, estimated from replicates.

They guide the design, and never count as evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import MOST_SCALES, FloatArray, IntArray
from surepick.core.probes import Probes
from surepick.errors import ProblemError
from surepick.inference.steps import from_steps, to_steps

_PRIOR_FREEDOM = 10.0  # degrees of freedom with which the common estimate enters that of one probe
_LEAST_CORRELATION, _MOST_CORRELATION = -0.5, 0.99  # of the common estimate; the least is shared by m - 1
_ENOUGH_FREEDOM = 11  # degrees of freedom without any difference: the reading counts as constant
_ROUNDING = 1e-24  # of the largest average, squared: a variance below it is rounding


@dataclass(frozen=True, eq=False)
class _Group:
    """The probes with m readings each, so that their covariances are one array."""

    probes: IntArray  # (n,)
    readings: IntArray  # (n, m)
    factor: FloatArray  # (n, m, m) Cholesky factors of the covariances that were guessed


class NoiseEstimate:
    """Scatter matrices of replicates around their means, probe by probe. Changed by `add`."""

    STATE = ("freedom", "largest", "scatter")

    def __init__(self, probes: Probes) -> None:
        self._guess = probes
        self.freedom = np.zeros(len(probes))  # degrees of freedom
        self.largest = 0.0  # average of a replicate, by size
        sizes = np.diff(probes.start)
        self._groups = [self._group(np.flatnonzero(sizes == m), int(m)) for m in np.unique(sizes)]
        self.scatter = [np.zeros_like(group.factor) for group in self._groups]

    def _group(self, probes: IntArray, m: int) -> _Group:
        readings = self._guess.start[probes][:, None] + np.arange(m)
        covariance = (self._guess.noise_scale[readings] ** 2)[:, :, None] * np.eye(m)
        for i, probe in enumerate(probes.tolist()):
            if probe in self._guess.covariances:
                covariance[i] = self._guess.covariances[probe]
        return _Group(probes, readings, np.asarray(np.linalg.cholesky(covariance)))

    def extend(self, probes: Probes) -> None:
        """Continue with these probes: the old ones first, then new ones of one reading each."""
        n = len(probes) - len(self.freedom)
        kept, self._guess = self.scatter, probes
        self.freedom = np.append(self.freedom, np.zeros(n))
        sizes = np.diff(probes.start)
        self._groups = [self._group(np.flatnonzero(sizes == m), int(m)) for m in np.unique(sizes)]
        self.scatter = [np.zeros_like(group.factor) for group in self._groups]
        for new, old in zip(self.scatter, kept, strict=True):
            new[: len(old)] = old

    def add(self, uses: IntArray, averages: FloatArray) -> None:
        """Add a batch: the uses of each replicate, and the averages of readings, (n_readings, G)."""
        deviations = averages - averages.mean(axis=1, keepdims=True)
        self.largest = max(self.largest, float(np.abs(averages).max()))
        for group, scatter in zip(self._groups, self.scatter, strict=True):
            own = deviations[group.readings]  # (n, m, G)
            scatter += uses[group.probes][:, None, None] * (own @ own.transpose(0, 2, 1))
        self.freedom = self.freedom + np.where(uses > 0, averages.shape[1] - 1.0, 0.0)

    def refuse_unusable(self) -> None:
        """Refuse readings that never differ, or lie too far from 0 for their noise to be estimated."""
        for group, scatter in zip(self._groups, self.scatter, strict=True):
            varies = np.einsum("nmm->nm", scatter) > _ROUNDING * self.largest**2
            constant = ~varies & (self.freedom[group.probes] >= _ENOUGH_FREEDOM)[:, None]
            if constant.any():
                name = self._guess.reading_name(int(group.readings[constant][0]))
                raise ProblemError(
                    f"all measurements of {name} are equal, so its noise cannot be learned from them; give "
                    "noise_scale",
                    field="noise",
                )
        varies_at_all = any(scatter.any() for scatter in self.scatter)
        if varies_at_all and self.largest > MOST_SCALES * float(self.probes().noise_scale.max()):
            raise ProblemError(
                f"measurements of about {self.largest:g} are over {MOST_SCALES:g} times their noise, so that "
                "rounding outweighs it; subtract a constant from all values",
                field="noise",
            )

    def probes(self) -> Probes:
        """Return the probes with the noise as it is estimated now.

        Each probe's own estimate is shrunk to the variance, in units of the guess, and the correlation that
        all probes have in common.
        """
        if not self.freedom.any():
            return self._guess
        whitened = []
        for group, scatter in zip(self._groups, self.scatter, strict=True):
            half = np.linalg.solve(group.factor, scatter)
            whitened.append(np.linalg.solve(group.factor, half.swapaxes(1, 2)))
        variance, correlation = self._common(whitened)
        scale, covariances = self._guess.noise_scale.copy(), dict[int, FloatArray]()
        for group, own in zip(self._groups, whitened, strict=True):
            m = group.readings.shape[1]
            share = max(correlation, _LEAST_CORRELATION / max(m - 1, 1))
            common = variance * ((1.0 - share) * np.eye(m) + share)
            freedom = self.freedom[group.probes][:, None, None]
            estimate = (own + _PRIOR_FREEDOM * common) / (freedom + _PRIOR_FREEDOM)
            found = group.factor @ estimate @ group.factor.swapaxes(1, 2)
            scale[group.readings] = np.sqrt(found[:, np.arange(m), np.arange(m)])
            if m > 1:
                covariances.update(zip(group.probes.tolist(), found, strict=True))
        scale = scale if covariances else from_steps(to_steps(scale))
        return replace(self._guess, noise_scale=scale, covariances=covariances)

    def _common(self, whitened: list[FloatArray]) -> tuple[float, float]:
        """Return variance, in units of the guess, and correlation of readings of one use, over all probes."""
        squares = products = n_squares = n_products = 0.0
        for group, own in zip(self._groups, whitened, strict=True):
            m, freedom = group.readings.shape[1], float(self.freedom[group.probes].sum())
            trace = float(np.trace(own, axis1=1, axis2=2).sum())
            squares, n_squares = squares + trace, n_squares + m * freedom
            products, n_products = products + float(own.sum()) - trace, n_products + m * (m - 1) * freedom
        variance = max(squares / n_squares, _ROUNDING * self.largest**2, 1e-280)
        return variance, min(products / n_products / variance, _MOST_CORRELATION) if n_products else 0.0
