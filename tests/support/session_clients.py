"""The processes of simulated histories, and their users: who asks, tells, takes back, extends, deletes.

Everything goes through the code that users run. What it acknowledged is written down in `Acknowledged`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from scheduler import TurnLock
from simulated_store import DiedError, Process, SimulatedStore
from surepick.errors import (
    DeletedError,
    NameTakenError,
    ParameterError,
    ProblemError,
    SessionError,
    StoreError,
    SurepickError,
)
from surepick.files.measurements import Row, import_rows
from surepick.sessions.session import Session
from surepick.sessions.streams import Place
from surepick.simulation import State

NAME, LEASE = "mine", 100.0
DELTAS = (0.3, 0.2, 0.1, 0.05)
Given = dict[str, Any]  # what a worker has measured, as `tell` takes it


@dataclass
class Acknowledged:
    """What users were told has happened, and what they do not know about: tried, and no answer came."""

    told: dict[tuple[str, str], Given] = field(default_factory=dict)  # (token, worker): what counts
    late: list[tuple[str, str]] = field(default_factory=list)
    numbers: dict[float, tuple[str, str]] = field(default_factory=dict)  # told or late: token and worker
    recorded: dict[str, tuple[int, Any, int]] = field(default_factory=dict)  # by key
    extended: list[dict[str, Any]] = field(default_factory=list)
    n_released: int = 0
    removed: set[str | int] = field(default_factory=set)  # requests, and numbers of values
    added: set[str] = field(default_factory=set)  # plans
    renamed: Counter[str] = field(default_factory=Counter)
    n_called: int = 0
    seen: Counter[str] = field(default_factory=Counter)  # what went wrong, for tests of the simulation itself
    certificates: list[dict[str, Any]] = field(default_factory=list)
    tried: Counter[str] = field(default_factory=Counter)  # by kind of event, answered or not


class Running:
    """A process of the simulation, its session, and its clock; when it has died another takes its place."""

    def __init__(self, history, name):
        self.history = history
        self.name = name
        self.skew = history.rng.uniform(-1, 1) * history.skew
        self.process = Process(name)
        self.session: Session | None = None
        self.log = 0  # the id of its log

    def clock(self):
        return self.history.now + self.skew

    def opened(self):
        """The session of this process; a new process where the old one has died."""
        if self.process.is_dead:
            self.process, self.session = Process(self.name), None
        if self.session is None:
            history = self.history
            store = SimulatedStore(history.database, self.process, history.faults)
            if NAME not in store.names():
                history.seen["begun again"] += 1
                with suppress(NameTakenError):
                    Session.create(store, NAME, history.problem, clock=self.clock, **history.options)
            session = Session.load(store, NAME, clock=self.clock)
            self.log = session.journal.log.number
            session.journal.lock = TurnLock(history.scheduler)
            self.session = session
        return self.session


class Client:
    """A user of the session: one worker, in a process that it may share."""

    def __init__(self, history, running, worker):
        self.history, self.running, self.worker = history, running, worker
        self.held: dict[str, Any] = {}  # tokens in hand, with the value once it is measured
        self.again: list[Callable[[Session], None]] = []  # deliveries that may come a second time
        self.done = history.acknowledged[1]  # of the log on which it works
        self.n = 0

    def live(self):
        """Do one thing after the other; what died or got no answer is repeated, or given up."""
        rng = self.history.rng
        for _ in range(self.history.n_steps):
            step = self._choose()
            for _ in range(8):
                log = 0
                try:
                    session, log = self.running.opened(), self.running.log
                    self.done = self.history.acknowledged[log]
                    step(session)
                    break
                except DiedError:
                    self._say("died")
                    self.done.seen["death"] += 1
                    if rng.random() < 0.5:
                        self.held = {}
                except DeletedError as error:
                    assert log in self.history.database.graves or not log
                    self._say(f"deleted: {error}")
                    self.done.seen["after it was deleted"] += 1
                    if self.running.log == log:
                        self.running.session = None
                    self.held, self.again = {}, []
                    if rng.random() < 0.3:
                        return
                except StoreError as error:
                    if "simulated" not in str(error) and "no session named" not in str(error):
                        raise
                    self.done.seen["no answer"] += 1
                    self._say(f"no answer: {error}")
                if rng.random() < 0.2:
                    break
            self.history.now += rng.choice([0.0, 1.0, LEASE / 3, LEASE + 1])
            if rng.random() < self.history.faults.death:
                self._power_cut()

    def _power_cut(self):
        self._say("the power is cut")
        self.done.seen["power cut"] += 1
        for running in self.history.processes:
            running.process.is_dead = True
        self.history.database.power_cut()

    def _choose(self):
        rng, faces = self.history.rng, [self.ask] * 4 + [self.tell] * 6
        faces += [self.release, self.record, self.extend, self.look, self.close, self.import_]
        faces += [self.remove, self.remove_by_number, self.rename, *self.history.rare_steps(self)]
        if self.again:
            faces += [rng.choice(self.again)] * 2  # delivered twice
        return rng.choice(faces)

    def _say(self, line):
        self.history.told(f"{self.worker}: {line}")

    def ask(self, session):
        history = self.history
        requests = session.ask(history.rng.choice([1, 2, 5]), worker=self.worker, wait=False)
        self._say(f"asked, got {[r.token for r in requests]}")
        for request in requests:
            self._got(request, session.journal.log.number)
            self.held.setdefault(request.token, self._measured(request))
        if not requests and session.status in (State.CLOSED, State.BUDGET_SPENT):
            self._extend(session, {"budget": 500})

    def _got(self, request, log):
        """A worker is told of no lease that it was not granted; the store looks that no two have one."""
        granted = {lease[1:] for lease in self.history.database.granted if lease[0] == log}
        assert (request.token, self.worker, request.expires) in granted, f"{request} was not granted"
        others = {worker for token, worker, _ in granted if token == request.token} - {self.worker}
        self.done.seen["handed on"] += bool(others)

    def _measured(self, request):
        rng, value = self.history.rng, self.history.value
        several = rng.random() if request.wanted > 1 else 1.0
        lost = rng.random() < 0.05
        if len(request.readings) > 1:
            use = value(request.probe)
            return {"value": {**use, next(iter(use)): None} if lost else use}
        if lost:
            return {"value": None}
        if several < 0.3:
            return {"value": [value(request.probe) for _ in range(rng.choice([2, 3]))]}
        return {"value": value(request.probe)}

    def tell(self, session):
        if not self.held:
            self.ask(session)
        if not self.held:
            return
        token = self.history.rng.choice(sorted(self.held))
        given = self.held[token]
        self._tell(session, token, given)
        self.again.append(lambda session: self._tell(session, token, given))
        self.held.pop(token, None)

    def _tell(self, session, token, given):
        done, several = self.done, isinstance(given["value"], list)
        n = len(given["value"]) if several else 1
        receipt = self._try(
            "measured", f"tell {token}", lambda: session.tell(token, **given, worker=self.worker), n
        )
        if receipt is None:
            return
        readings = given["value"] if isinstance(given["value"], dict) else {}
        done.seen[f"readings: {receipt}"] += bool(readings)
        done.seen["lost"] += None in readings.values() or given["value"] is None
        if receipt.result == "extra" and not several:  # of several, the receipt is that of the last
            done.late.append((token, self.worker))
        if receipt.result == "recorded":
            done.told[token, self.worker] = given
        if receipt.result != "repeated":
            done.numbers.update((one, (token, self.worker)) for one in readings.values() if one is not None)

    def _try(self, kind, what, step, n=1):
        """Do this, which may write n events of this kind; what it returns, or None if it is refused."""
        self.done.tried[kind] += n
        try:
            result = step()
        except (ParameterError, ProblemError, SessionError) as error:
            self._say(f"{what}, refused: {error}")
            return None
        self._say(f"{what}, {result}")
        return "done" if result is None else result

    def release(self, session):
        if not self.held:
            return
        token = self.history.rng.choice(sorted(self.held))
        step = lambda: session.release(token, "busy", worker=self.worker)  # noqa: E731
        if self._try("released", f"release {token}", step):
            probe, index = Place.parse(token)
            is_recorded = session.journal.state.streams.of[probe].is_recorded(index)  # by an extra value
            self.done.n_released += not is_recorded
        del self.held[token]

    def record(self, session):
        self.n += 1
        arm, key = self.history.rng.randrange(self.history.problem.n_probes), f"{self.worker}, {self.n}"
        value = self.history.value(arm)

        def deliver(session):
            step = lambda: session.tell(arm, value, key=key, worker=self.worker)  # noqa: E731
            receipt = self._try("measured", f"record {key!r}", step)
            if receipt is not None:  # else it was removed meanwhile
                self.done.recorded[key] = (arm, value, receipt.number)
                self.done.seen["extra"] += receipt.result == "extra"

        self.again.append(deliver)
        deliver(session)

    def import_(self, session):
        """A file with what was measured by hand: some tokens, some rows that are extra measurements."""
        rng, held = self.history.rng, sorted(self.held)[:2]
        rows = [
            Row("a row", repr(self.held[token]["value"]), token=token, worker=self.worker)
            for token in held
            if isinstance(self.held[token].get("value"), float)
        ]
        self.n += 1
        problem = self.history.problem
        single = [probe for probe in range(problem.n_probes) if len(problem.reads(probe)) == 1]
        arm, key = rng.choice(single), f"{self.worker}, row {self.n}"
        value = self.history.value(arm)
        rows.append(Row("a row", repr(value), name=problem.probe_names[arm], key=key))

        def deliver(session):
            step = lambda: import_rows(session, rows, worker=self.worker)  # noqa: E731
            if self._try("measured", f"import {len(rows)} rows", step, len(rows)):
                self.done.recorded.setdefault(key, (arm, value, 0))

        self.again.append(deliver)
        deliver(session)

    def extend(self, session):
        rng = self.history.rng
        self._extend(
            session, rng.choice([{"delta": rng.choice(DELTAS)}, {"budget": rng.choice([15, 50, 500])}])
        )

    def _extend(self, session, wanted):
        if self._try("extended", f"extend {wanted}", lambda: session.extend(**wanted)):
            self.done.extended.append(wanted)

    def remove(self, session):
        """Remove a value that was told, by any worker; once, however often it is tried."""
        tokens = sorted({token for token, _ in self.done.told})
        if tokens:
            self._remove(session, self.history.rng.choice(tokens))

    def remove_by_number(self, session):
        """The same by the number of a value, which may be an extra one."""
        numbers = sorted(number for _, _, number in self.done.recorded.values() if number)
        if numbers:
            self._remove(session, self.history.rng.choice(numbers))

    def _remove(self, session, value):
        done = self.done
        used = self._try("removed", f"remove {value}", lambda: session.remove(value, "the wrong road"))
        if used is None:
            return
        assert value not in done.removed, f"{value} was removed twice"
        done.removed.add(value)
        done.seen["removed by number"] += isinstance(value, int)
        done.seen["used and removed"] += used

    def rename(self, session):
        self.n += 1
        title = f"{self.worker}, title {self.n}"
        session.rename(title)
        self.done.renamed[title] += 1

    def add_plan(self, session):
        """A plan of its own, with an arm that is new or without; as good as no other."""
        rng, names = self.history.rng, self.history.problem.arm_names
        self.n += 1
        name, amounts = f"{self.worker}, plan {self.n}", {rng.choice(names): rng.choice([2.0, 2.5])}
        new_arms = ["the new arm"] if rng.random() < 0.4 else []  # which comes once
        plan = {**amounts, **dict.fromkeys(new_arms, 1.0)}
        if self._try("added", f"add {name!r}", lambda: session.add_plan(name, plan, arms=new_arms)):
            self.done.added.add(name)
            self.done.seen["added an arm"] += len(new_arms)

    def final_batch(self, session):
        rng = self.history.rng
        n, gaussian = rng.choice([5, 20, 60]), rng.random() < 0.5
        if self._try("final-batch", "final batch", lambda: session.final_batch(n, gaussian=gaussian)):
            self.done.n_called += 1

    def delete(self, session):
        """Delete the session as it is seen now, if it has ended; what others write meanwhile is not lost."""
        head = session.journal.log.head()
        try:
            session.delete(expected=head)
        except SurepickError as error:
            if isinstance(error, DeletedError) or "simulated" in str(error):
                raise
            self._say(f"not deleted: {error}")
            return
        self._say("deleted")
        self.done.seen["deleted"] += 1

    def close(self, session):
        session.close("enough")
        self.done.tried["closed"] += 1
        self._say("closed")

    def look(self, session):
        self._say(f"sees {session.status}, {session.state().n_values} told")
        assert session.state().standing() is not None
        session.pending()
        session.leases()
        if session.status is State.CONFIDENT:
            with suppress(SessionError):  # another worker extended it a moment ago
                self.done.certificates.append(session.certificate().to_json())
