"""How a run ended, or stands: the same values for simulations and sessions."""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.estimates import Estimate, estimate, runner_up
from surepick.core.evidence import Evidence
from surepick.core.guarantee import Doubt, no_guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy, delta_of, epsilon_of, is_proved
from surepick.core.run import Answer, Standing, Stop
from surepick.core.sensitivity import estimated_call, turn, worth_of_one
from surepick.core.wording import alarm, card, how_many, shortened

LONGEST_NAME = 60  # letters of a plan in one line
_ROUNDING = 1e-9  # of delta: a risk is the exponential of a sum of logs
log = logging.getLogger("surepick.simulation")


class Status(enum.StrEnum):
    """The state of a run: running, or why it ended."""

    RUNNING = "running"  # a session that has not ended; its outcome says where it stands
    CONFIDENT = "confident"
    DONE = "done"  # the policy has answered, and guarantees nothing
    BUDGET_SPENT = "budget spent"
    CLOSED = "closed"  # a session that a person ended


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended, or where it stands.

    `plan` is the answer, and None unless `status` is CONFIDENT or DONE; `lead` is the plan that looked best
    at the end, whatever the status. Plans are indices into the problem's list; on an `OracleProblem` they
    are vectors. `guarantee` says what is guaranteed and under which assumption. `ranging` is
    for every arm the interval in which its mean may lie, the other estimates as they are, while the plan
    stays the best one; it is about the estimates and no part of the guarantee.
    """

    plan: Answer | None
    plan_name: str | None
    status: Status
    lead: Answer | None
    lead_name: str | None
    n_measurements: int
    n_rounds: int
    cost: float
    counts: IntArray = field(repr=False)
    means: FloatArray = field(repr=False)
    standing: Standing
    policy: Policy
    guarantee: str
    seed: int
    seconds: float
    noise_scale: FloatArray | None = field(default=None, repr=False)  # given, bounded or estimated
    problem: AnyProblem | None = field(default=None, repr=False)  # with the noise scale that it ran with
    ranging: Mapping[str, tuple[float, float]] | None = field(default=None, repr=False)
    doubts: tuple[Doubt, ...] = ()  # what contradicts the assumption of the guarantee

    @property
    def trusted(self) -> bool:
        """Whether nothing contradicts the assumption of the guarantee; else it does not apply."""
        return not self.doubts

    @cached_property
    def estimate(self) -> Estimate | None:
        """How good the lead probably is, by draws from what the measurements leave open; see `chance`."""
        if self.problem is None:
            return None
        return estimate(self.problem, self._evidence, self.lead)

    @property
    def _evidence(self) -> Evidence:
        assert self.problem is not None
        seen = Evidence.none_of(self.problem).with_sums(self.counts, self.means)
        return seen.with_sums(self.counts, np.nan_to_num(self.means) * seen.each)

    @cached_property
    def worth(self) -> Mapping[str, float] | None:
        """For each arm, how much one more measurement would reduce the expected loss; an estimate."""
        if self.problem is None:
            return None
        found = worth_of_one(self.problem, self._evidence, self.lead, epsilon_of(self.policy))
        return None if found is None else dict(zip(self.problem.arm_names, found.tolist(), strict=True))

    @cached_property
    def what_if(self) -> str | None:
        """A sentence: which change of the estimates would make the runner-up win.

        For a polytope without an answer yet: the closest call, and the epsilon that would end it.
        """
        if self.problem is not None and self.plan is None and not epsilon_of(self.policy):
            call = estimated_call(self.problem, self.lead, self._evidence)
            if call is not None:
                return call.sentence(self.problem.about.unit)
        if self.problem is None or not self.problem.is_listed or not isinstance(self.lead, int):
            return None
        if self.problem.probes is not None:
            return None
        values = self.problem.sign * self.problem.values(np.nan_to_num(self.means))
        gap = values[self.lead] - values
        found = turn(self.problem, self._evidence, self.lead, runner_up(self.lead, gap))
        return None if found is None else found.sentence(self.problem.about.unit)

    @property
    def chance(self) -> float | None:
        """An estimate of the probability that the lead is the best plan; nothing is proved by it.

        None where plans are not listed or an arm was not measured. What is proved is the `risk`.
        """
        return None if self.estimate is None else self.estimate.chance

    @property
    def expected_loss(self) -> float | None:
        """An estimate of how much worse than the best the lead is on average; nothing is proved by it."""
        return None if self.estimate is None else self.estimate.expected_loss

    def __repr__(self) -> str:
        named = repr(shortened(self.plan_name or str(self.plan), LONGEST_NAME))
        answer = "no answer" if self.plan is None else named
        delta = f"delta={delta_of(self.policy):g}" if is_proved(self.policy) else "no guarantee"
        n = how_many(self.n_measurements, "measurement")
        if self.doubts:
            lead = repr(shortened(self.lead_name or str(self.lead), LONGEST_NAME))
            return f"Outcome(DOUBTFUL, {lead} leads; {no_guarantee(self.doubts)}; {self.status}, {n})"
        return f"Outcome({answer}, {self.status}, {n}, {self.policy.name}, {delta})"

    def _repr_html_(self) -> str:
        named = self.lead_name or ("none" if self.lead is None else str(self.lead))
        proved = self.plan is not None and self.trusted
        rows: list[tuple[str, object]] = [
            ("answer" if proved else "leader", named),
            ("status", self.status),
            ("guarantee", self.guarantee if proved else "none"),
            ("measurements", f"{self.n_measurements:,} in {how_many(self.n_rounds, 'round')}"),
            ("cost", self.cost),
            ("policy", described(self.policy)),
        ]
        if self.risk is not None and self.trusted:
            rows.insert(2, ("risk", f"at most {self.risk:.3g}"))
        return card("Outcome", rows, first=alarm(no_guarantee(self.doubts)) if self.doubts else "")

    @property
    def risk(self) -> float | None:
        """An anytime p-value of the lead, to compare with delta, where the policy has one.

        For every level fixed beforehand, a wrong lead is ever shown with a risk up to that level with at most
        that probability.
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


