"""CSA, CSAR, Minimax-CombSAR and OCBA against their papers' boxes, computed from scratch."""

import itertools
import math

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from surepick.errors import ParameterError
from surepick.peers.budget import allocation
from surepick.policies import CSA, MinimaxCombSAR, SuccessiveRejects
from surepick.policy import Stop
from surepick.simulation import Gaussian
from surepick.testing import Tape

PLANS = np.array([[3.0, 0, 1, 2], [0, 2, 2, 1], [1, 1, 3, 0], [2, 2, 0, 1], [0, 0, 4, 3], [3, 1, 0, 0]])
MEANS = np.array([0.4, 0.5, 0.1, 0.2])


def csa(plans, budget, measure):
    """The box of the paper in plain Python: the answer and the counts."""
    d = plans.shape[1]
    counts, sums, fixed, alive = np.zeros(d, int), np.zeros(d), {}, list(range(len(plans)))
    harmonic = sum(1 / i for i in range(1, d + 1))
    for t in range(1, d + 1):
        if len(alive) == 1:
            break
        more = np.zeros(d, int)
        upto = math.ceil((budget - d) / (harmonic * (d - t + 1)))
        for s in range(d):
            more[s] = 0 if s in fixed else upto - counts[s]
        counts, sums = counts + more, sums + measure(more)
        value = {k: plans[k] @ (sums / counts) for k in alive}
        lead = max(alive, key=value.get)
        lost = {}
        for s in set(range(d)) - set(fixed):
            others = [value[k] for k in alive if plans[k, s] != plans[lead, s]]
            lost[s] = value[lead] - max(others, default=-math.inf)
        arm = min(lost, key=lambda s: (-lost[s], s))
        fixed[arm] = plans[lead, arm]
        alive = [k for k in alive if plans[k, arm] == plans[lead, arm]]
    return max(alive, key=value.get), counts


@pytest.mark.parametrize(("seed", "budget"), [(0, 8), (1, 37), (2, 300), (3, 5000)])
def test_csa_follows_its_box(budget, seed):
    tape = Tape(MEANS, keys=range(10 * seed, 10 * seed + 4))
    answer, counts = csa(PLANS, budget, lambda more: tape.measure(more, None))
    fresh = Tape(MEANS, keys=range(10 * seed, 10 * seed + 4))
    outcome = sp.simulate(largest(PLANS), fresh, policy=CSA(), budget=budget)
    assert (outcome.leader, outcome.counts.tolist()) == (answer, counts.tolist())
    assert outcome.n_measured <= budget


def test_rounding_of_amounts_changes_nothing():
    dust = 1e-14 * np.random.default_rng(1).uniform(-1, 1, PLANS.shape)
    found = [
        sp.simulate(largest(plans), Gaussian(MEANS), policy=CSA(), seed=2, budget=300)
        for plans in (PLANS, PLANS + dust)
    ]
    assert found[0].leader == found[1].leader
    assert found[0].counts.tolist() == found[1].counts.tolist()


def test_minimax_comb_sar_spends_a_phase_on_the_pair_that_stays_least_known():
    budget, run = 400, MinimaxCombSAR(budget=400).start(largest(PLANS))
    first = run.decide().counts
    assert first.tolist() == [20] * 4  # floor(.2 * 400 / 4)
    run.absorb(first, first * MEANS)
    m = (budget - 80 - 4 * 2) / 3  # B = 2^2 - 1
    found = {}
    for i, j in itertools.combinations(range(6), 2):
        y = np.abs(PLANS[i] - PLANS[j])
        found[i, j] = (y**2 / (20 + y / y.sum() * m)).sum()
    i, j = max(found, key=found.get)
    y = np.abs(PLANS[i] - PLANS[j])
    assert run.decide().counts.tolist() == np.ceil(y / y.sum() * m).tolist()
    run.absorb(run.decide().counts, run.decide().counts * MEANS)
    values = PLANS @ MEANS
    assert sorted(np.flatnonzero(run._alive)) == sorted(np.argsort(-values)[:2])


@pytest.mark.parametrize("policy", [CSA(), MinimaxCombSAR(), MinimaxCombSAR(beta=0.6)], ids=str)
def test_no_budget_is_exceeded_and_all_but_a_rest_is_spent(policy):
    rng = np.random.default_rng(4)
    for budget in (4, 5, 11, 60, 999, 10_000):
        means = rng.normal(size=4)
        outcome = sp.simulate(largest(PLANS), Gaussian(means), policy=policy, seed=budget, budget=budget)
        assert outcome.n_measured <= budget
        assert outcome.leader is not None
        assert outcome.guarantee.startswith("none")
        assert outcome.plan is None


@pytest.mark.parametrize("policy", [CSA, MinimaxCombSAR])
def test_a_budget_is_needed_and_must_do_for_every_arm(policy):
    for act in (
        lambda: policy().start(largest(PLANS)).decide(),
        lambda: sp.simulate(largest(PLANS), Gaussian(MEANS), policy=policy(), budget=3),
    ):
        with refuses("budget", ParameterError):
            act()


def test_ocba_has_the_ratios_of_its_paper():
    means, scale = np.array([1.0, 3.0, 2.5, 0.0]), np.array([1.0, 2.0, 0.5, 1.5])
    share = allocation(means, scale)
    for i, j in itertools.permutations([0, 2, 3], 2):
        expected = (scale[i] * (3 - means[j]) / (scale[j] * (3 - means[i]))) ** 2
        assert share[i] / share[j] == pytest.approx(expected)
    others = np.array([0, 2, 3])
    assert share[1] == pytest.approx(2.0 * math.sqrt(((share[others] / scale[others]) ** 2).sum()))


def test_successive_rejects_measures_and_dismisses_as_the_paper_says():
    """n_k = ceil((100 - 4) / (l (5 - k))), l = 1/2 + 1/2 + 1/3 + 1/4: 16, 21 and 31."""
    run, means = SuccessiveRejects(budget=100).start(largest(np.eye(4))), np.array([0.3, 0.9, 0.1, 0.8])
    wanted = [[16, 16, 16, 16], [5, 5, 0, 5], [0, 10, 0, 10]]
    for counts in wanted:
        assert run.decide().counts.tolist() == counts
        run.absorb(np.array(counts), counts * means)
    assert run.decide() == Stop(None)
    assert run.standing().leader == 1
    assert np.sum(wanted) == 99
