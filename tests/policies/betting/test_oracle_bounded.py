"""Bounded readings behind an oracle: bets are fair at every null, and learn the variance."""

import itertools
import math

import numpy as np
import pytest

import surepick as sp
from common import asked, errs_more_often_than, measured
from session_tools import answer
from surepick.core.plan_sets import Branch
from surepick.core.run import Stop
from surepick.inference.bounded import power_sums
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.oracles.oracle_best import OracleBest
from surepick.policies.oracles.plan_wealth import BoundedPlanWealth, OracleBet
from surepick.simulation import Bernoulli

N = 3  # arms, each measured twice
USES = 2
KINDS = np.array([[1.0, 0.0], [0.3, 0.0]])


def mean_wealth(means, sign, centres, size, *, fitted):
    """Return E of the wealth against a best plan after one batch of zeros and ones, summed exactly."""
    everything = Branch(np.minimum(0, sign) * np.ones(N), np.maximum(0, sign) * np.ones(N))
    wealth = BoundedPlanWealth(np.full(N, 0.25), np.full(N, np.nan), everything, 0.0)
    leader, plan = sign * np.array([1.0, 1.0, 0.0]), sign * np.array([0.0, 0.0, 1.0])
    total, y = 0.0, leader - plan
    for bits in itertools.product([0.0, 1.0], repeat=N * USES):
        values = np.array(bits).reshape(N, USES)
        chance = float(np.prod(np.where(values == 1, means[:, None], 1 - means[:, None])))
        if chance == 0.0:
            continue
        account = wealth.open()
        wealth.stake(account, math.log(0.9), common_share=0.4, kinds=KINDS, first_share=0.5)
        seen = max(float(y @ values.mean(axis=1)), 0.0) * 8  # a control: the size fits the batch
        bet = OracleBet(
            leader=leader,
            free=np.ones(N, dtype=bool),
            sizes=account.kinds[:, 0] * (seen if fitted else size),
            means=means + sign * 0.2 * y,
            variance=np.full(N, 0.02),
            fresh=np.full(N, 0.02),
        )
        far, powers = np.maximum(centres, 1 - centres), power_sums((values - centres[:, None]).T)
        shown = np.vstack([centres, np.full(N, USES), far, powers])
        wealth.settle(account, bet, shown, np.full(N, 0.25 / USES))
        components = wealth.components(account, plan)
        logs = [wealth.common(account, math.log(0.1)).at(plan[None])[0], components]
        total += chance * float(np.exp(np.concatenate(logs)).sum())
    return total


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_wealth_against_a_best_plan_does_not_rise_and_fitted_bets_are_caught(sign):
    rng, largest, fitted = np.random.default_rng(3), 0.0, 0.0
    for _ in range(25):
        a, b = rng.random(2) * rng.choice([0.02, 0.5])
        means = np.array([a, b, a + b]) if rng.random() < 0.7 else np.array([a, b, min(1.0, a + b + 0.2)])
        centres, size = rng.random(N), rng.choice([0.1, 1.0, 4.0])
        if sign < 0:  # the smallest sum is best, so that the other plan is the leader's equal or better
            means = np.array([a, b, (a + b) * rng.choice([1.0, 0.5])])
        largest = max(largest, mean_wealth(means, sign, centres, size, fitted=False))
        fitted = max(fitted, mean_wealth(means, sign, centres, size, fitted=True))
    assert largest <= 1 + 1e-9
    assert fitted > 1.02


def problem(n_arms=5, **options):
    names = [f"arm {i}" for i in range(n_arms)]
    limits = {} if "noise" in options else {"low": 0.0, "high": 1.0}
    return sp.problems.top_k(names, 2, goal="largest", list_plans=False, **limits, **options)


def test_errors_at_ties_are_no_more_frequent_than_delta():
    truth, policy = Bernoulli([0.05, 0.02 + 1e-9, 0.02, 0.001, 0.0]), sp.BetGapE(0.2)

    def is_wrong(seed):
        plan = sp.simulate(problem(), truth, policy=policy, seed=seed, budget=1500).plan
        return plan is not None and plan[1] == 0

    assert not errs_more_often_than(0.2, is_wrong, 80)


