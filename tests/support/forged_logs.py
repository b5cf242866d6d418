"""Logs that no session wrote: honest ones with one rule broken each, sealed again with right checksums.

`forgeries` breaks every field of every kind of event (another type, another value, missing, one too many),
keys, times and the order; `RULES` break what holds between events. Each returns the index of the line at
which that shows, or None where the log has nothing to break; `ANYWHERE` is for what shows somewhere.
"""

import copy
import itertools
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from surepick.errors import SurepickError
from surepick.sessions import codec
from surepick.sessions.session import Session
from surepick.store import START, Draft
from surepick.store.log import seal

ANYWHERE = -1
MOST_ROUNDS = 7
NOISE = 0.05  # small, so that most sessions end soon
FREE = {("noted", "text"), ("renamed", "title"), ("closed", "reason"), ("removed", "reason")}
FREE |= {("released", name) for name in ("reason", "worker", "probe", "index")}  # another open request
FREE |= {("measured", "note"), ("measured", "worker"), ("measured", "key"), ("final-batch", "gaussian")}
LATER = {("final-batch", "n"), ("plan-added", "amounts")}  # legal by itself: the next decision shows it


@dataclass
class Line:
    """An event that can be changed; a body that is text is taken as it is."""

    kind: str
    body: Any
    time: float
    key: str | None

    @property
    def text(self):
        return self.body if isinstance(self.body, str) else codec.dumps(self.body)


Log = list[Line]
Rule = Callable[[Log], int | None]
RULES: dict[str, Rule] = {}


def rule(break_it):
    RULES[break_it.__name__] = break_it
    return break_it


def lines_of(session):
    return [Line(e.kind, json.loads(e.body), e.time, e.key) for e in session.events()]


def sealed(log):
    """The log with right checksums, as a forger would give it."""
    return seal([Draft(line.kind, line.text, line.time, line.key) for line in log], START)


def honest(problem, policy, *, n_rounds=MOST_ROUNDS):
    """A log with all that can happen in a session of this policy; refused steps are left out."""
    ticks = itertools.count(1_700_000_000.0)
    session = Session.create(
        *("memory://", "mine", problem),
        policy=policy,
        seed=3,
        budget=50_000,
        lease=50.0,
        clock=lambda: next(ticks),
    )
    rng = random.Random(5)
    arms = problem.probe_names

    def value(name):
        """A measurement of this probe, as `tell` takes it."""
        arms = session.probe_names
        found = 0.05 * arms.index(name) + rng.gauss(0.0, NOISE)
        reads = session.reads(arms.index(name))
        return found if len(reads) == 1 else {read: found + k for k, read in enumerate(reads)}

    def attempt(step):
        try:
            step()
        except SurepickError:
            return

    first, *_ = session.ask(2, worker="anna")
    session.release(first, "rain")
    session.note("began")
    session.rename("A title")
    session.rename("Another title")
    session.tell(first, value(first.probe_name), worker="anna")
    session.tell(first.token, value(first.probe_name), worker="ben")  # late
    for at in range(n_rounds):
        requests = session.ask(4, worker="anna", wait=False)
        for request in requests:
            if at == 1 and request is requests[0]:
                session.tell(request, None, lost=True)
            else:
                session.tell(request, value(request.probe_name), note="so" if at == 2 else "")
        if at == 2:
            session.tell(arms[0], value(arms[0]), key="row 1", worker="carl")
            attempt(lambda: session.remove(1, "the wrong road"))
            attempt(lambda: session.extend(delta=0.05))
        if at == 3:
            attempt(lambda: session.add_plan("late", [1.0] * problem.n_arms))
            attempt(lambda: session.add_plan("later", {problem.arm_names[0]: 1.0, "new": 1.0}, arms=["new"]))
        if not requests or session.status != "running":
            break
    attempt(lambda: session.extend(budget=60_000))
    if session.status == "running":
        attempt(lambda: session.final_batch(len(session.pending()) + 40))
        for request in session.ask(200, worker="anna", wait=False):
            session.tell(request, value(request.probe_name))
    session.close("enough")
    if session.status == "closed":
        attempt(lambda: session.extend(budget=70_000))
        session.close("again")
    return lines_of(session)


