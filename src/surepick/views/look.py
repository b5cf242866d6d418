"""A look at a session: what is recorded of it at one moment, its estimates, and how many more are needed."""

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
    """What a session has recorded at one moment; looking decides and writes nothing.

    It reads the state of the session and is used while that is held. `gap` and `error` are how far each
    listed plan is behind the leader and the standard deviation of that; None without a leader or a list.
    """

    def __init__(self, session: Session, state: SessionState, leases: Leases) -> None:
        self.session, self.state = session, state
        self.leases = tuple(leases.values())
        self.now = session.journal.clock()
        self.problem, self.policy = state.estimated_problem, state.setup.policy
        self.unit, self.budget = self.problem.about.unit, state.setup.budget
        self.delta, self.epsilon = self.policy.delta, self.policy.epsilon
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
        past = self.state.setup.past
        return self.problem.guess if past is None else np.where(past.worth > 0, past.means, np.nan)

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
        """Return the last value that was not removed, of the last 64; of several readings the last one."""
        session, state = self.session, self.state
        left = (place for place in reversed(state.recent_values) if place not in state.streams.removed)
        place = next(left, None)
        event = None if place is None else session.store.find(session.name, recorded_key(place))
        if event is None:
            return None
        *_, one = measurements_in(event, state)
        return Last(one.number, one.probe_name, one.value, one.worker, iso(one.time))

    def ended(self) -> tuple[float, str] | None:
        """Return when the session ended, and the reason that was given."""
        session, state = self.session, self.state
        event = session.store.find(session.name, state.end_key) if state.is_over else None
        return None if event is None else (event.time, str(json.loads(event.body).get("reason") or ""))

    def needed(self) -> float | None:
        """Return the log evidence at which the policy rules a rival out; None if that cannot be said.

        Where the policy has a proved risk, that is 1/delta. Otherwise it is how many times more likely the
        values are under the gap at which the policy's own radius would rule the rival out than under a tie.
        """
        plain, standing = math.log(1 / self.delta), self.standing
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
        best, left = values.argmax(axis=1), np.empty(N_WORLDS)
        for plan in np.unique(best).tolist():
            here = best == plan
            left[here] = self._remaining(plan, values[here], needed)
        if self.epsilon > 0:  # the leader will do as well, where it is close enough to that world's best plan
            assert isinstance(self.leader, int)
            left = np.minimum(left, self._remaining(self.leader, values, needed))
        low, middle, high = (quantile(left, q) for q in EIGHT_OF_TEN)
        return Forecast(*(end if math.isfinite(end) else None for end in (middle, low, high)))

    def _remaining(self, plan: int, values: FloatArray, needed: float) -> FloatArray:
        """Return the measurements needed in each world for this plan to be the answer; infinite in a tie.

        What is proved counts where the policy says it. Against the leader itself, and within epsilon as
        rivals of another plan than the leader, that is nothing: no bet was won by what was measured.
        """
        problem, known = self.problem, self.log_evidence
        assert problem.is_listed
        if known is None:
            gap, error = self.estimates.behind(problem, plan)
            known = divided(gap + self.epsilon, error).clip(0.0) ** 2 / 2
        elif plan != self.leader:
            known = np.zeros(len(known)) if self.epsilon > 0 else known.copy()
            known[self.leader] = 0.0  # type: ignore[index]
        counts = self.evidence.counts
        shares = np.maximum(counts / counts.sum(), LEAST_SHARE / len(counts))
        unit = Evidence.none_of(problem).with_sums(shares, self.evidence.sums)
        unit_error = estimates(problem, unit).behind(problem, plan)[1]
        missing = np.maximum(needed - known, 0.0)
        missing[plan] = 0.0
        ahead = np.maximum(values[:, [plan]] - values + self.epsilon, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            left = np.where(missing > 0, 2 * missing * unit_error**2 / ahead**2, 0.0)
        return np.asarray(np.nan_to_num(left, nan=0.0, posinf=np.inf).max(axis=1))


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
