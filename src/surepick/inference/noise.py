"""What is known of the noise: a stated size, or covariances that are estimated from replicates.

Estimates guide the design and turn bets on gaps into factors; they never count as evidence. Bets are made
with what a decision records of them: scales in whole steps, and for probes with several readings a factor L
of their covariance L L' with a few digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.given.numbers import MOST_SCALES
from surepick.core.probes import Probes
from surepick.errors import ParameterError, ProblemError
from surepick.inference.factors import Factor, Student
from surepick.inference.steps import are_steps, from_steps, to_steps

_PRIOR_FREEDOM = 10.0  # degrees of freedom with which the common estimate enters that of one probe
_LEAST_CORRELATION, _MOST_CORRELATION = -0.5, 0.99  # of the common estimate; the least is shared by m - 1
_ENOUGH_FREEDOM = 11  # degrees of freedom without any difference: the reading counts as constant
_ROUNDING = 1e-24  # of the largest average, squared: a variance below it is rounding
_DIGITS = 6  # of the entries of a factor


class Noise:
    """Noise of a stated size, of which nothing is learned. Base of the kinds that are."""

    STATE: ClassVar[tuple[str, ...]] = ()
    is_learned: ClassVar[bool] = False
    needs_values: ClassVar[bool] = False  # whether readings are needed one by one, not only their sums
    first_uses = 1  # uses of each probe in the first batch

    def __init__(self, probes: Probes, factor: Factor) -> None:
        self.factor, self._given = factor, probes

    def is_known(self, uses: FloatArray) -> BoolArray:
        """Return which probes need no first batch, by their uses so far, prior data among them."""
        return uses > 0

    def extend(self, probes: Probes, bounds: FloatArray | None) -> None:
        """Continue with these probes: the old ones first, then new ones of one reading each."""
        del bounds
        self._given = probes

    def probes(self) -> Probes:
        """Return the probes with the noise as it is known now."""
        return self._given

    def terms(self, probes: Probes) -> dict[str, Any]:
        """Return what a decision with bets records of learned noise, as it is in these probes."""
        return recorded_noise(probes) if self.is_learned else {}

    def checks(self, probes: Probes) -> dict[str, Callable[[Any], bool]]:
        """Return checks of what such a decision records."""
        if not self.is_learned:
            return {}
        are_scales, are_factors = (
            partial(are_steps, n=probes.n_readings),
            partial(_are_factors, probes=probes),
        )
        return {"noise": are_scales, "factors": are_factors}

    def complete(self, probe: int, values: Any, n: int) -> FloatArray:
        """Return the readings of n uses of a probe as an array, (n, m); each of them must be there."""
        here = self._given.readings_of(probe)
        own = np.asarray(values, dtype=float).reshape(-1, here.stop - here.start)
        if len(own) != n:
            raise ParameterError(
                f"readings come one by one, {n} of probe {probe}, got {len(own)}", field="values"
            )
        return own

    def within(self, probe: int, values: FloatArray) -> FloatArray:
        """Return readings as bets use them."""
        del probe
        return values

    def shown(self, values: Mapping[int, FloatArray], terms: Mapping[str, Any]) -> Any:
        """Return what the values of a batch show, given what its decision has recorded."""
        return None

    def add(self, uses: IntArray, averages: FloatArray, values: Mapping[int, FloatArray]) -> None:
        """Learn from a batch: its uses and averages by replicate, and its values where they are needed."""


@dataclass(frozen=True, eq=False)
class _Group:
    """The probes with m readings each, so that their covariances are one array."""

    probes: IntArray  # (n,)
    readings: IntArray  # (n, m)
    factor: FloatArray  # (n, m, m) Cholesky factors of the covariances that were guessed


class NoiseEstimate(Noise):
    """Scatter matrices of replicates around their means, probe by probe. Changed by `add`."""

    STATE: ClassVar[tuple[str, ...]] = ("freedom", "largest", "scatter")
    is_learned = True

    def __init__(self, probes: Probes) -> None:
        self.freedom = np.zeros(0)  # degrees of freedom, by probe
        self.largest = 0.0  # average of a replicate, by size
        self.scatter: list[FloatArray] = []
        super().__init__(probes, Student())
        self.extend(probes, None)

    def extend(self, probes: Probes, bounds: FloatArray | None) -> None:
        """Continue with these probes: the old ones first, then new ones of one reading each."""
        super().extend(probes, bounds)
        kept, sizes = self.scatter, np.diff(probes.start)
        self.freedom = np.append(self.freedom, np.zeros(len(probes) - len(self.freedom)))
        self._groups = []
        for m in np.unique(sizes).tolist():
            own = np.flatnonzero(sizes == m)
            readings = probes.start[own][:, None] + np.arange(m)
            covariance = (probes.noise_scale[readings] ** 2)[:, :, None] * np.eye(m)
            for i in np.flatnonzero(np.isin(own, list(probes.covariances))).tolist():
                covariance[i] = probes.covariances[int(own[i])]
            self._groups.append(_Group(own, readings, np.asarray(np.linalg.cholesky(covariance))))
        self.scatter = [np.zeros_like(group.factor) for group in self._groups]
        for new, old in zip(self.scatter, kept, strict=False):
            new[: len(old)] = old

    def add(self, uses: IntArray, averages: FloatArray, values: Mapping[int, FloatArray]) -> None:
        """Add a batch: the uses of each replicate, and the averages of readings, (n_readings, G).

        Readings that never differ, or lie too far from 0 for their noise to be estimated, are refused.
        """
        del values
        deviations = averages - averages.mean(axis=1, keepdims=True)
        self.largest = max(self.largest, float(np.abs(averages).max()))
        for group, scatter in zip(self._groups, self.scatter, strict=True):
            own = deviations[group.readings]  # (n, m, G)
            scatter += uses[group.probes][:, None, None] * (own @ own.transpose(0, 2, 1))
        self.freedom = self.freedom + np.where(uses > 0, averages.shape[1] - 1.0, 0.0)
        for group, scatter in zip(self._groups, self.scatter, strict=True):
            varies = np.einsum("nmm->nm", scatter) > _ROUNDING * self.largest**2
            constant = ~varies & (self.freedom[group.probes] >= _ENOUGH_FREEDOM)[:, None]
            if constant.any():
                name = self._given.reading_name(int(group.readings[constant][0])).removeprefix("probe ")
                raise ProblemError(
                    f"all measurements of {name} are equal, so its noise cannot be learned; begin again with "
                    "low and high (0 and 1 for success or failure), or with a stated noise",
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

        With L L' the covariance of the readings of a use as guessed, each probe has a whitened scatter matrix
        W = L^-1 S L^-1', (m, m), of f degrees of freedom, so that W / f is near the identity up to a common
        factor. It is shrunk to what all probes have in common, one variance v and one correlation c:

            L (W + f0 v ((1 - c) I + c 11')) L' / (f + f0),   f0 = `_PRIOR_FREEDOM`.
        """
        if not self.freedom.any():
            return recordable(self._given)
        whitened = []
        for group, scatter in zip(self._groups, self.scatter, strict=True):
            half = np.linalg.solve(group.factor, scatter)
            whitened.append(np.linalg.solve(group.factor, half.swapaxes(1, 2)))
        # v is the mean of the diagonal entries of W per degree of freedom, c v that of the other entries
        squares = products = n_squares = n_products = 0.0
        for group, own in zip(self._groups, whitened, strict=True):
            m, n_free = group.readings.shape[1], float(self.freedom[group.probes].sum())
            trace = float(np.trace(own, axis1=1, axis2=2).sum())
            squares += trace
            n_squares += m * n_free
            products += float(own.sum()) - trace
            n_products += m * (m - 1) * n_free
        variance = max(squares / n_squares, _ROUNDING * self.largest**2, 1e-280)
        correlation = min(products / n_products / variance, _MOST_CORRELATION) if n_products else 0.0
        scale, covariances = self._given.noise_scale.copy(), dict[int, FloatArray]()
        for group, own in zip(self._groups, whitened, strict=True):
            m = group.readings.shape[1]
            c = max(correlation, _LEAST_CORRELATION / max(m - 1, 1))  # the matrix stays positive definite
            common = variance * ((1.0 - c) * np.eye(m) + c)
            freedom = self.freedom[group.probes][:, None, None]
            shrunk = (own + _PRIOR_FREEDOM * common) / (freedom + _PRIOR_FREEDOM)  # (n, m, m)
            found = group.factor @ shrunk @ group.factor.swapaxes(1, 2)
            scale[group.readings] = np.sqrt(found[:, np.arange(m), np.arange(m)])
            if m > 1:
                covariances.update(zip(group.probes.tolist(), found, strict=True))
        return recordable(replace(self._given, noise_scale=scale, covariances=covariances))


