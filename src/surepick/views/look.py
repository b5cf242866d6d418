"""A look at a session: its records at one moment, its estimates, and a forecast of measurements to come."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np

from surepick.core.answers import amounts
from surepick.core.arrays import BoolArray, FloatArray, divided
from surepick.core.evidence import EIGHT_OF_TEN, Evidence, between, estimates, quantile
from surepick.core.oracle_problem import AnyProblem
from surepick.core.run import Answer
from surepick.core.wording import counted, shortened
from surepick.sessions.certify import guarantee_of
from surepick.sessions.events import recorded_key
from surepick.sessions.leases import Leases, in_turn
from surepick.sessions.records import measurements_in
from surepick.sessions.session import Session
from surepick.sessions.state import SessionState
from surepick.views.numbers import iso
from surepick.views.view import Forecast, Last

LONGEST_LABEL = 60  # letters of the name of a plan that has none of its own
LEAST_NEEDED = 1e-9
LEAST_SHARE = 1e-3  # of an equal share, for arms that are hardly measured
MOST_IN_TURN = 20  # open requests whose order is looked at
N_WORLDS = 48  # drawn from what the measurements leave open


class Look:
    """The records of a session at one moment. Looking decides and writes nothing.

    It reads the session's state and must be used while the state is locked. `gap` says how far each listed
    plan is behind the leader, `error` is its standard error. Both are None without a leader or a list.
    """

    def __init__(self, session: Session, state: SessionState, leases: Leases) -> None:
        self.session = session
        self.state = state
        self.leases = tuple(leases.values())
        self.now = session.journal.clock()
        self.problem = state.estimated_problem
        self.policy = state.setup.policy
        self.unit = self.problem.about.unit
        self.budget = state.setup.budget
        self.delta = self.policy.delta
        self.epsilon = self.policy.epsilon
        self.guarantee = guarantee_of(state)
        self.doubts = state.doubts()
        self.standing = state.standing()
        self.evidence = state.evidence
        self.n_used = self.evidence.n_measurements  # which the policy has seen
        self.log_evidence = state.run.log_evidence()  # (n_plans,) proved against each as the leader's rival
        self.estimates = estimates(self.problem, self.evidence)
        self.means = self.estimates.means  # 0 where nothing was measured
        self.variance = self.estimates.variances  # infinite there
        self.leader: Answer | None = self.standing.leader if state.plan is None else state.plan
        self.gap: FloatArray | None = None
        self.error: FloatArray | None = None
        if isinstance(self.leader, int) and self.problem.is_listed:
            self.gap, self.error = self.estimates.behind(self.problem, self.leader)
            self.gap[self.leader] = self.error[self.leader] = 0.0  # whatever rounding makes of it
        # the plan in use, where the question is whether another is better
        self.incumbent = self.policy.incumbent_name(self.problem)
        self.keeps_incumbent = self.leader is not None and self.policy.is_incumbent(self.problem, self.leader)

    @property
    def missing(self) -> tuple[tuple[int, int], ...]:
        """Arm (or probe) and measurements to make of it now, in balanced order as far as that is known."""
        if self.state.is_over:
            return ()
        turn = [one.token.probe for one in itertools.islice(in_turn(self.state), MOST_IN_TURN)]
        place = {probe: turn.index(probe) for probe in set(turn)}
        return tuple(sorted(self.state.streams.missing(), key=lambda one: place.get(one[0], len(turn))))

    @property
    def guess(self) -> FloatArray | None:
        """(n_arms,) the guessed means, NaN where there is none."""
        prior = self.state.setup.prior
        return self.problem.guess if prior is None else np.where(prior.worth > 0, prior.means, np.nan)

    def filled_means(self) -> FloatArray:
        """Return the estimates; where nothing was measured the guess, or NaN without one."""
        guess = np.full(self.problem.n_arms, np.nan)
        if self.guess is not None:
            guess[: len(self.guess)] = self.guess  # arms that came with a plan have none
        return np.where(np.isfinite(self.variance), self.means, guess)

    def uses(self, arms: BoolArray) -> BoolArray:
        """Return whether each listed plan uses one of these arms."""
        assert self.problem.is_listed
        return np.asarray(abs(self.problem.oriented) @ arms.astype(float) > 0)

    @property
    def rival(self) -> Answer | None:
        """The rival that is hardest to rule out: by the proved evidence, then by its gap in errors."""
        if self.gap is not None and self.error is not None:
            proved = np.zeros(len(self.gap)) if self.log_evidence is None else self.log_evidence
            order = np.lexsort((divided(self.gap, self.error), np.maximum(proved, 0.0)))
            return int(order[order != self.leader][0])
        rival = self.standing.rival
        return None if rival == self.leader else rival

    def name_of(self, plan: Answer | None) -> str | None:
        """Return the name of this plan; one without a name is called by its arms."""
        if plan is None:
            return None
        if name := self.problem.name_of(plan):
            return name
        used = amounts(self.problem, plan)
        return shortened(counted(list(used), used.values()), LONGEST_LABEL)

    def last(self) -> Last | None:
        """Return the latest value that was not removed, if it is among the last 64 recorded.

        For a probe with several readings it is the last reading.
        """
        session = self.session
        state = self.state
        left = (place for place in reversed(state.recent_values) if place not in state.streams.removed)
        place = next(left, None)
        event = None if place is None else session.journal.log.find(recorded_key(place))
        if event is None:
            return None
        *_, one = measurements_in(event, state)
        return Last(one.number, one.probe_name, one.value, one.worker, iso(one.time))

    def cost(self) -> float:
        """Return the cost of all recorded values, also of those that no complete batch has used yet."""
        problem = self.problem
        is_play = self.evidence.plays is not None  # all plays cost the same
        costs = itertools.repeat(problem.costs[0]) if is_play else iter(problem.costs)
        # a new arm has a cost when its plan has joined
        unused = sum(len(one.pending) * c for one, c in zip(self.state.streams.of, costs, strict=False))
        return float(problem.spent(self.evidence.cost(problem.costs) + unused, self.state.n_rounds))

    def ended(self) -> tuple[float, str] | None:
        """Return when the session ended, and the reason that was given."""
        session = self.session
        state = self.state
        event = session.journal.log.find(state.end_key) if state.is_over else None
        return None if event is None else (event.time, str(json.loads(event.body).get("reason") or ""))

    def needed(self) -> float | None:
        """Return the log evidence at which the policy rules a rival out; None if that cannot be said.

        A policy with a proved risk needs log(1/delta). Another policy rules a rival out when the gap exceeds
        its radius; there the evidence is the log likelihood ratio of that gap to a tie, z^2 / 2.
        """
        standing = self.standing
        plain = math.log(1 / self.delta)
        if standing.risk is not None:
            return plain
        if standing.leader is None or standing.rival is None:
            return None
        _, error = between(self.problem, standing.leader, standing.rival, self.evidence)
        if not 0 < error < math.inf:
            return None
        return plain if standing.radius is None else max((standing.radius / error) ** 2 / 2, LEAST_NEEDED)

    def forecast(self) -> Forecast | None:
        """Forecast the measurements still needed if the arms are measured in about the same shares as so far.

        For each of many worlds drawn from the estimates and their errors: the evidence against every rival of
        that world's best plan grows by gap^2 / (2 variance) with each measurement; the last rival decides.
        """
        needed, problem = self.needed(), self.problem
        if needed is None or self.error is None or not np.isfinite(self.error).all() or self.state.is_over:
            return None
        assert problem.is_listed
        rng = np.random.default_rng(self.n_used)  # the same look gives the same forecast
        worlds = self.estimates.draw(N_WORLDS, rng)
        values = np.asarray(problem.oriented @ worlds.T).T  # (N_WORLDS, n_plans)
        best = values.argmax(axis=1)
        left = np.empty(N_WORLDS)
        for plan in np.unique(best).tolist():
            here = best == plan
            left[here] = self._remaining(plan, values[here], needed)
        if self.epsilon > 0:  # the leader is an answer too if it is within epsilon of that world's best plan
            assert isinstance(self.leader, int)
            left = np.minimum(left, self._remaining(self.leader, values, needed))
        low, middle, high = (quantile(left, q) for q in EIGHT_OF_TEN)
        return Forecast(*(end if math.isfinite(end) else None for end in (middle, low, high)))

    def _remaining(self, plan: int, values: FloatArray, needed: float) -> FloatArray:
        """Return the measurements needed, in each world, to rule out all rivals of this plan.

        With n more measurements the evidence against a rival grows by n gap^2 / (2 variance), so that
        n = 2 missing variance / gap^2; the slowest rival decides. A tie takes infinitely many.

        - values: (n_worlds, n_plans) the value of every plan in each world, larger is better.
        - needed: the log evidence that rules a rival out.
        """
        problem = self.problem
        assert problem.is_listed
        known = self._evidence_for(plan)
        # the standard error of each gap after one measurement, divided between the arms as so far
        counts = self.evidence.counts
        shares = np.maximum(counts / counts.sum(), LEAST_SHARE / len(counts))
        unit = Evidence.none_of(problem).with_sums(shares, self.evidence.sums)
        _, unit_error = estimates(problem, unit).behind(problem, plan)
        missing = np.maximum(needed - known, 0.0)
        missing[plan] = 0.0
        gaps = np.maximum(values[:, [plan]] - values + self.epsilon, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(missing > 0, 2 * missing * unit_error**2 / gaps**2, 0.0)
        # 0 / 0 is a rival with the same arms as the plan: there is nothing to measure
        return np.asarray(np.nan_to_num(left, nan=0.0, posinf=np.inf).max(axis=1))

    def _evidence_for(self, plan: int) -> FloatArray:
        """Return the log evidence so far against each rival of this plan, (n_plans,).

        If the policy proves none, the evidence is z^2 / 2 with the gap at z standard errors. The evidence
        that it proves is against the leader's rivals. Another plan inherits it only for epsilon = 0, where
        the bets against a rival hold for every leader; and there are no bets against the leader itself.
        """
        known = self.log_evidence
        if known is None:
            assert self.problem.is_listed
            gap, error = self.estimates.behind(self.problem, plan)
            return divided(gap + self.epsilon, error).clip(0.0) ** 2 / 2
        if plan == self.leader:
            return known
        inherited = np.zeros(len(known)) if self.epsilon > 0 else known.copy()
        inherited[self.leader] = 0.0  # type: ignore[index]
        return inherited


def roles_of(problem: AnyProblem) -> list[str]:
    """Return the role of each arm in the decision: measured, known, same in all plans, or in no plan."""
    used = np.ones(problem.n_arms, dtype=bool)
    if problem.is_listed:
        sizes: Any = abs(problem.oriented)
        used = np.asarray(sizes.T @ np.ones(problem.n_plans) > 0)
    return [
        "known" if known else "measured" if matters else "same in all plans" if in_use else "in no plan"
        for known, matters, in_use in zip(problem.is_known, problem.relevant, used, strict=True)
    ]
