"""A run of the policy inside a session: complete rounds, unasked measurements and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Onlooker, Policy, delta_of, last_calling, n_asked, recalling, start
from surepick.core.problem import Problem
from surepick.core.run import (
    BudgetedRun,
    FollowingRun,
    GrowingRun,
    Measure,
    ProvingRun,
    Run,
    Standing,
    Stop,
    ValueRun,
    WeighingRun,
    is_close,
    parts_of,
    standing_of,
)
from surepick.core.run import Decision as Batch
from surepick.errors import SessionError
from surepick.sessions import codec
from surepick.sessions.history import Sample, Trace
from surepick.sessions.seen import Seen
from surepick.sessions.settings import Body, Setup
from surepick.sessions.snapshot import as_answer, from_json, restore_run, run_to_json, to_json
from surepick.sessions.tapes import Used
from surepick.simulation.outcome import Status, end_of
from surepick.simulation.seeds import round_rng


class Decision(NamedTuple):
    """What the policy decides: the kind and the body of the event that records it."""

    kind: str
    body: Body


class Asleep(NamedTuple):
    """The policy's own run as a snapshot has it, and what may be asked of it without compiled code."""

    state: Any
    standing: Standing
    log_evidence: FloatArray | None
    counts_unasked: bool


class PolicyRun:
    """A run of the policy from the beginning of the tapes, and what it has seen of them.

    It changes by `absorb`, `add_unasked` and `decide`, which the ledger calls and nobody else; a session that
    is extended to another policy begins a new one. One from a snapshot is asleep until the policy has
    something to do: to look at it takes neither the policy nor its compiled code.
    """

    def __init__(self, setup: Setup, *, is_kept: bool = False) -> None:
        self.setup = setup
        self.problem: AnyProblem = setup.problem
        self.policy: Policy = setup.policy
        self.n_rounds = 0
        self.seen = Seen(setup.problem)
        self.trace = Trace(self.seen.none())
        self._counted: list[int] = []  # unasked measurements, by the numbers of their events
        self.called: Body | None = None  # the event of the last call
        self._n_last: int | None = None  # of its measurements, after the open round and until it is due
        self._n_new = 0  # plans that the policy will know from its next decision on
        self._n_arms = setup.problem.n_arms  # that the policy knows
        self._has_grown = False
        # Event, probe and readings, to be counted when the open round is complete.
        self._unasked: list[tuple[int, int, list[float]]] = []
        self._idle_rng = round_rng(setup.seed, 0)  # for policies that draw nothing
        self._asleep: Asleep | None = None
        self._own: Run | None = None
        if not is_kept:
            self._own = start(self.policy, self.problem, setup.past)

    @property
    def _run(self) -> Run:
        """The policy's own run, awake."""
        if self._asleep is not None:
            self._own = start(self.policy, self.problem, self.setup.past)
            restore_run(self._own, self._asleep.state)
            self._asleep = None
        assert self._own is not None
        return self._own

    @property
    def is_awake(self) -> bool:
        """Whether the policy's own run is at work, and not only kept."""
        return self._own is not None

    @property
    def counts_unasked(self) -> bool:
        """Whether the policy's proof allows measurements that nobody asked for, so that they are counted."""
        if self._asleep is not None:
            return self._asleep.counts_unasked
        return recalling(self.policy, self._run, unasked=True) is not None

    def standing(self) -> Standing:
        """Where the run stands."""
        if self._asleep is not None:
            return self._asleep.standing
        standing = self._run.standing()
        return _with_new(standing, self.problem, self._n_new) if self._n_new else standing

    def log_evidence(self) -> FloatArray | None:
        """Log of the proved evidence against each plan as a rival of the lead, where the policy has it."""
        if self._asleep is not None:
            return None if self._asleep.log_evidence is None else self._asleep.log_evidence.copy()
        known = self._run.log_evidence() if isinstance(self._run, WeighingRun) else None
        return known if known is None or not self._n_new else np.append(known, np.zeros(self._n_new))

    def proof(self) -> Mapping[str, Any] | None:
        """What proves the answer, where the policy has it in a form that can be checked by itself."""
        return self._run.proof() if isinstance(self._run, ProvingRun) else None

    def call_last(self, body: Body, n_missing: int) -> None:
        """Make the last call, of body["n"] measurements; the open round still waits for some of them."""
        if self.called is not None:
            raise SessionError("the last call was made already; nothing comes after it")
        self.check_last_call()
        self.called, self._n_last = body, body["n"] - n_missing

    def check_last_call(self) -> None:
        """Refuse a last call where the policy has none."""
        last_calling(self.policy, self._run)

    @property
    def follows(self) -> bool:
        """Whether recorded decisions hold all that fixes the bets, so that none is decided again."""
        return bool(getattr(self._run, "can_follow", False))

    def absorb(self, used: Sequence[Used], removed: Mapping[int, int] | None = None) -> None:
        """Take in a complete round, of which so many uses of probes were removed."""
        counts, sums = self.seen.add_round(used)
        known = self._known(counts, sums)
        gone = None
        if removed:
            gone = np.zeros_like(known[0])
            for probe, n in removed.items():  # a play is counted by the arms that it reads
                gone[list(self.problem.readings_of(probe)) if self.problem.plays else probe] += n
        if isinstance(self._run, ValueRun) and self._run.needs_values:
            columns = dict[int, list[list[float]]]()  # by probe, its readings in order
            for one in sorted(used, key=lambda one: one.reading):
                columns.setdefault(one.probe, []).append(one.values)
            values = {probe: np.column_stack(own) for probe, own in columns.items()}
            self._run.absorb(*known, gone, values)
        elif isinstance(self._run, FollowingRun):
            self._run.absorb(*known, gone)
        else:
            self._run.absorb(*known)
        self.n_rounds += 1

    @property
    def n_unasked_counted(self) -> int:
        """How many unasked measurements the policy has taken in."""
        return len(self._counted)

    def add_unasked(self, position: int, probe: int, use: list[float]) -> None:
        """Keep the unasked measurement of this event until the next decision, if it can be counted at all.

        `use` has all readings of the probe.
        """
        if not self.problem.arms_alone or self.problem.relevant[probe]:
            self._unasked.append((position, probe, use))

    def has_counted(self, position: int) -> bool:
        """Whether the policy has taken in the unasked measurement of this event."""
        return position in self._counted

    def drop_unasked(self, position: int) -> None:
        """Forget an unasked measurement that the policy has not taken in."""
        self._unasked = [kept for kept in self._unasked if kept[0] != position]

    @property
    def can_grow(self) -> bool:
        """Whether plans may be added."""
        return isinstance(self._run, GrowingRun)

    def grow(self, setup: Setup) -> None:
        """Take in a plan from the next decision on, or the end of a block that is measured in parts."""
        assert isinstance(setup.problem, Problem)
        _ = self._run  # awake, with the plans that its state is about
        self.setup, self.problem = setup, setup.problem
        self.seen.lengthen(self.problem.n_arms)
        self.trace.lengthen(self.problem.n_arms)
        self._n_new += 1

    def _grow(self) -> None:
        assert isinstance(self._run, GrowingRun)
        assert isinstance(self.problem, Problem)
        if self._run.may_grow:
            self._run.grow(self.problem)
            self._n_new, self._n_arms, self._has_grown = 0, self.problem.n_arms, True

    def _call_last(self) -> None:
        """Pass the last call on, when the plans that have come before it are known to the policy."""
        if self.called is not None and self._n_last is not None and not self._n_new:
            last_calling(self.policy, self._run).call_last(self._n_last, gaussian=self.called["gaussian"])
            self._n_last = None

    def know_plays(self, setup: Setup) -> None:
        """Go on with the same problem, of which more plays have been asked for."""
        self.setup, self.problem = setup, setup.problem

    def go_on_with(self, setup: Setup) -> None:
        """Take another budget, or a smaller delta of a policy that follows, from here on."""
        if setup.policy != self.setup.policy:
            assert isinstance(self._run, FollowingRun)
            self.policy = setup.policy
            self._run.lower_delta(setup.policy, delta_of(setup.policy))
        self.setup = setup

    def decide(self) -> Decision | None:
        """What to measure now that a complete round was seen, or the answer; None of who can only look."""
        self._prepare()
        if isinstance(self._run, Onlooker):
            return None
        proposal, decision = None, self._next()
        if isinstance(decision, Batch):
            assert isinstance(self._run, FollowingRun)
            proposal, decision = decision, self._run.first_request(decision)
        if isinstance(decision, Stop):
            answer, status = end_of(decision, self.standing(), self.setup.policy)
            plan = list(answer) if isinstance(answer, tuple) else answer
            return Decision("stopped", {"status": str(status), "plan": plan, **self._numbers()})
        n = n_asked(self.policy, decision)
        if self._is_beyond_budget(n):
            return Decision("stopped", {"status": str(Status.BUDGET_SPENT), "plan": None, **self._numbers()})
        self._note_asked(n)
        body = {"round": self.n_rounds, **self._asked(decision)}
        if proposal is not None:
            assert isinstance(self._run, FollowingRun)
            self._run.follow(proposal)
            body["decision"] = proposal.to_json()
        return Decision("asked", body)

    def _prepare(self) -> None:
        """Take in what has come since the last decision: extra measurements, plans, and a call."""
        self._recall()
        if self._n_new:
            self._grow()
            self._recall()  # of arms that have just come
        budget = self.setup.budget
        if budget is not None and isinstance(self._run, BudgetedRun):
            self._run.allow(budget - self.seen.evidence.n_measurements)
        self._call_last()

    def _next(self) -> Measure | Stop | Batch:
        """Return the next request, the next batch of a run that follows, or the answer."""
        run = self._run
        rng = round_rng(self.setup.seed, self.n_rounds) if self.policy.randomized else self._idle_rng
        if self.follows and isinstance(run, FollowingRun) and not run.is_open:
            decision: Measure | Stop | Batch = run.propose()
        else:
            decision = run.decide(rng)
        self._sample()
        return decision

    def _sample(self) -> None:
        if self.trace.wants(self.n_rounds):
            self.trace.add(Sample(self.n_rounds, self.standing(), self.seen.evidence))

    def _numbers(self) -> Body:
        """Return the two numbers that every value moves, where the policy has them."""
        if not self.follows:
            return {}
        assert isinstance(self._run, FollowingRun)
        wealth, evidence = self._run.numbers()
        return {"wealth": wealth, "evidence": evidence}

    def _is_beyond_budget(self, n: int) -> bool:
        budget = self.setup.budget
        return budget is not None and self.seen.evidence.n_measurements + n > budget

    def _note_asked(self, n: int) -> None:
        if self._n_last is not None:  # a call that waits: what is asked for meanwhile is of its number
            self._n_last -= n

    def follow(self, decision: Decision, *, strictly: bool = False) -> bool:
        """Follow a decision of the log; return whether this machine agrees with it.

        With `strictly` a ValueError says what no session writes. Otherwise the log is right. A policy that
        cannot follow decides again, to be in the same state.
        """
        if not self.follows:
            return self.decide() in (None, decision)
        self._prepare()
        run, body = self._run, decision.body
        assert isinstance(run, FollowingRun)
        if decision.kind == "stopped":
            self._sample()
            if strictly:
                self._check_stop(body)
            return all(map(is_close, run.numbers(), (body.get("wealth", 0.0), body.get("evidence", 0.0))))
        agrees, counts = True, body["counts"]
        if run.is_open:
            if strictly:
                rest = run.decide(self._idle_rng)
                assert isinstance(rest, Measure)
                _require_equal({"round": self.n_rounds, **self._asked(rest)}, body)
        else:
            batch = run.recorded(body["decision"])
            agrees = run.objection(batch) is None
            if strictly:
                self._check_batch(body, batch)
            run.follow(batch)
        self._sample()
        self._note_asked(sum(n for _, n in counts))
        return agrees

    def _check_batch(self, body: Body, batch: Batch) -> None:
        """Refuse a batch that no run asks for here, or whose first request is another."""
        assert isinstance(self._run, FollowingRun)
        if objection := self._run.objection(batch):
            raise ValueError(objection)
        request = self._run.first_request(batch)
        _require_equal({"round": self.n_rounds, **self._asked(request), "decision": batch.to_json()}, body)
        if self._is_beyond_budget(request.n_measurements):
            raise ValueError("it asks for more than the budget leaves")

    def _check_stop(self, body: Body) -> None:
        """Refuse an answer that is not proved, and an end that the budget or a final batch does not bring."""
        run = self._run
        assert isinstance(run, FollowingRun)
        if not all(map(is_close, run.numbers(), (body["wealth"], body["evidence"]))):
            raise ValueError("its wealth or evidence is not what the values before it give")
        status, plan = Status.CONFIDENT, body["plan"]
        if plan is None:
            own = run.decide(self._idle_rng) if run.is_open else run.propose()
            request = run.first_request(own) if isinstance(own, Batch) else own
            ends = isinstance(request, Stop) or self._is_beyond_budget(request.n_measurements)
            if not ends or (isinstance(request, Stop) and request.plan is not None):
                raise ValueError("it ends without an answer, and there was more to measure or an answer")
            status = Status.BUDGET_SPENT
        elif not isinstance(plan, int | list) or not run.proves(as_answer(plan)):
            raise ValueError(f"plan {plan!r} is not proved")
        numbers = {"wealth": float(body["wealth"]), "evidence": float(body["evidence"])}
        _require_equal({"status": str(status), "plan": plan, **numbers}, body)

    def _asked(self, decision: Measure) -> Body:
        """What is asked for, by number; plays that were never asked for are described by their arms."""
        if decision.plays is None:
            return {"counts": _sparse(decision.counts)}
        counts, new = self.problem.asked_plays.numbered(decision.plays)
        return {"counts": counts, **({"plays": new} if new else {})}

    def _recall(self) -> None:
        """Count what was recorded unasked since the last round, if the policy's proof allows it.

        Only now: whoever recorded it may have seen the measurements of the round that has just been absorbed.
        """
        known = [one for one in self._unasked if self._knows(one[1])]
        run = recalling(self.policy, self._run, unasked=True) if known else None
        if run is None:
            return
        uses = [(probe, self.problem.readings_of(probe), use) for _, probe, use in known]
        counts, sums = self.seen.add_unasked(uses)
        run.recall(*self._known(counts, sums))
        self._counted += [position for position, _, _ in known]
        self._unasked = [one for one in self._unasked if not self._knows(one[1])]

    def _knows(self, probe: int) -> bool:
        """Whether the policy knows it: an arm may have come with a plan since its last round."""
        return not self.problem.arms_alone or probe < self._n_arms

    def _known(self, counts: IntArray, sums: FloatArray) -> tuple[IntArray, FloatArray]:
        """Counts and sums of what the policy knows."""
        if self.problem.probes is not None:
            return counts, sums
        return counts[: self._n_arms], sums[: self._n_arms]

    def to_json(self) -> Body | None:
        """As JSON values, or None when the policy's run does not say what its state is."""
        state = self._asleep.state if self._asleep else None if self._own is None else run_to_json(self._own)
        if self._own is not None and (state is None or self._n_new or not self._can_be_restored()):
            return None
        standing = self.standing()
        return {
            "n_rounds": self.n_rounds,
            **self.seen.to_json(),
            "trace": self.trace.to_json(),
            "counted": self._counted,
            "unasked": self._unasked,
            "run": state,
            "standing": to_json([*parts_of(standing), standing.remaining, standing.good]),
            "unless": to_json(standing.unless),
            "log_evidence": to_json(self.log_evidence()),
            "counts_unasked": self.counts_unasked,
            "called": self.called,
            "n_last": self._n_last,
        }

    def _can_be_restored(self) -> bool:
        """Whether who starts now gets a run of this kind: with the plans that came it may be another."""
        if not self._has_grown:
            return True
        return type(start(self.policy, self.problem, self.setup.past)) is type(self._own)

    @classmethod
    def from_json(cls, setup: Setup, kept: Body) -> PolicyRun:
        """The run that was kept."""
        run = cls(setup, is_kept=True)
        run.n_rounds = kept["n_rounds"]
        run._counted = kept["counted"]
        run.seen = Seen.from_json(setup.problem, kept)
        run.trace = Trace.from_json(run.seen.none(), kept["trace"])
        run.called, run._n_last = kept["called"], kept["n_last"]
        run._unasked = [(at, probe, use) for at, probe, use in kept["unasked"]]
        standing = replace(_standing_from(kept["standing"]), unless=from_json(kept["unless"]))
        log_evidence = from_json(kept["log_evidence"])
        run._asleep = Asleep(kept["run"], standing, log_evidence, kept["counts_unasked"])
        return run


