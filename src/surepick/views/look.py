"""A look at a session: everything that is recorded of it at one moment, read once for all views."""

from __future__ import annotations

import itertools
import json
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surepick.core.answers import called
from surepick.core.arrays import BoolArray, FloatArray, IntArray, Plans, as_dense
from surepick.core.evidence import (
    Evidence,
    arm_means,
    behind,
    behind_by,
    between,
    closest_first,
    mean_variance,
    noise_variance,
    pooled,
    squares_of,
)
from surepick.core.guarantee import Doubt, Promise
from surepick.core.oracle_problem import OracleProblem
from surepick.core.policy import Policy, delta_of, epsilon_of
from surepick.core.problem import Problem
from surepick.core.run import Answer, Standing
from surepick.core.wording import shortened
from surepick.sessions.certify import promised
from surepick.sessions.events import recorded_key
from surepick.sessions.evidence import Sample
from surepick.sessions.leases import in_turn
from surepick.sessions.reader import Measurement, measurements_in
from surepick.sessions.session import Session
from surepick.sessions.state import SessionState
from surepick.simulation.outcome import State
from surepick.store import Head, Lease
from surepick.views.gaps import MOST_ALLOCATED, MOST_KEPT, SHARES, Gaps, Weight, best_shares, weigh

LONGEST_LABEL = 60  # letters of the name of a plan that has none of its own


