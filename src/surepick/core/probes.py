"""Probes: ways to measure, each of which gives one or more readings, every reading a known mix of arms.

By default each arm is a probe by itself, and nothing of this module is used. Otherwise one use of a probe
costs its price and gives all its readings at once: reading r has the mean x_r . mu, where mu are the arms'
means, and noise of a known scale; the readings of one use are independent, or have a given covariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import (
    LARGEST,
    BoolArray,
    FloatArray,
    IntArray,
    Numbers,
    PerArm,
    as_dense,
    first_few,
    per_arm,
    read_only,
    scale_and_bounds,
)
from surepick.core.wording import plural
from surepick.errors import ProblemError, suggestion

if TYPE_CHECKING:
    from scipy import sparse

# One reading: an arm by its name, or a mix by the names of arms.
Mix: TypeAlias = Mapping[str, float]
# A list of arms, each read by itself; one mix; or named readings.
Readings: TypeAlias = "Sequence[str] | Mix | Mapping[str, str | Mix]"
VALUE = "value"  # the name of the reading of a probe that has one


@dataclass(frozen=True, eq=False)
class Probe:
    """One way to measure: what a use of it reads, what it costs and how noisy it is.

    `readings` is a list of arms (each gives a reading of its own), a table of numbers (one reading of this
    mix) or a table of such tables (named readings). `noise` is one number or one per reading;
    `covariance` instead where the readings of one use share noise, as two drives on one day do.

    >>> Probe(["A-B", "B-C"], cost=3.0).cost
    3.0
    """

    readings: Readings
    cost: float | None = None
    noise: float | Sequence[float] | Mapping[str, float] | None = None
    covariance: Any = None  # (n_readings, n_readings)


class Entries(NamedTuple):
    """The entries of rows, one row after another, by arm in each: a sparse matrix without scipy."""

    data: FloatArray
    indices: IntArray  # the arm of each
    indptr: IntArray  # (n_rows + 1,) where each row begins
    shape: tuple[int, int]

    def sorted(self) -> Entries:
        """Return these entries with the arms of each row in order."""
        row = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        order = np.lexsort((self.indices, row))
        return self._replace(data=self.data[order], indices=self.indices[order])

    def dense(self, first: int, last: int) -> FloatArray:
        """These rows with their zeros."""
        last = min(last, self.shape[0])
        here = slice(int(self.indptr[first]), int(self.indptr[last]))
        block = np.zeros((last - first, self.shape[1]))
        row = np.repeat(np.arange(last - first), np.diff(self.indptr[first : last + 1]))
        np.add.at(block, (row, self.indices[here]), self.data[here])
        return block


@dataclass(frozen=True, eq=False)
class Probes:
    """All probes of a problem, their readings in rows one under another. Immutable."""

    names: tuple[str, ...]  # (n_probes,)
    reading_names: tuple[tuple[str, ...], ...]  # of each probe
    entries: Entries  # of `rows`
    costs: FloatArray  # (n_probes,) of one use
    noise_scale: FloatArray  # (n_readings,)
    covariances: Mapping[int, FloatArray] = field(default_factory=dict)  # of probes that share noise
    unknown: bool = False  # whether scales and covariances are guesses: the noise is Gaussian, and no more

    def __post_init__(self) -> None:
        for name in ("entries", "costs", "noise_scale"):
            read_only(getattr(self, name))

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def rows(self) -> sparse.csr_array:
        """(n_readings, n_arms): the mix that each reading is; made when needed, for scipy is slow to load."""
        from scipy import sparse

        data, indices, indptr, shape = self.entries
        return read_only(sparse.csr_array((data, indices, indptr), shape=shape))  # type: ignore[no-any-return]

    def without_arms(self, arms: BoolArray) -> Probes:
        """Return the same probes with readings freed of these arms, whose means are known."""
        if not arms.any() or bool((np.diff(self.entries.indptr) == 1).all()):
            return self  # a reading of one arm alone: no difference of plans has a known one
        data, indices, indptr, shape = self.entries
        kept = ~arms[indices]
        before = np.concatenate([[0], np.cumsum(kept)])
        return replace(self, entries=Entries(data[kept], indices[kept], before[indptr], shape))

    @property
    def n_readings(self) -> int:
        """Readings of all probes together."""
        return len(self.noise_scale)

    @property
    def summary(self) -> str:
        """How many there are, for people."""
        n, m = len(self.names), self.n_readings
        return f"{n:,} {plural(n, 'probe')} with {m:,} {plural(m, 'reading')}"

    @cached_property
    def start(self) -> IntArray:
        """(n_probes + 1,): the readings of probe o are rows start[o] to start[o + 1]."""
        return np.concatenate([[0], np.cumsum([len(names) for names in self.reading_names])]).astype(np.int64)

    @cached_property
    def owner(self) -> IntArray:
        """(n_readings,): whose reading each row is."""
        return np.repeat(np.arange(len(self.names)), np.diff(self.start))

    def readings_of(self, probe: int) -> slice:
        """Return the slice of this probe's readings."""
        return slice(int(self.start[probe]), int(self.start[probe + 1]))

    def reading_name(self, reading: int) -> str:
        """A reading by its name and its probe's, for people."""
        probe = int(self.owner[reading])
        own = self.reading_names[probe][reading - int(self.start[probe])]
        name = self.names[probe]
        return f"probe {name!r}" if own == VALUE else f"reading {own!r} of probe {name!r}"

    @property
    def share_uses(self) -> bool:
        """Whether some use gives several readings, whose noise might depend on each other."""
        return self.n_readings > len(self.names)

    @cached_property
    def is_diagonal(self) -> bool:
        """Whether every reading is of one arm, with noise of its own: information is then a sum per arm."""
        return not self.covariances and not self.unknown and bool((np.diff(self.entries.indptr) == 1).all())

    @cached_property
    def whitened(self) -> sparse.csr_array:
        """The rows in units in which the readings of one use have independent noise of scale 1."""
        from scipy import sparse

        if self.covariances:
            return sparse.csr_array(self._inverse_factor @ self.rows)
        return sparse.csr_array(sparse.diags_array(1.0 / self.noise_scale) @ self.rows)

    def whiten(self, values: FloatArray) -> FloatArray:
        """Readings, or sums of them, in the units of `whitened`."""
        if not self.covariances:
            return np.asarray((values.T / self.noise_scale).T)
        return np.asarray(self._inverse_factor @ values)

    def unwhiten_weights(self, weights: FloatArray) -> FloatArray:
        """Return weights w of readings, (n, n_readings), with w.x = v.whiten(x), of these weights v."""
        if not self.covariances:
            return np.asarray(weights / self.noise_scale)
        return np.asarray((self._inverse_factor.T @ weights.T).T)

    def whiten_use(self, probe: int, values: FloatArray) -> FloatArray:
        """Readings of uses of one probe with a covariance, (n_readings, n_uses), each row with scale 1."""
        return np.asarray(np.linalg.solve(np.linalg.cholesky(self.covariances[probe]), values))

    def colour(self, noise: FloatArray) -> FloatArray:
        """Independent noise of scale 1 as the noise of readings: with their scales and covariances."""
        coloured = np.asarray((self.noise_scale * noise.T).T)
        for probe, covariance in self.covariances.items():
            here = self.readings_of(probe)
            coloured[here] = np.linalg.cholesky(covariance) @ noise[here]
        return coloured

    @cached_property
    def _inverse_factor(self) -> Any:
        """The inverse of L, block diagonal, with the covariance L L' of each use."""
        from scipy import sparse

        diagonal = sparse.lil_array(sparse.diags_array(1.0 / self.noise_scale))
        for probe, covariance in self.covariances.items():
            here = self.readings_of(probe)
            diagonal[here, here] = np.linalg.inv(np.linalg.cholesky(covariance))
        return sparse.csr_array(diagonal)


