"""Whether the measurements look as the guarantee assumes: independent, around one mean, of the given scale.

Nine looks at what `record` keeps, each with a level of its own; together they object to at most 2% of
honest sessions with Gaussian noise, seen at their end (`benchmarks/misuse.py`):

| look | against |
|---|---|
| spread of each arm, and of all together (chi-square) | noise larger than its scale |
| the largest deviation (scale known), skewness and kurtosis (unknown), see `shape` | heavy tails |
| successive values that are equal (binomial; scale unknown) | readings rounded too coarsely |
| spread of blocks of 2, 4, 8 ... (chi-square) | noise that hangs together |
| successive values (a self-normalised sum) | noise that hangs together |
| the mean before and after a change (an e-process, see `_change`) | levels that jump or drift |
| all partial sums (Nyblom's test, see `drift`) | levels that wander, slowly and for ever |
| released requests by arm (binomial), and one request again and again | values withheld for what they were |

Noise that is smaller than its scale is fine, and so is dependence that leaves means as exact as the scale
says. Where the scale is unknown, the Student factors of the proof rest on the Gaussian shape: there the shape
is looked at, and nothing is compared with a scale.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from surepick.core.doubt import Doubt
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem
from surepick.core.tails import chi_square_above, normal_above
from surepick.core.wording import how_many
from surepick.noise.drift import visible, wander
from surepick.noise.record import ArmRecord, NoiseRecord, Withdrawals
from surepick.noise.shape import coarse, heavy_tails, too_far

EACH = 0.001  # how often each of eight looks may object to an honest session
WANDERING = 0.008  # the ninth, the hardest to see; twice as often where the values end the session
FEWEST_BLOCKS = 4  # of an arm, for its blocks of one length to be looked at
FEWEST_BESIDE = 3  # values before and after a change of the mean
TAU = 1.0  # noise scales: the size of change that the drift alarm is made for
LONGEST_RUN = 5  # times that one request is released before it is said
POWER = 0.9  # of what the check could have seen, the share of sessions in which it would have

_ADVICE = {
    "noise_larger": "begin again with a larger noise, or leave the noise out: then it is learned",
    "heavy_tails": "record the median of about five runs as one value, or state limits of every reading",
    "coarse": "record more digits, or state the noise, at least the step between two readings",
    "dependent": "look for what successive measurements share, and begin again in balanced order",
    "drift": "find what has changed and begin again",
    "released": "record every value that was measured",
}


def check_noise(
    problem: AnyProblem,
    record: NoiseRecord,
    withdrawals: Withdrawals | None = None,
    *,
    stated: bool = True,
) -> tuple[Doubt, ...]:
    """Return what the measurements have that the guarantee does not allow.

    `stated` says whether the scale was given.
    """
    found: list[Doubt] = []
    # noise of bounded variance may have any shape; its mean and variance are not bounded by these looks
    if problem.noise != BOUNDED_VARIANCE:
        stated = stated and problem.knows_noise
        looked = [one for one in _readings(problem, record, stated) if one.record.levels[0].n > 1]
        apart = [one for one in looked if one.is_apart]
        found += [] if stated else _shapes(apart)
        found += _of_scale(looked, apart) if problem.knows_noise else []
    if withdrawals is not None:
        found += _released(problem, record, withdrawals)
    return tuple(found)


def _of_scale(looked: list[_Looked], apart: list[_Looked]) -> list[Doubt]:
    """Return what contradicts the noise scale, which is known."""
    found = [*_spreads(looked, apart)]
    found += _outliers(looked, found)
    found += _dependence(apart, found)
    found += _drift(looked)
    found += _wandering(apart, found)
    return found


@dataclass(frozen=True)
class _Looked:
    """An arm, or a reading of a probe, that can be looked at."""

    arm: int
    name: str
    scale: float
    record: ArmRecord
    unit: str
    stated: bool  # whether the scale was given, and not learned
    is_apart: bool = True  # whether its noise is independent of that of all others that are apart

    @property
    def freedom(self) -> int:
        return self.record.levels[0].n - 1

    @property
    def ratio(self) -> float:
        """The squares in units of the scale, chi-square with `freedom`."""
        return self.record.levels[0].squares / self.scale**2

    @property
    def spread(self) -> float:
        return self.scale * math.sqrt(self.ratio / self.freedom)

    @property
    def source(self) -> str:
        """Where the scale comes from, to end a sentence with."""
        return "was stated"

    def doubt(self, code: str, text: str) -> Doubt:
        """Return a doubt about this arm."""
        return _doubt(code, text, [self], self.spread, self.name)


def _doubt(code: str, text: str, looked: list[_Looked], seen: float, arm: str | None = None) -> Doubt:
    advice = _ADVICE[code]
    scale = max(one.scale for one in looked) if all(one.stated for one in looked) else None
    return Doubt(code, arm, sum(one.record.count for one in looked), scale, seen, text, advice)


def _readings(problem: AnyProblem, record: NoiseRecord, stated: bool) -> Iterator[_Looked]:
    """Yield all that can be looked at, with its scale; 1 stands for one that is unknown.

    For readings with a given covariance the record has the values freed of what they share (`whiten_use`), so
    that their scale is 1. Where any dependence is allowed, only the first reading of a use is looked at
    together with others.
    """
    scales = [1.0] * problem.n_readings if problem.noise_scale is None else problem.noise_scale.tolist()
    probes, unit = problem.probes, f" {problem.about.unit}" if problem.about.unit else ""
    for r, (name, scale) in enumerate(zip(problem.reading_names, scales, strict=True)):
        if probes is None:
            yield _Looked(r, name, scale, record.arms[r], unit, stated)
        elif probes.owner[r] in probes.covariances and not probes.unknown:
            yield _Looked(r, f"{name}, freed of shared noise", 1.0, record.arms[r], "", stated)
        else:
            free = not (probes.dependent or probes.unknown)
            apart = free or r == int(probes.start[probes.owner[r]])
            yield _Looked(r, name, scale, record.arms[r], unit, stated, apart)


def _shapes(apart: list[_Looked]) -> Iterator[Doubt]:
    """Yield shapes that are not Gaussian, where the proof rests on Student factors."""
    shapes = [one.record.shape for one in apart]
    share = coarse(shapes, EACH)
    if share is not None:
        text = f"{share:.0%} of successive values are equal: readings are rounded as coarsely as they vary"
        yield _doubt("coarse", text, apart, _pooled(apart))
        return  # rounding has a shape of its own
    words = heavy_tails(shapes, EACH)
    if words is not None:
        yield _doubt(
            "heavy_tails",
            f"the noise is not Gaussian, which the guarantee assumes: {words}",
            apart,
            _pooled(apart),
        )


def _pooled(looked: list[_Looked]) -> float:
    """Return the standard deviation of one measurement over all of these arms."""
    squares, freedom = sum(one.record.levels[0].squares for one in looked), sum(one.freedom for one in looked)
    return math.sqrt(squares / freedom) if freedom else 0.0


def _outliers(looked: list[_Looked], before: list[Doubt]) -> Iterator[Doubt]:
    """Yield the arm with the value furthest from its mean, if noise of the scale has none so far out."""
    if not looked or before:
        return
    n = sum(one.record.shape.n for one in looked)
    found = [(too_far(one.record.shape, one.scale, n, EACH), one) for one in looked]
    far, one = max(found, key=lambda pair: pair[0])
    if far:
        text = (
            f"a value of {one.name!r} is {far:.3g}{one.unit} from their mean, further than noise of "
            f"{one.scale:.3g}{one.unit} reaches"
        )
        yield one.doubt("heavy_tails", text)


def _spreads(looked: list[_Looked], apart: list[_Looked]) -> Iterator[Doubt]:
    """Yield arms whose values vary too much; all arms together only if no arm does so alone."""
    alone = [one for one in looked if one.ratio > chi_square_above(EACH / len(looked), one.freedom)]
    for one in alone:
        yield one.doubt(
            "noise_larger",
            f"{one.record.count} values of {one.name!r} have a standard deviation of "
            f"{one.spread:.3g}{one.unit}, {one.scale:.3g}{one.unit} {one.source}",
        )
    freedom, ratio = sum(one.freedom for one in apart), sum(one.ratio for one in apart)
    if not alone and len(apart) > 1 and ratio > chi_square_above(EACH, freedom):
        times = math.sqrt(ratio / freedom)
        text = f"values of all arms together scatter {times:.3g} times as much as {apart[0].source}"
        yield _of_all("noise_larger", text, apart, times)


def _dependence(looked: list[_Looked], before: list[Doubt]) -> Iterator[Doubt]:
    """Yield blocks that vary more than their single values explain; or successors that go together."""
    if not looked or before:  # noise that is too large spreads in blocks as well
        return
    worst = _worst_blocks(looked)
    if worst is not None:
        length, times = worst
        text = (
            f"means of {length} successive values scatter {times:.3g} times as much as independent ones would"
        )
        yield _of_all("dependent", text, looked, times)
        return
    product = sum(one.record.product / one.scale**2 for one in looked)
    square = math.sqrt(sum((one.record.square / one.scale**4) for one in looked))
    pairs = sum(one.record.n_pairs for one in looked)
    if not pairs or product <= normal_above(EACH) * square:
        return
    variance = sum(one.ratio for one in looked) / sum(one.freedom for one in looked)
    correlation = min(product / pairs / variance, 0.99)
    long_run = variance * (1 + correlation) / (1 - correlation)
    if long_run > 1:  # means are less exact than the scale says
        text = (
            f"successive values of an arm have a correlation of about {correlation:.2f}, which makes their "
            f"means as uncertain as noise {math.sqrt(long_run):.3g} times as large would"
        )
        yield _of_all("dependent", text, looked, math.sqrt(long_run))


def _worst_blocks(looked: list[_Looked]) -> tuple[int, float] | None:
    """Length of the blocks that spread too much, and how many times; all lengths share one level."""
    sums: dict[int, tuple[float, int]] = {}
    for one in looked:
        for length, level in enumerate(one.record.levels[1:], 1):
            if level.n >= FEWEST_BLOCKS:
                ratio, freedom = sums.get(length, (0.0, 0))
                sums[length] = ratio + level.squares / one.scale**2, freedom + level.n - 1
    found = [
        (length, ratio / freedom)
        for length, (ratio, freedom) in sums.items()
        if ratio > chi_square_above(EACH / len(sums), freedom)
    ]
    if not found:
        return None
    length, times = max(found, key=lambda pair: pair[1])
    return 2**length, math.sqrt(times)


def _drift(looked: list[_Looked]) -> Iterator[Doubt]:
    """Yield a mean that has moved, by the average of the arms' e-processes."""
    if not looked:
        return
    changes = [_change(one) for one in looked]
    top = max(log for log, _, _ in changes)
    evidence = top + math.log(sum(math.exp(log - top) for log, _, _ in changes) / len(changes))
    if evidence < -math.log(EACH):
        return
    (_, at, shift), one = max(zip(changes, looked, strict=True), key=lambda pair: pair[0][0])
    if not FEWEST_BESIDE <= at <= one.record.count - FEWEST_BESIDE:  # an odd value or two are no change
        return
    yield one.doubt(
        "drift",
        f"the mean of {one.name!r} has changed by {shift:+.3g}{one.unit} from about its measurement {at} on",
    )


