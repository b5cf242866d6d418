"""From what a person gives as `probes` to `Probes`: words, tables by name, arrays, files, lists of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import (
    LARGEST,
    Bounds,
    FloatArray,
    IntArray,
    PerArm,
    aligned,
    per_arm,
    scale_and_bounds,
)
from surepick.core.probes import VALUE, Entries, Mix, Probe, Probes
from surepick.core.tables import TablePath, cell_number, named_rows
from surepick.errors import ProblemError, SurepickError, blaming, suggestion

ARMS, PLANS, PLAN_ARMS = "arms", "plans", "plan arms"
KINDS = (ARMS, PLANS, PLAN_ARMS)
# A kind, a file, named probes, an array with a row per probe, or several of these.
GivenProbes: TypeAlias = "TablePath | Mapping[str, Any] | npt.NDArray[Any] | Probes | Sequence[Any]"

Arms: TypeAlias = Mapping[str, int]  # indices by name

_READING, _NOISE_SCALE, _COST = "reading", "noise", "cost"  # columns of a file that are no arms
_DEFINITE = 1e-10  # of its largest entry: the least eigenvalue of a covariance that can be divided by


class Row(NamedTuple):
    """One reading: the arms in it, in order, and how much of each."""

    arms: IntArray
    numbers: FloatArray

    @property
    def is_unit(self) -> bool:
        """Whether it reads one arm and nothing else."""
        return len(self.arms) == 1 and abs(self.numbers[0]) == 1.0


@dataclass(frozen=True, eq=False)
class Listed:
    """The plans and arms that probes may speak of."""

    plans: Any  # (n_plans, n_arms), dense or sparse
    plan_names: Sequence[str]
    arm_names: Sequence[str]

    @cached_property
    def arms(self) -> dict[str, int]:
        """The arms by name."""
        return {name: s for s, name in enumerate(self.arm_names)}


@dataclass
class _Draft:
    """Probes as they are collected; filled by the functions of this module alone."""

    names: list[str] = field(default_factory=list)
    reading_names: list[tuple[str, ...]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)  # of each reading
    costs: list[float | None] = field(default_factory=list)
    scales: list[float | None] = field(default_factory=list)
    covariances: dict[int, FloatArray] = field(default_factory=dict)

    def add(self, name: str, readings: Mapping[str, Row], probe: Probe) -> None:
        if not readings:
            raise ProblemError(
                f"probe {name!r} has no reading; name the arms that a use of it measures", field="measure"
            )
        for own, row in readings.items():
            if not len(row.arms):
                raise ProblemError(
                    f"reading {own!r} of probe {name!r} reads no arm; leave it out", field="measure"
                )
        if probe.covariance is not None:
            covariance = _covariance(probe, name, len(readings))
            self.covariances[len(self.names)] = covariance
            self.scales += np.sqrt(np.diag(covariance)).tolist()
        else:
            self.scales += _own_scales(probe, name, list(readings))
        self.names.append(name)
        self.reading_names.append(tuple(readings))
        self.rows += readings.values()
        self.costs.append(probe.cost)


def read_probes(
    given: GivenProbes,
    listed: Listed,
    *,
    noise_scale: PerArm | None,
    costs: PerArm | None,
    bounds: Bounds | None,
) -> tuple[Probes, FloatArray | None]:
    """Return the probes, and the bounds of each reading if there are any.

    Where the noise of a reading is not stated, the noise of all is unknown: stated scales are then guesses.
    """
    if isinstance(given, Probes):
        given = replace(given, entries=given.entries.sorted())
        return _with_numbers(given, noise_scale, costs, bounds)
    draft = _Draft()
    for part in given if isinstance(given, Sequence) and not isinstance(given, str) else [given]:
        _collect(draft, part, listed)
    _refuse_repeated(draft.names)
    found, limits = _scales(draft, noise_scale, bounds, listed.arm_names)
    stated = [scale for scale in found if scale is not None]
    guess = float(np.median(stated)) if stated else 1.0  # guides the design; never counts as evidence
    probes = Probes(
        names=tuple(draft.names),
        reading_names=tuple(draft.reading_names),
        entries=_entries(draft.rows, len(listed.arm_names)),
        costs=_costs(draft, costs),
        noise_scale=np.array([guess if scale is None else scale for scale in found]),
        covariances=draft.covariances,
        unknown=len(stated) < len(found),
        unstated=tuple(r for r, scale in enumerate(found) if scale is None),
    )
    return probes, limits


def _with_numbers(
    probes: Probes, noise_scale: PerArm | None, costs: PerArm | None, bounds: Bounds | None
) -> tuple[Probes, FloatArray | None]:
    """Probes as a file keeps them: scales and bounds are per reading, costs per probe."""
    readings = [f"reading {i}" for i in range(probes.entries.shape[0])]
    scale, limits = scale_and_bounds(noise_scale, bounds, readings)
    if scale is None:
        raise ProblemError("the stored probes have no noise scales beside them", field="noise")
    _check_covariances(probes, scale)
    prices = per_arm("cost", 1.0 if costs is None else costs, probes.names, kind="probe")
    kept = {
        name: getattr(probes, name)
        for name in ("names", "reading_names", "entries", "covariances", "dependent", "unknown", "unstated")
    }
    return Probes(costs=prices, noise_scale=scale, **kept), limits


def _check_covariances(probes: Probes, scale: FloatArray) -> None:
    """Refuse covariances of no probe, or that contradict the scales beside them."""
    for o, covariance in probes.covariances.items():
        if not 0 <= o < len(probes.names):
            raise ProblemError(f"there is no probe {o} for a covariance", field="covariance")
        name, own = probes.names[o], scale[probes.readings_of(o)]
        matrix = _covariance(Probe([], covariance=covariance), name, len(own))
        if not np.array_equal(matrix, covariance) or not np.allclose(
            np.diag(matrix), own**2, rtol=1e-9, atol=0
        ):
            raise ProblemError(
                f"the covariance of probe {name!r} has {np.diag(matrix).tolist()} on its diagonal, and the "
                f"noise scales of its readings are {own.tolist()}, whose squares should stand there",
                field="covariance",
            )


def _collect(draft: _Draft, given: Any, listed: Listed) -> None:
    """Add the probes that one part of what was given describes."""
    if isinstance(given, str) and given in KINDS:
        for name, readings in _of_kind(given, listed):
            draft.add(name, readings, Probe([]))
    elif isinstance(given, TablePath):
        for name, (readings, probe) in _of_file(given, listed.arms).items():
            draft.add(name, readings, probe)
    elif isinstance(given, Mapping):
        for name, described in given.items():
            probe = described if isinstance(described, Probe) else Probe(described)
            draft.add(str(name), _readings(str(name), probe.readings, listed.arms), probe)
    elif isinstance(given, np.ndarray):
        for name, row in _of_array(given, len(listed.arm_names), len(draft.names)):
            draft.add(name, {VALUE: row}, Probe([]))
    else:
        raise ProblemError(
            f"measure must be {', '.join(map(repr, KINDS))}, a file, a dictionary of probes by name, an "
            f"array with a row for each, or a list of these, got {given!r}",
            field="measure",
        )


def _of_kind(kind: str, listed: Listed) -> Iterator[tuple[str, dict[str, Row]]]:
    if kind == ARMS:
        for s, name in enumerate(listed.arm_names):
            yield name, {VALUE: _unit(s)}
        return
    for k, name in enumerate(listed.plan_names):
        row = _non_zeros(listed.plans, k)
        if kind == PLANS:
            yield name, {VALUE: row}
        elif len(row.arms):
            yield name, {listed.arm_names[s]: _unit(s) for s in row.arms.tolist()}


def _unit(arm: int) -> Row:
    return Row(np.array([arm]), np.ones(1))


def _non_zeros(plans: Any, k: int) -> Row:
    if isinstance(plans, np.ndarray):
        where = np.flatnonzero(plans[k])
        return Row(where, plans[k, where])
    low, high = plans.indptr[k], plans.indptr[k + 1]
    return Row(plans.indices[low:high], plans.data[low:high])


def _of_array(given: FloatArray, n_arms: int, before: int) -> Iterator[tuple[str, Row]]:
    if given.ndim != 2 or given.shape[1] != n_arms or given.dtype.kind not in "fiub":
        raise ProblemError(
            f"an array of probes has a row of numbers for each, one per arm ({n_arms}), got shape "
            f"{given.shape} of {given.dtype}",
            field="measure",
        )
    for o, row in enumerate(given.astype(float)):
        name = f"probe {before + o}"
        if not (np.abs(row) <= LARGEST).all():
            raise ProblemError(
                f"{name} must have finite numbers of at most {LARGEST:g}, got {row}", field="measure"
            )
        where = np.flatnonzero(row)
        yield name, Row(where, row[where])


def _readings(probe: str, given: Any, arms: Arms) -> dict[str, Row]:
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
    twice = [name for name, n in Counter(given).items() if n > 1]
    if twice:
        raise ProblemError(
            f"probe {probe!r} reads {twice[0]!r} twice; give two readings of one arm names of their own: "
            f"{{'first': {{{twice[0]!r}: 1}}, 'second': {{{twice[0]!r}: 1}}}}",
            field="measure",
        )
    return {name: _mix(probe, name, arms) for name in given}


def _mix(probe: str, given: str | Mix, arms: Arms) -> Row:
    """Return the row of one reading: coefficients by arm, without zeros."""
    if isinstance(given, str):
        return _unit(_arm(probe, given, arms))
    row: dict[int, float] = {}
    for name, value in given.items():
        arm = _arm(probe, str(name), arms)
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
            row[arm] = number
    return Row(np.array(sorted(row), dtype=np.int64), np.array([row[arm] for arm in sorted(row)]))


def _arm(probe: str, name: str, arms: Arms) -> int:
    if name not in arms:
        raise ProblemError(
            f"probe {probe!r} reads {name!r}, and no arm is called so; {suggestion(name, tuple(arms))}",
            field="measure",
        )
    return arms[name]


def _covariance(probe: Probe, name: str, n: int) -> FloatArray:
    """A covariance that noise can have, symmetric and positive definite."""
    if probe.noise is not None:
        raise ProblemError(
            f"probe {name!r} has noise and a covariance, whose diagonal has its square; leave noise out",
            field="noise",
        )
    try:
        matrix = np.array(probe.covariance, dtype=float)
    except (TypeError, ValueError, OverflowError):
        matrix = np.zeros(0)
    if matrix.shape != (n, n) or not np.isfinite(matrix).all():
        raise ProblemError(
            f"the covariance of probe {name!r} must be a table of {n} x {n} finite numbers, one row and "
            f"column per reading, got {probe.covariance!r}",
            field="covariance",
        )
    largest = float(np.abs(matrix).max())
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-9 * largest):
        raise ProblemError(
            f"the covariance of probe {name!r} must be symmetric, got {matrix.tolist()}", field="covariance"
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


def _own_scales(probe: Probe, name: str, readings: list[str]) -> list[float | None]:
    if probe.noise is None:
        return [None] * len(readings)
    try:
        scales = per_arm("noise", probe.noise, readings, kind="reading")
    except ProblemError as error:
        raise ProblemError(f"probe {name!r}: {error}", field=error.field) from None
    return list(scales.tolist())


def _scales(
    draft: _Draft, noise_scale: PerArm | None, bounds: Bounds | None, arms: Sequence[str]
) -> tuple[list[float | None], FloatArray | None]:
    """Return the scale of each reading and the bounds of all readings.

    A reading has its own scale, else that of all readings, else that of the one arm that it reads; None where
    none is stated.
    """
    scale, limits = scale_and_bounds(noise_scale, bounds, arms)
    own = draft.scales
    if scale is None:
        return own, None
    if limits is not None and any(number is not None for number in own):
        raise ProblemError(
            "low and high are for every reading; leave the noise of single probes out",
            field="noise",
        )
    shared = np.ndim(aligned("noise", noise_scale, arms)) == 0 and limits is None
    shared = shared or (limits is not None and np.shape(np.asarray(bounds)) == (2,))
    for r, row in enumerate(draft.rows):
        if own[r] is None and not shared and not row.is_unit:
            what = "noise" if limits is None else "low"
            raise ProblemError(_mixes(draft, r, what, len(row.arms)), field=what)
    where = np.array([row.arms[0] for row in draft.rows])
    found: list[float | None] = [
        float(scale[s]) if mine is None else mine for s, mine in zip(where, own, strict=True)
    ]
    return found, None if limits is None else np.asarray(limits[where])


def _mixes(draft: _Draft, reading: int, what: str, n_arms: int) -> str:
    names = [name for name, own in zip(draft.names, draft.reading_names, strict=True) for _ in own]
    rule = (
        f"a total of {n_arms} arms with independent noise of scale R has scale sqrt({n_arms}) R, not R, and "
        "one instrument that reads the total has its own"
        if n_arms > 1
        else "a multiple of an arm may be measured with any noise"
    )
    return (
        f"{what} has one number per arm, and probe {names[reading]!r} reads a mix: {rule}; give that probe a "
        "noise of its own, sp.Probe(..., noise=...), or one number for all readings"
    )


def _costs(draft: _Draft, costs: PerArm | None) -> FloatArray:
    names = draft.names
    shared = per_arm("cost", 1.0 if costs is None else costs, names, kind="probe")
    own = [probe for probe, cost in zip(names, draft.costs, strict=True) if cost is not None]
    if costs is not None and own:
        raise ProblemError(
            f"the cost of probe {own[0]!r} is given twice, by the probe and for all; keep one", field="cost"
        )
    given = [float(shared[o]) if cost is None else cost for o, cost in enumerate(draft.costs)]
    return per_arm("cost", given, names, kind="probe")


def _refuse_repeated(names: Sequence[str]) -> None:
    name, n = Counter(names).most_common(1)[0] if names else ("", 0)
    if not names:
        raise ProblemError(
            "probes are empty; name at least one way to measure, or leave probes out", field="measure"
        )
    if n > 1:
        raise ProblemError(
            f"probe names must differ, got {name!r} more than once; rename one of them", field="measure"
        )
    if "" in names:
        raise ProblemError("a probe has an empty name; give it one", field="measure")


def _entries(rows: Sequence[Row], n_arms: int) -> Entries:
    indptr = np.concatenate([[0], np.cumsum([len(row.arms) for row in rows])])
    indices = np.concatenate([row.arms for row in rows])
    data = np.concatenate([row.numbers for row in rows])
    return Entries(data, indices, indptr, (len(rows), n_arms))


@blaming("measure")
def _of_file(path: TablePath, arms: Arms) -> dict[str, tuple[dict[str, Row], Probe]]:
    """A line per reading: probe, reading, a column for each arm, noise, cost."""
    columns, lines = named_rows(path)
    known = {_READING, _NOISE_SCALE, _COST}
    where = f" of {str(path)!r}"
    found: dict[str, tuple[dict[str, Row], list[float], list[float]]] = {}
    last = ""
    for number, cells in lines:
        name, by_column = cells[0], dict(zip(columns, cells[1:], strict=True))
        if name in found and name != last:
            raise ProblemError(
                f"line {number}{where}: probe {name!r} stood further up already; the readings of one probe "
                "follow each other, and two probes need two names",
                field="measure",
            )
        readings, scales, prices = found.setdefault(name, ({}, [], []))
        own = by_column.get(_READING, "") or VALUE
        if own in readings:
            what = f"reading {own!r} of probe {name!r}" if _READING in columns else f"probe {name!r}"
            raise ProblemError(
                f"line {number}{where}: {what} stands there twice; rename one of them", field="measure"
            )
        try:
            mix = {c: cell_number(cell, 0.0) for c, cell in by_column.items() if c not in known}
            scales += [cell_number(by_column[_NOISE_SCALE])] if by_column.get(_NOISE_SCALE) else []
            prices += [cell_number(by_column[_COST])] if by_column.get(_COST) else []
            readings[own] = _mix(name, mix, arms)
        except (SurepickError, ValueError) as error:
            raise ProblemError(f"line {number}{where}: {error}", field="measure") from None
        last = name
    return {name: (parts[0], _filed(name, *parts)) for name, parts in found.items()}


def _filed(name: str, readings: Mapping[str, Any], scales: list[float], prices: list[float]) -> Probe:
    if len(scales) not in (0, len(readings)):
        raise ProblemError(
            f"probe {name!r} has noise on some of its lines; give it on all, or none",
            field="noise",
        )
    if len(set(prices)) > 1:
        raise ProblemError(
            f"probe {name!r} has two costs, {prices[0]:g} and {prices[-1]:g}; one use has one", field="cost"
        )
    return Probe([], cost=prices[0] if prices else None, noise=scales or None)