def forgeries(log):
    """Yield logs with one field, key or time changed: what it is, the log, and where it shows."""
    chosen = {line.kind: at for at, line in enumerate(log)}  # the last of each kind
    for kind, at in chosen.items():
        if kind == "created":
            continue  # tests/sessions/test_first_events.py
        body = log[at].body
        changes: dict[str, Any] = {
            f"{name} is left out": {n: v for n, v in body.items() if n != name} for name in body
        }
        changes["a field too many"] = {**body, "more": 1}
        for name, value in body.items():
            for odd in _odd(value):
                free = (kind, name) in FREE and type(odd) is type(value)
                free |= name == "budget" and odd in (value + 1, value - 1)  # another larger one
                free |= name == "request" and odd == ""  # a value ahead of the batch, without a request
                free |= (
                    name == "values"
                    and isinstance(odd, list)
                    and sorted(map(str, odd)) == sorted(map(str, value))
                )
                if not free and codec.dumps(odd) != codec.dumps(value):
                    changes[f"{name} is {odd!r:.20}"] = {**body, name: odd}
        for what, changed in changes.items():
            later = (kind, what.partition(" ")[0]) in LATER and what.partition(" ")[2] != "is left out"
            yield f"{kind}: {what}", _with(log, at, body=changed), ANYWHERE if later else at
        for key in (None, "x", *({log[1].key} - {log[at].key})):
            if key != log[at].key:
                yield f"{kind}: its key is {key}", _with(log, at, key=key), at
        yield f"{kind}: dated before", _with(log, at, time=log[at - 1].time - 9), at
        yield f"{kind}: spaces", _with(log, at, body=json.dumps(body, sort_keys=True)), at
        yield f"{kind}: of an unknown kind", _with(log, at, kind="unknown"), at
        if kind not in ("noted", "released"):
            yield (
                f"{kind}: twice",
                [*copy.deepcopy(log[: at + 1]), copy.deepcopy(log[at]), *log[at + 1 :]],
                at + 1,
            )


def _odd(value):
    odd: list[Any] = [None, True, -1, 10**30, 1e300, "x", [], {}]
    if isinstance(value, bool):
        return [*odd, int(value)]
    if isinstance(value, int):
        return [*odd, value + 1, value - 1, float(value)]
    if isinstance(value, float):
        return [*odd, value * 1.001, -value, int(value)]
    if isinstance(value, str):
        return [*odd, value + "0", ""]
    if isinstance(value, list):
        return [*odd, [*value, *value[:1]], value[1:], [*value[1:], *value[:1]], [None, *value]]
    return [*odd, {**value, "more": 1}] if isinstance(value, dict) else odd


def _with(log, at, **changes):
    changed = copy.deepcopy(log)
    for name, value in changes.items():
        setattr(changed[at], name, value)
    return changed


def find(log, kind, holds=lambda body: True):
    return next((at for at, line in enumerate(log) if line.kind == kind and holds(line.body)), None)


def place(body):
    return f"{body['probe']}.{body['index']}"


def move(log, begin, end):
    """Move a line to another place, with the times in order."""
    if begin is None:
        return None
    times = [line.time for line in log]
    log.insert(end, log.pop(begin))
    for line, time in zip(log, times, strict=True):
        line.time = time
    return min(begin, end)


@rule
def a_log_that_begins_with_something_else(log):
    del log[0]
    return 0


@rule
def a_decision_that_is_left_out(log):
    at = next((at for at in range(3, len(log)) if log[at].kind == "asked"), None)
    if at is None:
        return None
    del log[at]
    return ANYWHERE


@rule
def a_decision_before_its_batch_is_complete(log):
    at = next((at for at in range(2, len(log)) if log[at].kind in ("asked", "stopped")), None)
    return None if at is None or log[at - 1].kind != "measured" else move(log, at, at - 1)


@rule
def a_value_that_was_changed(log):
    """Every value moves the numbers, or the decisions, that follow it.

    Behind an oracle those of the first batch guide the design alone, so the last one is changed there.
    """
    last = max(at for at, line in enumerate(log) if line.kind in ("asked", "stopped"))
    removed = {place(line.body) for line in log if line.kind == "removed"}
    used = [
        at
        for at, line in enumerate(log[:last])
        if line.kind == "measured"
        and line.body["request"] == place(line.body) not in removed
        and None not in line.body["values"]
    ]
    if not used:
        return None
    at = used[0 if "plans" in log[0].body["problem"] else -1]
    log[at].body["values"][0] += 5.0  # not all readings: a paired comparison does not see what they share
    return ANYWHERE


@rule
def a_value_that_is_left_out(log):
    at = find(log, "measured", lambda body: body["number"] > 2)
    if at is None:
        return None
    del log[at]
    return ANYWHERE


@rule
def a_value_at_a_place_that_has_one(log):
    first, second = find(log, "measured"), find(log, "measured", lambda body: body["number"] == 5)
    if first is None or second is None:
        return None
    log[second].body |= {name: log[first].body[name] for name in ("probe", "index", "request")}
    log[second].key = log[first].key + "x"
    return second


