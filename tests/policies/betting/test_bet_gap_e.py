import math

import numpy as np
import pytest
from scipy import integrate, sparse
from scipy.special import log_ndtr

import surepick as sp
from surepick.core.run import Measure, Stop
from surepick.design.allocation import optimal_allocation
from surepick.errors import ParameterError
from surepick.policies.betting.bets import compare, log_normal_cdf, settle_singles
from surepick.policies.betting.books import make_books
from surepick.policies.betting.division import divide, fill_squares, mark_differing, nth_largest
from surepick.testing import decisions


@pytest.fixture
def plans():
    rng = np.random.default_rng(3)
    return rng.normal(size=(40, 7)) * (rng.random((40, 7)) < 0.5)


def compared(plans, lead, weight, mean, rivals=None):
    """Books whose lead is this plan, after the pass that compares it with the rivals."""
    books = make_books(sp.Problem(plans, noise_scale=1), np.ones(plans.shape[1]), 0.05, 0.0)
    vector = plans[lead] if isinstance(plans, np.ndarray) else plans.toarray()[lead]
    books.arms["lead"], books.arms["weight"], books.arms["average"] = vector, weight, mean
    bets = books.bets[: plans.shape[0] if rivals is None else len(rivals)]
    bets["rival"] = np.arange(len(bets)) if rivals is None else rivals
    compare.py_func(books.rows, books.arms, np.flatnonzero(vector), bets)
    return books, bets


def test_gap_and_spread_are_those_of_the_difference(plans):
    rng = np.random.default_rng(4)
    weight, mean = rng.random(7), rng.normal(size=7)
    _, bets = compared(plans, 2, weight, mean)
    y = plans[2] - plans
    assert np.allclose(bets["gap"], y @ mean)
    assert np.allclose(bets["spread"], y**2 @ weight)
    _, thin = compared(sparse.csr_array(plans), 2, weight, mean)
    assert np.array_equal(bets, thin)


def test_an_arm_without_measurements_matters_only_where_plans_differ():
    plans = np.array([[1.0, 2.0], [1.0, 0.0], [0.0, 2.0]])
    _, bets = compared(plans, 0, np.array([np.inf, 1.0]), np.zeros(2))
    assert bets["spread"].tolist() == [0.0, 4.0, np.inf]


def test_squares_are_those_of_the_difference(plans):
    rivals, chosen = np.array([5, 0, 1, 9]), np.array([0, 2, 3])
    books, bets = compared(plans, 2, 0.0, 0.0, rivals)
    price, urgency, squares = np.arange(1.0, 8.0), np.array([1.0, 2.0, 3.0]), np.ones((3, 7))
    books.arms["price"], bets["urgency"][chosen] = price, urgency
    fill_squares.py_func(books.rows, books.arms, np.flatnonzero(plans[2]), bets, chosen, squares)
    assert np.allclose(squares, urgency[:, None] * price * (plans[2] - plans[rivals[chosen]]) ** 2)


def test_differing_arms_are_found(plans):
    rivals = np.array([5, 1])
    books, bets = compared(plans, 2, 0.0, 0.0, rivals)
    mark_differing.py_func(books.rows, books.arms, np.flatnonzero(plans[2]), bets)
    assert books.arms["differs"].tolist() == (plans[rivals] != plans[2]).any(axis=0).tolist()


@pytest.mark.parametrize("x", [-300.0, -40.0, -8.0, -7.99, -1.0, 0.0, 3.0])
def test_log_of_the_normal_distribution_function(x):
    assert log_normal_cdf.py_func(x) == pytest.approx(log_ndtr(x), rel=1e-4)


def log_mixture(*numbers):
    """What a mixture bet brings: gap, spread, centre and prior."""
    purse = np.zeros((1, 1))
    settle_singles(*(np.array([number]) for number in numbers), np.ones(1), np.zeros(0), purse)
    return purse[0, 0]


@pytest.mark.parametrize(("gap", "spread", "centre", "prior"), [(0.3, 0.5, 0.2, 0.1), (-1.0, 0.2, 0.5, 2.0)])
def test_the_mixture_is_the_integral_it_says(gap, spread, centre, prior):
    def density(g):
        return math.exp(-((g - centre) ** 2) / (2 * prior))

    bet, _ = integrate.quad(lambda g: density(g) * math.exp((g * gap - g * g / 2) / spread), 0, 20)
    whole, _ = integrate.quad(density, 0, 20)
    assert log_mixture(gap, spread, centre, prior) == pytest.approx(math.log(bet / whole), abs=1e-8)


