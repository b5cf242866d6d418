"""No policy decides otherwise than it did under the same version."""

from __future__ import annotations

import json

import pytest

from first_decisions import KEPT, cases, first_decisions
from stored_sessions import CHANGING
from surepick.policies import POLICIES

GOLDEN = json.loads(KEPT.read_text(encoding="utf-8"))


def test_every_policy_has_golden_decisions() -> None:
    assert set(cases()) == set(GOLDEN)
    assert {policy.name for policy, _ in cases().values()} == set(POLICIES)


@pytest.mark.parametrize("name", GOLDEN)
def test_first_decisions_are_golden(name: str) -> None:
    taken, kept = first_decisions(name), GOLDEN[name]
    if taken["version"] != kept["version"] and cases()[name][0].name in CHANGING:
        pytest.skip("a new version, as announced: python tests/nets/first_decisions.py --write")
    assert taken == kept, "a changed decision needs a higher version and a line in the changelog"
