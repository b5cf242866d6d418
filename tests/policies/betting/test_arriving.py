"""Plans that arrive: however they are chosen, the best of the list is hardly ever ruled out."""

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, measured
from surepick.inference.wealth import COMMON
from surepick.policies import Challenge
from surepick.policies.betting.best import Best
from surepick.policies.betting.bet_gap_e import BetGapE
from surepick.policy import Stop

N_ARMS, DELTA = 18, 0.5


def chain(n_plans, noise):
    """Arms as plans, the first so many of them."""
    return sp.Problem(np.eye(N_ARMS)[:n_plans], noise=noise, goal="largest")


def is_ever_ruled_out(seed, noise, n_rounds=6):
    """Whether the best plan is ruled out at any time, when each plan that arrives is better by a hair."""
    run, rng = BetGapE(delta=DELTA).start(chain(2, noise)), np.random.default_rng(seed)
    for n_plans in range(2, N_ARMS + 1):
        if n_plans > 2:
            while not run.may_grow:  # replicates are asked for one after another
                measured(run, 1e-9 * np.arange(N_ARMS), rng, 1)
            run.grow(chain(n_plans, noise))
        for _ in range(n_rounds):
            if isinstance(measured(run, 1e-9 * np.arange(N_ARMS), rng, 1), Stop):
                break
            if run.log_evidence()[n_plans - 1] >= np.log(1 / DELTA):
                return True
    return False


def is_refuted(noise=1.0):
    return errs_more_often_than(DELTA, lambda seed: is_ever_ruled_out(seed, noise), 60)


@pytest.mark.parametrize("noise", [1.0, None])
def test_the_best_plan_of_the_moment_is_rarely_ruled_out(noise):
    assert not is_refuted(noise)


def test_newcomers_that_begin_with_a_wealth_of_one_are_caught(monkeypatch):
    grow = Best.grow

    def begin_with_one(self, plans, readings, n_probes):
        n_old = self.n_plans
        grow(self, plans, readings, n_probes)
        account, rest = self.account(COMMON), np.log1p(-np.exp(min(self.wealth.log_cash, -1e-9)))
        account.components[n_old:] = rest - np.log(account.components.shape[1])

    monkeypatch.setattr(Best, "grow", begin_with_one)
    assert is_refuted()


@pytest.mark.parametrize("noise_scale", [1.0, None])
@pytest.mark.parametrize("policy", [BetGapE(), BetGapE(epsilon=0.3), Challenge(0, epsilon=0.1)], ids=str)
def test_a_newcomer_begins_with_no_more_than_any_plan_has_and_can_win(policy, noise_scale):
    run = policy.start(sp.Problem(np.eye(3)[:2], noise=noise_scale, goal="largest"))
    rng, means, has_grown = np.random.default_rng(3), np.array([0.4, 0.0, 1.4]), False
    for n_round in range(400):
        if n_round >= 6 and run.may_grow and not has_grown:
            has_grown = True
            before = run._question.log_wealth(run._question.leader).copy()
            run.grow(sp.Problem(np.eye(3), noise=noise_scale, goal="largest"))
            assert run._question.log_wealth(run._question.leader)[2] <= max(before.min(), 0.0) + 1e-12
            assert run._question.log_wealth(run._question.leader)[:2].tolist() == pytest.approx(
                before.tolist()
            )
        decision = measured(run, means, rng, 1)
        if isinstance(decision, Stop):
            break
    assert has_grown
    assert decision == Stop(2)


def test_plans_arrive_where_probes_are_measured():
    plans, means = np.vstack([np.eye(3), [1.0, 1.0, -0.5]]), np.array([0.4, 0.3, -0.5])
    probes = np.array([[1.0, 1, 0], [1, -1, 0], [0, 1, 1], [0, 0, 1]])
    run, rng = (BetGapE().start(largest(plans[:3], measure=probes)), np.random.default_rng(1))
    measured(run, probes @ means, rng, 8)
    run.grow(largest(plans, measure=probes))
    assert measured(run, probes @ means, rng, 292) == Stop(3)


def test_an_arm_that_no_plan_needed_is_measured_first_and_the_rest_goes_on():
    run = BetGapE().start(largest(np.eye(3)[:2]))
    assert run.has_final_batch
    for _ in range(3):
        counts = run.decide().counts
        assert counts[2] == 0
        run.absorb(counts, counts * np.array([0.3, 0.0, 0.0]))
    run.grow(largest(np.eye(3)))
    assert run.decide().counts.tolist() == [0, 0, 1]
    kept = run.state()
    again = BetGapE().start(largest(np.eye(3)))
    again.restore(kept)
    for one in (run, again):
        one.absorb(np.array([0, 0, 1]), np.array([0.0, 0.0, 0.1]))
    assert run.standing().leader == 0
    assert run.decide().counts.tolist() == again.decide().counts.tolist()
    assert run.decide().counts.all()
