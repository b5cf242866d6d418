"""A look at a session: everything that is recorded of it at one moment, read once for all views."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.layout import Layout
from surepick.core.oracle_problem import OracleProblem
from surepick.core.policy import Answer, Policy, Standing, epsilon_of
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.design.allocation import optimal_allocation
from surepick.sessions.certificate import NoiseFinding, check_noise
from surepick.sessions.history import Sample
from surepick.sessions.ledger import Slot
from surepick.sessions.session import Session
from surepick.simulation.simulate import Status
from surepick.store import Head, Lease
from surepick.views.text import shortened

LONGEST_LABEL = 60  # letters of the name of a plan that has none of its own
LEAST_RISK = 1e-300  # a smaller one is shown as this one, which has a logarithm
LEAST_NEEDED = 1e-9
MOST_ALLOCATED = 256  # rivals that an allocation looks at: the closest; the others are satisfied by it
ALLOCATION_TOLERANCE = 0.02  # the estimates are rougher


class Gaps(NamedTuple):
    """Every plan against the lead: how far behind it is by the estimates, and how well that is known."""

    gap: FloatArray  # (n_plans,)
    error: FloatArray  # (n_plans,) its standard deviation under the noise scale
    order: IntArray  # the rivals, closest first: by gap in units of its error

    def z(self, epsilon: float = 0.0) -> FloatArray:
        """The gaps, and epsilon, in units of their errors; 0 where nothing is known."""
        known = np.isfinite(self.error) & (self.error > 0)
        return np.divide(self.gap + epsilon, self.error, out=np.zeros_like(self.gap), where=known)


@dataclass(frozen=True, eq=False)
class Look:
    """What a session has recorded; nothing is decided or written by looking.

    `at` gives the look that somebody would have had earlier, as far as the trace of the session goes back.
    """

    session: str
    store: str
    created_at: float
    now: float
    head: Head
    problem: Problem | OracleProblem
    layout: Layout | None
    policy: Policy  # as it was chosen or extended
    promise: Promise  # on the problem as it was given
    delta: float  # what the policy may spend: without the share of a pilot
    seed: int
    budget: int | None
    status: Status | None
    answer: Answer | None
    standing: Standing
    evidence: Evidence
    log_evidence: FloatArray | None  # (n_plans,) proved, against each plan as a rival of the lead
    n_told: int
    n_unasked: int
    n_unasked_counted: int
    n_rounds: int
    is_piloting: bool
    is_past: bool
    missing: tuple[tuple[int, int], ...]  # of the open round: arm, measurements that are not told yet
    first_tokens: tuple[str, ...]  # of the open round
    n_ahead: int
    leases: tuple[Lease, ...]
    decided_at: float | None  # when the last decision was recorded
    asked: tuple[tuple[int, int], ...]  # by that decision: arm, measurements
    samples: tuple[Sample, ...]
    surprises: tuple[int, ...]
    noise_findings: tuple[NoiseFinding, ...]

    @property
    def n_used(self) -> int:
        """Measurements that the policy has seen."""
        return self.evidence.n_measurements

    @property
    def n_missing(self) -> int:
        """Measurements that the open round waits for."""
        return sum(count for _, count in self.missing)

    @property
    def cost(self) -> float:
        """The price of the measurements that were used."""
        return float(self.evidence.counts @ self.problem.costs)

    @property
    def epsilon(self) -> float:
        """How much worse than the best the answer may be."""
        return epsilon_of(self.policy)

    @property
    def lead(self) -> Answer | None:
        """The answer; before there is one, the plan that looks best to the policy."""
        return self.standing.lead if self.answer is None else self.answer

    @cached_property
    def means(self) -> FloatArray:
        """The estimates of the arms; 0 where nothing was measured."""
        return np.nan_to_num(self.evidence.means)

    @cached_property
    def variance(self) -> FloatArray:
        """Of these estimates, under the noise scale; infinite where nothing was measured."""
        return mean_variance(self.problem, self.evidence)

    @cached_property
    def gaps(self) -> Gaps | None:
        """All plans against the lead; None while there is no lead, and where plans cannot be listed."""
        if not isinstance(self.lead, int) or isinstance(self.problem, OracleProblem):
            return None
        gap, error = self.comparing(self.lead, self.means, self.variance)
        gap[self.lead] = error[self.lead] = 0.0  # whatever rounding makes of it
        found = Gaps(gap, error, np.empty(0, dtype=np.int64))
        order = np.argsort(found.z(), kind="stable")
        return found._replace(order=order[order != self.lead])

    def comparing(self, plan: int, means: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How far every plan is behind this one, and the standard deviation of that."""
        assert isinstance(self.problem, Problem)
        row = self.problem.vector(plan) * self._sign
        gap = float(row @ means) - np.asarray(self._plans @ means)
        finite = np.isfinite(variance)
        known = np.where(finite, variance, 0.0)
        spread = float(row**2 @ known) - 2.0 * np.asarray(self._plans @ (row * known)) + self._squares @ known
        error = np.sqrt(np.maximum(spread, 0.0))
        if not finite.all():  # plans that differ from this one in an arm of which nothing is known
            apart = (
                self._squares @ (~finite) + float(row**2 @ ~finite) - 2.0 * (self._plans @ (row * ~finite))
            )
            error = np.where(apart > 1e-12 * (1.0 + float(row @ row)), np.inf, error)
        return gap, error

    @cached_property
    def rival_order(self) -> IntArray:
        """The rivals of a listed lead, those with the least evidence against them first, then the closest."""
        assert self.gaps is not None
        order = self.gaps.order
        if self.log_evidence is None:
            return order
        return order[np.argsort(np.maximum(self.log_evidence[order], 0.0), kind="stable")]

    @property
    def rival(self) -> Answer | None:
        """The rival that is hardest to rule out."""
        if self.gaps is not None:
            return int(self.rival_order[0])
        rival = self.standing.rival
        return None if rival == self.lead else rival

    @property
    def _sign(self) -> float:
        return -1.0 if self.problem.minimize else 1.0

    @cached_property
    def _plans(self) -> Any:
        assert isinstance(self.problem, Problem)
        return self.problem.oriented

    @cached_property
    def _squares(self) -> Any:
        plans = self._plans
        return plans**2 if isinstance(plans, np.ndarray) else plans.multiply(plans).tocsr()

    def values(self, means: FloatArray) -> FloatArray:
        """The value of every plan, larger is better, for each row of means: (n_rows, n_plans)."""
        return np.asarray(self._plans @ means.T).T

    def differences(self, lead: int, rivals: IntArray) -> FloatArray:
        """The lead minus each of these rivals, with the sign that makes larger better, as a dense array."""
        rows = self._plans[rivals]
        assert isinstance(self.problem, Problem)
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        return np.asarray(self.problem.vector(lead) * self._sign - dense)

    @property
    def matters(self) -> BoolArray:
        """Arms in which plans differ, as far as that is known."""
        if isinstance(self.problem, OracleProblem):
            return np.ones(self.problem.n_arms, dtype=bool)
        return self.problem.relevant

    @property
    def by_cost(self) -> bool:
        """Whether prices differ, so that the best allocation is the one of least cost."""
        return bool(np.ptp(self.problem.costs) > 0)

    @cached_property
    def best_shares(self) -> FloatArray | None:
        """The shares of measurements that rule out the closest rivals soonest, were the estimates right.

        Gaps are softened by one standard error, so that a rival that looks tied does not claim everything.
        None while there is no lead, and where plans are not listed.
        """
        if self.gaps is None or not np.isfinite(self.variance[self.matters]).all():
            return None
        assert isinstance(self.lead, int)
        close = self.gaps.order[:MOST_ALLOCATED]
        reach = np.maximum(self.gaps.gap[close] + self.epsilon, 0.0) ** 2 + self.gaps.error[close] ** 2
        squares = self.differences(self.lead, close) ** 2 * noise_variance(self.problem) / reach[:, None]
        costs = self.problem.costs if self.by_cost else None
        return optimal_allocation(squares, tolerance=ALLOCATION_TOLERANCE, costs=costs).weights

    def name_of(self, plan: Answer | None) -> str | None:
        """What to call this plan; one that has no name is called by its arms."""
        if plan is None:
            return None
        return self.problem.name_of(plan) or label(self.problem, self.vector(plan))

    def vector(self, plan: Answer) -> FloatArray:
        """The plan as one number per arm."""
        if isinstance(plan, int):
            assert isinstance(self.problem, Problem)
            return self.problem.vector(plan)
        return np.asarray(plan, dtype=float)

    def at(self, n_used: int) -> Look:
        """What a look showed when the policy had seen so many measurements: recorded, not computed again.

        The last sample of the trace at or before it; the first where there is none.
        """
        if n_used >= self.n_used or not self.samples:
            return self
        earlier = [sample for sample in self.samples if sample.n_used <= n_used]
        return self._as_of(earlier[-1] if earlier else self.samples[0])

    def _as_of(self, sample: Sample) -> Look:
        return replace(
            self,
            is_past=True,
            status=None,
            answer=None,
            standing=sample.standing,
            evidence=sample.evidence,
            log_evidence=None,
            n_rounds=sample.n_rounds,
            is_piloting=False,
            missing=(),
            first_tokens=(),
            leases=(),
            decided_at=None,
            asked=(),
            samples=tuple(kept for kept in self.samples if kept.n_rounds <= sample.n_rounds),
            noise_findings=(),
        )


