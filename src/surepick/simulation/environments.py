"""Environments: what answers a simulation, with true means that no policy sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Protocol, Self, TypeGuard, runtime_checkable

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray, Numbers, aligned, brief, labels_of
from surepick.errors import ParameterError
from surepick.kernels import AFFINE, TABLE, THRESHOLD, Feed, measured

RARE = 0.001  # how often past measurements may spread as much by chance


@runtime_checkable
class Environment(Protocol):
    """What can be measured, with true means that no policy sees."""

    @property
    def means(self) -> FloatArray:
        """The true mean of each arm."""
        ...

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """The sum of `counts[s]` fresh measurements of each arm s."""
        ...


@runtime_checkable
class CompiledEnvironment(Environment, Protocol):
    """An environment whose single measurements are a function of one raw draw, for the compiled driver."""

    def feed(self) -> Feed:
        """How a raw draw becomes a measurement."""
        ...

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Raw draws, the same numbers in one call as in many."""
        ...


@runtime_checkable
class BoundedEnvironment(Environment, Protocol):
    """An environment that knows between which numbers its measurements lie."""

    @property
    def bounds(self) -> FloatArray:
        """Low and high of one measurement of each arm, shape (n_arms, 2)."""
        ...


@runtime_checkable
class NoisyEnvironment(Environment, Protocol):
    """An environment that knows how noisy it is."""

    @property
    def noise_scale(self) -> FloatArray:
        """The noise scale of each arm that a problem must have, or exceed, for its guarantee to hold here."""
        ...


@runtime_checkable
class NamedEnvironment(Environment, Protocol):
    """An environment that may know its arms by name, and can put them in order."""

    @property
    def arm_names(self) -> tuple[str, ...] | None:
        """The names; None where the order alone is known."""
        ...

    def for_arms(self, names: Sequence[str]) -> Environment:
        """The same with the arms in this order."""
        ...


class Gaussian:
    """Normal measurements: the true mean of the arm plus noise of this scale.

    Means and scales may be given by the names of the arms, as a dictionary or a pandas Series; `simulate`
    then puts them in the order of the problem's arms.
    Without a scale, `simulate` draws with the noise scale of the problem, which must then be known;
    used without a problem, the noise is standard normal.

    >>> import numpy as np
    >>> counts, rng = np.array([0, 100]), np.random.default_rng(0)
    >>> Gaussian([1.0, 2.0], scale=0.5).measure(counts, rng).round(2).tolist()
    [0.0, 200.63]
    """

    def __init__(self, means: Numbers, scale: Numbers | None = None) -> None:
        names = labels_of(means)
        self.means = _finite_means(means)
        self.takes_scale = scale is None  # that of the problem
        given = 1.0 if scale is None else scale
        self.scale = _like_means("scale", given, self.means, names)
        self.arm_names = names
        if not (self.scale >= 0).all():
            raise ParameterError(
                f"the scale of Gaussian noise must not be negative, got {self.scale.min()}", field="scale"
            )

    def __repr__(self) -> str:
        return f"Gaussian({len(self.means)} arms, means {brief(self.means)}, scale {brief(self.scale)})"

    @property
    def noise_scale(self) -> FloatArray:
        """The scale."""
        return self.scale

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of normal measurements, one draw per arm however many they stand for."""
        return self.sums(counts, self.draw(int(np.count_nonzero(counts)), rng))

    def sums(self, counts: IntArray, draws: FloatArray) -> FloatArray:
        """The sums that these draws give, one for each arm that is measured."""
        sums = np.zeros(len(counts))
        arms = np.flatnonzero(counts)
        n = counts[arms]
        sums[arms] = n * self.means[arms] + np.sqrt(n) * self.scale[arms] * draws
        return sums

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Standard normal draws."""
        return rng.standard_normal(n)

    @property
    def bounds(self) -> FloatArray:
        """None at all, unless there is no noise."""
        reach = np.where(self.scale > 0, np.inf, 0.0)
        return np.column_stack([self.means - reach, self.means + reach])

    def for_arms(self, names: Sequence[str]) -> Self:
        """The same with the arms in this order, where they were given by name."""
        means, scale = _in_order(self.arm_names, names, means=self.means, scale=self.scale)
        return type(self)(means, None if self.takes_scale else scale)

    def with_scale(self, scale: FloatArray) -> Self:
        """The same means with the noise scale of a problem, which was checked there."""
        other = copy(self)
        other.scale = scale
        other.takes_scale = False
        return other

    def feed(self) -> Feed:
        """mean + scale * draw."""
        return Feed(AFFINE, self.means, self.scale)


