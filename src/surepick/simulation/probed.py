"""Probes in a simulation: true means of arms become readings, with the noise that the problem states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from surepick.core.arrays import ROUNDING, FloatArray, IntArray, as_dense, outside
from surepick.core.probes import Probes
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.simulation.environments import (
    Bernoulli,
    Environment,
    Gaussian,
    Replay,
    UniformNoise,
    rare_spread,
)


@runtime_checkable
class ReadingEnvironment(Environment, Protocol):
    """A custom environment for probes: `measure` takes counts per probe, and sums are per reading."""

    @property
    def n_readings(self) -> int:
        """How many readings all probes have together."""
        ...


def probed(problem: Problem, environment: Environment, *, allow_noisier: bool) -> ReadingEnvironment:
    """The environment of arms as one of the problem's probes.

    Gaussian arms without a scale of their own give readings with the problem's noise, covariances included.
    A use of a probe reads one row of past data, or one toss of each arm: its readings go together.
    """
    probes = problem.probes
    assert probes is not None
    if isinstance(environment, ReadingEnvironment):
        if environment.n_readings != probes.n_readings:
            raise ParameterError(
                f"the environment has {environment.n_readings} readings and the problem {probes.n_readings}",
                field="environment",
            )
        return environment
    if isinstance(environment, Gaussian) and problem.bounds is None:
        return _gaussian(probes, environment, allow_noisier)
    if isinstance(environment, UniformNoise) and not probes.covariances:
        width = np.broadcast_to(environment.half_width[:1], probes.n_readings)
        if np.ptp(environment.half_width) > 0:
            raise ParameterError(
                "with probes, UniformNoise has one half_width, that of every reading", field="half_width"
            )
        _refuse_noisier(probes, width / np.sqrt(3.0), allow_noisier)
        return UniformReadings(environment.means, probes, width)
    if isinstance(environment, Replay | Bernoulli):
        of_rows: RowReadings = (
            PastReadings(environment.means, probes, _rows(environment))
            if isinstance(environment, Replay)
            else TossedReadings(environment.means, probes, environment.noise_scale)
        )
        _refuse_outside(problem, of_rows)
        if problem.bounds is None and not allow_noisier:
            _refuse_noisier(probes, of_rows.noise_scale, allow_noisier)
            _refuse_shared_noise(probes, of_rows)
        return of_rows
    raise ParameterError(
        f"{type(environment).__name__} measures single arms, and this problem has probes"
        + (" whose readings are bounded" if problem.bounds is not None else "")
        + "; use Gaussian(means), UniformNoise(means, half_width), Bernoulli(means), Replay(table), or an "
        "environment with n_readings whose measure(counts, rng) takes counts per probe and returns sums per "
        "reading",
        field="environment",
    )


def _gaussian(probes: Probes, environment: Gaussian, allow_noisier: bool) -> GaussianReadings:
    if environment.takes_scale and probes.unstated:
        raise ParameterError(
            f"the noise of {probes.reading_name(probes.unstated[0])} is unknown, so state one here: "
            "Gaussian(means, scale)",
            field="scale",
        )
    if environment.takes_scale:
        return GaussianReadings(environment.means, probes, None)
    if np.ptp(environment.scale) > 0:
        raise ParameterError(
            "with probes, a Gaussian has one scale, that of every reading, or none", field="scale"
        )
    scale = np.full(probes.n_readings, environment.scale[0])
    _refuse_noisier(probes, scale, allow_noisier)
    return GaussianReadings(environment.means, probes, scale)


def _refuse_noisier(probes: Probes, scale: FloatArray, allow_noisier: bool) -> None:
    """Refuse readings with more noise than the problem says: the guarantee would not hold for them."""
    wrong = np.flatnonzero(scale > probes.noise_scale * (1 + ROUNDING))
    if wrong.size and not allow_noisier and not probes.unknown:
        r = int(wrong[0])
        raise ParameterError(
            f"{probes.reading_name(r)} has noise of scale {scale[r]:.4g} in this environment, and the "
            f"problem says {probes.noise_scale[r]:.4g}, on which the guarantee rests; leave scale out, or "
            "see what happens without a guarantee: allow_noisier=True",
            field="scale",
        )


def _rows(environment: Replay) -> FloatArray:
    """Return past data with a row for each past use and a column for each arm."""
    sizes = np.diff(environment.start)
    if np.ptp(sizes) > 0:
        raise ParameterError(
            "with probes, each row of past data is one use, so every arm has as many past measurements; got "
            f"{sizes.min():,} to {sizes.max():,}",
            field="table",
        )
    return environment.table.reshape(len(sizes), -1).T


def _refuse_outside(problem: Problem, environment: RowReadings) -> None:
    """Refuse readings that may lie outside the problem's bounds."""
    assert problem.probes is not None
    if problem.bounds is None:
        return
    for r, extremes in enumerate(environment.bounds.tolist()):
        if any(outside(problem.bounds, r, value) for value in extremes):
            low, high = problem.bounds[r].tolist()
            raise ParameterError(
                f"{problem.probes.reading_name(r)} lies within its bounds, {low:g} to {high:g}, and in this "
                f"environment its values go from {extremes[0]:g} to {extremes[1]:g}; give wider bounds",
                field="environment",
            )


