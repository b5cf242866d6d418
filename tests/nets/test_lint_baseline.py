"""Unused arguments, private members of others and long parameter lists become fewer, never more."""

from __future__ import annotations

import lint_baseline


def test_no_rule_is_broken_more_often_than_before() -> None:
    places = lint_baseline.found()
    risen = lint_baseline.more_than(lint_baseline.kept(), lint_baseline.counts(places))
    shown = "\n".join(
        f"{place['filename']}:{place['location']['row']}: {place['code']} {place['message']}"  # type: ignore[index]
        for place in places
        if place["code"] in risen
    )
    assert not risen, f"{risen}; one of these is new:\n{shown}"


def test_the_baseline_is_lowered_when_there_are_fewer() -> None:
    now, kept = lint_baseline.counts(lint_baseline.found()), lint_baseline.kept()
    fallen = {
        rule: f"{now.get(rule, 0)} of {count}" for rule, count in kept.items() if now.get(rule, 0) < count
    }
    assert not fallen, f"lower the baseline ({fallen}): python tests/nets/lint_baseline.py --write"


def test_a_rise_is_noticed() -> None:
    assert lint_baseline.more_than({"ARG001": 2}, {"ARG001": 3, "ARG002": 1, "SLF001": 0}) == {
        "ARG001": "2 allowed, 3 found",
        "ARG002": "0 allowed, 1 found",
    }
