"""Check whether the values look as the guarantee assumes: independent, around one mean, of the given scale.

`LOOKS` lists the looks. Each has the level at which it may object to an honest session, a function that finds
doubts, and its power: what it would have found in nine of ten sessions with as many values. Together they
object to at most 2% of honest sessions with Gaussian noise, seen at their end (`benchmarks/misuse.py`).

Noise that is smaller than its scale is fine, and so is dependence that leaves means as exact as the scale
says. Where the scale is unknown, the Student factors of the proof rest on the Gaussian shape: there the shape
is looked at, and nothing is compared with a scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from surepick.core.guarantee import Doubt
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import how_many
from surepick.noise import statistics
from surepick.noise.record import ArmRecord, NoiseRecord, Withdrawals
from surepick.noise.statistics import TAU
from surepick.noise.tails import chi_square_above, normal_above

FINE = 0.1  # of successive values are equal where the step of rounding is .35 standard deviations
FEWEST_BESIDE = 3  # values before and after a change of the mean
LONGEST_RUN = 5  # times that one request is released before it is said
POWER = 0.9  # the share of sessions in which a look finds what is named as its power
WANDERING = 28.0  # a step of this / n scales is found nine times in ten at level .008, by simulation

ADVICE = {
    "noise_larger": "begin again with a larger noise, or leave the noise out: then it is learned",
    "heavy_tails": "record the median of about five runs as one value, or state limits of every reading",
    "coarse": "record more digits, or state the noise, at least the step between two readings",
    "dependent": "look for what successive measurements share, and begin again in balanced order",
    "drift": "find what has changed and begin again",
    "released": "record every value that was measured",
}


@dataclass(frozen=True)
class Reading:
    """An arm, or a reading of a probe, with two values or more."""

    name: str
    stated: float | None  # standard deviation of one value, None where it is unknown
    record: ArmRecord
    unit: str
    is_apart: bool = True  # whether its noise is independent of that of all others that are apart

    @property
    def scale(self) -> float:
        """The unit in which the looks see it: the stated scale, or 1."""
        return 1.0 if self.stated is None else self.stated

    @property
    def freedom(self) -> int:
        """The degrees of freedom of its scatter."""
        return self.record.n - 1

    @property
    def ratio(self) -> float:
        """Its squares in units of the scale, chi-square with `freedom`."""
        return self.record.levels[0].squares / self.scale**2

    @property
    def deviation(self) -> float:
        """The standard deviation of its values."""
        return self.scale * math.sqrt(self.ratio / self.freedom)


@dataclass(frozen=True)
class Sample:
    """All that the looks see."""

    problem: AnyProblem
    record: NoiseRecord
    releases: Withdrawals | None

    @cached_property
    def readings(self) -> list[Reading]:
        """Everything with two values or more."""
        return [one for one in _readings(self) if one.record.n > 1]

    @cached_property
    def apart(self) -> list[Reading]:
        """Those whose noise is independent of each other."""
        return [one for one in self.readings if one.is_apart]

    @property
    def arms(self) -> list[tuple[ArmRecord, float]]:
        """Records and scales of those apart."""
        return [(one.record, one.scale) for one in self.apart]

    @property
    def freedom(self) -> int:
        """The degrees of freedom of their scatter."""
        return sum(one.freedom for one in self.apart)

    @property
    def longest(self) -> int:
        """The values of the arm that has most."""
        return max(one.record.n for one in self.readings)


class Power(NamedTuple):
    """The size of an effect that a check finds nine times in ten, and the words for it."""

    size: float
    text: str


Find = Callable[[Sample, float], Iterable[Doubt]]


@dataclass(frozen=True)
class Look:
    """One look at the values; `level` is how often it may object to an honest session."""

    name: str
    of: str  # "scale": where it is known; "shape": where it is unknown; "releases"
    level: float
    find: Find
    power: Callable[[Sample, float], Power | None]  # None: it could have seen nothing
    unless: tuple[str, ...] = ()  # codes of doubts that explain what it would find


def check_noise(
    problem: AnyProblem, record: NoiseRecord, withdrawals: Withdrawals | None = None
) -> tuple[Doubt, ...]:
    """Return what the values have that the guarantee does not allow."""
    sample, found = Sample(problem, record, withdrawals), list[Doubt]()
    for look in _applicable(sample):
        if not {doubt.code for doubt in found} & set(look.unless):
            found += look.find(sample, look.level)
    return tuple(found)


def powers(
    problem: AnyProblem, record: NoiseRecord, withdrawals: Withdrawals | None = None
) -> dict[str, Power]:
    """Return what each look would have found in nine of ten sessions with as many values, by its name."""
    sample = Sample(problem, record, withdrawals)
    found = [(look.name, look.power(sample, look.level)) for look in _applicable(sample)]
    return {name: power for name, power in found if power is not None}


def could_have_seen(problem: AnyProblem, record: NoiseRecord) -> str:
    """Return in words what the check would have found in nine of ten sessions with as many values."""
    if problem.noise_kind == BOUNDED_VARIANCE:
        return ""
    found = powers(problem, record)
    if not found:
        return "too few measurements to check the noise"
    n, word = sum(arm.n for arm in record.arms), "measurement" if problem.arms_alone else "reading"
    return (
        f"of {how_many(n, word)}; nine times in ten it finds {', '.join(p.text for p in found.values())}; "
        "never what all measurements share (a wrong unit, a biased instrument)"
    )


def _applicable(sample: Sample) -> Iterator[Look]:
    """Yield the looks that this problem allows; noise of bounded variance may have any shape."""
    is_any_shape = sample.problem.noise_kind == BOUNDED_VARIANCE
    applies = {
        "scale": bool(sample.readings) and sample.problem.knows_noise and not is_any_shape,
        "shape": bool(sample.apart) and not sample.problem.knows_noise and not is_any_shape,
        "releases": sample.releases is not None,
    }
    return (look for look in LOOKS if applies[look.of])


def _readings(sample: Sample) -> Iterator[Reading]:
    """Yield all readings with their scales.

    For readings with a given covariance the record has the values freed of what they share (`whiten_use`), so
    that their scale is 1. Where any dependence is allowed, only the first reading of a use is apart.
    """
    problem, record = sample.problem, sample.record
    known = problem.noise_scale if problem.knows_noise else None
    scales = [None] * problem.n_readings if known is None else known.tolist()
    probes, unit = problem.probes, f" {problem.about.unit}" if problem.about.unit else ""
    for r, (name, scale) in enumerate(zip(problem.reading_names, scales, strict=True)):
        if probes is None:
            yield Reading(name, scale, record.arms[r], unit)
        elif probes.owner[r] in probes.covariances and not probes.unknown:
            yield Reading(f"{name}, freed of shared noise", 1.0, record.arms[r], "")
        else:
            free = not (probes.dependent or probes.unknown)
            apart = free or r == int(probes.start[probes.owner[r]])
            yield Reading(name, scale, record.arms[r], unit, apart)


def _doubt(code: str, text: str, readings: list[Reading], times: float) -> Doubt:
    """Return a doubt about all these readings: their noise seems to be `times` their scale."""
    scale = max(one.scale for one in readings)
    n, seen = sum(one.record.n for one in readings), times * scale
    stated = None if readings[0].stated is None else scale
    return Doubt(code, None, n, stated, seen, text, ADVICE[code])


def _of_arm(code: str, text: str, one: Reading) -> Doubt:
    return replace(_doubt(code, text, [one], one.deviation / one.scale), arm=one.name)


# Resolution and shape, where the scale is learned and the proof rests on Student factors.


def _coarse(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield readings that are rounded as coarsely as they vary: too many successive values are equal.

    Arms whose values are all equal do not count: they may have no noise at all.
    """
    vary = [one.record.shape for one in sample.apart if one.record.shape.squares > 0]
    ties, pairs = sum(shape.n_ties for shape in vary), sum(shape.n - 1 for shape in vary)
    if ties <= FINE * pairs:
        return
    from scipy.special import bdtrc

    if float(bdtrc(ties - 1, pairs, FINE)) < level:
        text = f"{ties / pairs:.0%} of successive values are equal: readings are rounded too coarsely"
        yield _doubt("coarse", text, sample.apart, _pooled(sample))