def look(session: Session, *, n_used: int | None = None, n_tokens: int = 20) -> Look:
    """What the session has recorded up to now; or, with `n_used`, up to so many measurements.

    `n_tokens` is how many tokens of the open round are listed.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], arm_names=["road", "rail"])
    >>> session = sp.Session.create("memory://", problem, sp.CombGapE(), name="trips")
    >>> seen = look(session)
    >>> seen.n_used, seen.n_missing, seen.first_tokens
    (0, 2, ('0.0', '1.0'))
    """
    ledger = session.ledger()
    missing, first = _open_round(ledger.wanted(), n_tokens)
    decided_at, asked = _decision(session, ledger.n_rounds)
    standing, known = ledger.standing(), session.pilot is None
    now = Look(
        session=session.name,
        store=session.store.place,
        created_at=session.created_at,
        now=session.now(),
        head=session.fingerprint,
        problem=ledger.problem,
        layout=session.layout,
        policy=session.policy,
        promise=Promise.of(session.policy, session.given_problem),
        delta=ledger.policy.delta,
        seed=session.seed,
        budget=session.budget,
        status=ledger.status,
        answer=ledger.plan,
        standing=standing,
        evidence=ledger.evidence,
        log_evidence=ledger.log_evidence(),
        n_told=ledger.n_told,
        n_unasked=ledger.n_recorded,
        n_unasked_counted=ledger.n_counted,
        n_rounds=ledger.n_rounds,
        is_piloting=ledger.is_piloting,
        is_past=False,
        missing=missing,
        first_tokens=first,
        n_ahead=ledger.n_ahead,
        leases=tuple(session.leases()),
        decided_at=decided_at,
        asked=asked,
        samples=ledger.trace.samples,
        surprises=tuple(ledger.surprises),
        noise_findings=check_noise(ledger.problem, ledger.moments) if known else (),
    )
    if n_used is None or n_used >= now.n_used:
        return now
    past = now.at(n_used)
    when, asked = _decision(session, past.n_rounds)
    return replace(past, decided_at=when, asked=asked)


