"""Sessions on plans that cannot be listed: what they decide, what they keep, what they need again."""

import threading

import numpy as np
import pytest

import surepick as sp
from common import refuses
from policy_contract import FOR_PLAYS
from session_tools import Tapes, run_to_end, same_run
from surepick import problems
from surepick.core.oracle_problem import OracleProblem
from surepick.errors import MissingFunctionError, ParameterError, ProblemError, SessionError
from surepick.policies import GenTSExplore, Pick
from surepick.sessions.journal import Journal
from surepick.sessions.session import Session
from surepick.sessions.verify import verify
from surepick.store import open_store

ROADS = [("A", "B"), ("B", "C"), ("A", "C"), ("C", "D"), ("A", "D")]
MEANS = np.array([1.0, 2.0, 0.3, 2.5, 1.7])
SCALE = 0.11
TREES = problems.trees(ROADS, noise=1).plans
GEN_TS = GenTSExplore(delta=0.1)
ORACLE_POLICIES = [
    policy
    for policy in sp.policies.POLICIES.values()
    if getattr(policy, "takes_oracle", False)
    and policy.name
    not in (*FOR_PLAYS, "BetGapE", "Challenge", "CTnS", "CGE")  # others need plays, lists or rows
]


def family_problem():
    return problems.trees(ROADS, list_plans=False, noise=SCALE)


def least_tree(weights):
    return TREES[np.argmin(TREES @ weights)]


def another_tree(weights):
    """The least trees of a network with the same number of roads."""
    return np.roll(least_tree(np.roll(weights, 1)), -1)


def own_problem(best=least_tree, **options):
    names = [f"{a}{b}" for a, b in ROADS]
    settings = {"noise": SCALE, "arms": names, "n_plans": 8, "goal": "smallest", **options}
    return OracleProblem(best, 5, **{"noise": 1, **settings})


def tapes():
    return Tapes(1, means=MEANS, scale=SCALE)


def new(store="memory://", problem=None, policy=GEN_TS, **options):
    options = {"name": "mine", "seed": 3, **options}
    problem = own_problem() if problem is None else problem
    return Session.create(store, problem=problem, policy=policy, **options)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def ended():
    session = new()
    run_to_end(session, tapes(), n=20)
    return session


