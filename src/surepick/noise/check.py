"""Check whether the values look as the guarantee assumes: independent, around one mean, of the given scale.

`NOISE_TESTS` lists the statistical tests. Each has a level, the probability with which it may object to an
honest session, and returns its doubts with its power: the effect that it finds in nine of ten sessions with
as many values. Together they object to at most 2% of honest sessions with Gaussian noise, tested at their end
(`benchmarks/misuse.py`).

Noise that is smaller than its scale is fine, and so is dependence that leaves means as exact as the scale
says. If the scale is unknown, the Student factors of the proof rest on the Gaussian shape: then the shape is
tested, and nothing is compared with a scale.

Stated limits of means are assumptions, too: the test for them keeps its level however often it is looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from surepick.core.base_problem import BOUNDED_VARIANCE
from surepick.core.guarantee import Doubt
from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import how_many
from surepick.noise.mean_limits import ANY_MEAN, log_evidence_outside, mean_limits
from surepick.noise.record import ArmRecord

FEWEST_FOR_DRIFT, FEWEST_FOR_SKEWNESS, FEWEST_FOR_KURTOSIS = 8, 8, 20  # values of an arm
FINE = 0.1  # share of successive values that are equal if the rounding step is .35 standard deviations
LARGER_NOISE = 0.001  # p-value below which noise counts as larger than stated; drift is then relative to it
LONGEST_RUN = 5  # releases of one request that raise a doubt
N_WEIGHTS = 16  # of Nyblom's statistic; the others are less than a hundredth of their sum
POWER = 0.9  # share of sessions in which a test finds the effect that it states as its power
WANDERING = 28.0  # random steps of this / n scales are found nine times in ten, by simulation

ADVICE = {
    "noise_larger": "begin again with a larger noise, or leave the noise out: then it is learned",
    "heavy_tails": "record the median of about five runs as one value, or state limits of every reading",
    "coarse": "record more digits; for 0 and 1, counts or marks begin again with low and high",
    "dependent": "look for what successive measurements share, and begin again in balanced order",
    "drift": "find what has changed and begin again",
    "limits": "begin again with other limits of this mean, and the values as prior data",
    "released": "record every value that was measured",
}


def normal_above(level: float) -> float:
    """Return the value that a standard normal variable exceeds with this probability.

    >>> round(normal_above(0.025), 6)
    1.959964
    """
    return -NormalDist().inv_cdf(level)


def chi_square_tail(x: float, freedom: float) -> float:
    """Return the probability that a chi-square variable exceeds x, by Wilson and Hilferty's cube root.

    Tails below one in a hundred come out a little too large: a test at such a level objects less often.

    >>> round(chi_square_tail(16.266, 3), 5)  # exactly .001
    0.00113
    """
    error = 2.0 / (9.0 * freedom)
    return 0.5 * math.erfc((math.cbrt(max(x, 0.0) / freedom) - 1.0 + error) / math.sqrt(2.0 * error))


def chi_square_above(level: float, freedom: float) -> float:
    """Return the value that a chi-square variable exceeds with this probability, by the same approximation.

    >>> round(chi_square_above(0.05, 10), 2)  # exactly 18.31
    18.29
    """
    error = 2.0 / (9.0 * freedom)
    return freedom * max(1.0 - error + normal_above(level) * math.sqrt(error), 0.1) ** 3


class Reading(NamedTuple):
    """An arm, or a reading of a probe, with two values or more."""

    name: str
    stated: float | None  # standard deviation of one value, None where it is unknown
    record: ArmRecord
    unit: str
    is_independent: bool  # whether its noise is independent of all other readings with this flag
    mean_limits: tuple[float, float] = ANY_MEAN  # between which its mean surely lies, as was stated
    between: tuple[float, float] | None = None  # the limits of each value

    @property
    def scale(self) -> float:
        """The unit of its deviations: the stated standard deviation, or 1 if that is unknown."""
        return 1.0 if self.stated is None else self.stated

    @property
    def squares(self) -> float:
        """The sum of squared deviations from the mean, in units of the scale.

        If Gaussian noise has that scale, it is chi-square with n - 1 degrees of freedom.
        """
        return self.record.squares / self.scale**2


class Power(NamedTuple):
    """The size of an effect that a test finds nine times in ten, and its description."""

    size: float
    text: str


@dataclass(frozen=True)
class Sample:
    """The data of all tests."""

    problem: AnyProblem
    readings: list[Reading]  # with two values or more
    independent: list[Reading]  # those whose noise is independent of each other
    n_recorded: list[int]  # by probe
    releases: Mapping[str, int]  # by request
    n_limited: int  # readings whose mean has stated limits, with and without values

    @property
    def groups(self) -> list[list[Reading]]:
        """The groups to test: each reading alone, and all independent ones pooled."""
        return [[one] for one in self.readings] + ([self.independent] if len(self.independent) > 1 else [])

    def least_likely(self, tail: Callable[[list[Reading]], float]) -> tuple[float, list[Reading]]:
        """Return the smallest tail probability of a group, corrected for the number of groups, and the group.

        A weighted Bonferroni correction: the pooled group has three quarters of the level (a factor of 4/3),
        and the single readings share the rest.
        """
        many = (4 if len(self.independent) > 1 else 1) * len(self.readings)
        found = [(tail(one) * (many if len(one) == 1 else 4 / 3), one) for one in self.groups]
        return min(found, key=lambda pair: pair[0])


Finding = tuple[list[Doubt], Power | None]  # None: with so few values the test finds nothing


class NoiseTest(NamedTuple):
    """One test of the values; `level` is the probability with which it may object to an honest session."""

    name: str
    of: str  # "scale": if known; "shape": if unknown; "limits": if means have any; "releases": always
    level: float
    run: Callable[[Sample, float], Finding]
    unless: tuple[str, ...] = ()  # with one of these doubts its own are dropped: they have the same cause


def check_noise(
    problem: AnyProblem, records: Sequence[ArmRecord], releases: Mapping[str, int] | None = None
) -> tuple[Doubt, ...]:
    """Return a doubt for each way in which the values contradict the guarantee's assumptions."""
    return tuple(doubt for _, (doubts, _) in _run_tests(problem, records, releases or {}) for doubt in doubts)