def _change(one: _Looked) -> tuple[float, int, float]:
    """Log of the e-value against one mean, the likeliest place of a change, and the change there.

    The average, over places k with weights 1/(k(k+1)) (those between two marks go to the later one), of the
    Bayes factors of a change by N(0, tau^2) scales against none: with D the later mean less the earlier one
    and v its variance, sqrt(v/(v + tau^2)) exp(D^2 tau^2 / (2 v (v + tau^2))). Under the flat prior on the
    common mean each is a martingale in the tape, whatever decides how much of it is read.
    """
    record, prior = one.record, (TAU * one.scale) ** 2
    n, total, before = record.count, record.total, 0
    terms = [(-math.log(n), 0, 0.0)]  # changes that are still to come: evidence of 1
    for k, at_mark in record.marks:
        if not 0 < k < n:
            continue
        weight = 1 / (before + 1) - 1 / (k + 1)
        before = k
        shift = (total - at_mark) / (n - k) - at_mark / k
        variance = one.scale**2 * (1 / k + 1 / (n - k))
        both = variance + prior
        log = 0.5 * math.log(variance / both) + shift**2 * prior / (2 * variance * both)
        terms.append((math.log(weight) + log, k, shift))
    top, at, shift = max(terms)
    return top + math.log(sum(math.exp(log - top) for log, _, _ in terms)), at, shift