def _open_round(wanted: Iterable[Slot], n_tokens: int) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """How many measurements of each arm are missing, and the first tokens."""
    missing: dict[int, int] = {}
    first: list[str] = []
    for slot in wanted:
        missing[slot.arm] = missing.get(slot.arm, 0) + 1
        if len(first) < n_tokens:
            first.append(f"{slot.arm}.{slot.place}")
    return tuple(missing.items()), tuple(first)


def _decision(session: Session, n_rounds: int) -> tuple[float | None, tuple[tuple[int, int], ...]]:
    """When the decision after so many rounds was recorded, and what it asked for."""
    event = session.decision(n_rounds)
    if event is None:
        return None, ()
    counts = json.loads(event.body).get("counts", ())
    return event.time, tuple((arm, count) for arm, count in counts)


def mean_variance(problem: Problem | OracleProblem, evidence: Evidence) -> FloatArray:
    """The variance of each arm's mean under the noise scale; infinite where nothing was measured."""
    nothing = np.full(problem.n_arms, np.inf)
    return np.asarray(
        np.divide(noise_variance(problem), evidence.counts, out=nothing, where=evidence.counts > 0)
    )


def noise_variance(problem: Problem | OracleProblem) -> FloatArray:
    """The variance of one measurement of each arm; 1 while it is unknown."""
    return np.ones(problem.n_arms) if problem.noise_scale is None else problem.noise_scale**2


