"""Limited: the best plan that keeps a measured limit, or none; controls that must be caught."""

from functools import partial

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, refuses, terms_now
from forged_logs import lines_of, sealed
from hard_families import Lucky
from session_tools import answer, gaussian
from surepick.cli.output import NOTHING_TO_TAKE
from surepick.cli.run import exit_code
from surepick.core.run import Decision, Stop
from surepick.errors import ParameterError
from surepick.policies import Limited
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.limited import KEEP, LOG_MIXTURE_WEIGHTS, BestWithinLimit
from surepick.sessions.verify import verify_events
from surepick.simulation import Gaussian, UniformNoise
from surepick.simulation.outcome import end_of

DELTA, EPSILON, LIMIT, TOLERANCE = 0.2, 2.0, 1.0, 0.5
N_BREAKING = 40
# the best plan that keeps the limit just does; one is just more than epsilon worse; many are better and break
# the limit by just more than the tolerance
VALUES = np.array([0.0, -EPSILON - 1e-9] + [3.0] * N_BREAKING)
LOADS = np.array([LIMIT, 0.0] + [LIMIT + TOLERANCE + 1e-9] * N_BREAKING)


def asked(values, *, delta=DELTA, epsilon=EPSILON, limit=LIMIT, tolerance=TOLERANCE, **given):
    """Return the problem and the policy: each plan has an arm for its value and one for its load."""
    n = len(values)
    loads = np.hstack([np.zeros((n, n)), np.eye(n)])
    policy = Limited(delta, epsilon, limit, tolerance, tuple(map(tuple, loads.tolist())))
    problem = sp.Problem(np.hstack([np.eye(n), np.zeros((n, n))]), goal="largest", **(given or {"noise": 1}))
    return problem, policy


class Undivided(BestWithinLimit):
    """A control: every plan has a cash of its own to show that it keeps the limit."""

    def __init__(self, problem, policy):
        super().__init__(problem, policy)
        self.account(KEEP).components[:] = LOG_MIXTURE_WEIGHTS


def false_claims(seed, question=BestWithinLimit, factor=None):
    """Return whether a false claim is ever proved in a run: kept, not better, broken; and any of them."""
    means, rng = np.append(VALUES, LOADS), np.random.default_rng([71, seed])
    problem, policy = asked(VALUES)
    limit = question(problem, policy)
    run, n = BatchRun(problem, policy, limit), np.full(len(means), 2)
    run._factor = factor or run._factor
    for _ in range(30):  # whatever is decided: claims hold at any time
        terms = terms_now(run, limit.unresolved())
        run.follow(Decision(limit.leader, np.arange(0), n, 1, more=terms))
        run.absorb(n, n * means + np.sqrt(n) * rng.standard_normal(len(n)))
    enough = limit.wealth.threshold
    wrong = [
        (limit.keep_peak[2:] >= enough).any(),
        limit.pair_peak[1, 0] >= enough,
        limit.break_peak[0] >= enough,
    ]
    return [*wrong, any(wrong)]


def test_false_claims_are_proved_with_probability_delta_at_most_and_controls_are_caught():
    honest, lucky, undivided = (
        errs_more_often_than(DELTA, partial(false_claims, **how), runs)
        for how, runs in (({}, 100), ({"factor": Lucky(1.5)}, 30), ({"question": Undivided}, 30))
    )
    assert not honest[3]
    assert lucky.all()
    assert undivided[0]


@pytest.mark.parametrize("given", [{"noise": 1}, {"noise": None}, {"low": -4, "high": 8}], ids=str)
def test_the_best_plan_that_keeps_the_limit_is_found(given):
    values, loads = np.array([3.0, 2.0, 1.0, 0.0]), np.array([5.0, 4.0, 2.0, 1.0])
    problem, policy = asked(values, delta=0.05, epsilon=0.5, limit=3.0, tolerance=0.5, **given)
    kind = Gaussian if "noise" in given else UniformNoise
    outcome = sp.simulate(problem, kind(np.append(values, loads), 1), policy=policy, seed=1)
    assert (outcome.state, outcome.plan) == ("confident", 2)


def without_a_plan(budget=None):
    """Return a session that has ended; no plan keeps its limit."""
    values, loads = [1.0, 0.8, 0.5], [3.0, 2.0, 1.5]
    problem, policy = asked(values, epsilon=0.3, limit=0.0, tolerance=0.5)
    session = sp.Session.create("memory://", "none", problem, policy=policy, budget=budget)
    return answer(session, gaussian([*values, *loads], seed=1), at_once=50)


