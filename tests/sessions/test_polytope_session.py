"""Sessions over all plans of a polytope: kept, opened again, certified and verified without a solver."""

import json

import numpy as np
import pytest

import surepick as sp
from surepick.sessions.codec import problem_from_json, problem_to_json


@pytest.fixture
def problem():
    return sp.Polytope(
        A_ub=[[1, 2, 1], [3, 1, 2]],
        b_ub=[8, 9],
        arm_names=["table", "chair", "shelf"],
        noise_scale=0.5,
        costs=[1, 2, 1],
    )


def measure(session, rng, n=10**6):
    means = {"table": 3.0, "chair": 4.0, "shelf": 2.5}
    for _ in range(n):
        requests = session.ask(50)
        if not requests:
            return
        for request in requests:
            session.tell(request, means[request.arm_name] + 0.5 * rng.normal())


def test_a_polytope_survives_as_json_to_the_last_bit(problem):
    kept = json.loads(json.dumps(problem_to_json(problem.with_bounds((0.0, 9.0)))))
    again = problem_from_json(kept)
    assert isinstance(again, sp.Polytope)
    assert problem_to_json(again) == kept
    assert again.bounds.tolist() == [[0.0, 9.0]] * 3


def test_a_session_over_all_plans_ends_with_a_certificate_that_verifies(problem, tmp_path):
    url, rng = f"sqlite:///{tmp_path}/mix.db", np.random.default_rng(0)
    session = sp.Session.create(url, problem, sp.PolyBet(delta=0.05), name="mix")
    measure(session, rng, n=2)
    session = sp.Session.load(url, "mix")
    measure(session, rng)
    certificate = session.certificate()
    assert certificate.is_confident
    assert certificate.plan == pytest.approx((2.0, 3.0, 0.0))
    assert certificate.rivals[0].gap > 0
    assert "best plan" in certificate.guarantee
    assert session.verify(json.loads(json.dumps(certificate.to_json()))).holds
