"""The run that all sequential gap policies share: the compiled race, one measurement at a time or many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.kernels.feed import Feed, unchanged
from surepick.policies.gap import radius as radii
from surepick.policies.gap.state import (
    NEGLIGIBLE,
    Race,
    Settings,
    gathered_rounding,
    make_plans,
    make_race,
    race_state,
    restore_race,
)


@dataclass(frozen=True)
class GapRule:
    """What tells one gap policy from another: when to stop, and which arm to measure."""

    delta: float
    epsilon: float
    radius: radii.Radius
    arm_rule: str
    every_arm_first: bool  # also the arms on which all plans agree, as the paper does
    norm_bound: float = 0.0  # on the true means in units of the noise scales, for the ridge radius


class RaceRun:
    """A run whose state is a race: what was measured, and whether it has begun."""

    _race: Race

    @property
    def started(self) -> bool:
        """Whether the first measurement of every arm is in."""
        return self._race.now.measured > 0

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        return Evidence(self._race.arms["count"].copy(), self._race.arms["total"].copy())


class GapRun(RaceRun):
    """A run of a gap policy: each arm once, then lead, rival and arm by `rounds`.

    The state is mutable and belongs to whoever started the run. `drive` is the compiled twin of
    decide-measure-absorb; both end in the same machine code and take the same decisions.
    """

    def __init__(self, problem: Problem, rule: GapRule) -> None:
        from surepick.policies.gap import rounds  # imports Numba, which takes half a second

        self._advance = rounds.advance
        self._problem, self._rule = problem, rule
        every = np.ones(problem.n_arms, dtype=bool) if rule.every_arm_first else problem.relevant
        settings = Settings(rule.radius.code, rule.arm_rule, rule.delta, rule.epsilon, rule.norm_bound)
        base = radii.support_base(rule.radius, problem.n_plans, _largest_support(problem), rule.delta)
        self._race = make_race(problem, settings, np.flatnonzero(every).astype(np.int64), base)
        self._plans = make_plans(problem)
        self._as_is = unchanged(problem.n_arms)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Every arm once at first; then the one arm that the compiled loop chose, or the stop."""
        now = self._race.now
        if now.stopped:
            return Stop(int(now.lead))
        counts = np.zeros(self._problem.n_arms, dtype=np.int64)
        counts[now.arm if self.started else self._race.used] = 1
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in measurements; one measurement costs one pass over the plans."""
        arm = self._race.now.arm
        if self.started and counts[arm] == 1 and counts.sum() == 1:
            self.drive(self._as_is, np.array([sums[arm]], dtype=float))
            return
        self.recall(counts, sums)
        if not self.started:
            raise ParameterError("the first answer must hold a measurement of every arm that was asked for")

    @property
    def recalls_unasked(self) -> bool:
        """Every radius holds for all counts at once, however the arms were chosen: see docs/guarantees.md."""
        return True

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Pool any measurements with the others, and decide if every arm has one."""
        arms, now = self._race.arms, self._race.now
        arms["count"] += counts
        arms["total"] += sums
        if arms["count"][self._race.used].all():
            now.measured = arms["count"].sum()
            now.stopped = False  # a stop is decided anew, with all that is known
            self._advance(*self._plans, self._race, self._as_is, np.zeros(0), True)

    def drive(self, feed: Feed, draws: FloatArray) -> int:
        """Measure and decide in compiled code, one draw a round; how many draws were used."""
        return int(self._advance(*self._plans, self._race, feed, draws, False))

    def standing(self) -> Standing:
        """The lead, the rival, the estimated gap and its radius; for the mixture radii also the risk."""
        race, now = self._race, self._race.now
        if not self.started:
            return Standing()
        lead, rival = int(now.lead), int(now.rival)
        gap = float(race.value[lead] - race.value[rival])
        radius = float(now.score - race.value[rival])
        remaining = self._remaining(lead) if self._rule.radius.sound else None
        good = remaining if remaining is not None and len(remaining) == 1 else ()
        return Standing(lead, rival, gap, radius, self._risk(lead), remaining, good)

    def _remaining(self, lead: int) -> tuple[int, ...]:
        """The plans whose gap to the lead is not above its radius: sound radii hold for all pairs at once."""
        race, now, n = self._race, self._race.now, self._problem.n_plans
        spread = race.spread[:n] + now.off_spread
        if race.rule.radius == radii.RECTANGLE:
            radius = math.sqrt(2.0 * now.level) * spread
        else:
            radius = np.sqrt(np.maximum(2.0 * spread * (race.pair[:n] + now.off_pair + now.level), 0.0))
        gathered = gathered_rounding(race)
        radius = radius + np.where(gathered > NEGLIGIBLE * radius, gathered, 0.0)
        stays = race.value[:n] + radius - race.value[lead] > self._rule.epsilon
        stays[lead] = True
        return tuple(np.flatnonzero(stays).tolist())

    def state(self) -> dict[str, Any]:
        """The race."""
        return race_state(self._race)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with this race."""
        restore_race(self._race, state)

    def _risk(self, lead: int) -> float | None:
        """The smallest delta at which the rule would stop now: valid at any time, for the mixture radii."""
        evidence = self.log_evidence()
        if evidence is None:
            return None
        evidence[lead] = np.inf
        return float(min(1.0, np.exp(-evidence.min())))

    def log_evidence(self) -> FloatArray | None:
        """log(1/delta) at the smallest delta that would rule out each plan now, for the mixture radii."""
        race, now, n_plans = self._race, self._race.now, self._problem.n_plans
        if not (self.started and race.rule.mixture):
            return None
        spread = race.spread[:n_plans] + now.off_spread
        threshold = race.pair[:n_plans] + now.off_pair + now.level
        gathered = gathered_rounding(race)
        gap = race.value[now.lead] - race.value[:n_plans] + self._rule.epsilon
        gap = np.maximum(gap - np.where(gathered > NEGLIGIBLE * gap, gathered, 0.0), 0.0)
        known = np.divide(gap**2, 2.0 * spread, out=np.zeros(n_plans), where=spread > 0)
        return np.asarray(known - threshold - np.log(self._rule.delta))


def _largest_support(problem: Problem) -> int:
    """An upper bound on how many arms two plans can differ in."""
    if isinstance(problem.plans, np.ndarray):
        return problem.n_arms
    return min(problem.n_arms, 2 * int(np.diff(problem.plans.indptr).max()))