def _with_new(standing: Standing, problem: AnyProblem, n_new: int) -> Standing:
    """The same where so many plans have been added since, against which nothing is known."""
    assert isinstance(problem, Problem)
    new = tuple(range(problem.n_plans - n_new, problem.n_plans))
    remaining = None if standing.remaining is None else (*standing.remaining, *new)
    risk = None if standing.risk is None else 1.0
    return replace(standing, risk=risk, remaining=remaining, good=())


def _standing_from(kept: list[Any]) -> Standing:
    """The standing that was kept, with its lists of plans; plans of polytopes come as lists."""
    *parts, remaining, good = kept
    listed = None if remaining is None else tuple(map(as_answer, remaining))
    return replace(standing_of(parts), remaining=listed, good=tuple(map(as_answer, good)))


def _require_equal(written: Body, body: Body) -> None:
    """Refuse a body that is not written as sessions write this one."""
    if codec.dumps(written) != codec.dumps(body):
        names = [n for n in sorted({*written, *body}) if written.get(n) != body.get(n)] or ["numbers"]
        raise ValueError(f"its {', '.join(map(repr, names))} is not what a session writes there")


def _sparse(counts: IntArray) -> list[list[int]]:
    return [[arm, count] for arm, count in enumerate(counts.tolist()) if count]