@pytest.mark.parametrize("truth", [0.0, -0.3])
def test_no_bet_is_better_than_fair_when_the_rival_is_best(truth):
    spread, centre, prior = 0.4, 0.5, 0.3
    noise, weight = np.polynomial.hermite_e.hermegauss(80)
    factors = [math.exp(log_mixture(truth + math.sqrt(spread) * x, spread, centre, prior)) for x in noise]
    mean = weight @ factors / math.sqrt(2 * math.pi)
    assert mean == pytest.approx(1.0, abs=1e-6) if truth == 0 else mean < 1


def test_shares_are_near_the_certified_optimum(plans):
    squares = (plans[0] - plans[1:]) ** 2
    share, dual = np.empty(7), np.full(39, 1 / 39)
    worst = divide(squares, dual, share, np.empty(7), np.empty(39), 200, 0.01)
    assert share.sum() == pytest.approx(1)
    assert worst <= 1.02 * optimal_allocation(squares).value


def test_a_block_larger_than_the_batch_is_asked_for_in_parts():
    problem, truth = sp.Problem(np.eye(3), noise_scale=1), sp.Gaussian([0.5, 0.0, 0.0])
    whole = sp.simulate(problem, sp.BetGapE(), truth, seed=2)
    parts = sp.simulate(problem, sp.BetGapE(max_batch=2), truth, seed=2)
    assert parts.status is whole.status is sp.Status.CONFIDENT
    run = sp.BetGapE(max_batch=2).start(problem)
    asked = []
    for _ in range(30):
        decision = run.decide()
        asked.append(int(decision.counts.sum()))
        run.absorb(decision.counts, np.zeros(3))
    assert max(asked) == 2


def test_parts_of_a_block_are_worth_the_whole():
    problem, rng = sp.Problem(np.eye(3), noise_scale=1), np.random.default_rng(0)
    whole, parts = sp.BetGapE().start(problem), sp.BetGapE(max_batch=2).start(problem)
    for _ in range(8):
        wanted = whole.decide().counts
        sums = rng.normal(size=3) * wanted
        whole.absorb(wanted, sums)
        while wanted.any():
            counts = parts.decide().counts
            parts.absorb(counts, sums * (counts / np.maximum(wanted, 1)))
            sums, wanted = sums - sums * (counts / np.maximum(wanted, 1)), wanted - counts
    assert whole.standing().risk == pytest.approx(parts.standing().risk)


def test_an_incomplete_answer_is_refused():
    run = sp.BetGapE().start(sp.Problem(np.eye(3), noise_scale=1))
    counts = run.decide().counts
    with pytest.raises(ParameterError, match="complete answer"):
        run.absorb(counts - np.array([1, 0, 0]), np.zeros(3))


@pytest.mark.parametrize("max_batch", [0, -2])
def test_a_batch_of_nothing_is_refused(max_batch):
    with pytest.raises(ParameterError, match="max_batch"):
        sp.BetGapE(max_batch=max_batch)


def test_the_risk_never_rises_while_the_lead_stays_and_ends_below_delta():
    problem, truth, rng = (
        sp.Problem(np.eye(4), noise_scale=1),
        sp.Gaussian([1.0, 0.4, 0.2, 0.0]),
        np.random.default_rng(1),
    )
    run, before = sp.BetGapE(delta=0.01).start(problem), None
    while isinstance(decision := run.decide(), Measure):
        run.absorb(decision.counts, truth.measure(decision.counts, rng))
        now = run.standing()
        assert 0 < now.risk <= 1
        if before is not None and before.lead == now.lead:
            assert now.risk <= before.risk
        before = now
    assert isinstance(decision, Stop)
    assert before.risk <= 0.01
    assert before.lead == decision.plan


def test_dear_arms_are_measured_less_often():
    truth = sp.Gaussian([0.3, 0.0])
    cheap = sp.simulate(sp.Problem(np.eye(2), noise_scale=1), sp.BetGapE(), truth, seed=5)
    dear = sp.simulate(sp.Problem(np.eye(2), costs=[1.0, 25.0], noise_scale=1), sp.BetGapE(), truth, seed=5)
    assert cheap.counts[0] / cheap.counts[1] == pytest.approx(1, abs=0.1)
    assert dear.counts[0] / dear.counts[1] == pytest.approx(5, rel=0.3)  # n_s in proportion to 1/sqrt(c_s)


