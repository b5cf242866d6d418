"""Forecasts: how many measurements a decision may take, and what would save some, before any is made.

The means are not known, but where they are thought to lie is. The decision is rehearsed by simulation in
worlds drawn from there; the forecast is what those rehearsals took. Nothing of it is evidence.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import EIGHT_OF_TEN, quantile
from surepick.core.given.numbers import Numbers, PerArm, half_widths, per_arm, scale_and_bounds
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy
from surepick.core.prior_data import PriorData
from surepick.errors import ParameterError, hinted
from surepick.policies import BetGapE
from surepick.simulation.environments import Environment, Gaussian, UniformNoise
from surepick.simulation.simulate import simulate

MOST = 20_000  # measurements of a rehearsal, unless a budget is given
EPSILONS = (0.02, 0.05, 0.1, 0.2)  # of what choosing well is worth: epsilons to offer
WORTH_IT = 0.8  # an epsilon is offered if it takes at most this share of the measurements

Progress = Callable[[int, int], object]


@dataclass(frozen=True, eq=False)
class Forecast:
    """How many measurements a decision took in rehearsals; infinite where one was cut off.

    `low` and `high` hold 8 of 10 rehearsals, `confident` is the share that ended within the budget, and
    `shares` are those of the measurements by arm (probe).
    """

    median: float
    low: float
    high: float
    confident: float
    shares: Mapping[str, float]
    measurements: FloatArray = field(repr=False)  # (n_rehearsals,)

    def __repr__(self) -> str:
        return f"Forecast(about {self.median:,.0f} measurements, {self.low:,.0f} to {self.high:,.0f})"


@dataclass(frozen=True)
class Choice:
    """A change of the question or of what is stated, and about how many measurements it would take then."""

    setting: str  # "limits", "noise", "epsilon" or "guess"
    value: float | None  # None: left out; of limits how far they are apart
    median: float


@dataclass(frozen=True, eq=False)
class Rehearsals:
    """Worlds to rehearse a decision in: the same worlds and noise for every policy and problem."""

    worlds: list[FloatArray]
    noise: FloatArray  # (n_arms,) that measurements are drawn with
    budget: int
    seed: int = 0
    progress: Progress | None = None

    @classmethod
    def around(
        cls,
        problem: AnyProblem,
        guess: Numbers,
        spread: Numbers = 0.0,
        *,
        noise: PerArm | None = None,
        budget: int | None = None,
        rehearsals: int = 20,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Rehearsals:
        """Draw worlds within `spread` of the guess, each value equally likely; see `forecast`.

        `progress` is called with the rehearsals that are done, and all, after each one.
        """
        for name, value in (("rehearsals", rehearsals), ("budget", budget)):
            if value is not None and value < 1:
                raise ParameterError(f"{name} is 1 or more, got {value!r}", field=name)
        centre = problem.as_means(guess)
        width = half_widths(spread, problem.arm_names)
        rng = np.random.default_rng(seed)
        worlds = [centre + width * rng.uniform(-1.0, 1.0, len(centre)) for _ in range(rehearsals)]
        if problem.mean_bounds is not None:  # known bounds of the means hold in every world
            worlds = [np.clip(means, *problem.mean_bounds.T) for means in worlds]
        scale = problem.noise_scale if noise is None else per_arm("noise", noise, problem.arm_names)
        if scale is None:
            raise ParameterError(
                "the noise of the problem is unknown, so that a forecast needs a rough one: pass noise=",
                field="noise",
            )
        return cls(worlds, scale, budget or MOST, seed, progress)

    def forecast(self, problem: AnyProblem, policy: Policy, prior: PriorData | None = None) -> Forecast:
        """Simulate the policy on this problem in every world; prior data guide it as in a session."""
        # probes with limits are rehearsed with normal noise, which those limits would refuse
        rehearsed = problem if problem.probes is None else problem.with_noise(problem.noise_scale)
        outcomes = []
        for w, means in enumerate(self.worlds):
            truth, seed = self._truth(problem, means), self.seed + w
            outcomes.append(
                simulate(rehearsed, truth, policy=policy, prior=prior, seed=seed, budget=self.budget)
            )
            if self.progress is not None:
                self.progress(w + 1, len(self.worlds))
        ended = np.array([one.n_measured if one.plan is not None else math.inf for one in outcomes])
        counts = sum((one.counts for one in outcomes), np.zeros(len(problem.counted_names)))
        shares = (counts / max(float(counts.sum()), 1.0)).tolist()
        low, median, high = (quantile(ended, q) for q in EIGHT_OF_TEN)
        named = dict(zip(problem.counted_names, shares, strict=True))
        return Forecast(median, low, high, float(np.isfinite(ended).mean()), named, ended)

    def _truth(self, problem: AnyProblem, means: FloatArray) -> Environment:
        """Return one of the worlds as an environment whose values keep the limits of the arms."""
        if problem.probes is not None:
            return Gaussian(means)
        if problem.bounds is None:
            return Gaussian(means, self.noise)
        inside = np.clip(means, *problem.bounds.T)
        room = np.abs(problem.bounds.T - inside).min(axis=0)
        return UniformNoise(inside, np.minimum(math.sqrt(3.0) * self.noise, room))

    def stake(self, problem: AnyProblem) -> float:
        """Return the gain from choosing well in the median world: the best plan less the average one.

        If plans cannot be listed, it is half of the difference between the best and the worst.
        """
        if problem.is_listed:
            values = (np.asarray(problem.oriented @ means) for means in self.worlds)
            return float(np.median([own.max() - own.mean() for own in values]))
        ends = ([problem.best_plan(sign * means) @ means for sign in (1.0, -1.0)] for means in self.worlds)
        return float(np.median([abs(one - other) / 2 for one, other in ends]))

    def advise(
        self,
        problem: AnyProblem,
        policy: BetGapE,
        prior: PriorData | None = None,
        *,
        seconds: float = math.inf,
    ) -> tuple[Forecast, list[Choice]]:
        """Return the forecast, and what limits, a stated noise, another epsilon or no guess would take.

        No further choice is tried after `seconds`.

        >>> import surepick as sp
        >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1.0, goal="largest")
        >>> stage = Rehearsals.around(problem, [1.0, 0.8], 0.1, rehearsals=5)
        >>> found, choices = stage.advise(problem, sp.BetGapE())
        >>> [choice.setting for choice in choices], choices[0].median < found.median
        (['epsilon'], True)
        """
        until = time.monotonic() + seconds
        found = self.forecast(problem, policy, prior)
        others = self._others(problem, policy, prior, found)
        return found, list(itertools.takewhile(lambda _: time.monotonic() < until, others))

    def _others(
        self, problem: AnyProblem, policy: BetGapE, prior: PriorData | None, found: Forecast
    ) -> Iterator[Choice]:
        """Yield the other choices with what they would take; each is simulated when it is asked for."""
        if problem.noise_scale is None:
            if problem.is_listed:  # limits of each arm, as a person may state them
                low = np.min(self.worlds, axis=0) - 4 * self.noise
                high = np.max(self.worlds, axis=0) + 4 * self.noise
                limited = problem.with_noise(*scale_and_bounds(None, low, high, problem.arm_names))
                apart = _round_up(float(np.median(high - low)))
                yield Choice("limits", apart, self.forecast(limited, policy, prior).median)
            stated = self.forecast(problem.with_noise(self.noise), policy, prior).median
            yield Choice("noise", float(self.noise.max()), stated)
        if policy.epsilon:
            exact = self.forecast(problem, replace(policy, epsilon=0.0), prior)
            yield Choice("epsilon", 0.0, exact.median)
        worth = self.stake(problem)
        for near in [_round_up(share * worth) for share in EPSILONS] if worth > 0 else []:
            if near <= policy.epsilon:
                continue
            median = self.forecast(problem, replace(policy, epsilon=near), prior).median
            if median <= WORTH_IT * found.median and math.isfinite(median):
                yield Choice("epsilon", near, median)
                break
        if prior is not None:
            yield Choice("guess", None, self.forecast(problem, policy).median)


@hinted
def forecast(
    problem: AnyProblem,
    guess: Numbers | None = None,
    spread: Numbers | None = None,
    *,
    noise: PerArm | None = None,
    delta: float = 0.05,
    epsilon: float = 0.0,
    budget: int | None = None,
    rehearsals: int = 20,
    seed: int = 0,
    prior: PriorData | None = None,
) -> Forecast:
    """Forecast the measurements of a decision whose means lie within `spread` of the guess.

    - guess: the likely means, one per arm. Without it, guess and spread are those of the problem.
    - spread: how far the means may be from the guess, one number or one per arm; 0 without it.
    - noise: a rough standard deviation of one measurement, if the problem does not state it.
    - budget: the most measurements of a rehearsal; 20,000 without it.
    - rehearsals, seed: how many worlds are drawn, and from which seed.
    - prior: prior data that guide the decision.

    >>> import surepick as sp
    >>> found = forecast(sp.Problem([[1, 1, 0], [0, 1, 1]], noise=2.0, goal="largest"), [3.0, 1.0, 1.0], 0.5)
    >>> found.low <= found.median <= found.high, found.confident
    (True, 1.0)
    """
    if guess is None:
        if problem.guess is None:
            raise ParameterError(
                "a forecast needs a guess of the means; give it to the problem", field="guess"
            )
        guess = problem.guess
        if spread is None:
            spread = problem.spread
        if prior is None:
            prior = PriorData.of_problem(problem)
    stage = Rehearsals.around(
        problem,
        guess,
        0.0 if spread is None else spread,
        noise=noise,
        budget=budget,
        rehearsals=rehearsals,
        seed=seed,
    )
    return stage.forecast(problem, BetGapE(delta=delta, epsilon=epsilon), prior)


def _round_up(x: float) -> float:
    """Return the next number with one significant digit, for people to say.

    >>> _round_up(0.0213)
    0.03
    """
    unit = 10.0 ** math.floor(math.log10(x))
    return float(f"{math.ceil(x / unit - 1e-9) * unit:.1g}")
