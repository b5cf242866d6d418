"""Phases of RAGE and Peace: their sizes, and what they drop."""

import math

import numpy as np

from common import largest
from surepick.design.allocation import pair_allocation, width_allocation
from surepick.design.counts import round_allocation
from surepick.policies import RAGE, Peace
from surepick.policy import Stop
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
