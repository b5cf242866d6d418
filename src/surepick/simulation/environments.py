"""Environments: what answers a simulation, with true means that no policy sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray, brief
from surepick.core.given.numbers import (
    Numbers,
    aligned,
    labels_of,
    vector,
)
from surepick.errors import ParameterError
from surepick.kernels import AFFINE, TABLE, THRESHOLD, Feed, measured

RARE = 0.001  # how often past measurements may vary as much by chance
CHUNK = 2**16  # measurements drawn together


@runtime_checkable
class Environment(Protocol):
    """What can be measured, with true means that no policy sees.

    It may also have `noise_scale` (n_arms,), the least that a problem must state, and `bounds` (n_arms, 2) of
    its measurements: a problem that says otherwise is refused. For a problem with probes it has `n_readings`,
    and `measure` takes counts per probe and returns sums per reading.
    """

    @property
    def means(self) -> FloatArray:
        """The true mean of each arm."""
        ...

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """The sum of `counts[s]` fresh measurements of each arm s."""
        ...


class Arms:
    """Arms whose measurements are drawn one by one: the feed makes a raw draw a measurement.

    Numbers may be given by the names of the arms; `simulate` then puts them in the order of the problem's.
    """

    _per_arm: tuple[str, ...] = ("means",)  # the attributes with an entry for each arm

    def __init__(self, means: Numbers) -> None:
        self.arm_names = labels_of(means)
        try:
            self.means = np.array(aligned("means", means, self.arm_names or ()), dtype=float)
        except (TypeError, ValueError, OverflowError):
            self.means = np.array(np.nan)
        if self.means.ndim != 1 or not np.isfinite(self.means).all():
            raise ParameterError(
                f"means must be a list of finite numbers, one per arm, got {means!r}", field="means"
            )

    def _like_means(self, what: str, given: Numbers) -> FloatArray:
        """Return numbers that are 0 or more, one per arm, given by name if the means are."""
        if self.arm_names is None and labels_of(given) is not None:
            raise ParameterError(
                f"{what} is given by the names of arms and the means by their order; give both by name",
                field=what,
            )
        array = vector(what, given, self.arm_names or [""] * len(self.means), one_for_all=True)
        if (array < 0).any():
            raise ParameterError(f"{what} must be 0 or more, got {given!r}", field=what)
        return array

    def __repr__(self) -> str:
        parts = ", ".join(f"{name} {brief(getattr(self, name))}" for name in self._per_arm)
        return f"{type(self).__name__}({len(self.means)} arms, {parts})"

    def for_arms(self, names: Sequence[str]) -> Self:
        """Return the same with the arms in this order, where they were given by name."""
        if self.arm_names is None:
            return self
        order = aligned("means", dict(zip(self.arm_names, range(len(self.means)), strict=True)), names)
        other = copy(self)
        other.arm_names = None
        for name in self._per_arm:
            setattr(other, name, getattr(self, name)[order])
        return other

    def feed(self) -> Feed:
        """Return how a raw draw becomes a measurement."""
        raise NotImplementedError

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return raw draws, uniform on [0, 1), the same numbers in one call as in many."""
        return rng.random(n)

    def uses(self, arm: int, n: int, rng: np.random.Generator) -> FloatArray:
        """Return n single measurements of an arm, (n, 1)."""
        return np.asarray(measured(self.feed(), arm, self.draw(n, rng)), dtype=float)[:, None]

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return sums of single measurements."""
        sums = np.zeros(len(counts))
        for arm in np.flatnonzero(counts).tolist():
            for done in range(0, int(counts[arm]), CHUNK):
                sums[arm] += self.uses(arm, min(int(counts[arm]) - done, CHUNK), rng).sum()
        return sums


class Gaussian(Arms):
    """Normal measurements: the true mean of the arm plus noise of this scale.

    Means and scales may be given by the names of the arms, as a dictionary or a pandas Series.
    Without a scale, `simulate` draws with the noise scale of the problem, which must then be known;
    used without a problem, the noise is standard normal.

    >>> import numpy as np
    >>> counts, rng = np.array([0, 100]), np.random.default_rng(0)
    >>> Gaussian([1.0, 2.0], scale=0.5).measure(counts, rng).round(2).tolist()
    [0.0, 200.63]
    """

    _per_arm = ("means", "scale")

    def __init__(self, means: Numbers, scale: Numbers | None = None) -> None:
        super().__init__(means)
        self.takes_scale = scale is None  # that of the problem
        self.scale = self._like_means("scale", 1.0 if scale is None else scale)

    @property
    def noise_scale(self) -> FloatArray:
        """The scale."""
        return self.scale

    @property
    def bounds(self) -> FloatArray:
        """None at all, unless there is no noise."""
        reach = np.where(self.scale > 0, np.inf, 0.0)
        return np.column_stack([self.means - reach, self.means + reach])

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return standard normal draws."""
        return rng.standard_normal(n)

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return sums of normal measurements, one draw per arm however many they stand for."""
        sums = np.zeros(len(counts))
        arms = np.flatnonzero(counts)
        n = counts[arms]
        sums[arms] = n * self.means[arms] + np.sqrt(n) * self.scale[arms] * self.draw(len(arms), rng)
        return sums

    def feed(self) -> Feed:
        """mean + scale * draw."""
        return Feed(AFFINE, self.means, self.scale)


class Bernoulli(Arms):
    """Measurements that are 1 with probability `means[s]` and 0 otherwise: sub-Gaussian with scale 1/2.

    Where a problem has probes, a use tosses every arm once.
    """

    def __init__(self, means: Numbers) -> None:
        super().__init__(means)
        if not ((self.means >= 0) & (self.means <= 1)).all():
            raise ParameterError(
                f"Bernoulli means are probabilities, got {self.means.tolist()}", field="means"
            )

    def measure(self, counts: IntArray, rng: np.random.Generator) -> FloatArray:
        """Return sums of coin tosses; exact, and one draw per arm."""
        sums = np.zeros(len(counts))
        once, often = np.flatnonzero(counts == 1), np.flatnonzero(counts > 1)
        sums[once] = self.draw(len(once), rng) < self.means[once]
        sums[often] = rng.binomial(counts[often], self.means[often])
        return sums

    def rows(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return n tosses of every arm, (n, n_arms)."""
        return np.asarray(rng.random((n, len(self.means))) < self.means, dtype=float)

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

    def feed(self) -> Feed:
        """1 if the draw is below the mean."""
        return Feed(THRESHOLD, self.means, np.ones(len(self.means)))