def _refuse_shared_noise(probes: Probes, environment: RowReadings) -> None:
    """Refuse readings of one use that share more noise than the problem says, in any mix of them."""
    if probes.unknown:
        return
    for o in np.flatnonzero(np.diff(probes.start) > 1).tolist():
        own = probes.readings_of(o)
        stated = probes.covariances.get(o, np.diag(probes.noise_scale[own] ** 2))
        whiten = np.linalg.inv(np.linalg.cholesky(stated))
        most = float(np.linalg.eigvalsh(whiten @ environment.covariance(o) @ whiten.T).max())
        if most > 1 + ROUNDING:
            raise ParameterError(
                f"readings of one use of {probes.names[o]!r} share noise in this environment: a mix of them "
                f"has {np.sqrt(most):.4g} times the noise that the problem says, on which the guarantee "
                "rests; give their covariance, or bounds, or see what happens without a guarantee: "
                "allow_noisier=True",
                field="environment",
            )


@dataclass(frozen=True, eq=False)
class RowReadings(ABC):
    """Readings of rows: one use of a probe sees one value of each arm, and all its readings are of these."""

    means: FloatArray  # (n_arms,)
    probes: Probes

    @abstractmethod
    def covariance(self, probe: int) -> FloatArray:
        """The least noise of this probe that a problem must state, (n_readings, n_readings) of them."""

    @abstractmethod
    def uses(self, probe: int, n: int, rng: np.random.Generator) -> FloatArray:
        """The readings of n uses of this probe, (n, n_readings) of them."""

    @property
    @abstractmethod
    def bounds(self) -> FloatArray:
        """Low and high of each reading, (n_readings, 2)."""

    @property
    def n_readings(self) -> int:
        """The number of readings of all probes together."""
        return self.probes.n_readings

    @property
    def noise_scale(self) -> FloatArray:
        """The noise scale of each reading."""
        squares = np.concatenate([self.covariance(o).diagonal() for o in range(len(self.probes))])
        return np.asarray(np.sqrt(squares))

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of readings."""
        sums = np.zeros(self.n_readings)
        for o in np.flatnonzero(counts).tolist():
            sums[self.probes.readings_of(o)] = self.uses(o, int(counts[o]), rng).sum(axis=0)
        return sums


@dataclass(frozen=True, eq=False)
class PastReadings(RowReadings):
    """Rows of past data, drawn again with replacement."""

    rows: FloatArray  # (n_rows, n_arms)

    @cached_property
    def table(self) -> FloatArray:
        """The readings that each row gives, (n_rows, n_readings)."""
        return np.asarray((self.probes.rows @ self.rows.T).T)

    def covariance(self, probe: int) -> FloatArray:
        """Return the least covariance under which rows spread this much 1 time in 1000."""
        own = self.table[:, self.probes.readings_of(probe)]
        away = own - own.mean(axis=0)
        return np.asarray(away.T @ away / rare_spread(len(own)))

    def uses(self, probe: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the readings of n rows."""
        return np.asarray(self.table[rng.integers(len(self.table), size=n), self.probes.readings_of(probe)])

    @property
    def bounds(self) -> FloatArray:
        """The smallest and the largest past value of each reading."""
        return np.column_stack([self.table.min(axis=0), self.table.max(axis=0)])


