"""BetGapE within epsilon: with few plans every plan is a possible answer, with many the leaders are."""

import math

import numpy as np
import pytest

import surepick as sp
from common import largest, measured
from hard_families import Lucky
from surepick.core.run import Stop
from surepick.inference.wealth import COMMON
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.within import WithinFew

EPSILON, RUNS, CAP = 0.5, 120, 20.0


class WithoutCommonCash(WithinFew):
    """A control: the row of each pair begins with all the cash, as if the others had taken none."""

    def follow(self, decision, estimates):
        is_first = self.wealth.log_cash == 0.0
        super().follow(decision, estimates)
        if is_first:
            self.account(COMMON).components += math.log(self.n_plans - 1)


def excess(question=WithinFew, factor=None):
    """How far the mean wealth against the best plan is above 1, in standard errors.

    All other plans are worse by just more than epsilon, where every bet is fair. The wealth is cash and the
    rows of all these plans, cut off at `CAP`, which can only lower its mean.
    """
    means, found = np.array([EPSILON + 1e-9, 0, 0, 0, 0, 0]), []
    problem = largest(np.eye(6))
    for seed in range(RUNS):
        asked = question(problem.oriented, 1e-9, EPSILON)
        run, rng = BatchRun(problem, sp.BetGapE(), asked), np.random.default_rng(seed)
        run._factor = factor or run._factor
        measured(run, means, rng, 8)
        rows = asked.account(COMMON).components.reshape(6, 6, -1)[1:, 0]
        found.append(min(np.exp(asked.wealth.log_cash) + np.exp(rows).sum(), CAP))
    return (np.mean(found) - 1) / (np.std(found) / math.sqrt(RUNS))


@pytest.mark.parametrize("control", [{}, {"question": WithoutCommonCash}, {"factor": Lucky(0.5)}])
def test_the_wealth_against_the_best_plan_does_not_grow_and_one_that_is_not_fair_is_caught(control):
    assert (excess(**control) > 4) == bool(control)


def test_the_parts_of_a_stake_sum_to_no_more_than_the_stake():
    run, rng = (sp.BetGapE(epsilon=0.3).start(largest(np.eye(7))), np.random.default_rng(3))
    for _ in range(30):
        cash = run._question.wealth.log_cash
        before = np.exp(run._question.account(COMMON).components) if cash else 0.0
        decision = run.propose()
        if isinstance(decision, Stop):
            break
        run.follow(decision)
        counts, account = decision.uses, run._question.account(COMMON)
        staked = (np.exp(account.components) - before).sum(axis=1).reshape(7, 7).sum(axis=0)
        assert (staked <= (np.exp(cash) - np.exp(run._question.wealth.log_cash)) * (1 + 1e-12) + 1e-12).all()
        run.absorb(counts, counts * np.linspace(0.4, 0, 7) + np.sqrt(counts) * rng.standard_normal(7))
