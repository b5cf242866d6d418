"""Plans behind an oracle, measured as a whole: requests, certificates by enumeration, error rates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import surepick as sp
from common import largest, refuses
from probe_cases import published_tree
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError, ProblemError
from surepick.policies import GenTSExplore
from surepick.policies.oracles.oracle_best import OracleBest
from surepick.policies.oracles.plan_probes import PlanProbeRun
from surepick.simulation import Gaussian


def oracle(plans, *, goal="largest", **settings):
    """These plans behind an oracle, to be played."""
    sign = -1.0 if goal == "smallest" else 1.0
    return sp.OracleProblem(
        lambda weights: plans[np.argmax(sign * (plans @ weights))],
        plans.shape[1],
        goal=goal,
        measure="plan arms",
        **{"noise": 1, **settings},
    )


def some_plans(seed, n_arms=5):
    rng = np.random.default_rng(seed)
    every = np.array(np.meshgrid(*[[0.0, 1.0]] * n_arms)).reshape(n_arms, -1).T
    return rng.permutation(every)[: int(rng.integers(2, 14))]


def played(problem, seed, n_blocks, *, epsilon=0.0):
    """A run after some blocks of noise, and its decisions."""
    run, rng = sp.BetGapE(delta=0.2, epsilon=epsilon).start(problem), np.random.default_rng(seed)
    means, asked = rng.normal(size=problem.n_arms), []
    for _ in range(n_blocks):
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        asked.append((decision, run._question._account.branch if run._question.has_leader else None))
        sums = decision.counts * means + np.sqrt(decision.counts) * rng.normal(size=problem.n_arms)
        run.absorb(decision.counts, sums)
    return run, asked


@pytest.mark.parametrize("name", ["E20", "E25"])
def test_finds_the_published_trees_without_a_list(name):
    problem, means = published_tree(name)
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(delta=0.1), seed=3)
    assert outcome.plan == tuple(problem.best_plan(means))
    assert outcome.n_measured < 10_000
    assert outcome.cost == outcome.n_measured
    nodes = {"E20": 8, "E25": 10}[name]
    assert outcome.counts.sum() == outcome.n_measured * (nodes - 1)  # every play is a tree
    assert "readings of one use are independent" in outcome.guarantee


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n_blocks=st.integers(2, 20), minimize=st.booleans(), within=st.booleans())
def test_blocks_are_plays_that_read_every_arm_in_question(seed, n_blocks, minimize, within):
    plans = some_plans(seed)
    problem = oracle(plans, goal="smallest" if minimize else "largest")
    run, asked = played(problem, seed, n_blocks, epsilon=0.4 if within else 0.0)
    known = {plan.tobytes() for plan in plans}
    for decision, branch in asked:
        plays = decision.plays
        assert all(play.tobytes() in known for play in plays.plans)
        assert decision.counts.tolist() == (plays.uses @ plays.plans).tolist()
        assert decision.n_measurements == plays.uses.sum() > 0
        if branch is not None:
            assert (decision.counts[branch.free] > 0).all()  # bets are about all of these
    inside = (-plans if minimize else plans) + 0.0
    if not run._question.has_leader or not len((question := run._question)._account.kinds):
        return
    account, ledger = question._account, question._plan_wealth
    left = inside[account.branch.holds(inside)]
    components = np.array([ledger.components(account, plan) for plan in left])
    wealth = ledger.log_wealth(account, ledger.common(account, question.wealth.log_cash), left, components)
    if (risk := run.standing().risk) is not None and len(left) > 1:
        others = (left != question.leader).any(axis=1)
        assert risk >= min(1.0, np.exp(-wealth[others].min())) * (1 - 1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_agrees_with_the_list_where_gaps_are_clear(seed):
    plans = some_plans(seed)
    rng = np.random.default_rng(seed)
    means = 3.0 * rng.permutation(2.0 ** np.arange(5)) * rng.choice([-1.0, 1.0], 5)  # every gap is at least 3
    outcome = sp.simulate(oracle(plans), Gaussian(means), policy=sp.BetGapE(), seed=seed)
    assert outcome.plan == tuple(plans[np.argmax(plans @ means)])
    keep = plans.any(axis=1)
    if keep.all():
        listed = largest(plans, measure="plan arms")
        other = sp.simulate(listed, Gaussian(means), policy=sp.BetGapE(), seed=seed)
        assert outcome.plan == tuple(listed.plans[other.plan])


class AfterTheBatch(PlanProbeRun):
    """A control: the leader and the bet sizes are chosen when the readings of the batch are known."""

    def _settle(self, batch, averages):
        for bet in self._bets:
            bet.leader = self._question._set.best(averages, self._question._account.branch)
            bet.sizes, bet.means = 3 * bet.sizes + 1, averages
        super()._settle(batch, averages)


def errors(run_of, n):
    """How many of n runs on an all but tied problem end wrong, by 150 plays."""
    plans = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    problem, means, wrong = oracle(plans), np.array([0.01, 0.0, 0.0, 0.0]), 0
    for seed in range(n):
        run, rng, n_plays = run_of(problem), np.random.default_rng([7, seed]), 0
        while n_plays < 150:
            decision = run.decide()
            if isinstance(decision, Stop):
                wrong += decision.plan not in ((1.0, 1.0, 0.0, 0.0), (1.0, 0.0, 1.0, 0.0))
                break
            n_plays += decision.n_measurements
            noise = np.sqrt(decision.counts) * rng.normal(size=4)
            run.absorb(decision.counts, decision.counts * means + noise)
    return wrong


def test_error_rates_keep_delta_and_the_control_is_caught():
    n, delta = 30, 0.2
    policy = sp.BetGapE(delta=delta)
    honest = errors(policy.start, n)
    assert binom.sf(honest - 1, n, delta) > 0.001
    cheated = errors(lambda problem: AfterTheBatch(problem, policy, OracleBest(problem, delta)), n)
    assert binom.sf(cheated - 1, n, delta) < 0.001


class TestRefusals:
    def test_what_else_could_be_measured(self):
        for probes in ("plans", {"a": ["arm 0"]}, ["arms", "plan arms"]):
            with refuses("measure", ProblemError):
                sp.OracleProblem(lambda w: np.eye(3)[np.argmax(w)], 3, measure=probes, goal="largest")

    def test_prices_of_arms(self):
        with refuses("cost", ProblemError):
            oracle(np.eye(3), cost=[1.0, 2.0, 3.0])

    def test_plans_that_use_an_arm_twice(self):
        packings = sp.problems.knapsack([3, 5], None, 20, list_plans=False, measure="plan arms", noise=1)
        with refuses("measure", ProblemError):
            sp.BetGapE().start(packings)

    @pytest.mark.parametrize("policy", [GenTSExplore(), sp.CombGapE()])
    def test_policies_that_measure_single_arms(self, policy):
        with refuses("policy", (ProblemError, ParameterError)):
            sp.simulate(oracle(np.eye(3)), Gaussian([1.0, 0.0, 0.0]), policy=policy)


def test_a_final_batch_of_plans_can_decide():
    problem, means = published_tree("E20")
    run, rng, n = sp.BetGapE(delta=0.1).start(problem), np.random.default_rng(1), 0
    run_means = 3 * means
    while isinstance(decision := run.decide(), Measure):
        n += decision.n_measurements
        noise = np.sqrt(decision.counts) * rng.normal(size=problem.n_arms)
        run.absorb(decision.counts, decision.counts * run_means + noise)
        if n > 60 and run._final is None:
            run.call_last(400, gaussian=True)
            called = n
    assert decision.plan == tuple(problem.best_plan(run_means))
    assert n - called <= 400