@dataclass(frozen=True, eq=False)
class TossedReadings(RowReadings):
    """Arms that are 1 with the probability of their mean and else 0, tossed once in each use."""

    arm_scale: FloatArray  # (n_arms,)

    def covariance(self, probe: int) -> FloatArray:
        """Return the covariance of readings whose arms are independent and as noisy as their tosses."""
        mixes = self._mixes(probe) * self.arm_scale
        return np.asarray(mixes @ mixes.T)

    def uses(self, probe: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the readings of n uses."""
        return np.asarray((rng.random((n, len(self.means))) < self.means) @ self._mixes(probe).T)

    @property
    def bounds(self) -> FloatArray:
        """What each reading is if only the arms with negative amounts are 1, and if only the others are."""
        entries = as_dense(self.probes.rows)
        return np.column_stack([np.minimum(entries, 0).sum(axis=1), np.maximum(entries, 0).sum(axis=1)])

    def _mixes(self, probe: int) -> FloatArray:
        own = self.probes.readings_of(probe)
        return self.probes.entries.dense(own.start, own.stop)


@dataclass(frozen=True, eq=False)
class GaussianReadings:
    """Readings with normal noise: the problem's, or independent noise of these scales."""

    means: FloatArray  # (n_arms,)
    probes: Probes
    scale: FloatArray | None  # (n_readings,)

    @property
    def n_readings(self) -> int:
        """The number of readings of all probes together."""
        return self.probes.n_readings

    @property
    def noise_scale(self) -> FloatArray:
        """The noise scale of each reading."""
        return self.probes.noise_scale if self.scale is None else self.scale

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of readings, one draw per reading however many uses they stand for."""
        n = counts[self.probes.owner]
        used = np.flatnonzero(n)
        noise = np.zeros(len(n))
        noise[used] = np.sqrt(n[used]) * rng.standard_normal(len(used))
        noise = self.probes.colour(noise) if self.scale is None else self.scale * noise
        return np.asarray(n * (self.probes.rows @ self.means) + noise)


@dataclass(frozen=True, eq=False)
class UniformReadings:
    """Readings spread evenly over mean +- half_width, each drawn by itself."""

    means: FloatArray  # (n_arms,)
    probes: Probes
    half_width: FloatArray  # (n_readings,)

    @property
    def n_readings(self) -> int:
        """The number of readings of all probes together."""
        return self.probes.n_readings

    def values(self, reading: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Single values of a reading."""
        mean = float((self.probes.rows[[reading]] @ self.means)[0])
        return np.asarray(mean + self.half_width[reading] * (2.0 * rng.random(n) - 1.0))

    @property
    def noise_scale(self) -> FloatArray:
        """The standard deviation, which is a sub-Gaussian scale of this noise."""
        return np.asarray(self.half_width / np.sqrt(3.0))

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of uniform readings."""
        n = counts[self.probes.owner]
        sums = n * (self.probes.rows @ self.means)
        for r in np.flatnonzero(n).tolist():
            sums[r] += self.half_width[r] * (2.0 * rng.random(int(n[r])) - 1.0).sum()
        return np.asarray(sums)