def refuse_probes(problem: Any, who: str, *, field: str = "policy") -> None:
    """Refuse a problem with probes or plays; `who` works with arms that are measured by themselves alone."""
    if problem.arms_alone:
        return
    other = "plans are played" if problem.plays else f"there are {len(problem.probes):,} probes"
    raise ProblemError(
        f"{who} needs arms that are measured by themselves, and here {other}; leave measure out"
        + (", or use BetGapE" if field == "policy" else ""),
        field=field,
    )


def refuse_unknown(probes: Probes, who: str) -> None:
    """Refuse noise that is unknown where a proof needs it whitened."""
    if probes.unknown:
        raise ProblemError(
            f"{who} needs to know the noise of every reading, and of this problem it is unknown; use "
            "BetGapE, or give scales and covariances",
            field="policy",
        )


RANK = 1e-9  # a direction counts as read if its singular value is above this share of the largest
_APART = 1e-8  # of the largest plan: what of a difference may lie outside the span, as rounding
_CHUNK = 4096  # rows looked at together
_NAMED = 3  # arms that an error names


def span(rows: Any) -> FloatArray:
    """An orthonormal basis (rank, n_arms) of the span of these rows, each brought to length 1 first."""
    if (np.diff(rows.indptr) <= 1).all():
        read = np.unique(rows.indices)
        return np.asarray(np.eye(rows.shape[1])[read])
    triangle = np.zeros((0, rows.shape[1]))
    for block in dense_blocks(rows):
        size = np.linalg.norm(block, axis=1)
        block = block[size > 0] / size[size > 0, None]
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block]), mode="r"))
    _, sizes, basis = np.linalg.svd(triangle, full_matrices=False)
    return np.asarray(basis[sizes > RANK * sizes[0] * np.sqrt(rows.shape[0])])