def test_rare_events_need_far_fewer_than_the_width_of_the_bounds_says():
    means = [0.05, 0.04, 0.01, 0.005, 0.005]
    learned = [sp.simulate(problem(), Bernoulli(means), seed=seed).n_measured for seed in range(4)]
    wide = problem(noise=0.5)
    stated = [sp.simulate(wide, Bernoulli(means), seed=seed).n_measured for seed in range(2)]
    assert np.mean(learned) < 0.5 * np.mean(stated)


@pytest.mark.parametrize("final", [False, True])
def test_sessions_verify_also_with_a_final_batch(final):
    session = sp.Session.create("memory://", "s", problem(), policy=sp.BetGapE(0.1))
    rng, means = np.random.default_rng(1), (0.9, 0.8, 0.3, 0.2, 0.1)

    def toss(request):
        return float(rng.random() < means[request.probe])

    answer(session, toss, n=60, at_once=20)
    if final:
        session.final_batch(400)
    answer(session, toss, at_once=20)
    assert session.outcome.plan == (1.0, 1.0, 0.0, 0.0, 0.0)
    assert session.verify().holds


class Stubborn(OracleBest):
    """The worse plan leads throughout: who leads is free."""

    def _keeps_lead(self, best, estimates):
        self.leader = WORSE
        return True


class Generous(Stubborn):
    """A control: the second stage begins with twelve times what the first one has proved."""

    def _reopen(self):
        super()._reopen()
        self._account.log_cash += math.log(12.0)


WORSE = np.array([0.0, 0.0, 1.0, 1.0])


@pytest.mark.parametrize("kind", [Stubborn, Generous])
def test_a_smaller_delta_within_epsilon_continues_soundly_and_a_gift_is_caught(kind):
    """A plan worse by just more than epsilon is rarely the answer at delta .1, after .95."""
    chosen = asked(np.array([[1.0, 1.0, 0.0, 0.0], WORSE, [1.0, 0.0, 0.0, 1.0]]))
    means = np.array([0.25, 0.25 + 1e-6, 0.0, 0.0])

    def is_wrong(seed):
        rng = np.random.default_rng([5, seed])
        run = BatchRun(chosen, sp.BetGapE(0.95, epsilon=0.5), kind(chosen, 0.95, 0.5))
        measured(run, means, rng, budget=400)
        if not isinstance(run.decide(), Stop):
            return False
        run.lower_delta(sp.BetGapE(0.1, epsilon=0.5), 0.1)
        return measured(run, means, rng, budget=400 - run.counts.sum()) == Stop(tuple(WORSE))

    assert errs_more_often_than(0.1, is_wrong, 60) == (kind is Generous)


class Turncoat(OracleBest):
    """After the first stage the worse of two plans leads, with bets of a fixed size: both are free."""

    has_turned = False

    def _reopen(self):
        super()._reopen()
        self.has_turned = True

    def _keeps_lead(self, best, estimates):
        if self.has_turned:
            self.leader = np.array([0.0, 1.0])
        return self.has_turned

    def terms(self, estimates, batch):
        terms = super().terms(estimates, batch)
        size = 0.3 * float(batch.counts.min())
        return terms | ({"sizes": [0.0, size]} if self.has_turned and terms else {})


class GivesToAll(Turncoat):
    """A control: what the first stage has proved for its leader is there for the bets of all."""

    def _reopen(self):
        reached = self.wealth.threshold
        super()._reopen()
        self.accounts, self.wealth.log_cash = {}, reached


@pytest.mark.parametrize("kind", [Turncoat, GivesToAll])
def test_a_smaller_delta_continues_soundly_and_what_is_there_for_all_leaders_is_caught(kind):
    """The better plan is the answer at delta .05; the worse one is rarely that at .048."""
    two = asked(np.eye(2))

    def is_wrong(seed):
        rng = np.random.default_rng([6, seed])
        run = BatchRun(two, sp.BetGapE(0.05), kind(two, 0.05))
        if measured(run, [0.3, 0.0], rng) != Stop((1.0, 0.0)):
            return False
        run.lower_delta(sp.BetGapE(0.048), 0.048)
        return measured(run, [0.3, 0.0], rng, budget=1000) == Stop((0.0, 1.0))

    assert errs_more_often_than(0.048, is_wrong, 60) == (kind is GivesToAll)