def described(policy: Policy) -> str:
    """Return the policy's name and its delta, or that it guarantees nothing."""
    return f"{policy.name}, " + (f"delta {delta_of(policy):g}" if is_proved(policy) else "no guarantee")


def end_of(stop: Stop | None, standing: Standing, policy: Policy) -> tuple[Answer | None, Status]:
    """Return the answer of a run that ended, and why it ended; no stop means that the budget is spent.

    >>> from surepick.policies import BetGapE, Pick
    >>> end_of(Stop(1), Standing(lead=1, risk=0.01), BetGapE())
    (1, <Status.CONFIDENT: 'confident'>)
    >>> end_of(Stop(1), Standing(lead=1), Pick())
    (1, <Status.DONE: 'done'>)
    """
    plan = None if stop is None else proved_stop(stop, standing, delta_of(policy)).plan
    if plan is None:
        return None, Status.BUDGET_SPENT
    return plan, Status.CONFIDENT if is_proved(policy) else Status.DONE


def proved_stop(stop: Stop, standing: Standing, delta: float) -> Stop:
    """The stop as it counts: without its plan where the policy's own bound on the risk is above delta.

    All ends of runs come through here, in simulations and in sessions. A sound policy is never affected;
    one that stops too early, by a mistake or by rounding, ends without an answer.

    >>> [proved_stop(Stop(1), Standing(lead=1, risk=risk), delta=0.05) for risk in (0.04, 1.0)]
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


@dataclass(frozen=True)
class Progress:
    """Where a running simulation stands."""

    n_measurements: int
    n_rounds: int
    budget: int
    standing: Standing
    seconds: float
