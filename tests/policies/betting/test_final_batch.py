"""A final batch: evidence of 1/a against the best plan has a probability of at most a; cheats are caught."""

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, measured, refuses
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError
from surepick.inference.wealth import COMMON
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best import Best
from surepick.policies.betting.bet_gap_e import BetGapE
from surepick.simulation import Gaussian, State

LEVELS = np.array([0.5, 0.2, 0.05])


class Afterwards(BatchRun):
    """A control: chooses what to test after the batch."""

    def _settle(self, batch, averages):
        if batch.decision.is_final:
            question = self._question
            question.leader = int(np.argmax(question.plans @ averages))
            self._bets = question.test(np.delete(np.arange(question.n_plans), question.leader))
        super()._settle(batch, averages)


class Pooled(BatchRun):
    """A control: tests with all measurements instead of the batch's own."""

    def _settle(self, batch, averages):
        if batch.decision.is_final:
            batch.uses = batch.uses + self.counts
            averages = (batch.sums[0] + self.sums) / np.maximum(batch.uses, 1)
        super()._settle(batch, averages)


class Peak(BatchRun):
    """A control: tests with the largest wealth so far instead of the wealth now."""

    def _settle(self, batch, averages):
        question, record = self._question, self._question.record_test

        def with_the_peak(key, rows, log_p):
            question.account(key).current = question.account(key).peak.copy()
            record(key, rows, log_p)

        question.record_test = with_the_peak
        super()._settle(batch, averages)
        del question.record_test


def started(kind, problem, delta):
    return kind(problem, BetGapE(delta), Best(problem.oriented, delta))


def evidence_against_the_best(kind, scale, gaussian, seed):
    """The log evidence against the best plan after some bets and a final batch.

    The best plan is to do nothing; each of six things to do is a hair's breadth worse.
    """
    run = started(kind, largest(np.vstack([np.zeros(6), np.eye(6)])), 0.001)
    rng, means = np.random.default_rng(seed), np.full(6, -1e-9)
    measured(run, means, rng, 3, scale)
    run.call_final_batch(40, gaussian=gaussian)
    measured(run, means, rng, 6, scale)
    return run.log_evidence()[0]


@pytest.mark.parametrize(
    ("kind", "scale", "gaussian"),
    [
        (BatchRun, 1.0, True),
        (BatchRun, 1.0, False),
        (BatchRun, 0.01, True),  # the normal tail of a gap below 0 is no p-value if the noise is smaller
        (Afterwards, 1.0, True),
        (Pooled, 1.0, True),
    ],
)
def test_evidence_against_the_best_plan_is_as_rare_as_it_says_and_looking_first_is_caught(
    kind, scale, gaussian
):
    """Evidence of 1/a has a probability of at most a."""
    is_refuted = errs_more_often_than(
        LEVELS, lambda seed: evidence_against_the_best(kind, scale, gaussian, seed) >= -np.log(LEVELS), 400
    )
    assert is_refuted.any() == (kind is not BatchRun)


@pytest.mark.parametrize(("kind", "is_caught"), [(BatchRun, False), (Peak, True)])
def test_the_peak_for_the_wealth_now_is_caught(kind, is_caught):
    """All that the peak adds is luck, and there is more of it the longer the bets before the call go on."""

    def is_wrong(seed):
        run, rng = started(kind, largest(np.eye(2)), 1e-6), np.random.default_rng(seed)
        measured(run, np.zeros(2), rng, 16)
        run.call_final_batch(40, gaussian=True)
        account = run._question.account(COMMON)
        account.peak[:] = 0.0 if kind is BatchRun else account.peak  # what the test alone shows
        measured(run, np.zeros(2), rng, 1)
        return run.log_evidence()[1 - run.standing().leader] >= -np.log(0.2)

    assert errs_more_often_than(0.2, is_wrong, 200) == is_caught


def test_it_proves_more_than_bets_with_the_same_budget():
    problem, truth = largest(np.eye(3)), Gaussian([0.6, 0.0, 0.0])
    given = {"policy": BetGapE(delta=1e-6), "budget": 120}
    bets, test, sharper = (
        np.median([sp.simulate(problem, truth, seed=seed, **given, **how).risk for seed in range(60)])
        for how in ({}, {"final_batch": 0.5}, {"final_batch": 0.5, "gaussian": True})
    )
    assert sharper < test < bets
    assert sharper < bets / 3


def test_an_answer_comes_with_its_assumption_and_only_where_the_test_was_needed():
    problem, truth = largest(np.eye(2)), Gaussian([0.5, 0.0])
    how = {"final_batch": 0.5, "gaussian": True}
    early = sp.simulate(problem, truth, seed=1, budget=2_000, **how)
    assert (early.plan, "sub-Gaussian" in early.guarantee) == (0, True)
    late = sp.simulate(problem, truth, seed=5, budget=70, **how)
    assert (late.plan, late.n_measured, late.risk <= 0.05) == (0, 70, True)
    assert "independent Gaussian noise" in late.guarantee
    none = sp.simulate(problem, Gaussian([0.0, 0.0]), policy=BetGapE(), budget=70, final_batch=0.5)
    assert (none.plan, none.state) == (None, State.BUDGET_SPENT)
    assert none.n_measured == 70


