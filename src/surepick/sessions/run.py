"""The policy's run inside a session: it takes complete batches in the order of the log and decides.

A run that follows recorded decisions (BetGapE) multiplies the wealth of the bets that were recorded; nothing
is decided again. Other policies decide again, which gives the recorded decision on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Onlooker, check_final_batch, n_asked, start
from surepick.core.problem import Problem
from surepick.core.run import Answer, Measure, Run, Standing, Stop, is_close
from surepick.core.run import Decision as Batch
from surepick.errors import MissingFunctionError, ParameterError, SessionError
from surepick.policies.betting.batch_run import BatchRun
from surepick.sessions.codec import arrays_from_json, arrays_to_json
from surepick.sessions.events import Asked, Decision, FinalBatch, Stopped
from surepick.sessions.evidence import RunStatistics
from surepick.sessions.setup import Body, Setup
from surepick.sessions.streams import Used
from surepick.simulation.outcome import State, end_of
from surepick.simulation.seeds import round_rng


class PolicyRun:
    """A run of the policy from the first batch on; `SessionState` alone changes it."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup  # as the last step of the log that the run has taken left it
        self.n_rounds = 0  # complete batches, or requests of a batch that is measured in parts
        self.statistics = RunStatistics(setup.problem)
        self._run: Run = start(setup.policy, setup.problem, setup.prior)
        # Whether recorded decisions hold all that fixes the bets, so that none is decided again.
        self.follows = isinstance(self._run, BatchRun)
        self._n_last: int | None = None  # measurements of the final batch until it is passed on
        self._gaussian = False  # whether its noise is Gaussian
        self._n_new = 0  # plans that the policy will know from its next decision on
        self._n_arms = setup.problem.n_arms  # that the policy knows
        self._has_grown = False
        self._idle_rng = round_rng(setup.seed, 0)  # for policies that draw nothing

    @property
    def can_grow(self) -> bool:
        """Whether plans may be added."""
        return isinstance(self._run, BatchRun) and self._run.has_final_batch

    # Looking

    def standing(self) -> Standing:
        """Return where the run stands."""
        standing, problem = self._run.standing(), self.setup.problem
        if not self._n_new:
            return standing
        assert isinstance(problem, Problem)  # nothing is known against plans that were added since
        new = range(problem.n_plans - self._n_new, problem.n_plans)
        remaining = None if standing.remaining is None else (*standing.remaining, *new)
        return replace(standing, risk=None if standing.risk is None else 1.0, remaining=remaining, good=())

    def log_evidence(self) -> FloatArray | None:
        """Return the log of the proved evidence against each rival of the leader, where the policy has it."""
        known = self._run.log_evidence()
        return known if known is None or not self._n_new else np.append(known, np.zeros(self._n_new))

    def proof(self) -> Mapping[str, Any] | None:
        """Return what proves the answer, where that can be checked by itself."""
        return self._run.proof() if isinstance(self._run, BatchRun) else None

    def check_final_batch(self) -> None:
        """Refuse a final batch where the policy has none, or none yet."""
        check_final_batch(self.setup.policy, self._run)
        if isinstance(self._run, BatchRun) and not self._run.may_call_final_batch:
            raise ParameterError(
                "the noise is still being learned; call the final batch after the next measurements",
                field="n",
            )

    # Steps of the log

    def absorb(self, batch: Sequence[Used], removed: Mapping[int, int]) -> None:
        """Take a complete batch; `removed` counts the uses of each probe that were removed from it."""
        problem = self.setup.problem
        counts, sums = self.statistics.add_batch(problem, batch)
        if problem.probes is None:  # the policy knows no arm that has just come with a plan
            counts, sums = counts[: self._n_arms], sums[: self._n_arms]
        gone = None
        if removed:
            gone = np.zeros_like(counts)
            for probe, n in removed.items():  # a plan probe is counted by the arms that it reads
                gone[list(problem.readings_of(probe)) if problem.plays else probe] += n
        if isinstance(self._run, BatchRun):
            values = _values(problem, batch) if self._run.needs_values else None
            self._run.absorb(counts, sums, gone, values)
        else:
            self._run.absorb(counts, sums)
        self.n_rounds += 1

    def continue_with(self, setup: Setup) -> None:
        """Take settings that changed: a budget, a smaller delta, plan probes, or a plan that was added.

        The policy knows the plan from its next decision on, or the end of a batch that is measured in parts.
        """
        before, self.setup = self.setup, setup
        if setup.policy != before.policy:
            assert isinstance(self._run, BatchRun)
            self._run.lower_delta(setup.policy, setup.policy.delta)
        if isinstance(setup.problem, Problem) and isinstance(before.problem, Problem):
            n_new = setup.problem.n_plans - before.problem.n_plans
            if n_new:
                self.statistics.lengthen(setup.problem.n_arms)
                self._n_new += n_new

    def call_final_batch(self, event: FinalBatch, n_missing: int) -> None:
        """Make the next measurements the last; the open batch still waits for some of them."""
        self._n_last, self._gaussian = event.n - n_missing, event.gaussian

    # Deciding

    def propose(self, number: int) -> Decision:
        """Return what to measure now, or the answer; `follow` makes it so."""
        self._prepare()
        run, batch, policy = self._run, None, self.setup.policy
        if isinstance(run, Onlooker):
            raise MissingFunctionError(
                "this session was opened to look at, without its function; load it again"
            )
        if isinstance(run, BatchRun) and not run.is_open:
            request: Measure | Stop | Batch = run.propose()
            if isinstance(request, Batch):
                batch, request = request, run.first_request(request)
        else:
            rng = round_rng(self.setup.seed, self.n_rounds) if policy.randomized else self._idle_rng
            request = run.decide(rng)
        if isinstance(request, Stop):
            answer, status = end_of(request, self.standing(), policy)
            plan = list(answer) if isinstance(answer, tuple) else answer
            return Stopped(number, str(status), plan, *self._numbers())
        if self._is_beyond_budget(n_asked(policy, request)):
            return Stopped(number, str(State.BUDGET_SPENT), None, *self._numbers())
        counts, plays = self._asked(request)
        return Asked(number, counts, plays, None if batch is None else batch.to_json())

    def follow(self, event: Decision, *, own: bool = False) -> None:
        """Follow a decision of the log; `own` says that this run has just proposed it."""
        self._prepare()
        run = self._run
        if isinstance(run, Onlooker):
            return
        if not isinstance(run, BatchRun):
            if not own:
                self.propose(event.number)  # which draws and notes what the policy draws and notes
        elif isinstance(event, Asked):
            if event.decision is not None:
                run.follow(run.recorded(event.decision))
            else:  # the next request of a batch that is measured in parts
                run.decide(self._idle_rng)
        if isinstance(event, Asked) and self._n_last is not None:  # asked for meanwhile, of its number
            self._n_last -= sum(n for _, n in event.counts)

    def check(self, event: Decision) -> None:
        """Refuse a decision that the policy does not, or may not, take here."""
        self._prepare()
        run = self._run
        if not isinstance(run, BatchRun):
            mine = self.propose(event.number)
            if not _same(mine, event):
                raise SessionError(f"the policy decides otherwise here: {mine!r:.200}", field="decision")
        elif isinstance(event, Stopped):
            self._check_stop(run, event)
        elif isinstance(event, Asked):
            self._check_batch(run, event)

    def _check_batch(self, run: BatchRun, event: Asked) -> None:
        """Refuse a batch that no run asks for here, or whose first request is another."""
        if run.is_open:
            request: Measure | Stop = run.decide(self._idle_rng)
            written: Body | None = None
        else:
            if event.decision is None:
                raise SessionError("it does not say what fixes its bets", field="decision")
            batch = run.recorded(event.decision)
            if objection := run.objection(batch):
                raise SessionError(objection, field="decision")
            request, written = run.first_request(batch), batch.to_json()
        if not isinstance(request, Measure):
            raise SessionError("the batch is complete", field="counts")
        counts, plays = self._asked(request)
        if not _same(Asked(event.number, counts, plays, written), event):
            raise SessionError("its counts are not those of its decision", field="counts")
        if self._is_beyond_budget(request.n_measurements):
            raise SessionError("it asks for more than the budget leaves", field="counts")

    def _check_stop(self, run: BatchRun, event: Stopped) -> None:
        """Refuse an answer that is not proved, and an end that neither budget nor final batch brings."""
        value_sum, wealth, policy = event.value_sum, event.wealth, self.setup.policy
        if value_sum is None or wealth is None or not all(map(is_close, run.numbers(), (value_sum, wealth))):
            raise SessionError("its sum or wealth is not what the values before it give", field="wealth")
        status = State.CONFIDENT
        if event.plan is None and event.status == status:
            if not (policy.may_find_none and run.proves(None)):
                raise SessionError("that no plan will do is not proved", field="plan")
        elif event.plan is None:
            own = run.decide(self._idle_rng) if run.is_open else run.propose()
            request = run.first_request(own) if isinstance(own, Batch) else own
            ends = isinstance(request, Stop) or self._is_beyond_budget(request.n_measurements)
            is_answer = isinstance(request, Stop) and (
                request.plan is not None or policy.finds_none(run.standing())
            )
            if not ends or is_answer:
                raise SessionError("it ends, and there was more to measure or an answer", field="plan")
            status = State.BUDGET_SPENT
        elif type(event.plan) not in (int, list) or not run.proves(as_answer(event.plan)):
            raise SessionError(f"plan {event.plan!r:.60} is not proved", field="plan")
        if event.status != str(status):
            raise SessionError(f"its status is {status}", field="status")

    def _prepare(self) -> None:
        """Take what has come since the last decision: plans, a budget and a final batch."""
        run, problem, budget = self._run, self.setup.problem, self.setup.budget
        if self._n_new:
            assert isinstance(run, BatchRun)
            assert isinstance(problem, Problem)
            if run.may_grow:
                run.grow(problem)
                self._n_new, self._n_arms, self._has_grown = 0, problem.n_arms, True
        if budget is not None:
            run.allow(budget - self.statistics.evidence.n_measurements)
        if self._n_last is not None and not self._n_new:
            run.call_final_batch(self._n_last, gaussian=self._gaussian)
            self._n_last = None

    def _numbers(self) -> tuple[float | None, float | None]:
        """Return the two numbers that every value moves, where the policy has them."""
        if not isinstance(self._run, BatchRun):
            return None, None
        value_sum, wealth = self._run.numbers()
        return float(value_sum), float(wealth)

    def _is_beyond_budget(self, n: int) -> bool:
        budget = self.setup.budget
        return budget is not None and self.statistics.evidence.n_measurements + n > budget

    def _asked(self, request: Measure) -> tuple[list[Any], list[Any]]:
        """Return what is asked for by number, and the arms of plan probes that were never asked for."""
        if request.plays is None:
            return [[arm, count] for arm, count in enumerate(request.counts.tolist()) if count], []
        counts, new = self.setup.problem.asked_plays.numbered(request.plays)
        return [list(pair) for pair in counts], [list(arms) for arms in new or ()]

    # Snapshots

    def to_json(self) -> Body | None:
        """Return the run as JSON values, or None when the policy does not say what its state is."""
        state = self._run.state()
        if self._n_new or state is None:
            return None
        if self._has_grown:  # a fresh start with the plans that came may be a run of another kind
            fresh = start(self.setup.policy, self.setup.problem, self.setup.prior)
            if type(fresh) is not type(self._run):
                return None
        return {
            **self.statistics.to_json(),
            "run": arrays_to_json(state),
            "n_rounds": self.n_rounds,
            "n_last": self._n_last,
            "gaussian": self._gaussian,
        }

    @classmethod
    def from_json(cls, setup: Setup, kept: Body) -> PolicyRun:
        """Return the run that was kept."""
        run = cls(setup)
        restored(run._run, kept["run"])
        run.statistics = RunStatistics.from_json(setup.problem, kept)
        run.n_rounds = kept["n_rounds"]
        run._n_last, run._gaussian = kept["n_last"], kept["gaussian"]
        return run


def _same(mine: Decision, theirs: Decision) -> bool:
    """Return whether two decisions are equal, to the last digit."""
    return type(mine) is type(theirs) and mine.encode() == theirs.encode()


def restored(fresh: Run, kept: Any) -> Run:
    """Return a fresh run turned into the one whose state was kept."""
    fresh.restore(arrays_from_json(kept))
    return fresh


def as_answer(plan: Any) -> Answer:
    """Return a plan that comes from JSON, where a vector is a list."""
    return tuple(plan) if isinstance(plan, list) else plan


def _values(problem: AnyProblem, batch: Sequence[Used]) -> dict[int, FloatArray]:
    """Return the values of a batch, (n_uses, n_readings) by probe, or (n_uses, 1) by arm of plan probes."""
    arrays = [
        (one.probe, np.array(one.uses).reshape(-1, len(problem.readings_of(one.probe)))) for one in batch
    ]
    if not problem.plays:
        return dict(arrays)
    by_arm: dict[int, list[FloatArray]] = {}
    for probe, uses in arrays:
        for arm, column in zip(problem.readings_of(probe), uses.T, strict=True):
            by_arm.setdefault(arm, []).append(column)
    return {arm: np.concatenate(columns)[:, None] for arm, columns in by_arm.items()}
