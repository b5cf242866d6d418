"""Simulate histories of one session from a seed: many processes, one log, and every kind of fault.

    python tests/support/session_histories.py --histories 20000     # `make soak`
    python tests/support/session_histories.py --seed 1234           # repeat one history, step by step

Every history draws a problem, a policy, the number of processes and the faults that strike. The processes
run the code that users run, on a `SimulatedStore`. They ask; record one value, several, or the readings of a
probe at once and in parts; release requests; record extra measurements; remove values; import, rename,
extend, add plans, request a final batch, close, delete, begin again under the same name, and look.
The history keeps what the code acknowledged for each log, and checks at the end that the log contains it.
"""

import argparse
import json
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from random import Random
from unittest import mock

import numpy as np
import pytest

import surepick as sp
from scheduler import Scheduler
from session_clients import LEASE, NAME, Acknowledged, Client, Running
from simulated_store import Database, DiedError, Faults, Process, SimulatedStore
from surepick.errors import DeletedError
from surepick.policies import RAGE, TSExplore, Uniform
from surepick.policy import Policy
from surepick.sessions import journal
from surepick.sessions.events import Measured, Removed, Renamed, decode
from surepick.sessions.session import Session
from surepick.sessions.setup import Setup
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.sessions.verify import verify_events
from surepick.simulation import State

PAIRS = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
PROBLEMS = [
    sp.Problem([[1, 0], [0, 1]], noise=0.3, goal="largest"),
    sp.Problem(PAIRS, noise=0.3, goal="largest"),
    sp.Problem(
        PAIRS,
        arms=["a", "b", "c"],
        noise=0.3,
        measure={"left": ["a", "b"], "right": ["b", "c"], "mix": {"a": 1, "c": -1}},
        goal="largest",
    ),
]
NEW_ARM = 0.25  # the mean of an arm that comes with a plan
POLICIES: list[Callable[[float], Policy]] = [
    lambda delta: sp.CombGapE(delta=delta),
    lambda delta: Uniform(delta=delta),
    lambda delta: sp.BetGapE(delta=delta),
    lambda delta: sp.BetGapE(delta=delta, max_batch=2),
    lambda delta: TSExplore(delta=delta),
    lambda delta: RAGE(delta=delta),  # rounds of many measurements, which may be told as means
]
BETS = POLICIES[2:4]  # which take probes and plans that arrive
ANSWERED = (State.CONFIDENT, State.DONE)  # with a guarantee, and without one
ENDLESS = 100_000  # a budget


