"""From what a person gives as `measure` to `Probes`: a word, probes by name, or an array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray
from surepick.core.given.numbers import LARGEST, Numbers, PerArm, per_arm, scale_and_bounds
from surepick.core.probes import VALUE, Entries, Probe, Probes
from surepick.errors import ProblemError, suggestion

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