@dataclass(frozen=True, eq=False)
class Look:
    """What a session has recorded at one moment; looking decides and writes nothing."""

    session: str
    title: str  # what people call it; may be empty
    store: str
    created_at: float
    now: float
    head: Head
    problem: Problem | OracleProblem
    policy: Policy  # as it was chosen or extended
    promise: Promise  # on the problem as it was given
    delta: float  # of the whole answer, which risks and evidence are compared with
    budget: int | None
    status: State | None
    answer: Answer | None
    standing: Standing
    evidence: Evidence
    log_evidence: FloatArray | None  # (n_plans,) proved, against each plan as a rival of the leader
    last: Measurement | None  # recorded and not removed
    n_measured: int
    n_extra: int
    n_removed: int  # recorded and then removed
    n_rounds: int
    missing: tuple[tuple[int, int], ...]  # of the open round: arm, measurements that are not recorded yet
    first_tokens: tuple[str, ...]  # of the open round
    leases: tuple[Lease, ...]
    samples: tuple[Sample, ...]
    doubts: tuple[Doubt, ...]
    given: Problem | OracleProblem  # with its noise as it was stated
    guess: FloatArray | None  # (n_arms,) of the means, NaN where there is none
    ended: tuple[float, str] | None  # when the session ended, and the reason that was given

    @cached_property
    def n_used(self) -> int:
        """Measurements that the policy has seen."""
        return self.evidence.n_measurements

    @property
    def n_missing(self) -> int:
        """Measurements that the open round waits for."""
        return sum(count for _, count in self.missing)

    @cached_property
    def cost(self) -> float:
        """The price of the measurements that were used, and of starting their rounds."""
        return self.problem.spent(self.evidence.cost(self.problem.costs), self.n_rounds)

    @cached_property
    def epsilon(self) -> float:
        """How much worse than the best the answer may be."""
        return epsilon_of(self.policy)

    @cached_property
    def leader(self) -> Answer | None:
        """The answer; before there is one, the plan that looks best to the policy."""
        return self.standing.leader if self.answer is None else self.answer

    @cached_property
    def means(self) -> FloatArray:
        """The estimates of the arms; 0 where nothing was measured."""
        return arm_means(self.problem, self.evidence)

    @cached_property
    def variance(self) -> FloatArray:
        """The variance of each estimated mean under the noise scale; infinite where nothing was measured."""
        return mean_variance(self.problem, self.evidence)

    @property
    def unit(self) -> str:
        """The unit of values."""
        return self.problem.about.unit

    @cached_property
    def incumbent(self) -> str | None:
        """The plan in use, where the question is whether another is better."""
        given = getattr(self.policy, "incumbent", None)
        if given is None or not self.problem.is_listed:
            return None
        return given if isinstance(given, str) else self.name_of(int(given))

    @cached_property
    def filled_means(self) -> FloatArray:
        """The estimates; where nothing was measured the guess, or NaN without one."""
        guess = np.full(self.problem.n_arms, np.nan) if self.guess is None else self.guess
        if len(guess) < self.problem.n_arms:  # arms that came with a plan
            guess = np.append(guess, np.full(self.problem.n_arms - len(guess), np.nan))
        return np.where(np.isfinite(self.variance), self.means, guess)

    def uses(self, arms: BoolArray) -> BoolArray:
        """Return whether each listed plan uses one of these arms."""
        return np.asarray(abs(self._listed.oriented) @ arms.astype(float) > 0)

    def between(self, plan: Answer) -> tuple[float, float]:
        """Return how far this plan is behind the leader, and the standard error of that."""
        assert self.leader is not None
        return between(self.problem, self.leader, plan, self.evidence)

    @cached_property
    def gaps(self) -> Gaps | None:
        """All plans against the leader; None while there is no leader, and where plans cannot be listed."""
        if not isinstance(self.leader, int) or not self.problem.is_listed:
            return None
        return Gaps.of(self.leader, *self.comparing(self.leader))

    def comparing(self, plan: int) -> tuple[FloatArray, FloatArray]:
        """Return how far every listed plan is behind this one, and the standard deviation of that."""
        if self.problem.probes is not None:
            return behind_by(self._listed, plan, self.evidence)
        return behind(self._listed, plan, self.means, self.variance, self._squares)

    def errors_after(self, plan: int, counts: FloatArray) -> FloatArray:
        """The standard deviation of those gaps if each arm or probe were measured this often, not whole."""
        if self.problem.probes is not None:
            imagined = Evidence.none_of(self.problem)
            imagined = imagined.with_sums(counts, imagined.sums)  # type: ignore[arg-type]
            return behind_by(self._listed, plan, imagined)[1]
        variance = np.where(self.problem.is_known, 0.0, noise_variance(self.problem)) / counts
        return behind(self._listed, plan, self.means, variance, self._squares)[1]

    def draw_means(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Worlds that the measurements leave open: (n, n_arms)."""
        if self.problem.probes is not None:
            return pooled(self.problem, self.evidence).draw(n, rng)
        spread = np.sqrt(np.where(np.isfinite(self.variance), self.variance, 0.0))
        return np.asarray(self.means + spread * rng.standard_normal((n, self.problem.n_arms)))

    @property
    def _listed(self) -> Problem:
        assert self.problem.is_listed
        return self.problem

    @cached_property
    def _squares(self) -> Plans:
        return squares_of(self._listed.oriented)

    def values(self, means: FloatArray) -> FloatArray:
        """The value of every plan, larger is better, for each row of means: (n_rows, n_plans)."""
        return np.asarray(self._listed.oriented @ means.T).T

    def vector(self, plan: Answer) -> FloatArray:
        """The plan as one number per arm."""
        return self.problem.vector(plan)

    def weigh(self, standing: Standing | None = None, evidence: Evidence | None = None) -> Weight | None:
        """The evidence against the closest rival, now or at an earlier standing; None while there is none."""
        standing, evidence = standing or self.standing, evidence or self.evidence
        return weigh(self.problem, standing, evidence, delta=self.delta, epsilon=self.epsilon)

    @cached_property
    def rival_order(self) -> IntArray:
        """Return the rivals of a listed leader: the least evidence against them first, then the closest."""
        assert self.gaps is not None
        assert isinstance(self.leader, int)
        return closest_first(self.leader, self.gaps.gap, self.gaps.error, self.log_evidence)

    @property
    def rival(self) -> Answer | None:
        """The rival that is hardest to rule out."""
        if self.gaps is not None:
            return int(self.rival_order[0])
        rival = self.standing.rival
        return None if rival == self.leader else rival

    @cached_property
    def best_shares(self) -> FloatArray | None:
        """The shares of measurements that rule out the closest rivals soonest, were the estimates right.

        None while there is no leader, and where plans are not listed. Solved once for each state of the log.
        """
        found, lead = self.gaps, self.leader
        if found is None or not np.isfinite(found.error).all():
            return None
        assert isinstance(lead, int)
        close = found.order[:MOST_ALLOCATED]
        state = self.head.checksum, self.n_rounds, self.n_used
        if state not in SHARES:
            if len(SHARES) >= MOST_KEPT:
                SHARES.clear()
            dense = as_dense(self._listed.oriented[close])
            differences = np.asarray(self.vector(lead) * self.problem.sign - dense)
            gap, error = found.gap[close] + self.epsilon, found.error[close]
            SHARES[state] = best_shares(self.problem, differences, gap, error)
        return SHARES[state]

    def name_of(self, plan: Answer | None) -> str | None:
        """Return the name of this plan; one without a name is called by its arms."""
        if plan is None:
            return None
        return self.problem.name_of(plan) or label(self.problem, self.vector(plan))

    def called(self, plan: Answer | None) -> str | None:
        """The plan's name; where that is a number only, with what the plan does."""
        return called(self.problem, plan)


def roles_of(problem: Problem | OracleProblem) -> list[str]:
    """Return the role of each arm in the decision: measured, known, same in all plans, or in no plan."""
    used = np.ones(problem.n_arms, dtype=bool)
    if problem.is_listed:
        sizes: Any = abs(problem.oriented)
        used = np.asarray(sizes.T @ np.ones(problem.n_plans) > 0)
    return [
        "known" if known else "measured" if matters else "same in all plans" if in_use else "in no plan"
        for known, matters, in_use in zip(problem.is_known, problem.relevant, used, strict=True)
    ]


def look(session: Session, *, n_tokens: int = 20) -> Look:
    """Return what the session has recorded up to now; `n_tokens` open requests are listed.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], arms=["road", "rail"], noise=1, goal="largest")
    >>> seen = look(sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE()))
    >>> seen.n_used, seen.n_missing, seen.first_tokens
    (0, 2, ('0.0', '1.0'))
    """
    with session.held_with_leases() as (state, leases):
        return _now(session, state, tuple(leases.values()), n_tokens)


def _now(session: Session, state: SessionState, leases: tuple[Lease, ...], n_tokens: int) -> Look:
    """Return a snapshot of what the session has recorded now."""
    waits = state.status is None  # what has ended waits for nothing
    first = [one.token for one in itertools.islice(in_turn(state), n_tokens)] if waits else []
    return Look(
        session=session.name,
        title=session.title,
        store=session.store.place,
        created_at=session.created_at,
        now=session.now(),
        head=session.fingerprint,
        problem=state.estimated_problem,
        policy=session.policy,
        promise=promised(state),
        delta=delta_of(state.setup.policy),
        budget=session.budget,
        status=state.status,
        answer=state.plan,
        standing=state.standing(),
        evidence=state.evidence,
        log_evidence=state.run.log_evidence(),
        last=_last(session, state),
        n_measured=state.n_values,
        n_extra=state.n_extra,
        n_removed=state.n_removed,
        n_rounds=state.n_rounds,
        missing=state.streams.missing() if waits else (),
        first_tokens=tuple(map(str, first)),
        leases=leases,
        samples=state.run.trace.samples,
        doubts=state.doubts(),
        given=session.given_problem,
        guess=_guess(state),
        ended=_ended(session, state),
    )


def _guess(state: SessionState) -> FloatArray | None:
    past = state.setup.past
    return None if past is None else np.where(past.worth > 0, past.means, np.nan)


def _ended(session: Session, state: SessionState) -> tuple[float, str] | None:
    event = session.store.find(session.name, state.end_key) if state.is_over else None
    return None if event is None else (event.time, str(json.loads(event.body).get("reason") or ""))


def _last(session: Session, state: SessionState) -> Measurement | None:
    """The last value that was not removed; of several readings of one use the last."""
    if state.recent_values:
        event = session.store.find(session.name, recorded_key(state.recent_values[-1]))
        return None if event is None else list(measurements_in(event, state))[-1]
    events = session.events() if state.n_values else ()  # all that were remembered are removed
    left = (one for event in events for one in measurements_in(event, state) if not one.removed)
    return next(iter(deque(left, maxlen=1)), None)


def label(problem: Problem | OracleProblem, vector: FloatArray) -> str:
    """A plan by what it uses, cut off where it gets long.

    >>> label(Problem([[1, 0], [0, 2]], arms=["road", "rail"], goal="largest"), np.array([1.0, 2.0]))
    'road + 2 rail'
    """
    used = np.flatnonzero(vector)
    parts = [
        problem.arm_names[s] if vector[s] == 1 else f"{vector[s]:.3g} {problem.arm_names[s]}" for s in used
    ]
    return shortened(" + ".join(parts) or "nothing", LONGEST_LABEL)
