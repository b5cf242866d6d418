"""Every policy of the package keeps the contract that `surepick.testing` ships."""

import numpy as np
import pytest

import surepick as sp
from hulls import hull
from policy_contract import (
    CASES,
    OF_INCUMBENTS,
    OF_MATROIDS,
    OF_POLYTOPES,
    OF_SETS,
    OF_SINGLE_ARMS,
    WITHOUT_DELTA,
    OwnContract,
)
from surepick.policies import POLICIES
from surepick.testing import Tape, decisions
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

    def _same_decisions(self, policy, seed, n_rounds, one, other):
        """An answer is a vector here, which these changes change; what is measured must not."""
        plans, means = self.instance(seed, policy)
        taken = [
            decisions(policy, make(plans), Tape(means, range(N_ARMS)), n_rounds, seed)
            for make in (one, other)
        ]
        first, second = ([d for d in found if d[0] != "stop"] for found in taken)
        assert first == second


def test_every_registered_policy_is_in_the_suite():
    every = CASES + WITHOUT_DELTA + OF_SETS + OF_MATROIDS + OF_SINGLE_ARMS + OF_INCUMBENTS + OF_POLYTOPES
    assert {type(policy).name for policy in every} == set(POLICIES)


@pytest.mark.parametrize("policy", OF_POLYTOPES, ids=str)
def test_a_policy_of_polytopes_says_what_a_list_needs(policy):
    with pytest.raises(sp.SurepickError, match="BetGapE is for lists"):
        policy.start(sp.Problem([[1, 0], [0, 1]]))