def recordable(probes: Probes) -> Probes:
    """Return the probes with their noise rounded to what a decision can record."""
    return with_noise(probes, recorded_noise(probes))


def recorded_noise(probes: Probes) -> dict[str, Any]:
    """Return the noise as a decision records it."""
    factors = []
    for probe, covariance in probes.covariances.items():
        rows = np.linalg.cholesky(covariance).tolist()
        factors.append([probe, [[float(f"{entry:.{_DIGITS}g}") for entry in row] for row in rows]])
    return {"noise": to_steps(probes.noise_scale)} | ({"factors": factors} if factors else {})


def with_noise(probes: Probes, recorded: Mapping[str, Any]) -> Probes:
    """Return the probes with the noise that a decision has recorded."""
    factors = {probe: np.array(rows) for probe, rows in recorded.get("factors", ())}
    covariances = {probe: factor @ factor.T for probe, factor in factors.items()}
    return replace(probes, noise_scale=from_steps(recorded["noise"]), covariances=covariances)


def _are_factors(recorded: Any, probes: Probes) -> bool:
    """Return whether these are factors of covariances, of all probes that have one, or none if none has."""
    factors = [] if recorded is None else recorded
    if [probe for probe, _ in factors] != list(probes.covariances):
        return False
    sizes = [len(probes.reading_names[probe]) for probe in probes.covariances]
    arrays = [np.array(rows, dtype=float) for _, rows in factors]
    are_square = [array.shape for array in arrays] == [(m, m) for m in sizes]
    return are_square and all(np.isfinite(a).all() and (np.diag(a) > 0).all() for a in arrays)