class Bernoulli:
    """Measurements that are 1 with probability `means[s]` and 0 otherwise: sub-Gaussian with scale 1/2."""

    def __init__(self, means: Numbers) -> None:
        self.means = _finite_means(means)
        self.arm_names = labels_of(means)
        if not ((self.means >= 0) & (self.means <= 1)).all():
            raise ParameterError(
                f"Bernoulli means are probabilities, got {self.means.tolist()}", field="means"
            )

    def __repr__(self) -> str:
        return f"Bernoulli({len(self.means)} arms, means {brief(self.means)})"

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of coin tosses; exact, and one draw per arm."""
        sums = np.zeros(len(counts))
        once, often = np.flatnonzero(counts == 1), np.flatnonzero(counts > 1)
        sums[once] = self.draw(len(once), rng) < self.means[once]
        sums[often] = rng.binomial(counts[often], self.means[often])
        return sums

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform draws on [0, 1)."""
        return rng.random(n)

    def values(self, arm: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Single measurements of an arm."""
        return np.asarray(rng.random(n) < self.means[arm], dtype=float)

    @property
    def noise_scale(self) -> FloatArray:
        """The smallest sub-Gaussian scale (Kearns and Saul): 1/2 for a fair coin, less for others."""
        odds = np.clip(self.means, 1e-12, 1 - 1e-12)
        uneven = np.abs(odds - 0.5) > 1e-6
        away = np.where(uneven, odds, 0.25)
        proxy = (1 - 2 * away) / (2 * np.log((1 - away) / away))
        never = (self.means == 0) | (self.means == 1)
        return np.asarray(np.where(never, 0.0, np.sqrt(np.where(uneven, proxy, 0.25))))

    @property
    def bounds(self) -> FloatArray:
        """0 and 1."""
        return np.tile([0.0, 1.0], (len(self.means), 1))

    def for_arms(self, names: Sequence[str]) -> Self:
        """The same with the arms in this order, where they were given by name."""
        (means,) = _in_order(self.arm_names, names, means=self.means)
        return type(self)(means)

    def feed(self) -> Feed:
        """1 if the draw is below the mean."""
        return Feed(THRESHOLD, self.means, np.ones(len(self.means)))


class UniformNoise:
    """Measurements spread evenly over mean +- half_width: sub-Gaussian with scale half_width.

    Sums are exact: a request for n measurements draws n numbers.
    """

    def __init__(self, means: Numbers, half_width: Numbers = 1.0) -> None:
        names = labels_of(means)
        self.means = _finite_means(means)
        self.half_width = _like_means("half_width", half_width, self.means, names)
        self.arm_names = names
        if not (self.half_width >= 0).all():
            raise ParameterError(
                f"half_width must not be negative, got {self.half_width.min()}", field="half_width"
            )

    def __repr__(self) -> str:
        width = brief(self.half_width)
        return f"UniformNoise({len(self.means)} arms, means {brief(self.means)}, half width {width})"

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of uniform measurements."""
        return _sum_singles(self, counts, rng)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform draws on [0, 1)."""
        return rng.random(n)

    def values(self, arm: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Single measurements of an arm."""
        return np.asarray(self.means[arm] + self.half_width[arm] * (2.0 * rng.random(n) - 1.0))

    @property
    def noise_scale(self) -> FloatArray:
        """The standard deviation, which is a sub-Gaussian scale of this noise."""
        return np.asarray(self.half_width / np.sqrt(3.0))

    @property
    def bounds(self) -> FloatArray:
        """mean -+ half_width."""
        return np.column_stack([self.means - self.half_width, self.means + self.half_width])

    def for_arms(self, names: Sequence[str]) -> Self:
        """The same with the arms in this order, where they were given by name."""
        means, width = _in_order(self.arm_names, names, means=self.means, half_width=self.half_width)
        return type(self)(means, width)

    def feed(self) -> Feed:
        """low + width * draw."""
        return Feed(AFFINE, self.means - self.half_width, 2.0 * self.half_width)


class Replay:
    """Past measurements of each arm, drawn again with replacement; the true means are the tables' means.

    `table` has one sequence of past measurements per arm: a list of lists in the order of the arms, a 2-d
    array with one column per arm, or, by the names of the arms, a dictionary or a pandas DataFrame.
    `arm_names` says which arms of it are meant and in which order; `simulate` sees to that itself.
    Where a problem has probes, a use reads one row of the table, so that values measured together stay so.

    >>> Replay([[1.0, 3.0], [5.0]]).means.tolist()
    [2.0, 5.0]
    """

    def __init__(
        self,
        table: Sequence[npt.ArrayLike] | npt.NDArray[np.float64] | Mapping[str, npt.ArrayLike],
        *,
        arm_names: Sequence[str] | None = None,
    ) -> None:
        if labels_of(table, columns=True) is not None:
            table = {str(name): column.to_numpy() for name, column in table.items()}  # type: ignore[union-attr]
        columns = _columns(table, arm_names)
        known = tuple(arm_names if arm_names is not None else table) if isinstance(table, Mapping) else None
        self.arm_names = known
        self.means = np.array([column.mean() for column in columns])
        self.table = np.concatenate(columns)
        sizes = [len(column) for column in columns]
        self.start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def __repr__(self) -> str:
        return f"Replay({len(self.means)} arms, means {brief(self.means)})"

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Sums of past measurements drawn at random."""
        return _sum_singles(self, counts, rng)

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Uniform draws on [0, 1)."""
        return rng.random(n)

    def values(self, arm: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Single measurements of an arm."""
        return np.asarray(rng.choice(self.table[self.start[arm] : self.start[arm + 1]], n))

    @property
    def noise_scale(self) -> FloatArray:
        """The smallest noise scale under which each arm's table is scattered this much 1 time in 1000.

        By chance the table's standard deviation may exceed the true scale, with 20 values by up to a half.
        """
        squares = [len(table) * float(table.var()) for table in np.split(self.table, self.start[1:-1])]
        return np.asarray(np.sqrt(squares / rare_spread(np.diff(self.start))))

    @property
    def bounds(self) -> FloatArray:
        """The smallest and the largest past measurement of each arm."""
        lows = np.minimum.reduceat(self.table, self.start[:-1])
        return np.column_stack([lows, np.maximum.reduceat(self.table, self.start[:-1])])

    def for_arms(self, names: Sequence[str]) -> Self:
        """The same with the arms in this order, where they were given by name."""
        columns = np.split(self.table, self.start[1:-1])
        by_name = dict(zip(self.arm_names or names, columns, strict=True))
        return type(self)(aligned("table", by_name, names))

    def feed(self) -> Feed:
        """The entry of the arm's table that the draw points at."""
        nothing = np.zeros(len(self.means))
        return Feed(TABLE, nothing, nothing, self.table, self.start)


def rare_spread(n: npt.ArrayLike) -> FloatArray:
    """Return the sum of squares around their mean that n normal values of scale 1 exceed 1 time in 1000."""
    from scipy.special import gammainccinv  # the chi-square quantile; scipy.stats is slow to import

    return np.asarray(2 * gammainccinv(np.maximum(np.asarray(n) - 1, 1) / 2, RARE))


def single_values(
    environment: Environment,
    counts: IntArray,
    rng: np.random.Generator,
    readings_of: Callable[[int], Sequence[int]],
) -> dict[int, FloatArray]:
    """Return single measurements of each arm or probe of a request, (n_uses, n_readings) of each.

    An environment that cannot draw them at once (`uses`, or `values` of independent readings) is asked for
    one after another.
    """
    draw, found = getattr(environment, "values", None), dict[int, FloatArray]()
    uses = getattr(environment, "uses", None)
    for s in np.flatnonzero(counts).tolist():
        n, once = int(counts[s]), np.zeros_like(counts)
        if uses is not None:
            found[s] = uses(s, n, rng)
            continue
        once[s] = 1
        found[s] = (
            np.array([environment.measure(once, rng)[readings_of(s)] for _ in range(n)])
            if draw is None
            else np.column_stack([draw(r, n, rng) for r in readings_of(s)])
        )
    return found


def is_compiled(environment: Environment) -> TypeGuard[CompiledEnvironment]:
    """Return whether the compiled driver can measure in this environment."""
    return isinstance(environment, CompiledEnvironment)


def _sum_singles(environment: CompiledEnvironment, counts: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw every single measurement of the request and add them up, arm by arm."""
    feed, sums = environment.feed(), np.zeros(len(counts))
    for arm in map(int, np.flatnonzero(counts)):
        left = int(counts[arm])
        while left:
            draws = environment.draw(min(left, 2**16), rng)
            sums[arm] += measured(feed, arm, draws).sum()
            left -= len(draws)
    return sums


def _in_order(own: Sequence[str] | None, names: Sequence[str], **numbers: FloatArray) -> list[FloatArray]:
    """These numbers of the own arms, in the order of the names."""
    of_arms = names if own is None else own
    by_name = ((what, dict(zip(of_arms, array, strict=True))) for what, array in numbers.items())
    return [np.array(aligned(what, given, names)) for what, given in by_name]


def _finite_means(means: Numbers) -> FloatArray:
    try:
        array = np.array(aligned("means", means, labels_of(means) or ()), dtype=float)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise ParameterError(
            f"means must be a list of finite numbers, one per arm, got {means!r}", field="means"
        )
    return array


def _like_means(what: str, given: Numbers, means: FloatArray, names: Sequence[str] | None) -> FloatArray:
    if names is None and labels_of(given) is not None:
        raise ParameterError(
            f"{what} is given by the names of arms and the means by their order alone; give both by name",
            field=what,
        )
    array: FloatArray = np.array(aligned(what, given, names or ()), dtype=float)
    if array.shape not in ((), means.shape):
        raise ParameterError(
            f"{what} must be one number or one for each of the {len(means)} arms", field=what
        )
    return np.broadcast_to(array, means.shape).copy()


def _columns(
    table: Sequence[npt.ArrayLike] | npt.NDArray[np.float64] | Mapping[str, npt.ArrayLike],
    arm_names: Sequence[str] | None,
) -> list[FloatArray]:
    """The past measurements of each arm, in the order of the arms."""
    if isinstance(table, Mapping):
        arm_names = list(table) if arm_names is None else arm_names
        missing = [name for name in arm_names if name not in table]
        if missing:
            raise ParameterError(
                f"the table has no measurements of arm {missing[0]!r}; it needs every arm", field="table"
            )
        series: Sequence[npt.ArrayLike] = [table[name] for name in arm_names]
    else:
        series = list(table.T) if isinstance(table, np.ndarray) else table
    columns = [np.asarray(one, dtype=float).ravel() for one in series]
    for s, column in enumerate(columns):
        if not len(column) or not np.isfinite(column).all():
            raise ParameterError(
                f"arm {s} needs at least one past measurement, all finite; got {column}", field="table"
            )
    return columns
