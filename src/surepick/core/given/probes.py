"""From what a person gives as `measure` to `Probes`: a word, probes by name, or an array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, as_float, as_floats
from surepick.core.given.numbers import LARGEST, Numbers, PerArm, per_arm, scale_and_bounds
from surepick.core.probes import VALUE, Entries, Probe, Probes, dense_blocks
from surepick.errors import ProblemError, suggestion

ARMS, PLANS, PLAN_ARMS = KINDS = ("arms", "plans", "plan arms")
# A kind, named probes, or an array with a row per probe.
GivenProbes: TypeAlias = "str | Mapping[str, Any] | npt.NDArray[Any] | Probes"
_Mix: TypeAlias = dict[int, float]  # how much of each arm, by its index, a reading has; no zeros

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
    probes = _described(given, problem)
    if not probes:
        raise ProblemError("measure is empty; name at least one way to measure", field="measure")
    scale, bounds = scale_and_bounds(*limits, problem.arm_names)
    one_for_all = all(np.ndim(x) == 0 and not isinstance(x, Mapping) for x in limits if x is not None)  # type: ignore[arg-type]
    shared = _SharedNoise(scale, is_bounded=bounds is not None, one_for_all=one_for_all)
    arms = {name: s for s, name in enumerate(problem.arm_names)}
    reading_names = list[tuple[str, ...]]()
    mixes = list[_Mix]()  # of every reading
    scales = list[float | None]()  # of every reading
    covariances = dict[int, FloatArray]()
    for o, (name, probe) in enumerate(probes.items()):
        readings = _readings(name, probe.readings, arms)
        if not name or not readings or not all(readings.values()):
            raise ProblemError(
                f"probe {name!r} needs a name, and arms that each reading of it reads", field="measure"
            )
        if probe.covariance is not None:
            covariances[o] = _covariance(probe.covariance, name, len(readings))
        reading_names.append(tuple(readings))
        mixes += readings.values()
        scales += _scales(name, probe, readings, covariances.get(o), shared)
    stated = [scale for scale in scales if scale is not None]
    guess = float(np.median(stated)) if stated else 1.0  # guides the design; never counts as evidence
    entries = [sorted(mix.items()) for mix in mixes]
    made = Probes(
        names=tuple(probes),
        reading_names=tuple(reading_names),
        entries=Entries(
            np.array([amount for row in entries for _, amount in row]),
            np.array([arm for row in entries for arm, _ in row], dtype=np.int64),
            np.concatenate([[0], np.cumsum([len(row) for row in entries])]),
            (len(entries), len(arms)),
        ),
        costs=_prices(probes, cost),
        noise_scale=np.array([guess if scale is None else scale for scale in scales]),
        covariances=covariances,
        unknown=len(stated) < len(scales),
    )
    return made, None if bounds is None else np.asarray(bounds[[row[0][0] for row in entries]])


class _SharedNoise(NamedTuple):
    """The noise that readings have unless their probe states its own."""

    scale: FloatArray | None  # (n_arms,)
    is_bounded: bool  # whether it comes from low and high
    one_for_all: bool  # whether it holds for readings of several arms, too


def _scales(
    name: str, probe: Probe, readings: Mapping[str, _Mix], covariance: FloatArray | None, shared: _SharedNoise
) -> list[float | None]:
    """Return the noise scale of each reading of a probe; None where it is not stated."""
    if probe.noise is not None and covariance is not None:
        raise ProblemError(
            f"probe {name!r} has noise and a covariance, whose diagonal has its square; leave noise out",
            field="noise",
        )
    if (probe.noise is not None or covariance is not None) and shared.is_bounded:
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
        matrix = _covariance(covariance, name, len(own))
        same = np.allclose(np.diag(matrix), own**2, rtol=1e-9, atol=0)
        if not (np.array_equal(matrix, covariance) and same):
            raise ProblemError(
                f"the covariance of probe {name!r} does not have the squares of its noise scales, "
                f"{own.tolist()}, on its diagonal",
                field="covariance",
            )
    prices = per_arm("cost", 1.0 if cost is None else cost, probes.names, kind="probe")
    return replace(probes, costs=prices, noise_scale=scale), bounds


def _described(given: Any, problem: Any) -> dict[str, Probe]:
    """Return the probes that a person described, by name, whichever way that was done."""
    if isinstance(given, Mapping):
        return {str(name): one if isinstance(one, Probe) else Probe(one) for name, one in given.items()}
    if isinstance(given, str) and given in KINDS:
        if given == ARMS:
            return {name: Probe([name]) for name in problem.arm_names}
        plans = zip(problem.plan_names, _mixes(problem.plans, problem.arm_names), strict=True)
        return {name: Probe(mix if given == PLANS else list(mix)) for name, mix in plans if mix}
    if not isinstance(given, np.ndarray):
        raise ProblemError(
            f"measure must be {', '.join(map(repr, KINDS))}, a dictionary of probes by name, or an array "
            f"with a row for each, got {given!r}",
            field="measure",
        )
    if given.ndim != 2 or given.shape[1] != problem.n_arms or given.dtype.kind not in "fiub":
        raise ProblemError(
            f"an array of probes has a row for each and a column for each of the {problem.n_arms} arms, got "
            f"shape {given.shape} of {given.dtype}",
            field="measure",
        )
    return {f"probe {o}": Probe(mix) for o, mix in enumerate(_mixes(given, problem.arm_names))}


def _mixes(rows: Any, arm_names: Sequence[str]) -> Iterator[dict[str, float]]:
    """Yield how much of each arm every row has, by name and without zeros; rows are dense or sparse."""
    for block in dense_blocks(rows):
        for row in block:
            yield {arm_names[s]: float(row[s]) for s in np.flatnonzero(row).tolist()}


def _readings(probe: str, given: Any, arms: Mapping[str, int]) -> dict[str, _Mix]:
    """Return the readings of one probe by name."""
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


def _mix(probe: str, given: str | Mapping[str, Any], arms: Mapping[str, int]) -> _Mix:
    """Return how much of each arm one reading has, without zeros."""
    row: _Mix = {}
    for name, value in {given: 1.0}.items() if isinstance(given, str) else given.items():
        if name not in arms:
            raise ProblemError(
                f"probe {probe!r} reads {name!r}, which is no arm; {suggestion(str(name), tuple(arms))}",
                field="measure",
            )
        number = as_float(value)
        if number is None or not abs(number) <= LARGEST:
            raise ProblemError(
                f"probe {probe!r}, arm {name!r}: expected a number of at most {LARGEST:g}, got {value!r}",
                field="measure",
            )
        if number:
            row[arms[name]] = number
    return row


def _covariance(given: Any, name: str, n: int) -> FloatArray:
    """Return the covariance of the n readings of a probe, checked to be symmetric and positive definite."""
    matrix = as_floats(given)
    is_square = matrix is not None and matrix.shape == (n, n)
    largest = float(np.abs(matrix).max()) if matrix is not None and is_square else 0.0
    if matrix is None or not is_square or not (np.abs(matrix - matrix.T) <= 1e-9 * largest).all():
        raise ProblemError(
            f"the covariance of probe {name!r} must be a symmetric table of {n} x {n} finite numbers, one "
            f"row and column per reading, got {given!r}",
            field="covariance",
        )
    least = float(np.linalg.eigvalsh(matrix)[0])
    if not least > _DEFINITE * largest:
        what = "is negative in some direction" if least < -_DEFINITE * largest else "is singular"
        raise ProblemError(
            f"the covariance of probe {name!r} {what} (least eigenvalue {least:.3g}), so a mix of its "
            "readings has no noise; correct it, or leave out a reading that repeats others",
            field="covariance",
        )
    return np.asarray((matrix + matrix.T) / 2)
