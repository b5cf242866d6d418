"""Whether the measurements look as the guarantee assumes: independent, around one mean, of the given scale.

Seven looks at what `noise_record` keeps, each with a level of its own; together they warn of nothing in at
most 2% of honest sessions with Gaussian noise, seen at their end (`benchmarks/misuse.py`):

| look | against |
|---|---|
| spread of each arm, and of all together (chi-square) | noise larger than its scale, singles told as means |
| spread of blocks of 2, 4, 8 ... (chi-square) | noise that hangs together |
| successive values (a self-normalised sum) | noise that hangs together |
| the mean before and after a change (an e-process, see `_change`) | levels that jump or drift |
| all partial sums (Nyblom's test, see `wandering`) | levels that wander, slowly and for ever |
| withdrawn tokens by arm (binomial), and one token again and again | values withheld for what they were |

Noise that is smaller than its scale is fine, and so is dependence that leaves means as exact as the scale
says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem
from surepick.core.tails import chi_square_above, normal_above
from surepick.core.wording import how_many
from surepick.sessions.noise_record import ArmRecord, NoiseRecord, Withdrawals
from surepick.sessions.wandering import visible, wander

EACH = 0.001  # how often each of six looks may warn of nothing
WANDERING = 0.008  # the seventh, the hardest to see; twice as often where the values end the session
FEWEST_BLOCKS = 4  # of an arm, for its blocks of one length to be looked at
TAU = 1.0  # noise scales: the size of change that the drift alarm is made for
LONGEST_RUN = 5  # times that one token is given back before it is said
POWER = 0.9  # of what the check could have seen, the share of sessions in which it would have

_ADVICE = {
    "spread": "the guarantee assumes the noise scale, so begin again with a larger one, or with noise_scale "
    "unknown",
    "dependence": "the guarantee assumes independent measurements: look for what successive ones share, "
    "measure the arms in turn, or give the scale of a whole batch",
    "drift": "the guarantee assumes one mean for each arm: find what has changed and begin again",
    "withdrawals": "if values decided about it, nothing is promised: tell every value that was measured",
}


@dataclass(frozen=True)
class NoiseFinding:
    """Something about the measurements that the guarantee does not allow; of one arm, or of all (None)."""

    arm: int | None
    arm_name: str | None
    n_measurements: int
    spread: float  # the standard deviation of one measurement, as it looks
    noise_scale: float
    kind: str = "spread"  # or "dependence", "drift", "withdrawals"
    what: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {_ADVICE[self.kind]}"


def check_noise(
    problem: AnyProblem,
    record: NoiseRecord,
    withdrawals: Withdrawals | None = None,
) -> tuple[NoiseFinding, ...]:
    """What the measurements have that the guarantee does not allow; empty while the noise scale is unknown.

    After a pilot the scale is its bound, and measurements since then are looked at.
    """
    if problem.noise_scale is None:
        return ()
    # the looks at values are made for tails like Gaussian ones, of a scale that is known
    if problem.noise == BOUNDED_VARIANCE or not problem.knows_noise:
        return () if withdrawals is None else tuple(_withdrawn(problem, record, withdrawals))
    looked = [one for one in _readings(problem, record) if one.record.levels[0].n > 1]
    apart = [one for one in looked if one.is_apart]
    found = [*_spreads(looked, apart)]
    found += _dependence(apart, found)
    found += _drift(looked)
    found += _wandering(apart, found)
    if withdrawals is not None:
        found += _withdrawn(problem, record, withdrawals)
    return tuple(found)


@dataclass(frozen=True)
class _Looked:
    """An arm, or a reading of a probe, that can be looked at."""

    arm: int
    name: str
    scale: float
    record: ArmRecord
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

    def finding(self, kind: str, what: str) -> NoiseFinding:
        return NoiseFinding(self.arm, self.name, self.record.count, self.spread, self.scale, kind, what)


def _readings(problem: AnyProblem, record: NoiseRecord) -> Iterator[_Looked]:
    """All that can be looked at, with its scale.

    Of readings with a given covariance the record has the values freed of what they share (`whiten_use`), so
    that their scale is 1. Where any dependence is allowed, only the first reading of a use is looked at
    together with others.
    """
    assert problem.noise_scale is not None
    probes = problem.probes
    for r, (name, scale) in enumerate(zip(problem.reading_names, problem.noise_scale.tolist(), strict=True)):
        if probes is None:
            yield _Looked(r, name, scale, record.arms[r])
        elif probes.owner[r] in probes.covariances:
            yield _Looked(r, f"{name}, freed of shared noise", 1.0, record.arms[r])
        else:
            apart = not probes.dependent or r == int(probes.start[probes.owner[r]])
            yield _Looked(r, name, scale, record.arms[r], apart)


def _spreads(looked: list[_Looked], apart: list[_Looked]) -> Iterator[NoiseFinding]:
    """Arms that spread too much; all arms together only if none does so alone."""
    alone = [one for one in looked if one.ratio > chi_square_above(EACH / len(looked), one.freedom)]
    for one in alone:
        told = _of_means(one.record)
        yield one.finding(
            "spread",
            f"the {one.record.count} measurements of {one.name!r} have a standard deviation of "
            f"{one.spread:.4g}{told}, more than the noise scale {one.scale:.4g} allows",
        )
    freedom, ratio = sum(one.freedom for one in apart), sum(one.ratio for one in apart)
    if not alone and len(apart) > 1 and ratio > chi_square_above(EACH, freedom):
        times = math.sqrt(ratio / freedom)
        what = f"measurements of all arms together spread {times:.3g} times as much as the noise scale allows"
        yield _of_all(apart, "spread", what, times)


def _of_means(record: ArmRecord) -> str:
    n = record.levels[0].n
    return "" if n == record.count else f" (by {how_many(n, 'value')}, told as means)"


def _dependence(looked: list[_Looked], before: list[NoiseFinding]) -> Iterator[NoiseFinding]:
    """Blocks that spread more than their single values explain; or successors that go together."""
    if not looked or before:  # noise that is too large spreads in blocks as well
        return
    worst = _worst_blocks(looked)
    if worst is not None:
        length, times = worst
        what = (
            f"means of {length} successive measurements spread {times:.3g} times as much as independent "
            "noise of the given scale would"
        )
        yield _of_all(looked, "dependence", what, times)
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
        what = (
            f"successive measurements of an arm have a correlation of about {correlation:.2f} (von Neumann's "
            f"ratio {2 - 2 * correlation:.2f}), which makes their means as noisy as a scale "
            f"{math.sqrt(long_run):.3g} times as large would"
        )
        yield _of_all(looked, "dependence", what, math.sqrt(long_run))


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


def _drift(looked: list[_Looked]) -> Iterator[NoiseFinding]:
    """A mean that has moved: the arms' e-processes, of which the mean is one as well."""
    if not looked:
        return
    changes = [_change(one) for one in looked]
    top = max(log for log, _, _ in changes)
    evidence = top + math.log(sum(math.exp(log - top) for log, _, _ in changes) / len(changes))
    if evidence < -math.log(EACH):
        return
    (_, at, shift), one = max(zip(changes, looked, strict=True), key=lambda pair: pair[0][0])
    yield one.finding(
        "drift",
        f"the mean of {one.name!r} has changed: from about its measurement {at} on, values are {shift:+.3g} "
        f"({shift / one.scale:+.2f} noise scales) from those before",
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


def _wandering(looked: list[_Looked], before: list[NoiseFinding]) -> Iterator[NoiseFinding]:
    """Levels that wander, if nothing that looks like it was found."""
    if not looked or before:
        return
    found = wander([(one.record, one.scale) for one in looked])
    if found.level < WANDERING:
        far = found.step * math.sqrt(found.n)
        whose = f"the level of {looked[0].name!r} wanders" if len(looked) == 1 else "levels of arms wander"
        what = (
            f"{whose}: partial sums are as far from straight lines as if a mean moved by about {far:.2g} "
            f"noise scales, up and down, over {how_many(found.n, 'measurement')}"
        )
        yield _of_all(looked, "drift", what, math.sqrt(1.0 + far**2))


def _withdrawn(problem: AnyProblem, record: NoiseRecord, of: Withdrawals) -> Iterator[NoiseFinding]:
    """Arms whose tokens are given back far more often than those of others, or one token again and again.

    Of plays the second alone can be seen: readings are counted by arm, whichever play has given them.
    """
    firsts = (problem.readings_of(probe)[0] for probe in range(problem.n_probes))
    all_counts, all_withdrawn = sum(record.arms[first].count for first in firsts), sum(of.counts)
    for arm, n in enumerate(of.counts):
        first = problem.readings_of(arm)[0]
        told = record.arms[first].count
        if not n:
            continue
        from scipy.special import bdtrc

        share = (told + n) / (all_counts + all_withdrawn)
        uneven = not problem.plays and float(bdtrc(n - 1, all_withdrawn, share)) < EACH / problem.n_probes
        name = problem.probe_names[arm]
        if uneven or of.longest[arm] >= LONGEST_RUN:
            often = f", one of them {of.longest[arm]} times" if of.longest[arm] >= LONGEST_RUN else ""
            others = f" (of all {problem.probe_word}s {all_withdrawn})" if uneven else ""
            what = f"{how_many(n, 'token')} of {name!r} were given back unmeasured{others}{often}"
            assert problem.noise_scale is not None
            scale = float(problem.noise_scale[first])
            yield NoiseFinding(arm, name, told, scale, scale, "withdrawals", what)


def _of_all(looked: list[_Looked], kind: str, what: str, times: float) -> NoiseFinding:
    scale = max(one.scale for one in looked)
    return NoiseFinding(None, None, sum(one.record.count for one in looked), times * scale, scale, kind, what)


def could_have_seen(problem: AnyProblem, record: NoiseRecord) -> str:
    """What the check would have found in nine of ten sessions with as many measurements, in a sentence.

    Nothing is said of a record that is not whole.
    """
    if problem.noise == BOUNDED_VARIANCE or not problem.knows_noise:
        return ""
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
