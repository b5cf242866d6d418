"""Sessions over all plans of a polytope: kept, opened again, certified and verified without a solver."""

import json
import math

import numpy as np
import pytest

import surepick as sp
from session_tools import answer, gaussian, holds
from surepick.core.polytopes.proofs import objections
from surepick.core.run import Measure
from surepick.problems import PriorData
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


MEANS = {"table": 3.0, "chair": 4.0, "shelf": 2.5}


def measure(session, seed, n=math.inf):
    return answer(session, gaussian(MEANS, 0.5, seed), n=n, at_once=50)


def test_a_polytope_survives_as_json_to_the_last_bit(problem):
    kept = json.loads(
        json.dumps(problem_to_json(problem.with_noise(np.full(3, 4.5), np.array([[0.0, 9.0]] * 3))))
    )
    again = problem_from_json(kept)
    assert isinstance(again, sp.Polytope)
    assert problem_to_json(again) == kept
    assert again.bounds.tolist() == [[0.0, 9.0]] * 3


def test_a_session_over_all_plans_ends_with_a_certificate_that_verifies(problem, tmp_path):
    session = kept_and_loaded(f"sqlite:///{tmp_path}/mix.db", problem, sp.BetGapE(delta=0.05), 0)
    certificate = session.certificate()
    assert certificate.is_confident
    assert certificate.plan == pytest.approx((2.0, 3.0, 0.0))
    assert session.view().proved.claim == "best"
    assert holds(session)


def kept_and_loaded(url, problem, policy, seed):
    """A session that was measured, kept as a snapshot, loaded from it and measured to its end."""
    session = sp.Session.create(url, "mix", problem, policy=policy)
    measure(session, seed, n=100).journal.keep_if_small()
    return measure(sp.Session.load(url, "mix"), seed + 1)


def test_the_proof_of_a_certificate_is_checked_by_arithmetic_alone(problem):
    """Every way to spoil it is noticed, and what was found is said."""
    session = sp.Session.create("memory://", "mix", problem, policy=sp.BetGapE(delta=0.05))
    measure(session, 1)
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
    session = kept_and_loaded(f"sqlite:///{tmp_path}/mix.db", problem, sp.BetGapE(delta=0.05, epsilon=0.4), 4)
    certificate = session.certificate()
    assert certificate.is_confident
    assert "within 0.4 of the best" in certificate.claim
    written = json.loads(json.dumps(certificate.to_json()))
    assert session.verify(written).holds
    del written["proof"]["series"]["boxes"][0]
    assert any("do not rule out all plans" in words for words in session.verify(written).objections)


def test_a_session_begins_with_prior_data_and_ends_with_a_final_batch_that_verify_follows(problem):
    store, means = MemoryStore(), np.array([3.0, 4.0, 1.0])
    prior = PriorData.from_guess(problem, means + 0.2, 0.5)
    session = sp.Session.create(store, "called", problem, policy=sp.BetGapE(1e-4), prior=prior, budget=300)
    answer(session, gaussian(means, 0.5, 5), n=5).final_batch(200, gaussian=True)
    session = answer(sp.Session.load(store, "called"), gaussian(means, 0.5, 6), at_once=5)
    certificate = session.certificate()
    assert certificate.plan == (2.0, 3.0, 0.0)
    assert certificate.final_batch == 200
    assert holds(session)


def test_within_epsilon_a_final_batch_is_certified_by_boxes_of_its_own(problem):
    """The certificate has the proof of the test, and `verify` says what is wrong with one that was spoilt."""
    session = sp.Session.create("memory://", "called", problem, policy=sp.BetGapE(0.01, 0.3))
    measure(session, 2, n=150).final_batch(300, gaussian=True)
    measure(session, 3)
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
        measure(session, 3, n=20)
        session = measure(sp.Session.load(store, "short"), 4)
        certificate = session.certificate()
        assert (certificate.plan, certificate.n_measured) == (None, 47)
        assert holds(session)


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
