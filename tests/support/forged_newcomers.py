"""More logs that no session wrote: plans that arrive, last calls, titles, unasked values, readings.

As in `forged_logs`, each function breaks one rule of an honest log and says at which line that shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import surepick as sp
from forged_logs import ANYWHERE, Log, Rule, change, find, lines_of, put
from surepick.sessions.session import Session

PLAN, CALL = "plan-added", "called"
PLANS = {"by bus": "bus + walk", "by train": "train + walk"}
PROBES = {"north": ["a", "b"], "south": ["c", "d"], "mix": {"a": 1, "c": -1}}
MEANS = {"bus": 20.0, "train": 25.0, "walk": 6.0, "bike": 8.0, "tram": 15.0}


def arrivals() -> Log:
    """Titles, an unasked value that is taken back, two plans that arrive, and a last call to the end."""
    problem = sp.Problem(PLANS, arms=["bus", "train", "walk", "bike"], noise=2.0, goal="smallest")
    session = _begun(problem, sp.BetGapE(delta=1e-6))
    session.rename("To work")
    session.rename("To work and back")
    session.add_extra("bus", 21.0, key="sheet")
    (unasked,) = [event.position for event in session.events() if event.kind == "recorded"]
    session._remove(str(unasked), "another bus")
    _measure(session, 6)
    session.add_plan("by bike", "bike + walk")
    _measure(session, 6)
    session.add_plan("by tram", "tram + walk", new_arms=["tram"])
    _measure(session, 12)
    session.final_batch(40)
    _measure(session, 1000)
    return lines_of(session)


def readings() -> Log:
    """Probes that are told at once, in parts, and with a reading lost."""
    plans = [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    problem = sp.Problem(plans, arms=list("abcd"), noise=1.0, measure=PROBES, goal="largest")
    session = _begun(problem, sp.BetGapE(delta=0.2))
    rng, n = np.random.default_rng(3), 0
    while n < 30 and (requests := session.ask(3)):
        for request in requests:
            names = problem.reads(request.probe)
            use = {name: float(rng.standard_normal()) for name in names}
            n += 1
            if len(names) == 1:
                session.tell(request, use[names[0]])
            elif n % 3 == 0:
                session.tell(request, {names[0]: use[names[0]]})
                session.release(request, "the gauge broke")
            elif n % 3 == 1:
                session.tell(request, {names[0]: use[names[0]]})
                session.tell(request, {name: use[name] for name in names[1:]})
            else:
                session.tell(request, use)
    return lines_of(session)


def _begun(problem: sp.Problem, policy: sp.Policy) -> Session:
    ticks = itertools.count(1_700_000_000.0)
    return Session.create("memory://", "mine", problem, policy=policy, budget=5000, clock=lambda: next(ticks))


def _measure(session: Session, n: int) -> None:
    rng = np.random.default_rng(session.ledger().n_told)
    for _ in range(n):
        for request in session.ask(1, wait=False):
            session.tell(request, MEANS[request.arm_name] + 2.0 * float(rng.standard_normal()))


def rekeyed(log: Log, at: int | None, key: str | None) -> int | None:
    if at is not None:
        log[at].key = key
    return at


def left_out(log: Log, at: int | None) -> int | None:
    """Without this line, as if it had never been written."""
    if at is None:
        return None
    del log[at]
    return ANYWHERE


def again(log: Log, kind: str, key: str | None = None) -> int | None:
    """A second one right after the first."""
    at = find(log, kind)
    return None if at is None else put(log, at + 1, kind, dict(log[at].body), key or log[at].key)


def later(log: Log, kind: str, body: dict[str, Any], key: str) -> int | None:
    """One more at the end of the log."""
    return put(log, len(log), kind, body, key)


def amounts(of: Callable[[list[Any]], list[Any]]) -> Rule:
    return lambda log: change(log, find(log, PLAN), amounts=of(log[find(log, PLAN) or 0].body["amounts"]))


def new_arm(**fields: Any) -> Rule:
    def break_it(log: Log) -> int | None:
        at = find(log, PLAN, "new_arms")
        arm = {**log[at or 0].body["new_arms"][0], **fields}
        return change(log, at, new_arms=[{k: v for k, v in arm.items() if v is not ...}])

    return break_it


def shifted(log: Log, kind: str, field: str, by: int) -> int | None:
    at = find(log, kind)
    return None if at is None else change(log, at, **{field: log[at].body[field] + by})


OF_PLANS: dict[str, Rule] = {
    "a plan under the key of another": lambda log: rekeyed(log, find(log, PLAN), "plan:by tram?"),
    "a plan without a key": lambda log: rekeyed(log, find(log, PLAN), None),
    "a plan twice": lambda log: again(log, PLAN),
    "a plan with the name of another": lambda log: rekeyed(
        log, change(log, find(log, PLAN), name="by bus"), "plan:by bus"
    ),
    "a plan whose name is a number": lambda log: change(log, find(log, PLAN), name=3),
    "a plan that uses nothing": lambda log: _somewhere(change(log, find(log, PLAN), amounts=[])),
    "a plan with an arm that there is not": amounts(lambda pairs: [*pairs, [77, 1.0]]),
    "a plan with a negative arm": amounts(lambda pairs: [[-1, 1.0], *pairs]),
    "a plan with nothing of an arm": amounts(lambda pairs: [[0, 0.0], *pairs]),
    "a plan with amounts out of order": amounts(lambda pairs: pairs[::-1]),
    "a plan with an arm twice": amounts(lambda pairs: [pairs[0], *pairs]),
    "a plan with whole amounts": amounts(lambda pairs: [[arm, int(n)] for arm, n in pairs]),
    "a plan that was chosen by more values": lambda log: shifted(log, PLAN, "n_ahead", 1),
    "a plan with a field too many": lambda log: change(log, find(log, PLAN), worth=3.0),
    "a plan that is another one": lambda log: _somewhere(change(log, find(log, PLAN), amounts=[[0, 1.0]])),
    "a plan that was left out": lambda log: left_out(log, find(log, PLAN)),
    "a plan after the end": lambda log: later(
        log, PLAN, {"amounts": [[0, 1.0]], "n_ahead": 0, "name": "late"}, "plan:late"
    ),
    "new arms and none": lambda log: change(log, find(log, PLAN, "new_arms"), new_arms=[]),
    "a new arm that is known": new_arm(name="bus"),
    "a new arm that costs nothing": new_arm(cost=0.0),
    "a new arm that costs a whole number": new_arm(cost=1),
    "a new arm without noise": new_arm(noise=...),
    "a new arm with negative noise": new_arm(noise=-1.0),
    "a new arm with bounds backwards": new_arm(bounds=[1.0, 0.0]),
    "a new arm with a field too many": new_arm(colour="red"),
    "a new arm that is text": lambda log: change(log, find(log, PLAN, "new_arms"), new_arms=["tram"]),
}
OF_CALLS: dict[str, Rule] = {
    "a last call for more": lambda log: _somewhere(shifted(log, CALL, "n", 7)),
    "a last call for less than is open": lambda log: change(log, find(log, CALL), n=0),
    "a last call for a fraction": lambda log: change(log, find(log, CALL), n=40.0),
    "a last call beyond the budget": lambda log: change(log, find(log, CALL), n=10**9),
    "a last call that says yes by a number": lambda log: change(log, find(log, CALL), gaussian=1),
    "a last call after other values ahead": lambda log: shifted(log, CALL, "n_ahead", 1),
    "a last call with a field too many": lambda log: change(log, find(log, CALL), reason="tired"),
    "a last call under another key": lambda log: rekeyed(log, find(log, CALL), "7:called"),
    "a last call without a key": lambda log: rekeyed(log, find(log, CALL), None),
    "a last call twice": lambda log: again(log, CALL, "0:called again"),
    "a last call that was left out": lambda log: left_out(log, find(log, CALL)),
    "a last call after the end": lambda log: later(
        log, CALL, {"gaussian": False, "n": 5, "n_ahead": 0}, "9:called"
    ),
}
OF_TITLES: dict[str, Rule] = {
    "a title that is a number": lambda log: change(log, find(log, "noted", "title"), title=3),
    "a title with a remark": lambda log: change(log, find(log, "noted", "title"), text="hello"),
    "a title without a number": lambda log: rekeyed(log, find(log, "noted", "title"), None),
    "a title out of turn": lambda log: rekeyed(log, find(log, "noted", "title"), "title:2"),
    "a title that was left out": lambda log: left_out(log, find(log, "noted", "title")),
}
OF_UNASKED_VOIDS: dict[str, Rule] = {
    "an unasked value taken back by another number": lambda log: rekeyed(
        log, shifted(log, "voided", "event", 1), f"voided:{log[find(log, 'voided') or 0].body['event'] + 1}"
    ),
    "an unasked value taken back under another key": lambda log: rekeyed(
        log, find(log, "voided", "event"), "voided:1"
    ),
    "an unasked value taken back of another arm": lambda log: change(
        log, find(log, "voided", "event"), arm=1
    ),
    "an unasked value taken back without a reason": lambda log: change(
        log, find(log, "voided", "event"), reason=" "
    ),
    "an unasked value taken back twice": lambda log: again(log, "voided", "voided:again"),
    "an unasked value taken back with an index": lambda log: change(
        log, find(log, "voided", "event"), index=0
    ),
}


def reading(of: Callable[[dict[str, float]], dict[str, Any]], *, part: bool = False) -> Rule:
    def break_it(log: Log) -> int | None:
        at = _part(log) if part else find(log, "measured", "readings")
        return None if at is None else change(log, at, readings=of(log[at].body["readings"]))

    return break_it


OF_READINGS: dict[str, Rule] = {
    "a reading that there is not": reading(lambda told: {**told, "z": 1.0}),
    "no reading at all": reading(lambda told: {}),
    "a reading that is a whole number": reading(lambda told: dict.fromkeys(told, 1)),
    "a reading that is no measurement": reading(lambda told: dict.fromkeys(told, 1e300)),
    "readings and a value": lambda log: change(log, find(log, "measured", "readings"), value=1.0),
    "a value of a probe with readings": lambda log: change(
        log, find(log, "measured", "readings"), readings=..., value=1.0
    ),
    "a reading of a probe that there is not": lambda log: change(
        log, find(log, "measured", "readings"), probe=9
    ),
    "a measurement of an arm where probes are read": lambda log: change(
        log, find(log, "measured", "readings"), probe=..., arm=0
    ),
    "a reading twice": reading(lambda told: {"a": 0.5} if "b" in told else {"c": 0.5}, part=True),
    "a part under the key of another": lambda log: rekeyed(log, _part(log), "told:0.0+9"),
    "a use given back of a probe that there is not": lambda log: change(log, find(log, "withdrawn"), probe=9),
    "a loss that was left out": lambda log: left_out(log, find(log, "withdrawn")),
}
LOGS: dict[str, tuple[Callable[[], Log], dict[str, Rule]]] = {
    "arrivals": (arrivals, {**OF_PLANS, **OF_CALLS, **OF_TITLES, **OF_UNASKED_VOIDS}),
    "readings": (readings, OF_READINGS),
}


def _somewhere(at: int | None) -> int | None:
    """What shows in a later decision."""
    return None if at is None else ANYWHERE


def _part(log: Log) -> int | None:
    """The first line with a second part of some readings."""
    parts = [i for i, line in enumerate(log) if line.kind == "measured" and "+" in str(line.key)]
    return parts[0] if parts else None
