"""What fits a problem: environments in the order of its arms, of its probes, with its noise, or a refusal."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.given.numbers import MOST_SCALES, ROUNDING, Numbers, furthest_values, outside, vector
from surepick.core.oracle_problem import AnyProblem
from surepick.core.probes import Probes
from surepick.errors import ParameterError
from surepick.simulation.environments import Arms, Bernoulli, Environment, Gaussian, Replay, UniformNoise

REACH = 100.0  # noise scales that a simulated value may lie from its mean


@dataclass(frozen=True, eq=False)
class Readings:
    """An environment of probes: readings of the true means with noise; counts are per probe.

    The noise is normal, as the probes have it; or uniform, within `half_width`.
    """

    means: FloatArray  # (n_arms,)
    probes: Probes
    half_width: float | None = None

    @property
    def noise_scale(self) -> FloatArray:
        """The standard deviation of each reading."""
        if self.half_width is None:
            return self.probes.noise_scale
        return np.full(self.probes.n_readings, self.half_width / np.sqrt(3.0))  # of a uniform variable

    @property
    def bounds(self) -> FloatArray:
        """Low and high of each reading, (n_readings, 2)."""
        reach = np.inf if self.half_width is None else self.half_width
        means = self.probes.rows @ self.means
        return np.column_stack([means - reach, means + reach])

    def uses(self, probe: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the readings of n uses of this probe, (n, n_readings) of it."""
        own = self.probes.readings_of(probe)
        mixes = self.probes.entries.dense(own.start, own.stop)
        shape = (n, len(mixes))
        if self.half_width is not None:
            noise = self.half_width * (2.0 * rng.random(shape) - 1.0)
        elif probe in self.probes.covariances:
            noise = rng.standard_normal(shape) @ np.linalg.cholesky(self.probes.covariances[probe]).T
        else:
            noise = self.probes.noise_scale[own] * rng.standard_normal(shape)
        return np.asarray(mixes @ self.means + noise)

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return sums of readings; of normal ones by one draw however many uses they stand for."""
        n = counts[self.probes.owner]
        sums = np.asarray(n * (self.probes.rows @ self.means))
        used = np.flatnonzero(n)
        if self.half_width is not None:
            for r in used.tolist():
                sums[r] += self.half_width * (2.0 * rng.random(int(n[r])) - 1.0).sum()
            return sums
        noise = np.zeros(len(n))
        noise[used] = np.sqrt(n[used]) * rng.standard_normal(len(used))
        return sums + self.probes.colour(noise)


@dataclass(frozen=True, eq=False)
class RowReadings:
    """An environment of probes: one use sees one value of every arm, and its readings are of these.

    The values are a toss of every coin, or a row of past data, so that values measured together stay so.
    """

    arms: Bernoulli | Replay
    probes: Probes

    @property
    def means(self) -> FloatArray:
        """The true mean of each arm."""
        return self.arms.means

    @property
    def bounds(self) -> FloatArray:
        """Low and high of each reading, (n_readings, 2)."""
        mixes = self.probes.entries.dense(0, self.probes.n_readings)
        if isinstance(self.arms, Replay):
            found = mixes @ self.arms.table.T
            return np.column_stack([found.min(axis=1), found.max(axis=1)])
        return np.column_stack([np.minimum(mixes, 0).sum(axis=1), np.maximum(mixes, 0).sum(axis=1)])

    def uses(self, probe: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Return the readings of n uses of this probe, (n, n_readings) of it."""
        own = self.probes.readings_of(probe)
        return np.asarray(self.arms.rows(n, rng) @ self.probes.entries.dense(own.start, own.stop).T)

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return sums of readings."""
        sums = np.zeros(self.probes.n_readings)
        for probe in np.flatnonzero(counts).tolist():
            sums[self.probes.readings_of(probe)] = self.uses(probe, int(counts[probe]), rng).sum(axis=0)
        return sums


def single_values(
    environment: Environment, counts: IntArray, rng: np.random.Generator, problem: AnyProblem
) -> dict[int, FloatArray]:
    """Return single measurements of each arm or probe of a request, (n_uses, n_readings) of each.

    An environment that cannot draw them together (`uses`) is asked for one after another.
    """
    uses = getattr(environment, "uses", None)
    found = dict[int, FloatArray]()
    for s in np.flatnonzero(counts).tolist():
        n = int(counts[s])
        if uses is not None:
            found[s] = uses(s, n, rng)
            continue
        once = np.zeros_like(counts)
        once[s] = 1
        own = problem.readings_counted(s)
        found[s] = np.array([environment.measure(once, rng)[own] for _ in range(n)])
    return found


def environment_of(
    problem: AnyProblem, means: Numbers, noise: Numbers | None = None
) -> Gaussian | UniformNoise:
    """Return arms with these true means: normal noise, or uniform noise where the problem states limits.

    `noise` is its standard deviation. Without it, normal noise is that of the problem, and uniform noise is
    as wide as the limits of the readings allow.

    >>> import surepick as sp
    >>> environment_of(sp.Problem([[1, 0], [0, 1]], low=0, high=10, goal="largest"), [2.0, 6.0]).half_width
    array([2., 4.])
    """
    if problem.bounds is None:
        return Gaussian(means, noise)
    if noise is not None:
        return UniformNoise(means, np.sqrt(3.0) * vector("noise", noise, problem.arm_names, one_for_all=True))
    means = vector("truth", means, problem.arm_names)
    if problem.probes is None:
        return UniformNoise(means, np.abs(problem.bounds.T - means).min(axis=0))
    return UniformNoise(means, np.abs(problem.bounds.T - problem.probes.rows @ means).min())


def fitted(problem: AnyProblem, environment: Environment, *, allow_noisier: bool) -> Environment:
    """Return the environment for this problem: in the order of its arms, of its probes, with its noise.

    An environment is refused that contradicts what the problem says of means, limits and noise.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=[0.2, 0.3], goal="largest")
    >>> fitted(problem, Gaussian([1.0, 2.0]), allow_noisier=False).scale.tolist()
    [0.2, 0.3]
    """
    if isinstance(environment, Arms):
        environment = environment.for_arms(problem.arm_names)
    if len(environment.means) != problem.n_arms:
        raise ParameterError(
            f"the environment has {len(environment.means)} arms and the problem {problem.n_arms}",
            field="environment",
        )
    problem.refuse_contrary(environment.means, "environment")
    if problem.probes is not None:
        environment = _probed(problem, problem.probes, environment)
    elif isinstance(environment, Gaussian) and environment.takes_scale:
        if problem.noise_scale is None:
            raise _without_scale("measurements")
        environment = Gaussian(environment.means, problem.noise_scale)
    _refuse_contrary(problem, environment, allow_noisier)
    return environment


def _probed(problem: AnyProblem, probes: Probes, environment: Environment) -> Environment:
    """Return the environment of arms as one of the problem's probes."""
    if isinstance(environment, Readings) or getattr(environment, "n_readings", 0) == probes.n_readings:
        return environment
    if isinstance(environment, Bernoulli | Replay):
        if problem.knows_noise and problem.bounds is None:
            raise ParameterError(
                "readings of one use share noise in past data; state low and high, or leave the noise out",
                field="environment",
            )
        return RowReadings(environment, probes)
    if not isinstance(environment, Gaussian | UniformNoise):
        raise ParameterError(
            f"{type(environment).__name__} does not give the {probes.n_readings} readings of this problem; "
            "use Gaussian, UniformNoise, Bernoulli, Replay, or an environment with n_readings whose "
            "measure(counts, rng) takes counts per probe and returns sums per reading",
            field="environment",
        )
    if isinstance(environment, Gaussian) and environment.takes_scale:
        if probes.unknown:
            raise _without_scale("readings")
        return Readings(environment.means, probes)
    own = environment.scale if isinstance(environment, Gaussian) else environment.half_width
    if np.ptp(own) > 0:
        raise ParameterError("with probes, the noise of all readings is one number", field="scale")
    if isinstance(environment, UniformNoise):
        return Readings(environment.means, probes, half_width=float(own[0]))
    scale = np.full(probes.n_readings, own[0])
    return Readings(environment.means, replace(probes, noise_scale=scale, covariances={}))


