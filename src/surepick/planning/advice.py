"""Advice: which policy, delta, epsilon and batch for the problem at hand, from rehearsals of it.

The means are not known before anything is measured, but where they may lie is. Worlds are drawn from there,
and the choices are tried out in each of them by simulation: what is recommended is what did well, with the
numbers. Nothing of this enters the evidence of a later session.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import Numbers
from surepick.core.estimates import EIGHT_OF_TEN
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy, check_delta, check_epsilon, epsilon_of
from surepick.core.wording import card, how_many, listing, note, plural
from surepick.errors import ParameterError
from surepick.planning.rehearsal import Progress, Rehearsal, Stage
from surepick.policies import BetGapE, CombGapE, describe

DELTAS = (0.1, 0.05, 0.01, 0.001)
USUAL_DELTA = 0.05
WORLDS, UNLISTED_WORLDS = 12, 5  # a rehearsal with an oracle takes seconds
EPSILON_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)  # of the stake
ENOUGH = 0.8  # of the worlds have to end within the budget
NEAR_LIMIT = 2.0  # times what any method needs: with that BetGapE is not compared with others
SURER_FACTOR = 2.0  # a smaller delta may cost this many times the usual one
LARGEST_BUDGET = 200_000  # of a rehearsal, where nobody says what can be afforded
BY_HAND = 1000  # a budget of this many measurements or fewer is work by hand


@dataclass(frozen=True, eq=False)
class Advice:
    """What to use, why, and what it will take.

    `policy` is ready to use. `batch` is how many measurements one worker does well to ask for at a time.
    `expected`, `low` and `high` are the median and the range of eight of ten worlds of the measurements to
    the end, infinite when so many were cut off at `budget`. `limit` is the median of what any method needs.
    """

    policy: Policy
    delta: float
    epsilon: float
    batch: int
    expected: float
    low: float
    high: float
    limit: float | None  # None where it is not known: within epsilon, but for a polytope
    budget: int
    reasons: dict[str, str]  # by what is recommended: policy, delta, epsilon, batch
    assumptions: tuple[str, ...]
    rehearsals: tuple[Rehearsal, ...]
    busiest: tuple[tuple[str, float], ...]  # arms by name, and their share of the measurements

    def __repr__(self) -> str:
        return f"Advice({self.explanation})"

    def _repr_html_(self) -> str:
        use = {
            "policy": describe(self.policy),
            "delta": f"{self.delta:g}",
            "epsilon": f"{self.epsilon:g}",
            "batch": str(self.batch),
        }
        rows = [[name, value, self.reasons.get(name, "")] for name, value in use.items()]
        expected = [("expect", self.expectation)]
        said = "; ".join(self.assumptions)
        return card("Advice", expected, listing(["", "use", "because"], rows), note(f"Assumed: {said}."))

    @property
    def explanation(self) -> str:
        """The advice in one sentence."""
        return (
            f"use {describe(self.policy)} with delta {self.delta:g} and epsilon {self.epsilon:g}, asking for "
            f"{self.batch} at a time; expect {self.expectation}"
        )

    @property
    def expectation(self) -> str:
        """How many measurements to expect, in words; a budget that is not enough is named once."""
        if not math.isfinite(self.expected):
            return f"more than {how_many(self.budget, 'measurement')} in most worlds"
        about = f"about {how_many(self.expected, 'measurement')}"
        if not math.isfinite(self.high):
            return f"{about}, and more than {self.budget:,} in some worlds"
        return f"{about}, {self.low:,.0f} to {self.high:,.0f} in eight of ten worlds"


def advise(
    problem: AnyProblem,
    guess: Numbers | None = None,
    spread: Numbers = 0.0,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    budget: int | None = None,
    workers: int = 1,
    noise: float | None = None,
    n_worlds: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Advice:
    """Recommend policy, delta, epsilon and batch for a problem whose means lie within `spread` of the guess.

    `guess`: what the means may be, one number per arm. Without one nobody can know what to expect: where you
    only know between which numbers they lie, give the middle for each arm and half of the width as spread.
    `spread`: how far off the guess may be, one number or one per arm; 0 unless given.
    `delta`, `epsilon`: kept if given, else recommended.
    `budget`: how many measurements can be afforded; rehearsals end there. Up to 1,000 are taken to be made by
    hand, and delta then stays at 0.05, as it does where no budget is given; rehearsals then end at 200,000.
    `workers`: how many measure at the same time; 1 unless given. It bears on the batch alone.
    `noise`: a rough standard deviation of one measurement, for a problem that does not know its own.
    `n_worlds`: rehearsals of each choice; 12 unless given, and 5 where plans are not listed.
    `seed`: of the worlds and their measurements; 0 unless given.
    `progress`: called with the rehearsals done and their number.

    Where plans are not listed the settings of BetGapE are tried out: no other policy with a proof needs no
    list.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 1, 0], [0, 1, 1]], noise=2.0, goal="largest")
    >>> found = advise(problem, [3.0, 1.0, 1.0], 0.5)
    >>> found.policy.name, found.epsilon, bool(found.limit < found.expected < 1000)
    ('BetGapE', 0.0, True)
    """
    if not isinstance(problem, AnyProblem):  # anything may have been given
        raise ParameterError(
            f"advise needs a Problem or an OracleProblem, got {type(problem).__name__}", field="problem"
        )
    if guess is None:
        raise ParameterError(
            "without a guess of the means advise cannot know how hard the decision is: give guess, one "
            "number per arm, and spread, how far off it may be",
            field="guess",
        )
    if n_worlds is None:
        n_worlds = WORLDS if problem.is_listed else UNLISTED_WORLDS
    most, budget = budget, LARGEST_BUDGET if budget is None else budget
    _check(delta, epsilon, budget=budget, workers=workers, n_worlds=n_worlds)
    stage = Stage(problem, guess, spread, budget, noise, n_worlds, seed, progress)
    start, fixed = delta or USUAL_DELTA, epsilon or 0.0
    first = [stage.rehearse(BetGapE(delta=start, epsilon=fixed))]
    if _may_be_beaten(first[0], stage):
        first.append(stage.rehearse(CombGapE(delta=start, epsilon=fixed)))
    chosen = min(first, key=lambda one: one.price)  # of equals the first
    reasons = {"policy": _why_policy(chosen, first, stage)}
    chosen, reasons["epsilon"] = _choose_epsilon(stage, chosen, epsilon)
    chosen, reasons["delta"] = _choose_delta(stage, chosen, delta, most)
    batch, reasons["batch"] = _choose_batch(chosen, workers)
    low, middle, high = map(chosen.quantile, EIGHT_OF_TEN)
    order = np.argsort(-chosen.arm_shares, kind="stable")[:3]
    return Advice(
        policy=chosen.policy,
        delta=chosen.policy.delta,
        epsilon=epsilon_of(chosen.policy),
        batch=batch,
        expected=middle,
        low=low,
        high=high,
        limit=stage.limit(chosen.policy.delta, epsilon_of(chosen.policy)),
        budget=budget,
        reasons=reasons,
        assumptions=stage.assumptions,
        rehearsals=tuple(stage.done.values()),
        busiest=tuple((problem.counted_names[s], float(chosen.arm_shares[s])) for s in order),
    )


def _check(delta: float | None, epsilon: float | None, **counts: int) -> None:
    if delta is not None:
        check_delta(delta)
    if epsilon is not None:
        check_epsilon(epsilon)
    for name, value in counts.items():
        if value < 1:
            raise ParameterError(f"{name} must be 1 or more, got {value!r}", field=name)


def _may_be_beaten(usual: Rehearsal, stage: Stage) -> bool:
    """Whether CombGapE, the other policy with a proof, is worth a rehearsal, and the wait for its loops.

    Where BetGapE answers the exact question with at most NEAR_LIMIT times the limit, CombGapE took more in
    every family of the arena (benchmarks/results/arena.md).
    """
    listed = stage.problem.is_listed and stage.problem.probes is None
    if not listed or not isinstance(usual.policy, BetGapE):
        return False
    least = stage.limit(usual.policy.delta, epsilon_of(usual.policy))
    return least is None or usual.quantile(0.5) > NEAR_LIMIT * least


def _why_policy(chosen: Rehearsal, tried: Sequence[Rehearsal], stage: Stage) -> str:
    is_listed = stage.problem.is_listed
    priced = bool(np.ptp(stage.problem.costs) > 0)
    told = " and ".join(
        f"{describe(one.policy)} took {count(one.price, stage.budget)} "
        + ("in price" if priced else plural(one.price, "measurement"))
        for one in tried
    )
    if not math.isfinite(chosen.price):
        return (
            f"no proved policy ended in half of the worlds within {how_many(stage.budget, 'measurement')}; "
            + ("as a rule BetGapE needs the fewest" if is_listed else "without a list it is the only one")
        )
    if not is_listed:
        return (
            "of the policies whose promise is proved it alone needs no list of plans; in rehearsals (median "
            f"of the worlds) {told}"
        )
    alone = f", at most {NEAR_LIMIT:g} times what any method needs" if len(tried) == 1 else ""
    return f"its promise is proved, and in rehearsals (median of the worlds) {told}{alone}"


def _choose_epsilon(stage: Stage, exact: Rehearsal, given: float | None) -> tuple[Rehearsal, str]:
    if given is not None:
        return exact, "as you asked"
    within, share = f"ends within {how_many(stage.budget, 'measurement')}", _share(exact, stage.budget)
    if share >= ENOUGH:
        return exact, f"the exact question {within} in {share:.0%} of the worlds"
    stake, meaning = stage.stake()
    why = f"the exact question {within} in only {share:.0%} of the worlds, for near-ties"
    for step in EPSILON_STEPS if stake > 0 else ():
        epsilon = _round_up(step * stake)
        one = stage.rehearse(BetGapE(delta=exact.policy.delta, epsilon=epsilon))
        share = _share(one, stage.budget)
        if share >= ENOUGH:
            worth = f"{epsilon / stake:.0%} of the {stake:.3g} {meaning}"
            return one, f"{why}; a plan within {epsilon:g} of the best ({worth}) is found in {share:.0%}"
    return exact, f"{why}, and no epsilon that was tried helps: afford more, or measure with less noise"


def _choose_delta(
    stage: Stage, usual: Rehearsal, given: float | None, most: int | None
) -> tuple[Rehearsal, str]:
    """A delta below the usual one only where somebody says that many measurements can be afforded."""
    if given is not None:
        return usual, "as you asked"
    if most is None or most <= BY_HAND:
        unknown = f"; a smaller one is tried where a budget of more than {BY_HAND:,} is given"
        return usual, (
            f"one wrong answer in {1 / usual.policy.delta:.0f} is usual where measurements are made by hand; "
            f"a session can be made surer later, with `surepick extend --delta`{'' if most else unknown}"
        )
    best, prices = usual, list[str]()
    for delta in DELTAS:
        one = stage.rehearse(type(usual.policy)(delta=delta, epsilon=epsilon_of(usual.policy)))  # type: ignore[call-arg]
        prices.append(f"{one.times(usual):.2g}")
        fits = _share(one, stage.budget) >= min(ENOUGH, _share(usual, stage.budget))
        if fits and delta < best.policy.delta and one.times(usual) <= SURER_FACTOR:
            best = one
    return best, (
        f"the smallest of {', '.join(f'{delta:g}' for delta in DELTAS)} that takes at most {SURER_FACTOR:g} "
        f"times as much as {USUAL_DELTA:g}; they take {', '.join(prices)} times as much"
    )


def _choose_batch(chosen: Rehearsal, workers: int) -> tuple[int, str]:
    name, block = chosen.policy.name, max(1, round(chosen.block))
    if block == 1:
        return 1, f"{name} asks for one measurement at a time; further workers measure ahead of it"
    batch = max(1, math.ceil(block / workers))
    among = "" if workers == 1 else f", {batch} for each of {workers} workers"
    return batch, (
        f"a round of {name} asks for about {block} measurements, which may be made in any order and at the "
        f"same time{among}"
    )


def _share(one: Rehearsal, budget: int) -> float:
    """The share of the worlds in which the policy was sure within the budget."""
    return float(np.mean(one.measurements <= budget))


def _round_up(x: float) -> float:
    """The next number with one significant digit: people have to say it."""
    unit = 10.0 ** math.floor(math.log10(x))
    return float(f"{math.ceil(x / unit - 1e-9) * unit:.1g}")


def count(n: float, budget: int) -> str:
    """A number of measurements; infinite says no more than that the budget was not enough.

    >>> count(1234.0, 10), count(math.inf, 10)
    ('1,234', 'more than 10')
    """
    return f"{n:,.0f}" if math.isfinite(n) else f"more than {budget:,}"
