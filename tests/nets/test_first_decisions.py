"""Each policy takes the same first decisions as when its sample sizes were measured."""

import json

import pytest

from first_decisions import BY_SAMPLE_SIZE, KEPT, cases, first_decisions
from surepick.policies import POLICIES

GOLDEN = json.loads(KEPT.read_text(encoding="utf-8"))


def test_every_policy_has_golden_decisions():
    assert set(cases()) == set(GOLDEN)
    assert {policy.name for policy, _ in cases().values()} == set(POLICIES) - set(BY_SAMPLE_SIZE)


@pytest.mark.parametrize("name", GOLDEN)
def test_first_decisions_are_golden(name):
    assert first_decisions(name) == GOLDEN[name], "python tests/nets/first_decisions.py --write"