def test_noisy_arms_are_measured_more_often():
    problem = sp.Problem(np.eye(2), noise_scale=[4.0, 1.0])
    outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian([0.5, 0.0], [4.0, 1.0]), seed=5)
    assert outcome.counts[0] / outcome.counts[1] == pytest.approx(4, rel=0.3)


def test_measuring_in_other_units_changes_nothing():
    plans, means = np.array([[1.0, 2.0], [2.0, 1.0], [0.0, 3.0]]), np.array([0.4, 0.1])
    one = sp.simulate(sp.Problem(plans, noise_scale=1), sp.BetGapE(), sp.Gaussian(means), seed=3)
    other = sp.simulate(
        sp.Problem(plans, noise_scale=1024.0), sp.BetGapE(), sp.Gaussian(1024 * means, 1024.0), seed=3
    )
    assert one.counts.tolist() == other.counts.tolist()


def test_epsilon_ends_exact_ties_with_confidence():
    problem = sp.Problem(np.eye(3), noise_scale=1)
    outcome = sp.simulate(problem, sp.BetGapE(epsilon=0.2), sp.Gaussian([0.3, 0.3, 0.0]), seed=4)
    assert outcome.status is sp.Status.CONFIDENT
    assert outcome.plan in (0, 1)
    assert outcome.standing.risk <= 0.05


def test_epsilon_needs_fewer_measurements():
    problem, truth = sp.Problem(np.eye(2), noise_scale=1), sp.Gaussian([0.2, 0.0])
    exact, rough = (
        np.mean(
            [sp.simulate(problem, sp.BetGapE(epsilon=e), truth, seed=s).n_measurements for s in range(10)]
        )
        for e in (0.0, 0.2)
    )
    assert rough < 0.7 * exact


def test_a_tiny_delta_needs_no_special_arithmetic():
    outcome = sp.simulate(
        sp.Problem(np.eye(2), noise_scale=1), sp.BetGapE(delta=1e-200), sp.Gaussian([1.0, 0.0]), seed=0
    )
    assert outcome.plan == 0
    assert outcome.standing.risk <= 1e-200


def test_a_best_plan_ruled_out_by_bad_luck_does_not_keep_the_run_from_ending():
    problem, rng = sp.Problem(np.eye(3), noise_scale=1), np.random.default_rng(0)
    run = sp.BetGapE(delta=0.2).start(problem)
    unlucky, truth = sp.Gaussian([0.0, 1.0, 1.0]), sp.Gaussian([1.0, 0.0, 0.0])
    for n_round in range(400):
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        source = unlucky if n_round < 12 else truth
        run.absorb(decision.counts, source.measure(decision.counts, rng))
    assert isinstance(decision, Stop)


def test_the_decisions_on_a_fixed_seed_are_known():
    plans = np.array([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0], [1.0, 1.0, 0.0]])
    taken = decisions(sp.BetGapE(), sp.Problem(plans, noise_scale=1), sp.Gaussian([1.0, 0.9, 0.1]), 70)
    assert taken[:3] == [(1, 1, 1)] * 3
    assert taken[20:23] == [(3, 3, 1), (4, 4, 1), (4, 4, 1)]
    assert taken[40:43] == [(23, 23, 4), (25, 25, 4), (28, 28, 5)]
    assert taken[50:53] == [(14, 14, 7), (13, 13, 8), (9, 9, 8)]
    assert (len(taken), taken[-1]) == (62, ("stop", 0))


class Stepped:
    """An environment that the compiled driver does not know, so that every block is a step of its own."""

    def __init__(self, means, scale=1.0):
        self.means, self._truth = np.asarray(means), sp.Gaussian(means, scale)

    def measure(self, counts, rng):
        return self._truth.measure(counts, rng)


def many_plans():
    rng = np.random.default_rng(8)
    plans = (rng.random((700, 12)) < 0.4) * rng.integers(1, 4, (700, 12))
    return sp.Problem(plans.astype(float), noise_scale=1), rng.normal(size=12)