def test_that_no_plan_keeps_the_limit_is_proved_and_the_session_verifies():
    session = without_a_plan()
    view, certificate, verdict = session.view(), session.certificate(), session.verify()
    assert (view.state, view.plan, view.leader) == ("confident", None, None)
    assert (view.proved.claim, view.proved.plans, exit_code(view)) == ("no_plan", (), NOTHING_TO_TAKE)
    assert {row.status for row in view.plans} == {"ruled out"}
    assert (certificate.state, certificate.plan, certificate.leader) == ("confident", None, None)
    assert certificate.is_confident
    assert certificate.risk <= DELTA
    assert (verdict.holds, verdict.status, verdict.plan_name) == (True, "confident", None)
    assert verdict.claim == certificate.claim
    assert session.verify(certificate.to_json()).holds
    forged = {**certificate.to_json(), "state": "budget spent"}
    assert session.verify(forged).fields == ("state",)


@pytest.mark.parametrize("budget", [None, 10], ids=["proved", "not proved"])
def test_a_log_says_that_no_plan_keeps_the_limit_if_and_only_if_that_is_proved(budget):
    log = lines_of(without_a_plan(budget))
    (end,) = [line for line in log if line.kind == "stopped"]
    assert end.body["status"] == ("budget spent" if budget else "confident")
    for status in ("budget spent", "confident"):
        honest, end.body["status"] = status == ("budget spent" if budget else "confident"), status
        events = sealed(log)
        assert verify_events("none", events, events[-1].head).holds is honest


def test_an_end_without_a_plan_is_confident_only_where_that_is_proved():
    values, loads = [1.0, 0.8, 0.5], [3.0, 2.0, 1.5]
    problem, policy = asked(values, epsilon=0.3, limit=0.0, tolerance=0.5)
    ends = {
        budget: sp.simulate(problem, Gaussian([*values, *loads]), policy=policy, seed=1, budget=budget)
        for budget in (12, 10_000)
    }
    assert [(end.state, end.plan) for end in ends.values()] == [("budget spent", None), ("confident", None)]
    assert (ends[12].leader is None, ends[10_000].leader) == (False, None)
    assert ends[10_000].risk <= DELTA < ends[12].risk
    standing = ends[10_000].standing
    assert end_of(Stop(None), standing, sp.BetGapE()) == (None, "budget spent")  # it proves no such thing
    assert end_of(None, standing, policy) == (None, "budget spent")


def test_an_answer_is_judged_by_the_limit():
    values, loads = [3.0, 2.0, 1.0, 0.0], [5.0, 3.4, 2.0, 1.0]
    problem, policy = asked(values, epsilon=0.5, limit=3.0, tolerance=0.5)
    means = np.array([*values, *loads])
    judged = [policy.is_right(problem, means, plan) for plan in (0, 1, 2, 3, None)]
    assert judged == [False, True, True, False, False]
    assert policy.is_right(problem, means + 3, None)
    outcome = sp.simulate(problem, Gaussian(means), policy=policy, seed=1)
    assert (outcome.correct, outcome.loss > policy.epsilon) == (True, True)  # worse than one over the limit


def test_loads_may_share_arms_with_values_and_be_readings_of_the_same_use():
    plans, loads = (
        {"a": {"x": 1, "y": 1}, "b": {"x": 1, "z": 1}},
        {"a": {"y": 2, "u": 1}, "b": {"z": 2, "u": 1}},
    )
    pair = sp.Probe({"x": {"x": 1}, "u": {"u": 1}})
    problem = sp.Problem(
        plans, arms=["x", "y", "z", "u"], noise=1, goal="smallest", measure={"xu": pair, "y": "y", "z": "z"}
    )
    policy = Limited.of(problem, loads, at_most=8.0, tolerance=1.0, epsilon=0.5)
    truth = Gaussian([1.0, 5.0, 2.0, 1.0])
    assert sp.simulate(problem, truth, policy=policy, seed=1).plan_name == "b"


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Limited(epsilon=1.0).start(asked(VALUES)[0]), "loads"),
        (lambda: asked(VALUES, epsilon=0.0)[1].start(asked(VALUES)[0]), "epsilon"),
        (lambda: Limited(tolerance=0.0), "tolerance"),
    ],
)
def test_what_cannot_be_asked_names_its_field(make, field):
    with refuses(field, ParameterError):
        make()
