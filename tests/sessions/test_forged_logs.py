"""Whatever a forger writes into a log and seals with right checksums, `verify` objects to it."""

from __future__ import annotations

import contextlib
import copy
import functools
import random

import pytest

import surepick as sp
from forged_logs import ANYWHERE, NOISE, RULES, Line, Log, change, forged, honest, sealed, single
from forged_newcomers import LOGS as NEWCOMERS
from policy_contract import CASES, is_peer
from session_tools import problem
from surepick.errors import SurepickError
from surepick.sessions.rules import RULES as ALLOWED
from surepick.sessions.session import Session
from surepick.sessions.verify import Verdict, verify_events
from surepick.store import Draft, MemoryStore

POLICIES = {str(policy): policy for policy in CASES if not is_peer(policy) or policy.name == "GenTSExplore"}


@functools.cache
def log_of(name: str) -> Log:
    return honest(problem(noise=NOISE), POLICIES[name])


def verdict_on(log: Log) -> Verdict:
    events = sealed(log)
    return verify_events("mine", events, events[-1].head)


def judged(log: Log, rule: str) -> tuple[Verdict, int] | None:
    """What `verify` says of the log with this rule broken, and at which event it has to say it."""
    made = forged(log, rule)
    if made is None:
        return None
    events, position = made
    return verify_events("mine", events, events[-1].head), position


@pytest.mark.parametrize("name", POLICIES)
def test_every_broken_rule_is_noticed_where_it_is_broken(name: str) -> None:
    log, missed, n_tried = log_of(name), [], 0
    assert verdict_on(log).objections == ()
    for rule in RULES:
        found = judged(log, rule)
        if found is None:
            continue
        n_tried += 1
        verdict, position = found
        if verdict.holds or verdict.event is None or position not in (0, verdict.event):
            missed.append((rule, position, verdict.objections))
    assert missed == []
    assert n_tried > 100  # of the rules that there is something to break of


def test_every_rule_is_broken_in_some_log() -> None:
    tried = {rule for name in POLICIES for rule in RULES if forged(log_of(name), rule) is not None}
    assert tried == set(RULES)


@pytest.mark.parametrize("which", NEWCOMERS)
def test_broken_rules_of_newer_events_are_noticed_where_they_are_broken(which: str) -> None:
    make, rules = NEWCOMERS[which]
    log, missed = make(), []
    assert verdict_on(log).objections == ()
    for rule, break_it in rules.items():
        changed = copy.deepcopy(log)
        at = break_it(changed)
        assert at is not None, f"there is nothing to break for {rule!r}"
        verdict = verdict_on(changed)
        if verdict.holds or (at != ANYWHERE and verdict.event != at + 1):
            missed.append((rule, at + 1, verdict.objections))
    assert missed == []


def test_every_kind_of_event_is_in_an_honest_log_whose_rules_are_broken() -> None:
    slow = next(name for name in POLICIES if name.startswith("LinGapE"))  # it does not end by itself
    logs = [log_of(next(iter(POLICIES))), log_of(slow), *(make() for make, _ in NEWCOMERS.values())]
    assert {line.kind for log in logs for line in log} == {"created", "asked", "stopped", *ALLOWED}


def test_every_kind_of_event_has_its_rule() -> None:
    changes = Session.create("memory://", "mine", problem(), policy=sp.BetGapE()).ledger()._changes
    assert set(changes) | {"recorded", "noted"} == set(ALLOWED)


def test_a_policy_of_another_version_is_no_forgery_and_cannot_be_checked() -> None:
    log = log_of(next(iter(POLICIES)))
    changed = [Line(line.kind, dict(line.body), line.time, line.key) for line in log]
    change(changed, 0, policy={**log[0].body["policy"], "version": 99})
    with pytest.raises(SurepickError):
        verdict_on(changed)


def test_values_outside_the_bounds_are_noticed() -> None:
    log = honest(problem(noise=None, low=-3.0, high=3.0), sp.BetGapE(delta=0.1))
    assert verdict_on(log).holds
    at = change(log, single(log), value=3.5)
    assert at is not None
    assert verdict_on(log).event == at + 1


ODD = [None, True, -1, 10**30, 1e300, "", "x", [], [[]], {}, {"arm": 0}, [1, [2, [3, {"a": None}]]]]


def test_whatever_stands_in_a_log_is_an_objection_or_an_error_of_ours() -> None:
    """Values of any kind at any place: nothing else is raised, and hardly anything holds."""
    rng, log, n_held = random.Random(7), log_of("CLUCB(delta=0.1, epsilon=0.0)"), 0
    for _ in range(400):
        changed = copy.deepcopy(log)
        spoil(rng, rng.choice(changed[: 1 + rng.randrange(len(changed))]).body)
        with contextlib.suppress(SurepickError):
            n_held += verdict_on(changed).holds
    assert n_held < 40  # other values that are like honest ones: a remark, a reason, a measurement


def spoil(rng: random.Random, body: object) -> None:
    """Put something odd somewhere into this JSON value."""
    while isinstance(body, dict | list) and body:
        name = rng.choice(list(body) if isinstance(body, dict) else range(len(body)))
        if not isinstance(body[name], dict | list) or not body[name] or rng.random() < 0.3:
            body[name] = rng.choice(ODD)
            return
        body = body[name]


def test_titles_are_numbered_without_a_gap() -> None:
    session = Session.create("memory://", "mine", problem(), policy=sp.CombGapE(delta=0.1))
    session.rename("The way to work")
    session.rename("The way home")
    assert session.verify().holds
    drafts = [Draft(e.kind, e.body, e.time, e.key) for e in session.events()]
    for key, body in ((None, drafts[-1].body), ("title:7", drafts[-1].body), ("title:2", '{"title":3}')):
        store = MemoryStore()
        store.create("mine", [*drafts[:-1], drafts[-1]._replace(key=key, body=body)])
        assert not Session.load(store, "mine").verify().holds
