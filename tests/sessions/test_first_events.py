"""First events that contradict themselves, or are none: refused by `verify` and by whoever opens them."""

import copy
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
from surepick.sessions.verify import verify, verify_events
from surepick.store import Draft, MemoryStore

PAIR = sp.Probe({"old": {"x": 1}, "new": {"y": 1}}, covariance=[[1.25, 1.0], [1.0, 1.25]])
PAIRED = largest(np.eye(2), arms=["x", "y"], measure={"pair": PAIR})
EDGES = [("A", "B"), ("B", "C"), ("A", "C"), ("C", "D")]
ODD: list[Any] = [None, True, -1, 10**400, 1e308, "", "x", [], [[]], {}, {"a": None}, [1, "a"]]
HONEST: list[Any] = [("lease", 1e308), ("seed", 10**400), ("name", "x")]  # odd, but a session may have them


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


def refused(session, body):
    """What `verify` says; opening it is refused too."""
    store = with_first(session, body)
    with pytest.raises(SurepickError):
        Session.load(store, "s")
    return verify(store.log("s"))


@pytest.mark.parametrize(
    "matrix",
    [
        [[1e-6, 0.0], [0.0, 1e-6]],  # beside a scale of 1
        [[1.25, 1.0], [0.9, 1.25]],
        [[1.25, 1.25], [1.25, 1.25]],
        [[1.25, 2.0], [2.0, 1.25]],
        [[1.25]],
        [[1.25, 1.0, 0.0], [1.0, 1.25, 0.0], [0.0, 0.0, 1.0]],
        [[1.25, None], [1.0, 1.25]],
    ],
)
def test_a_covariance_that_contradicts_its_scales_is_refused(matrix):
    session = begun(PAIRED, sp.BetGapE())
    assert session.verify().holds
    body = first(session)
    assert body["problem"]["probes"]["covariances"] == {"0": [[1.25, 1.0], [1.0, 1.25]]}
    body["problem"]["probes"]["covariances"]["0"] = matrix
    assert not refused(session, body).holds
    body["problem"]["probes"]["covariances"] |= {"0": PAIR.covariance, "7": PAIR.covariance}
    assert not refused(session, body).holds


def test_the_number_of_plans_of_a_family_is_computed_again():
    session = begun(trees(EDGES, list_plans=False, noise=0.5), sp.BetGapE(delta=0.1))
    body = first(session)
    right = body["problem"]["n_plans"]
    for n in (right + 1, 2, 0, -right, 1e308, None, "3"):
        body["problem"]["n_plans"] = n
        assert not refused(session, body).holds


def test_a_scale_beside_the_bounds_of_a_family_is_half_their_width():
    session = begun(trees(EDGES, list_plans=False, noise=0.5), sp.BetGapE(delta=0.1))
    body = first(session)
    body["problem"]["bounds"] = [[0.0, 1.0]] * len(EDGES)
    body["problem"]["noise_scale"] = [0.001] * len(EDGES)
    assert not refused(session, body).holds


def test_the_certificate_says_which_covariance_it_rests_on():
    session = begun(PAIRED, sp.BetGapE(delta=0.2))
    rng = np.random.default_rng(0)
    draw = lambda request: rng.multivariate_normal([4.0, 0.0], PAIR.covariance).tolist()  # noqa: E731
    certificate = answer(session, draw).certificate().to_json()
    assert certificate["covariances"] == {"pair": [[1.25, 1.0], [1.0, 1.25]]}
    assert session.verify(certificate).holds
    assert not session.verify({**certificate, "covariances": {}}).holds


def test_verify_says_that_any_odd_first_event_does_not_hold():
    session = begun(problem(), sp.CombGapE(delta=0.1))
    true, events = first(session), list(session.events())
    for name in true:
        for value in ODD:
            body = {**copy.deepcopy(true), name: value}
            if body == true or (name, value) in HONEST:
                continue
            found = list(with_first(session, body).log("s").read())
            assert not verify_events("s", found, found[-1].head).holds, (name, value)
    assert verify_events("s", events, events[-1].head).holds


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
    for name in whole:
        without = {key: value for key, value in whole.items() if key != name}
        assert not session.verify(without).holds, name
    assert not session.verify({**whole, "risk": None}).holds
    assert not session.verify({**whole, "rivals": []}).holds
