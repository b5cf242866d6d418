import dataclasses

import numpy as np
import pytest

import surepick as sp
from policy_contract import (
    CASES,
    StepByStep,
    Tape,
    decisions,
    depends_on_the_order_of_arms,
    depends_on_the_order_of_plans,
    is_compiled,
    needs_zeros_and_ones,
)
from surepick.policies import POLICIES
from surepick.policy import Policy, Stop
from surepick.simulation import round_rng

SEEDS = [0, 1, 2]
every_policy = pytest.mark.parametrize("policy", CASES, ids=str)


def instance(seed, policy, n_plans=6, n_arms=4):
    rng = np.random.default_rng([7, seed])
    if needs_zeros_and_ones(policy):
        subsets = np.array([list(np.binary_repr(k, n_arms)) for k in range(2**n_arms)], dtype=float)
        return rng.permutation(subsets)[:n_plans], rng.normal(size=n_arms)
    plans = rng.uniform(0, 4, (n_plans, n_arms)) * (rng.random((n_plans, n_arms)) < 0.8)  # no exact ties
    means = rng.normal(size=n_arms)
    return plans, means


def test_every_registered_policy_is_in_the_suite():
    assert {type(policy).name for policy in CASES} == set(POLICIES)


@every_policy
def test_is_a_frozen_value_with_name_version_and_guarantee(policy):
    assert isinstance(policy, Policy)
    assert POLICIES[policy.name] is type(policy)
    assert policy.version >= 1
    assert policy.guarantee
    assert policy == dataclasses.replace(policy)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.delta = 0.5


@every_policy
@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_refuses_a_delta_outside_zero_and_one(policy, delta):
    with pytest.raises(sp.SurepickError, match="delta"):
        dataclasses.replace(policy, delta=delta)


@every_policy
def test_gives_the_same_decision_until_something_is_absorbed(policy):
    plans, means = instance(0, policy)
    run = policy.start(sp.Problem(plans))
    for n_round in range(5):
        first, again = (run.decide(round_rng(3, n_round)) for _ in range(2))
        if isinstance(first, Stop):
            assert first == again
            return
        assert first.counts.tolist() == again.counts.tolist()
        run.absorb(first.counts, first.counts * means)


@every_policy
@pytest.mark.parametrize("seed", SEEDS)
def test_replay_of_the_same_measurements_gives_the_same_decisions(policy, seed):
    plans, means = instance(seed, policy)
    problem, keys = sp.Problem(plans), list(range(len(means)))
    first = decisions(policy, problem, Tape(means, keys), 60, seed)
    assert first == decisions(policy, problem, Tape(means, keys), 60, seed)


@every_policy
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_outcome_and_step_by_step_too(policy, seed):
    plans, means = instance(seed, policy)
    problem = sp.Problem(plans)
    for environment in (
        sp.Gaussian(means),
        sp.Bernoulli(1 / (1 + np.exp(-means))),
        sp.UniformNoise(means, 1.5),
        sp.Replay([np.random.default_rng(s).normal(m, 1.0, 20 + s) for s, m in enumerate(means)]),
    ):
        budget = (
            2_000 if policy.randomized else 20_000
        )  # a draw step by step costs a fraction of a millisecond
        fast, again, slow = (
            sp.simulate(problem, policy, e, seed=seed, budget=budget)
            for e in (environment, environment, StepByStep(environment))
        )
        for other in (again, slow):
            assert fast.status == other.status
            assert fast.plan == other.plan
            assert fast.counts.tolist() == other.counts.tolist()
            assert np.array_equal(fast.means, other.means, equal_nan=True)
        if not is_compiled(policy, problem):
            break


@every_policy
@pytest.mark.parametrize("seed", SEEDS)
def test_relabelling_arms_and_plans_relabels_the_decisions(policy, seed):
    plans, means = instance(seed, policy)
    rng = np.random.default_rng(seed)
    arm, plan = rng.permutation(plans.shape[1]), rng.permutation(plans.shape[0])
    if depends_on_the_order_of_arms(policy):
        arm = np.arange(plans.shape[1])
    if depends_on_the_order_of_plans(policy):
        plan = np.arange(plans.shape[0])
    keys = np.arange(len(means))
    straight = decisions(policy, sp.Problem(plans), Tape(means, list(keys)), 200)
    shuffled = decisions(policy, sp.Problem(plans[plan][:, arm]), Tape(means[arm], list(keys[arm])), 200)
    assert len(straight) == len(shuffled)
    for before, after in zip(straight, shuffled, strict=True):
        if before[0] == "stop":
            assert before[1] == plan[after[1]]
        else:
            assert [before[a] for a in arm] == list(after)


@every_policy
@pytest.mark.parametrize("seed", SEEDS)
def test_adding_one_vector_to_all_plans_changes_nothing(policy, seed):
    if needs_zeros_and_ones(policy):
        pytest.skip("the sum would not be zeros and ones")
    plans, means = instance(seed, policy)
    shift = np.array([5.0, -3.0, 0.0, 2.0])
    keys = list(range(len(means)))
    before = decisions(policy, sp.Problem(plans), Tape(means, keys), 100, seed)
    assert before == decisions(policy, sp.Problem(plans + shift), Tape(means, keys), 100, seed)


@every_policy
@pytest.mark.parametrize("seed", SEEDS)
def test_minimizing_is_maximizing_the_negative(policy, seed):
    if needs_zeros_and_ones(policy):
        pytest.skip("the negative would not be zeros and ones")
    plans, means = instance(seed, policy)
    keys = list(range(len(means)))
    largest = decisions(policy, sp.Problem(-plans), Tape(means, keys), 60, seed)
    assert largest == decisions(policy, sp.Problem(plans, minimize=True), Tape(means, keys), 60, seed)


@every_policy
@pytest.mark.parametrize("seed", SEEDS)
def test_without_noise_the_best_plan_wins(policy, seed):
    plans, means = instance(seed, policy)
    problem = sp.Problem(plans)
    outcome = sp.simulate(problem, policy, sp.Gaussian(means, scale=0.0), seed=seed, budget=10**9)
    assert outcome.status is sp.Status.CONFIDENT
    assert outcome.plan == problem.best(means)


@every_policy
def test_exact_ties_end_by_the_budget_and_say_so(policy):
    problem = sp.Problem([[1.0, 0.0], [0.0, 1.0]])
    outcome = sp.simulate(problem, policy, sp.Gaussian([0.3, 0.3], scale=0.0), budget=3000)
    assert outcome.status is sp.Status.BUDGET_SPENT
    assert outcome.plan is None
    assert outcome.n_measurements <= 3000


@every_policy
def test_measures_only_what_matters_unless_it_reproduces_the_paper(policy):
    problem = sp.Problem([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    outcome = sp.simulate(problem, policy, sp.Gaussian([1.0, 0.0, 0.0]), budget=10**9)
    assert outcome.counts[2] == (1 if getattr(policy, "radius", "") == "published" else 0)
    assert outcome.plan == 0


@every_policy
def test_an_unknown_noise_scale_is_a_clear_error(policy):
    with pytest.raises(sp.SurepickError, match="noise_scale=None"):
        policy.start(sp.Problem([[1.0, 0.0], [0.0, 1.0]], noise_scale=None))


@every_policy
def test_sparse_plans_decide_as_dense_ones(policy):
    from scipy import sparse

    plans, means = instance(0, policy)
    keys = list(range(len(means)))
    dense = decisions(policy, sp.Problem(plans), Tape(means, keys), 150)
    thin = decisions(policy, sp.Problem(sparse.csr_array(plans)), Tape(means, keys), 150)
    assert dense == thin