def powers(problem: AnyProblem, records: Sequence[ArmRecord]) -> dict[str, Power]:
    """Return, by test name, the effect that it finds in nine of ten sessions with as many values."""
    return {name: power for name, (_, power) in _run_tests(problem, records, {}) if power is not None}


def could_have_seen(problem: AnyProblem, records: Sequence[ArmRecord]) -> str:
    """Return a sentence on the effects that the check finds in nine of ten sessions with as many values."""
    if problem.noise_kind == BOUNDED_VARIANCE:
        return ""
    found = powers(problem, records)
    if not found:
        return "too few measurements to check the noise"
    n = sum(arm.n for arm in records)
    word = "measurement" if problem.arms_alone else "reading"
    return (
        f"of {how_many(n, word)}; nine times in ten it finds {', '.join(p.text for p in found.values())}; "
        "never what all measurements share (a wrong unit, a biased instrument)"
    )


def _run_tests(
    problem: AnyProblem, records: Sequence[ArmRecord], releases: Mapping[str, int]
) -> Iterator[tuple[str, Finding]]:
    """Yield the name and finding of each test that applies to this problem.

    Noise of which only the variance is bounded may have any shape and outliers: neither is tested.
    """
    all_readings = list(_readings(problem, records))
    readings = [one for one in all_readings if one.record.n > 1]
    n_limited = sum(one.mean_limits != ANY_MEAN for one in all_readings)
    n_recorded = [records[problem.readings_of(probe)[0]].n for probe in range(problem.n_probes)]
    independent = [one for one in readings if one.is_independent]
    sample = Sample(problem, readings, independent, n_recorded, releases, n_limited)
    found = set[str]()
    is_any_shape = problem.noise_kind == BOUNDED_VARIANCE
    applies = {
        "scale": bool(readings) and problem.knows_noise and not is_any_shape,
        "shape": bool(independent) and not problem.knows_noise and not is_any_shape,
        "limits": any(one.mean_limits != ANY_MEAN for one in readings),
        "releases": bool(readings or releases),
    }
    for test in NOISE_TESTS:
        if applies[test.of]:
            doubts, power = test.run(sample, test.level)
            doubts = [] if found.intersection(test.unless) else doubts
            found.update(doubt.code for doubt in doubts)
            yield test.name, (doubts, power)


