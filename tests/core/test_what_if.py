"""What one more measurement brings, and what would have to be true for another plan to win."""

import math

import numpy as np
import pytest
from scipy.stats import norm
from surepick.core.answers import listed_ranging, turn, worth_of_one

import surepick as sp
from surepick.core.evidence import Evidence, estimate

COMMUTES = sp.Problem(
    [[1, 0, 1], [0, 1, 1], [0, 0, 3]],
    arms=["bus", "train", "walk"],
    plan_names=["by bus", "by train", "on foot"],
    noise=[4.0, 2.0, 1.0],
    goal="smallest",
)
SEEN = Evidence(np.array([16, 16, 4]), np.array([16 * 20.0, 16 * 22.0, 4 * 12.0]))


def loss_to(problem, evidence, lead, rival):
    """What is lost to one rival on average, by the formula of the normal distribution."""
    y = problem.sign * (problem.vector(lead) - problem.vector(rival))
    gap, error = y @ evidence.means, math.sqrt(y**2 @ (problem.noise_scale**2 / evidence.counts))
    return error * (norm.pdf(gap / error) - gap / error * norm.sf(gap / error))


@pytest.mark.parametrize("arm", [0, 1, 2])
def test_the_worth_of_one_is_the_fall_of_what_is_lost_to_each_rival(arm):
    many = Evidence(SEEN.counts * 400, SEEN.sums * 400)  # one more is then a small step
    for evidence, tolerance in ((SEEN, 0.25), (many, 2e-3)):
        close = Evidence(evidence.counts, evidence.counts * np.array([20.0, 20.0 + 0.1, 10.0]))
        counts = close.counts + (np.arange(3) == arm)
        more = Evidence(counts, counts * close.means)
        fall = sum(loss_to(COMMUTES, close, 0, j) - loss_to(COMMUTES, more, 0, j) for j in (1, 2))
        assert worth_of_one(COMMUTES, close, 0)[arm] == pytest.approx(fall, rel=tolerance, abs=1e-15)


def test_it_is_nothing_where_plans_do_not_differ_and_unknown_before_all_is_measured():
    problem = sp.Problem([[1, 0, 2], [0, 1, 2]], noise=1, goal="largest")
    seen = Evidence(np.array([3, 3, 0]), np.array([3.0, 2.0, 0.0]))
    assert worth_of_one(problem, seen, 0)[2] == 0.0
    assert worth_of_one(problem, Evidence(np.array([3, 0, 0]), np.zeros(3)), 0) is None
    assert worth_of_one(problem, seen, None) is None


def test_it_is_the_score_by_which_pick_measures():
    run = sp.Pick().start(COMMUTES)
    run.absorb(SEEN.counts, SEEN.sums)
    scores, worth = run.scores(), worth_of_one(COMMUTES, SEEN, run.standing().leader)
    assert (scores / scores.max()).tolist() == pytest.approx((worth / worth.max()).tolist())


@pytest.mark.parametrize("sparse", [False, True])
def test_a_plan_stays_best_within_its_ranging_and_not_beyond(sparse):
    from scipy.sparse import csr_array

    plans = csr_array(COMMUTES.plans) if sparse else COMMUTES.plans
    problem = sp.Problem(plans, noise=COMMUTES.noise_scale, goal="smallest")
    means = np.array([20.0, 22.0, 12.0])
    found = listed_ranging(problem, 0, means)
    for arm, (low, high) in enumerate(found.tolist()):
        for end, inside in ((low, 1e-6), (high, -1e-6)):
            if math.isfinite(end):
                moved = means.copy()
                moved[arm] = end + inside
                assert problem.best(moved) == 0
                moved[arm] = end - inside
                assert problem.best(moved) != 0
    assert found[0].tolist() == [-math.inf, 22.0]
    assert listed_ranging(problem, 1, means) is None  # it is not the best


def test_what_would_have_to_be_true_is_just_that():
    found = turn(COMMUTES, SEEN, 0, 1)
    assert (found.rival_name, found.arm_name, found.above) == ("by train", "bus", True)  # bus is noisier
    assert found.n_errors == pytest.approx(2.0)
    moved = SEEN.means.copy()
    moved[found.arm] = found.at + 1e-6
    assert COMMUTES.best(moved) == 1
    assert found.sentence("min").startswith(
        "“by train” would win if bus were above 22 min: it is estimated at"
    )
    assert turn(COMMUTES, SEEN, 0, 0) is None
    assert turn(COMMUTES, Evidence.none(3), 0, 1) is None


def test_an_outcome_has_all_of_it():
    outcome = sp.simulate(
        COMMUTES, sp.Gaussian([20.0, 26.0, 12.0], COMMUTES.noise_scale), policy=sp.BetGapE(), seed=1
    )
    assert outcome.plan_name == "by bus"
    assert set(outcome.worth) == {"bus", "train", "walk"}
    assert outcome.ranging["bus"][1] > outcome.means[0]
    assert "would win if" in outcome.what_if
    assert estimate(COMMUTES, SEEN, 0).chance > 0.5
