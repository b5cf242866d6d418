"""Many arms: planning rounds make no bets, leaders have accounts of their own, and both are sound."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import surepick as sp
from common import errs_more_often_than, largest, measured, terms_now
from session_tools import answer, gaussian
from surepick.core.run import Decision, Stop
from surepick.inference.wealth import COMMON, WAITING
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import FEW, Best, WithinMany
from surepick.policies.betting.question import NO_LEADER
from surepick.simulation import Gaussian

DELTA, N = 0.2, FEW + 6
PROBLEM = largest(sparse.eye_array(N, format="csr"))


class OneAccount(WithinMany):
    """A control: all leaders share one account, so that good ones rule out the best plan for bad ones."""

    def follow(self, decision, estimates):
        super().follow(decision, estimates)
        accounts = self.wealth.accounts
        first = next(account for key, account in accounts.items() if isinstance(key, int))
        accounts.update({key: first for key in accounts if isinstance(key, int)})


class Pooled(BatchRun):
    """A control: bets are settled by all measurements so far, planning rounds among them."""

    def _settle(self, batch, averages):
        sums = self.sums + self._prior.sums + (batch.sums + batch.lost)[0]
        uses = (batch.uses + self.counts).astype(np.int64)
        super()._settle(replace(batch, uses=uses), sums / np.maximum(uses, 1))


def played(run, means, seed, most):
    """Play a run to its end or to so many measurements; yield it after every batch."""
    rng, spent = np.random.default_rng([31, seed]), 0
    while spent < most:
        decision = run.propose()
        if isinstance(decision, Stop):
            break
        run.follow(decision)
        counts = decision.uses
        run.absorb(counts, counts * means + np.sqrt(counts) * rng.standard_normal(len(counts)))
        spent += int(counts.sum())
        yield decision


def run_of(question, run=BatchRun, epsilon=0.0):
    arguments = (epsilon,) if epsilon else ()
    return run(PROBLEM, sp.BetGapE(DELTA, epsilon=epsilon), question(PROBLEM.oriented, DELTA, *arguments))


@pytest.mark.parametrize(("kind", "runs"), [(BatchRun, 100), (Pooled, 40)])
def test_tied_arms_are_ruled_out_with_probability_delta_at_most_and_pooled_rounds_are_caught(kind, runs):
    def is_wrong(seed):
        run = run_of(Best, kind)
        measured(run, np.zeros(N), np.random.default_rng([31, seed]), budget=3000)
        return run._question.evidence(0)[0] >= run._question.wealth.threshold

    assert errs_more_often_than(DELTA, is_wrong, runs) == (kind is Pooled)


@pytest.mark.parametrize(("question", "runs"), [(WithinMany, 60), (OneAccount, 30)])
def test_plans_said_to_be_within_epsilon_are_so_and_one_account_for_all_leaders_is_caught(question, runs):
    """Plan 3 is worse by just more than epsilon. It and two good plans lead in turn: who leads is free."""
    means, problem, uses = np.array([0.5, 0.4, 0.4, -1e-9]), largest(np.eye(4)), np.full(4, 8)

    def is_wrong(seed):
        rng, asked = np.random.default_rng([32, seed]), question(np.eye(4), DELTA, 0.5)
        run = BatchRun(problem, sp.BetGapE(DELTA, epsilon=0.5), asked)
        for k in range(60):
            asked.leader = [1, 2, 3][k % 3] if k else NO_LEADER  # fixed before the batch
            rivals = np.delete(np.arange(4), asked.leader) if k else np.zeros(0, dtype=int)
            run.follow(Decision(asked.leader, rivals, uses, 1, more=terms_now(run, rivals)))
            run.absorb(uses, uses * means + np.sqrt(uses) * rng.standard_normal(4))
            if 3 in asked.within_epsilon():
                return True
        return False

    assert errs_more_often_than(DELTA, is_wrong, runs) == (question is OneAccount)


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_planning_rounds_make_no_bets(epsilon):
    run = run_of(WithinMany if epsilon else Best, epsilon=epsilon)
    means, n_rounds, before = np.linspace(1.0, 0.0, N), 0, None
    for decision in played(run, means, 1, 5000):
        now = [account.components.copy() for account in run._question.wealth.accounts.values()]
        if decision.is_first and before is not None:
            n_rounds += 1
            assert all(map(np.array_equal, now, before))
        before = now
    assert n_rounds > 0


def test_wealth_against_a_plan_starts_at_one_and_a_stake_moves_it():
    run = run_of(WithinMany, epsilon=0.2)
    question, rows = run._question, np.arange(N)
    for _ in played(run, np.linspace(1.0, 0.0, N), 2, 2000):
        wealth, decision = question.wealth, run.propose()
        if isinstance(decision, Stop) or decision.is_first:
            continue
        before = wealth.total(rows, *wealth.accounts.values())
        question.follow(decision, run._estimates)
        assert np.allclose(wealth.total(rows, *wealth.accounts.values()), before, rtol=0, atol=1e-12)
        run._proposal = None
    fresh = run_of(WithinMany, epsilon=0.2)._question.wealth
    assert np.allclose(fresh.total(rows, fresh.accounts[WAITING], fresh.accounts[COMMON]), 0.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("noise_scale", [1.0, None])
def test_sessions_with_planning_rounds_verify(epsilon, noise_scale):
    problem = sp.Problem(np.eye(N), noise=noise_scale, goal="largest")
    session = sp.Session.create("memory://", "many", problem, policy=sp.BetGapE(0.1, epsilon=epsilon))
    answer(session, gaussian(2.0 * (np.arange(N) == 7), seed=5), at_once=5000)
    assert session.state().plan == 7
    assert session.verify().holds


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_many_arms_behind_an_oracle_have_an_answer(epsilon):
    """Their allocation has a closed form, and bets need its dual."""
    arms = np.eye(N)
    problem = sp.OracleProblem(lambda weights: arms[np.argmax(weights)], N, noise=1, goal="largest")
    means = np.append(2.0, np.linspace(0.3, -0.5, N - 1))
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(epsilon=epsilon), seed=1)
    assert outcome.plan == tuple(arms[0])