def _readings(problem: AnyProblem, records: Sequence[ArmRecord]) -> Iterator[Reading]:
    """Yield all readings with their scales.

    Readings with a given covariance are recorded as whitened values (`whiten_use`), whose scale is 1. If the
    noise is unknown, readings of one use may be correlated, so that only the first counts as independent.
    """
    known = problem.noise_scale if problem.knows_noise else None
    scales = [None] * problem.n_readings if known is None else known.tolist()
    probes = problem.probes
    unit = f" {problem.about.unit}" if problem.about.unit else ""
    limits = mean_limits(problem)
    between = [None] * problem.n_readings if problem.bounds is None else problem.bounds.tolist()
    for r, (name, scale) in enumerate(zip(problem.reading_names, scales, strict=True)):
        if probes is None:
            yield Reading(name, scale, records[r], unit, True, limits[r], between[r])
        elif probes.owner[r] in probes.covariances and not probes.unknown:
            yield Reading(f"{name}, freed of shared noise", 1.0, records[r], "", True, limits[r])
        else:
            is_independent = not probes.unknown or r == int(probes.start[probes.owner[r]])
            yield Reading(name, scale, records[r], unit, is_independent, limits[r], between[r])


def _doubt(code: str, text: str, readings: list[Reading], times: float) -> Doubt:
    """Return a doubt about these readings: their noise seems to be `times` their scale.

    For several readings it states the largest scale. The scale is stated for all readings or for none.
    """
    scale = max(one.scale for one in readings)
    stated = None if readings[0].stated is None else scale
    arm = readings[0].name if len(readings) == 1 else None
    n = sum(one.record.n for one in readings)
    return Doubt(code, arm, n, stated, times * scale, text, ADVICE[code])


def _deviation(readings: list[Reading]) -> float:
    """Return the pooled standard deviation of one value, in units of each reading's scale."""
    freedom = sum(one.record.n - 1 for one in readings)
    return math.sqrt(sum(one.squares for one in readings) / freedom)


def _variance_p_value(readings: list[Reading]) -> float:
    """Return the probability of a pooled variance at least this large if the noise has its scales."""
    freedom = sum(one.record.n - 1 for one in readings)
    return chi_square_tail(sum(one.squares for one in readings), freedom)


def _binomial_tail(k: int, n: int, p: float) -> float:
    """Return the probability of k or more successes in n trials of probability p."""
    from scipy.special import bdtrc  # takes a quarter of a second to load, and is rarely needed

    return float(bdtrc(k - 1, n, p))


def _resolution(sample: Sample, level: float) -> Finding:
    """Test for rounding that is coarse next to the noise: too many successive values are equal.

    Arms whose values are all equal do not count: they may have no noise at all.
    """
    n = sum(one.record.n - 1 for one in sample.independent)
    # a share p of n pairs has the standard deviation sqrt(p (1 - p) / n), where sqrt(p (1 - p)) is .3 for
    # p = FINE, and at most .5
    share = FINE + (normal_above(level) * 0.3 + normal_above(1 - POWER) * 0.5) / math.sqrt(n)
    power = Power(share, f"rounding that makes {share:.0%} of successive values equal") if share < 1 else None
    vary = [one.record for one in sample.independent if one.squares > 0]
    ties, pairs = sum(one.n_ties for one in vary), sum(one.n - 1 for one in vary)
    if ties <= FINE * pairs or _binomial_tail(ties, pairs, FINE) >= level:
        return [], power
    text = f"{ties / pairs:.0%} of successive values are equal: readings are rounded too coarsely"
    return [_doubt("coarse", text, sample.independent, _deviation(sample.independent))], power


def _shape(sample: Sample, level: float) -> Finding:
    """Test for heavy tails by the kurtosis, and then for skewed values; each has half of the level."""
    n = sum(one.record.n for one in sample.independent if one.record.n >= FEWEST_FOR_SKEWNESS)
    if not n:
        return [], None
    # the sample skewness of skewed values varies about twice as much as that of Gaussian ones
    least = (normal_above(level / 4) + 2 * normal_above(1 - POWER)) * math.sqrt(6 / n)
    power = Power(least, f"a skewness of {least:.2g} or tails as heavy")
    vary = [one.record for one in sample.independent if one.squares > 0]
    skew = _combined(vary, FEWEST_FOR_SKEWNESS, skewness)
    words = ""
    if _combined(vary, FEWEST_FOR_KURTOSIS, kurtosis) > normal_above(level / 2):
        largest = max(one.n * one.fourths / one.squares**2 for one in vary)
        words = f"values have heavy tails (kurtosis up to {largest:.3g}, Gaussian 3)"
    elif abs(skew) > normal_above(level / 4):
        words = f"values are skewed towards {'large' if skew > 0 else 'small'} ones"
    if not words:
        return [], power
    text = f"the noise is not Gaussian, which the guarantee assumes: {words}"
    return [_doubt("heavy_tails", text, sample.independent, _deviation(sample.independent))], power


