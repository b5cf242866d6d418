"""Every pair of operations in every interleaving of their statements comes out as in one order or the other.

Two processes do one thing each on a simulated database, once for every way in which their statements can
follow each other. What each is told, and what the log then holds, must be as if one had waited for the other.
"""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest

import surepick as sp
from planted_mistakes import close_before_the_decision, extend_what_was_seen_before
from scheduler import Scheduler
from session_tools import Tapes, answer
from simulated_store import Database, Faults, Process, SimulatedStore
from surepick.errors import ConflictError, ParameterError, ProblemError, SessionError
from surepick.sessions import codec, journal
from surepick.sessions.events import Measured, decode
from surepick.sessions.journal import Change
from surepick.sessions.session import Session
from surepick.sessions.setup import Setup
from surepick.sessions.state import SessionState
from surepick.sessions.verify import verify_events

PROBLEM = sp.Problem([[1, 0], [0, 1]], noise=0.3, goal="largest")
POLICY = sp.CombGapE(delta=0.3)
MEANS = np.array([2.0, 0.0])
TAPES = Tapes(1, means=MEANS, scale=0.1)
NAME, NOW = "mine", 1e9
UNCOUNTED = ("asked", "measured", "stopped")


def tell_next(value, worker):
    """Tell the first token that the round waits for: what its tape says, or another value."""

    def tell(session):
        token = TOKENS[session.journal.setup.seed]
        return session.tell(token, TAPES.value(token) if value is None else value, worker=worker)

    return tell


OPERATIONS: dict[str, Callable[[Session], object]] = {
    "ask, a": lambda s: s.ask(2, worker="a", wait=False),
    "ask, b": lambda s: s.ask(2, worker="b", wait=False),
    "tell, a": tell_next(None, "a"),
    "tell otherwise, b": tell_next(7.0, "b"),
    "withdraw": lambda s: s.release(TOKENS[s.journal.setup.seed]),
    "record": lambda s: s.tell(0, 1.0, key="sheet"),
    "rename": lambda s: s.rename("a title"),
    "extend to .2": lambda s: s.extend(delta=0.2),
    "extend to .1": lambda s: s.extend(delta=0.1),
    "extend the budget": lambda s: s.extend(budget=1000),
    "close": lambda s: s.close(),
    "look": lambda s: s.state().n_values,
}
# What newer policies can do as well; in pairs with each other and with those that they change the meaning of.
NEWER: dict[str, Callable[[Session], object]] = {
    "void, a": lambda s: s.remove(FIRST, "the wrong road"),
    "void, b": lambda s: s.remove(FIRST, "another road"),
    "remove an extra value": lambda s: s.remove(EXTRA, "the wrong road"),
    "add a plan": lambda s: s.add_plan("both", [1.0, 1.0]),
    "add it too": lambda s: s.add_plan("both", [1.0, 2.0]),
    "add an arm": lambda s: s.add_plan("more", {"arm 0": 1.0, "new": 1.0}, arms=["new"]),
    "the final batch": lambda s: s.final_batch(9),
}
OPERATIONS |= NEWER
BESIDE = ("tell, a", "ask, a", "extend to .2", "extend the budget", "close", "record")
FIRST, EXTRA = "0.0", 1  # a request that was answered, and the number of an extra value
TOKENS: dict[int, str] = {}  # by the session's seed: the token that the next round waits for
OLDER = [name for name in OPERATIONS if name not in NEWER]
PAIRS = list(itertools.combinations_with_replacement(OLDER, 2))
NEW_PAIRS = [*itertools.combinations_with_replacement(NEWER, 2), *itertools.product(NEWER, BESIDE)]
SOME_NEW_PAIRS = [
    ("void, a", "void, b"),
    ("void, a", "add a plan"),
    ("add a plan", "add it too"),
    ("add an arm", "the final batch"),
    ("the final batch", "the final batch"),
    ("the final batch", "close"),
    ("remove an extra value", "extend to .2"),
]


