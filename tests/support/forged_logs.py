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
from surepick.sessions.verify import verify_events
from surepick.store import START, Draft
from surepick.store.log import seal

ANYWHERE = -1
MOST_ROUNDS = 7
NOISE = 0.05  # small, so that most sessions end soon
FREE = {("renamed", "title"), ("closed", "reason"), ("removed", "reason")}
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


def rule(kind=None, holds=lambda body: True, name=None):
    """Register how to break a log, at the first event of this kind with such a body where a kind is given."""

    def register(break_it):
        def broken(log):
            if kind is None:
                return break_it(log)
            at = find(log, kind, holds)
            return None if at is None else break_it(log, at)

        RULES[name or break_it.__name__] = broken

    return register


def lines_of(session):
    return [Line(e.kind, json.loads(e.body), e.time, e.key) for e in session.events()]


def sealed(log):
    """The log with right checksums, as a forger would give it."""
    return seal([Draft(line.kind, line.text, line.time, line.key) for line in log], START)


def verdict_on(log):
    """What `verify` says of these lines, sealed with right checksums."""
    events = sealed(log)
    return verify_events("mine", events, events[-1].head)


def honest(problem, policy, *, n_rounds=MOST_ROUNDS):
    """A log with all that can happen in a session of this policy; refused steps are left out."""
    ticks = itertools.count(1_700_000_000.0)
    options = {"policy": policy, "seed": 3, "budget": 50_000, "lease": 50.0, "clock": lambda: next(ticks)}
    session = Session.create("memory://", "mine", problem, **options)
    rng = random.Random(5)
    arms = problem.probe_names

    def value(name):
        """A measurement of this probe, as `tell` takes it."""
        arms = session.problem.probe_names
        found = 0.05 * arms.index(name) + rng.gauss(0.0, NOISE)
        reads = session.problem.reads(arms.index(name))
        return found if len(reads) == 1 else {read: found + k for k, read in enumerate(reads)}

    def attempt(step):
        try:
            step()
        except SurepickError:
            return

    first, *_ = session.ask(2, worker="anna")
    session.release(first, "rain")
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
        if kind != "released":
            twice = [*copy.deepcopy(log[: at + 1]), copy.deepcopy(log[at]), *log[at + 1 :]]
            yield f"{kind}: twice", twice, at + 1


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


def is_late(body):
    return body["request"] not in ("", place(body))


def changed(log, at, line_key=None, **body):
    log[at].body |= body
    log[at].key = line_key or log[at].key
    return at


def again(log, at, line_key, **body):
    """Write the line a second time, with these changes."""
    log.insert(at + 1, copy.deepcopy(log[at]))
    return changed(log, at + 1, line_key, **body)


def move(log, begin, end):
    """Move a line to another place, with the times in order."""
    times = [line.time for line in log]
    log.insert(end, log.pop(begin))
    for line, time in zip(log, times, strict=True):
        line.time = time
    return min(begin, end)


@rule()
def a_log_that_begins_with_something_else(log):
    del log[0]
    return 0


@rule()
def a_decision_that_is_left_out(log):
    at = next((at for at in range(3, len(log)) if log[at].kind == "asked"), None)
    if at is None:
        return None
    del log[at]
    return ANYWHERE


@rule()
def a_decision_before_its_batch_is_complete(log):
    at = next((at for at in range(2, len(log)) if log[at].kind in ("asked", "stopped")), None)
    return None if at is None or log[at - 1].kind != "measured" else move(log, at, at - 1)


