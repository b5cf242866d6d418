"""What GenTS-Explore and TS-Explore share: every arm once, then one arm a round from M random draws.

`WinnerRun` is for listed plans: `winner` draws the winner of the M draws with exactly its law, in
compiled code. `OracleRun` makes the M draws and asks the oracle about each: the only way when the plans
cannot be listed, and the papers' box to the letter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.plan_sets import plan_oracle
from surepick.core.policy import check_delta, known_noise_scale
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.core.run import Measure, Run, Standing, Stop, parts_of, standing_of
from surepick.errors import ParameterError, ProblemError
from surepick.kernels.records import arrays_of, refill
from surepick.policies.gap import radius as radii
from surepick.policies.gap.run import RaceRun
from surepick.policies.gap.state import Settings, make_plans, make_race, race_state, restore_race


@dataclass(frozen=True)
class DrawPolicy:
    """The settings of policies that draw, and that nothing is promised."""

    delta: float = 0.05
    q: float = 0.1
    draws: str = "winner"

    name: ClassVar[str]
    version: ClassVar[int] = 2
    randomized: ClassVar[bool] = True
    takes_oracle: ClassVar[bool] = True
    _arm_rule: ClassVar[str]  # "gap" or "naive", as in CombGapE

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if not 0 < self.q < 0.5:
            raise ParameterError(
                f"q must be between 0 and 0.5 (in the paper from delta to 0.1), got {self.q!r}"
            )
        if self.draws not in ("winner", "all"):
            raise ParameterError(f"draws must be 'winner' or 'all', got {self.draws!r}")

    @property
    def guarantee(self) -> str:
        """What is missing for a promise."""
        return Promise.none(
            "the published proof treats counts that the data chose as fixed; no excess of errors was seen"
        ).text

    def start(self, problem: Problem | OracleProblem) -> Run:
        """A fresh run: compiled for listed plans, one oracle call a draw otherwise."""
        rule = DrawRule(self.delta, self.q, self._arm_rule)
        if problem.is_listed and self.draws == "winner":
            return WinnerRun(problem, rule)
        return OracleRun(problem, rule)


@dataclass(frozen=True)
class DrawRule:
    """What tells one policy from another: how sure to be, how many draws, and which arm to measure."""

    delta: float
    q: float
    arm_rule: str  # "gap" or "naive", as in CombGapE

    @property
    def quantile(self) -> float:
        """phi(q), the upper q-quantile of the standard normal law."""
        return -NormalDist().inv_cdf(self.q)

    def log_factor(self, n_measured: int, log_plans: float) -> float:
        """L = log(12 K^2 t^2 / delta), t = measurements so far + 1."""
        return math.log(12 / self.delta) + 2 * log_plans + 2 * math.log(n_measured + 1)

    def n_draws(self, n_measured: int, log_plans: float) -> int:
        """M = ceil(L / q)."""
        return math.ceil(self.log_factor(n_measured, log_plans) / self.q)

    def widening(self, n_measured: int, log_plans: float) -> float:
        """C / R^2 = 4 L / phi(q)^2: how much wider than the estimate's own variance the draws are."""
        return 4 * self.log_factor(n_measured, log_plans) / self.quantile**2