def _combined(records: Sequence[ArmRecord], fewest: int, normal: Callable[[ArmRecord], float]) -> float:
    """Return the arms' z-scores combined into one by Stouffer's method, weighted by sqrt(n).

    Arms with fewer than `fewest` values are left out; without any arm it is 0.
    """
    enough = [one for one in records if one.n >= fewest]
    total = math.fsum(math.sqrt(one.n) * normal(one) for one in enough)
    return total / math.sqrt(sum(one.n for one in enough) or 1)


def skewness(of: ArmRecord) -> float:
    """Return the z-score of the sample skewness, by D'Agostino's (1970) transformation."""
    n = of.n
    y = math.sqrt(n) * of.cubes / of.squares**1.5 * math.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    beta = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w = math.sqrt(2 * (beta - 1)) - 1
    return math.asinh(y / math.sqrt(2 / (w - 1))) / math.sqrt(0.5 * math.log(w))


def kurtosis(of: ArmRecord) -> float:
    """Return the z-score of the sample kurtosis, by Anscombe and Glynn's (1983) transformation."""
    n = of.n
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    x = (n * of.fourths / of.squares**2 - 3 * (n - 1) / (n + 1)) / math.sqrt(variance)
    root = math.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    skew = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * root
    a = 6 + 8 / skew * (2 / skew + math.sqrt(1 + 4 / skew**2))
    below = 1 + x * math.sqrt(2 / (a - 4))
    return (1 - 2 / (9 * a) - math.cbrt((1 - 2 / a) / below)) / math.sqrt(2 / (9 * a))


def _noise(sample: Sample, level: float) -> Finding:
    """Test whether the variance of an arm, or of all arms pooled, exceeds the stated one (chi-square)."""
    freedom = sum(one.record.n - 1 for one in sample.groups[-1])
    # noise of `times` its scale multiplies the sum of squares, and so its low quantile, by times^2
    objected_to, usually_above = chi_square_above(level / 2, freedom), chi_square_above(POWER, freedom)
    times = math.sqrt(objected_to / usually_above)
    power = Power(times, f"noise of {times:.2f} times its scale in all arms") if times < 10 else None

    chance, group = sample.least_likely(_variance_p_value)
    if chance >= level:
        return [], power
    seen = _deviation(group)
    one = group[0]
    text = f"values of all arms together scatter {seen:.3g} times as much as was stated"
    if len(group) == 1:
        text = (
            f"{one.record.n} values of {one.name!r} have a standard deviation of "
            f"{seen * one.scale:.3g}{one.unit}, {one.scale:.3g}{one.unit} was stated"
        )
    return [_doubt("noise_larger", text, group, seen)], power


def _outlier(sample: Sample, level: float) -> Finding:
    """Test for a value too far from its arm's mean.

    Sub-Gaussian noise exceeds t scales with probability at most 2 exp(-t^2/2). A union bound over all n
    values gives t = sqrt(2 log(2 n / level)).
    """
    reach = math.sqrt(2.0 * math.log(2.0 * sum(one.record.n for one in sample.readings) / level))
    size = reach + normal_above(1 - POWER)
    power = Power(size, f"a value that is {size:.2g} scales off")

    def distance(one: Reading) -> float:
        return max(one.record.high - one.record.mean, one.record.mean - one.record.low)

    def in_errors(one: Reading) -> float:
        return distance(one) / (one.scale * math.sqrt(1.0 - 1.0 / one.record.n))

    one = max(sample.readings, key=in_errors)
    if in_errors(one) <= reach:
        return [], power
    text = (
        f"a value of {one.name!r} is {distance(one):.3g}{one.unit} from their mean, further than noise of "
        f"{one.scale:.3g}{one.unit} reaches"
    )
    return [_doubt("heavy_tails", text, [one], _deviation([one]))], power


