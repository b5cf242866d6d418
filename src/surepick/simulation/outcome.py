"""How a run ended, or stands: the same values for simulations and sessions."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Estimate, Evidence, estimate
from surepick.core.given.plans import make_frame
from surepick.core.guarantee import Doubt, no_guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy
from surepick.core.run import Answer, Standing, Stop
from surepick.core.wording import how_many, shortened

LONGEST_NAME = 60  # letters of a plan in one line
ROUNDING = 1e-12  # of the sizes of what is added up in the value of a plan
_ROUNDING = 1e-9  # of delta: a risk is the exponential of a sum of logs
log = logging.getLogger("surepick.simulation")


class State(enum.StrEnum):
    """The state of a run: running, or why it ended."""

    RUNNING = "running"  # a session that has not ended; its outcome says where it stands
    CONFIDENT = "confident"
    DONE = "done"  # the policy has answered, and guarantees nothing
    BUDGET_SPENT = "budget spent"
    CLOSED = "closed"  # a session that a person ended


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended, or where it stands.

    `plan` is the answer, and None unless `state` is CONFIDENT or DONE; CONFIDENT without a plan is the proof
    that no plan will do (`Limited`). `leader` is the plan that looked best at the end, whatever the state.
    Plans are indices into the problem's list; on an `OracleProblem` they are vectors. `guarantee` says what
    is guaranteed and under which assumption. `ranging` is for every arm the interval in which its mean may
    lie, the other estimates as they are, while the plan stays the best one; it is about the estimates and no
    part of the guarantee.
    """

    plan: Answer | None
    plan_name: str | None
    state: State
    leader: Answer | None
    leader_name: str | None
    n_measured: int
    n_rounds: int
    cost: float
    counts: IntArray = field(repr=False)
    means: FloatArray = field(repr=False)
    standing: Standing
    policy: Policy
    guarantee: str
    seed: int
    seconds: float
    problem: AnyProblem = field(repr=False)  # with the noise scale that it ran with
    noise_scale: FloatArray | None = field(default=None, repr=False)  # given, bounded or estimated
    ranging: Mapping[str, tuple[float, float]] | None = field(default=None, repr=False)
    doubts: tuple[Doubt, ...] = ()  # what contradicts the assumption of the guarantee
    true_means: FloatArray | None = field(default=None, repr=False)  # (n_arms,), of a simulation

    @property
    def trusted(self) -> bool:
        """Whether nothing contradicts the assumption of the guarantee; else it does not apply."""
        return not self.doubts

    @cached_property
    def loss(self) -> float | None:
        """How much worse than the best plan the leader truly is, 0 for a tie; None outside simulations."""
        if self.true_means is None or self.leader is None:
            return None
        plan, means = self.problem.vector(self.leader), self.true_means
        lost = self.problem.sign * float((self.problem.best_plan(means) - plan) @ means)
        return lost if lost > ROUNDING * float(np.abs(plan) @ np.abs(means)) else 0.0

    @property
    def correct(self) -> bool | None:
        """Whether the answer is truly within epsilon of the best plan; None without answer or true means.

        A policy with a question of its own may say itself when an answer is right (`is_right`).
        """
        if self.state == State.CONFIDENT and self.true_means is not None:
            is_right = self.policy.is_right(self.problem, self.true_means, self.plan)
            if is_right is not None:
                return is_right
        if self.plan is None or self.loss is None:
            return None
        assert self.true_means is not None
        return self.loss <= self.policy.epsilon + ROUNDING * float(np.abs(self.true_means).max())

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row per arm: its name, measurements and mean."""
        names, counts = self.problem.reading_names, self._evidence.each.astype(int)
        return make_frame({"arm": list(names), "n": counts.tolist(), "mean": self.means.tolist()})

    @cached_property
    def estimate(self) -> Estimate | None:
        """How good the leader probably is, by draws from what the measurements leave open; see `chance`."""
        return estimate(self.problem, self._evidence, self.leader)

    @property
    def _evidence(self) -> Evidence:
        seen = Evidence.none_of(self.problem).with_sums(self.counts, self.means)
        return seen.with_sums(self.counts, np.nan_to_num(self.means) * seen.each)

    @property
    def chance(self) -> float | None:
        """An estimate of the probability that the leader is the best plan; nothing is proved by it.

        None where plans are not listed or an arm was not measured. What is proved is the `risk`.
        """
        return None if self.estimate is None else self.estimate.chance

    @property
    def expected_loss(self) -> float | None:
        """An estimate of how much worse than the best the leader is on average; nothing is proved by it."""
        return None if self.estimate is None else self.estimate.expected_loss

    def __repr__(self) -> str:
        named = repr(shortened(self.plan_name or str(self.plan), LONGEST_NAME))
        answer = ("no plan" if self.state == State.CONFIDENT else "no answer") if self.plan is None else named
        delta = f"delta={self.policy.delta:g}" if self.policy.guarantee.proved else "no guarantee"
        n = how_many(self.n_measured, "measurement")
        if self.doubts:
            leader = repr(shortened(self.leader_name or str(self.leader), LONGEST_NAME))
            return f"Outcome(DOUBTFUL, {leader} leads; {no_guarantee(self.doubts)}; {self.state}, {n})"
        return f"Outcome({answer}, {self.state}, {n}, {self.policy.name}, {delta})"

    @property
    def risk(self) -> float | None:
        """An anytime p-value of the leader, to compare with delta, where the policy has one.

        For every level fixed beforehand, the probability that a wrong leader is ever shown with a risk up to
        that level is at most the level.
        """
        return self.standing.risk

    @property
    def remaining(self) -> tuple[Answer, ...] | None:
        """The plans that the best one is among, up to delta, also when the budget is spent.

        None where the policy proves no such set; with epsilon one of them is within epsilon of the best.
        """
        return self.standing.remaining

    @property
    def good(self) -> tuple[Answer, ...]:
        """Plans proved to be within epsilon of the best, right as a list up to delta; the answer is one."""
        return self.standing.good


def end_of(stop: Stop | None, standing: Standing, policy: Policy) -> tuple[Answer | None, State]:
    """Return the answer of a run that ended, and why it ended; no stop means that the budget is spent.

    >>> from surepick.policies import BetGapE, Pick
    >>> end_of(Stop(1), Standing(leader=1, risk=0.01), BetGapE())
    (1, <State.CONFIDENT: 'confident'>)
    >>> end_of(Stop(1), Standing(leader=1), Pick())
    (1, <State.DONE: 'done'>)
    """
    plan = None if stop is None else proved_stop(stop, standing, policy.delta).plan
    if plan is None:
        is_none = stop is not None and stop.plan is None and policy.finds_none(standing)
        return None, State.CONFIDENT if is_none else State.BUDGET_SPENT
    return plan, State.CONFIDENT if policy.guarantee.proved else State.DONE


def proved_stop(stop: Stop, standing: Standing, delta: float) -> Stop:
    """Return the stop as it counts: without its plan where the policy's own bound on the risk is above delta.

    All ends of runs come through here, in simulations and in sessions. A sound policy is never affected;
    one that stops too early, by a mistake or by rounding, ends without an answer.

    >>> [proved_stop(Stop(1), Standing(leader=1, risk=risk), delta=0.05) for risk in (0.04, 1.0)]
    [Stop(plan=1), Stop(plan=None)]
    """
    risk = standing.risk
    if stop.plan is None or risk is None or risk <= delta * (1 + _ROUNDING):
        return stop
    log.warning(
        "no answer: the policy stopped with plan %s at a risk of %.3g by its own bound, above delta %g",
        stop.plan,
        risk,
        delta,
    )
    return Stop(None)