class WinnerRun(RaceRun):
    """A run on listed plans. The state is mutable and belongs to whoever started the run."""

    def __init__(self, problem: Problem, rule: DrawRule) -> None:
        from surepick.peers.sampling import table, winner  # import Numba, which takes half a second

        self._table, self._winner, self._problem, self._rule = table, winner, problem, rule
        settings = Settings(radii.PUBLISHED, rule.arm_rule, rule.delta)
        self._race = make_race(problem, settings, np.flatnonzero(problem.relevant).astype(np.int64))
        self._plans = make_plans(problem)
        self._work = table.make_workspace(self._plans[0], self._race, rule.quantile, rule.q)
        winner.warm_up(thin=self._race.rule.thin)

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Every arm once at first; then the arm that the winner of the draws asks for, or the stop."""
        now, counts = self._race.now, np.zeros(self._problem.n_arms, dtype=np.int64)
        if not self.started:
            counts[self._race.used] = 1
            return Measure(counts)
        self._make_room()
        self._winner.decide(*self._plans, self._race, self._work, rng)
        if now.stopped:
            return Stop(int(now.lead))
        counts[now.arm] = 1
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in measurements; one measurement costs one pass over the plans."""
        arms, now = self._race.arms, self._race.now
        if self.started and counts.sum() == 1:
            arm = int(counts.argmax())
            self._table.absorb(*self._plans, self._race, self._work, arm, float(sums[arm]))
            return
        arms["count"] += counts
        arms["total"] += sums
        if not arms["count"][self._race.used].all():
            raise ParameterError("the first answer must hold a measurement of every arm that was asked for")
        now.measured += int(counts.sum())
        self._table.absorb(*self._plans, self._race, self._work, -1, 0.0)

    def standing(self) -> Standing:
        """The lead, the rival of the last draws and the estimated gap; a radius has no place here."""
        if not self.started:
            return Standing()
        race, lead, rival = self._race, int(self._race.now.lead), int(self._race.now.rival)
        if rival < 0 or rival == lead:
            return Standing(lead)
        return Standing(lead, rival, float(race.value[lead] - race.value[rival]))

    def state(self) -> dict[str, Any]:
        """The race, and the table of the draws."""
        table = arrays_of(self._work, ("bound", "mass", "killers"))
        return {
            "race": race_state(self._race),
            "table": table | {"level": np.array([self._work.draws.level])},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with this race and this table."""
        restore_race(self._race, state["race"])
        table = dict(state["table"])
        self._work.draws.level = table.pop("level")[0]
        refill(self._work, table)

    def _make_room(self) -> None:
        """See that the workspace holds the proposals of a round."""
        n_measured, log_plans = int(self._race.now.measured), math.log(self._problem.n_plans)
        n_draws = self._rule.n_draws(n_measured, log_plans) + 1
        self._work = self._table.with_proposals(self._work, n_draws)


class OracleRun:
    """A run that knows the plans through an oracle only. The state belongs to whoever started the run."""

    def __init__(self, problem: AnyProblem, rule: DrawRule) -> None:
        if problem.n_plans is None:
            raise ProblemError(
                "this policy needs a bound on the number of plans; pass n_plans to OracleProblem, such as "
                "n_plans=2**n_arms for plans of zeros and ones"
            )
        self._problem, self._rule = problem, rule
        self._plans, self._arms = plan_oracle(problem), np.flatnonzero(problem.relevant)
        self._scale, self._log_n_plans = known_noise_scale(problem), math.log(problem.n_plans)
        self._evidence = Evidence.none(problem.n_arms)
        self._standing = Standing()

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        return self._evidence

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Every arm once at first; then M draws, one oracle call each: the box of the paper."""
        counts, plans = self._evidence.counts, self._plans
        request = np.zeros(len(counts), dtype=np.int64)
        if not counts.any():
            request[self._arms] = 1
            return Measure(request)
        means = np.where(counts > 0, self._evidence.sums / np.maximum(counts, 1), 0.0)
        lead = plans.best_of_all(means)
        rival, gap = self._rival(means, lead, rng)
        self._standing = Standing(plans.answer(lead), plans.answer(rival), gap)
        if rival is lead:
            return Stop(plans.answer(lead))
        request[self._arm(lead, rival)] = 1
        return Measure(request)

    def _rival(
        self, means: FloatArray, lead: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, float | None]:
        """The plan with the largest margin over the lead in M draws; the lead itself if none has one."""
        counts, arms, rule = self._evidence.counts, self._arms, self._rule
        n = self._evidence.n_measurements
        sd = self._scale[arms] * np.sqrt(rule.widening(n, self._log_n_plans) / counts[arms])
        thetas = np.tile(means, (rule.n_draws(n, self._log_n_plans), 1))  # (M, n_arms)
        thetas[:, arms] += sd * rng.standard_normal((len(thetas), len(arms)))
        plans = self._plans.best_of_each(thetas)  # (M, n_arms)
        margins = np.einsum("ms,ms->m", thetas, plans - lead)
        others = np.flatnonzero((plans != lead).any(axis=1))
        if not others.size:
            return lead, None
        rival = plans[others[np.argmax(margins[others])]]
        return rival, float(means @ (lead - rival))

    def _arm(self, lead: FloatArray, rival: FloatArray) -> int:
        """CombGapE's arm for this pair, or the least measured arm on which they differ."""
        counts = np.maximum(self._evidence.counts, 1)
        difference = lead - rival
        if self._rule.arm_rule == "naive":
            return int(np.argmin(np.where(difference != 0, counts, np.inf)))
        gain = self._scale**2 / (counts * (counts + 1.0) * self._problem.costs)
        return int(np.argmax(difference**2 * gain))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Take in measurements."""
        self._evidence = self._evidence + Evidence(counts, sums)

    def standing(self) -> Standing:
        """The lead, the rival of the last draws and the estimated gap."""
        return self._standing

    def state(self) -> dict[str, Any]:
        """The evidence, and what the last draws showed."""
        return {
            "evidence": [self._evidence.counts, self._evidence.sums],
            "standing": parts_of(self._standing),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with this evidence."""
        self._evidence = Evidence(*state["evidence"])
        self._standing = standing_of(state["standing"])