@rule()
def a_value_that_was_changed(log):
    """Every value moves the numbers, or the decisions, that follow it: the first one, too."""
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
    first = next((line.body["decision"] for line in log if line.kind == "asked"), None)
    has_parts = bool(first) and first["replicates"] > 1  # one with a removed value counts for nothing
    at = used[len(used) // 2 if has_parts else 0]
    log[at].body["values"][0] += 5.0  # not all readings: a paired comparison does not see what they share
    return ANYWHERE


@rule("measured", lambda body: body["number"] > 2)
def a_value_that_is_left_out(log, at):
    del log[at]
    return ANYWHERE


@rule("measured", lambda body: body["number"] == 5)
def a_value_at_a_place_that_has_one(log, at):
    first = log[find(log, "measured")]
    return changed(
        log, at, first.key + "x", **{name: first.body[name] for name in ("probe", "index", "request")}
    )


@rule("measured", lambda body: body["request"] == place(body))
def a_value_far_ahead(log, at):
    request = f"{log[at].body['probe']}.999"
    return changed(log, at, f"measured:{request}", index=999, request=request)


@rule("measured", lambda body: body["request"] != place(body))
def an_extra_value_that_is_not_next(log, at):
    probe, index = log[at].body["probe"], log[at].body["index"] + 1
    return changed(log, at, f"measured:{probe}.{index}", index=index)


@rule("measured", is_late)
def a_late_value_of_a_request_that_is_open(log, at):
    return changed(log, at, request=f"{log[at].body['probe']}.50")


@rule("measured", is_late)
def a_late_value_twice(log, at):
    body = log[at].body
    key = f"measured:{body['probe']}.{body['index'] + 1}"
    return again(log, at, key, number=body["number"] + 1, index=body["index"] + 1)


@rule("measured", lambda body: body["key"] != "")
def a_key_that_is_taken(log, at):
    later = find(log[at + 1 :], "measured")
    return None if later is None else changed(log, at + 1 + later, key=log[at].body["key"])


@rule("removed")
def a_removal_of_what_was_removed(log, at):
    return again(log, at, "removed:again")


@rule("removed")
def a_removal_of_what_is_not_there(log, at):
    return changed(log, at, f"removed:{log[at].body['probe']}.999", index=999)


@rule("closed")
def a_session_closed_twice(log, at):
    number = log[at].body["number"] + 1
    return again(log, at, f"closed:{number}", number=number)


@rule("stopped", lambda body: type(body["plan"]) is int)
def an_answer_that_is_another(log, at):
    return changed(log, at, plan=1 - min(log[at].body["plan"], 1))


@rule()
def an_answer_without_evidence(log):
    at = next((at for at in range(2, len(log)) if log[at].kind == "asked"), None)
    if at is None:
        return None
    stop = {"number": log[at].body["number"], "status": "confident", "plan": 0}
    log[at:] = [Line("stopped", {**stop, "value_sum": 9.0, "wealth": 9.0}, log[at].time, log[at].key)]
    return at


for kind, name, body in (
    ("removed", "a removal without a reason", {"reason": " "}),
    ("extended", "a larger delta", {"delta": 0.9}),
    ("extended", "a smaller budget", {"budget": 1}),
    ("plan-added", "a plan with amounts out of order", {"amounts": [[1, 1.0], [0, 1.0]]}),
    ("plan-added", "a plan with an amount of nothing", {"amounts": [[0, 0.0]]}),
    ("plan-added", "a plan of arms that there are not", {"amounts": [[99, 1.0]]}),
    ("plan-added", "a plan with a whole amount", {"amounts": [[0, 1]]}),
    ("plan-added", "a plan with a new arm of no kind", {"new_arms": [3]}),
    (
        "plan-added",
        "a plan with an arm that there is",
        {"new_arms": [{"name": "tin", "cost": 1.0, "noise": 0.05}]},
    ),
    ("plan-added", "a plan with values ahead that were not", {"n_ahead": 77}),
):
    rule(kind, name=name)(lambda log, at, body=body: changed(log, at, **body))


def forged(log, name):
    """The log with this rule broken, and the position at which that has to be noticed (0: anywhere)."""
    changed = copy.deepcopy(log)
    at = RULES[name](changed)
    return None if at is None else (sealed(changed), at + 1)
