"""A price for starting a batch: fewer and larger batches, honest costs, and nothing changes without it."""

import numpy as np
import pytest

import probe_cases
import surepick as sp
from common import largest, refuses
from polytopes import transport
from session_tools import answer, gaussian
from surepick.simulation import Gaussian

SINGLE = largest(np.eye(4)), np.array([0.4, 0.0, 0.0, 0.0])
CASES = {
    "single arms": (*SINGLE, 0.0),
    "within epsilon": (*SINGLE, 0.2),
    "readings of arms": (*probe_cases.top_k(4, 2, 1, "semi"), 0.0),
    "mixes": (*probe_cases.soare(4, 0.4), 0.0),
    "vertices": (*transport(2005, 3, 3), 0.0),
    "unknown noise": (
        sp.Problem(np.eye(3), measure={"all": ["arm 0", "arm 1", "arm 2"]}, noise=None, goal="largest"),
        np.array([0.5, 0.0, 0.0]),
        0.0,
    ),
}


def total(problem, means, epsilon, price, seed):
    """Rounds, and what they cost at this price, whether the policy heeds it or not."""
    outcome = sp.simulate(problem, Gaussian(means, 1.0), policy=sp.BetGapE(epsilon=epsilon), seed=seed)
    assert outcome.correct
    return outcome.n_rounds, outcome.n_measured + price * outcome.n_rounds


@pytest.mark.parametrize("name", CASES)
def test_a_price_for_starting_makes_fewer_rounds_and_saves_cost(name):
    problem, means, epsilon = CASES[name]
    ignored = [total(problem, means, epsilon, 200.0, seed) for seed in range(6)]
    heeded = [
        total(problem.with_settings(setup_cost=200.0), means, epsilon, 200.0, seed) for seed in range(6)
    ]
    assert sum(rounds for rounds, _ in heeded) < 0.6 * sum(rounds for rounds, _ in ignored)
    assert sum(cost for _, cost in heeded) < 0.8 * sum(cost for _, cost in ignored)


def test_costs_and_the_limit_count_the_set_ups():
    problem, means = largest(np.eye(2), setup_cost=7.0), np.array([1.0, 0.0])
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(), seed=1)
    assert outcome.cost == outcome.n_measured + 7.0 * outcome.n_rounds
    plain = sp.limit(problem.with_settings(setup_cost=0.0), means)
    assert sp.limit(problem, means).price == pytest.approx(plain.price + 7.0)
    assert sp.limit(problem, means).measurements == plain.measurements


def test_a_session_counts_them_and_keeps_the_price(tmp_path):
    place = f"sqlite:///{tmp_path}/lab.db"
    problem = largest(np.eye(2), setup_cost=7.0)
    session = sp.Session.create(place, "lab", problem, policy=sp.BetGapE())
    answer(session, gaussian([1.0, 0.0], seed=2), at_once=50)
    again = sp.Session.load(place, "lab")
    assert again.problem.setup_cost == 7.0
    assert again.outcome.cost == again.outcome.n_measured + 7.0 * again.outcome.n_rounds


def test_plans_that_cannot_be_listed_have_none():
    problem = sp.OracleProblem(lambda w: np.eye(3)[np.argmax(w)], 3, noise=1, goal="largest")
    with refuses("setup_cost"):
        problem.with_settings(setup_cost=5.0)