def _dependence(sample: Sample, level: float) -> Finding:
    """Test for correlated successive values that make means less exact than the stated scale says.

    The sum of products of successive residuals, over its standard error, is about normal (von Neumann). With
    a correlation r of successive values (AR(1)) the variance of a mean is (1 + r)/(1 - r) times as large.
    """
    pairs = sum(one.record.n - 2 for one in sample.independent)
    if pairs < 1:
        return [], None
    size = (normal_above(level) + normal_above(1 - POWER)) / math.sqrt(pairs)
    power = Power(size, f"a correlation of {size:.2f} between successive values") if size < 0.9 else None
    product = sum(one.record.product / one.scale**2 for one in sample.independent)
    error = math.sqrt(sum(one.record.product_squares / one.scale**4 for one in sample.independent))
    variance = _deviation(sample.independent) ** 2
    if product <= normal_above(level) * error:
        return [], power
    correlation = min(product / pairs / variance, 0.99)
    times = math.sqrt(variance * (1 + correlation) / (1 - correlation))
    text = (
        f"successive values of an arm have a correlation of about {correlation:.2f}, which makes their "
        f"means as uncertain as noise {times:.3g} times as large would"
    )
    return [_doubt("dependent", text, sample.independent, times)] if times > 1 else [], power


def _drift(sample: Sample, level: float) -> Finding:
    """Test for a mean that jumps or drifts, in one arm or in all arms together (Nyblom's test, `wander`)."""
    longest = max(one.record.n for one in sample.readings)
    if longest < FEWEST_FOR_DRIFT:  # one or two outliers are no drift
        return [], None
    size = WANDERING / math.sqrt(longest)
    power = Power(size, f"a mean that wanders by {size:.2g} scales") if size < 5 else None

    def tail(group: list[Reading]) -> float:
        is_short = max(one.record.n for one in group) < FEWEST_FOR_DRIFT
        is_larger = _variance_p_value(group) < LARGER_NOISE  # then drift is in units of the estimated noise
        return 1.0 if is_short else wander(group, _deviation(group) if is_larger else 1.0)[0]

    chance, group = sample.least_likely(tail)
    if chance >= level:
        return [], power
    n, far = max(one.record.n for one in group), wander(group)[1]
    whose = f"the mean of {group[0].name!r} moves" if len(group) == 1 else "means move"
    text = f"{whose} by about {far:.2g} times the noise over {how_many(n, 'measurement')}"
    return [_doubt("drift", text, group, math.sqrt(1.0 + far**2))], power


def wander(group: Sequence[Reading], times: float = 1.0) -> tuple[float, float]:
    """Return the p-value of Nyblom's test for constant means, and how far the means seem to wander.

    The noise is taken as `times` the stated scales. Let S_k = k (mean of the first k values - mean of all n),
    in noise scales. Against a mean that takes a small random step at every value, the same for all arms, the
    test by the sum of all S_k^2 is the most powerful near the null; it finds a jump as well. With independent
    noise S is a Brownian bridge, and sum S_k^2 / n^2 = sum_j w_j Z_j^2 with independent normal Z_j and
    w_j = 1/(2 n sin(j pi/(2n)))^2. Two approximations: a chi-square variable with the same mean, variance and
    skewness replaces that sum (Pearson), and the recorded means, at every n that is a tenth larger than the
    last, replace those between them. The distance is in noise scales.
    """
    n = np.array([one.record.n for one in group])
    shares = (n / n.max()) ** 2
    statistic = 0.0
    for one, share in zip(group, shares.tolist(), strict=True):
        marks = [(k, mean) for k, mean in one.record.marks if k < one.record.n]
        places = [0, *(k for k, _ in marks), one.record.n]
        squares = (
            (after - before) / 2 * (k * (mean - one.record.mean)) ** 2
            for (k, mean), before, after in zip(marks, places, places[2:], strict=False)
        )
        statistic += share * math.fsum(squares) / (one.record.n * one.scale * times) ** 2
    j = np.arange(1, N_WEIGHTS + 1)
    sines = np.sin(np.minimum(j / n[:, None], 1.0) * math.pi / 2)
    weights = shares[:, None] * np.where(j < n[:, None], 1.0 / (2.0 * n[:, None] * sines) ** 2, 0.0)
    mean = float(shares @ (1.0 - 1.0 / n**2)) / 6.0  # of the statistic; its variance is twice `second`
    second, third = float((weights**2).sum()), float((weights**3).sum())
    freedom = second**3 / third**2
    tail = chi_square_tail(freedom + (statistic - mean) * math.sqrt(freedom / second), freedom)
    far = math.sqrt(max(statistic - mean, 0.0) * 90.0 / float(shares @ shares) / n.max())
    return tail, far


