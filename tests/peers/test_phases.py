"""Phases of RAGE, Peace, XYAdaptive and PolyALBA: their sizes, and what they drop."""

import math

import numpy as np
import pytest

import probe_cases
import surepick as sp
from common import largest
from surepick.design.allocation import pair_allocation, width_allocation
from surepick.design.counts import round_allocation
from surepick.peers.linear_phases import PolyALBARun, g_optimal, greedy
from surepick.policies import RAGE, Peace, PolyALBA, XYAdaptive
from surepick.policy import Stop
from surepick.simulation import Gaussian
from surepick.simulation.seeds import round_rng

PLANS = np.array([[3.0, 0, 1], [0, 2, 2], [1, 1, 3], [2, 2, 0]])
MEANS = np.array([1.0, 0.5, 0.3])


def steps(policy, plans, means, n_phases):
    """The counts of the first phases without noise, and the plans left after each."""
    run, counts = policy.start(largest(plans)), []
    for n_phase in range(n_phases):
        decision = run.decide(round_rng(0, n_phase))
        if isinstance(decision, Stop):
            break
        counts.append(decision.counts)
        run.absorb(decision.counts, decision.counts * means)
    return counts


def paper_from_scratch(plans, means, delta, n_phases):
    active, counts, k, d = plans[np.lexsort(plans.T[::-1])], [], len(plans), plans.shape[1]
    for t in range(1, n_phases + 1):
        if len(active) == 1:
            break
        design = pair_allocation(active)
        y = active[:, None] - active
        rho = (y**2 / np.where(design.weights > 0, design.weights, np.inf)).sum(axis=2).max()
        n = math.ceil(8 * 4.0 ** (t + 1) * 1.2 * rho * math.log(k**2 * t**2 / delta))
        counts.append(round_allocation(design.weights, max(n, math.ceil((d * (d + 1) / 2 + 1) * 5))))
        values = active @ means
        active = active[values.max() - values < 2.0 ** -(t + 2)]
    return counts


def test_phases_of_rage_have_the_papers_sizes_and_stop_with_one_plan():
    found = steps(RAGE(delta=0.1), PLANS, MEANS / 8, 8)
    wanted = paper_from_scratch(PLANS, MEANS / 8, 0.1, 8)
    assert len(found) == len(wanted) > 2
    for a, b in zip(found, wanted, strict=True):
        assert abs(a.sum() - b.sum()) <= 1  # the same optimum, to rounding
        assert np.abs(a - b).max() <= 1e-6 * b.sum() + 1


def test_the_authors_phases_are_smaller_and_drop_the_plans_that_some_other_beats_by_its_radius():
    policy, rng = RAGE(delta=0.1, variant="authors"), np.random.default_rng(0)
    run = policy.start(largest(PLANS))
    counts = run.decide(round_rng(0, 0)).counts
    assert counts.sum() == max(math.ceil(8 * 1.1 * pair_allocation(PLANS).value * math.log(2 * 16 / 0.1)), 60)
    means = MEANS + rng.normal(size=3) / np.sqrt(counts)
    plans = run._scaled_plans
    y = plans[:, None] - plans
    radius = np.sqrt(2 * (y**2 / counts).sum(axis=2) * math.log(2 * 16 / 0.1))
    left = plans[~((y @ means >= radius) & (y @ means > 0)).any(axis=0)]
    run.absorb(counts, counts * means)
    assert run._scaled_plans.tolist() == left.tolist()


def test_phases_of_peace_have_the_papers_sizes_and_thresholds():
    policy = Peace(delta=0.1, max_gap=2.0)
    run = policy.start(largest(PLANS))
    for k in range(1, 5):
        plans = run._scaled_plans
        decision = run.decide(round_rng(0, k))
        if isinstance(decision, Stop):
            assert k > 1
            return
        tau = width_allocation(plans, log_term=math.log(2 * k**2 / 0.1), rng=round_rng(0, k)).value
        assert decision.counts.sum() == max(math.ceil(2.2 * tau * (2 ** (k + 1) / 2.0) ** 2), 300)
        run.absorb(decision.counts, decision.counts * MEANS)
        values = plans @ MEANS
        assert run._scaled_plans.tolist() == plans[values.max() - values < 2.0 / 2 ** (k + 1)].tolist()


def test_without_max_gap_every_arm_is_measured_once_first_and_sets_it():
    run = Peace(delta=0.1).start(largest(PLANS))
    assert run.decide(round_rng(0, 0)).counts.tolist() == [1, 1, 1]
    run.absorb(np.ones(3, dtype=np.int64), MEANS)
    values = PLANS @ MEANS
    assert run._max_gap > values.max() - values.min()


PROBES = np.array([[1.0, 0, 0], [0, 1, 0], [0.5, 0.5, 1], [0, 0, 2], [1, -1, 0.3]])
VECTORS = np.array([[1.0, 0, 0], [0.9, 0.4, 0], [0, 1, 1], [0.2, 0.1, 1.2]])


