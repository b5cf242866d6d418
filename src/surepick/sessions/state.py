"""The state of a session: what its log means.

`apply` is cheap and never fails on an event that passed its check. The policy's run follows complete batches
and decisions when something asks for it, in the order of the log. A removed value makes it follow the
recorded decisions again from the first batch, without that value; nothing is decided or measured twice.
Nothing here knows the store or the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from surepick.core.evidence import Evidence
from surepick.core.guarantee import Doubt
from surepick.core.oracle_problem import AnyProblem
from surepick.core.run import Answer, Standing
from surepick.errors import SessionError
from surepick.noise.check import check_noise
from surepick.noise.record import count_release
from surepick.sessions.events import (
    Asked,
    Closed,
    Decision,
    Event,
    Extended,
    FinalBatch,
    Measured,
    PlanAdded,
    Released,
    Removed,
    Renamed,
    Stopped,
)
from surepick.sessions.run import PolicyRun, as_answer
from surepick.sessions.setup import Body, Setup
from surepick.sessions.streams import Place, Streams
from surepick.simulation.outcome import State

RECENT = 256  # batches whose probes are remembered, to guess what will be asked next
RECENT_VALUES = 64  # that are remembered: the last to show, their workers to know how many there are


class NotWholeError(Exception):
    """The state came from a snapshot, without the values of complete batches: the log has them."""


class SessionState:
    """The meaning of a log; it changes by `apply` alone, in the order of the log.

    A `Journal`, or `verify`, owns it. All others look.
    """

    def __init__(self, setup: Setup, run: PolicyRun | None = None) -> None:
        self.setup = self.given = setup  # as it is now, and as it was given
        self.streams = Streams(setup.problem.n_probes)
        self.is_whole = run is None  # a snapshot does not hold the values of complete batches
        self.status: State | None = None
        self.plan: Answer | None = None
        self.end_key = ""  # of the event that ended the session
        self.n_recorded = 0  # values, lost and removed ones included: by it they are numbered
        self.n_lost = 0  # until it ended: the answer does not rest on later ones
        self._n_lost_since = 0
        self.n_extra = 0  # recorded without an open request
        self.n_extra_used = 0  # of them, in complete batches
        self.keys: dict[str, Place] = {}  # callers' keys
        self.late: dict[tuple[str, str], Place] = {}  # by request and worker: where a late value went
        self.n_decisions = self.n_closed = self.n_titles = 0
        self.title = setup.problem.about.title
        self.extensions: list[Body] = []  # delta and budget after each, and values ahead
        self.added: list[PlanAdded] = []
        self.final: FinalBatch | None = None
        self.releases: dict[str, int] = {}  # how often each request was released unmeasured
        self._released_since: list[Released] = []  # since it ended: the answer does not rest on them
        self.recent_probes: deque[int] = deque(maxlen=RECENT)
        self.recent_workers: deque[str] = deque(maxlen=RECENT_VALUES)
        self.recent_values: deque[Place] = deque(maxlen=RECENT_VALUES)  # without lost ones
        self._run = run
        self._steps: list[Callable[[PolicyRun], None]] = []  # what the run takes, in order
        self._n_taken = 0  # of them
        self.n_rounds = 0  # complete batches that the policy has used
        self._proposed: Decision | None = None

    def apply(self, event: Event) -> None:
        """Take the next event of the log."""
        match event:
            case Measured():
                self._measured(event)
            case Asked():
                self._decided(event)
                if event.plays:
                    self._know_plays(event.plays)
                self.streams.open_batch(event.counts)
                self.recent_probes.extend(probe for probe, _ in event.counts)
            case Stopped():
                self._decided(event)
                self._end(State(event.status), event, as_answer(event.plan))
            case Closed():
                self.n_closed += 1
                self._end(State.CLOSED, event)
            case Removed():
                self._removed(event)
            case Released() if self.is_over:
                self._released_since.append(event)
            case Released():
                count_release(self.releases, str(event.place), event.reason)
            case Extended():
                self._extended(event)
            case PlanAdded():
                self._continue_with(self.setup.with_plan(event.name, event.amounts, event.new_arms))
                self.added.append(event)
                self._reopen()
            case FinalBatch():
                self.final, n_missing = event, self.streams.n_missing
                self._give(lambda run: run.call_final_batch(event, n_missing))
            case Renamed():
                self.n_titles += 1
                self.title = event.title

    def _end(self, status: State, event: Event, plan: Answer | None = None) -> None:
        self.status, self.plan, self.end_key = status, plan, event.log_key() or ""

    # Deciding

    def decide(self) -> Decision | None:
        """Return what the policy decides now that the open batch is complete, or None while it is not."""
        if not self.is_due:
            return None
        self._take_batch()
        self._proposed = self.run.propose(self.n_decisions + 1)
        return self._proposed

    def check_decision(self, event: Decision) -> None:
        """Refuse a decision that the policy does not take here."""
        if event is not self._proposed:
            self._take_batch()
            try:
                self.run.check(event)
            except (ArithmeticError, LookupError, ValueError, TypeError, AssertionError) as error:
                raise SessionError(f"the policy cannot decide so here: {error}", field="decision") from None

    def _take_batch(self) -> None:
        """Give the complete batch to the run."""
        batch, n_extra = self.streams.take_batch()
        if batch:
            self.n_extra_used += n_extra
            self.n_rounds += 1
            self._give(lambda run: run.absorb(*self.streams.without_removed(batch)))

    def _decided(self, event: Decision) -> None:
        own, self._proposed = event is self._proposed, None
        self._take_batch()
        self.n_decisions += 1

        def follow(run: PolicyRun) -> None:
            nonlocal own
            run.follow(event, own=own)
            own = False

        self._give(follow)

    def _know_plays(self, plays: list[list[int]]) -> None:
        """Number the plan probes of these arms, which are asked for the first time."""
        problem = self.setup.problem
        every = range(problem.n_arms)
        known = all(arms and all(type(arm) is int and arm in every for arm in arms) for arms in plays)
        if problem.is_listed or not problem.plays or not known:
            raise SessionError("the log asks for plan probes that there are not; see `surepick verify`")
        self._continue_with(replace(self.setup, problem=problem.with_asked_plays(plays)))

    # Values

    def _measured(self, event: Measured) -> None:
        self.n_recorded += 1
        self.recent_workers.append(event.worker)
        if event.key:
            self.keys[event.key] = event.place
        if event.is_extra:
            self.n_extra += 1
            if event.request:
                self.late[event.request, event.worker] = event.place
        if event.is_lost:
            self.n_lost += not self.is_over
            self._n_lost_since += self.is_over
            self.streams.clear(event.place)
            return
        values: Any = tuple(event.values)
        self.streams.add(event.place, values, extra=event.is_extra)
        self.recent_values.append(event.place)

    def _removed(self, event: Removed) -> None:
        """Remove a value; if the policy has used it, the policy runs again from the start without it.

        That needs all values, which a state from a snapshot does not have: the journal then reads the log.
        """
        is_used = event.index < self.streams.of[event.probe].cursor
        if is_used and not self.is_whole:
            raise NotWholeError
        self.streams.clear(event.place, removed=True)
        if is_used:
            self._run, self._n_taken = None, 0
            self._reopen()

    # Steering

    def _extended(self, event: Extended) -> None:
        setup = self.setup.extended(event.delta, event.budget)
        self.extensions.append({"delta": event.delta, "budget": event.budget, "n_ahead": event.n_ahead})
        is_other = setup.policy != self.setup.policy
        self._continue_with(setup)
        if is_other or self.status not in (State.CONFIDENT, State.DONE):
            self._reopen()

    def _continue_with(self, setup: Setup) -> None:
        """Take settings that changed, with a stream for everything that is measured now."""
        self.setup = setup
        self.streams.lengthen(setup.problem.n_probes)
        self._give(lambda run: run.continue_with(setup))

    def _reopen(self) -> None:
        """Run again after an end; what was released or lost since then counts now."""
        self.status = self.plan = None
        self.n_lost, self._n_lost_since = self.n_lost + self._n_lost_since, 0
        for event in self._released_since:
            count_release(self.releases, str(event.place), event.reason)
        self._released_since = []

    # The run of the policy

    @property
    def run(self) -> PolicyRun:
        """The run of the policy, which has taken all complete batches and decisions."""
        if self._run is None:
            self._run = PolicyRun(self.given)
        if self._n_taken == len(self._steps):
            return self._run
        while self._n_taken < len(self._steps):
            step = self._steps[self._n_taken]
            self._n_taken += 1  # before it is tried: one that fails is not tried again
            step(self._run)
        if not self._run.follows:  # nothing is followed a second time
            self._steps, self._n_taken, self.is_whole = [], 0, False
        return self._run

    def _give(self, step: Callable[[PolicyRun], None]) -> None:
        """Let the run take this step: now if it is there, else when it is wanted."""
        self._steps.append(step)
        if self._run is not None:
            _ = self.run

    # Looking

    @property
    def is_over(self) -> bool:
        """Whether the session has ended."""
        return self.status is not None

    @property
    def is_due(self) -> bool:
        """Whether the open batch is complete, so that the policy has to decide."""
        return self.status is None and self.streams.n_missing == 0

    @property
    def problem(self) -> AnyProblem:
        """The problem, with the plans that were added."""
        return self.setup.problem

    @property
    def estimated_problem(self) -> AnyProblem:
        """The problem, with an estimate of the noise where it is unknown; for displays, never for proofs."""
        if self.problem.noise_scale is not None:
            return self.problem
        scale = self.run.statistics.estimated_scale()
        return self.problem if scale is None else self.problem.with_noise(scale)

    @property
    def evidence(self) -> Evidence:
        """The counts and sums of the measurements that the policy has used."""
        return self.run.statistics.evidence

    @property
    def n_measurements(self) -> int:
        """How many measurements the policy has used."""
        return self.evidence.n_measurements

    @property
    def n_values(self) -> int:
        """How many values are recorded, without lost and removed ones."""
        return self.streams.n_values

    @property
    def n_removed(self) -> int:
        """How many values were removed."""
        return len(self.streams.removed)

    @property
    def budget_left(self) -> int | None:
        """The budget less all measurements so far, also those of the open batch; None without a budget."""
        if self.setup.budget is None:
            return None
        return self.setup.budget - self.n_measurements - self.streams.n_recorded_of_batch

    def standing(self) -> Standing:
        """Return where the run stands."""
        return self.run.standing()

    def doubts(self) -> tuple[Doubt, ...]:
        """Return what the values show that the guarantee does not allow."""
        if not self.setup.policy.assumes_noise:
            return ()
        return check_noise(self.problem, self.run.statistics.noise, self.releases)

    # Snapshots

    def to_json(self) -> Body | None:
        """Return all of it but the values of complete batches, or None when the run cannot be kept."""
        run = self.run.to_json()
        if run is None:
            return None
        return {
            **run,
            **self.streams.to_json(),
            **{name: getattr(self, name) for name in _PLAIN},
            "keys": [[key, *place] for key, place in self.keys.items()],
            "late": [[*who, *place] for who, place in self.late.items()],
            "delta": self.setup.policy.delta,
            "budget": self.setup.budget,
            "asked_plays": self.setup.problem.asked_plays.arms if self.setup.problem.plays else None,
            "added": [event.encode() for event in self.added],
            "final": None if self.final is None else self.final.encode(),
            "released_since": [event.encode() for event in self._released_since],
            "recent_probes": list(self.recent_probes),
            "recent_values": list(self.recent_values),
        }

    @classmethod
    def from_json(cls, setup: Setup, kept: Body) -> SessionState:
        """Return the state that was kept, of a session that was created with this setup."""
        given, added = setup, [PlanAdded.decode(text) for text in kept["added"]]
        setup = setup.extended(kept["delta"], kept["budget"])
        for event in added:
            setup = setup.with_plan(event.name, event.amounts, event.new_arms)
        if kept["asked_plays"] is not None and not setup.problem.is_listed:
            setup = replace(setup, problem=setup.problem.with_asked_plays(kept["asked_plays"]))
        state = cls(setup, PolicyRun.from_json(setup, kept))
        for name in _PLAIN:
            setattr(state, name, kept[name])
        state.given, state.added = given, added
        state.streams = Streams.from_json(kept)
        state.status = None if kept["status"] is None else State(kept["status"])
        state.plan = as_answer(kept["plan"])
        state.keys = {key: Place(*place) for key, *place in kept["keys"]}
        state.late = {(request, worker): Place(*place) for request, worker, *place in kept["late"]}
        state.final = None if kept["final"] is None else FinalBatch.decode(kept["final"])
        state._released_since = [Released.decode(text) for text in kept["released_since"]]
        state.recent_probes.extend(kept["recent_probes"])
        state.recent_values.extend(Place(*place) for place in kept["recent_values"])
        return state


_PLAIN = (  # what JSON holds as it is
    *("status", "plan", "end_key", "title", "releases", "extensions"),
    *("n_recorded", "n_lost", "_n_lost_since", "n_extra", "n_extra_used"),
    *("n_rounds", "n_decisions", "n_closed", "n_titles"),
)