class History:
    """One simulated life of a session: `run` makes it happen, `check` judges it."""

    def __init__(self, seed, *, told=lambda line: None):
        rng = self.rng = Random(seed)
        self.seed, self.told = seed, told
        self.now = 1e9
        self.problem = rng.choice(PROBLEMS)
        self.make_policy = rng.choice(POLICIES if self.problem.probes is None else BETS)
        self.means = rng.sample([0.0, 1.0, 3.0], self.problem.n_arms)  # no two plans are equally good
        self.constants = {
            "SNAPSHOT_EVERY": rng.choice([2, 7, 30, 3000]),
        }
        self.slow = rng.choice([0.0, 0.3, 0.7])  # how often a decision takes longer than others should wait
        self.skew = rng.choice([0.0, 0.0, 5.0, 300.0])  # seconds by which clocks differ
        mild = rng.choice([0.0, 0.3, 1.0])
        self.faults = Faults(rng, death=0.02 * mild, lost=0.02 * mild, stale=rng.choice([0.0, 0.3]) * mild)
        self.scheduler = Scheduler(self._next)
        self.stalls = rng.choice([0.0, 0.03])
        self._stalled, self._stalled_for = "", 0
        one_lock = rng.random() < 0.7
        self.database = Database(self.scheduler, one_lock=one_lock)
        self.done = Acknowledged()  # of the log that is being judged; at last of the one that was not deleted
        self.acknowledged: defaultdict[int, Acknowledged] = defaultdict(Acknowledged)  # by the id of the log
        self.seen: Counter[str] = Counter()  # what went wrong, for tests of the simulation itself
        self.processes: list[Running] = []
        self.n_steps = rng.choice([4, 10, 20])
        self.calls, self.deletes, grows = (rng.random() < often for often in (0.6, 0.5, 0.6))
        self.grows = grows and self.make_policy in BETS and self.problem.probes is None

    def run(self):
        """Run all processes to their end, then check the log and finish the session without faults."""
        with self._simulated_time():
            budget = self.rng.choice([None, None, 10, 40])
            policy, lease = self.make_policy(0.3), LEASE
            self.options = {"policy": policy, "seed": self.seed % 100, "budget": budget, "lease": lease}
            quiet = SimulatedStore(self.database, Process("creator"), Faults(self.rng))
            Session.create(quiet, NAME, self.problem, clock=lambda: self.now, **self.options)
            for i in range(self.rng.choice([1, 2, 3, 4, 6])):
                running = Running(self, f"process {i}")
                self.processes.append(running)
                for k in range(self.rng.choice([1, 1, 2])):
                    client = Client(self, running, f"worker {i}.{k}")
                    self.scheduler.add(client.worker, client.live)
            self.scheduler.run()
            self.faults.end()
            self.check(quiet)
            self.seen += sum((done.seen for done in self.acknowledged.values()), Counter())

    def rare_steps(self, client):
        """Return the steps that only some histories have: a final batch, a deletion, plans that are added."""
        rare = [client.final_batch] * self.calls + [client.delete] * self.deletes
        return rare + [client.add_plan] * 2 * self.grows

    def _next(self, names):
        """Return which process runs next, at random; now and then one stalls while the others continue."""
        if self._stalled_for == 0 and self.rng.random() < self.stalls:
            self._stalled, self._stalled_for = self.rng.choice(names), self.rng.choice([10, 40, 100])
        self._stalled_for = max(0, self._stalled_for - 1)
        awake = [i for i, name in enumerate(names) if name != self._stalled or not self._stalled_for]
        return self.rng.choice(awake)

    @contextmanager
    def _simulated_time(self):
        with mock.patch.object(journal, "time", self), mock.patch.multiple(journal, **self.constants):
            yield

    def thread_time(self):
        """What `journal` measures decisions with: some of them seem slow."""
        self._seconds = getattr(self, "_seconds", 0.0) + (self.rng.random() < self.slow)
        return self._seconds

    def monotonic(self):
        return self.now

    def value(self, probe):
        """A measurement: a number, or those of a probe with several readings by their names."""
        probes = self.problem.probes
        if probes is None:
            mean = self.means[probe] if probe < len(self.means) else NEW_ARM
            return mean + 0.3 * self.rng.gauss(0, 1)
        rows = probes.rows[list(self.problem.readings_of(probe))]
        told = [mean + 0.3 * self.rng.gauss(0, 1) for mean in (rows @ self.means).tolist()]
        names = self.problem.reads(probe)
        return told[0] if len(told) == 1 else dict(zip(names, told, strict=True))

    # What must hold in the end

    def check(self, store):
        """All that was acknowledged is in the log, and the log is one that an honest session writes."""
        for number, grave in self.database.graves.items():
            self.done = self.acknowledged[number]
            self._check_kept(grave)
            self._check_course(grave)
            assert self.state.is_over, "a session that ran was deleted"
            assert verify_events(NAME, grave, grave[-1].head).holds
        if NAME not in store.names():
            return
        log = store.log(NAME)
        self.done = self.acknowledged[log.number]
        assert not self.done.seen["deleted"]
        events = list(log.read())
        self._check_kept(events)
        self._check_course(events)
        for running in self.processes:
            self._check_replica(running, events)
        session = Session.load(store, NAME, clock=lambda: self.now)
        for certificate in self.done.certificates:
            later = {event.kind for event in events[certificate["log_position"] :]}
            if not later & {"extended", "removed", "plan-added"}:
                verdict = session.verify(certificate)
                assert verdict.holds, verdict
        self._finish(session)

    def _check_kept(self, events):
        done = self.done
        found = [decode(event.kind, event.body) for event in events]
        values = [one for one in found if isinstance(one, Measured)]
        by_place = {str(one.place): one for one in values}
        by_number = {one.number: one for one in values}
        assert len(by_place) == len(by_number) == len(values), "a measurement was counted twice"
        by_key = {one.key: one for one in values if one.key}
        self._check_told(values, by_place)
        for key, (probe, value, number) in done.recorded.items():
            assert key in by_key, f"{key!r} was recorded and is gone"
            names = self.problem.reads(probe)
            told = [value] if len(names) == 1 else [value[name] for name in names]
            assert (by_key[key].probe, by_key[key].values) == (probe, told)
            assert number in (0, by_key[key].number)
        written = Counter(event.kind for event in events)
        assert len(done.extended) <= written["extended"] <= done.tried["extended"]
        assert done.n_released <= written["released"] <= done.tried["released"]
        assert done.n_called <= written["final-batch"] <= done.tried["final-batch"]
        assert len(done.removed) <= written["removed"] <= done.tried["removed"]
        removed = {str(one.place) for one in found if isinstance(one, Removed)}
        for value in done.removed:
            place = str(by_number[value].place) if isinstance(value, int) else value
            assert place in removed, f"{value} was removed and counts again"
        keys = {event.key for event in events}
        assert {f"plan:{name}" for name in done.added} <= keys, "a plan that was added is gone"
        assert written["plan-added"] <= done.tried["added"]
        titles = Counter(one.title for one in found if isinstance(one, Renamed))
        assert not done.renamed - titles, "a title is gone"

    def _check_told(self, values, by_place):
        """What was told is there once: at the place of its request, or as an extra measurement."""
        for (token, worker), given in self.done.told.items():
            assert token in by_place, f"{token} was acknowledged to {worker} and is gone"
            if not isinstance(given["value"], dict):
                first = given["value"][0] if isinstance(given["value"], list) else given["value"]
                assert by_place[token].values == [first]
        made_for = {(one.request, one.worker) for one in values if one.is_extra}
        for token, worker in self.done.late:
            assert (token, worker) in made_for, f"the late value of {worker} for {token} is gone"
            assert by_place[token].worker != worker or by_place[token].is_extra
        kept = Counter(number for one in values for number in one.values if number is not None)
        assert set(kept.values()) <= {1}, "a value is in the log twice"
        for number, (token, worker) in self.done.numbers.items():
            assert number in kept, f"{number}, told under {token} by {worker}, is gone"

    def _check_course(self, events):
        """Along the log delta never loosens, budgets never shrink, and no answer is closed away."""
        state = SessionState(Setup.from_json(json.loads(events[0].body)))
        for event in events[1:]:
            before, due, over = state.setup, state.is_due, state.status
            if event.kind == "closed":
                assert not due, "a batch that was complete was closed before its decision"
                assert over is None, f"closed after it had ended as {over}"
            state.apply(decode(event.kind, event.body))
            assert state.setup.policy.delta <= before.policy.delta, "delta was loosened"
            if before.budget is not None and state.setup.budget is not None:
                assert state.setup.budget >= before.budget, "the budget shrank"
        for wanted in self.done.extended:
            assert state.setup.policy.delta <= wanted.get("delta", math.inf), "an extension is gone"
            assert (state.setup.budget or math.inf) >= wanted.get("budget", 0), "an extension is gone"
        self.state = state

    def _check_replica(self, running, events):
        """A living process has the same state as a replay of the whole log."""
        if running.session is None or running.process.is_dead:
            return
        if running.log in self.database.graves:
            with pytest.raises(DeletedError):
                running.session.state()
            return
        mine = running.session.state()
        assert running.session.journal.head == events[-1].head
        assert _text(mine) == _text(self.state), "two processes see different sessions"

    def _finish(self, session):
        """Go on to the answer, and find it to be the one of `simulate` on the same measurements."""
        self.now += 10 * LEASE + 1000
        verdict = session.verify()
        assert verdict.holds, verdict
        called, arrived = session.state().final is not None, bool(session.state().added)
        if session.status not in ANSWERED and not called:
            session.extend(budget=ENDLESS)
        self._measure_all(session)
        leased = [lease.token for lease in session.journal.log.leases()]
        streams = session.state().streams.of
        for probe, index in map(Place.parse, leased):
            assert not streams[probe].is_recorded(index), "a recorded request is leased"
        outcome = session.outcome
        assert outcome.state in ANSWERED or called
        verdict = session.verify(session.certificate().to_json())
        assert verdict.holds, verdict
        state = session.state()
        if called or arrived or self.problem.probes is not None:
            return  # of these `simulate` knows nothing: that the log verifies has to do
        if state.n_removed or state.given.policy.delta != session.policy.delta:
            self._check_evidence(session)
            return  # decisions are kept, so a run that begins with what is left now decides otherwise
        tapes = LoggedTapes(session)
        expected = sp.simulate(self.problem, tapes, policy=session.policy, seed=session.journal.setup.seed)
        assert (outcome.plan, outcome.n_rounds) == (expected.plan, expected.n_rounds)
        assert outcome.counts.tolist() == expected.counts.tolist()
        assert outcome.means.tolist() == expected.means.tolist()

    def _check_evidence(self, session):
        """After removals and a smaller delta: the values used are those of the log that were not removed."""
        state = session.state()
        sums, counts = defaultdict(list), Counter[int]()
        cursors = [stream.cursor for stream in state.streams.of]
        for event in session.events():
            found = decode(event.kind, event.body)
            if not isinstance(found, Measured) or found.is_lost or found.place in state.streams.removed:
                continue
            if found.index < cursors[found.probe]:
                sums[found.probe] += found.values
                counts[found.probe] += 1
        assert state.evidence.counts.tolist() == [counts[arm] for arm in range(len(cursors))]
        expected = [math.fsum(sums[arm]) for arm in range(len(cursors))]
        assert state.evidence.sums.tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)

    def _measure_all(self, session):
        while requests := session.ask(20, worker="the last", wait=False):
            for request in requests:
                session.tell(request, self.value(request.probe))


def _text(state):
    return json.dumps(state.to_json(), sort_keys=True)


class LoggedTapes:
    """The measurements of a log, as a simulation reads them: the environment of the session's last run."""

    def __init__(self, session):
        self.means = np.zeros(session.problem.n_arms)
        tapes: dict[int, dict[int, float]] = defaultdict(dict)
        for event in session.events():
            found = decode(event.kind, event.body)
            if isinstance(found, Measured) and not found.is_lost:
                tapes[found.probe][found.index] = found.values[0]
        self._tapes = {arm: iter([tape[i] for i in sorted(tape)]) for arm, tape in tapes.items()}

    def measure(self, counts, rng):
        return np.array([math.fsum(next(self._tapes[a]) for _ in range(n)) for a, n in enumerate(counts)])


def replay_command(seed):
    """Return the command that repeats this history."""
    return f"python tests/support/session_histories.py --seed {seed}"


def run_history(seed, told=lambda line: None):
    """Run and check one history; a failure names its seed and the command that repeats it."""
    history = History(seed, told=told)
    try:
        history.run()
    except (Exception, DiedError) as error:
        error.add_note(f"history {seed}: {replay_command(seed)}")
        raise
    return history


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=20_000, help="how many histories to run")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="run this history alone and print every step")
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
