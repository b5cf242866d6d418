"""Histories of the session layer, simulated from a seed: many processes, one log, and all that goes wrong.

    python tests/support/session_histories.py --histories 20000     # `make soak`
    python tests/support/session_histories.py --seed 1234           # one history again, told step by step

Every history draws a problem, a policy, how many processes there are and which faults strike. The processes
ask, tell, withdraw, record, import, note, extend, close and look, through the code that users run, on a
`SimulatedStore`. What the code acknowledged is written down, and at the end the log must bear it out.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

import numpy as np

import surepick as sp
from scheduler import Scheduler, TurnLock
from simulated_store import Database, DiedError, Faults, Process, SimulatedStore
from surepick.errors import ParameterError, SessionError, StoreError
from surepick.sessions import replica
from surepick.sessions.ledger import Ledger
from surepick.sessions.measurement_files import import_rows
from surepick.sessions.requests import Receipt, Request, told_in
from surepick.sessions.session import Session
from surepick.sessions.settings import Setup
from surepick.store import Event

NAME, LEASE = "mine", 100.0
PROBLEMS = [
    sp.Problem([[1, 0], [0, 1]], noise_scale=0.3),
    sp.Problem([[1, 1, 0], [0, 1, 1], [1, 0, 1]], noise_scale=0.3),
]
POLICIES: list[Callable[[float], sp.Policy]] = [
    lambda delta: sp.CombGapE(delta=delta),
    lambda delta: sp.Uniform(delta=delta),
    lambda delta: sp.BetGapE(delta=delta),
    lambda delta: sp.BetGapE(delta=delta, max_batch=2),
    lambda delta: sp.TSExplore(delta=delta),
]
DELTAS = (0.3, 0.2, 0.1, 0.05)


@dataclass
class Acknowledged:
    """What users were told has happened, and what they do not know about: tried, and no answer came."""

    told: dict[tuple[str, str], Any] = field(default_factory=dict)  # (token, worker): value that counts
    late: list[tuple[str, str]] = field(default_factory=list)
    recorded: dict[str, tuple[int, float]] = field(default_factory=dict)  # by key
    noted: Counter[str] = field(default_factory=Counter)
    extended: list[dict[str, Any]] = field(default_factory=list)
    n_withdrawn: int = 0
    seen: Counter[str] = field(default_factory=Counter)  # what went wrong, for tests of the simulation itself
    certificates: list[dict[str, Any]] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)  # by kind of event, answered or not


class History:
    """One simulated life of a session; it happens in `run` and is judged in `check`."""

    def __init__(self, seed: int, *, told: Callable[[str], None] = lambda line: None) -> None:
        rng = self.rng = Random(seed)
        self.seed, self.told = seed, told
        self.now = 1e9
        self.problem = rng.choice(PROBLEMS)
        self.make_policy = rng.choice(POLICIES)
        self.means = rng.sample([0.0, 1.0, 3.0], self.problem.n_arms)  # no two plans are equally good
        self.constants = {
            "ALONE_AFTER": rng.choice([-1, 0, 3, 20]),
            "SNAPSHOT_EVERY": rng.choice([2, 7, 30, 3000]),
        }
        self.slow = rng.choice([0.0, 0.3, 0.7])  # how often a decision takes longer than others should wait
        self.skew = rng.choice([0.0, 0.0, 5.0, 300.0])  # seconds by which clocks differ
        mild = rng.choice([0.0, 0.3, 1.0])
        self.faults = Faults(rng, death=0.02 * mild, lost=0.02 * mild, stale=rng.choice([0.0, 0.3]) * mild)
        self.scheduler = Scheduler(self._next)
        self.stalls = rng.choice([0.0, 0.03])
        self._stalled, self._stalled_for = "", 0
        self.database = Database(self.scheduler, one_lock=rng.random() < 0.5)
        self.done = Acknowledged()
        self.processes: list[_Running] = []
        self.n_steps = rng.choice([4, 10, 20])

    def run(self) -> None:
        """Let all processes live their lives, then go on to the end with nothing in the way."""
        with self._simulated_time():
            budget = self.rng.choice([None, None, 10, 40])
            policy, lease = self.make_policy(0.3), LEASE
            options = {"seed": self.seed % 100, "budget": budget, "lease": lease}
            quiet = SimulatedStore(self.database, Process("creator"), Faults(self.rng))
            Session.create(quiet, self.problem, policy, name=NAME, clock=lambda: self.now, **options)
            for i in range(self.rng.choice([1, 2, 3, 4])):
                running = _Running(self, f"process {i}")
                self.processes.append(running)
                for k in range(self.rng.choice([1, 1, 2])):
                    client = Client(self, running, f"worker {i}.{k}")
                    self.scheduler.add(client.worker, client.live)
            self.scheduler.run()
            self.faults.end()
            self.check(quiet)

    def _next(self, names: list[str]) -> int:
        """Anybody; but now and then one stalls in the middle of something while the others go on."""
        if self._stalled_for == 0 and self.rng.random() < self.stalls:
            self._stalled, self._stalled_for = self.rng.choice(names), self.rng.choice([10, 40, 100])
        self._stalled_for = max(0, self._stalled_for - 1)
        awake = [i for i, name in enumerate(names) if name != self._stalled or not self._stalled_for]
        return self.rng.choice(awake)

    @contextmanager
    def _simulated_time(self) -> Iterator[None]:
        with mock.patch.object(replica, "time", self), mock.patch.multiple(replica, **self.constants):
            yield

    def perf_counter(self) -> float:
        """What `replica` measures decisions with: some of them seem slow."""
        self._seconds = getattr(self, "_seconds", 0.0) + (self.rng.random() < self.slow)
        return self._seconds

    def monotonic(self) -> float:
        return self.now

    def value(self, arm: int) -> float:
        return self.means[arm] + 0.3 * self.rng.gauss(0, 1)

    # What must hold in the end

    def check(self, store: SimulatedStore) -> None:
        """All that was acknowledged is in the log, and the log is one that an honest session writes."""
        events = list(store.read(NAME))
        self._check_kept(events)
        self._check_course(events)
        for running in self.processes:
            self._check_replica(running, events)
        session = Session.load(store, NAME, clock=lambda: self.now)
        for certificate in self.done.certificates:
            if not any(event.kind == "extended" for event in events[certificate["log_position"] :]):
                verdict = session.verify(certificate)
                assert verdict.holds, verdict
        self._finish(session)

    def _check_kept(self, events: list[Event]) -> None:
        bodies = [(event, json.loads(event.body)) for event in events]
        told = Counter(
            f"{b['arm']}.{index}" for e, b in bodies if e.kind == "measured" for index, _ in told_in(b)
        )
        assert set(told.values()) <= {1}, "a measurement was counted twice"
        by_key = {event.key: body for event, body in bodies if event.key is not None}
        for (token, worker), value in self.done.told.items():
            body = by_key.get(f"told:{token}")
            assert body is not None, f"{token} was acknowledged to {worker} and is gone"
            assert body.get("values", body.get("value")) == value, f"{token} has another value"
        for token, worker in self.done.late:
            assert by_key.get(f"told:{token}", {}).get("worker") != worker
        for key, (arm, value) in self.done.recorded.items():
            body = by_key.get(f"recorded:{key}")
            assert body is not None, f"{key!r} was recorded and is gone"
            assert (body["arm"], body["value"]) == (arm, value)
        written = Counter(event.kind for event in events)
        notes = Counter(b["text"] for e, b in bodies if e.kind == "noted" and "text" in b)
        for text, n in self.done.noted.items():
            assert n <= notes[text], f"the note {text!r} is gone"
        assert len(self.done.extended) <= written["extended"] <= self.done.tried["extended"]
        assert self.done.n_withdrawn <= written["withdrawn"] <= self.done.tried["withdrawn"]
        assert written["noted"] <= self.done.tried["noted"]
        assert written["recorded"] <= self.done.tried["recorded"]

    def _check_course(self, events: list[Event]) -> None:
        """Along the log delta never loosens, budgets never shrink, and no answer is closed away."""
        ledger = Ledger(Setup.from_json(json.loads(events[0].body)))
        for event in events[1:]:
            before, due, over = ledger.setup, ledger.is_due, ledger.status
            if event.kind == "closed":
                assert not due, "a round that was complete was closed before its decision"
                assert over is None, f"closed after it had ended as {over}"
            ledger.apply(event.kind, json.loads(event.body))
            assert ledger.setup.policy.delta <= before.policy.delta, "delta was loosened"
            if before.budget is not None and ledger.setup.budget is not None:
                assert ledger.setup.budget >= before.budget, "the budget shrank"
        assert not ledger.surprises
        for wanted in self.done.extended:
            assert ledger.setup.policy.delta <= wanted.get("delta", math.inf), "an extension is gone"
            assert (ledger.setup.budget or math.inf) >= wanted.get("budget", 0), "an extension is gone"
        self.ledger = ledger

    def _check_replica(self, running: _Running, events: list[Event]) -> None:
        """A process that lives has made of the log what anybody makes of it."""
        if running.session is None or running.process.is_dead:
            return
        mine = running.session.ledger()
        assert running.session.fingerprint == events[-1].head
        assert mine.to_json() == self.ledger.to_json(), "two processes see different sessions"

    def _finish(self, session: Session) -> None:
        """Go on to the answer, and find it to be the one of `simulate` on the same measurements."""
        self.now += 10 * LEASE + 1000
        verdict = session.verify()
        assert verdict.holds, verdict
        if session.status is not sp.Status.CONFIDENT:
            session.extend(budget=100_000)
        while requests := session.ask(20, worker="the last", wait=False):
            for request in requests:
                session.tell(request, self.value(request.arm))
        outcome = session.outcome
        assert outcome is not None
        assert outcome.status is sp.Status.CONFIDENT
        verdict = session.verify(session.certificate().to_json())
        assert verdict.holds, verdict
        if session.ledger().run.n_unasked_counted:
            return  # of unasked measurements `simulate` knows nothing: that the log verifies has to do
        tapes = LoggedTapes(session)
        expected = sp.simulate(self.problem, session.policy, tapes, seed=session.seed)
        assert (outcome.plan, outcome.n_rounds) == (expected.plan, expected.n_rounds)
        assert outcome.counts.tolist() == expected.counts.tolist()
        assert outcome.means.tolist() == expected.means.tolist()


class _Running:
    """A process of the simulation, its session, and its clock; when it has died another takes its place."""

    def __init__(self, history: History, name: str) -> None:
        self.history = history
        self.name = name
        self.skew = history.rng.uniform(-1, 1) * history.skew
        self.process = Process(name)
        self.session: Session | None = None

    def clock(self) -> float:
        return self.history.now + self.skew

    def opened(self) -> Session:
        """The session of this process; a new process where the old one has died."""
        if self.process.is_dead:
            self.process, self.session = Process(self.name), None
        if self.session is None:
            history = self.history
            store = SimulatedStore(history.database, self.process, history.faults)
            session = Session.load(store, NAME, clock=self.clock)
            session._lock = TurnLock(history.scheduler)  # type: ignore[assignment]
            self.session = session
        return self.session


class Client:
    """A user of the session: one worker, in a process that it may share."""

    def __init__(self, history: History, running: _Running, worker: str) -> None:
        self.history, self.running, self.worker = history, running, worker
        self.held: dict[str, Any] = {}  # tokens in hand, with the value once it is measured
        self.again: list[Callable[[Session], None]] = []  # deliveries that may come a second time
        self.n = 0

    def live(self) -> None:
        """Do one thing after the other; what died or got no answer is repeated, or given up."""
        rng = self.history.rng
        for _ in range(self.history.n_steps):
            step = self._choose()
            for _ in range(8):
                try:
                    step(self.running.opened())
                    break
                except DiedError:
                    self._say("died")
                    self.history.done.seen["death"] += 1
                    if rng.random() < 0.5:
                        self.held = {}
                except StoreError as error:
                    self.history.done.seen["no answer"] += 1
                    self._say(f"no answer: {error}")
                if rng.random() < 0.2:
                    break
            self.history.now += rng.choice([0.0, 1.0, LEASE / 3, LEASE + 1])
            if rng.random() < self.history.faults.death:
                self._power_cut()

    def _power_cut(self) -> None:
        self._say("the power is cut")
        self.history.done.seen["power cut"] += 1
        for running in self.history.processes:
            running.process.is_dead = True
        self.history.database.power_cut()

    def _choose(self) -> Callable[[Session], None]:
        rng, faces = self.history.rng, [self.ask] * 4 + [self.tell] * 6
        faces += [self.withdraw, self.record, self.note, self.extend, self.look, self.close, self.import_]
        if self.again:
            faces += [rng.choice(self.again)] * 2  # delivered twice
        return rng.choice(faces)

    def _say(self, line: str) -> None:
        self.history.told(f"{self.worker}: {line}")

    def ask(self, session: Session) -> None:
        requests = session.ask(self.history.rng.choice([1, 2, 5]), worker=self.worker, wait=False)
        self._say(f"asked, got {[r.token for r in requests]}")
        for request in requests:
            self.held.setdefault(request.token, self._measured(request))
        if not requests and session.status in (sp.Status.CLOSED, sp.Status.BUDGET_SPENT):
            self._extend(session, {"budget": 500})

    def _measured(self, request: Request) -> dict[str, Any]:
        rng, value = self.history.rng, self.history.value
        if request.wanted > 2 and rng.random() < 0.3:
            return {"value": [value(request.arm) for _ in range(rng.choice([2, 3]))]}
        return {"value": value(request.arm)}

    def tell(self, session: Session) -> None:
        if not self.held:
            self.ask(session)
        if not self.held:
            return
        token = self.history.rng.choice(sorted(self.held))
        given = self.held[token]
        self._tell(session, token, given)
        self.again.append(lambda session: self._tell(session, token, given))
        self.held.pop(token, None)

    def _tell(self, session: Session, token: str, given: dict[str, Any]) -> None:
        done = self.history.done
        done.tried["noted"] += 1  # a late one is noted, or recorded
        done.tried["recorded"] += len(given["value"]) if isinstance(given["value"], list) else 1
        try:
            receipt = session.tell(token, given["value"], worker=self.worker)
        except SessionError as error:
            self._say(f"told {token}, refused: {error}")
            return
        self._say(f"told {token}, {receipt}")
        if receipt == Receipt.LATE:
            done.late.append((token, self.worker))
        elif receipt == Receipt.ACCEPTED or not isinstance(given["value"], list):
            done.told[token, self.worker] = given["value"]

    def withdraw(self, session: Session) -> None:
        if not self.held:
            return
        token = self.history.rng.choice(sorted(self.held))
        self.history.done.tried["withdrawn"] += 1
        try:
            session.withdraw(token, "busy")
        except SessionError as error:
            self._say(f"withdrew {token}, refused: {error}")
        else:
            self.history.done.n_withdrawn += 1
            self._say(f"withdrew {token}")
        del self.held[token]

    def record(self, session: Session) -> None:
        rng = self.history.rng
        self.n += 1
        arm, key = rng.randrange(self.history.problem.n_arms), f"{self.worker}, {self.n}"
        picked = rng.random() < 0.7
        value = self.history.value(arm)

        def deliver(session: Session) -> None:
            self.history.done.tried["recorded"] += 1
            receipt = session.record(arm, value, key=key, picked=picked)
            self.history.done.recorded[key] = (arm, value)
            self._say(f"recorded {key!r}, {receipt}")

        self.again.append(deliver)
        deliver(session)

    def import_(self, session: Session) -> None:
        """A file with what was measured by hand: some tokens, some rows that nobody asked for."""
        rng, held = self.history.rng, sorted(self.held)[:2]
        rows = [
            {"token": token, "value": repr(self.held[token]["value"]), "worker": self.worker}
            for token in held
            if not isinstance(self.held[token]["value"], list)
        ]
        self.n += 1
        arm, key = rng.randrange(self.history.problem.n_arms), f"{self.worker}, row {self.n}"
        value = self.history.value(arm)
        name = self.history.problem.arm_names[arm]
        rows.append({"arm": name, "value": repr(value), "key": key, "picked": "yes"})

        def deliver(session: Session) -> None:
            self.history.done.tried["recorded"] += 1
            self.history.done.tried["noted"] += len(rows)
            try:
                counts = import_rows(session, rows, answers=False, worker=self.worker)
            except SessionError as error:
                self._say(f"imported, refused: {error}")
                return
            self.history.done.recorded[key] = (arm, value)
            self._say(f"imported {len(rows)} rows, {counts}")

        self.again.append(deliver)
        deliver(session)

    def note(self, session: Session) -> None:
        self.n += 1
        text = f"{self.worker}, {self.n}"
        self.history.done.tried["noted"] += 1
        session.note(text)
        self.history.done.noted[text] += 1

    def extend(self, session: Session) -> None:
        rng = self.history.rng
        self._extend(
            session, rng.choice([{"delta": rng.choice(DELTAS)}, {"budget": rng.choice([15, 50, 500])}])
        )

    def _extend(self, session: Session, wanted: dict[str, Any]) -> None:
        self.history.done.tried["extended"] += 1
        try:
            session.extend(**wanted)
        except ParameterError as error:
            self._say(f"extended {wanted}, refused: {error}")
            return
        self._say(f"extended {wanted}")
        self.history.done.extended.append(wanted)

    def close(self, session: Session) -> None:
        session.close("enough")
        self.history.done.tried["closed"] += 1
        self._say("closed")

    def look(self, session: Session) -> None:
        self._say(f"sees {session.status}, {session.ledger().n_told} told")
        assert session.standing() is not None
        session.pending()
        session.leases()
        if session.status is sp.Status.CONFIDENT:
            with suppress(SessionError):  # somebody extended it a moment ago
                self.history.done.certificates.append(session.certificate().to_json())


class LoggedTapes:
    """The measurements of a log, as a simulation reads them: the environment of the session's last run."""

    def __init__(self, session: Session) -> None:
        self.means = np.zeros(session.problem.n_arms)
        tapes: dict[int, dict[int, float]] = defaultdict(dict)
        for m in session.measurements():
            if m.token is not None:
                arm, index = map(int, m.token.split("."))
                tapes[arm][index] = m.value
        self._tapes = {arm: iter([tape[i] for i in sorted(tape)]) for arm, tape in tapes.items()}

    def measure(self, counts: Any, rng: np.random.Generator) -> Any:
        return np.array([math.fsum(next(self._tapes[a]) for _ in range(n)) for a, n in enumerate(counts)])


def replay_command(seed: int) -> str:
    """What to type to see this history again."""
    return f"python tests/support/session_histories.py --seed {seed}"


def run_history(seed: int, told: Callable[[str], None] = lambda line: None) -> History:
    """One history, judged; a failure names its seed and how to see it again."""
    history = History(seed, told=told)
    try:
        history.run()
    except (Exception, DiedError) as error:
        error.add_note(f"history {seed}: {replay_command(seed)}")
        raise
    return history


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this history alone, told step by step")
    given = parser.parse_args()
    if given.seed is not None:
        run_history(given.seed, told=print)
        return
    began, failed = time.monotonic(), []
    for n, seed in enumerate(range(given.first, given.first + given.histories), start=1):
        try:
            run_history(seed)
        except Exception as error:
            failed.append(seed)
            what = f"{type(error).__name__}: {str(error)[:300]}"
            print(f"seed {seed}: {what}\n  {replay_command(seed)}", flush=True)
        if n % 1000 == 0:
            print(f"{n:,} histories, {len(failed)} failed, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{given.histories:,} histories, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
