"""Rehearsals: a choice tried out by simulation in worlds drawn from where the means may lie."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from surepick.core.arrays import FloatArray, Numbers, aligned
from surepick.core.estimates import SAME, quantile
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy, epsilon_of
from surepick.core.polytope import Polytope
from surepick.core.wording import how_many
from surepick.errors import ParameterError
from surepick.limits.limit import limit
from surepick.planning.forecast import UNLISTED_TOLERANCE
from surepick.policies import Pick, describe
from surepick.problems.numbers import half_widths
from surepick.simulation.environments import Gaussian
from surepick.simulation.outcome import Outcome
from surepick.simulation.simulate import simulate

LIMIT_TOLERANCE = 1e-2  # worlds differ by far more

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """How one choice did: the measurements it took in each world, infinite where it was cut off."""

    policy: Policy
    measurements: FloatArray  # (n_worlds,)
    price: float  # their cost in the median world, infinite when that was cut off
    block: float  # measurements a round asks for, in the middle of a run
    arm_shares: FloatArray = field(repr=False)  # (n_arms,)

    def quantile(self, q: float) -> float:
        """The measurements that are enough in a share q of the worlds; infinite when they are not.

        >>> from surepick.policies import BetGapE
        >>> Rehearsal(BetGapE(), np.array([10.0, 20.0, np.inf]), 1.0, 1.0, np.ones(1)).quantile(0.5)
        20.0
        """
        return quantile(self.measurements, q)

    def times(self, other: Rehearsal) -> float:
        """How many times the measurements of the other one it took: the geometric mean over the worlds."""
        both = np.isfinite(self.measurements) & np.isfinite(other.measurements)
        if not both.any():
            return math.inf
        return float(np.exp(np.mean(np.log(self.measurements[both] / other.measurements[both]))))

    @property
    def label(self) -> str:
        """The policy, its delta and its epsilon in one line."""
        return f"{describe(self.policy)}, delta {self.policy.delta:g}, epsilon {epsilon_of(self.policy):g}"


@dataclass(frozen=True)
class PickRehearsal:
    """What the best guess after a budget is worth, by `Pick` in worlds drawn from where the means may lie."""

    budget: int
    worlds: int
    wrong: float  # the share of worlds in which the plan that it names is not the best
    expected_loss: float  # what that plan lacks, on average over the worlds

    def sentence(self, unit: str | None) -> str:
        """For people.

        >>> PickRehearsal(200, 20, 0.15, 0.3).sentence("minutes").partition(": ")[2]
        'not the best plan in 15% of 20 worlds, and 0.3 minutes worse than the best on average'
        """
        lost = f"{self.expected_loss:.3g}" + (f" {unit}" if unit else "")
        named = f"the best guess after {how_many(self.budget, 'measurement')}, with Pick and without a proof"
        worse = f"{lost} worse than the best on average"
        return f"{named}: not the best plan in {self.wrong:.0%} of {self.worlds} worlds, and {worse}"


def rehearse_pick(stage: Stage) -> PickRehearsal:
    """What `Pick` names at the end of the stage's budget, and how much that loses."""
    problem, losses = stage.problem, []
    least = problem.relevant.sum()
    if not problem.is_listed or problem.probes is not None or stage.budget < least:
        raise ParameterError(
            f"what a budget buys is rehearsed on listed plans without probes, with at least {least} "
            f"measurements here, one of each arm that matters; got {stage.budget}",
            field="budget",
        )
    for w, means in enumerate(stage.worlds):
        truth = Gaussian(means, stage.scale)
        told = problem.with_noise(problem.noise_scale if problem.noise_scale is not None else truth.scale)
        lead = simulate(told, Pick(), truth, seed=stage.seed + w, budget=stage.budget).lead
        values = problem.sign * problem.values(means)
        assert isinstance(lead, int)
        losses.append(float(values.max() - values[lead]))
    lost = np.array(losses)
    wrong = float((lost > SAME * np.abs(lost).max(initial=1.0)).mean())
    return PickRehearsal(stage.budget, len(lost), wrong, float(lost.mean()))


