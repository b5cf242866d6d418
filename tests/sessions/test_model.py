"""Random lives of a session, checked at every step against a model and at the end against `simulate`."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import surepick as sp
from common import refuses
from session_tools import Tapes, problem, same_run
from surepick.errors import SessionError
from surepick.sessions.leases import Request
from surepick.sessions.session import Session

WORKERS = st.sampled_from(["a", "b", "c"])
LEASE = 100.0


class SessionLife(RuleBasedStateMachine):
    """Asks, tells, withdrawals, expiry and restarts in any order; the model is two dictionaries."""

    @initialize(seed=st.integers(0, 20))
    def begin(self, seed):
        self.now = 1e9
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.url = f"sqlite:///{self.folder.name}/store.db"
        self.seed = seed
        self.told: dict[str, float] = {}  # what the model knows: token -> value
        self.by: dict[str, str] = {}  # who told it
        self.late: dict[tuple[str, str], float] = {}  # token, and who told it after another worker
        self.taken: set[str] = set()  # places that extra measurements took
        self.held: dict[tuple[str, str], Request] = {}  # what workers have in hand, expired or not
        self.session = Session.create(
            self.url, "mine", problem(), policy=sp.CombGapE(delta=0.2), lease=LEASE, clock=lambda: self.now
        )
        self.tapes = Tapes(seed)

    @rule(worker=WORKERS, n=st.integers(1, 5))
    def ask(self, worker, n):
        requests = self.session.ask(n, worker=worker, wait=False)
        assert len({request.token for request in requests}) == len(requests) <= n
        for request in requests:
            assert request.token not in self.told
            for (other, token), held in self.held.items():
                if token == request.token and other != worker:
                    assert held.expires <= self.now
            self.held[worker, request.token] = request
        again = self.session.ask(n, worker=worker, wait=False)
        assert [r.token for r in again] == [r.token for r in requests]

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def tell(self, data):
        key = data.draw(st.sampled_from(sorted(self.held)))
        request = self.held.pop(key)
        token, value = request.token, self.tapes.value(request.token)
        if token in self.taken or self.by.get(token, request.worker) != request.worker:
            self.tell_late(token, request.worker, value)
            return
        receipt = self.session.tell(request, value)
        assert receipt.result == ("repeated" if token in self.told else "recorded")
        self.told[token], self.by[token] = value, request.worker

    @precondition(lambda self: self.told)
    @rule(data=st.data(), worker=WORKERS)
    def tell_otherwise(self, data, worker):
        token = data.draw(st.sampled_from(sorted(self.told)))
        if worker != self.by[token]:
            self.tell_late(token, worker, self.told[token] + 1.0)
            return
        with refuses("value", SessionError):
            self.session.tell(token, self.told[token] + 1.0, worker=worker)

    def tell_late(self, token, worker, value):
        """Another value is recorded at this place: the worker's first one is extra, the same one repeated."""
        if self.late.get((token, worker), value) != value:
            with refuses("value", SessionError):
                self.session.tell(token, value, worker=worker)
            return
        receipt = self.session.tell(token, value, worker=worker)
        assert receipt.result == ("repeated" if (token, worker) in self.late else "extra")
        if (token, worker) not in self.late:
            self.late[token, worker] = value
            self.note_taken(int(token.split(".")[0]))

    def note_taken(self, arm):
        self.taken.add(f"{arm}.{self.session.state().streams.of[arm].last}")

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def withdraw(self, data):
        key = data.draw(st.sampled_from(sorted(self.held)))
        request = self.held[key]
        if request.token in self.told:
            return
        others = (r for k, r in self.held.items() if k[1] == request.token and r.worker != request.worker)
        if any(other.expires > self.now for other in others):
            with refuses("worker", SessionError):
                self.session.release(request)
            return
        for other in [k for k in self.held if k[1] == request.token]:
            del self.held[other]
        self.session.release(request)

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE + 1.0]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def restart(self):
        self.session.store.close()
        self.session = Session.load(self.url, "mine", clock=lambda: self.now)

    @rule()
    def look_from_elsewhere(self):
        other = Session.load(self.url, "mine", clock=lambda: self.now)
        assert other.status == self.session.status
        assert other.state().n_values == self.n_values()

    @invariant()
    def what_was_told_is_kept(self):
        if hasattr(self, "session"):
            assert self.session.state().n_values == self.n_values()

    def n_values(self):
        return len(self.told) + len(self.late)

    def teardown(self):
        if not hasattr(self, "session"):
            return
        kept = {m.token: m.value for m in self.session.measurements() if m.token is not None}
        assert kept == self.told
        while requests := self.session.ask(3, worker="last", wait=False) or self._after_expiry():
            for request in requests:
                self.session.tell(request, self.tapes.value(request.token))
        assert self.session.status != "running"
        self.check_the_end(self.session.outcome)
        self.session.store.close()
        self.folder.cleanup()

    def check_the_end(self, outcome):
        if self.session.state().n_extra_used:  # late ones; `simulate` knows nothing of them
            assert self.session.verify(self.session.certificate().to_json()).holds
            return
        assert same_run(
            outcome, sp.simulate(problem(), Tapes(self.seed), policy=sp.CombGapE(delta=0.2), seed=0)
        )

    def _after_expiry(self):
        self.now += LEASE + 1
        return self.session.ask(3, worker="last", wait=False)


class LifeWithUnasked(SessionLife):
    """The same with extra measurements: a replay of the log decides as the session did."""

    n_recorded = 0

    @precondition(lambda self: hasattr(self, "session"))
    @rule(arm=st.integers(0, 3))
    def record(self, arm):
        n, value = self.session.state().n_values, self.tapes.value(f"{arm}.{19_000 + self.n_recorded}")
        receipt = self.session.tell(arm, value, worker="other")
        *_, found = self.session.measurements()
        assert (receipt.number, found.value, found.probe) == (n + 1, value, arm)
        if found.token is None:
            self.n_recorded += 1
            self.note_taken(arm)
        else:  # it answered the oldest open request
            assert found.token not in self.told
            self.told[found.token], self.by[found.token] = value, "other"

    def n_values(self):
        return super().n_values() + self.n_recorded

    def check_the_end(self, outcome):
        ledger, certificate = self.session.state(), self.session.certificate()
        assert ledger.n_extra == self.n_recorded + len(self.late)
        assert ledger.n_extra_used <= ledger.n_extra
        assert outcome.n_measured == outcome.counts.sum()
        assert self.session.verify(certificate.to_json()).holds
        assert same_run(Session.load(self.url, "mine").outcome, outcome)


SETTINGS = settings(
    max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSessionLife = SessionLife.TestCase
TestSessionLife.settings = SETTINGS
TestLifeWithUnasked = LifeWithUnasked.TestCase
TestLifeWithUnasked.settings = SETTINGS
