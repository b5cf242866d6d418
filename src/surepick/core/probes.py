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

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense, read_only
from surepick.core.wording import plural
from surepick.errors import ProblemError

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
    """A sparse matrix, a row per reading and a column per arm, in the form of SciPy's csr_array."""

    data: FloatArray
    indices: IntArray  # the arm of each entry of `data`
    indptr: IntArray  # (n_rows + 1,) row r has the entries indptr[r] to indptr[r + 1]
    shape: tuple[int, int]

    def dense(self, first: int, last: int) -> FloatArray:
        """Return rows `first` to `last`, with their zeros."""
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
        """Return which reading it is, by its name and its probe's, for people."""
        probe = int(self.owner[reading])
        own = self.reading_names[probe][reading - int(self.start[probe])]
        name = f"probe {self.names[probe]!r}"
        return name if own == VALUE else f"reading {own!r} of {name}"

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
    """Return an orthonormal basis (rank, n_arms) of the span of these rows, which are scaled to length 1."""
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