def refuse_inseparable(
    probes: Probes, plans: Any, plan_names: Sequence[str], arm_names: Sequence[str]
) -> None:
    """Refuse plans that no probe can tell apart, naming two of them and the arms that are to blame."""
    basis = span(probes.entries)
    if len(basis) == len(arm_names):
        return
    largest, first = float(abs(plans).max()), 0
    origin = next(dense_blocks(plans[[0]]))[0]
    for block in dense_blocks(plans):
        rest = block - origin
        for _ in range(2):  # projecting once leaves rounding errors
            rest = rest - (rest @ basis.T) @ basis
        far = np.linalg.norm(rest, axis=1) > _APART * largest
        if far.any():
            k = int(np.argmax(far))
            sizes = np.abs(rest[k])
            order = np.argsort(-sizes, kind="stable")[:_NAMED]
            names = [repr(arm_names[s]) for s in order.tolist() if sizes[s] > 0.5 * sizes[order[0]]]
            raise ProblemError(
                f"no probe tells plan {plan_names[0]!r} from plan {plan_names[first + k]!r}: they differ in "
                f"{', '.join(names)} in a way that no combination of readings shows; add a probe that reads "
                f"{' or '.join(names)} by itself",
                field="measure",
            )
        first += len(block)


def dense_blocks(rows: Any) -> Iterator[FloatArray]:
    """Yield the rows of a matrix or of `Entries` with their zeros, some thousand at a time."""
    for low in range(0, rows.shape[0], _CHUNK):
        if isinstance(rows, Entries):
            yield rows.dense(low, low + _CHUNK)
        else:
            yield as_dense(rows[low : low + _CHUNK])


@dataclass(frozen=True, eq=False)
class Plays:
    """Plans to play, and how often each: a use of one reads every arm in it (the semi-bandit).

    Where plans are listed plays are probes like others (measure="plan arms"). Behind an oracle they are not
    all known: a request names the plays that it wants, and a run sees counts and sums per arm.

    >>> plays = Plays(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([2, 1]))
    >>> plays.n_uses, plays.counts.tolist()
    (3, [2, 3, 1])
    """

    plans: FloatArray  # (n_plays, n_arms) of zeros and ones
    uses: IntArray  # (n_plays,)

    @property
    def n_uses(self) -> int:
        """Plays in all."""
        return int(self.uses.sum())

    @property
    def counts(self) -> IntArray:
        """(n_arms,): how many readings of each arm they give."""
        return np.asarray(np.rint(self.uses @ self.plans), dtype=np.int64)

    def first(self, most: int) -> Plays:
        """No more than this many of them, in order."""
        return Plays(self.plans, first_few(self.uses, most))

    def without(self, others: Plays) -> Plays:
        """Return the plays that are left when `others` have been made."""
        return Plays(self.plans, self.uses - others.uses)