def label(problem: Problem | OracleProblem, vector: FloatArray) -> str:
    """A plan by what it uses, cut off where it gets long.

    >>> label(Problem([[1, 0], [0, 2]], arm_names=["road", "rail"]), np.array([1.0, 2.0]))
    'road + 2 rail'
    """
    used = np.flatnonzero(vector)
    parts = [
        problem.arm_names[s] if vector[s] == 1 else f"{vector[s]:.3g} {problem.arm_names[s]}" for s in used
    ]
    return shortened(" + ".join(parts) or "nothing", LONGEST_LABEL)


class Weight(NamedTuple):
    """What speaks against the closest rival of the lead, as logarithms."""

    log_evidence: float
    needed: float  # at which the policy would rule the rival out
    proved: bool  # valid at any moment, by the policy's own proof

    @property
    def toward(self) -> float:
        """The share of what is needed that is there, between 0 and 1."""
        return min(1.0, self.log_evidence / self.needed)


def weigh(look: Look, standing: Standing, evidence: Evidence) -> Weight | None:
    """The evidence against the closest rival; None while there is none.

    Where the policy has a proved risk, the evidence is 1/risk and has to reach 1/delta. Otherwise it is how
    many times more likely the measurements are under the estimated gap than under a tie, exp(z^2/2) for a
    gap of z standard errors, and what is needed follows from the policy's own radius in the same way.
    """
    plain = math.log(1 / look.delta)
    if standing.risk is not None:
        return Weight(-math.log(max(standing.risk, LEAST_RISK)), plain, True)
    if standing.lead is None or standing.rival is None:
        return None
    gap, error = pair(look, evidence, standing.lead, standing.rival)
    if not 0 < error < math.inf:
        return None
    z = max(gap + look.epsilon, 0.0) / error
    asked = plain if standing.radius is None else (standing.radius / error) ** 2 / 2
    return Weight(z**2 / 2, max(asked, LEAST_NEEDED), False)


def pair(look: Look, evidence: Evidence, lead: Answer, rival: Answer) -> tuple[float, float]:
    """How far the rival is behind the lead by this evidence, and the standard deviation of that."""
    sign = -1.0 if look.problem.minimize else 1.0
    difference = sign * (look.vector(lead) - look.vector(rival))
    differs = difference != 0
    variance = mean_variance(look.problem, evidence)[differs]
    gap = float(difference @ np.nan_to_num(evidence.means))
    return gap, math.sqrt(float(difference[differs] ** 2 @ variance))
