"""Plans behind an oracle, measured as a whole: requests, certificates by enumeration, error rates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from common import asked, errs_more_often_than, measured, refuses
from probe_cases import published_tree
from surepick.core.run import Measure, Stop
from surepick.errors import ParameterError, ProblemError
from surepick.policies import GenTSExplore
from surepick.policies.oracles.oracle_best import OracleBest
from surepick.policies.oracles.plan_probes import PlanProbeRun
from surepick.simulation import Gaussian


def played_whole(plans, **settings):
    return asked(plans, measure="plan arms", **settings)


def some_plans(seed, n_arms=5):
    rng = np.random.default_rng(seed)
    every = np.array(np.meshgrid(*[[0.0, 1.0]] * n_arms)).reshape(n_arms, -1).T
    return rng.permutation(every)[: int(rng.integers(2, 14))]


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
@given(
    seed=st.integers(0, 10**6),
    n_batches=st.integers(2, 20),
    goal=st.sampled_from(["largest", "smallest"]),
    epsilon=st.sampled_from([0.0, 0.4]),
)
def test_batches_are_plans_that_read_every_arm_in_question(seed, n_batches, goal, epsilon):
    plans, rng = some_plans(seed), np.random.default_rng(seed)
    run = sp.BetGapE(delta=0.2, epsilon=epsilon).start(played_whole(plans, goal=goal))
    question, means, known = run._question, rng.normal(size=5), {plan.tobytes() for plan in plans}
    for _ in range(n_batches):
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        plays = decision.plays
        assert all(play.tobytes() in known for play in plays.plans)
        assert decision.counts.tolist() == (plays.uses @ plays.plans).tolist()
        assert decision.n_measurements == plays.uses.sum() > 0
        if question.has_leader:
            assert (decision.counts[question._account.branch.free] > 0).all()  # bets are about all of these
        measured(run, means, rng, 1)
    if not question.has_leader or not len(question._account.kinds):
        return
    inside = (-plans if goal == "smallest" else plans) + 0.0
    account, wealth = question._account, question._plan_wealth
    left = inside[account.branch.holds(inside)]
    others = left[(left != question.leader).any(axis=1)]
    components = np.array([wealth.components(account, plan) for plan in others])
    if (risk := run.standing().risk) is not None and len(others):
        common = wealth.common(account, question.wealth.log_cash)
        least = wealth.log_wealth(account, common, others, components).min()
        assert risk >= min(1.0, np.exp(-least)) * (1 - 1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_finds_the_best_plan_where_gaps_are_clear(seed):
    plans, rng = some_plans(seed), np.random.default_rng(seed)
    means = 3.0 * rng.permutation(2.0 ** np.arange(5)) * rng.choice([-1.0, 1.0], 5)  # every gap is at least 3
    outcome = sp.simulate(played_whole(plans), Gaussian(means), policy=sp.BetGapE(), seed=seed)
    assert outcome.plan == tuple(plans[np.argmax(plans @ means)])


class AfterTheBatch(PlanProbeRun):
    """A control: the leader and the bet sizes are chosen when the readings of the batch are known."""

    def _settle(self, batch, averages):
        for bet in self._bets:
            bet.leader = self._question._set.best(averages, self._question._account.branch)
            bet.sizes, bet.means = 3 * bet.sizes + 1, averages
        super()._settle(batch, averages)


@pytest.mark.parametrize("kind", [PlanProbeRun, AfterTheBatch])
def test_error_rates_keep_delta_and_the_control_is_caught(kind):
    """On an all but tied problem, by 150 plays."""
    plans = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    problem, means = played_whole(plans), np.array([0.01, 0.0, 0.0, 0.0])

    def is_wrong(seed):
        run = kind(problem, sp.BetGapE(delta=0.2), OracleBest(problem, 0.2))
        rng, n_plays = np.random.default_rng([7, seed]), 0
        while n_plays < 150 and isinstance(decision := measured(run, means, rng, 1), Measure):
            n_plays += decision.n_measurements
        return decision in (Stop((0.0, 0.0, 1.0, 1.0)), Stop((0.0, 1.0, 0.0, 1.0)))

    assert errs_more_often_than(0.2, is_wrong, 30) == (kind is AfterTheBatch)


@pytest.mark.parametrize("probes", ["plans", {"a": ["arm 0"]}, ["arms", "plan arms"]])
def test_nothing_else_can_be_measured_behind_an_oracle(probes):
    with refuses("measure", ProblemError):
        asked(np.eye(3), measure=probes)


def test_prices_of_arms_and_plans_that_use_an_arm_twice_are_refused():
    with refuses("cost", ProblemError):
        played_whole(np.eye(3), cost=[1.0, 2.0, 3.0])
    with refuses("measure", ProblemError):
        sp.BetGapE().start(played_whole(2 * np.eye(3)))


@pytest.mark.parametrize("policy", [GenTSExplore(), sp.CombGapE()])
def test_policies_that_measure_single_arms_are_refused(policy):
    with refuses("policy", (ProblemError, ParameterError)):
        sp.simulate(played_whole(np.eye(3)), Gaussian([1.0, 0.0, 0.0]), policy=policy)


def test_a_final_batch_of_plans_can_decide():
    problem, means = published_tree("E20")
    run, rng, n = sp.BetGapE(delta=0.1).start(problem), np.random.default_rng(1), 0
    while isinstance(decision := measured(run, 3 * means, rng, 1), Measure):
        n += decision.n_measurements
        if n > 60 and run._final is None:
            run.call_final_batch(400, gaussian=True)
            called = n
    assert decision.plan == tuple(problem.best_plan(3 * means))
    assert n - called <= 400
