"""Whatever a forger writes into a log and seals with right checksums, `verify` objects to it."""

import contextlib
import copy
import functools
import random

import numpy as np
import pytest

import surepick as sp
from common import largest
from forged_logs import ANYWHERE, MOST_ROUNDS, NOISE, RULES, Line, forged, forgeries, honest, verdict_on
from policy_contract import CASES, is_peer
from session_tools import problem
from surepick.errors import SurepickError
from surepick.problems import top_k
from surepick.sessions.events import EVENTS
from surepick.sessions.verify import verify_events

POLICIES = {str(policy): policy for policy in CASES if not is_peer(policy) or policy.name == "GenTSExplore"}
BETS = next(name for name in POLICIES if name.startswith("BetGapE"))
PAIR = sp.Probe({"old": {"x": 1}, "new": {"y": 1}}, covariance=[[1.25, 1.0], [1.0, 1.25]])
CHOICES = functools.partial(top_k, ["copper", "tin", "zinc", "lead"], 2, goal="largest", list_plans=False)
WITHOUT_A_LIST = {  # plans behind an oracle: by arms, within epsilon, by whole plans, and a polytope
    "oracle": (CHOICES(noise=NOISE), sp.BetGapE(delta=0.1)),
    "oracle within epsilon": (CHOICES(noise=NOISE), sp.BetGapE(delta=0.1, epsilon=0.01)),
    "plan arms": (CHOICES(noise=NOISE, measure="plan arms"), sp.BetGapE(delta=0.1)),
    "oracle of unknown noise": (CHOICES(), sp.BetGapE(delta=0.1)),
}
PAIRED = largest(np.eye(2), arms=["x", "y"], measure={"pair": PAIR})


@functools.cache
def log_of(name):
    if name == "oracle of unknown noise":  # long enough for bets, which follow the replicates
        return honest(*WITHOUT_A_LIST[name], n_rounds=2 * MOST_ROUNDS)
    if name in WITHOUT_A_LIST:
        return honest(*WITHOUT_A_LIST[name])
    if name == "readings":
        return honest(PAIRED, sp.BetGapE(delta=0.1))
    return honest(problem(noise=NOISE), POLICIES[name])


@pytest.mark.parametrize("name", [*POLICIES, *WITHOUT_A_LIST, "readings"])
def test_every_broken_rule_is_noticed_where_it_is_broken(name):
    log, missed = log_of(name), []
    assert verdict_on(log).objections == ()
    for rule in RULES:
        made = forged(log, rule)
        if made is None:
            continue
        events, position = made
        verdict = verify_events("mine", events, events[-1].head)
        if verdict.holds or verdict.event is None or position not in (0, verdict.event):
            missed.append((rule, position, verdict.objections))
    assert missed == []


@pytest.mark.parametrize(
    "name", [BETS, next(n for n in POLICIES if n.startswith("CombGapE")), *WITHOUT_A_LIST, "readings"]
)
def test_every_field_of_every_event_is_checked(name):
    log, missed, n = log_of(name), [], 0
    for what, changed, at in forgeries(log):
        n += 1
        verdict = verdict_on(changed)
        if verdict.holds or (at != ANYWHERE and verdict.event != at + 1):
            missed.append((what, at + 1, verdict.event, verdict.objections))
    assert missed == []
    assert n > 150


def test_every_rule_is_broken_in_some_log_and_every_kind_of_event_is_in_one():
    tried = {rule for name in POLICIES for rule in RULES if forged(log_of(name), rule) is not None}
    assert tried == set(RULES)
    assert {line.kind for name in POLICIES for line in log_of(name)} == set(EVENTS)


def test_a_policy_of_another_version_is_no_forgery_and_cannot_be_checked():
    log = log_of(next(iter(POLICIES)))
    changed = [Line(line.kind, dict(line.body), line.time, line.key) for line in log]
    changed[0].body["policy"] = {**log[0].body["policy"], "version": 99}
    with pytest.raises(SurepickError):
        verdict_on(changed)


def test_values_outside_the_bounds_are_noticed():
    log = honest(problem(noise=None, low=-3.0, high=3.0), sp.BetGapE(delta=0.1))
    assert verdict_on(log).holds
    at = next(at for at, line in enumerate(log) if line.kind == "measured")
    log[at].body["values"] = [3.5]
    assert verdict_on(log).event == at + 1


ODD = [None, True, -1, 10**30, 1e300, "", "x", [], [[]], {}, {"arm": 0}, [1, [2, [3, {"a": None}]]]]


def test_whatever_stands_in_a_log_is_an_objection_or_an_error_of_ours():
    """Values of any kind at any place: nothing else is raised, and hardly anything holds."""
    rng, log, n_held = random.Random(7), log_of("CLUCB(delta=0.1, epsilon=0.0)"), 0
    for _ in range(400):
        changed = copy.deepcopy(log)
        spoil(rng, rng.choice(changed[: 1 + rng.randrange(len(changed))]).body)
        with contextlib.suppress(SurepickError):
            n_held += verdict_on(changed).holds
    assert n_held < 40  # other values that are like honest ones: a remark, a reason, a measurement


def spoil(rng, body):
    """Put something odd somewhere into this JSON value."""
    while isinstance(body, dict | list) and body:
        name = rng.choice(list(body) if isinstance(body, dict) else range(len(body)))
        if not isinstance(body[name], dict | list) or not body[name] or rng.random() < 0.3:
            body[name] = rng.choice(ODD)
            return
        body = body[name]
