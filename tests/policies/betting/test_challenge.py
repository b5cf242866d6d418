"""Challenge keeps the incumbent or names a better plan; both are wrong as rarely as promised."""

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, measured, refuses
from policy_contract import OF_INCUMBENTS, OwnContract
from session_tools import answer
from surepick.core.run import Stop
from surepick.errors import ParameterError
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.challenge import Challenge, KeepOrReplace
from surepick.simulation import Gaussian, State

DELTA = 0.2


class TestContract(OwnContract):
    """The laws that do not ask for the best plan, and do not rename the incumbent."""

    policies = OF_INCUMBENTS

    def test_relabelling_arms_and_plans_relabels_the_decisions(self, policy, seed):
        pytest.skip("the incumbent is known by its place")

    def test_without_noise_the_best_plan_wins(self, policy, seed):
        plans, means = self.instance(seed, policy)
        outcome = sp.simulate(largest(plans), Gaussian(means, scale=0.0), policy=policy, budget=10**9)
        values = plans @ means
        if outcome.plan == 0:
            assert values.max() - values[0] <= policy.epsilon
        else:
            assert values[outcome.plan] > values[0]

    def test_exact_ties_end_by_the_budget_and_say_so(self, policy):
        problem = largest(np.eye(2))
        outcome = sp.simulate(problem, Gaussian([0.3, 0.3], scale=0.0), policy=policy, budget=3000)
        if policy.epsilon == 0:
            assert (outcome.plan, outcome.state) == (None, State.BUDGET_SPENT)
        else:
            assert outcome.plan in (0, None)


class OwnCash(KeepOrReplace):
    """A control: every challenger has a cash of its own, a union over plans that nothing pays for."""

    def follow(self, decision, estimates):
        self.second.log_cash = 0.0
        super().follow(decision, estimates)
        self.second.log_cash = 0.0


@pytest.mark.parametrize(
    ("kind", "means", "epsilon", "delta", "n_rounds", "runs"),
    [
        (KeepOrReplace, [0.0, 0.21], 0.2, DELTA, 60, 40),  # the incumbent is too bad to be kept
        (KeepOrReplace, [0.0] * 50, 0.0, 0.8, 40, 60),  # ties: no plan is better; 60 runs show such a delta
        (OwnCash, [0.0] * 50, 0.0, 0.8, 40, 60),
    ],
)
def test_either_answer_is_rarely_wrong_and_a_cash_for_each_challenger_is_caught(
    kind, means, epsilon, delta, n_rounds, runs
):
    """Each of the two answers has half of delta."""
    problem, keeping_is_right = largest(np.eye(len(means))), max(means) <= epsilon

    def is_wrong(seed):
        run = BatchRun(problem, Challenge(0), kind(problem, delta, epsilon, 0))
        decision = measured(run, means, np.random.default_rng(seed), n_rounds)
        return isinstance(decision, Stop) and (decision.plan == 0) != keeping_is_right

    assert errs_more_often_than(delta / 2, is_wrong, runs) == (kind is OwnCash)


def test_it_replaces_a_bad_plan_much_sooner_than_the_best_is_found():
    means = np.array([0.0, 2.0, 1.95, 1.9])
    problem, truth = largest(np.eye(4)), Gaussian(means)
    challenge = sp.simulate(problem, truth, policy=sp.policies.Challenge(0), seed=3)
    best = sp.simulate(problem, truth, policy=sp.BetGapE(), seed=3)
    assert challenge.plan in (1, 2, 3)
    assert challenge.n_measured < best.n_measured / 20


def test_a_good_plan_is_kept_and_a_tie_ends_with_epsilon():
    problem = largest(np.eye(3))
    assert sp.simulate(problem, Gaussian([0.0, 0.5, 1.5]), policy=sp.policies.Challenge(2), seed=1).plan == 2
    tie = sp.simulate(
        problem, Gaussian([1.0, 1.0, 1.0]), policy=sp.policies.Challenge(2, epsilon=0.4), seed=1
    )
    assert tie.plan == 2
    assert tie.risk is not None
    assert tie.risk <= 0.05


def test_the_incumbent_is_found_by_its_name_or_refused():
    problem = largest(np.eye(2), plan_names=["north", "south"])
    assert sp.policies.Challenge("south").place(problem) == 1
    for unknown in ("sout", 7):
        with refuses("incumbent", ParameterError):
            sp.policies.Challenge(unknown).start(problem)


def test_a_final_batch_can_prove_either_answer():
    problem = largest(np.eye(2))
    for means, right in (([0.0, 1.0], 1), ([1.0, 0.0], 0)):
        how = {"seed": 4, "budget": 40, "final_batch": 0.6, "gaussian": True}
        outcome = sp.simulate(problem, Gaussian(means), policy=Challenge(0), **how)
        assert (outcome.plan, outcome.n_measured <= 40) == (right, True)


def teams(noise=1.0):
    return sp.problems.top_k(list("abcde"), 2, goal="largest", list_plans=False, noise=noise)


def mixtures(noise=1.0):
    return sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1.0], arms=list("abc"), noise=noise, goal="largest")


UNLISTED = [(teams, "a + b", "a + c"), (mixtures, "a", "0.5 a + 0.5 b")]


@pytest.mark.parametrize(("kind", "best", "other"), UNLISTED)
def test_where_plans_are_not_listed_the_best_plan_keeps_or_replaces(kind, best, other):
    problem = kind()
    means = np.linspace(2.0, -2.0, problem.n_arms)
    for incumbent in (best, other):
        policy = Challenge(incumbent)
        outcome = sp.simulate(problem, Gaussian(means), policy=policy, seed=0)
        assert outcome.plan == tuple(Challenge(best).vector(problem))
        assert policy.is_incumbent(problem, outcome.plan) == (incumbent == best)
    for wrong in ("z", "a + b + c", "a +"):
        with refuses("incumbent", ParameterError):
            Challenge(wrong).start(problem)
    with refuses("epsilon", ParameterError):
        Challenge(best, epsilon=0.1).start(problem)


@pytest.mark.parametrize("noise", [1.0, 0.2])  # the second is understated: the negative control
@pytest.mark.parametrize(("kind", "incumbent", "other"), UNLISTED)
def test_an_incumbent_that_ties_with_others_is_seldom_replaced(kind, incumbent, other, noise):
    """It is best, and so are all: each replacement is wrong."""
    problem, policy = kind(noise), Challenge(incumbent, delta=DELTA)
    truth = Gaussian(np.zeros(problem.n_arms), 1.0)

    def is_wrong(seed):
        plan = sp.simulate(problem, truth, seed=seed, policy=policy, budget=300, allow_noisier=True).plan
        return plan is not None and not policy.is_incumbent(problem, plan)

    assert errs_more_often_than(DELTA, is_wrong, 40) == (noise < 1)


def test_a_session_keeps_an_incumbent_of_plans_that_are_not_listed():
    session = sp.Session.create("memory://", problem=teams(), name="mine", incumbent="a + b")
    answer(session, lambda request: {"a": 3.0, "b": 2.0}.get(request.arm, 0.0))
    assert session.view().proved.claim == "incumbent_stays"
    assert session.verify(session.certificate().to_json()).holds