def _without_scale(what: str) -> ParameterError:
    return ParameterError(
        f"the noise of {what} is unknown in this problem, so state one here: Gaussian(means, scale)",
        field="scale",
    )


def _refuse_contrary(problem: AnyProblem, environment: Environment, allow_noisier: bool) -> None:
    """Refuse an environment outside the problem's limits, noisier than it says, or too far from zero."""
    scale, bounds = getattr(environment, "noise_scale", None), getattr(environment, "bounds", None)

    def refusal(reading: int, why: str) -> ParameterError:
        return ParameterError(
            f"{problem.reading_in_words(reading)} does not fit this {type(environment).__name__}: {why}",
            field="environment",
        )

    if problem.bounds is not None and bounds is not None:
        for r, (low, high) in enumerate(bounds.tolist()):
            if outside(problem.bounds, r, low) or outside(problem.bounds, r, high):
                limits = "{:g} to {:g}".format(*problem.bounds[r])
                raise refusal(r, f"its values go from {low:g} to {high:g}, and low and high say {limits}")
    if problem.probes is None:
        reach = np.abs(environment.means) + (0.0 if scale is None else REACH * scale)
        furthest = furthest_values(problem.noise_scale, problem.n_arms)
        for s in np.flatnonzero(reach > furthest)[:1].tolist():
            raise refusal(
                s,
                f"values may lie {reach[s]:g} from zero, and beyond {furthest[s]:g} ({MOST_SCALES:g} noise "
                "scales) rounding outweighs the noise; subtract a constant from all means",
            )
    stated = problem.noise_scale
    if allow_noisier or scale is None or stated is None or not problem.knows_noise:
        return
    matters = problem.relevant if problem.probes is None else np.ones(len(stated), dtype=bool)
    for r in np.flatnonzero(matters & (scale > stated * (1 + ROUNDING)))[:1].tolist():
        raise refusal(
            r,
            f"its noise is {scale[r]:.4g} here, and the problem says {stated[r]:.4g}, on which the guarantee "
            "rests; change one of them, or see what happens without a guarantee: allow_noisier=True",
        )


def refuse_sums(problem: AnyProblem, counts: IntArray, sums: FloatArray) -> None:
    """Refuse sums that the problem's limits rule out, or that no session would take."""
    furthest = furthest_values(problem.noise_scale, problem.n_arms)
    for arm in np.flatnonzero(counts).tolist():
        n, mean = int(counts[arm]), float(sums[arm]) / int(counts[arm])
        within = problem.bounds is None or not outside(problem.bounds, arm, mean)
        if not (within and abs(mean) <= furthest[arm]):
            low, high = (-furthest[arm], furthest[arm]) if problem.bounds is None else problem.bounds[arm]
            raise ParameterError(
                f"the environment gave {n} measurements of {problem.reading_in_words(arm)} with a mean of "
                f"{mean:g}; they lie within {low:g} to {high:g}",
                field="environment",
            )
