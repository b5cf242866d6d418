"""Unknown noise behind oracles and within epsilon on polytopes: bounded by replicates, then bet on."""

import numpy as np
import pytest
from scipy import stats

import surepick as sp
from common import refuses
from session_tools import Tapes, run_to_end, same_run
from surepick.policies import GenTSExplore, Pick, Uniform
from surepick.policies.betting.scale_bound import REPLICATES, SHARE, scale_bound
from surepick.simulation import Gaussian

MEANS = [2.0, 0.5, 0.0]
ORACLE = sp.OracleProblem(lambda w: np.eye(3)[np.argmax(w)], 3, noise=None, n_plans=3, goal="largest")
POLYTOPE = sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], noise=None, goal="largest")
CASES = {"oracle": (ORACLE, 0.0), "oracle within": (ORACLE, 0.3), "polytope within": (POLYTOPE, 0.3)}


@pytest.mark.parametrize(("shrink", "holds"), [(1.0, True), (0.8, False)])
def test_the_bounds_cover_the_noise_as_often_as_they_should(shrink, holds):
    """The control: bounds that are too small by a fifth are refuted."""
    rng, scales, runs, delta = np.random.default_rng(0), np.array([0.5, 1.0, 2.0]), 4000, 0.25
    draws = scales * rng.standard_normal((runs, REPLICATES, 3))
    bounds = [scale_bound(own, ORACLE, delta) for own in draws]
    missed = int((shrink * np.array(bounds) < scales).any(axis=1).sum())
    p = stats.binomtest(missed, runs, SHARE * delta, alternative="greater").pvalue
    assert bool(p > 1e-4) is holds


@pytest.mark.parametrize("name", CASES)
def test_a_session_decides_as_the_simulation_and_verifies(name):
    problem, epsilon = CASES[name]
    policy = sp.BetGapE(0.1, epsilon)
    simulated = sp.simulate(problem, Tapes(means=MEANS, scale=0.2), policy=policy, seed=4)
    session = sp.Session.create("memory://", "mine", problem, policy=policy, seed=4)
    lived = run_to_end(session, Tapes(means=MEANS, scale=0.2), n=500)
    assert same_run(lived, simulated)
    assert lived.plan == pytest.approx((1.0, 0.0, 0.0), abs=0.2)
    assert simulated.counts.min() >= REPLICATES
    assert (simulated.noise_scale > 0.2).all()
    assert SHARE * 0.1 <= simulated.risk <= 0.1 * (1 + 1e-9)
    assert session.verify(session.certificate().to_json()).holds


def test_values_that_never_differ_and_a_final_batch_too_early_are_refused():
    run = sp.BetGapE().start(ORACLE)
    with refuses("final_batch"):
        run.call_final_batch(10, gaussian=False)
    for _ in range(REPLICATES - 1):
        run.absorb(run.decide().counts, np.array(MEANS))
    with refuses("noise"):
        run.absorb(run.decide().counts, np.array(MEANS))


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
