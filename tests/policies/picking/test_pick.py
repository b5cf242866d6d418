"""Pick measures where the expected loss falls fastest, and picks better than equal shares do."""

import numpy as np
import pytest

import surepick as sp
from common import largest
from session_tools import answer
from surepick.errors import ParameterError
from surepick.policies import Pick, Uniform
from surepick.problems import PriorData, top_k
from surepick.simulation import Gaussian


def test_the_check_values():
    """Three arms, means 1, .8, .2 and counts 4, 4, 2: weights 1 : .5547, scores .07773, .05, .09244."""
    run = Pick().start(largest(np.eye(3)))
    run.absorb(np.array([4, 4, 2]), np.array([4.0, 3.2, 0.4]))
    _, _, weight = run._compare()
    assert weight == pytest.approx([0.0, 1.0, 0.5547], abs=1e-4)
    assert run._gains() == pytest.approx([1.5547, 1.0, 0.5547], abs=1e-4)
    assert run.scores() == pytest.approx([0.07773, 0.05, 0.09244], abs=1e-5)
    assert run._fill(5).tolist() == [2, 1, 2]


def test_scores_are_the_fall_of_the_expected_loss():
    """By a difference quotient, with shared arms, scales and costs that differ."""
    from scipy.stats import norm

    plans = np.array([[1, 1, 0, 2.0], [0, 1, 1, 1], [1, 0, 1, 0], [0, 2, 0, 1]])
    scale, costs = np.array([1.0, 2.0, 0.5, 1.0]), np.array([1.0, 3.0, 1.0, 2.0])
    run = Pick().start(sp.Problem(plans, noise=scale, cost=costs, goal="largest"))
    counts, sums = np.array([5, 9, 4, 7]), np.array([3.0, 2.0, 1.0, 4.0])
    run.absorb(counts, sums)
    lead = int(np.argmax(plans @ (sums / counts)))
    away = np.delete(plans[lead] - plans, lead, axis=0)

    def loss(n):
        gap, error = away @ (sums / counts), np.sqrt(away**2 @ (scale**2 / n))
        return (error * norm.pdf(gap / error) - gap * norm.sf(gap / error)).sum()

    step = 1e-5
    fall = np.array([(loss(counts) - loss(counts + step * np.eye(4)[s])) / step for s in range(4)])
    expected = fall * counts / (counts + 1) / costs  # of a whole measurement, as 1/n falls by 1/(n(n+1))
    assert run.scores() / run.scores().sum() == pytest.approx(expected / expected.sum(), rel=1e-3)


def test_unasked_measurements_are_pooled():
    session = sp.Session.create("memory://", "mine", largest(np.eye(2)), policy=Pick(), budget=9)
    session.tell(0, 3.0)
    session.tell(0, 3.0)  # the open batch wants one of it
    assert answer(session, lambda request: 1.0).outcome.n_measured == 9
    assert session.certificate().n_extra_used == 1
    assert session.verify(session.certificate().to_json()).holds
    with pytest.raises(ParameterError):
        session.extend(delta=0.01)
    session.extend(budget=12)
    assert session.status == "running"


def test_a_batch_is_never_larger_than_it_may_be():
    run = Pick(max_batch=2).start(largest(np.eye(3)))
    run.absorb(np.array([300, 300, 300]), np.zeros(3))
    assert run.decide().counts.sum() == 2
    assert Pick().start(largest(np.eye(3))).decide().counts.tolist() == [1, 1, 1]


NAMES = [f"arm {s}" for s in range(8)]


def losses(problem, policy, budget, n_runs=60):
    """What the pick loses on average, with means N(0, 1/4)."""
    found = []
    for seed in range(n_runs):
        means = np.random.default_rng(seed).normal(size=8) / 2
        outcome = sp.simulate(problem, Gaussian(means), policy=policy, seed=seed, budget=budget)
        found.append(outcome.loss)
    return np.mean(found)


def test_it_loses_about_as_little_as_with_a_list_and_less_than_equal_shares():
    oracle = losses(top_k(NAMES, 3, goal="largest", list_plans=False, noise=1), Pick(), 30)
    listed = top_k(NAMES, 3, goal="largest", noise=1)
    assert oracle < 1.4 * losses(listed, Pick(), 30)
    assert oracle < 0.9 * losses(listed, Uniform(), 30)


def test_no_rival_in_sight_is_no_reason_to_stop_measuring():
    problem = top_k(NAMES[:3], 1, goal="largest", list_plans=False, noise=1e-6)
    outcome = sp.simulate(problem, Gaussian([3.0, 2.0, 1.0], 1e-6), policy=Pick(), budget=40)
    assert outcome.leader == (1.0, 0.0, 0.0)
    assert outcome.n_measured == 40
    assert outcome.counts.min() > 5


def test_it_picks_from_a_polytope_and_with_a_past_too():
    plants = sp.Polytope(A_ub=[[1, 2, 1]], b_ub=[4], upper=2.0, noise=0.5, goal="largest")
    truth = Gaussian([1.0, 3.0, 0.5], 0.5)
    outcome = sp.simulate(plants, truth, policy=Pick(), budget=30)
    assert np.asarray(outcome.leader) @ [1.0, 3.0, 0.5] == pytest.approx(6.0)
    prior = PriorData.from_guess(plants, [1.0, 3.0, 0.5], spread=1.0)
    short = sp.simulate(plants, truth, policy=Pick(), budget=2, prior=prior)
    assert short.n_measured == 2