@dataclass(frozen=True, eq=False)
class AskedPlays:
    """The plays that have been asked for, by number: the order in which they first were. Immutable.

    Each is a probe like others from then on, with a name and readings, which are those of its arms.

    >>> asked = AskedPlays().with_new([[0, 2]], ["a + c"])
    >>> asked.numbered(Plays(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]), np.array([2, 1])))
    ([[0, 1], [1, 2]], [[1, 2]])
    """

    arms: tuple[tuple[int, ...], ...] = ()  # of each play, in their order
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arms)

    @cached_property
    def _number(self) -> dict[tuple[int, ...], int]:
        return {arms: number for number, arms in enumerate(self.arms)}

    def numbered(self, plays: Plays) -> tuple[list[list[int]], list[list[int]]]:
        """How often each play is to be made, by number; and the arms of those that are new, in their order.

        A play that stands twice among them is made as often as both say.
        """
        known, new, uses = self._number, dict[tuple[int, ...], int](), dict[int, int]()
        for plan, n in zip(plays.plans, plays.uses.tolist(), strict=True):
            arms = tuple(np.flatnonzero(plan).tolist())
            if not n:
                continue
            if not arms:
                raise ProblemError(
                    "a plan without arms is to be played, and nothing can be read of it; use BetGapE, which "
                    "plays plans for their readings",
                    field="policy",
                )
            number = known.get(arms)
            if number is None:
                number = new.setdefault(arms, len(known) + len(new))
            uses[number] = uses.get(number, 0) + n
        return [[number, uses[number]] for number in sorted(uses)], [list(arms) for arms in new]

    def with_new(self, arms: Sequence[Sequence[int]], names: Sequence[str]) -> AskedPlays:
        """Return these plays with new ones added; a name that is taken gets a number."""
        own = list(self.names)
        for name in names:
            own.append(name if name not in own else f"{name} ({len(own)})")
        return AskedPlays((*self.arms, *map(tuple, arms)), tuple(own))


# From what a person gives as `measure` to `Probes`: a word, probes by name, or an array.

ARMS, PLANS, PLAN_ARMS = KINDS = ("arms", "plans", "plan arms")
# A kind, named probes, or an array with a row per probe.
GivenProbes: TypeAlias = "str | Mapping[str, Any] | npt.NDArray[Any] | Probes"
_Readings: TypeAlias = dict[str, dict[int, float]]  # by name: how much of each arm a reading has

_DEFINITE = 1e-10  # of its largest entry: the least eigenvalue of a covariance that can be divided by


class Limits(NamedTuple):
    """The noise and the limits of readings that hold for all probes, as they were given."""

    noise: PerArm | None = None
    low: Numbers | float | None = None
    high: Numbers | float | None = None


def read_probes(
    given: GivenProbes, problem: Any, limits: Limits, cost: PerArm | None
) -> tuple[Probes, FloatArray | None]:
    """Return the probes of this problem's plans and arms, and the bounds of each reading if there are any.

    A reading has its own noise, else that of all readings, else that of the one arm that it reads. Where one
    has none, the noise of all is unknown: stated scales are then guesses.
    """
    if isinstance(given, Probes):
        return _stored(given, limits, cost)
    found = _described(given, problem)
    if not found:
        raise ProblemError("measure is empty; name at least one way to measure", field="measure")
    own = given if isinstance(given, Mapping) else {}
    probes = {name: one if isinstance(one := own.get(name), Probe) else Probe([]) for name in found}
    scale, bounds = scale_and_bounds(*limits, problem.arm_names)
    one_for_all = all(np.ndim(x) == 0 and not isinstance(x, Mapping) for x in limits if x is not None)  # type: ignore[arg-type]
    shared = _Shared(scale, is_bounded=bounds is not None, one_for_all=one_for_all)
    covariances = dict[int, FloatArray]()
    scales = list[float | None]()
    for o, (name, readings) in enumerate(found.items()):
        if not name or not readings or not all(readings.values()):
            raise ProblemError(
                f"probe {name!r} needs a name, and arms that each reading of it reads", field="measure"
            )
        if probes[name].covariance is not None:
            covariances[o] = _covariance(probes[name], name, len(readings))
        scales += _scales(name, probes[name], readings, covariances.get(o), shared)
    stated = [scale for scale in scales if scale is not None]
    guess = float(np.median(stated)) if stated else 1.0  # guides the design; never counts as evidence
    mixes = [sorted(mix.items()) for readings in found.values() for mix in readings.values()]
    made = Probes(
        names=tuple(found),
        reading_names=tuple(tuple(readings) for readings in found.values()),
        entries=Entries(
            np.array([amount for mix in mixes for _, amount in mix]),
            np.array([arm for mix in mixes for arm, _ in mix], dtype=np.int64),
            np.concatenate([[0], np.cumsum([len(mix) for mix in mixes])]),
            (len(mixes), len(problem.arm_names)),
        ),
        costs=_prices(probes, cost),
        noise_scale=np.array([guess if scale is None else scale for scale in scales]),
        covariances=covariances,
        unknown=len(stated) < len(scales),
    )
    return made, None if bounds is None else np.asarray(bounds[[mix[0][0] for mix in mixes]])