def _coarse_power(sample: Sample, level: float) -> Power | None:
    pairs = sum(max(one.record.n - 1, 0) for one in sample.apart)
    if pairs < 1:
        return None
    share = FINE + (normal_above(level) * 0.3 + normal_above(1 - POWER) * 0.5) / math.sqrt(pairs)
    return Power(share, f"rounding that makes {share:.0%} of successive values equal") if share < 1 else None


def _not_gaussian(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield heavy tails, or else skewed values; both share the level."""
    shapes = [one.record.shape for one in sample.apart]
    skew, words = statistics.skewness(shapes), ""
    if statistics.kurtosis(shapes) > normal_above(level / 2):
        kurtosis = max(shape.n * shape.fourths / shape.squares**2 for shape in shapes if shape.squares > 0)
        words = f"values have heavy tails (kurtosis up to {kurtosis:.3g}, Gaussian 3)"
    elif abs(skew) > normal_above(level / 4):
        words = f"values are skewed towards {'large' if skew > 0 else 'small'} ones"
    if words:
        text = f"the noise is not Gaussian, which the guarantee assumes: {words}"
        yield _doubt("heavy_tails", text, sample.apart, _pooled(sample))


def _not_gaussian_power(sample: Sample, level: float) -> Power | None:
    n = sum(one.record.n for one in sample.apart if one.record.n >= statistics.FEWEST_FOR_SKEWNESS)
    if not n:
        return None
    # of skewed values the sample skewness varies about twice as much as of Gaussian ones
    skewness = (normal_above(level / 4) + 2 * normal_above(1 - POWER)) * math.sqrt(6 / n)
    return Power(skewness, f"a skewness of {skewness:.2g} or tails as heavy")


def _pooled(sample: Sample) -> float:
    """Return the standard deviation of one measurement over all arms; scales are 1 where unknown."""
    return math.sqrt(sum(one.ratio for one in sample.apart) / sample.freedom)


# Scale.


def _larger_arm(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield arms whose values vary too much."""
    for one in sample.readings:
        if one.ratio > chi_square_above(level / len(sample.readings), one.freedom):
            text = (
                f"{one.record.n} values of {one.name!r} have a standard deviation of "
                f"{one.deviation:.3g}{one.unit}, {one.scale:.3g}{one.unit} was stated"
            )
            yield _of_arm("noise_larger", text, one)


def _larger(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield a doubt if the values of all arms together vary too much."""
    ratio = sum(one.ratio for one in sample.apart)
    if len(sample.apart) > 1 and ratio > chi_square_above(level, sample.freedom):
        times = math.sqrt(ratio / sample.freedom)
        text = f"values of all arms together scatter {times:.3g} times as much as was stated"
        yield _doubt("noise_larger", text, sample.apart, times)


def _larger_arm_power(sample: Sample, level: float) -> Power | None:
    one = max(sample.readings, key=lambda one: one.freedom)
    times = _visible_times(level / len(sample.readings), one.freedom)
    return Power(times, f"noise of {times:.2f} times its scale in {one.name!r}") if times < 10 else None


def _larger_power(sample: Sample, level: float) -> Power | None:
    if len(sample.apart) < 2:
        return None
    times = _visible_times(level, sample.freedom)
    return Power(times, f"noise of {times:.2f} times its scale in all arms")


def _visible_times(level: float, freedom: int) -> float:
    return math.sqrt(chi_square_above(level, freedom) / chi_square_above(POWER, freedom))


# Tails, where the scale is known: sub-Gaussian noise is t scales away with probability 2 exp(-t^2/2) at most.


def _outlier(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield the arm with the value furthest from its mean, if noise of the scale has none so far out."""
    one = max(sample.readings, key=lambda one: statistics.furthest(one.record.shape, one.scale))
    shape = one.record.shape
    if statistics.furthest(shape, one.scale) > _reach(sample, level):
        far = max(shape.high - shape.mean, shape.mean - shape.low)
        text = (
            f"a value of {one.name!r} is {far:.3g}{one.unit} from their mean, further than noise of "
            f"{one.scale:.3g}{one.unit} reaches"
        )
        yield _of_arm("heavy_tails", text, one)


def _outlier_power(sample: Sample, level: float) -> Power:
    far = _reach(sample, level) + normal_above(1 - POWER)
    return Power(far, f"a value that is {far:.2g} scales off")


def _reach(sample: Sample, level: float) -> float:
    return math.sqrt(2.0 * math.log(2.0 * max(sum(one.record.n for one in sample.readings), 1) / level))


# Dependence.


def _blocks(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield blocks of successive values whose means vary more than independent ones."""
    worst = statistics.worst_blocks(sample.arms, level)
    if worst is not None:
        length, times = worst
        text = f"means of {length} successive values scatter {times:.3g} times as much as independent ones"
        yield _doubt("dependent", text, sample.apart, times)


def _successors(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield correlated successive values, if means are less exact for it than the scale says."""
    product = sum(one.record.product / one.scale**2 for one in sample.apart)
    square = math.sqrt(sum((one.record.square / one.scale**4) for one in sample.apart))
    pairs = sum(one.record.n_pairs for one in sample.apart)
    if not pairs or product <= normal_above(level) * square:
        return
    variance = sum(one.ratio for one in sample.apart) / sample.freedom
    correlation = min(product / pairs / variance, 0.99)
    long_run = math.sqrt(variance * (1 + correlation) / (1 - correlation))
    if long_run > 1:
        text = (
            f"successive values of an arm have a correlation of about {correlation:.2f}, which makes their "
            f"means as uncertain as noise {long_run:.3g} times as large would"
        )
        yield _doubt("dependent", text, sample.apart, long_run)


def _successors_power(sample: Sample, level: float) -> Power | None:
    pairs = sum(one.record.n_pairs for one in sample.apart)
    size = (normal_above(level) + normal_above(1 - POWER)) / math.sqrt(max(pairs, 1))
    return Power(size, f"a correlation of {size:.2f} between successive values") if size < 0.9 else None


# Drift.


def _jump(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield a mean that has changed, by the average of the arms' e-processes."""
    changes = [statistics.change(one.record, one.scale) for one in sample.readings]
    top = max(log for log, _, _ in changes)
    evidence = top + math.log(sum(math.exp(log - top) for log, _, _ in changes) / len(changes))
    (_, at, shift), one = max(zip(changes, sample.readings, strict=True), key=lambda pair: pair[0][0])
    # an odd value or two at an end are no change
    if evidence >= -math.log(level) and FEWEST_BESIDE <= at <= one.record.n - FEWEST_BESIDE:
        text = f"the mean of {one.name!r} has changed by {shift:+.3g}{one.unit} from about its value {at} on"
        yield _of_arm("drift", text, one)


def _jump_power(sample: Sample, level: float) -> Power | None:
    n = sample.longest
    if n < 4:
        return None
    v, weight = 4.0 / n, 0.1 / (n / 2)  # of the difference of halves; of the marks about the middle
    needed = math.log(len(sample.readings) / level / weight) + 0.5 * math.log1p(TAU**2 / v)
    size = math.sqrt(2 * v * (v + TAU**2) / TAU**2 * needed) + normal_above(1 - POWER) * math.sqrt(v)
    return Power(size, f"a mean that moves by {size:.2g} scales half-way") if size < 5 else None


def _wandering(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield means that wander, slowly and for ever."""
    if not sample.apart:
        return
    found = statistics.wander(sample.arms)
    if found.level < level:
        far = found.step * math.sqrt(found.n)
        whose = f"the mean of {sample.apart[0].name!r} wanders" if len(sample.apart) == 1 else "means wander"
        text = f"{whose} by about {far:.2g} times the noise over {how_many(found.n, 'measurement')}"
        yield _doubt("drift", text, sample.apart, math.sqrt(1.0 + far**2))


def _wandering_power(sample: Sample, level: float) -> Power | None:
    size = WANDERING / math.sqrt(sample.longest)
    return Power(size, f"a mean that wanders by {size:.2g} scales") if size < 5 else None


# Uneven releases: values withheld for what they were.


def _released(sample: Sample, level: float) -> Iterator[Doubt]:
    """Yield arms whose requests are released far more often than others, or one request again and again.

    Of plays only the second can be seen: readings are counted by arm, not by the play that gave them.
    """
    problem, record, of = sample.problem, sample.record, sample.releases
    assert of is not None  # for the type checker: `_applicable` has looked
    firsts = [problem.readings_of(probe)[0] for probe in range(problem.n_probes)]
    n_recorded, n_released = sum(record.arms[first].n for first in firsts), sum(of.counts)
    for arm, n in enumerate(of.counts):
        if not n:
            continue
        from scipy.special import bdtrc

        recorded = record.arms[firsts[arm]].n
        share = (recorded + n) / (n_recorded + n_released)
        uneven = not problem.plays and float(bdtrc(n - 1, n_released, share)) < level / problem.n_probes
        if uneven or of.longest[arm] >= LONGEST_RUN:
            often = f", one of them {of.longest[arm]} times" if of.longest[arm] >= LONGEST_RUN else ""
            others = f" (of all {problem.probe_word}s {n_released})" if uneven else ""
            name = problem.probe_names[arm]
            text = f"{how_many(n, 'request')} of {name!r} were released unmeasured{others}{often}"
            scale = None if problem.noise_scale is None else float(problem.noise_scale[firsts[arm]])
            yield Doubt("released", name, recorded, scale, scale or 0.0, text, ADVICE["released"])


def _released_power(sample: Sample, level: float) -> Power:
    """Return how many releases of one arm alone are found, if it has its fair share of values."""
    n = sample.problem.n_probes
    size = LONGEST_RUN if n < 2 else math.ceil(math.log(n / level) / math.log(n))
    return Power(size, f"{size} releases of one {sample.problem.probe_word} alone")


EACH = 0.001
_SIZE, _FAR = ("noise_larger",), ("noise_larger", "heavy_tails")
LOOKS = (
    Look("resolution", "shape", EACH, _coarse, _coarse_power),
    Look("shape", "shape", EACH, _not_gaussian, _not_gaussian_power, unless=("coarse",)),
    Look("noise of an arm", "scale", EACH, _larger_arm, _larger_arm_power),
    Look("noise", "scale", EACH, _larger, _larger_power, unless=_SIZE),
    Look("outlier", "scale", EACH, _outlier, _outlier_power, unless=_FAR),
    Look("blocks", "scale", EACH, _blocks, lambda *_: None, unless=_FAR),
    Look("successors", "scale", EACH, _successors, _successors_power, unless=(*_FAR, "dependent")),
    Look("jump", "scale", EACH, _jump, _jump_power),
    # Twice as often where the values end the session; the hardest to see.
    Look("wandering", "scale", 0.008, _wandering, _wandering_power, unless=(*_FAR, "dependent", "drift")),
    Look("releases", "releases", EACH, _released, _released_power),
)