@pytest.mark.parametrize("kind", ORACLE_POLICIES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("problem", [family_problem(), own_problem()], ids=["family", "function"])
def test_a_session_decides_as_a_simulation(kind, problem):
    if kind is Pick:
        policy, budget = Pick(), 60
    else:
        policy, budget = kind(delta=0.1), 10**7
    expected = sp.simulate(problem, tapes(), policy=policy, seed=3, budget=budget)
    session = Session.create("memory://", "mine", problem, policy=policy, seed=3, budget=budget)
    outcome = run_to_end(session, tapes())
    assert same_run(outcome, expected)
    answer = outcome.leader if kind is Pick else outcome.plan
    assert answer == tuple(problem.best_plan(MEANS))
    assert outcome.plan_name == expected.plan_name


@pytest.mark.parametrize(
    "policy", [GEN_TS, sp.BetGapE(delta=0.1), sp.BetGapE(delta=0.1, epsilon=0.1, max_batch=2)], ids=str
)
def test_restarts_and_snapshots_change_nothing(policy, url, monkeypatch):
    monkeypatch.setattr("surepick.sessions.journal.SNAPSHOT_EVERY", 7)
    expected = sp.simulate(own_problem(), tapes(), policy=policy, seed=3)
    new(url, policy=policy).store.close()
    values = tapes()
    for turn in range(10_000):
        whole = own_problem() if turn % 2 else None
        session = Session.load(url, "mine", problem=whole or least_tree)
        requests = session.ask(9)
        for request in requests:
            session.tell(request, values.value(request.token))
        if not requests:
            break
        session.store.close()
    assert (session.journal.log.snapshot() is not None) == (policy.name == "BetGapE")  # peers keep no state
    assert session.status != "running"
    assert same_run(session.outcome, expected)
    monkeypatch.setattr(Journal, "_kept_state", lambda self: None)  # the log alone
    replayed = Session.load(url, "mine", problem=least_tree)
    assert replayed.status != "running"
    assert same_run(replayed.outcome, expected)
    assert replayed.certificate().to_json() == session.certificate().to_json()
    assert replayed.verify(session.certificate().to_json()).holds


@pytest.mark.parametrize("measure", ["arms", "plan arms"])
def test_a_policy_that_needs_the_list_is_refused_before_anything_is_written(measure):
    store, problem = (
        open_store("memory://"),
        problems.trees(ROADS, list_plans=False, noise=1, measure=measure),
    )
    with refuses("policy", (ParameterError, ProblemError)):
        Session.create(store, "mine", problem, policy=sp.CombGapE())
    assert store.names() == []


def test_verify_decides_every_round_again(ended):
    """An oracle that lies later than the probes is found out: the log was decided by another one."""
    calls = 0

    def lies(weights):
        nonlocal calls
        calls += 1
        return least_tree(weights) if calls <= 3 else another_tree(weights)

    verdict = verify(ended.journal.log, oracle=lies)
    assert not verdict.holds
    assert verdict.event is not None
    assert list(ended.events())[verdict.event - 1].kind == "asked"


def test_without_its_function_a_session_is_not_opened(url):
    new(url).store.close()
    with pytest.raises(MissingFunctionError):
        Session.load(url, "mine")
    with pytest.raises(ParameterError):
        verify(open_store(url).log("mine"))
    assert Session.load(url, "mine", problem=least_tree).status == "running"


@pytest.mark.parametrize(
    ("best", "error"),
    [
        (another_tree, ParameterError),
        (lambda w: np.ones(4), ProblemError),
        (lambda w: np.full(5, np.nan), ProblemError),
    ],
    ids=["of another problem", "of another length", "not finite"],
)
def test_another_function_is_refused(ended, best, error):
    with pytest.raises(error):
        Session.load(ended.store, "mine", problem=best)
    assert Session.load(ended.store, "mine", problem=least_tree).verify().holds


def test_without_its_function_a_session_can_be_looked_at(ended):
    looked = Session.load(ended.store, "mine", read_only=True)
    assert looked.status != "running"
    assert ended.status != "running"
    assert looked.outcome.plan == ended.outcome.plan
    assert looked.outcome.counts.tolist() == ended.outcome.counts.tolist()
    assert list(looked.measurements()) == list(ended.measurements())
    assert ended.verify(looked.certificate().to_json()).holds
    with pytest.raises(ParameterError):
        looked.verify()


def test_a_running_session_with_prior_data_can_be_looked_at_and_not_changed():
    problem = own_problem()
    prior = problems.PriorData.from_guess(problem, np.ones(5), 1.0)
    session = new(problem=problem, policy=sp.BetGapE(), prior=prior)
    requests = session.ask(5)
    for request in requests[:3]:
        session.tell(request, 1.0)
    looked = Session.load(session.store, "mine", read_only=True)
    assert looked.status == "running"
    assert looked.state().n_values == 3
    assert len(looked.pending()) == 2
    for change in (
        looked.ask,
        lambda: looked.tell(requests[3], 1.0),
        lambda: looked.release(requests[3]),
        lambda: looked.tell(0, 1.0),
        looked.close,
        lambda: looked.extend(delta=0.01),
    ):
        with pytest.raises(SessionError):
            change()
    assert session.journal.head == looked.journal.head


def test_what_was_told_survives_an_oracle_that_raises(url):
    healthy = True

    def frail(weights):
        if not healthy:
            raise RuntimeError("no licence for the solver")
        return least_tree(weights)

    session, values = new(url, own_problem(frail)), tapes()
    for request in session.ask(30):
        session.tell(request, values.value(request.token))
    (request,) = session.ask(1)
    healthy = False
    with refuses("best", ProblemError):
        session.tell(request, values.value(request.token))
    looked = Session.load(url, "mine", read_only=True)
    assert request.token in [m.token for m in looked.measurements()]
    healthy = True
    expected = sp.simulate(own_problem(), tapes(), policy=GEN_TS, seed=3)
    assert same_run(run_to_end(session, values, n=9), expected)
    assert Session.load(url, "mine", problem=least_tree).verify().holds


def test_nobody_waits_for_somebody_elses_slow_oracle(url):
    waiting, released = threading.Event(), threading.Event()

    def slow(weights):
        if threading.current_thread() is not threading.main_thread():
            waiting.set()
            assert released.wait(30)
        return least_tree(weights)

    policy = sp.BetGapE(delta=0.1)
    expected = sp.simulate(own_problem(), tapes(), policy=policy, seed=3)
    session, values = new(url, own_problem(slow), policy), tapes()
    other = Session.load(url, "mine", problem=least_tree)
    *first, last = session.ask(5)
    for request in first:
        session.tell(request, values.value(request.token))
    thread = threading.Thread(target=session.tell, args=(last, values.value(last.token)))
    thread.start()
    assert waiting.wait(30)  # all is told, and its oracle does not answer
    requests = other.ask(9, worker="other")
    assert requests
    assert not released.is_set()
    for request in requests:
        other.tell(request, values.value(request.token))
    released.set()
    thread.join(30)
    assert same_run(run_to_end(other, values, n=9, worker="other"), expected)
    assert session.status != "running"
    assert same_run(session.outcome, expected)
