"""No run ends confident while the policy's own bound on the risk exceeds delta, in `simulate` or a session.

The policy here stops after its first round and says honestly how sure it is. With a small risk the same stop
counts: that is the control without which refusing everything would pass.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import surepick as sp
from common import largest
from policy_contract import CASES, OF_INCUMBENTS, OF_POLYTOPES
from session_tools import answer, gaussian
from surepick.policies import POLICIES
from surepick.policy import Guarantee, Measure, Policy, Run, Standing, Stop
from surepick.simulation import Gaussian, State


@dataclass(frozen=True)
class Hasty(Policy):
    """A policy that measures everything once and answers with the first plan, at this risk."""

    name: ClassVar[str] = "Hasty"
    delta: float = 0.05
    risk: float | None = 1.0

    @property
    def guarantee(self):
        return Guarantee.best(self.delta)

    def start(self, problem):
        return HastyRun(problem, self)


class HastyRun(Run):
    def __init__(self, problem, policy):
        self.problem, self.policy, self.n = problem, policy, 0

    def decide(self, rng):
        return Stop(0) if self.n else Measure(np.ones(self.problem.n_arms, dtype=np.int64))

    def absorb(self, counts, sums):
        self.n += 1

    def standing(self):
        return Standing(leader=0, rival=1, risk=self.policy.risk)

    def state(self):
        return {"n": self.n}

    def restore(self, state):
        self.n = state["n"]


@pytest.fixture(autouse=True)
def known_by_name(monkeypatch):
    monkeypatch.setattr("surepick.policies.POLICIES", {**POLICIES, "Hasty": Hasty})


PROBLEM = largest([[1, 0], [0, 1]])
TOO_HIGH = (1.0, 0.06, 0.0500001)
FINE = (None, 0.0, 0.04, 0.05)  # None: a policy that knows no risk at every moment


def told_to_the_end(session):
    return answer(session, gaussian([0.0, 0.0]), at_once=20).outcome


@pytest.mark.parametrize("risk", [*TOO_HIGH, float("nan")])
def test_simulate_calls_no_early_stop_confident(risk, caplog):
    outcome = sp.simulate(PROBLEM, Gaussian([0.0, 0.0]), policy=Hasty(risk=risk))
    assert (outcome.plan, outcome.state, outcome.leader) == (None, State.BUDGET_SPENT, 0)
    assert "no answer: the policy stopped with plan 0 at a risk of" in caplog.text


@pytest.mark.parametrize("risk", TOO_HIGH)
def test_a_session_calls_no_early_stop_confident(risk):
    session = sp.Session.create("memory://", "s", PROBLEM, policy=Hasty(risk=risk))
    outcome = told_to_the_end(session)
    assert (outcome.plan, outcome.state) == (None, State.BUDGET_SPENT)
    certificate = session.certificate()
    assert certificate.plan is None
    assert session.verify(certificate.to_json()).holds


@pytest.mark.parametrize("risk", FINE)
def test_the_same_stop_counts_when_its_risk_is_at_most_delta(risk):
    outcome = sp.simulate(PROBLEM, Gaussian([0.0, 0.0]), policy=Hasty(risk=risk))
    assert (outcome.plan, outcome.state) == (0, State.CONFIDENT)
    session = sp.Session.create("memory://", "s", PROBLEM, policy=Hasty(risk=risk))
    assert told_to_the_end(session).state is State.CONFIDENT
    assert session.verify().holds


def test_a_log_that_calls_an_early_stop_confident_does_not_verify():
    """Written by a surepick that did not look at the risk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surepick.simulation.outcome.proved_stop", lambda stop, standing, delta: stop)
        session = sp.Session.create("memory://", "s", PROBLEM, policy=Hasty())
        assert told_to_the_end(session).state is State.CONFIDENT
        assert session.verify().holds
    verdict = sp.Session.load(session.store, "s").verify()
    assert not verdict.holds


@pytest.mark.parametrize("policy", [*CASES, *OF_INCUMBENTS, *OF_POLYTOPES], ids=str)
def test_own_policies_never_stop_at_a_risk_above_delta(policy):
    """So the rule takes no answer away."""
    for seed, gap in enumerate((3.0, 1.0)):
        listed = largest([[1, 0, 0], [0, 1, 0], [0, 1, 1]])
        problem = (
            sp.Polytope(A_eq=[[1, 1, 1]], b_eq=[1], noise=1, goal="largest")
            if policy in OF_POLYTOPES
            else listed
        )
        outcome = sp.simulate(problem, Gaussian([gap, 0.0, -gap]), policy=policy, seed=seed, budget=100_000)
        assert outcome.plan is not None
        assert outcome.risk is None or outcome.risk <= policy.delta * (1 + 1e-9)