def _limits(sample: Sample, level: float) -> Finding:
    """Test whether the mean of a reading lies outside its stated limits; each reading has the same level."""
    limited = [one for one in sample.readings if one.mean_limits != ANY_MEAN]
    needed = math.log(sample.n_limited / level)
    n = max(one.record.n for one in limited)
    # about the distance from which the evidence is enough on average, and what the mean errs by
    size = math.sqrt(math.expm1((2 * needed + math.log1p(n)) / n)) + normal_above(1 - POWER) / math.sqrt(n)
    power = Power(size, f"a mean that is {size:.2g} scales outside its limits") if size < 10 else None
    is_any_shape = sample.problem.noise_kind == BOUNDED_VARIANCE
    doubts = []
    for one in limited:
        (low, high), mean = one.mean_limits, one.record.mean
        against = log_evidence_outside(
            one.record, (low, high), one.stated, one.between, is_any_shape=is_any_shape
        )
        if against <= needed:
            continue
        nearest = low if mean < low else high
        stated = f"at {'least' if mean < low else 'most'} {nearest:.4g}{one.unit}"
        seen = f"have a mean of {mean:.4g}{one.unit}"
        text = f"{one.record.n} values of {one.name!r} {seen}, {stated} was stated"
        doubts.append(Doubt("limits", one.name, one.record.n, nearest, mean, text, ADVICE["limits"]))
    return doubts, power


def _released(sample: Sample, level: float) -> Finding:
    """Test for probes whose requests are released far more often than others, or one request many times.

    A worker who releases a request after seeing its value biases the means. If releases had nothing to do
    with the values, each would fall on a probe with the probability of its share of all requests. This
    first test is skipped for plays, whose readings are counted by arm and not by play.
    """
    problem = sample.problem
    n_probes = problem.n_probes
    # k releases, all of one of n equally likely probes, have probability n^-k: k with n^-k <= level / n
    size = LONGEST_RUN if n_probes < 2 else math.ceil(math.log(n_probes / level) / math.log(n_probes))
    power = Power(size, f"{size} releases of one {problem.probe_word} alone")
    released = Counter[int]()  # by probe
    most_of_one = dict[int, int]()  # by probe, the releases of the request that was released most often
    for token, n in sample.releases.items():
        probe = int(token.partition(".")[0])  # a token is "probe.number"
        released[probe] += n
        most_of_one[probe] = max(most_of_one.get(probe, 0), n)
    doubts = []
    n_requests = sum(sample.n_recorded) + released.total()
    for probe, n in sorted(released.items()):
        n_recorded = sample.n_recorded[probe]
        chance = _binomial_tail(n, released.total(), (n_recorded + n) / n_requests)
        is_uneven = not problem.plays and chance < level / n_probes
        is_repeated = most_of_one[probe] >= LONGEST_RUN
        if is_uneven or is_repeated:
            name = problem.probe_names[probe]
            text = f"{how_many(n, 'request')} of {name!r} were released unmeasured"
            if is_uneven:
                text += f" (of all {problem.probe_word}s {released.total()})"
            if is_repeated:
                text += f", one of them {most_of_one[probe]} times"
            first = problem.readings_of(probe)[0]
            scale = None if problem.noise_scale is None else float(problem.noise_scale[first])
            doubts.append(Doubt("released", name, n_recorded, scale, scale or 0.0, text, ADVICE["released"]))
    return doubts, power


_FAR = ("noise_larger", "heavy_tails")
NOISE_TESTS = (
    NoiseTest("resolution", "shape", 0.001, _resolution),
    NoiseTest("shape", "shape", 0.001, _shape, unless=("coarse",)),
    NoiseTest("noise", "scale", 0.002, _noise),
    NoiseTest("outlier", "scale", 0.001, _outlier, unless=_FAR),
    NoiseTest("successors", "scale", 0.001, _dependence, unless=_FAR),
    NoiseTest("drift", "scale", 0.01, _drift, unless=("heavy_tails",)),  # the hardest to see
    NoiseTest("limits", "limits", 0.001, _limits, unless=("coarse", "dependent")),
    NoiseTest("releases", "releases", 0.001, _released),
)