class _Shared(NamedTuple):
    """The noise that readings have unless their probe states its own."""

    scale: FloatArray | None  # (n_arms,)
    is_bounded: bool  # whether it comes from low and high
    one_for_all: bool  # whether it holds for readings of several arms, too


def _scales(
    name: str, probe: Probe, readings: _Readings, covariance: FloatArray | None, shared: _Shared
) -> list[float | None]:
    """Return the noise scale of each reading of a probe; None where it is not stated."""
    has_own = probe.noise is not None or covariance is not None
    if has_own and shared.is_bounded:
        raise ProblemError("low and high are for every reading; leave the noise of probes out", field="noise")
    if covariance is not None:
        return list(np.sqrt(np.diag(covariance)).tolist())
    if probe.noise is not None:
        kind = f"reading of probe {name!r},"
        return list(per_arm("noise", probe.noise, list(readings), kind=kind).tolist())
    if shared.scale is None:
        return [None] * len(readings)
    for mix in readings.values():
        is_arm = len(mix) == 1 and abs(next(iter(mix.values()))) == 1.0
        if not is_arm and not shared.one_for_all:
            what = "low" if shared.is_bounded else "noise"
            raise ProblemError(
                f"{what} has one number per arm, and probe {name!r} reads a mix of {len(mix)}; give that "
                "probe a noise of its own, sp.Probe(..., noise=...), or all readings one number",
                field=what,
            )
    return [float(shared.scale[min(mix)]) for mix in readings.values()]


def _prices(probes: Mapping[str, Probe], cost: PerArm | None) -> FloatArray:
    """Return the cost of one use of each probe: its own, or the one for all."""
    own = [name for name, probe in probes.items() if probe.cost is not None]
    if cost is None:
        cost = [1.0 if probe.cost is None else probe.cost for probe in probes.values()]
    elif own:
        raise ProblemError(
            f"the cost of probe {own[0]!r} is given twice, by the probe and for all; keep one", field="cost"
        )
    return per_arm("cost", cost, tuple(probes), kind="probe")


def _stored(probes: Probes, limits: Limits, cost: PerArm | None) -> tuple[Probes, FloatArray | None]:
    """Check probes read from a log, whose noise scales and bounds are per reading and costs per probe."""
    readings = [f"reading {i}" for i in range(probes.entries.shape[0])]
    scale, bounds = scale_and_bounds(*limits, readings)
    if scale is None:
        raise ProblemError("the stored probes have no noise scales beside them", field="noise")
    for o, covariance in probes.covariances.items():
        if not 0 <= o < len(probes.names):
            raise ProblemError(f"there is no probe {o} for a covariance", field="covariance")
        name, own = probes.names[o], scale[probes.readings_of(o)]
        matrix = _covariance(Probe([], covariance=covariance), name, len(own))
        same = np.allclose(np.diag(matrix), own**2, rtol=1e-9, atol=0)
        if not (np.array_equal(matrix, covariance) and same):
            raise ProblemError(
                f"the covariance of probe {name!r} does not have the squares of its noise scales, "
                f"{own.tolist()}, on its diagonal",
                field="covariance",
            )
    prices = per_arm("cost", 1.0 if cost is None else cost, probes.names, kind="probe")
    return replace(probes, entries=probes.entries.sorted(), costs=prices, noise_scale=scale), bounds


def _described(given: Any, problem: Any) -> dict[str, _Readings]:
    """Return the readings of each probe that a person described, by its name."""
    arms = {name: s for s, name in enumerate(problem.arm_names)}
    if isinstance(given, str) and given == ARMS:
        return {name: {VALUE: {s: 1.0}} for name, s in arms.items()}
    if isinstance(given, str) and given in KINDS:
        plans = zip(problem.plan_names, _mixes(problem.plans), strict=True)
        if given == PLANS:
            return {name: {VALUE: mix} for name, mix in plans if mix}
        return {name: {problem.arm_names[s]: {s: 1.0} for s in mix} for name, mix in plans if mix}
    if isinstance(given, Mapping):
        readings = {str(name): one.readings if isinstance(one, Probe) else one for name, one in given.items()}
        return {name: _readings(name, one, arms) for name, one in readings.items()}
    if not isinstance(given, np.ndarray):
        raise ProblemError(
            f"measure must be {', '.join(map(repr, KINDS))}, a dictionary of probes by name, or an array "
            f"with a row for each, got {given!r}",
            field="measure",
        )
    is_table = given.ndim == 2 and given.shape[1] == len(arms) and given.dtype.kind in "fiub"
    if not is_table or not (np.abs(given) <= LARGEST).all():
        raise ProblemError(
            f"an array of probes has a row for each, with a number of at most {LARGEST:g} for each of the "
            f"{len(arms)} arms, got shape {given.shape} of {given.dtype}",
            field="measure",
        )
    return {f"probe {o}": {VALUE: mix} for o, mix in enumerate(_mixes(given.astype(float)))}