def _wandering(looked: list[_Looked], before: list[Doubt]) -> Iterator[Doubt]:
    """Levels that wander, if nothing that looks like it was found."""
    if not looked or before:
        return
    found = wander([(one.record, one.scale) for one in looked])
    if found.level < WANDERING:
        far = found.step * math.sqrt(found.n)
        whose = f"the level of {looked[0].name!r} wanders" if len(looked) == 1 else "levels of arms wander"
        text = (
            f"{whose} up and down, by about {far:.2g} times the noise over {how_many(found.n, 'measurement')}"
        )
        yield _of_all("drift", text, looked, math.sqrt(1.0 + far**2))


def _released(problem: AnyProblem, record: NoiseRecord, of: Withdrawals) -> Iterator[Doubt]:
    """Yield arms whose requests are released far more often than others, or one request again and again.

    For plays only the second can be seen: readings are counted by arm, not by the play that gave them.
    """
    firsts = (problem.readings_of(probe)[0] for probe in range(problem.n_probes))
    all_counts, all_released = sum(record.arms[first].count for first in firsts), sum(of.counts)
    for arm, n in enumerate(of.counts):
        first = problem.readings_of(arm)[0]
        recorded = record.arms[first].count
        if not n:
            continue
        from scipy.special import bdtrc

        share = (recorded + n) / (all_counts + all_released)
        uneven = not problem.plays and float(bdtrc(n - 1, all_released, share)) < EACH / problem.n_probes
        name = problem.probe_names[arm]
        if uneven or of.longest[arm] >= LONGEST_RUN:
            often = f", one of them {of.longest[arm]} times" if of.longest[arm] >= LONGEST_RUN else ""
            others = f" (of all {problem.probe_word}s {all_released})" if uneven else ""
            text = f"{how_many(n, 'request')} of {name!r} were released unmeasured{others}{often}"
            scale = None if problem.noise_scale is None else float(problem.noise_scale[first])
            yield Doubt("released", name, recorded, scale, scale or 0.0, text, _ADVICE["released"])