def test_a_greedy_phase_takes_the_use_that_helps_the_worst_difference_most():
    pairs = np.array([VECTORS[i] - VECTORS[j] for j in range(4) for i in range(j)])
    matrix, expected = np.eye(3), np.zeros(5, dtype=np.int64)

    def worst(x):
        inverse = np.linalg.inv(matrix + np.outer(x, x))
        return max(y @ inverse @ y for y in pairs)

    counts, reached = greedy((pairs**2).sum(axis=1), PROBES @ pairs.T, PROBES @ PROBES.T, 2e-3)
    for t in range(1, 1000):
        scores = [worst(x) for x in PROBES]
        best = int(np.argmin(scores))
        expected[best] += 1
        matrix += np.outer(PROBES[best], PROBES[best])
        if min(scores) / t < 2e-3:
            break
    assert counts.tolist() == expected.tolist()
    assert reached == pytest.approx(min(scores) / t)


def test_xy_adaptive_drops_by_its_radius():
    problem, means = probe_cases.soare(3, 0.5)
    run = XYAdaptive(delta=0.1).start(problem)
    assert run._log_term == pytest.approx(math.log(2 * math.pi**2 * 16 / (6 * 0.1)))
    counts = run.decide(np.random.default_rng()).counts
    many = 400 * counts
    run.absorb(many, many * (problem.probes.rows @ means))
    assert run.standing().remaining == (0,)
    assert run._log_term == pytest.approx(math.log(2 * math.pi**2 * 16 * 4 / (6 * 0.1)))


def test_a_phase_drops_nothing_that_it_did_not_read():
    problem, means = probe_cases.soare(3, 0.5)
    run = RAGE(variant="authors").start(problem)
    counts = np.array([10**6, 0, 0, 0])  # the first vector alone: no difference is read
    run.absorb(counts, counts * (problem.probes.rows @ means))
    assert run.standing().remaining == (0, 1, 2, 3)


PAIRS = np.array([[1.0, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]])


def test_the_design_is_g_optimal():
    """By Kiefer and Wolfowitz the largest x'M^-1 x of the best design is the rank."""
    rows = np.random.default_rng(3).normal(size=(40, 5))
    shares = g_optimal(rows)
    values = np.einsum("kd,de,ke->k", rows, np.linalg.inv(rows.T @ (shares[:, None] * rows)), rows)
    assert shares.sum() == pytest.approx(1.0)
    assert 5.0 <= values.max() <= 5.0 * 1.03


def test_a_phase_is_as_long_as_its_resolution_asks():
    """N = 8 g log(2K/delta_q) / e^2, e = 1/2, delta_1 = 6 delta/pi^2; no plan is known worse than that."""
    run = PolyALBA(delta=0.1).start(largest(PAIRS, measure="plans"))
    counts = run.decide(np.random.default_rng(0)).counts
    least = 8 * 4 * math.log(2 * 6 * math.pi**2 / 6 / 0.1) / 0.25
    assert least <= counts.sum() <= 1.03 * least + len(PAIRS)
    inverse = np.linalg.inv(PAIRS.T @ (counts[:, None] * PAIRS))
    worst = np.einsum("kd,de,ke->k", PAIRS, inverse, PAIRS).max()
    assert 2 * math.exp(-(0.25**2) / (2 * worst)) <= 0.1 * 6 / math.pi**2 / 6 * (1 + 1e-9)


def test_no_plan_is_dropped_in_the_first_stage_until_few_are_left():
    run = PolyALBA(delta=0.1).start(largest(PAIRS, measure="plans"))
    counts = run.decide(np.random.default_rng(0)).counts
    run.absorb(counts, counts * (PAIRS @ np.array([0.2, 0.1, 0.05, 0.0])))
    assert run.standing().remaining == tuple(range(6))  # all within 1/2 of the best
    run = PolyALBA(delta=0.1).start(largest(PAIRS, measure="plans"))
    run.absorb(counts, counts * (PAIRS @ np.array([3.0, 2.9, 0.05, 0.0])))
    assert run.standing().remaining == (0,)


def wrong_answers(n_runs, **broken):
    problem, means, wrong = (largest(PAIRS, measure="plans"), np.array([0.9, 0.5, 0.44, -0.6]), 0)
    for seed in range(n_runs):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in broken.items():
                patch.setattr(PolyALBARun, name, value)
            outcome = sp.simulate(
                problem, Gaussian(means), policy=PolyALBA(delta=0.2), seed=seed, budget=10**12
            )
        wrong += outcome.plan != 0
    return wrong


def test_the_best_plan_is_found_and_a_broken_logarithm_is_seen():
    assert wrong_answers(60) <= 12 + 3 * math.sqrt(60 * 0.2 * 0.8)
    assert wrong_answers(60, _log_term=property(lambda run: 0.02)) > 12 + 3 * math.sqrt(60 * 0.2 * 0.8)
