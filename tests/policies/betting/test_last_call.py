"""The last call: evidence of 1/a against the best plan has a probability of at most a; cheats are caught."""

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from surepick.core.gaps import behind, mean_variance
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError
from surepick.policies.betting.bet_gap_e import BetGapE, BetRun
from surepick.policies.betting.last_call import GAUSSIAN_NOISE, cut, last_counts, log_p
from surepick.testing import StepByStep

LEVELS = (0.5, 0.2, 0.05)
RUNS = 700


class AfterwardsRun(BetRun):
    """Chooses what to test after the block."""

    def _test(self, last, seen):
        last.lead = int(np.argmax(self._problem.plans @ seen.means))
        super()._test(last, seen)


class PooledRun(BetRun):
    """Tests with all measurements instead of the block's own."""

    def _test(self, last, seen):
        super()._test(last, seen + self._evidence)


def evidence_against_the_best(kind, scale, gaussian, seed):
    """The log evidence against the best plan after some bets and a last call.

    The best plan is to do nothing; each of six things to do is a hair's breadth worse.
    """
    run = kind(sp.Problem(np.vstack([np.zeros(6), np.eye(6)]), noise_scale=1), BetGapE(delta=0.001))
    rng = np.random.default_rng(seed)
    for n_round in range(9):
        if n_round == 3:
            run.call_last(40, gaussian=gaussian)
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        counts = decision.counts
        run.absorb(counts, -1e-9 * counts + scale * np.sqrt(counts) * rng.standard_normal(6))
    return run.log_evidence()[0]


def refuted(kind, scale=1.0, gaussian=True):
    """The levels a at which evidence of 1/a is more frequent than a, at one in a million."""
    found = np.array([evidence_against_the_best(kind, scale, gaussian, seed) for seed in range(RUNS)])
    return [a for a in LEVELS if binom.sf(int((found >= np.log(1 / a)).sum()) - 1, RUNS, a) < 1e-6]


@pytest.mark.parametrize("gaussian", [True, False])
def test_evidence_against_the_best_plan_is_as_rare_as_it_says(gaussian):
    assert refuted(BetRun, gaussian=gaussian) == []


def test_it_holds_where_the_noise_is_smaller_than_stated():
    """The normal tail of a gap below 0 would not: it is no p-value if the noise is smaller than its scale."""
    assert refuted(BetRun, scale=0.01) == []
    assert log_p(np.array([0.0, -1e-9]), np.ones(2), GAUSSIAN_NOISE).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [AfterwardsRun, PooledRun])
def test_a_test_that_looks_first_is_caught(kind):
    assert refuted(kind) != []


class PeakRun(BetRun):
    """Tests with the largest wealth so far instead of the wealth at the call."""

    def _test(self, last, seen):
        plans = self._books.plans
        plans["now"] = plans["peak"]
        super()._test(last, seen)


@pytest.mark.parametrize(("kind", "is_caught"), [(BetRun, False), (PeakRun, True)])
def test_the_peak_for_the_wealth_now_is_caught(kind, is_caught):
    """All that the peak adds is luck, and there is more of it the longer the bets before the call go on."""
    problem, level, runs, wrong = sp.Problem(np.eye(2), noise_scale=1), 0.2, 1500, 0
    for seed in range(runs):
        run, rng = kind(problem, BetGapE(delta=1e-6)), np.random.default_rng(seed)
        for n_round in range(17):
            if n_round == 16:
                run.call_last(40, gaussian=True)
            counts = run.decide().counts
            run.absorb(counts, np.sqrt(counts) * rng.standard_normal(2))
        wrong += run._last.evidence[1 - run._last.lead] >= np.log(1 / level)
    assert (binom.sf(wrong - 1, runs, level) < 1e-6) == is_caught


def test_the_values_of_the_check_table():
    p = np.exp(log_p(np.array([0.9]), np.sqrt([0.2]), GAUSSIAN_NOISE))
    assert p == pytest.approx(0.02209, rel=1e-3)
    assert p / 4 == pytest.approx(0.00552, rel=1e-3)
    bound = np.exp(log_p(np.array([0.9]), np.sqrt([0.2])))
    assert bound / 4 == pytest.approx(0.0330, rel=2e-3)


def test_it_proves_more_than_bets_with_the_same_budget():
    problem, truth = sp.Problem(np.eye(3), noise_scale=1), sp.Gaussian([0.6, 0.0, 0.0])
    bets, test, sharper = [], [], []
    for seed in range(60):
        how = {"seed": seed, "budget": 120}
        bets.append(sp.simulate(problem, BetGapE(delta=1e-6), truth, **how).risk)
        test.append(sp.simulate(problem, BetGapE(delta=1e-6), truth, **how, last_call=0.5).risk)
        sharper.append(
            sp.simulate(problem, BetGapE(delta=1e-6), truth, **how, last_call=0.5, gaussian=True).risk
        )
    assert np.median(sharper) < np.median(test) < np.median(bets)
    assert np.median(sharper) < np.median(bets) / 3


