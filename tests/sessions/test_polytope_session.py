"""Sessions over all plans of a polytope: kept, opened again, certified and verified without a solver."""

import json

import numpy as np
import pytest

import surepick as sp
from surepick.core.proofs import objections
from surepick.core.run import Measure
from surepick.problems import Past
from surepick.sessions.codec import problem_from_json, problem_to_json
from surepick.store import MemoryStore


@pytest.fixture
def problem():
    return sp.Polytope(
        A_ub=[[1, 2, 1], [3, 1, 2]],
        b_ub=[8, 9],
        arms=["table", "chair", "shelf"],
        noise=0.5,
        cost=[1, 2, 1],
        goal="largest",
    )


def measure(session, rng, n=10**6):
    means = {"table": 3.0, "chair": 4.0, "shelf": 2.5}
    for _ in range(n):
        requests = session.ask(50)
        if not requests:
            return
        for request in requests:
            session.tell(request, means[request.arm] + 0.5 * rng.normal())


def test_a_polytope_survives_as_json_to_the_last_bit(problem):
    kept = json.loads(
        json.dumps(problem_to_json(problem.with_noise(np.full(3, 4.5), np.array([[0.0, 9.0]] * 3))))
    )
    again = problem_from_json(kept)
    assert isinstance(again, sp.Polytope)
    assert problem_to_json(again) == kept
    assert again.bounds.tolist() == [[0.0, 9.0]] * 3


def test_a_session_over_all_plans_ends_with_a_certificate_that_verifies(problem, tmp_path):
    url, rng = f"sqlite:///{tmp_path}/mix.db", np.random.default_rng(0)
    session = sp.Session.create(url, "mix", problem, policy=sp.BetGapE(delta=0.05))
    measure(session, rng, n=2)
    session.journal.keep_if_small()
    session = sp.Session.load(url, "mix")
    measure(session, rng)
    certificate = session.certificate()
    assert certificate.is_confident
    assert certificate.plan == pytest.approx((2.0, 3.0, 0.0))
    assert "best plan" in certificate.claim
    assert session.view().proved.claim == "best"
    assert session.verify(json.loads(json.dumps(certificate.to_json()))).holds


def test_the_proof_of_a_certificate_is_checked_by_arithmetic_alone(problem):
    """Every way to spoil it is noticed, and what was found is said."""
    session = sp.Session.create("memory://", "mix", problem, policy=sp.BetGapE(delta=0.05))
    measure(session, np.random.default_rng(1))
    certificate = session.certificate()
    proof, plan = json.loads(json.dumps(certificate.proof)), certificate.plan
    assert len(proof["edges"]) == 3
    assert objections(problem, plan, proof, 0.05) == []
    assert "is not enough" in objections(problem, plan, proof, 1e-9)[0]
    assert objections(problem, (2.0, 3.1, 0.0), proof, 0.05)
    short = {"edges": proof["edges"][:-1]}
    assert objections(problem, plan, short, 0.05) == ["the edges are not those of a basis"]
    moves = proof["edges"][0]["moves"]
    moves[next(iter(moves))] += 0.5
    wrong = objections(problem, plan, proof, 0.05)
    assert any("edge" in words for words in wrong)
    spoilt = {**json.loads(json.dumps(certificate.to_json())), "proof": proof}
    assert any("proof does not hold" in words for words in session.verify(spoilt).objections)


def test_within_epsilon_the_boxes_of_a_certificate_are_checked_by_arithmetic_alone(problem, tmp_path):
    url, rng = f"sqlite:///{tmp_path}/mix.db", np.random.default_rng(4)
    session = sp.Session.create(url, "mix", problem, policy=sp.BetGapE(delta=0.05, epsilon=0.4))
    measure(session, rng, n=3)
    session.journal.keep_if_small()
    session = sp.Session.load(url, "mix")
    measure(session, rng)
    certificate = session.certificate()
    assert certificate.is_confident
    assert "within 0.4 of the best" in certificate.claim
    written = json.loads(json.dumps(certificate.to_json()))
    assert session.verify(written).holds
    del written["proof"]["series"]["boxes"][0]
    assert any("do not rule out all plans" in words for words in session.verify(written).objections)


