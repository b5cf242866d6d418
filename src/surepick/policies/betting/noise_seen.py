"""How the readings of one use were seen to scatter together, probe by probe: an estimate, for planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surepick.core.arrays import MOST_SCALES, FloatArray, IntArray
from surepick.core.probes import Probes
from surepick.errors import ProblemError

_TRUST = 10.0  # degrees of freedom that what all probes have in common counts in the estimate of one
_LEAST, _MOST = -0.5, 0.99  # of the correlation that all have in common, the least shared by m - 1
_ENOUGH = 11  # degrees of freedom without any difference, after which readings count as constant
_ROUNDING = 1e-24  # of the largest average, squared: noise below it is rounding


@dataclass(frozen=True, eq=False)
class _Alike:
    """The probes with the same number of readings, so that they are one array."""

    probes: IntArray  # (n,)
    readings: IntArray  # (n, m)
    factor: FloatArray  # (n, m, m) of the covariances that were guessed
    squares: FloatArray  # (n, m, m) of what was seen around the means; changed in place


class NoiseSeen:
    """Squares and products around the means of parts that are alike; changed by `add` and `restore`."""

    def __init__(self, probes: Probes) -> None:
        self._guess = probes
        self._freedom, self._largest = np.zeros(len(probes)), 0.0
        size = np.diff(probes.start)
        self._kinds = [self._alike(np.flatnonzero(size == m), int(m)) for m in np.unique(size)]

    def _alike(self, probes: IntArray, m: int) -> _Alike:
        readings = self._guess.start[probes][:, None] + np.arange(m)
        guessed = np.zeros((len(probes), m, m))
        guessed[:, np.arange(m), np.arange(m)] = self._guess.noise_scale[readings] ** 2
        for i, probe in enumerate(probes.tolist()):
            if probe in self._guess.covariances:
                guessed[i] = self._guess.covariances[probe]
        factor = np.asarray(np.linalg.cholesky(guessed), dtype=float)
        return _Alike(probes, readings, factor, np.zeros((len(probes), m, m)))

    def add(self, part: IntArray, averages: FloatArray) -> None:
        """Take in a block: the counts of one part, and what each showed, (n_readings, n_parts)."""
        around = averages - averages.mean(axis=1, keepdims=True)
        self._largest = max(self._largest, float(np.abs(averages).max()))
        for kind in self._kinds:
            own = around[kind.readings]  # (n, m, n_parts)
            kind.squares[...] += part[kind.probes][:, None, None] * (own @ own.transpose(0, 2, 1))
        self._freedom = self._freedom + np.where(part > 0, averages.shape[1] - 1.0, 0.0)

    def refuse_unusable(self) -> None:
        """Refuse readings that never differ, or lie too far from zero for their noise to be learned."""
        for kind in self._kinds:
            seen = np.einsum("nmm->nm", kind.squares) > _ROUNDING * self._largest**2
            constant = ~seen & (self._freedom[kind.probes] >= _ENOUGH)[:, None]
            if constant.any():
                reading = int(kind.readings[constant][0])
                raise ProblemError(
                    f"all measurements of {self._guess.reading_name(reading)} are equal, so its noise cannot "
                    "be learned from them; give noise_scale",
                    field="noise_scale",
                )
        varies = any(kind.squares.any() for kind in self._kinds)
        if varies and self._largest > MOST_SCALES * float(self.probes().noise_scale.max()):
            raise ProblemError(
                f"measurements of about {self._largest:g} are over {MOST_SCALES:g} times their noise, so "
                "rounding outweighs it; begin again with a constant subtracted from all values",
                field="noise_scale",
            )

    def probes(self) -> Probes:
        """The probes with noise as it is estimated now: that of each, leaning to what all have in common."""
        if not self._freedom.any():
            return self._guess
        whitened = [_in_units_of(kind) for kind in self._kinds]
        size, together = self._in_common(whitened)
        scale = self._guess.noise_scale.copy()
        covariances: dict[int, FloatArray] = {}
        for kind, seen in zip(self._kinds, whitened, strict=True):
            m = kind.readings.shape[1]
            share = max(together, _LEAST / max(m - 1, 1))
            common = size * ((1.0 - share) * np.eye(m) + share)
            freedom = self._freedom[kind.probes][:, None, None]
            found = kind.factor @ ((seen + _TRUST * common) / (freedom + _TRUST)) @ kind.factor.swapaxes(1, 2)
            scale[kind.readings] = np.sqrt(found[:, np.arange(m), np.arange(m)])
            if m > 1:
                covariances.update(zip(kind.probes.tolist(), found, strict=True))
        return replace(self._guess, noise_scale=scale, covariances=covariances)

    def _in_common(self, whitened: list[FloatArray]) -> tuple[float, float]:
        """Variance, in units of what was guessed, and correlation of readings of one use, over all probes."""
        squares = products = readings = pairs = 0.0
        for kind, seen in zip(self._kinds, whitened, strict=True):
            m, freedom = kind.readings.shape[1], float(self._freedom[kind.probes].sum())
            own = float(np.trace(seen, axis1=1, axis2=2).sum())
            squares, readings = squares + own, readings + m * freedom
            products, pairs = products + float(seen.sum()) - own, pairs + m * (m - 1) * freedom
        size = max(squares / readings, _ROUNDING * self._largest**2, 1e-280)
        return size, min(products / pairs / size, _MOST) if pairs else 0.0

    def state(self) -> dict[str, Any]:
        """All that a new one needs to become this one."""
        return {
            "freedom": self._freedom.copy(),
            "largest": self._largest,
            "squares": [kind.squares.copy() for kind in self._kinds],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the one whose state this is."""
        self._freedom, self._largest = state["freedom"].copy(), float(state["largest"])
        for kind, squares in zip(self._kinds, state["squares"], strict=True):
            kind.squares[...] = squares


def _in_units_of(kind: _Alike) -> FloatArray:
    """What was seen, in units of what was guessed."""
    half = np.linalg.solve(kind.factor, kind.squares)
    return np.asarray(np.linalg.solve(kind.factor, half.swapaxes(1, 2)))
