"""A run of batches, the same for every question, kind of noise and set of probes.

`propose` names the next batch and changes nothing. `follow` takes a proposal, of this run or as it was
recorded, and fixes everything before the batch: its counts (of each of its equal replicates, where the noise
is unknown), the leader and the bets. `settle` multiplies the wealth by what the batch's own averages show,
and the batch joins what guides the next ones. `decide` and `absorb` are the same for a loop that measures
request by request.

All that a run knows follows from the recorded decisions and the values: a run that follows them has the
wealth, the answer and the next proposal of the run that took them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, divided, golden_multiples
from surepick.core.base_problem import BOUNDED_VARIANCE
from surepick.core.oracle_problem import AnyProblem
from surepick.core.prior_data import PriorData
from surepick.core.problem import Problem
from surepick.core.run import Answer, Decision, Measure, Run, Standing, Stop, is_close
from surepick.errors import ParameterError, ProblemError
from surepick.inference.bounded import BatchReadings, BoundedNoise
from surepick.inference.contrasts import arm_probes, readings_of
from surepick.inference.factors import BoundedVariance, SubGaussian
from surepick.inference.learned_scale import Scatter
from surepick.inference.noise import Noise, NoiseEstimate, recorded_noise, with_noise
from surepick.inference.wealth import Account, Wealth
from surepick.policies.betting import run_state
from surepick.policies.betting.batch import Batch, FinalBatch
from surepick.policies.betting.batch_design import WORKING_SET, BatchDesign
from surepick.policies.betting.estimates import BatchResult, Estimates
from surepick.policies.betting.list_question import ListQuestion
from surepick.policies.betting.question import NO_LEADER, PlannedBatch, Question


@dataclass(eq=False)
class Sums:
    """Uses of probes, and the sums of their readings."""

    uses: FloatArray
    sums: FloatArray

    def plus(self, uses: FloatArray | IntArray, sums: FloatArray) -> Sums:
        """Return these with more."""
        return Sums(self.uses + uses, self.sums + sums)


class BatchRun(Run):
    """A run of batches for one question; changed by the loop or session that started it."""

    STATE: ClassVar[tuple[str, ...]] = (
        *("counts", "sums", "_prior", "_batch", "_final", "_design", "_noise", "_question"),
    )
    KINDS: ClassVar[tuple[type, ...]] = (Account, Wealth, Batch, Decision, FinalBatch, Sums)

    def __init__(
        self, problem: AnyProblem, policy: Any, question: Question, noise: Noise | None = None
    ) -> None:
        """Prepare a run that has measured nothing, and design its first batch.

        - problem: gives the probes, their noise and costs, and what is known of means.
        - policy: gives its `name` and `max_batch`, and nothing else.
        - question: the claim to prove and the bets for it. A list of plans is bound to the readings here.
        - noise: what is known of the noise, if not what the problem says.
        """
        self._policy = policy
        self._question = question
        self._setup_cost = problem.setup_cost
        self._set_known_means(problem)
        self._noise = _noise_of(problem, self._bounds) if noise is None else noise
        self._factor = self._noise.factor
        self._readings = readings_of(self._noise.probes())

        n_probes, n_readings = len(self._readings.probes), self._readings.probes.n_readings
        # uses of probes and sums of readings in complete batches: the evidence
        self.counts = np.zeros(n_probes, dtype=np.int64)
        self.sums = np.zeros(n_readings)
        self._prior = Sums(np.zeros(n_probes), np.zeros(n_readings))  # guides; never counts as evidence

        if isinstance(problem, Problem) and isinstance(question, ListQuestion):
            question.bind(self._readings, problem.plan_parts)
        self._design: Any = BatchDesign(self._readings, self._setup_cost, question.pace)
        targets, contrasts = question.first_contrasts(WORKING_SET)
        if len(contrasts):
            self._design.begin(targets, contrasts)
        else:
            self._design.first_cover[:] = False  # the answer is known without a measurement

        self._batch: Batch | None = None  # the open one
        self._bets: list[Any] = []  # on the open batch; derived from its decision and the batches before it
        self._proposal: Decision | Stop | None = None  # cached until something changes
        self._final: FinalBatch | None = None
        self._budget: int | None = None
        self._refresh()

    def _set_known_means(self, problem: AnyProblem) -> None:
        """Set the bounds on means and readings, and what arms of known mean add to each reading.

        The latter is subtracted from readings and their bounds. Bounds on readings are used if the question
        bets on single gaps (`learns_variance`); otherwise they only give a noise scale.
        """
        self._mean_bounds = problem.mean_bounds
        self._known_parts: FloatArray | None = None
        self._bounds = problem.bounds if self._question.learns_variance else None
        if problem.probes is not None and problem.is_known.any():
            self._known_parts = np.asarray(problem.probes.rows @ problem.known_means)
            if self._bounds is not None:
                self._bounds = self._bounds - self._known_parts[:, None]

    def _refresh(self) -> None:
        """Derive from the state what the next decision needs."""
        if self._noise.is_learned:
            self._readings = readings_of(self._noise.probes(), self._readings.basis)
        self._estimate()

    def _estimate(self) -> None:
        """Derive estimates and the largest average from what is known of the noise now."""
        readings = self._readings
        known = self._prior.plus(self.counts, self.sums)
        self._design.readings = readings
        first = readings.matrix(self._design.first_cover)
        self._estimates = Estimates(readings, first, self.counts, known.uses, known.sums)
        if self._mean_bounds is not None and readings.basis is None:
            self._estimates.means = np.clip(self._estimates.means, *self._mean_bounds.T)
        self._largest = 0.0
        if readings.basis is not None:  # bounds the bias of mixed readings
            n = known.uses[readings.owner]
            averages = divided(known.sums, n)
            self._largest = float(np.abs(readings.probes.whiten(averages)).max())

    @property
    def _is_started(self) -> bool:
        """Whether something is known of all that a first batch measures."""
        return bool(self._noise.is_known(self._estimates.uses)[self._design.first_cover].all())

    # deciding

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return the next request of the batch, or the answer."""
        del rng  # nothing is drawn
        if self._batch is not None:
            return self._batch.next_measure(self._policy.max_batch)
        decision = self.propose()  # followed when its first measurements come
        return decision if isinstance(decision, Stop) else self.first_request(decision)

    def first_request(self, decision: Decision) -> Measure:
        """Return the first request of the batch that this decision opens."""
        return self._opened(decision).next_measure(self._policy.max_batch)

    @property
    def is_open(self) -> bool:
        """Whether a batch is being measured, in several requests."""
        return self._batch is not None

    def propose(self) -> Decision | Stop:
        """Return the next batch, or the answer. Nothing changes: a proposal may be thrown away."""
        if self._proposal is None:
            self._proposal = self._propose()
        return self._proposal

    def _propose(self) -> Decision | Stop:
        """Return the first of these that applies; all of it depends on complete batches alone.

        1. Stop: the question is answered, or the final batch is over.
        2. The first batch: every arm that matters is measured, and nothing leads.
        3. A batch without bets that finds out which plan should lead, if the question asks for one.
        4. A batch that bets on the leader against its rivals: as many measurements as the design allocates to
           the targets, cut to the budget; in a final batch, all that are left.
        """
        question, estimates, final = self._question, self._estimates, self._final
        fewest, _ = self._factor.replicates
        if question.is_answered:
            return Stop(question.answer())
        if final is not None and (final.is_over or final.left <= 0):
            return Stop(None)
        design = copy.copy(self._design)
        if not self._is_started:
            uses = design.first_counts(self._noise.is_known(estimates.uses), self._noise.first_uses)
            batch = PlannedBatch(None, uses, design.dual, self._bets_at_once)
            terms = question.terms(estimates, batch) | design.more()
            noise = self._noise.terms(self._readings.probes) if batch.has_bets else {}
            return self._decision(uses, fewest, terms | noise)
        rivals = question.unresolved()
        targets = question.targets(estimates, rivals)
        if final is None and not self._setup_cost:
            searching = question.search(estimates, targets)
            if searching is not None:  # a batch without bets, unless it cannot be afforded
                uses = -(-searching // fewest)
                if self._budget is None or int(uses.sum()) * fewest <= self._budget:
                    return self._decision(uses, fewest, {})
        found = design.counts(targets, self.counts, self._factor.replicates)
        if final is not None:
            found = design.final_counts(targets, final.left, self._factor.replicates)
        elif self._budget is not None and fewest <= self._budget:
            found = design.cut(*found, self._budget, fewest)
        if found is None:
            return Stop(None)
        uses, n_replicates = found
        batch = PlannedBatch(targets, uses * n_replicates, design.dual, has_bets=final is None)
        with np.errstate(invalid="ignore"):  # where all earlier values of an arm were removed
            terms = question.terms(estimates, batch)
        terms = terms | design.more() | self._noise.terms(self._readings.probes)
        return self._decision(uses, n_replicates, terms, question.named_leader, rivals)

    def _decision(
        self,
        uses: IntArray,
        n_replicates: int,
        terms: Mapping[str, Any],
        leader: Any = NO_LEADER,
        rivals: IntArray | None = None,
    ) -> Decision:
        """Return a batch as a decision, with what it records of the values before it."""
        is_final = self._final is not None and rivals is not None
        rivals = np.zeros(0, dtype=np.int64) if rivals is None else rivals
        return Decision(leader, rivals, uses, n_replicates, is_final, terms, *self._numbers(leader))

    def _numbers(self, leader: Any) -> tuple[float, float]:
        """Return what a decision records of the values before it."""
        weights = 1.0 + golden_multiples(len(self.sums))
        return float(weights @ self.sums), self._question.recorded_wealth(leader)

    def follow(self, decision: Decision) -> None:
        """Open this batch, perhaps as recorded: stake, and fix its bets, by it and the batches before it."""
        self._use_noise_of(decision)
        if self._has_bets(decision):
            self._question.follow(decision, self._estimates)
        elif self._is_started:
            self._question.planned += decision.n_measurements
        if not decision.is_first:
            self._design.start_from(decision.uses * self._readings.costs, decision.more)
        self._batch, self._proposal = self._opened(decision), None
        self._fix_bets(decision)

    def _use_noise_of(self, decision: Decision) -> None:
        """Bet by the noise that was recorded, should this machine have rounded it otherwise."""
        recorded = decision.more
        if "noise" not in recorded:
            return
        own = recorded_noise(self._readings.probes)
        is_same_scale = np.array_equal(own["noise"], recorded["noise"])
        if not is_same_scale or own.get("factors") != recorded.get("factors"):
            probes = with_noise(self._readings.probes, recorded)
            self._readings = readings_of(probes, self._readings.basis)
            self._estimate()

    def _fix_bets(self, decision: Decision) -> None:
        """Fix the bets of the open batch."""
        has_bets = self._has_bets(decision)
        self._bets = self._question.bets(decision, self._estimates) if has_bets else []

    def _has_bets(self, decision: Decision) -> bool:
        """Return whether a batch has bets or, if it is final, tests; there is none without a leader."""
        return self._bets_at_once or not decision.is_first

    @property
    def _bets_at_once(self) -> bool:
        """Whether there are bets in the first batch; unknown noise has to show first what a size is worth."""
        is_blank = not self._estimates.uses.any() and self._factor.replicates == (1, 1)
        return self._question.bets_at_once and is_blank

    def objection(self, decision: Decision) -> str | None:
        """Return why no run takes this decision here, or None; what is free need not be as proposed."""
        question, final = self._question, self._final
        fewest, most = self._factor.replicates
        if not fewest <= decision.n_replicates <= most:
            return f"it has {decision.n_replicates} replicates"
        if not decision.uses.any():
            return "it measures nothing"
        if not decision.is_first and (why := question.leader_objection(decision.leader)):
            return why
        if not all(map(is_close, self._numbers(decision.leader), (decision.value_sum, decision.wealth))):
            return "its sum or wealth is not what the values before it give"
        if not self._is_started or (decision.is_first and final is None):
            if not decision.is_first or len(decision.rivals) or decision.is_final:
                return "it bets without a leader, or before every arm was measured"
            return self._terms_objection(decision) if self._bets_at_once else None
        if decision.is_first:
            return "it has no leader"
        if final is not None and (final.is_over or not self._is_called_for(decision, final.left)):
            return "it does not measure what was called for"
        if decision.is_final != (final is not None):
            return "it says otherwise whether it is the final batch"
        return self._terms_objection(decision) or question.rival_objection(decision)

    def _terms_objection(self, decision: Decision) -> str | None:
        """Return why these are not the terms of bets, or None; sizes are free."""
        checks = {**self._question.checks(decision), **self._noise.checks(self._readings.probes)}
        for name in sorted(checks.keys() | decision.more.keys()):
            if name not in checks or not checks[name](decision.more.get(name)):
                return f"its {name!r} is not what a run records"
        return None

    def _is_called_for(self, decision: Decision, left: int) -> bool:
        """Return whether a final batch uses what was called for."""
        return int(decision.uses.sum()) == left // decision.n_replicates

    def recorded(self, body: Mapping[str, Any]) -> Decision:
        """Return the decision that was recorded like this; a ValueError if it is none."""
        return Decision.from_json(body, self._question.n_plans, len(self.counts))

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this answer is proved, up to rounding."""
        return self._question.proves(plan)

    def lower_delta(self, policy: Any, delta: float) -> None:
        """Continue with this policy, which has a smaller delta: the same bets, at a higher threshold.

        Rivals reopen where the evidence against them is below it. What is proved stays true: the wealth
        against the truth reaches 1/delta with a probability of at most delta, for every delta at once that is
        fixed beforehand; one that was chosen by the values is an assumption (`certify`).
        """
        self._policy, self._proposal = policy, None
        self._question.set_delta(delta)
        if self._batch is None and self._is_started:
            self._question.choose(self._estimates)

    def _opened(self, decision: Decision) -> Batch:
        """Return the batch of this decision, of which nothing has been measured."""
        return Batch.open(decision, len(self.sums))

    @property
    def has_final_batch(self) -> bool:
        """Whether the run can end with a final batch; then plans may also arrive."""
        return not self._question.is_fixed

    @property
    def may_call_final_batch(self) -> bool:
        """Whether a final batch may be called now."""
        return True

    def allow(self, left: int) -> None:
        """Cut the next batch to this many measurements; the first one, which needs a cover, is never cut."""
        if left != self._budget:
            self._budget, self._proposal = left, None

    def call_final_batch(self, n: int, *, gaussian: bool) -> None:
        """Make what an open batch leaves of these n measurements one final batch, which is a test."""
        if self._final is not None:
            raise ParameterError("a final batch was called already; it ends the run", field="final_batch")
        batch = self._batch
        begun = 0 if batch is None else batch.n_measurements - batch.n_missing
        self._final, self._proposal = FinalBatch(n + begun, gaussian), None

    # absorbing

    @property
    def needs_values(self) -> bool:
        """Whether `absorb` needs the readings one by one, not only their sums."""
        return self._noise.needs_values

    def absorb(
        self,
        counts: IntArray,
        sums: FloatArray,
        removed: IntArray | None = None,
        values: Mapping[int, FloatArray] | None = None,
    ) -> None:
        """Add the complete answer to the last request; settle the bets when the batch is complete.

        With `removed`, so many uses of each probe were asked for and are not among the counts: their values
        were no measurements. `values` are the readings of each probe that was used, where they are needed.
        """
        removed = np.zeros_like(counts) if removed is None else removed
        request = self.decide()
        if isinstance(request, Stop) or not np.array_equal(counts + removed, request.counts):
            raise ParameterError(
                f"{self._policy.name} takes the complete answer to its last request: "
                "its bets hold for counts that were fixed before the first measurement"
            )
        if self._batch is None:
            decision = self.propose()
            assert isinstance(decision, Decision)
            self.follow(decision)
        batch = self._batch
        assert batch is not None
        batch.add(counts, self._without_known(counts, sums), removed)
        if self._noise.needs_values:
            for probe in np.flatnonzero(counts).tolist():
                own = self._noise.complete(probe, (values or {}).get(probe, ()), int(counts[probe]))
                if self._known_parts is not None:
                    own = own - self._known_parts[self._readings.probes.readings_of(probe)]
                batch.keep(probe, self._noise.within(probe, own))
        if batch.is_complete:
            self.settle(batch)

    def _without_known(self, counts: IntArray, sums: FloatArray) -> FloatArray:
        """Return the sums of readings without what arms of known means add to them."""
        if self._known_parts is None:
            return sums
        return np.asarray(sums - counts[self._readings.owner] * self._known_parts)

    def settle(self, batch: Batch) -> None:
        """Multiply wealth by the factors of the bets, and let the complete batch guide the next ones."""
        has_replicates = self._factor.replicates != (1, 1)
        counted = batch.without_removed(replicates=has_replicates)
        if counted is not None:
            averages = counted.averages(self._readings.owner)
            if self._bets:
                self._settle(counted, averages if has_replicates else averages[:, 0])
            self._noise.add(counted.uses, averages, counted.values)
            self.counts = self.counts + counted.counts
            self.sums = self.sums + (counted.sums + counted.lost).sum(axis=0)
        if self._final is not None:
            self._final.left -= batch.n_measurements
            self._final.is_over = batch.decision.is_final
        self._batch = None
        self._join()

    def _settle(self, batch: Batch, averages: FloatArray) -> None:
        """Let the question multiply its wealth by what this batch alone has shown."""
        shown = self._noise.shown(batch.values, batch.decision.more)
        result = BatchResult(
            readings=self._readings,
            factor=self._factor,
            uses=batch.uses,
            averages=averages,
            largest=self._largest,
            is_final=batch.decision.is_final,
            gaussian=self._final is not None and self._final.gaussian,
            bounded=shown if isinstance(shown, BatchReadings) else None,
            scatter=shown if isinstance(shown, Scatter) else None,
        )
        self._question.settle(self._bets, result)

    def _join(self) -> None:
        """Look at everything anew, and choose the next leader."""
        self._proposal = None
        self._refresh()
        if self._is_started and not (self._final is not None and self._final.is_over):
            self._question.choose(self._estimates)

    def remember(self, prior: PriorData) -> None:
        """Begin with prior data: they guide leader, design and bets from the start, and settle none."""
        self._prior = self._prior.plus(prior.worth, prior.worth * prior.means)
        self._join()

    # plans that arrive

    @property
    def may_grow(self) -> bool:
        """Whether no batch is open: its counts and bets were fixed without the new plans."""
        return self._batch is None

    def grow(self, problem: Problem) -> None:
        """Continue with the plans and arms of this problem, the old ones first; between two batches."""
        if not self.may_grow or self._final is not None:
            raise ParameterError("plans arrive between two batches, and not after a final batch was called")
        question = self._question
        if not isinstance(question, ListQuestion):
            raise ProblemError("only a list of plans can grow; begin a new session", field="plans")
        n_old = question.n_plans
        self._set_known_means(problem)
        probes = arm_probes(problem)
        n, m = len(probes), probes.n_readings
        self.counts = np.append(self.counts, np.zeros(n - len(self.counts), dtype=np.int64))
        self.sums = np.append(self.sums, np.zeros(m - len(self.sums)))
        uses, sums = self._prior.uses, self._prior.sums
        self._prior = Sums(np.append(uses, np.zeros(n - len(uses))), np.append(sums, np.zeros(m - len(sums))))
        self._noise.extend(probes, self._bounds)
        self._readings = readings_of(probes, self._readings.basis)
        question.grow(problem.plan_parts, self._readings, n)
        stays = question.contenders()
        new = np.unique(np.append(stays[0], stays[stays >= n_old]))
        contrasts = question.contrasts(np.full(len(new), stays[0]), new)
        self._design.extend(self._readings, contrasts)
        self._join()

    # looking, which changes nothing

    def standing(self) -> Standing:
        """Return the leader, its closest rival, and the risk of declaring the leader now."""
        if not (self._is_started and self._question.has_leader):
            return Standing()
        return self._question.standing(self._estimates)

    def numbers(self) -> tuple[float, float]:
        """Return a weighted sum of all values, and the mean log wealth against rivals."""
        return self._numbers(self._question.named_leader)

    def log_evidence(self) -> FloatArray | None:
        """Return the log evidence against each plan of a list, as a rival of the leader; out at 1/delta."""
        question = self._question
        if not isinstance(question, ListQuestion):
            return None
        return question.evidence(question.leader) - math.log(question.n_claims)

    def proof(self) -> Mapping[str, Any] | None:
        """Return what proves the answer without the run, as JSON values; None where nothing does."""
        return self._question.proof()

    def noise_estimate(self) -> FloatArray:
        """Return the standard deviation of each reading, as stated or as it is estimated now."""
        return self._readings.probes.noise_scale

    def state(self) -> dict[str, Any]:
        """Return all that a fresh run needs to become this one."""
        return run_state.state_of(self)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._proposal = None
        run_state.restore(self, state, (*self.KINDS, *self._question.KINDS))
        self._refresh()
        if self._batch is not None:
            self._use_noise_of(self._batch.decision)
            self._fix_bets(self._batch.decision)


def _noise_of(problem: AnyProblem, bounds: FloatArray | None) -> Noise:
    """Return what is known of the noise of a problem: its size, bounds of readings, or nothing."""
    probes = arm_probes(problem)
    if not problem.knows_noise:
        return NoiseEstimate(probes)
    if bounds is not None:
        return BoundedNoise(probes, bounds)
    return Noise(probes, BoundedVariance() if problem.noise_kind == BOUNDED_VARIANCE else SubGaussian())
