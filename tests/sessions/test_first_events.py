"""First events that contradict themselves, or are none: refused by `verify` and by whoever opens them."""

import json
from typing import Any

import numpy as np
import pytest

import surepick as sp
from common import largest
from session_tools import Tapes, answer, oracle_problem, problem, run_to_end
from surepick.errors import SurepickError
from surepick.problems.kinds.tree import trees
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.sessions.verify import verify
from surepick.store import Draft, MemoryStore

PAIR = sp.Probe({"old": {"x": 1}, "new": {"y": 1}}, covariance=[[1.25, 1.0], [1.0, 1.25]])
PAIRED = largest(np.eye(2), arms=["x", "y"], measure={"pair": PAIR})
EDGES = [("A", "B"), ("B", "C"), ("A", "C"), ("C", "D")]
ODD: list[Any] = [None, True, -1, 10**400, 1e308, "", "x", [], [[]], {}, {"a": None}, [1, "a"]]
HONEST: list[Any] = [("lease", 1e308), ("seed", 10**400), ("name", "x")]  # odd, but a session may have them


TREES = {"list_plans": False, "noise": 0.5}
SESSIONS = {
    "listed": lambda: begun(problem(), sp.CombGapE(delta=0.1)),
    "paired": lambda: begun(PAIRED, sp.BetGapE(delta=0.2)),
    "trees": lambda: begun(trees(EDGES, **TREES), sp.BetGapE(delta=0.1)),
}


def begun(given, policy):
    return Session.create("memory://", "s", given, policy=policy)


def with_first(session, body):
    """The log of this session with another first event, sealed again."""
    drafts = [Draft(e.kind, e.body, e.time, e.key) for e in session.events()]
    store = MemoryStore()
    store.create("s", [drafts[0]._replace(body=codec.dumps(body)), *drafts[1:]])
    return store


def first(session):
    return json.loads(next(session.events()).body)


def covariances(*matrices):
    return {"problem": {"probes": {"covariances": {str(o): one for o, one in enumerate(matrices)}}}}


def changed(body, changes):
    """The body with these changes at any depth."""
    return {**body, **{k: changed(body[k], v) if isinstance(v, dict) else v for k, v in changes.items()}}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *(
            ("paired", covariances(matrix))
            for matrix in (
                [[1e-6, 0.0], [0.0, 1e-6]],  # beside a scale of 1
                [[1.25, 1.0], [0.9, 1.25]],
                [[1.25, 1.25], [1.25, 1.25]],
                [[1.25, 2.0], [2.0, 1.25]],
                [[1.25]],
                [[1.25, 1.0, 0.0], [1.0, 1.25, 0.0], [0.0, 0.0, 1.0]],
                [[1.25, None], [1.0, 1.25]],
            )
        ),
        ("paired", covariances(PAIR.covariance, PAIR.covariance)),
        *(("trees", {"problem": {"n_plans": n}}) for n in (4, 2, 0, -3, 1e308, None, "3")),
        ("trees", {"problem": {"bounds": [[0.0, 1.0]] * 4, "noise_scale": [0.001] * 4}}),
    ],
)
def test_a_first_event_that_contradicts_itself_is_refused_by_verify_and_by_those_who_open_it(kind, changes):
    session = SESSIONS[kind]()
    body = first(session)
    assert changed(body, {}) == body
    assert session.verify().holds
    store = with_first(session, changed(body, changes))
    with pytest.raises(SurepickError):
        Session.load(store, "s")
    assert not verify(store.log("s")).holds


def test_the_certificate_says_which_covariance_it_rests_on():
    session = SESSIONS["paired"]()
    assert first(session)["problem"]["probes"]["covariances"] == {"0": [[1.25, 1.0], [1.0, 1.25]]}
    rng = np.random.default_rng(0)
    draw = lambda request: rng.multivariate_normal([4.0, 0.0], PAIR.covariance).tolist()  # noqa: E731
    certificate = answer(session, draw).certificate().to_json()
    assert certificate["covariances"] == {"pair": [[1.25, 1.0], [1.0, 1.25]]}
    assert session.verify(certificate).holds
    assert not session.verify({**certificate, "covariances": {}}).holds


def test_verify_says_that_any_odd_first_event_does_not_hold():
    session = SESSIONS["listed"]()
    true = first(session)
    for name in true:
        for value in ODD:
            body = {**true, name: value}
            if body != true and (name, value) not in HONEST:
                assert not verify(with_first(session, body).log("s")).holds, (name, value)


def test_odd_proofs_are_objections():
    box = sp.Polytope(A_ub=[[1, 1]], b_ub=[1], noise=0.1, goal="largest")
    session = begun(box, sp.BetGapE(delta=0.2))
    answer(session, lambda request: [2.0, 0.0][request.probe])
    true = json.loads(codec.dumps(session.certificate().to_json()))
    assert session.verify(true).holds
    for value in [*ODD, {"series": 3}, {"series": [], "nodes": {}}, dict.fromkeys(true["proof"], 7)]:
        assert not session.verify({**true, "proof": value}).holds, value


def test_nothing_can_be_taken_out_of_a_certificate_of_plans_known_by_a_function():
    session = begun(oracle_problem(), sp.BetGapE(delta=0.1))
    slip = session.ask()[0]
    session.tell(slip, 0.0)
    session.remove(slip, "a slip")
    tapes = Tapes()
    run_to_end(session, tapes)
    whole = json.loads(codec.dumps(session.certificate().to_json()))
    looked = Session.load(session.store, "s", read_only=True).certificate().to_json()
    assert whole["n_removed"] == looked["n_removed"] == 1
    assert (whole["knows_plans"], looked["knows_plans"]) == (True, False)
    assert session.verify(whole).holds
    assert session.verify(json.loads(codec.dumps(looked))).holds
    end = {name: whole[name] for name in ("log_position", "log_checksum")}
    assert session.verify(end).fields == tuple(sorted(whole.keys() - end.keys()))  # all that are taken out
    assert not any(session.verify({**whole, name: None}).holds for name in end)
    assert not session.verify({**whole, "risk": None}).holds
    assert not session.verify({**whole, "rivals": []}).holds