def test_a_session_begins_with_a_past_and_ends_with_a_last_call_that_verify_follows(problem):
    store, means = MemoryStore(), np.array([3.0, 4.0, 1.0])
    past = Past.from_guess(problem, means + 0.2, 0.5)
    session = sp.Session.create(store, "called", problem, policy=sp.BetGapE(1e-4), prior=past, budget=300)
    rng = np.random.default_rng(5)
    for n_round in range(200):
        if n_round == 1:
            session.final_batch(200, gaussian=True)
            session = sp.Session.load(store, "called")
        work = session.ask(5)
        if not work:
            break
        for one in work:
            session.tell(one.token, float(means[one.probe] + 0.5 * rng.standard_normal()))
    certificate = session.certificate()
    assert certificate.plan == (2.0, 3.0, 0.0)
    assert certificate.final_batch == 200
    assert session.verify(json.loads(json.dumps(certificate.to_json()))).holds


def test_within_epsilon_a_last_call_is_certified_by_boxes_of_its_own(problem):
    """The certificate has the proof of the test, and `verify` says what is wrong with one that was spoilt."""
    session = sp.Session.create("memory://", "called", problem, policy=sp.BetGapE(0.01, 0.3))
    rng = np.random.default_rng(2)
    measure(session, rng, n=3)
    session.final_batch(300, gaussian=True)
    measure(session, rng)
    certificate = session.certificate()
    assert certificate.is_confident
    assert certificate.final_batch == 300
    written = json.loads(json.dumps(certificate.to_json()))
    assert written["proof"]["gaussian"] is True
    assert session.verify(written).holds
    del written["proof"]["test"]["boxes"][-1]
    assert any("boxes of the test do not" in words for words in session.verify(written).objections)
    written["proof"]["test"]["target"] = "many"
    assert any("it has another form" in words for words in session.verify(written).objections)
    written["proof"] = None
    assert session.verify(written).objections == ("the certificate's 'proof' is not what the log gives",)


def test_a_budget_is_spent_to_the_last_measurement_and_the_log_verifies(problem):
    for policy in (sp.BetGapE(1e-9), sp.BetGapE(1e-9, 0.01)):
        store = MemoryStore()
        session = sp.Session.create(store, "short", problem, policy=policy, budget=47)
        measure(session, np.random.default_rng(3), n=2)
        session = sp.Session.load(store, "short")
        measure(session, np.random.default_rng(4))
        certificate = session.certificate()
        assert (certificate.plan, certificate.n_measured) == (None, 47)
        assert session.verify(json.loads(json.dumps(certificate.to_json()))).holds


def test_a_proof_holds_where_a_variable_without_room_is_basic():
    """A row of nothing but a fixed amount makes it basic; without it, it may be either."""
    for rows in (
        {"A_eq": [[1, 1, 1, 0], [0, 0, 0, 1]], "b_eq": [1.0, 2.0]},
        {"A_eq": [[1, 1, 1, 1]], "b_eq": [3.0]},
        {"A_ub": [[1, 1, 1, 1], [1, 0, 0, 0]], "b_ub": [3.0, 0.5]},
        {"upper": [1, 1, 1, 2]},
    ):
        fixed = sp.Polytope(**{"lower": [0, 0, 0, 2], "upper": [1, 1, 1, 2], **rows}, noise=1, goal="largest")
        run, means = sp.BetGapE().start(fixed), np.array([3.0, 2.0, -1.0, 1.0])
        while isinstance(decision := run.decide(), Measure):
            run.absorb(decision.counts, decision.counts * means)
        proof = json.loads(json.dumps(run.proof()))
        assert objections(fixed, decision.plan, proof, 0.05) == []
        for k in range(len(proof["edges"])):
            fewer = {"edges": proof["edges"][:k] + proof["edges"][k + 1 :]}
            assert objections(fixed, decision.plan, fewer, 0.05) == ["the edges are not those of a basis"]
        proof["edges"][0]["moves"] = {"arm 0": float("nan")}
        assert objections(fixed, decision.plan, proof, 0.05)
