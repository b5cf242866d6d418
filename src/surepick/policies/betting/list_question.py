"""Questions about a list of plans: their contrasts, which of them are left, and the evidence against each."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.problem import PlanParts
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.design.grid import VALUE_BITS, on_grid
from surepick.inference.contrasts import Contrasts
from surepick.inference.wealth import EMPTY
from surepick.policies.betting.estimates import Estimates, Readings
from surepick.policies.betting.question import CERTAIN, NO_LEADER, Bet, Question, Targets


class ListQuestion(Question):
    """A question about a list of plans; leader and rivals are places in it."""

    def __init__(self, plans: Any, delta: float, epsilon: float, **settings: Any) -> None:
        self.given = self.plans = plans
        super().__init__(delta, epsilon, **settings)
        self.constants = np.zeros(self.n_plans)  # of values, by arms whose means are known
        self.is_out = np.zeros(self.n_plans, dtype=bool)  # another plan is surely at least as good
        self._cached: tuple[IntArray, IntArray, Contrasts] | None = None

    @property
    def n_plans(self) -> int:
        """How many plans there are."""
        return int(self.given.shape[0])

    def bind(self, readings: Readings, parts: PlanParts) -> None:
        """Set the plans, in the coordinates of these readings; a plan that alone may be best leads."""
        self.given, self.constants, self.is_out = parts.free, parts.constants, ~parts.may_be_best
        self.plans, self._cached = readings.coordinates(self.given), None
        if len(stays := self.contenders()) == 1:
            self.leader = int(stays[0])

    @abstractmethod
    def grow(self, parts: PlanParts, readings: Readings, n_probes: int) -> None:
        """Continue with these plans, the old ones first, and this many probes."""

    def contenders(self) -> IntArray:
        """Return the plans that may be best, by what is known of the means."""
        return np.flatnonzero(~self.is_out)

    def values(self, estimates: Estimates) -> FloatArray:
        """Return the estimated values, rounded to what may decide; -inf for plans that cannot be best."""
        found = on_grid(np.asarray(self.plans @ estimates.means) + self.constants, VALUE_BITS)
        return np.where(self.is_out, -np.inf, found)

    def contrasts(self, ahead: IntArray, behind: IntArray) -> Contrasts:
        """Return the rows plan[ahead] - plan[behind]; those of the last call are kept."""
        if self._cached is not None:
            old_ahead, old_behind, found = self._cached
            if np.array_equal(old_ahead, ahead) and np.array_equal(old_behind, behind):
                return found
        constant = self.constants[ahead] - self.constants[behind]
        found = Contrasts(self.plans[ahead] - self.plans[behind], constant=constant)
        if len(ahead) > 1:  # single rows are only looked at, and quickly made
            self._cached = (ahead, behind, found)
        return found

    def from_leader(self, plans: IntArray | None = None) -> Contrasts:
        """Return the rows leader - plan, of all plans unless some are named."""
        plans = np.arange(self.n_plans) if plans is None else plans
        return self.contrasts(np.full(len(plans), self.leader), plans)

    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return about this many plans less their mean, and all that may be best less one of them."""
        stays = self.contenders()
        some = as_dense(self.plans[stays[:: max(1, len(stays) // most)]])
        some = some - np.asarray(self.plans[stays].mean(axis=0)).ravel()
        contrasts = self.contrasts(np.full(len(stays) - 1, stays[0]), stays[1:])
        return np.asarray(some[np.abs(some).max(axis=1) > 0]), contrasts

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return the contrasts of the leader with these rivals."""
        log_wealth = self.log_wealth(self.leader)[rivals]
        return self.aim(estimates, rivals, self.from_leader(rivals), log_wealth, self.epsilon)

    @abstractmethod
    def tested(self, rivals: IntArray) -> tuple[str | int, IntArray]:
        """Return the account, and its rows, that a test of the leader against its rivals belongs to."""

    def test(self, rivals: IntArray) -> list[Bet]:
        """Return what a final batch tests: that the leader is better than its rivals, up to epsilon."""
        return [Bet(*self.tested(rivals), self.from_leader(rivals), self.epsilon)]

    # what is proved

    @abstractmethod
    def evidence(self, leader: Any) -> FloatArray:
        """Return a copy of the largest log wealth so far against each plan, as a rival of this leader."""

    @abstractmethod
    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each plan, as a rival of this leader, now."""

    def certain(self, evidence: FloatArray) -> FloatArray:
        """Return the evidence by plan, all that is needed where a plan is out without a measurement."""
        return np.where(self.is_out, CERTAIN, evidence)

    def rival_evidence(self, leader: Any) -> FloatArray:
        """Return the evidence against each plan as a rival of this leader, whose own is infinite."""
        evidence = self.evidence(leader)
        evidence[leader] = np.inf
        return evidence

    def unresolved(self) -> IntArray:
        """Return the rivals of the leader that are not ruled out."""
        return np.flatnonzero(self.rival_evidence(self.leader) < self.wealth.threshold)

    def answer_evidence(self, plan: Any) -> float:
        """Return the log evidence for this answer: the least that is needed of any."""
        return float(self.rival_evidence(plan).min())

    @property
    def is_answered(self) -> bool:
        """Whether all rivals of the leader are ruled out."""
        return self.has_leader and not len(self.unresolved())

    def answer(self) -> Answer | None:
        """Return the leader."""
        return self.leader

    def leader_objection(self, leader: Any) -> str | None:
        """Return why this cannot lead: it is no plan."""
        return None if type(leader) is int and 0 <= leader < self.n_plans else "its leader is no plan"

    def rival_objection(self, decision: Decision) -> str | None:
        """Return why these cannot be the rivals: they are the plans that are not ruled out."""
        is_rival = np.zeros(self.n_plans, dtype=bool)
        is_rival[decision.rivals] = True
        wrong = self.misplaced(is_rival, self.rival_evidence(decision.leader))
        if wrong.any() or not is_rival.any():
            return f"plan {int(np.argmax(wrong))} is on the wrong side of its rivals, or it has none"
        return None

    def proves(self, plan: Answer | None) -> bool:
        """Return whether all rivals of this plan are ruled out, up to rounding."""
        if self.leader_objection(plan):
            return False
        return self.answer_evidence(plan) >= self.wealth.threshold * (1.0 - TOLERANCE)

    def within_epsilon(self) -> list[int]:
        """Return the plans that are proved to be within epsilon of the best."""
        return [self.leader] if self.is_answered else []

    def recorded_wealth(self, leader: Any) -> float:
        """Return what a decision records of the wealth: a number that every bet moves.

        It is the mean log wealth against the rivals of this leader, and that of each account of the second
        claim that was staked.
        """
        if leader == NO_LEADER:
            return 0.0
        wealth = self.log_wealth(leader)[np.arange(self.n_plans) != leader]
        number = float(wealth.mean()) if len(wealth) else CERTAIN
        for account in self.second.accounts.values():
            if account.components.max() > EMPTY:
                number += float(self.second.total(np.arange(len(account.components)), account).mean())
        return number

    def standing(self, estimates: Estimates) -> Standing:
        """Return leader, closest rival, their gap and its uncertainty, the risk, and what remains."""
        evidence = self.rival_evidence(self.leader)
        evidence[self.leader] = np.inf
        rival = int(np.argmin(evidence))
        contrast, threshold = self.from_leader(np.array([rival])), self.wealth.threshold
        remaining = self.evidence(self.leader) < threshold
        remaining[self.leader] = True  # whatever was bet against it
        return Standing(
            self.leader,
            rival,
            gap=float(estimates.gap(contrast)[0]),
            radius=math.sqrt(2 * float(estimates.gap_variance(contrast)[0]) * threshold),
            risk=min(1.0, self.n_claims * math.exp(-self.answer_evidence(self.leader))),
            remaining=tuple(np.flatnonzero(remaining).tolist()),
            good=tuple(self.within_epsilon()),
        )
