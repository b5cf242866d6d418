"""Logs that no session wrote: honest ones with one rule broken each, sealed again with right checksums.

Each function of `RULES` breaks one rule in a log (a list of `Line`) and returns the index of the first line
at which that shows, or None where the log has nothing to break; `ANYWHERE` is for what shows somewhere.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import surepick as sp
from session_tools import Tapes
from surepick.core.policy import Policy
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.store import START, Draft, Event
from surepick.store.log import seal

ANYWHERE = -1
MOST_ROUNDS = 15
NOISE = 0.05  # small, so that most sessions end soon


@dataclass
class Line:
    """An event that can be changed; a body that is text is taken as it is."""

    kind: str
    body: Any
    time: float
    key: str | None

    @property
    def text(self) -> str:
        return self.body if isinstance(self.body, str) else codec.dumps(self.body)


Log = list[Line]
Rule = Callable[[Log], int | None]
RULES: dict[str, Rule] = {}


def rule(break_it: Rule) -> Rule:
    RULES[break_it.__name__] = break_it
    return break_it


def lines_of(session: Session) -> Log:
    return [Line(e.kind, json.loads(e.body), e.time, e.key) for e in session.events()]


def sealed(log: Log) -> list[Event]:
    """The log with right checksums, as a forger would give it."""
    return seal([Draft(line.kind, line.text, line.time, line.key) for line in log], START)


def forged(log: Log, name: str) -> tuple[list[Event], int] | None:
    """The log with this rule broken, and the position at which that has to be noticed (0: anywhere)."""
    changed = copy.deepcopy(log)
    at = RULES[name](changed)
    return None if at is None else (sealed(changed), at + 1)


def honest(problem: sp.Problem, policy: Policy) -> Log:
    """A log with all that can happen in a session: it ends, is extended, goes on and is closed."""
    ticks = itertools.count(1_700_000_000.0)
    session = Session.create(
        "memory://",
        "mine",
        problem,
        policy=policy,
        seed=3,
        budget=50_000,
        lease=50.0,
        clock=lambda: next(ticks),
    )
    tapes = Tapes(5, scale=NOISE)
    session.add_extra("copper", 0.9, key="row 1")
    session.add_extra("tin", 0.2)
    session.add_extra("zinc", 0.5, picked=True, note="it looked odd")
    session.note("begun")
    first = session.ask(1, worker="anna", wait=False)[0]
    session.release(first, "rain")
    session.tell(first, tapes.value(first.token))
    session.tell(first.token, 0.25, worker="ben")
    _several(session, tapes)
    for _ in range(MOST_ROUNDS):
        for request in session.ask(4, worker="anna", wait=False):
            if not session.is_told(request.token):
                session.tell(request, tapes.value(request.token))
    session.close("enough")
    ahead = f"0.{session.ledger().tapes.of[0].end_of_round + 1}"
    session.tell(ahead, tapes.value(ahead), worker="carl")
    session.extend(budget=60_000)
    session.extend(**({"delta": policy.delta / 2} if "delta" in vars(policy) else {"budget": 70_000}))
    for request in session.ask(2, worker="anna", wait=False):
        session.tell(request, tapes.value(request.token))
    session.remove(first.token, "the wrong road")
    for request in session.ask(2, worker="anna", wait=False):
        session.tell(request, tapes.value(request.token))
    session.close("that was all")
    return lines_of(session)


def _several(session: Session, tapes: Tapes) -> None:
    """Three values of one arm under one token."""
    for request in session.ask(1, worker="dora", wait=False):
        arm, index = map(int, request.token.split("."))
        session.tell(request, [tapes.value(f"{arm}.{index + i}") for i in range(3)], key="row 7")
        session.tell(f"{arm}.{index + 1}", 0.25, worker="eve")  # late for one of several


def find(log: Log, kind: str, *having: str, without: tuple[str, ...] = (), last: bool = False) -> int | None:
    """The first (or last) line of this kind whose body has these names."""
    found = [
        i
        for i, line in enumerate(log)
        if line.kind == kind
        and all(name in line.body for name in having)
        and not any(name in line.body for name in without)
    ]
    return (found[-1] if last else found[0]) if found else None


def change(log: Log, at: int | None, /, **body: Any) -> int | None:
    """Change these fields of a body; a field that is `...` is taken out."""
    if at is None:
        return None
    kept = {**log[at].body, **body}
    log[at].body = {name: value for name, value in kept.items() if value is not ...}
    return at


def single(log: Log) -> int | None:
    """A line with one plain value."""
    return find(log, "measured", "value", without=("after_end",))


def put(log: Log, at: int | None, kind: str, body: Any, key: str | None = None) -> int | None:
    """Put a line where another one is, which then follows."""
    if at is None:
        return None
    log.insert(at, Line(kind, body, log[at - 1].time, key))
    return at


def end_of(log: Log) -> int | None:
    """The line after the first end."""
    ends = [at for kind in ("stopped", "closed") if (at := find(log, kind)) is not None]
    return min(ends) + 1 if ends else None


def append(log: Log, kind: str, body: Any, key: str | None = None) -> int:
    log.append(Line(kind, body, log[-1].time, key))
    return len(log) - 1


# The envelope of an event


@rule
def a_body_with_spaces(log: Log) -> int | None:
    log[4].body = json.dumps(log[4].body, sort_keys=True)
    return 4


@rule
def a_body_with_a_name_twice(log: Log) -> int | None:
    at = single(log)
    if at is not None:
        log[at].body = log[at].text[:-1] + f',"value":{log[at].body["value"]!r}}}'
    return at


@rule
def a_body_out_of_order(log: Log) -> int | None:
    at = single(log)
    if at is not None:
        reversed_ = dict(sorted(log[at].body.items(), reverse=True))
        log[at].body = json.dumps(reversed_, separators=(",", ":"))
    return at


@rule
def a_body_that_is_not_json(log: Log) -> int | None:
    log[3].body = '{"text":'
    return 3


@rule
def a_body_that_is_a_list(log: Log) -> int | None:
    log[3].body = '["text"]'
    return 3


@rule
def a_body_that_is_nested_too_deep(log: Log) -> int | None:
    return put(log, 3, "noted", '{"text":' + "[" * 50_000 + "]" * 50_000 + "}")


@rule
def a_time_that_runs_backwards(log: Log) -> int | None:
    log[6].time = log[5].time - 1e-3
    return 6


@rule
def a_time_that_is_infinite(log: Log) -> int | None:
    log[-1].time = float("inf")
    return len(log) - 1


@rule
def a_time_that_is_a_whole_number(log: Log) -> int | None:
    log[-1].time = int(log[-1].time) + 1
    return len(log) - 1


@rule
def an_unknown_kind(log: Log) -> int | None:
    return put(log, 4, "praised", {})


@rule
def a_second_beginning(log: Log) -> int | None:
    return put(log, 4, "created", log[0].body)


@rule
def a_log_without_its_beginning(log: Log) -> int | None:
    del log[0]
    return 0


@rule
def a_beginning_with_a_key(log: Log) -> int | None:
    log[0].key = "created"
    return 0


@rule
def a_key_twice(log: Log) -> int | None:
    at = find(log, "recorded")
    return None if at is None else append(log, "recorded", log[at].body, "recorded:row 1")


# What a session begins with


def settings(name: str, /, **body: Any) -> None:
    def break_it(log: Log) -> int | None:
        return change(log, 0, **body)

    RULES[name] = break_it


settings("a_negative_seed", seed=-1)
settings("a_seed_that_is_true", seed=True)
settings("a_seed_that_is_text", seed="3")
settings("a_budget_of_nothing", budget=0)
settings("a_budget_that_is_a_fraction", budget=50_000.0)
settings("a_lease_of_nothing", lease=0.0)
settings("a_lease_that_is_whole", lease=3600)
settings("a_setting_that_nobody_knows", mood="good")
settings("a_setting_that_is_missing", budget=...)
settings("a_lease_that_is_missing", lease=...)
settings("a_past_that_is_missing", past=...)
settings("a_past_that_is_none", past={})
settings("a_name_that_is_missing", name=...)
settings("a_name_that_is_a_number", name=5)
settings("a_name_of_nothing", name=" ")
settings("a_version_that_is_a_number", surepick=1)
settings("a_version_that_is_none", surepick="x")
settings("a_version_that_is_missing", surepick=...)
settings("a_layout_that_is_none", layout={})
settings("a_problem_that_is_none", problem={})
settings("a_policy_that_is_text", policy="BetGapE")


def of_problem(name: str, **fields: Any) -> None:
    def break_it(log: Log) -> int | None:
        return change(log, 0, problem={**log[0].body["problem"], **fields})

    RULES[name] = break_it


of_problem("a_problem_with_a_field_too_many", colour="red")
of_problem("a_problem_with_whole_costs", costs=[1, 1, 1, 1])
of_problem("a_problem_with_bounds_that_its_scale_is_not_of", bounds=[[0.0, 1.0]] * 4)
of_problem("a_problem_with_a_scale_of_nothing", noise_scale=[0.0] * 4)
of_problem("a_problem_with_a_scale_too_few", noise_scale=[1.0] * 3)
of_problem("a_problem_with_three_arms", arm_names=["copper", "tin", "zinc"])


def of_policy(name: str, **parameters: Any) -> None:
    def break_it(log: Log) -> int | None:
        policy = log[0].body["policy"]
        return change(log, 0, policy={**policy, "parameters": {**policy["parameters"], **parameters}})

    RULES[name] = break_it


of_policy("a_delta_of_two", delta=2.0)
of_policy("a_policy_with_an_unknown_parameter", mood="good")


@rule
def a_problem_that_was_turned_round_afterwards(log: Log) -> int | None:
    problem = log[0].body["problem"]
    rows = problem["plans"]["rows"]
    change(log, 0, problem={**problem, "plans": {**problem["plans"], "rows": rows[1:] + rows[:1]}})
    return None if end_without_confidence(log) else ANYWHERE


def end_without_confidence(log: Log) -> bool:
    return find(log, "stopped") is None


# Decisions


@rule
def an_end_that_no_policy_made(log: Log) -> int | None:
    return put(log, 2, "stopped", {"plan": 0, "status": "confident"}, "0:round:0")


@rule
def an_end_in_place_of_a_decision(log: Log) -> int | None:
    at = find(log, "asked", "round", last=True)
    if at is not None:
        log[at].kind, log[at].body = "stopped", {"plan": 0, "status": "confident"}
    return at


@rule
def an_end_of_another_plan(log: Log) -> int | None:
    at = find(log, "stopped")
    return None if at is None else change(log, at, plan=(log[at].body["plan"] + 1) % 5)


@rule
def an_end_for_another_reason(log: Log) -> int | None:
    return change(log, find(log, "stopped"), status="budget spent", plan=None)


@rule
def an_end_that_was_left_out(log: Log) -> int | None:
    at = find(log, "stopped")
    if at is not None:
        del log[at:]
        append(log, "asked", {"counts": [[0, 1]], "round": 10_000}, "0:round:10000")
    return at


@rule
def a_second_end(log: Log) -> int | None:
    return put(log, end_of(log), "stopped", {"plan": 0, "status": "confident"}, "0:round:99999")


@rule
def a_decision_after_the_end(log: Log) -> int | None:
    return append(log, "asked", {"counts": [[0, 1]], "round": 99_999}, "2:round:99999")


@rule
def a_decision_for_more(log: Log) -> int | None:
    at = find(log, "asked")
    return None if at is None else change(log, at, counts=[[a, n + 1] for a, n in log[at].body["counts"]])


@rule
def a_decision_for_an_unknown_arm(log: Log) -> int | None:
    return change(log, find(log, "asked"), counts=[[99, 1]])


@rule
def a_decision_for_millions(log: Log) -> int | None:
    return change(log, find(log, "asked"), counts=[[0, 10**15]])


@rule
def a_decision_in_another_round(log: Log) -> int | None:
    at = find(log, "asked", "round")
    return None if at is None else change(log, at, round=log[at].body["round"] + 1)


@rule
def a_decision_with_a_field_too_many(log: Log) -> int | None:
    return change(log, find(log, "asked"), mood="good")


@rule
def a_decision_under_another_key(log: Log) -> int | None:
    at = find(log, "asked")
    if at is not None:
        log[at].key = "0:round:77"
    return at


@rule
def a_decision_without_a_key(log: Log) -> int | None:
    at = find(log, "asked")
    if at is not None:
        log[at].key = None
    return at


@rule
def a_decision_twice(log: Log) -> int | None:
    return put(log, 2, "asked", log[1].body, "0:round:1")


@rule
def a_decision_before_its_round_is_complete(log: Log) -> int | None:
    asked = [i for i, line in enumerate(log) if line.kind == "asked"]
    if len(asked) < 2 or log[asked[1] - 1].kind != "measured":
        return None
    at = asked[1]
    log[at - 1], log[at] = log[at], log[at - 1]
    log[at].time, log[at - 1].time = log[at - 1].time, log[at].time
    return at - 1


@rule
def a_first_decision_that_was_left_out(log: Log) -> int | None:
    del log[1]
    return ANYWHERE


# Measurements


@rule
def a_measurement_told_twice(log: Log) -> int | None:
    at = single(log)
    return None if at is None else put(log, at + 1, "measured", log[at].body, "told:other")


def measured(name: str, /, **body: Any) -> None:
    def break_it(log: Log) -> int | None:
        at = single(log)
        if at is not None and ("arm" in body or "index" in body):
            log[
                at
            ].key = f"told:{body.get('arm', log[at].body['arm'])}.{body.get('index', log[at].body['index'])}"
        return change(log, at, **body)

    RULES[name] = break_it


measured("a_measurement_of_a_negative_arm", arm=-1)
measured("a_measurement_of_an_unknown_arm", arm=99)
measured("a_measurement_of_an_arm_that_is_true", arm=True)
measured("a_measurement_at_a_negative_index", index=-1)
measured("a_measurement_far_ahead", index=100_000)
measured("a_measurement_further_than_tokens_go", index=10**30)
measured("a_value_that_is_whole", value=1)
measured("a_value_that_is_text", value="0.5")
measured("a_value_that_is_nothing", value=None)
measured("a_value_that_is_missing", value=...)
measured("a_measurement_with_a_field_too_many", mood="good")
measured("a_worker_without_a_name", worker="")
measured("a_worker_that_is_a_number", worker=7)
measured("a_value_and_values", values=[0.5, 0.5])
measured("one_value_with_a_place", places=[0])
measured("a_mean_of_one", count=1)
measured("a_mean_of_several", count=3)
measured("a_measurement_with_an_empty_key", key="")
measured("a_measurement_with_a_key_that_is_a_number", key=7)
measured("a_measurement_said_to_be_after_the_end", after_end=True)
measured("a_measurement_said_not_to_be_after_the_end", after_end=False)


@rule
def a_value_that_is_infinite(log: Log) -> int | None:
    at = single(log)
    if at is not None:
        body = {**log[at].body, "value": 777.5}
        log[at].body = codec.dumps(body).replace("777.5", "1e999")
    return at


@rule
def a_measurement_without_a_key(log: Log) -> int | None:
    at = single(log)
    if at is not None:
        log[at].key = None
    return at


@rule
def a_measurement_under_the_key_of_another(log: Log) -> int | None:
    at = single(log)
    if at is not None:
        log[at].key = "told:0.999"
    return at


@rule
def a_measurement_after_the_end_that_does_not_say_so(log: Log) -> int | None:
    return change(log, find(log, "measured", "after_end"), after_end=...)


def several(name: str, of: Callable[[list[int]], dict[str, Any]]) -> None:
    def break_it(log: Log) -> int | None:
        at = find(log, "measured", "values")
        return None if at is None else change(log, at, **of(log[at].body["places"]))

    RULES[name] = break_it


several("places_out_of_order", lambda p: {"places": [p[0], p[2], p[1]]})
several("a_place_twice", lambda p: {"places": [p[0], p[1], p[1]]})
several("a_negative_place", lambda p: {"places": [p[0], p[1], -1]})
several("a_place_far_ahead", lambda p: {"places": [p[0], p[1], p[2] + 1000]})
several("a_place_beyond_all_numbers", lambda p: {"places": [p[0], p[1], 10**40]})
several("a_place_that_is_true", lambda p: {"places": [True, p[1], p[2]]})
several("a_place_too_few", lambda p: {"places": p[:2]})
several("places_that_begin_elsewhere", lambda p: {"places": [p[0] + 1, p[1] + 1, p[2] + 1]})
several("no_places", lambda _: {"places": ...})
several("values_that_are_one", lambda p: {"values": [0.5], "places": p[:1]})
several("a_mean_of_values", lambda _: {"count": 3})
several("values_of_a_row_without_a_name", lambda _: {"key": ""})
several("values_with_text", lambda _: {"values": [0.5, "0.5", 0.5]})


@rule
def a_place_that_was_told(log: Log) -> int | None:
    at = find(log, "measured", "values")
    if at is None:
        return None
    body = log[at].body
    again = put(log, at + 1, "measured", {"arm": body["arm"], "index": body["places"][1], "value": 0.5})
    log[at + 1].key = f"told:{body['arm']}.{body['places'][1]}"
    return again


# Measurements that nobody asked for


def unasked(name: str, key: str | None = None, **body: Any) -> None:
    def break_it(log: Log) -> int | None:
        at = find(log, "recorded", without=("picked",))
        if at is not None and key is not None:
            log[at].key = key
        return change(log, at, **body)

    RULES[name] = break_it


unasked("an_unasked_measurement_of_an_unknown_arm", arm=4)
unasked("an_unasked_measurement_of_a_negative_arm", arm=-1)
unasked("an_unasked_measurement_that_is_whole", value=1)
unasked("an_unasked_measurement_without_a_note", note=...)
unasked("an_unasked_measurement_that_was_not_picked", picked=False)
unasked("an_unasked_measurement_under_a_token", key="told:0.3")
unasked("an_unasked_measurement_under_an_empty_key", key="recorded:")
unasked("an_unasked_measurement_with_a_field_too_many", worker="anna")


# Giving back, and remarks


def given_back(name: str, key: str | None = None, **body: Any) -> None:
    def break_it(log: Log) -> int | None:
        at = find(log, "withdrawn")
        if at is not None:
            log[at].key = key
        return change(log, at, **body)

    RULES[name] = break_it


given_back("a_token_given_back_without_a_reason", reason=...)
given_back("a_token_given_back_for_a_number", reason=5)
given_back("a_token_given_back_of_an_unknown_arm", arm=77)
given_back("a_token_given_back_that_nobody_had", index=5000)
given_back("a_token_given_back_at_a_negative_index", index=-2)
given_back("a_token_given_back_with_a_key", key="withdrawn")
given_back("a_token_given_back_by_nobody", worker="")
given_back("a_token_given_back_by_a_number", worker=3)


@rule
def a_token_given_back_after_it_was_told(log: Log) -> int | None:
    at = single(log)
    if at is None:
        return None
    body = {"arm": log[at].body["arm"], "index": log[at].body["index"], "reason": ""}
    return put(log, at + 1, "withdrawn", body)


def remark(name: str, /, key: str | None = None, **body: Any) -> None:
    def break_it(log: Log) -> int | None:
        return put(log, 4, "noted", body, key)

    RULES[name] = break_it


remark("a_remark_that_is_a_number", text=5)
remark("a_remark_of_nothing")
remark("a_remark_with_a_key", key="k", text="so")
remark("a_remark_with_a_field_too_many", text="so", mood="good")
remark("a_late_value_that_is_text", late="0.5")
remark("a_late_value_that_nobody_told_before", late={"arm": 0, "index": 9, "value": 0.5, "worker": "x"})
remark("a_late_value_of_an_unknown_arm", late={"arm": 9, "index": 0, "value": 0.5, "worker": "x"})


def late(name: str, of: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    def break_it(log: Log) -> int | None:
        at, told = find(log, "noted", "late"), single(log)
        if at is None or told is None:
            return None
        kept = {**log[at].body["late"], **of(log[told].body)}
        return change(log, at, late={name: value for name, value in kept.items() if value is not ...})

    RULES[name] = break_it


late("a_late_value_of_a_token_told_by_itself", lambda told: {"arm": told["arm"], "index": told["index"]})
late("a_late_value_that_is_a_mean", lambda _: {"count": 2})
late("a_late_value_that_is_whole", lambda _: {"value": 1})
late("a_late_value_with_places", lambda _: {"places": [0]})


def late_unasked(name: str, /, key: str | None = None, **body: Any) -> None:
    def break_it(log: Log) -> int | None:
        at = find(log, "recorded", "late")
        if at is not None and key is not None:
            log[at].key = key
        return change(log, at, **body)

    RULES[name] = break_it


late_unasked(
    "an_unasked_late_value_of_a_token_that_nobody_told", late="0.999", key="recorded:late:0.999:ben:0"
)
late_unasked("an_unasked_late_value_of_no_token", late="x", key="recorded:late:x:ben:0")
late_unasked("an_unasked_late_value_with_a_remark", note="so")
late_unasked("an_unasked_late_value_that_was_picked", picked=True)
late_unasked("an_unasked_late_value_under_another_key", key="recorded:mine")
late_unasked("an_unasked_late_value_without_its_token", late=...)


@rule
def an_unasked_late_value_by_who_told_it(log: Log) -> int | None:
    at, told = find(log, "recorded", "late"), single(log)
    if at is None or told is None:
        return None
    worker = log[told].body["worker"]
    log[at].key = f"recorded:late:{log[at].body['late']}:{worker}:0"
    return change(log, at, worker=worker)


# Taking back


def taken_back(name: str, /, key: str | None = None, **body: Any) -> None:
    def break_it(log: Log) -> int | None:
        at = find(log, "voided")
        if at is not None and key is not None:
            log[at].key = key
        return change(log, at, **body)

    RULES[name] = break_it


taken_back("a_value_taken_back_without_a_reason", reason=...)
taken_back("a_value_taken_back_for_an_empty_reason", reason=" ")
taken_back("a_value_taken_back_of_an_unknown_arm", arm=9, key="voided:9.0")
taken_back("a_value_taken_back_that_nobody_told", index=5000, key="voided:0.5000")
taken_back("a_value_taken_back_under_another_key", key="voided:3.77")
taken_back("a_value_taken_back_as_a_mean", count=4)
taken_back("a_value_taken_back_with_a_field_too_many", value=0.5)


@rule
def a_row_recorded_twice(log: Log) -> int | None:
    first = find(log, "measured", "key")
    if first is None:
        return None
    later = next((i for i, line in enumerate(log) if i > first and "value" in line.body), None)
    is_told = later is not None and log[later].kind == "measured"
    return change(log, later, key=log[first].body["key"]) if is_told else None


@rule
def a_value_taken_back_twice(log: Log) -> int | None:
    at = find(log, "voided")
    return None if at is None else put(log, at + 1, "voided", log[at].body, "voided:again")


# Going on, and closing


def longer(name: str, of: Callable[[dict[str, Any]], dict[str, Any]], key: str | None = None) -> None:
    def break_it(log: Log) -> int | None:
        at = find(log, "extended", last=True)
        if at is not None:
            log[at].key = key
        return None if at is None else change(log, at, **of(log[at].body))

    RULES[name] = break_it


def with_parameters(body: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    policy = body["policy"]
    return {"policy": {**policy, "parameters": {**policy["parameters"], **parameters}}}


longer("an_extension_to_delta_point_nine", lambda b: with_parameters(b, delta=0.9))
longer("an_extension_to_delta_zero", lambda b: with_parameters(b, delta=0.0))
longer("an_extension_to_another_epsilon", lambda b: with_parameters(b, epsilon=0.75))
longer("an_extension_with_an_unknown_parameter", lambda b: with_parameters(b, mood="good"))
longer("an_extension_to_a_smaller_budget", lambda _: {"budget": 3})
longer("an_extension_to_no_budget", lambda _: {"budget": None})
longer("an_extension_to_a_fraction_of_budget", lambda _: {"budget": 70_000.5})
longer("an_extension_without_a_budget", lambda _: {"budget": ...})
longer("an_extension_to_no_policy", lambda _: {"policy": {}})
longer("an_extension_to_another_version", lambda b: {"policy": {**b["policy"], "version": 99}})
longer("an_extension_with_a_field_too_many", lambda _: {"mood": "good"})
longer("an_extension_with_values_ahead_that_there_are_not", lambda b: {"n_ahead": b["n_ahead"] + 1})
longer("an_extension_that_does_not_say_what_was_ahead", lambda _: {"n_ahead": ...})
longer("an_extension_with_a_key", lambda _: {}, key="extended")


@rule
def an_extension_to_another_policy(log: Log) -> int | None:
    other = sp.Uniform(delta=0.05) if log[0].body["policy"]["name"] != "Uniform" else sp.CLUCB(delta=0.05)
    return change(log, find(log, "extended", last=True), policy=codec.policy_to_json(other))


@rule
def an_extension_of_another_setting(log: Log) -> int | None:
    at = find(log, "extended", last=True)
    if at is None:
        return None
    parameters = log[at].body["policy"]["parameters"]
    others = {"max_batch": 3, "radius": "published", "max_gap": 7.0, "variant": "authors", "norm_bound": 9.0}
    for name, value in others.items():
        if name in parameters and parameters[name] != value:
            return change(log, at, **with_parameters(log[at].body, **{name: value}))
    return None


@rule
def a_closing_without_a_reason(log: Log) -> int | None:
    return change(log, find(log, "closed", last=True), reason=...)


@rule
def a_closing_for_a_number(log: Log) -> int | None:
    return change(log, find(log, "closed", last=True), reason=5)


@rule
def a_closing_under_another_key(log: Log) -> int | None:
    at = find(log, "closed", last=True)
    if at is not None:
        log[at].key = "7:closed"
    return at


@rule
def a_closing_after_the_end(log: Log) -> int | None:
    return append(log, "closed", {"reason": "again"}, "2:closed again")


@rule
def a_closing_before_a_decision_that_was_due(log: Log) -> int | None:
    asked = [i for i, line in enumerate(log) if line.kind == "asked"]
    return None if len(asked) < 2 else put(log, asked[1], "closed", {"reason": "quick"}, "0:closed")