def _mixes(rows: Any) -> list[dict[int, float]]:
    """Return how much of each arm every row has, without zeros; rows are dense or sparse."""
    if isinstance(rows, np.ndarray):
        where = [np.flatnonzero(row) for row in rows]
        return [
            dict(zip(at.tolist(), row[at].tolist(), strict=True)) for at, row in zip(where, rows, strict=True)
        ]
    parts = [slice(*ends) for ends in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]
    return [dict(zip(rows.indices[at].tolist(), rows.data[at].tolist(), strict=True)) for at in parts]


def _readings(probe: str, given: Any, arms: Mapping[str, int]) -> _Readings:
    """The readings of one probe, by name, each as its row."""
    if isinstance(given, str):
        given = [given]
    if isinstance(given, Mapping):
        if given and all(isinstance(value, Mapping | str) for value in given.values()):
            return {str(name): _mix(probe, value, arms) for name, value in given.items()}
        return {VALUE: _mix(probe, given, arms)} if given else {}
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ProblemError(
            f"probe {probe!r} must be a list of arms, a table of numbers by arm, or a table of such tables "
            f"by the names of its readings, got {given!r}",
            field="measure",
        )
    if len(set(given)) < len(given):
        raise ProblemError(
            f"probe {probe!r} reads an arm twice, got {given!r}; give two readings of one arm names of their "
            "own: {'first': {'a': 1}, 'second': {'a': 1}}",
            field="measure",
        )
    return {name: _mix(probe, name, arms) for name in given}


def _mix(probe: str, given: str | Mapping[str, Any], arms: Mapping[str, int]) -> dict[int, float]:
    """Return how much of each arm one reading has, without zeros."""
    row: dict[int, float] = {}
    for name, value in {given: 1.0}.items() if isinstance(given, str) else given.items():
        if name not in arms:
            raise ProblemError(
                f"probe {probe!r} reads {name!r}, and no arm is called so; "
                f"{suggestion(str(name), tuple(arms))}",
                field="measure",
            )
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = np.nan
        if not abs(number) <= LARGEST:
            raise ProblemError(
                f"probe {probe!r}, arm {name!r}: expected a number of at most {LARGEST:g}, got {value!r}",
                field="measure",
            )
        if number:
            row[arms[name]] = number
    return row


def _covariance(probe: Probe, name: str, n: int) -> FloatArray:
    """The covariance of a probe's readings, symmetric and positive definite."""
    if probe.noise is not None:
        raise ProblemError(
            f"probe {name!r} has noise and a covariance, whose diagonal has its square; leave noise out",
            field="noise",
        )
    try:
        matrix = np.array(probe.covariance, dtype=float)
    except (TypeError, ValueError, OverflowError):
        matrix = np.zeros(0)
    largest = float(np.abs(matrix).max(initial=0.0))
    is_symmetric = matrix.shape == (n, n) and (np.abs(matrix - matrix.T) <= 1e-9 * largest).all()
    if not is_symmetric:
        raise ProblemError(
            f"the covariance of probe {name!r} must be a symmetric table of {n} x {n} finite numbers, one "
            f"row and column per reading, got {probe.covariance!r}",
            field="covariance",
        )
    least = float(np.linalg.eigvalsh(matrix)[0])
    if not least > _DEFINITE * largest:
        what = "is negative in some direction" if least < -_DEFINITE * largest else "is singular"
        raise ProblemError(
            f"the covariance of probe {name!r} {what} (least eigenvalue {least:.3g}): some mix of its "
            "readings would have no noise at all; correct it, or leave out the reading that repeats others",
            field="covariance",
        )
    return np.asarray((matrix + matrix.T) / 2)