def _of_all(code: str, text: str, looked: list[_Looked], times: float) -> Doubt:
    return _doubt(code, text, looked, times * max(one.scale for one in looked))


def could_have_seen(problem: AnyProblem, record: NoiseRecord) -> str:
    """Return what the check would have found in nine of ten sessions with as many measurements."""
    if problem.noise == BOUNDED_VARIANCE:
        return ""
    if not problem.knows_noise:
        return "of the shape: heavy tails and coarse rounding; the size of the noise is learned"
    n, word = sum(arm.count for arm in record.arms), "measurement" if problem.arms_alone else "reading"
    freedom = sum(max(arm.levels[0].n - 1, 0) for arm in record.arms)
    pairs = sum(arm.n_pairs for arm in record.arms)
    if problem.noise_scale is None or freedom < 1 or pairs < 1:
        return "too few measurements to check the noise"
    times = math.sqrt(chi_square_above(EACH, freedom) / chi_square_above(POWER, freedom))
    correlation = (normal_above(EACH) + normal_above(1 - POWER)) / math.sqrt(pairs)
    apart = f", a correlation of {correlation:.2f} between successive ones" if correlation < 0.9 else ""
    shift = _visible_shift(max(arm.count for arm in record.arms), len(record.arms))
    moved = f", a mean that moves by {shift:.2g} scales half-way" if shift < 5 else ""
    far = visible(max(arm.count for arm in record.arms))
    moved += f" or wanders by {far:.2g}" if moved and far < 5 else ""
    return (
        f"of {how_many(n, word)}; nine times in ten it finds noise of {times:.2f} times its scale"
        f"{apart}{moved}; never what all measurements share (a wrong unit, a biased instrument)"
    )


def _visible_shift(n: int, n_arms: int) -> float:
    """By how many scales a mean must move half-way through n measurements for the drift alarm to see it."""
    if n < 4:
        return math.inf
    v = 4.0 / n
    weight = 0.1 / (n / 2)  # of the marks about the middle
    needed = math.log(n_arms / EACH / weight) + 0.5 * math.log1p(TAU**2 / v)
    return math.sqrt(2 * v * (v + TAU**2) / TAU**2 * needed) + normal_above(1 - POWER) * math.sqrt(v)