@rule
def a_value_far_ahead(log):
    at = find(log, "measured", lambda body: body["request"] == place(body))
    if at is None:
        return None
    log[at].body |= {"index": 999, "request": f"{log[at].body['probe']}.999"}
    log[at].key = f"measured:{log[at].body['request']}"
    return at


@rule
def an_extra_value_that_is_not_next(log):
    at = find(log, "measured", lambda body: body["request"] != place(body))
    if at is None:
        return None
    log[at].body["index"] += 1
    log[at].key = f"measured:{place(log[at].body)}"
    return at


@rule
def a_late_value_of_a_request_that_is_open(log):
    at = find(log, "measured", lambda body: body["request"] not in ("", place(body)))
    if at is None:
        return None
    log[at].body["request"] = f"{log[at].body['probe']}.50"
    return at


@rule
def a_late_value_twice(log):
    at = find(log, "measured", lambda body: body["request"] not in ("", place(body)))
    if at is None:
        return None
    again = copy.deepcopy(log[at])
    again.body |= {"number": again.body["number"] + 1, "index": again.body["index"] + 1}
    again.key = f"measured:{place(again.body)}"
    log.insert(at + 1, again)
    return at + 1


@rule
def a_key_that_is_taken(log):
    at = find(log, "measured", lambda body: body["key"] != "")
    later = None if at is None else find(log[at + 1 :], "measured")
    if at is None or later is None:
        return None
    log[at + 1 + later].body["key"] = log[at].body["key"]
    return at + 1 + later


@rule
def a_removal_of_what_was_removed(log):
    at = find(log, "removed")
    if at is None:
        return None
    again = copy.deepcopy(log[at])
    again.key = "removed:again"
    log.insert(at + 1, again)
    return at + 1


@rule
def a_removal_of_what_is_not_there(log):
    at = find(log, "removed")
    if at is None:
        return None
    log[at].body["index"] = 999
    log[at].key = f"removed:{place(log[at].body)}"
    return at


@rule
def a_removal_without_a_reason(log):
    at = find(log, "removed")
    if at is None:
        return None
    log[at].body["reason"] = " "
    return at


@rule
def a_larger_delta(log):
    at = find(log, "extended")
    if at is None:
        return None
    log[at].body["delta"] = 0.9
    return at


@rule
def a_smaller_budget(log):
    at = find(log, "extended")
    if at is None:
        return None
    log[at].body["budget"] = 1
    return at


@rule
def a_session_closed_twice(log):
    at = find(log, "closed")
    if at is None:
        return None
    again = copy.deepcopy(log[at])
    again.body["number"] += 1
    again.key = f"closed:{again.body['number']}"
    log.insert(at + 1, again)
    return at + 1


@rule
def an_answer_that_is_another(log):
    at = find(log, "stopped", lambda body: type(body["plan"]) is int)
    if at is None:
        return None
    log[at].body["plan"] = 1 - min(log[at].body["plan"], 1)
    return at


@rule
def an_answer_without_evidence(log):
    at = next((at for at in range(2, len(log)) if log[at].kind == "asked"), None)
    if at is None:
        return None
    stop = {
        "number": log[at].body["number"],
        "status": "confident",
        "plan": 0,
        "value_sum": 9.0,
        "wealth": 9.0,
    }
    log[at] = Line("stopped", stop, log[at].time, log[at].key)
    del log[at + 1 :]
    return at


def spoiled_plan(**changes):
    def break_it(log):
        at = find(log, "plan-added")
        if at is None:
            return None
        log[at].body |= changes
        return at

    return break_it


RULES["a plan with amounts out of order"] = spoiled_plan(amounts=[[1, 1.0], [0, 1.0]])
RULES["a plan with an amount of nothing"] = spoiled_plan(amounts=[[0, 0.0]])
RULES["a plan of arms that there are not"] = spoiled_plan(amounts=[[99, 1.0]])
RULES["a plan with a whole amount"] = spoiled_plan(amounts=[[0, 1]])
RULES["a plan with a new arm of no kind"] = spoiled_plan(new_arms=[3])
RULES["a plan with an arm that there is"] = spoiled_plan(
    new_arms=[{"name": "tin", "cost": 1.0, "noise": 0.05}]
)
RULES["a plan with values ahead that were not"] = spoiled_plan(n_ahead=77)


def forged(log, name):
    """The log with this rule broken, and the position at which that has to be noticed (0: anywhere)."""
    changed = copy.deepcopy(log)
    at = RULES[name](changed)
    return None if at is None else (sealed(changed), at + 1)
