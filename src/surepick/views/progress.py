"""How sure the session is, how it got there, and how many measurements are still to come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.estimates import EIGHT_OF_TEN, in_errors, quantile
from surepick.core.evidence import Evidence
from surepick.core.run import Standing
from surepick.core.wording import plural
from surepick.views.gaps import Weight, exp
from surepick.views.look import Look
from surepick.views.text import rounded

N_WORLDS = 48  # drawn from what the measurements leave open
ROUND_CONFIDENCES = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 0.999999)
ONE_LEAD = 2.0  # see `_slower`: 3 nats from a purse of .3 of the cash, and 1.5 for a gap that is not known
MOST_LEADS = 64  # plans that BetGapE bets for all at once, with epsilon
LEAST_SHARE = 1e-3  # of an equal share, for arms that are hardly measured any more


@dataclass(frozen=True)
class Point:
    """Where the session stood when the policy had seen this many measurements.

    `confidence` is 1 - risk where the policy proves a risk at every moment; `toward` is the share of the
    evidence that is needed to stop, on the scale of logarithms.
    """

    n_measurements: int
    n_rounds: int
    lead: int | None
    lead_name: str | None
    gap: float | None
    radius: float | None
    risk: float | None
    confidence: float | None
    times: float | None
    toward: float | None


@dataclass(frozen=True)
class Forecast:
    """How many more measurements the policy will want: the middle of many worlds that fit the measurements.

    Eight of ten of these worlds lie between `low` and `high`. It is a guess; nothing is decided by it. None
    stands for "no end in sight": plans are too close to a tie.
    """

    low: float | None
    middle: float | None
    high: float | None
    cost: float | None  # of the middle
    explanation: str
    chances: tuple[tuple[int, float], ...] = ()  # (n, the share of worlds in which n more are enough)


@dataclass(frozen=True)
class Progress:
    """Confidence along the way and at the end, and what is still to come."""

    delta: float
    needed: float  # evidence, as "times more likely"
    proved: bool
    budget: int | None
    points: tuple[Point, ...]  # the last one is now
    forecast: Forecast | None  # None: it has ended, or nothing can be said yet

    @property
    def now(self) -> Point:
        """The last point."""
        return self.points[-1]


def confidence_ticks(view: Progress, *, closest: float = 0.07) -> list[tuple[float, str]]:
    """Where on the way to enough evidence the round confidences are; shares where nothing is proved.

    No two are closer than `closest`, a share of the way.
    """
    if not view.proved:
        return [(share / 4, f"{25 * share}%") for share in range(5)]
    full = math.log(view.needed)
    kept: list[tuple[float, str]] = []
    for level in ROUND_CONFIDENCES:
        at = -math.log1p(-level) / full
        if at <= 1.02 and (not kept or at - kept[-1][0] > closest):
            kept.append((at, f"{100 * level:g}%"))
    return kept


def progress(look: Look) -> Progress:
    """Confidence after the rounds that the session remembers, and the measurements that are still to come.

    >>> import surepick as sp
    >>> from surepick.views import look
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.BetGapE())
    >>> for value in (3.0, 1.0):
    ...     _ = session.tell(session.ask()[0], value)
    >>> seen = progress(look(session))
    >>> seen.now.lead_name, seen.now.confidence, seen.now.n_measurements
    ('road', 0.0, 2)
    """
    earlier = (sample for sample in look.samples if sample.n_rounds < look.n_rounds)
    points = [_point(look, sample.n_rounds, sample.standing, sample.evidence) for sample in earlier]
    points.append(_point(look, look.n_rounds, look.standing, look.evidence))
    weight = look.weigh()
    needed = math.log(1 / look.delta) if weight is None else weight.needed
    return Progress(
        delta=look.delta,
        needed=exp(needed),
        proved=weight is not None and weight.proved,
        budget=look.budget,
        points=tuple(points),
        forecast=forecast(look, weight),
    )


def _point(look: Look, n_rounds: int, standing: Standing, evidence: Evidence) -> Point:
    weight = look.weigh(standing, evidence)
    return Point(
        n_measurements=evidence.n_measurements,
        n_rounds=n_rounds,
        lead=standing.lead if isinstance(standing.lead, int) else None,
        lead_name=look.name_of(standing.lead),
        gap=standing.gap,
        radius=standing.radius,
        risk=standing.risk,
        confidence=None if standing.risk is None else 1.0 - standing.risk,
        times=None if weight is None else exp(weight.log_evidence),
        toward=None if weight is None else weight.toward,
    )


def forecast(look: Look, weight: Weight | None) -> Forecast | None:
    """What is still to come if the arms go on being measured about as of late.

    For each of many worlds drawn from the estimates and their errors: the evidence against every rival of
    that world's best plan grows by gap^2 / (2 spread) with each measurement; the last rival decides.
    """
    if look.status is not None or look.gaps is None or weight is None:
        return None
    if not np.isfinite(look.gaps.error).all():
        return None
    price = look.cost / look.n_used if look.n_used else 1.0
    return over_worlds(_remaining(look, weight.needed), price, _steps(look))


def _steps(look: Look) -> list[int]:
    """How many more measurements the chance to be sure is said for: round numbers, and what is left."""
    about = 10 ** math.floor(math.log10(max(look.n_used, 10)))
    first = max(k * about for k in (1, 2, 5) if k * about <= max(look.n_used, 10))
    if look.budget is None:
        return [first, 5 * first]
    left = max(look.budget - look.n_used, 0)
    return [*(n for n in (first, 5 * first) if n < left), left]


def over_worlds(left: FloatArray, price: float, steps: Sequence[int] = ()) -> Forecast:
    """The forecast from the measurements that are left in each world, at a price for each of them."""
    chances = tuple((n, float((left <= n).mean())) for n in steps)
    ends = (quantile(left, share) for share in EIGHT_OF_TEN)
    low, middle, high = (end if math.isfinite(end) else None for end in ends)
    cost = None if middle is None else middle * price
    return Forecast(low, middle, high, cost, _explain(middle, chances), chances)


def _remaining(look: Look, needed: float) -> FloatArray:
    """The measurements that are still needed in each world; infinite where plans tie."""
    assert isinstance(look.lead, int)
    rng = np.random.default_rng(look.n_used)  # the same look gives the same forecast
    values = look.values(look.draw_means(N_WORLDS, rng))  # (N_WORLDS, n_plans)
    shares = _recent_shares(look)  # of one measurement in all
    best = values.argmax(axis=1)
    left = np.empty(N_WORLDS)
    for plan in np.unique(best).tolist():
        here = best == plan
        left[here] = _remaining_for(look, plan, values[here], shares, needed)
    if look.epsilon > 0:  # the lead will do as well, where it is close enough to that world's best plan
        left = np.minimum(left, _remaining_for(look, look.lead, values, shares, needed))
    return left


def _remaining_for(
    look: Look, plan: int, values: FloatArray, shares: FloatArray, needed: float
) -> FloatArray:
    """The same if this plan is to be the answer; infinite where it may not be."""
    unit_error = look.errors_after(plan, shares)
    missing = _slower(look) * np.maximum(needed - _known(look, plan), 0.0)
    missing[plan] = 0.0
    gap = np.maximum(values[:, [plan]] - values + look.epsilon, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(missing > 0, 2 * missing * unit_error**2 / gap**2, 0.0)
    return np.asarray(np.nan_to_num(left, nan=0.0, posinf=np.inf).max(axis=1))


def _slower(look: Look) -> float:
    """How many times the missing evidence has to be won.

    With epsilon and many plans, or probes, BetGapE bets for one lead at a time, with a third of its cash.
    """
    if look.log_evidence is None or look.epsilon == 0:
        return 1.0
    one_lead = look.problem.probes is not None or len(look.log_evidence) > MOST_LEADS
    return ONE_LEAD if one_lead else 1.0


def _known(look: Look, plan: int) -> FloatArray:
    """The log of the evidence that there is against each plan as a rival of this one.

    What is proved, where the policy says it; against the lead itself, and with epsilon as rivals of another
    plan than the lead, that is nothing: measurements have been made, and no bet was won by them.
    """
    proved = look.log_evidence
    if proved is None:
        gap, error = look.comparing(plan)
        return np.asarray(in_errors(gap + look.epsilon, error).clip(0.0) ** 2 / 2)
    lead = look.lead
    assert isinstance(lead, int)
    if plan == lead:
        return proved
    rivals = np.zeros(len(proved)) if look.epsilon > 0 else proved.copy()
    rivals[lead] = 0.0
    return rivals


def _recent_shares(look: Look) -> FloatArray:
    """How the second half of the measurements was spread over arms or probes, and half of it as it should be.

    A policy that has neglected an arm turns to it when a rival that needs it is the last one left.
    """
    half = [sample for sample in look.samples if 2 * sample.n_measurements <= look.n_used]
    before = half[-1].evidence.counts if half else np.zeros(len(look.problem.counted_names))
    recent = (look.evidence.counts - before).astype(float)
    shares = recent / max(recent.sum(), 1.0)
    if look.best_shares is not None:
        shares = (shares + look.best_shares) / 2
    return np.asarray(np.maximum(shares, LEAST_SHARE / len(look.problem.counted_names)))


def _explain(middle: float | None, chances: Sequence[tuple[int, float]]) -> str:
    """The chance to be sure soon says more than a range, which spans a factor of a hundred."""
    soon = " and ".join(f"{chance:.0%} within {n:,} more" for n, chance in chances)
    said = f"the chance to be sure is {soon}" if soon else ""
    if middle is None:
        tie = "no end in sight: the best plans are too close to a tie"
        return f"{tie}; {said}" if any(chance for _, chance in chances) else tie
    about = f"about {rounded(middle)} more {plural(middle, 'measurement')}"
    return f"{about}; {said}" if said else about
