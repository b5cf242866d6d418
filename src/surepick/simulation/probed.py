"""Probes in a simulation: true means of arms become readings, with the noise that the problem states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from surepick.core.arrays import ROUNDING, FloatArray, IntArray
from surepick.core.probes import Probes
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.simulation.environments import Environment, Gaussian, UniformNoise


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
    raise ParameterError(
        f"{type(environment).__name__} measures single arms, and this problem has probes"
        + (" whose readings are bounded" if problem.bounds is not None else "")
        + "; use Gaussian(means) or UniformNoise(means, half_width), or an environment with n_readings whose "
        "measure(counts, rng) takes counts per probe and returns sums per reading",
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
