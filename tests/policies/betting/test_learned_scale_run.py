"""Unknown noise behind oracles and within epsilon on polytopes: learned under a rough bound on it."""

import numpy as np
import pytest

import surepick as sp
from common import answers_wrongly, errs_more_often_than, refuses
from session_tools import Tapes, run_to_end, same_run
from surepick.inference import learned_scale
from surepick.policies import GenTSExplore, Pick, Uniform
from surepick.policies.betting.learned_scale_run import FIRST_USES, SHARE
from surepick.policies.oracles import plan_wealth
from surepick.simulation import Gaussian

MEANS = [2.0, 0.5, 0.0]
ORACLE = sp.OracleProblem(lambda w: np.eye(3)[np.argmax(w)], 3, noise=None, n_plans=3, goal="largest")
POLYTOPE = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=None, goal="largest")
PLAYS = sp.OracleProblem(
    lambda w: np.eye(3)[np.argmax(w)], 3, noise=None, n_plans=3, goal="largest", measure="plan arms"
)
CASES = {
    "oracle": (ORACLE, 0.0),
    "whole plans": (PLAYS, 0.0),
    "oracle within": (ORACLE, 0.3),
    "polytope within": (POLYTOPE, 0.3),
}


@pytest.mark.parametrize("is_fair", [True, False])
def test_errors_at_ties_of_unlike_noise_are_no_more_frequent_than_delta(is_fair, monkeypatch):
    """The control: a batch's own scatter counts a quarter."""
    if not is_fair:
        monkeypatch.setattr(plan_wealth, "kappa", lambda v: 0.25 * np.ones_like(v))
        monkeypatch.setattr(learned_scale, "kappa", lambda v: 0.25 * np.ones_like(v))
    truth = Gaussian([1e-9, 0.0, 0.0], [0.5, 1.0, 2.0])
    is_wrong = answers_wrongly(ORACLE, truth, sp.BetGapE(0.2), budget=200)
    assert errs_more_often_than(0.2, is_wrong, 60) is not is_fair


def test_it_costs_little_not_to_know_the_noise():
    stated = sp.OracleProblem(lambda w: np.eye(3)[np.argmax(w)], 3, noise=0.5, n_plans=3, goal="largest")
    truth = Gaussian([0.2, 0.0, 0.0], 0.5)
    needed = [
        np.mean([sp.simulate(problem, truth, seed=seed).n_measured for seed in range(8)])
        for problem in (stated, ORACLE)
    ]
    assert needed[1] < 2.0 * needed[0]


@pytest.mark.parametrize("name", CASES)
def test_a_session_decides_as_the_simulation_and_verifies(name):
    problem, epsilon = CASES[name]
    policy = sp.BetGapE(0.1, epsilon)
    simulated = sp.simulate(problem, Tapes(means=MEANS, scale=0.2), policy=policy, seed=4)
    session = sp.Session.create("memory://", "mine", problem, policy=policy, seed=4)
    lived = run_to_end(session, Tapes(means=MEANS, scale=0.2), n=500)
    assert same_run(lived, simulated)
    assert lived.plan == pytest.approx((1.0, 0.0, 0.0), abs=0.2)
    assert simulated.counts.min() >= FIRST_USES
    assert simulated.noise_scale == pytest.approx(0.2, rel=0.6)
    assert SHARE * 0.1 <= simulated.risk <= 0.1 * (1 + 1e-9)
    assert session.verify(session.certificate().to_json()).holds


def test_values_that_never_differ_and_a_final_batch_too_early_are_refused():
    run = sp.BetGapE().start(ORACLE)
    with refuses("final_batch"):
        run.call_final_batch(10, gaussian=False)
    counts = run.decide().counts
    values = {arm: np.full((n, 1), MEANS[arm]) for arm, n in enumerate(counts)}
    with refuses("noise"):
        run.absorb(counts, counts * MEANS, values=values)


def test_each_smaller_delta_halves_what_is_left_for_the_bets():
    run = sp.BetGapE(0.1).start(ORACLE)
    for delta, part in ((0.05, 0.5), (0.02, 0.25)):
        run.lower_delta(sp.BetGapE(delta), delta)
        assert run._question.wealth.threshold == pytest.approx(-np.log((1 - SHARE) * delta * part))
        assert run._noise.level == pytest.approx(SHARE * delta * part)


@pytest.mark.parametrize("policy", [sp.CombGapE(), Pick(), Uniform(), GenTSExplore()], ids=str)
def test_other_policies_need_the_noise_to_be_stated(policy):
    problem = sp.Problem(np.eye(3), noise=None, goal="largest")
    assert not policy.can_start(problem)
    for begin in (
        lambda: sp.simulate(problem, Gaussian(MEANS, 1.0), policy=policy),
        lambda: sp.Session.create("memory://", "mine", problem, policy=policy),
    ):
        with refuses("noise"):
            begin()
