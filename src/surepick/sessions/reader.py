"""What can be read of a session: its settings, where it stands, its log, what it proves.

Every look reads first what other processes have written, and nothing here changes the session.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from surepick.certificates.certificate import Certificate
from surepick.core.answers import named_ranging
from surepick.core.frames import make_frame
from surepick.core.guarantee import Doubt, no_guarantee
from surepick.core.oracle_problem import AnyProblem, Best, OracleProblem, absent
from surepick.core.policy import Policy
from surepick.core.probes import VALUE
from surepick.core.run import Standing
from surepick.errors import DamageError, NoiseWarning, ParameterError, SessionError
from surepick.sessions import codec
from surepick.sessions.certify import certify, promised
from surepick.sessions.commands import surprise
from surepick.sessions.events import AHEAD, Measured, decision_key, decode, place_of
from surepick.sessions.journal import Journal, making_sense_of
from surepick.sessions.leases import Leases, Request, in_turn, leased, request_for
from surepick.sessions.setup import Setup
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.sessions.verify import Verdict, verify
from surepick.simulation.outcome import Outcome, State
from surepick.store import START, Event, Head, Lease, Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from surepick.sessions.session import Session
    from surepick.views.view import View

COLUMNS = ("number", "arm", "value", "worker")
PROBE_COLUMNS = ("number", "probe_name", "reading", "value", "worker")


@dataclass(frozen=True)
class Measurement:
    """A recorded number: one reading of a use of a probe. `token` is None for an extra measurement."""

    number: int  # of the value: 1 for the first use that was recorded
    probe: int
    probe_name: str
    value: float
    time: float
    token: str | None  # the id of the request that it answers
    worker: str
    removed: bool = False
    event: int = 0  # where it stands in the log
    reading: str = VALUE  # which number of the probe it is
    key: str = ""
    note: str = ""

    @property
    def arm(self) -> str:
        """The name of the arm that was measured, or of the probe that was used."""
        return self.probe_name


class SessionReader:
    """A session that is open, as far as looking goes; `Session` adds what changes it.

    Threads may share one: a thread that uses its state holds its lock.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        *,
        oracle: Best | OracleProblem | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store.pin(name)  # another session that begins under this name is another one
        self.name = name
        self.read_only = read_only
        self._clock = in_seconds(clock)
        self._lock = threading.RLock()  # held by the thread that uses the state or changes it
        first = next(iter(self.store.read(name, limit=1)), None)
        if first is None:
            raise DamageError(f"the log of session {name!r} is empty; run `surepick verify --all`")
        self._created = first
        with making_sense_of(lambda: self._created, name):
            body = json.loads(self._created.body)
            self.lease: float = body["lease"]
            if read_only and oracle is None and codec.needs_function(body["problem"]):
                oracle = absent
            self._setup = Setup.from_json(body, oracle)
        self._journal = Journal(self.store, name, self._setup, self._created, self._clock)

    # Settings

    @property
    def problem(self) -> AnyProblem:
        """The problem, with the plans that were added."""
        return self._state.problem

    @property
    def given_problem(self) -> AnyProblem:
        """The problem as it was given."""
        return self._setup.problem

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The names of the arms; those that came with a plan are the last."""
        return self._state.setup.problem.arm_names

    @property
    def probe_names(self) -> tuple[str, ...]:
        """The names of what is measured: of the arms, or of the probes."""
        return self._state.setup.problem.probe_names

    def reads(self, probe: int) -> tuple[str, ...]:
        """Return the names of the readings that one use of this probe gives."""
        return self._state.setup.problem.reads(probe)

    @property
    def policy(self) -> Policy:
        """The policy as it was chosen or extended."""
        return self._state.setup.policy

    @property
    def seed(self) -> int:
        """The seed of the policy's own randomness."""
        return self._state.setup.seed

    @property
    def budget(self) -> int | None:
        """How many measurements the policy may use, if there is a limit."""
        return self._state.setup.budget

    @property
    def question(self) -> str:
        """The fingerprint of problem, policy and settings, to be published beforehand."""
        return self._setup.fingerprint

    @property
    def created_at(self) -> float:
        """When it was created, in seconds since 1970, UTC."""
        return self._created.time

    @property
    def title(self) -> str:
        """The title: the last one that was set, else that of the problem; may be empty."""
        n = self.state().n_titles
        event = self.store.find(self.name, f"title:{n}") if n else None
        return self._setup.problem.about.title if event is None else str(json.loads(event.body)["title"])

    # Where it stands

    @property
    def status(self) -> State:
        """The state: running, confident, budget spent or closed (or done, by a policy without guarantee)."""
        return self.state().status or State.RUNNING

    @property
    def fingerprint(self) -> Head:
        """Number of events and checksum of the log, as far as it was read."""
        return self._journal.head

    @property
    def outcome(self) -> Outcome:
        """Return where the session stands, or how it ended; warn if the guarantee does not apply.

        While it runs its `state` is RUNNING and its `plan` None; `leader` is the plan that looks best.
        """
        with self.held() as state:
            outcome = outcome_of(state, self._clock() - self.created_at)
        if outcome.doubts:
            warnings.warn(f"{self.name}: {no_guarantee(outcome.doubts)}", NoiseWarning, stacklevel=2)
        return outcome

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Return how the values contradict the assumption of the guarantee; usually nothing."""
        with self.held() as state:
            return state.doubts()

    def state(self) -> SessionState:
        """Return the state of the session now, others' measurements included; to look at, not to change.

        It changes with the session: where threads share one, look at it within `held`.
        """
        with self.held() as state:
            return state

    @contextmanager
    def held(self) -> Iterator[SessionState]:
        """Within, no other thread that shares this object changes the state."""
        with self._lock:
            self._journal.refresh()
            yield self._state

    @contextmanager
    def held_with_leases(self) -> Iterator[tuple[SessionState, Leases]]:
        """The same, with the leases on open requests, in one trip to the store."""
        with self._lock:
            view = self.store.look(self.name, after=self._journal.head)
            self._journal.read_on(view.events)
            streams, leases = self._state.streams.of, leased(view.leases)
            yield (
                self._state,
                {p: lease for p, lease in leases.items() if not streams[p.probe].is_recorded(p.index)},
            )

    def standing(self) -> Standing:
        """Return the leader, its closest rival and how far apart they are."""
        with self.held() as state:
            return state.standing()

    def view(self) -> View:
        """Return where the session stands: answer, proof, estimates, plans, arms, what to measure."""
        from surepick.views.build import build

        return build(cast("Session", self))

    # Requests

    def pending(self, n: int | None = None, *, probe: int | None = None) -> list[Request]:
        """Return the open requests of the batch, assigned or not; nothing is leased by looking.

        The first `n` of them, where a batch may be long; of one arm or probe alone, by its number.
        """
        with self.held_with_leases() as (state, leases):
            unassigned = Lease("", "", 0.0)
            wanted: Iterator[Place] = (one.token for one in in_turn(state))
            if probe is not None:
                wanted = (Place(probe, index) for index in state.streams.of[probe].missing())
            first = itertools.islice(wanted, n)
            return [request_for(state, place, leases.get(place, unassigned)) for place in first]

    def is_pending(self, request: str) -> bool:
        """Return whether the open batch waits for this request."""
        with self.held() as state:
            try:
                place = place_of(request, state)
            except SessionError:
                return False
            return state.streams.of[place.probe].is_missing(place.index)

    def takes(self, request: str) -> bool:
        """Return whether a value for this request can be recorded: it is open, answered, or not far ahead."""
        with self.held() as state:
            place = place_of(request, state)
            return place.index < state.streams.of[place.probe].end + AHEAD

    def leases(self) -> list[Lease]:
        """Return who is measuring what, and until when, ended leases included."""
        with self.held_with_leases() as (_, leases):
            return list(leases.values())

    def probe_of(self, request: str) -> int:
        """Return the number of the probe, or the arm, of this request."""
        return place_of(request, self.state()).probe

    def now(self) -> float:
        """Return the time by the session's clock, in seconds since 1970, UTC."""
        return self._clock()

    def doubt(self, arm: int | str, *values: float | Mapping[str, float]) -> str | None:
        """Return why one of these values would surprise as a measurement of the arm or probe, or None.

        A use of a probe with several readings is a mapping by their names.
        """
        with self.held() as state:
            probe = self._probe(arm)
            reads = state.setup.problem.reads(probe)
            for value in values:
                by_name = value if isinstance(value, Mapping) else {reads[0]: value}
                use = [one if isinstance(one, int | float) else None for one in map(by_name.get, reads)]
                if (words := surprise(state, probe, use)) is not None:
                    return words
            return None

    # The log

    def events(self, *, after: int = 0) -> Iterator[Event]:
        """Yield the log, from its beginning or after this position."""
        events = self.store.read(self.name, after=self._known_head(after))
        return (event for event in events if event.position > after)

    def measurements(self) -> Iterator[Measurement]:
        """Yield everything that was recorded, in its order; what was removed is marked."""
        state = self.state()
        for event in self.events():
            yield from measurements_in(event, state)

    def latest(self, n: int) -> list[Measurement]:
        """Return the values of the last n recorded uses, in their order; only the end of the log is read."""
        state, n_events = self.state(), 2 * n
        first = max(1, state.n_recorded - n + 1)
        while True:
            after = max(0, self.fingerprint.position - n_events)
            found = [one for event in self.events(after=after) for one in measurements_in(event, state)]
            if after == 0 or (found and found[0].number <= first):
                return [one for one in found if one.number >= first]
            n_events *= 4

    def exported_key(self, number: int) -> str:
        """Return the key that exports give to an extra measurement without one: `tell` knows it again."""
        return f"{self._created.checksum[:12]}-{number}"

    def decision(self, number: int) -> Event | None:
        """Return the event with the decision of this number, if there is one."""
        return self.store.find(self.name, decision_key(number))

    def certificate(self) -> Certificate:
        """Return what the session found and what it rests on, to be checked with `verify`."""
        with self.held() as state:
            if not state.is_over:
                raise SessionError(
                    f"session {self.name!r} is still running, so there is nothing to certify; ask and tell "
                    "until it stops, or close it"
                )
            end = self.store.find(self.name, state.end_key)
            if end is None:
                raise DamageError(
                    f"session {self.name!r} lacks the event that ended it; run `surepick verify --all`"
                )
            return certify(self.name, state, end)

    def verify(self, certificate: Mapping[str, Any] | None = None) -> Verdict:
        """Replay the log from its first event and say whether it, and a certificate if given, hold."""
        return verify(self.store, self.name, certificate, oracle=oracle_of(self.given_problem))

    def export(self, path: str | Path) -> Path:
        """Write a report (.html), the values (.csv, .xlsx), the log (.json) or certificate.json."""
        from surepick.report.export import export

        return export(cast("Session", self), path)

    # How it shows itself

    def __repr__(self) -> str:
        return f"Session({self.line()})"

    def line(self) -> str:
        """Return where the session stands, in one line.

        >>> import surepick as sp
        >>> problem = sp.Problem({"drive": "road", "ride": "rail"}, noise=1, goal="largest")
        >>> sp.decide(problem, {"road": 1.0, "rail": 9.0}.get, session="trips").line()
        "trips: confident, 'ride' is the best, wrong at most 1 in 20, 4 measured"
        """
        return self.view().line()

    def _repr_html_(self) -> str:
        return self.view()._repr_html_()

    def plot(self, what: str = "plans") -> Figure:
        """Return a matplotlib figure: "plans" or "arms"."""
        from surepick import plots

        if what not in plots.__all__:
            raise ParameterError(f"a session plots {', '.join(plots.__all__)}, got {what!r}", field="what")
        figure: Figure = getattr(plots, what)(self)
        return figure

    def to_frame(self, what: str = "values") -> Any:
        """Return "values" (a row per recorded number), "plans" or "arms" as a pandas data frame."""
        if what in ("plans", "arms"):
            rows: Sequence[Any] = getattr(self.view(), what)
            names = [one.name for one in fields(rows[0])] if rows else []
            return make_frame({name: [getattr(row, name) for row in rows] for name in names})
        if what != "values":
            raise ParameterError(f"a frame has values, plans or arms, got {what!r}", field="what")
        told = list(self.measurements())
        names = list(COLUMNS if self.problem.arms_alone else PROBE_COLUMNS)
        columns: dict[str, list[Any]] = {name: [getattr(m, name) for m in told] for name in names}
        times = [datetime.fromtimestamp(m.time, UTC) for m in told]
        return make_frame({**columns, "time": times, "removed": [m.removed for m in told]})

    def watch(self, every: float = 1.0) -> None:
        """Show where the session stands, updated in place until it has ended; Ctrl-C ends the watching alone.

        In a notebook it is the table that the session shows, elsewhere a line on the terminal.
        """
        update, done = _display(self)
        try:
            while True:
                update()
                if self.state().is_over:
                    break
                time.sleep(every)
            update()
        except KeyboardInterrupt:
            pass
        finally:
            done()

    # How it does it

    @property
    def _state(self) -> SessionState:
        """The state of the session at the last look."""
        return self._journal.state

    def _known_head(self, position: int) -> Head:
        """Return where the log ended at the last decision up to this position, found by their keys."""
        found = dict[int, Event | None]()

        def decided_at(number: int) -> int:
            found[number] = self.decision(number)
            event = found[number]
            return position + 1 if event is None else event.position

        numbers = range(1, self._state.n_decisions + 1)
        event = found.get(bisect.bisect_right(numbers, position, key=decided_at))
        return START if event is None else event.head

    def _probe(self, probe: int | str) -> int:
        if probe not in self.probe_names and probe not in range(len(self.probe_names)):
            self.state()  # it may have come with a plan meanwhile
        problem = self._state.setup.problem
        if isinstance(probe, str):
            return problem.probe(probe)
        if not 0 <= probe < problem.n_probes:
            word = problem.probe_word
            raise SessionError(
                f"there is no {word} {probe}; the session has {word}s 0 to {problem.n_probes - 1}"
            )
        return int(probe)