class Stage:
    """The worlds in which choices are tried out, and the rehearsals done so far, which `rehearse` adds to."""

    def __init__(
        self,
        problem: AnyProblem,
        guess: Numbers,
        spread: Numbers,
        budget: int,
        noise: float | None,
        n_worlds: int,
        seed: int,
        progress: Progress | None,
    ) -> None:
        self.problem, self.budget, self.seed, self.progress = problem, budget, seed, progress
        self.scale, about_noise = _noise(problem, noise)
        centre, width, about_means = _prior(problem, guess, spread)
        rng = np.random.default_rng(seed)
        self.worlds = [centre + width * rng.uniform(-1.0, 1.0, len(centre)) for _ in range(n_worlds)]
        cut = f"one is cut off at {how_many(budget, 'measurement')}"
        self.assumptions = (about_means, about_noise, f"{n_worlds} rehearsals of each choice; {cut}")
        self.done: dict[Policy, Rehearsal] = {}

    def rehearse(self, policy: Policy) -> Rehearsal:
        """The policy in every world; a second time it costs nothing."""
        if policy not in self.done:
            self.done[policy] = self._rehearse(policy)
        return self.done[policy]

    def _rehearse(self, policy: Policy) -> Rehearsal:
        # rehearsed noise is Gaussian: bounds would refuse it, and have given the noise scale
        told, outcomes = self.problem.with_noise(self.problem.noise_scale), list[Outcome]()
        for w, means in enumerate(self.worlds):
            truth = Gaussian(means) if self.problem.probes is not None else Gaussian(means, self.scale)
            outcomes.append(simulate(told, policy, truth, seed=self.seed + w, budget=self.budget))
            if self.progress is not None:
                self.progress(w + 1, len(self.worlds))
        sure = np.array([outcome.plan is not None for outcome in outcomes])
        measured = np.array([outcome.n_measurements for outcome in outcomes], dtype=float)
        costs = np.array([outcome.cost for outcome in outcomes])
        counts = sum((outcome.counts for outcome in outcomes), np.zeros(len(self.problem.counted_names)))
        blocks = [one.n_measurements / max(one.n_rounds, 1) for one in outcomes]
        return Rehearsal(
            policy,
            np.where(sure, measured, np.inf),
            quantile(np.where(sure, costs, np.inf), 0.5),
            float(np.median(blocks)),
            counts / max(float(counts.sum()), 1.0),
        )

    def limit(self, delta: float, epsilon: float) -> float | None:
        """Return the median over the worlds of what any method needs; infinite where plans tie.

        Within epsilon it is known for a polytope alone; None for others.
        """
        if epsilon and not isinstance(self.problem, Polytope):
            return None
        known = self.problem.with_noise(self.scale)
        tolerance = LIMIT_TOLERANCE if known.is_listed else UNLISTED_TOLERANCE
        found = (
            limit(known, means, delta=delta, tolerance=tolerance, epsilon=epsilon) for means in self.worlds
        )
        return float(np.median([one.measurements for one in found]))

    def stake(self) -> tuple[float, str]:
        """What choosing well is worth, in the median world, and how that was measured."""
        problem = self.problem
        if not problem.is_listed:
            ends = (
                [problem.best_plan(sign * means) @ means for sign in (1.0, -1.0)] for means in self.worlds
            )
            return float(np.median([abs(one - other) / 2 for one, other in ends])), (
                "that are half of the difference between the worst plan and the best"
            )
        values = (np.asarray(problem.oriented @ means) for means in self.worlds)
        return float(np.median([v.max() - v.mean() for v in values])), (
            "between the average plan and the best"
        )


def _noise(problem: AnyProblem, noise: float | None) -> tuple[FloatArray, str]:
    """The noise scale of the rehearsals, and the sentence about it."""
    if noise is not None and not (noise > 0 and math.isfinite(noise)):
        raise ParameterError(
            f"noise is a rough standard deviation of one measurement, got {noise!r}", field="noise"
        )
    if problem.noise_scale is not None:
        return problem.noise_scale, "the noise is Gaussian, of the scale that the problem states"
    if noise is None:
        raise ParameterError(
            "the problem does not know its noise scale, so a rehearsal needs a rough one: pass noise=... "
            "(on the command line --noise)",
            field="noise",
        )
    return np.full(problem.n_arms, noise), (
        f"the noise is Gaussian, in truth of scale {noise:g}; the session does not know that and learns it"
    )


def _prior(problem: AnyProblem, guess: Numbers, spread: Numbers) -> tuple[FloatArray, FloatArray, str]:
    """Where the means may lie: centre and half width, and the sentence about it."""
    centre = problem.as_means(guess)
    width = half_widths(aligned("spread", spread, problem.arm_names), centre.shape)
    if not width.any():
        return centre, width, "the means are exactly the guess (no spread was given)"
    low, high = float(width.min()), float(width.max())
    how = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return centre, width, f"the means lie within {how} of the guess, each value equally likely"
