"""From what a person gives as `measure` to `Probes`: a word, probes by name, or an array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import LARGEST, FloatArray, IntArray, Numbers, PerArm, per_arm, scale_and_bounds
from surepick.core.probes import VALUE, Entries, Probe, Probes
from surepick.errors import ProblemError, suggestion

ARMS, PLANS, PLAN_ARMS = "arms", "plans", "plan arms"
KINDS = (ARMS, PLANS, PLAN_ARMS)
# A kind, named probes, or an array with a row per probe.
GivenProbes: TypeAlias = "str | Mapping[str, Any] | npt.NDArray[Any] | Probes"

_DEFINITE = 1e-10  # of its largest entry: the least eigenvalue of a covariance that can be divided by


class Row(NamedTuple):
    """One reading: the arms in it, in order, and how much of each."""

    arms: IntArray
    numbers: FloatArray


class _Given(NamedTuple):
    """A probe as it was given: its readings, and its price and noise (the readings of `probe` are unused)."""

    name: str
    readings: dict[str, Row]
    probe: Probe


class Limits(NamedTuple):
    """The noise and the limits of readings that hold for all probes, as they were given."""

    noise: PerArm | None = None
    low: Numbers | float | None = None
    high: Numbers | float | None = None

    @property
    def is_one_for_all(self) -> bool:
        """Whether these are single numbers: they then hold for mixes of arms too."""
        return all(np.ndim(x) == 0 and not isinstance(x, Mapping) for x in self if x is not None)  # type: ignore[arg-type]


def read_probes(
    given: GivenProbes, problem: Any, limits: Limits, cost: PerArm | None
) -> tuple[Probes, FloatArray | None]:
    """Return the probes of this problem's plans and arms, and the bounds of each reading if there are any.

    Where the noise of a reading is not stated, the noise of all is unknown: stated scales are then guesses.
    """
    if isinstance(given, Probes):
        return _stored(given, limits, cost)
    found = _given(given, problem)
    if not found:
        raise ProblemError("measure is empty; name at least one way to measure", field="measure")
    for name, readings, _ in found:
        if not name:
            raise ProblemError("a probe has an empty name; give it one", field="measure")
        if not readings or not all(len(row.arms) for row in readings.values()):
            raise ProblemError(
                f"probe {name!r} reads no arm; name the arms that a use of it measures", field="measure"
            )
    rows = [row for one in found for row in one.readings.values()]
    own, covariances = list[float | None](), dict[int, FloatArray]()
    for o, (name, readings, probe) in enumerate(found):
        if probe.covariance is not None:
            covariances[o] = _covariance(probe, name, len(readings))
            own += np.sqrt(np.diag(covariances[o])).tolist()
        elif probe.noise is not None:
            scale = per_arm("noise", probe.noise, list(readings), kind=f"reading of probe {name!r},")
            own += scale.tolist()
        else:
            own += [None] * len(readings)
    scales, bounds = _scales(found, rows, own, limits, problem.arm_names)
    stated = [scale for scale in scales if scale is not None]
    guess = float(np.median(stated)) if stated else 1.0  # guides the design; never counts as evidence
    probes = Probes(
        names=tuple(one.name for one in found),
        reading_names=tuple(tuple(one.readings) for one in found),
        entries=Entries(
            np.concatenate([row.numbers for row in rows]),
            np.concatenate([row.arms for row in rows]),
            np.concatenate([[0], np.cumsum([len(row.arms) for row in rows])]),
            (len(rows), len(problem.arm_names)),
        ),
        costs=_costs(found, cost),
        noise_scale=np.array([guess if scale is None else scale for scale in scales]),
        covariances=covariances,
        unknown=len(stated) < len(scales),
    )
    return probes, bounds


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


def _given(given: Any, problem: Any) -> list[_Given]:
    """Return the probes that a person described."""
    arms = {name: s for s, name in enumerate(problem.arm_names)}
    if isinstance(given, str) and given == ARMS:
        return [_Given(name, {VALUE: _unit(s)}, Probe([])) for name, s in arms.items()]
    if isinstance(given, str) and given in KINDS:
        rows = {name: _plan(problem.plans, k) for k, name in enumerate(problem.plan_names)}
        if given == PLANS:
            return [_Given(name, {VALUE: row}, Probe([])) for name, row in rows.items() if len(row.arms)]
        reads = {name: {problem.arm_names[s]: _unit(s) for s in row.arms} for name, row in rows.items()}
        return [_Given(name, readings, Probe([])) for name, readings in reads.items() if readings]
    if isinstance(given, Mapping):
        probes = {str(name): one if isinstance(one, Probe) else Probe(one) for name, one in given.items()}
        return [_Given(name, _readings(name, one.readings, arms), one) for name, one in probes.items()]
    if isinstance(given, np.ndarray):
        if given.ndim != 2 or given.shape[1] != len(arms) or given.dtype.kind not in "fiub":
            raise ProblemError(
                f"an array of probes has a row of numbers for each, one per arm ({len(arms)}), got shape "
                f"{given.shape} of {given.dtype}",
                field="measure",
            )
        if not (np.abs(given) <= LARGEST).all():
            raise ProblemError(f"probes must have finite numbers of at most {LARGEST:g}", field="measure")
        found = [(row, np.flatnonzero(row)) for row in given.astype(float)]
        return [
            _Given(f"probe {o}", {VALUE: Row(at, row[at])}, Probe([])) for o, (row, at) in enumerate(found)
        ]
    raise ProblemError(
        f"measure must be {', '.join(map(repr, KINDS))}, a dictionary of probes by name, or an array with a "
        f"row for each, got {given!r}",
        field="measure",
    )


def _plan(plans: Any, k: int) -> Row:
    if isinstance(plans, np.ndarray):
        where = np.flatnonzero(plans[k])
        return Row(where, plans[k, where])
    here = slice(plans.indptr[k], plans.indptr[k + 1])
    return Row(plans.indices[here], plans.data[here])


def _unit(arm: int) -> Row:
    return Row(np.array([arm]), np.ones(1))


def _readings(probe: str, given: Any, arms: Mapping[str, int]) -> dict[str, Row]:
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


def _mix(probe: str, given: str | Mapping[str, Any], arms: Mapping[str, int]) -> Row:
    """Return the row of one reading: coefficients by arm, without zeros."""
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
    return Row(np.array(sorted(row), dtype=np.int64), np.array([row[arm] for arm in sorted(row)]))


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


def _scales(
    found: list[_Given], rows: list[Row], own: list[float | None], limits: Limits, arms: Sequence[str]
) -> tuple[list[float | None], FloatArray | None]:
    """Return the scale of each reading and the bounds of all readings.

    A reading has its own scale, else that of all readings, else that of the one arm that it reads; None where
    none is stated.
    """
    scale, bounds = scale_and_bounds(*limits, arms)
    if scale is None:
        return own, None
    what = "noise" if bounds is None else "low"
    if bounds is not None and any(number is not None for number in own):
        raise ProblemError(
            "low and high are for every reading; leave the noise of single probes out", field="noise"
        )
    names = [one.name for one in found for _ in one.readings]
    for name, row, mine in zip(names, rows, own, strict=True):
        is_unit = len(row.arms) == 1 and abs(row.numbers[0]) == 1.0
        if mine is None and not is_unit and not limits.is_one_for_all:
            raise ProblemError(
                f"{what} has one number per arm, and probe {name!r} reads a mix of {len(row.arms)}, whose "
                "noise does not follow from theirs; give that probe a noise of its own, "
                "sp.Probe(..., noise=...), or one number for all readings",
                field=what,
            )
    where = np.array([row.arms[0] for row in rows])
    scales: list[float | None] = [
        float(scale[s]) if mine is None else mine for s, mine in zip(where, own, strict=True)
    ]
    return scales, None if bounds is None else np.asarray(bounds[where])


def _costs(found: list[_Given], cost: PerArm | None) -> FloatArray:
    names = [one.name for one in found]
    shared = per_arm("cost", 1.0 if cost is None else cost, names, kind="probe")
    own = [one.probe.cost for one in found]
    priced = [name for name, price in zip(names, own, strict=True) if price is not None]
    if cost is not None and priced:
        raise ProblemError(
            f"the cost of probe {priced[0]!r} is given twice, by the probe and for all; keep one",
            field="cost",
        )
    prices = [float(shared[o]) if price is None else price for o, price in enumerate(own)]
    return per_arm("cost", prices, names, kind="probe")