def measurements_in(event: Event, state: SessionState) -> Iterator[Measurement]:
    """Yield the numbers that this event of a log records."""
    if event.kind != "measured":
        return
    found = decode(event.kind, event.body)
    assert isinstance(found, Measured)
    problem = state.setup.problem
    for reading, value in zip(problem.reads(found.probe), found.values, strict=True):
        if value is not None:
            yield Measurement(
                number=found.number,
                probe=found.probe,
                probe_name=problem.probe_names[found.probe],
                value=value,
                time=event.time,
                token=None if found.is_extra else str(found.place),
                worker=found.worker,
                removed=found.place in state.streams.removed,
                event=event.position,
                reading=reading,
                key=found.key_,
                note=found.note,
            )


def outcome_of(state: SessionState, seconds: float) -> Outcome:
    """Return where the session stands, or how it ended, this long after it began."""
    problem, evidence, setup = state.estimated_problem, state.evidence, state.setup
    standing = state.standing()
    lead = standing.leader if state.plan is None else state.plan
    return Outcome(
        plan=state.plan,
        plan_name=problem.name_of(state.plan),
        state=state.status or State.RUNNING,
        leader=lead,
        leader_name=problem.name_of(lead),
        n_measured=state.n_measurements,
        n_rounds=state.n_rounds,
        cost=problem.spent(evidence.cost(problem.costs), state.n_rounds),
        counts=evidence.counts,
        means=evidence.means,
        standing=standing,
        policy=setup.policy,
        guarantee=promised(state).text,
        seed=setup.seed,
        seconds=seconds,
        noise_scale=problem.noise_scale,
        problem=problem,
        ranging=named_ranging(problem, state.plan, evidence),
        doubts=state.doubts(),
    )


def in_seconds(clock: Callable[[], float]) -> Callable[[], float]:
    """Return the clock with times that the log can keep: plain finite floats.

    >>> in_seconds(lambda: 5)()
    5.0
    """

    def now() -> float:
        seconds = float(clock())
        if not math.isfinite(seconds):
            raise ParameterError(f"the clock must give seconds since 1970, got {seconds}", field="clock")
        return seconds

    return now


def oracle_of(problem: AnyProblem) -> OracleProblem | None:
    """Return the problem if it has a function that a log does not hold."""
    return problem if not problem.is_listed and problem.has_oracle else None


def _display(session: SessionReader) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return how to show the session again in the same place, and what to do at the end."""
    if _in_notebook():
        from IPython.display import display

        handle = display(session, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        return (lambda: handle.update(session)), (lambda: None)
    shown = [""]

    def update() -> None:
        line = session.line()
        if line != shown[0]:
            print(f"\r{line:<{len(shown[0])}}", end="", file=sys.stderr, flush=True)
        shown[0] = line

    return update, (lambda: print(file=sys.stderr))


def _in_notebook() -> bool:
    """Return whether a notebook or another front end that shows HTML is looking."""
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None else None
    return current is not None and type(current).__name__ != "TerminalInteractiveShell"
