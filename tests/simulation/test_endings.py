"""How runs end: nothing is called confident that its policy does not guarantee."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.core.run import Measure, Standing, Stop
from surepick.simulation import Gaussian, State

PROBLEM = largest(np.eye(2))
TRUTH = Gaussian([3.0, 0.0])


@dataclass(frozen=True)
class TenEach:
    """Measures every arm ten times and names the best mean; it has no delta."""

    name: ClassVar[str] = "TenEach"
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False
    guarantee: ClassVar[str] = "none: a fixed number of measurements"

    def start(self, problem):
        return TenEachRun()


class TenEachRun:
    def __init__(self):
        self.means = None

    def decide(self, rng):
        return Measure(np.array([10, 10])) if self.means is None else Stop(int(np.argmax(self.means)))

    def absorb(self, counts, sums):
        self.means = sums / counts

    def standing(self):
        return Standing() if self.means is None else Standing(leader=int(np.argmax(self.means)))


WITHOUT_GUARANTEE = [TenEach(), sp.CombGapE(radius="heuristic")]


@pytest.mark.parametrize("policy", WITHOUT_GUARANTEE, ids=lambda policy: policy.name)
def test_an_answer_without_a_guarantee_is_done_and_not_confident(policy):
    outcome = sp.simulate(PROBLEM, TRUTH, policy=policy)
    assert (outcome.state, outcome.plan, outcome.leader) == (State.DONE, 0, 0)
    assert "delta=" not in repr(outcome)
    assert outcome._repr_html_()


def test_an_outcome_knows_whether_it_is_right_and_shows_its_arms():
    problem = sp.Problem(["north", "south"], goal="smallest", noise=1)
    outcome = sp.simulate(problem, [5.0, 2.0], seed=1)
    assert (outcome.plan_name, outcome.correct, outcome.loss) == ("south", True, 0.0)
    wrong = replace(outcome, plan=0, leader=0)
    assert (wrong.correct, wrong.loss) == (False, 3.0)
    assert replace(outcome, plan=None).correct is None
    frame = outcome.to_frame()
    assert list(frame["arm"]) == ["north", "south"]
    assert frame["n"].sum() == outcome.n_measured
