"""Plans that arrive: however they are chosen, the best of the list is hardly ever ruled out."""

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from surepick.core.run import GrowingRun
from surepick.errors import ProblemError
from surepick.policies.betting import arriving
from surepick.policies.betting.bet_gap_e import BetGapE, BetRun

N_ARMS, N_RUNS, DELTA = 18, 150, 0.5


def chain(n_plans):
    """Arms as plans, the first so many of them."""
    return sp.Problem(np.eye(N_ARMS)[:n_plans], noise_scale=1)


def is_ever_ruled_out(seed, n_rounds=6):
    """Whether the best plan is ruled out at any time, when each plan that arrives is better by a hair."""
    run, rng = BetGapE(delta=DELTA).start(chain(2)), np.random.default_rng(seed)
    for n_plans in range(2, N_ARMS + 1):
        if n_plans > 2:
            run.grow(chain(n_plans))
        for _ in range(n_rounds):
            decision = run.decide()
            if isinstance(decision, sp.Stop):
                break
            counts = decision.counts
            noise = np.sqrt(counts) * rng.standard_normal(N_ARMS)
            run.absorb(counts, 1e-9 * np.arange(N_ARMS) * counts + noise)
            if run.log_evidence()[n_plans - 1] >= np.log(1 / DELTA):
                return True
    return False


def is_refuted():
    n = sum(is_ever_ruled_out(seed) for seed in range(N_RUNS))
    return binom.sf(n - 1, N_RUNS, DELTA) < 1e-6


def test_the_best_plan_of_the_moment_is_rarely_ruled_out():
    assert not is_refuted()


def test_newcomers_that_begin_with_a_wealth_of_one_are_caught(monkeypatch):
    def begin_with_one(books, n_old, lead):
        rest = np.log1p(-np.exp(min(float(books.now.log_cash), -1e-9)))
        books.ladder[n_old:] = rest + np.log(books.question.ladder_share / len(books.rung))
        books.plans["mixture"][n_old:] = rest + np.log1p(-books.question.ladder_share)

    monkeypatch.setattr(arriving, "_give_stakes", begin_with_one)
    assert is_refuted()


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_a_newcomer_begins_with_no_more_than_any_plan_has_and_can_win(epsilon):
    problem = sp.Problem(np.eye(3)[:2], noise_scale=1)
    # few plans within epsilon have another run, and a test in test_all_leads
    run, rng = BetRun(problem, BetGapE(epsilon=epsilon)), np.random.default_rng(3)
    means, arrived = np.array([0.4, 0.0, 1.2]), False
    for n_round in range(400):
        if n_round == 6:
            before = run._books.plans["now"].copy()
            run.grow(sp.Problem(np.eye(3), noise_scale=1))
            arrived = True
            assert run._books.plans["now"][2] <= max(before.min(), 0.0) + 1e-12
            assert run._books.plans["now"][:2].tolist() == pytest.approx(before.tolist())
        decision = run.decide()
        if isinstance(decision, sp.Stop):
            break
        counts = decision.counts
        run.absorb(counts, counts * means + np.sqrt(counts) * rng.standard_normal(3))
    assert arrived
    assert decision == sp.Stop(2)


def test_an_arm_that_nobody_needed_is_measured_first_and_the_rest_goes_on():
    run = BetGapE().start(sp.Problem(np.eye(3)[:2], noise_scale=1))
    assert isinstance(run, GrowingRun)
    for _ in range(3):
        counts = run.decide().counts
        assert counts[2] == 0
        run.absorb(counts, counts * np.array([0.3, 0.0, 0.0]))
    run.grow(sp.Problem(np.eye(3), noise_scale=1))
    assert run.decide().counts.tolist() == [0, 0, 1]
    kept = run.state()
    again = BetGapE().start(sp.Problem(np.eye(3), noise_scale=1))
    again.restore(kept)
    for one in (run, again):
        one.absorb(np.array([0, 0, 1]), np.array([0.0, 0.0, 0.1]))
    assert run.standing().lead == 0
    assert run.decide().counts.tolist() == again.decide().counts.tolist()
    assert run.decide().counts.all()


def test_the_relevant_arms_and_the_duplicates_of_a_longer_list():
    from scipy.sparse import csr_array

    for plans in ([[1, 0, 0], [0, 1, 0]], csr_array(np.eye(3)[:2])):
        problem = sp.Problem(plans, arm_names=["tea", "milk", "cake"], plan_names=["A", "B"], noise_scale=1)
        longer = problem.with_plan("all", {"tea": 1, "milk": 2.5, "cake": 1})
        assert (longer.n_plans, longer.relevant.tolist()) == (3, [True, True, True])
        assert longer.vector(2).tolist() == [1.0, 2.5, 1.0]
        assert problem.n_plans == 2
        for name, plan in (("A", "cake"), ("C", "tea"), ("", "cake"), ("C", [1, 2]), ("C", "coffee")):
            with pytest.raises(ProblemError):
                problem.with_plan(name, plan)
