"""Looking at a run never changes it: on every kind of problem, and in sessions, which then verify."""

import numpy as np
import pytest

import surepick as sp
from common import largest
from hulls import hull
from surepick.policies import Challenge, Pick
from surepick.testing.policies import Tape, compare_with_looking

PLANS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
MEANS = [0.9, 0.3, 0.5, 0.0]


def best_pair(weights):
    return PLANS[np.argmax(PLANS @ weights)]


KINDS = {
    "single arms": largest(PLANS),
    "bounded variance": largest(PLANS, noise_kind="bounded variance"),
    "probes": largest(PLANS, measure=np.eye(4) + 0.5),
    "replicates": sp.Problem(PLANS, noise=None, measure=np.eye(4), goal="largest"),
    "oracle": sp.OracleProblem(best_pair, 4, noise=1.0, goal="largest"),
    "plays": sp.OracleProblem(best_pair, 4, noise=1.0, measure="plan arms", goal="largest"),
}
BETS = [sp.BetGapE(0.01), sp.BetGapE(0.01, epsilon=0.1, max_batch=3)]
BY_ORACLE = [sp.BetGapE(0.01), sp.BetGapE(0.01, epsilon=0.1, max_batch=3)]
CHALLENGES = [Challenge(1, delta=0.01), Challenge(1, delta=0.01, epsilon=0.1)]
CASES = {
    "single arms": [*BETS, *CHALLENGES, Pick()],
    "bounded variance": [*BETS, *CHALLENGES],
    "probes": BETS,
    "replicates": BETS,
    "oracle": [*BY_ORACLE, Pick()],
    "plays": BY_ORACLE,
}


@pytest.mark.parametrize(("kind", "policy"), [(kind, one) for kind in CASES for one in CASES[kind]], ids=str)
def test_a_run_that_is_looked_at_decides_as_its_twin(kind, policy):
    compare_with_looking(policy, KINDS[kind], Tape(MEANS, range(4)), 40)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_a_session_that_is_looked_at_verifies(epsilon):
    problem = hull(PLANS, noise=1.0)
    asked = []
    for looks in (True, False):
        rng = np.random.default_rng(4)
        session = sp.Session.create(
            "memory://", "x", problem, policy=sp.BetGapE(0.1, epsilon=epsilon), budget=400
        )
        told = []
        while session.status == "running":
            told.append(len(batch := session.ask(100)))
            for one in batch:
                session.tell(one, float(MEANS[one.probe] + rng.normal()))
            if looks:
                session.standing()
        assert session.verify().holds
        asked.append(told)
    assert asked[0] == asked[1]
