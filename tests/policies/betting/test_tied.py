"""Tied: all plans within epsilon of the best, both halves proved; controls that must be caught."""

from functools import partial

import numpy as np
import pytest

import surepick as sp
from common import errs_more_often_than, largest, refuses, terms_now
from hard_families import Lucky
from session_tools import answer, gaussian
from surepick.core.run import Decision
from surepick.errors import ParameterError
from surepick.policies import Tied
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.tied import AllWithin, least_means
from surepick.simulation import Gaussian, UniformNoise

DELTA, EPSILON, NEAR = 0.4, 3.0, 1.5
POLICY = Tied(DELTA, EPSILON)
# one best plan, plans that may not be out because they are just near enough, and some just outside of epsilon
N_OUTSIDE = 6
MEANS = np.array([0.0] + [-NEAR] * 40 + [-EPSILON - 1e-9] * N_OUTSIDE)
PROBLEM = largest(np.eye(len(MEANS)))


class Apart(AllWithin):
    """A control: a plan is out by its own wealth, as if the others were no further chances to be wrong."""

    def _least_means(self):
        found = self.second.accounts.get("out")
        return np.zeros(self.n_plans) if found is None else found.current


def false_claims(seed, question=AllWithin, factor=None):
    """Return whether a plan is ever in that is not within epsilon, and one out although it is near."""
    asked = question(PROBLEM.oriented, DELTA, EPSILON, NEAR)
    run, rng = BatchRun(PROBLEM, POLICY, asked), np.random.default_rng([61, seed])
    run._factor = factor or run._factor
    n = np.full(len(MEANS), 10)
    for _ in range(20):  # whatever is decided: claims hold at any time
        rivals = asked.unresolved()
        run.follow(Decision(asked.leader, rivals, n, 1, more=terms_now(run, rivals)))
        run.absorb(n, n * MEANS + np.sqrt(n) * rng.standard_normal(len(n)))
    is_in = asked.in_evidence() >= asked.wealth.threshold
    is_out = asked.out_peak >= asked.wealth.threshold
    return is_in[-N_OUTSIDE:].any(), is_out[:-N_OUTSIDE].any()


def test_each_half_is_wrong_with_probability_half_of_delta_at_most_and_controls_are_caught():
    honest, apart, lucky = (
        errs_more_often_than(DELTA / 2, partial(false_claims, **how), runs)
        for how, runs in (({}, 100), ({"question": Apart}, 100), ({"factor": Lucky(1.0)}, 30))
    )
    assert not honest.any()
    assert apart[1]
    assert lucky.all()


def test_least_means_are_those_of_all_sets():
    rng = np.random.default_rng(3)
    wealth = rng.lognormal(size=6)
    sets = [[bool(k >> i & 1) for i in range(6)] for k in range(1, 64)]
    for plan, found in enumerate(np.exp(least_means(np.log(wealth)))):
        assert found == pytest.approx(min(wealth[chosen].mean() for chosen in sets if chosen[plan]))


@pytest.mark.parametrize("given", [{"noise": 1}, {"noise": None}, {"low": -1, "high": 4}], ids=str)
@pytest.mark.parametrize("plans", [np.eye(4), [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]]])
def test_all_near_plans_are_named_and_no_others(given, plans):
    problem = sp.Problem(plans, goal="largest", **given)
    values = np.array(plans) @ [2.0, 1.9, 1.0, 0.0]
    behind = values.max() - values
    truth = Gaussian([2.0, 1.9, 1.0, 0.0], 1) if "noise" in given else UniformNoise([2.0, 1.9, 1.0, 0.0], 1)
    outcome = sp.simulate(problem, truth, policy=Tied(0.05, epsilon=0.6, grey=0.4), seed=1)
    assert outcome.state == "confident"
    assert set(np.flatnonzero(behind <= 0.2)) <= set(outcome.good) <= set(np.flatnonzero(behind <= 0.6))
    assert outcome.plan in outcome.good


def test_a_session_names_them_in_view_and_certificate_and_verifies():
    means = {"a": 3.0, "b": 2.9, "c": 0.0}
    problem = largest(list(means))
    session = sp.Session.create("memory://", "ties", problem, policy=Tied(epsilon=1.0))
    with pytest.raises(ParameterError):
        session.add_plan("d", "a + b")
    answer(session, gaussian(means, seed=5), at_once=50)
    view, certificate = session.view(), session.certificate()
    assert view.proved.claim == "own"
    assert set(view.proved.plans) == set(certificate.good) == {"a", "b"}
    assert {row.name: row.status for row in view.plans}["c"] == "ruled out"
    assert "tied" in {row.status for row in view.plans}
    assert session.verify(certificate.to_json()).holds


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: Tied().start(PROBLEM), "epsilon"),
        (lambda: Tied(epsilon=1.0, grey=2.0), "grey"),
        (lambda: Tied(epsilon=1.0).start(largest(np.eye(300))), "plans"),
        (
            lambda: sp.simulate(PROBLEM, Gaussian(MEANS), policy=POLICY, budget=90, final_batch=0.3),
            "final_batch",
        ),
    ],
)
def test_what_cannot_be_asked_names_its_field(make, field):
    with refuses(field, ParameterError):
        make()