def begun(beginning):
    """A database with a session that is some way on its way; see BEGINNINGS."""
    seed, database = len(TOKENS), Database(Scheduler(lambda names: 0))
    policy = sp.BetGapE(delta=0.3) if beginning == BETS else POLICY
    store = SimulatedStore(database, Process("first"), Faults(None))
    session = Session.create(store, NAME, PROBLEM, policy=policy, seed=seed, lease=100.0, clock=lambda: NOW)
    if beginning == BETS:
        place = session.state().streams.of[0].appended_at
        session.journal.commit(lambda state: Change([Measured(EXTRA, 0, place, [0.5], "", "", "", "")]))
        answer(session, lambda request: 0.1 * request.probe, n=3, worker="a")
    else:
        expected = sp.simulate(PROBLEM, Tapes(1, means=MEANS, scale=0.1), policy=POLICY, seed=seed)
        n = 1 if beginning == "just begun" else expected.n_measured - 1
        answer(session, lambda request: TAPES.value(request.token), n=n, worker="a")
    TOKENS[seed] = session.pending()[0].token
    session.journal.log.release([lease.token for lease in session.journal.log.leases()])
    return database


class Pair:
    """Two processes that do one thing each, on a copy of a database."""

    def __init__(self, begin, names, *, one_lock):
        self._begin, self._names, self._one_lock = begin, names, one_lock

    def at_once(self, choose):
        """What both are told and what is left, when both begin and these choices are made."""
        scheduler = Scheduler(choose)
        database, told = self._database(scheduler), {}
        for i in (0, 1):
            session = opened(database)
            scheduler.add(str(i), lambda i=i, session=session: told.update({i: self._do(i, session)}))
        scheduler.run()
        check_leases(database, told[0], told[1])
        return shown(told[0]), shown(told[1]), left(database)

    def one_after_the_other(self):
        """The two outcomes when one comes after the other has gone."""
        outcomes = []
        for order in ((0, 1), (1, 0)):
            database = self._database(Scheduler(lambda names: 0))
            told = {i: self._do(i, opened(database)) for i in order}
            outcomes.append((shown(told[0]), shown(told[1]), left(database)))
        return outcomes

    def _database(self, scheduler):
        database = Database(scheduler, one_lock=self._one_lock)
        database.commit(self._begin.now, durable=True)
        return database

    def _do(self, i, session):
        try:
            return OPERATIONS[self._names[i]](session)
        except (SessionError, ParameterError, ProblemError) as error:
            return type(error).__name__


def opened(database):
    """The session, opened by a new process."""
    store = SimulatedStore(database, Process("any"), Faults(None))
    return Session.load(store, NAME, clock=lambda: NOW)


def shown(told):
    """What an operation was told; of tokens only how many, since which they are is the session's choice.

    Nor does it matter whether a policy that starts over had read a value again before it was taken back.
    """
    return len(told) if isinstance(told, list) else "done" if isinstance(told, bool) else told


def check_leases(database, *told):
    """No token is given to two workers, and none that has its measurement already is leased for nothing."""
    given = [request for requests in told if isinstance(requests, list) for request in requests]
    workers = {(request.token, request.worker) for request in given}
    assert len({token for token, _ in workers}) == len(workers), "two workers have one token"
    leased = {(lease.token, lease.worker) for lease in database.now.log(NAME).leases()}
    assert leased <= workers, "a lease that nobody knows of"


