"""Every policy of the package keeps the contract that `surepick.testing` ships."""

from policy_contract import CASES, OwnContract
from surepick.policies import POLICIES


class TestEveryPolicy(OwnContract):
    policies = CASES


def test_every_registered_policy_is_in_the_suite():
    assert {type(policy).name for policy in CASES} == set(POLICIES)
