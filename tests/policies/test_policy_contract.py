"""Every policy of the package keeps the contract that `surepick.testing` ships."""

import numpy as np
import pytest

import surepick as sp
from common import largest
from hulls import hull
from policy_contract import (
    CASES,
    OF_INCUMBENTS,
    OF_MATROIDS,
    OF_PLAYS,
    OF_POLYTOPES,
    OF_SETS,
    OF_SINGLE_ARMS,
    PLAYING_TOO,
    WITHOUT_DELTA,
    OwnContract,
    two_of,
)
from surepick.errors import ParameterError
from surepick.policies import POLICIES
from surepick.simulation import Gaussian
from surepick.testing.policies import N_ARMS


class TestEveryPolicy(OwnContract):
    policies = CASES + WITHOUT_DELTA + OF_SETS + OF_MATROIDS + OF_SINGLE_ARMS


class TestPoliciesOfPolytopes(OwnContract):
    """The same laws where a policy takes no list: it is given all mixtures of the plans."""

    policies = OF_POLYTOPES

    def instance(self, seed, policy):
        """One plan fewer, so that no vertex is degenerate: there the basis depends on the order of rows."""
        plans, means = super().instance(seed, policy)
        return plans[:-1], means

    def problem(self, plans, **settings):
        return hull(plans, **settings)

    def has_found(self, answer, plan, problem):
        return bool(np.allclose(answer, plan, atol=1e-9))


class TestPoliciesOfPlays(OwnContract):
    """The same laws where plans are played, and what is counted are readings of arms."""

    policies = OF_PLAYS + PLAYING_TOO

    def instance(self, seed, policy):
        rng = np.random.default_rng([7, seed])
        return rng.permutation(two_of(N_ARMS)), rng.normal(size=N_ARMS)

    def problem(self, plans, **settings):
        plans = np.asarray(plans.todense() if hasattr(plans, "todense") else plans, dtype=float)

        def best(weights):
            return plans[np.argmax(plans @ weights)]

        return sp.OracleProblem(
            best, plans.shape[1], measure="plan arms", **{"noise": 1, "goal": "largest", **settings}
        )

    def has_found(self, answer, plan, problem):
        return tuple(answer) == tuple(plan)

    def allowed(self, policy):
        """The first plays are a cover, where the oracle decides between plays as good."""
        return {*super().allowed(policy), "sets", "order of plans"}

    def test_measures_only_what_matters(self, policy):
        """A play reads all of its arms, what all plans share as well; none is there for that alone."""
        problem = self.problem([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
        outcome = sp.simulate(problem, Gaussian([1.0, 0.0, 0.0]), policy=policy, budget=10**9)
        assert outcome.counts[2] == outcome.counts[:2].sum() == outcome.n_measured
        assert self.has_found(outcome.leader, [1.0, 0.0, 1.0], problem)


def test_every_registered_policy_is_in_the_suite():
    every = CASES + WITHOUT_DELTA + OF_SETS + OF_MATROIDS + OF_SINGLE_ARMS + OF_INCUMBENTS + OF_POLYTOPES
    every = every + OF_PLAYS
    of_limits = {"Limited"}  # it needs loads: see test_limited.py
    assert {type(policy).name for policy in every} | of_limits == set(POLICIES)


@pytest.mark.parametrize("policy", [p for p in OF_POLYTOPES if p.name != "BetGapE"], ids=str)
def test_a_policy_of_polytopes_says_what_a_list_needs(policy):
    with pytest.raises(ParameterError):
        policy.start(largest([[1, 0], [0, 1]]))
