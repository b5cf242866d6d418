"""BetGapE on lists of single arms: what is asked for, what is absorbed, and what decides."""

import numpy as np
import pytest
from scipy import sparse

import surepick as sp
from common import largest
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError
from surepick.inference.wealth import COMMON
from surepick.simulation import Gaussian
from surepick.testing import decisions


def test_parts_of_a_batch_are_worth_the_whole():
    problem, rng = largest(np.eye(3)), np.random.default_rng(0)
    whole, parts = sp.BetGapE().start(problem), sp.BetGapE(max_batch=2).start(problem)
    for _ in range(8):
        wanted = whole.decide().counts
        sums = rng.normal(size=3) * wanted
        whole.absorb(wanted, sums)
        while wanted.any():
            counts = parts.decide().counts
            assert counts.sum() <= 2
            parts.absorb(counts, sums * (counts / np.maximum(wanted, 1)))
            sums, wanted = sums - sums * (counts / np.maximum(wanted, 1)), wanted - counts
    assert whole.standing().risk == pytest.approx(parts.standing().risk)


def test_a_batch_of_nothing_and_an_incomplete_answer_are_refused():
    with pytest.raises(ParameterError):
        sp.BetGapE(max_batch=0)
    run = sp.BetGapE().start(largest(np.eye(3)))
    counts = run.decide().counts
    with pytest.raises(ParameterError):
        run.absorb(counts - np.array([1, 0, 0]), np.zeros(3))


@pytest.mark.parametrize(
    ("given", "ratio"), [({}, 1), ({"cost": [1.0, 25.0]}, 5), ({"noise": [4.0, 1.0]}, 4)]
)
def test_dear_arms_are_measured_less_often_and_noisy_ones_more(given, ratio):
    """n_s in proportion to R_s / sqrt(c_s)."""
    problem = sp.Problem(np.eye(2), **{"noise": 1, **given}, goal="largest")
    outcome = sp.simulate(problem, Gaussian([0.4, 0.0], problem.noise_scale), policy=sp.BetGapE(), seed=5)
    assert outcome.counts[0] / outcome.counts[1] == pytest.approx(ratio, rel=0.3)


def test_the_risk_never_rises_while_the_leader_stays_and_ends_below_delta_however_small():
    problem, truth, rng = (largest(np.eye(4)), Gaussian([1.0, 0.4, 0.2, 0.0]), np.random.default_rng(1))
    run, before = sp.BetGapE(delta=1e-200).start(problem), None
    while isinstance(decision := run.decide(), Measure):
        run.absorb(decision.counts, truth.measure(decision.counts, rng))
        now = run.standing()
        assert 0 <= now.risk <= 1
        if before is not None and before.leader == now.leader:
            assert now.risk <= before.risk
        before = now
    assert isinstance(decision, Stop)
    assert before.risk <= 1e-200
    assert before.leader == decision.plan


def test_measuring_in_other_units_changes_nothing():
    plans, means = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]]), np.array([0.4, 0.1])
    one, other = (
        sp.simulate(largest(plans, noise=unit), Gaussian(unit * means, unit), policy=sp.BetGapE(), seed=3)
        for unit in (1.0, 1024.0)
    )
    assert one.counts.tolist() == other.counts.tolist()


def test_a_best_plan_ruled_out_by_bad_luck_does_not_keep_the_run_from_ending():
    problem, rng = largest(np.eye(3)), np.random.default_rng(0)
    run = sp.BetGapE(delta=0.2).start(problem)
    unlucky, truth = Gaussian([0.0, 1.0, 1.0]), Gaussian([1.0, 0.0, 0.0])
    for n_round in range(400):
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        source = unlucky if n_round < 12 else truth
        run.absorb(decision.counts, source.measure(decision.counts, rng))
    assert isinstance(decision, Stop)


def many_plans():
    rng = np.random.default_rng(8)
    plans = (rng.random((700, 12)) < 0.4) * rng.integers(1, 4, (700, 12))
    return plans.astype(float), rng.normal(size=12)


@pytest.mark.parametrize("epsilon", [0.0, 2.0])
def test_sparse_plans_decide_as_dense_ones_where_there_are_many(epsilon):
    plans, means = many_plans()
    policy, truth = sp.BetGapE(epsilon=epsilon), Gaussian(means)
    dense, thin = (decisions(policy, largest(p), truth, 60) for p in (plans, sparse.csr_array(plans)))
    assert dense == thin


@pytest.mark.parametrize(("n_arms", "is_bet_on"), [(2, True), (3, False)])
def test_the_only_rival_left_is_bet_on_against_the_leader(n_arms, is_bet_on):
    run = sp.BetGapE(delta=1e-6).start(largest(np.eye(n_arms)))
    for values in ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.6, 0.0, 0.0]):
        run.follow(run.propose())
        counts = run.decide().counts
        assert run.standing().leader in (None, 0)
        account = run._question.account(COMMON)
        before = account.components[0, -1]
        run.absorb(counts, counts * values[:n_arms])
        if values[0] == 0.0:  # the leader was beaten in this batch, so that bets against it win
            assert (account.components[0, -1] > before) == is_bet_on