@pytest.mark.parametrize("policy", [BetGapE(), BetGapE(epsilon=0.3), BetGapE(max_batch=7)], ids=str)
@pytest.mark.parametrize("given", [{}, {"measure": "plans"}, {"noise_kind": "bounded variance"}], ids=str)
def test_the_whole_budget_is_used(policy, given):
    problem, truth = (sp.Problem(np.eye(4), noise=1, **given, goal="largest"), Gaussian([0.4, 0.3, 0.2, 0.0]))
    for budget in (20, 33, 150):
        outcome = sp.simulate(problem, truth, policy=policy, seed=3, budget=budget, final_batch=0.4)
        assert outcome.counts.sum() == budget
        assert 0 <= outcome.risk <= 1


@pytest.mark.parametrize("given", [{"noise": None}, {"measure": "plans", "noise": None}], ids=str)
def test_unknown_noise_has_a_final_batch_of_replicates(given):
    problem, means, found = sp.Problem(np.eye(3), **given, goal="largest"), np.array([1.2, 0.0, 0.0]), []
    for seed in range(20):
        run, rng = BetGapE(delta=0.05).start(problem), np.random.default_rng(seed)
        measured(run, means, rng, budget=24)
        run.call_final_batch(60, gaussian=False)
        found.append(measured(run, means, rng).plan)
        assert run.counts.sum() <= 24 + 60
    assert set(found) <= {0, None}
    assert found.count(0) >= 10


def test_it_may_come_before_the_first_stake():
    means, rng = np.append(np.zeros(29), 9.0), np.random.default_rng(1)
    run = BetGapE(epsilon=0.3).start(sp.Problem(np.eye(30), goal="largest"))
    measured(run, means, rng, budget=4 * 30)  # four replicates of each arm: nothing was bet on
    run.call_final_batch(600, gaussian=False)
    assert (measured(run, means, rng).plan, run.counts.sum()) == (29, 720)


def test_after_the_last_block_there_is_no_other():
    run = BetGapE().start(largest(np.eye(2)))
    run.absorb(run.decide().counts, np.zeros(2))
    run.call_final_batch(10, gaussian=False)
    with refuses("final_batch", ParameterError):
        run.call_final_batch(10, gaussian=False)
    last = run.decide()
    assert isinstance(last, Measure)
    assert last.counts.sum() == 10
    run.absorb(last.counts, np.zeros(2))
    assert run.decide() == Stop(None)


def test_what_was_not_measured_in_it_is_not_tested():
    run = BetGapE(delta=1e-9).start(largest(np.eye(3)))
    run.absorb(run.decide().counts, np.array([5.0, 0.0, 0.0]))
    run.call_final_batch(2, gaussian=True)
    counts = run.decide().counts
    assert counts.sum() == 2
    run.absorb(counts, counts * [9.0, 0.0, 0.0])
    evidence = run.log_evidence()
    assert (evidence[1:] > 0).tolist() == (counts[1:] > 0).tolist()


@pytest.mark.parametrize(
    "how",
    [
        {"final_batch": 1.0},
        {"final_batch": 0.5, "policy": sp.CombGapE()},
        {"gaussian": True, "problem": sp.Problem(np.eye(2), low=0, high=1, goal="largest")},
    ],
)
def test_what_makes_no_sense_is_refused(how):
    given = {"problem": largest(np.eye(2)), "policy": BetGapE(), **how}
    problem, policy = given.pop("problem"), given.pop("policy")
    with pytest.raises(ParameterError):
        sp.simulate(problem, Gaussian([0.5, 0.4], scale=0.01), policy=policy, budget=100, **given)


def test_cash_that_other_accounts_took_since_is_not_in_the_wealth_of_a_test():
    problem, evidence = largest(np.eye(70)), []
    for taken in (None, 0.9):
        run, rng = sp.BetGapE(0.2, epsilon=0.3).start(problem), np.random.default_rng(1)
        measured(run, np.append(3.0, np.zeros(69)), rng, 3)
        run.call_final_batch(200, gaussian=False)
        counts = run.decide().counts
        if taken is not None:
            run._question.wealth.withdraw(taken)  # as a stake of another leader does
        run.absorb(counts, 0.0 * counts)
        evidence.append(run._question.account(run._question.leader).current)
    assert (evidence[1] <= evidence[0]).all()
    assert (evidence[1] < evidence[0]).any()  # of the rivals that were left