def left(database):
    """What the log says in the end; the order of things that commute makes no difference."""
    events = [(event.kind, json.loads(event.body)) for event in database.now.log(NAME).read()]
    ledger, values = SessionState(Setup.from_json(events[0][1])), []
    for kind, body in events[1:]:
        if kind == "measured":
            extra = body["request"] != f"{body['probe']}.{body['index']}"  # it may come after the end, too
            values.append((body["probe"], body["values"], body["worker"], not extra and ledger.is_over))
        ledger.apply(decode(kind, codec.dumps(body)))
    assert verify_events(NAME, list(database.now.log(NAME).read()), database.now.log(NAME).head()).holds
    # an extra measurement is used at the next decision that wants it, and which that is depends on the order
    return (
        None if ledger.n_extra else (ledger.status, ledger.plan),
        ledger.is_due,
        ledger.setup.policy.delta,
        ledger.setup.budget,
        ledger.n_extra,
        sorted(values),
        sorted(Counter(kind for kind, _ in events if kind not in UNCOUNTED).items()),
    )


def schedules(run):
    """Every way in which the turns can be given, and what comes of it."""
    prefix: list[int] = []
    while True:
        trail: list[tuple[int, int]] = []

        def choose(names, prefix=prefix, trail=trail):
            choice = prefix[len(trail)] if len(trail) < len(prefix) else 0
            trail.append((choice, len(names)))
            return choice

        yield prefix, run(choose)
        while trail and trail[-1][0] + 1 == trail[-1][1]:
            trail.pop()
        if not trail:
            return
        prefix = [choice for choice, _ in trail[:-1]] + [trail[-1][0] + 1]


class Watch:
    """What `replica` measures decisions with: all of them are quick, or all are slow."""

    def __init__(self, *, slow):
        self._step, self._now = float(slow), 0.0

    def thread_time(self):
        self._now += self._step
        return self._now

    def monotonic(self):
        return 0.0


# Whether decisions are slow, and whether those who claim leases wait for those who append, as in SQLite.
MODES = {
    "quick, one lock": (False, True),
    "quick, two locks": (False, False),
    "slow, one lock": (True, True),
    "slow, two locks": (True, False),
}
BETS = "of bets"  # a session of BetGapE, to which plans can be added, some way into its second round
BEGINNINGS = ("just begun", "before the last measurement")


def interleave(mode, beginning, pairs):
    """Run these pairs in every interleaving; how many there were."""
    slow, one_lock = MODES[mode]
    n = 0
    with mock.patch.object(journal, "time", Watch(slow=slow)):
        begin = begun(beginning)
        for names in pairs:
            pair = Pair(begin, names, one_lock=one_lock)
            allowed = pair.one_after_the_other()
            for choices, outcome in schedules(pair.at_once):
                n += 1
                assert outcome in allowed, f"{names}, {mode}, {beginning}, turns {choices}"
    return n


OFTEN = [("quick, one lock", "just begun"), ("slow, two locks", "before the last measurement")]
ALL = [
    pytest.param(*case, marks=() if case in OFTEN else pytest.mark.slow)
    for case in itertools.product(MODES, BEGINNINGS)
]


@pytest.mark.parametrize(("mode", "beginning"), ALL)
def test_two_operations_at_once_are_one_after_the_other(mode, beginning):
    assert interleave(mode, beginning, PAIRS) > 2 * len(PAIRS)


@pytest.mark.parametrize(
    ("mode", "pairs"),
    [
        pytest.param("quick, one lock", SOME_NEW_PAIRS, id="some"),
        *(pytest.param(mode, NEW_PAIRS, id=mode, marks=pytest.mark.slow) for mode in MODES),
    ],
)
def test_two_newer_operations_at_once_are_one_after_the_other(mode, pairs):
    assert interleave(mode, BETS, pairs) > 2 * len(pairs)


@pytest.mark.parametrize(
    ("mistake", "names", "beginning"),
    [
        (close_before_the_decision, ("tell, a", "close"), "before the last measurement"),
        (extend_what_was_seen_before, ("extend to .2", "extend the budget"), BETS),
    ],
)
def test_a_planted_mistake_is_found_among_the_interleavings(mistake, names, beginning, monkeypatch):
    mistake(monkeypatch)
    with pytest.raises((AssertionError, ConflictError)):  # the key of an extension is taken
        interleave("slow, one lock", beginning, [names])