def test_an_answer_comes_with_its_assumption_and_only_where_the_test_was_needed():
    problem, truth = sp.Problem(np.eye(2), noise_scale=1), sp.Gaussian([0.5, 0.0])
    early = sp.simulate(problem, BetGapE(), truth, seed=1, budget=2_000, last_call=0.5, gaussian=True)
    assert early.plan == 0
    assert "sub-Gaussian" in early.guarantee
    late = sp.simulate(problem, BetGapE(), truth, seed=5, budget=70, last_call=0.5, gaussian=True)
    assert late.n_measurements == 70
    assert late.plan == 0
    assert late.risk <= 0.05
    assert "independent Gaussian noise" in late.guarantee
    none = sp.simulate(problem, BetGapE(), sp.Gaussian([0.0, 0.0]), budget=70, last_call=0.5)
    assert (none.plan, none.status) == (None, sp.Status.BUDGET_SPENT)
    assert none.n_measurements == 70


@pytest.mark.parametrize("policy", [BetGapE(), BetGapE(epsilon=0.3), BetGapE(max_batch=7)], ids=str)
def test_step_by_step_and_driven_end_alike(policy):
    problem, truth = sp.Problem(np.eye(4)[:, :4], noise_scale=1), sp.Gaussian([0.4, 0.3, 0.2, 0.0])
    for budget in (9, 33, 150):
        fast, slow = (
            sp.simulate(problem, policy, e, seed=3, budget=budget, last_call=0.4)
            for e in (truth, StepByStep(truth))
        )
        assert fast.counts.tolist() == slow.counts.tolist()
        assert fast.counts.sum() == budget
        assert (fast.risk, fast.remaining, fast.plan) == (slow.risk, slow.remaining, slow.plan)


def test_a_run_is_kept_before_within_and_after_its_last_block():
    problem, rng = sp.Problem(np.eye(3), noise_scale=1), np.random.default_rng(0)
    run = BetGapE(max_batch=5).start(problem)
    for n_round in range(40):
        decision = run.decide()
        again = BetGapE(max_batch=5).start(problem)
        again.restore(run.state())
        assert again.standing() == run.standing()
        if isinstance(decision, Stop):
            assert again.decide() == decision
            return
        assert again.decide().counts.tolist() == decision.counts.tolist()
        run.absorb(decision.counts, decision.counts * [0.5, 0, 0] + rng.normal(size=3))
        if n_round == 6:
            run.call_last(31, gaussian=False)
    raise AssertionError("it should have ended")


def test_after_the_last_block_there_is_no_other():
    run = BetGapE().start(sp.Problem(np.eye(2), noise_scale=1))
    run.absorb(run.decide().counts, np.zeros(2))
    run.call_last(10, gaussian=False)
    with pytest.raises(ParameterError, match="already"):
        run.call_last(10, gaussian=False)
    last = run.decide()
    assert isinstance(last, Measure)
    assert last.counts.sum() == 10
    run.absorb(last.counts, np.zeros(2))
    assert run.decide() == Stop(None)


def test_what_was_not_measured_in_it_is_not_tested():
    gap, error = behind(
        sp.Problem(np.eye(3), noise_scale=1),
        0,
        np.array([9.0, 0.0, 0.0]),
        mean_variance(sp.Problem(np.eye(3), noise_scale=1), sp_evidence([4, 4, 0])),
    )
    tested = log_p(gap, error, GAUSSIAN_NOISE)
    assert tested[1] < -10
    assert tested[2] == 0.0


def sp_evidence(counts):
    from surepick.core.evidence import Evidence

    return Evidence(np.array(counts), np.zeros(len(counts)))


def test_last_counts_spend_everything_and_leave_no_arm_out():
    share, costs = np.array([0.7, 0.2, 0.1, 0.0]), np.array([1.0, 1.0, 1.0, 1.0])
    counts = last_counts(share, costs, np.array([0, 1, 3]), 50)
    assert counts.sum() == 50
    assert counts[2] == 0
    assert counts[3] >= 1
    assert last_counts(share, costs, np.array([0, 1, 3]), 2).tolist() == [1, 1, 0, 0]


def test_a_block_is_cut_to_what_is_left():
    assert cut(np.array([5, 5, 0]), 20).tolist() == [5, 5, 0]
    problem, truth = sp.Problem(np.eye(6), noise_scale=1), sp.Gaussian(np.zeros(6))
    for policy in (BetGapE(), BetGapE(max_batch=4), sp.OBet()):
        spent = [sp.simulate(problem, policy, truth, budget=b).n_measurements for b in (30, 31, 32, 33, 47)]
        least = 30 if policy.name == "BetGapE" else 24
        assert all(least <= n <= b for n, b in zip(spent, (30, 31, 32, 33, 47), strict=True))
        if policy.name == "BetGapE":
            assert spent == [30, 31, 32, 33, 47]
    assert sp.simulate(problem, BetGapE(), truth, budget=5).n_measurements == 0


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"last_call": 1.0}, "share of the budget"),
        ({"last_call": 0.5, "policy": sp.CombGapE()}, "CombGapE has no last call"),
        ({"gaussian": True, "problem": sp.Problem(np.eye(2), bounds=(0, 1))}, "bounds"),
    ],
)
def test_what_makes_no_sense_is_refused(how, match):
    given = {"problem": sp.Problem(np.eye(2), noise_scale=1), "policy": BetGapE(), **how}
    problem, policy = given.pop("problem"), given.pop("policy")
    with pytest.raises(ParameterError, match=match):
        sp.simulate(problem, policy, sp.Gaussian([0.5, 0.4], scale=0.01), budget=100, **given)