@pytest.mark.parametrize(
    ("problem", "means", "epsilon"),
    [
        (sp.Problem(np.eye(2), noise_scale=1), [0.2, 0.0], 0.0),
        (sp.Problem(np.eye(4), costs=[1.0, 9.0, 2.0, 30.0], noise_scale=1), [0.5, 0.2, 0.4, 0.0], 0.0),
        (sp.Problem(np.eye(5), noise_scale=[1.0, 2.0, 0.5, 1.0, 3.0]), [0.5, 0.5, 0.4, 0.0, 0.1], 0.4),
        (*many_plans(), 0.0),
        (*many_plans(), 2.0),
        (sp.Problem(sparse.csr_array(many_plans()[0].plans), noise_scale=1), many_plans()[1], 0.0),
    ],
)
def test_driven_and_step_by_step_take_the_same_decisions(problem, means, epsilon, monkeypatch):
    monkeypatch.setattr("surepick.simulation.simulate.CHUNK", 40)  # many hand-overs between blocks
    policy = sp.BetGapE(epsilon=epsilon)
    for seed, budget in ((0, 10**6), (1, 10**6), (2, 300)):
        driven = sp.simulate(problem, policy, sp.Gaussian(means), seed=seed, budget=budget)
        stepped = sp.simulate(problem, policy, Stepped(means, problem.noise_scale), seed=seed, budget=budget)
        assert driven.counts.tolist() == stepped.counts.tolist()
        assert driven.means.tolist() == stepped.means.tolist()
        assert (driven.plan, driven.n_rounds) == (stepped.plan, stepped.n_rounds)
        assert driven.standing == stepped.standing


def test_parts_of_a_block_are_drawn_as_they_are_asked_for():
    problem, policy, means = sp.Problem(np.eye(3), noise_scale=1), sp.BetGapE(max_batch=2), [0.5, 0.2, 0.0]
    driven, stepped = (sp.simulate(problem, policy, truth(means), seed=4) for truth in (sp.Gaussian, Stepped))
    assert driven.counts.tolist() == stepped.counts.tolist()


def test_a_driven_run_goes_on_step_by_step():
    problem, means, rng = (
        sp.Problem(np.eye(3), noise_scale=1),
        np.array([0.3, 0.1, 0.0]),
        np.random.default_rng(5),
    )
    driven, stepped = (sp.BetGapE().start(problem) for _ in range(2))
    draws = rng.standard_normal(60)
    for run in (driven, stepped):
        run.absorb(run.decide().counts, means)
        run.decide()
    used, n_blocks = driven.drive_blocks(means, np.ones(3), draws, 10**6)
    left = draws
    for _ in range(n_blocks):
        counts = stepped.decide().counts
        n = np.count_nonzero(counts)
        noise, left = left[:n], left[n:]
        stepped.absorb(counts, counts * means + np.sqrt(counts) * noise)
    assert len(draws) - len(left) == used > 0
    assert driven.decide().counts.tolist() == stepped.decide().counts.tolist()
    assert driven.log_evidence().tolist() == stepped.log_evidence().tolist()
    assert driven.evidence.sums.tolist() == stepped.evidence.sums.tolist()


@pytest.mark.parametrize(("n_arms", "is_bet_on"), [(2, True), (3, False)])
def test_the_only_rival_left_is_bet_on_against_the_lead(n_arms, is_bet_on):
    run = sp.BetGapE(delta=1e-6).start(sp.Problem(np.eye(n_arms), noise_scale=1))
    for values in ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.6, 0.0, 0.0]):
        counts = run.decide().counts
        assert run.standing().lead in (None, 0)
        before = run._books.plans["mixture"][0]
        run.absorb(counts, counts * values[:n_arms])
        after = run._books.plans["mixture"][0]
        if values[0] == 0.0:  # the lead was beaten in this block, so that bets against it win
            assert (after > before) == is_bet_on


def test_a_lead_forgotten_among_many_counts_as_new():
    rng = np.random.default_rng(0)
    problem = sp.Problem(np.eye(80), noise_scale=1)
    run = sp.BetGapE().start(problem)
    for lead in range(80):  # every plan leads once, more than are remembered
        counts = run.decide().counts
        run.absorb(counts, counts * (rng.normal(size=80) + 60.0 * (lead + 1) * (np.arange(80) == lead)))
    assert isinstance(run.decide(), Measure | Stop)


@pytest.mark.parametrize("n", [1, 5, 300])
def test_the_nth_largest(n):
    values = np.round(np.random.default_rng(n).normal(size=300), 1)  # with ties
    assert nth_largest.py_func(values.copy(), n) == np.sort(values)[-n]