class UniformNoise(Arms):
    """Measurements spread evenly over mean +- half_width: sub-Gaussian with scale half_width.

    Sums are exact: a request for n measurements draws n numbers.
    """

    _per_arm = ("means", "half_width")

    def __init__(self, means: Numbers, half_width: Numbers = 1.0) -> None:
        super().__init__(means)
        self.half_width = self._like_means("half_width", half_width)

    @property
    def noise_scale(self) -> FloatArray:
        """The standard deviation, which is a sub-Gaussian scale of this noise."""
        return np.asarray(self.half_width / np.sqrt(3.0))

    @property
    def bounds(self) -> FloatArray:
        """mean -+ half_width."""
        return np.column_stack([self.means - self.half_width, self.means + self.half_width])

    def feed(self) -> Feed:
        """low + width * draw."""
        return Feed(AFFINE, self.means - self.half_width, 2.0 * self.half_width)


class Replay(Arms):
    """PriorData measurements of each arm, drawn again with replacement; the true means are the tables' means.

    `table` has one sequence of past measurements per arm: a list of lists in the order of the arms, a 2-d
    array with one column per arm, or, by the names of the arms, a dictionary or a pandas DataFrame.
    Where a problem has probes, a use reads one row of the table, so that values measured together stay so.

    >>> Replay([[1.0, 3.0], [5.0]]).means.tolist()
    [2.0, 5.0]
    """

    _per_arm = ("means", "columns")

    def __init__(
        self, table: Sequence[npt.ArrayLike] | npt.NDArray[np.float64] | Mapping[str, npt.ArrayLike]
    ) -> None:
        if labels_of(table, columns=True) is not None or isinstance(table, Mapping):
            by_name = {str(name): column for name, column in table.items()}  # type: ignore[union-attr]
            series: Sequence[Any] = list(by_name.values())
        else:
            by_name, series = {}, list(table.T) if isinstance(table, np.ndarray) else table
        self.columns = np.empty(len(series), dtype=object)  # of arrays, which may differ in length
        for s, one in enumerate(series):
            column = np.asarray(one, dtype=float).ravel()
            if not len(column) or not np.isfinite(column).all():
                raise ParameterError(
                    f"arm {s} needs at least one past measurement, all finite; got {column}", field="table"
                )
            self.columns[s] = column
        super().__init__([column.mean() for column in self.columns])
        self.arm_names = tuple(by_name) or None

    def __repr__(self) -> str:
        return f"Replay({len(self.means)} arms, means {brief(self.means)})"

    @property
    def table(self) -> FloatArray:
        """The past data as rows that were measured together, (n_rows, n_arms)."""
        if len({len(column) for column in self.columns}) > 1:
            raise ParameterError(
                "with probes, each row of past data is one use, so all arms need as many values",
                field="table",
            )
        return np.column_stack(list(self.columns))

    def rows(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return n rows of past data, drawn with replacement, (n, n_arms)."""
        return np.asarray(self.table[rng.integers(len(self.columns[0]), size=n)])

    @property
    def noise_scale(self) -> FloatArray:
        """The smallest noise scale under which each arm's table is scattered this much 1 time in 1000.

        By chance the table's standard deviation may exceed the true scale, with 20 values by up to a half.
        """
        from scipy.special import gammainccinv  # the chi-square quantile; scipy.stats is slow to import

        n = np.array([len(column) for column in self.columns])
        squares = n * [column.var() for column in self.columns]
        return np.asarray(np.sqrt(squares / (2 * gammainccinv(np.maximum(n - 1, 1) / 2, RARE))))

    @property
    def bounds(self) -> FloatArray:
        """The smallest and the largest past measurement of each arm."""
        return np.array([[column.min(), column.max()] for column in self.columns])

    def feed(self) -> Feed:
        """The entry of the arm's table that the draw points at."""
        nothing = np.zeros(len(self.means))
        start = np.concatenate([[0], np.cumsum([len(column) for column in self.columns])]).astype(np.int64)
        return Feed(TABLE, nothing, nothing, np.concatenate(list(self.columns)), start)
