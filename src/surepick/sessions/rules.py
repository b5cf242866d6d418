"""What a session can write: for each kind of event, what is allowed in a given state of the ledger.

An event that no rule allows was written by nobody honest. `replay` checks every event of a log by these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from surepick.core.new_arms import NewArm, settled
from surepick.core.policy import check_gaussian
from surepick.core.problem import Problem
from surepick.sessions import codec
from surepick.sessions.arriving import ADDED, growing
from surepick.sessions.ending import check_last_call
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Token, probe_in, readings_in
from surepick.sessions.settings import Body
from surepick.sessions.told_values import check_numbers, refuse_unasked
from surepick.sessions.voiding import refuse_void, refuse_void_unasked

LONGEST_TOKEN = 10**18  # tokens are written with at most 18 digits


_Kinds = type | tuple[type, ...]


class ForgedError(Exception):
    """An event that no session writes at this point of its log; `verify` makes an objection of it."""


def require(holds: bool, otherwise: str) -> None:
    """Refuse the event unless this holds."""
    if not holds:
        raise ForgedError(otherwise)


def shape(body: Body, needed: Mapping[str, _Kinds], optional: Mapping[str, _Kinds] | None = None) -> None:
    """The body has what is needed, perhaps what is optional, and nothing else; true is no number."""
    allowed = {**needed, **(optional or {})}
    for name in needed:
        require(name in body, f"it lacks {name!r}")
    for name, value in body.items():
        require(name in allowed, f"it has {name!r}, which no session writes")
        kinds = allowed[name]
        require(
            type(value) in (kinds if isinstance(kinds, tuple) else (kinds,)), f"its {name!r} is {value!r}"
        )


def _place(ledger: Ledger) -> Mapping[str, _Kinds]:
    """How an event of this session says what it is about."""
    return {ledger.setup.problem.probe_word: int, "index": int}


def _probe(ledger: Ledger, body: Body) -> int:
    problem, probe = ledger.setup.problem, probe_in(body)
    require(0 <= probe < problem.n_probes, f"there is no {problem.probe_word} {probe}")
    return probe


def _token(ledger: Ledger, body: Body) -> Token:
    probe, index = _probe(ledger, body), body["index"]
    require(0 <= index < LONGEST_TOKEN, f"there is no measurement {index} of it")
    return Token(probe, index)


def _check_values(ledger: Ledger, body: Body) -> None:
    """Require one value, several, or readings by name, each of them one that `tell` accepts."""
    problem, probe = ledger.problem, probe_in(body)
    reads, form = problem.reads(probe), [name for name in ("value", "values", "readings") if name in body]
    require(len(form) == 1, "it has either a value or values")
    require(
        (form == ["readings"]) == (len(reads) > 1), "readings are of a probe with several, and of no other"
    )
    require(body.get("worker") != "", "its worker has no name")
    told = body["values"] if form == ["values"] else list(readings_in(body).values())
    require("values" not in body or len(told) > 1, "it has values and not more than one")
    if form == ["readings"]:
        names = [name for name in reads if name in body["readings"]]
        require(sorted(names) == list(body["readings"]) != [], f"its readings are not of {list(reads)}")
        whole = len(names) == len(reads) or not problem.must_be_whole(probe)
        require(whole, "readings that belong together are missing")
    for value in told:
        require(type(value) is float, f"the value {value!r} is not written as measurements are")
    check_numbers(problem, body)


def _measured(ledger: Ledger, body: Body, key: str | None) -> None:
    optional = {
        "value": float,
        "values": list,
        "readings": dict,
        "places": list,
        "worker": str,
        "key": str,
        "after_end": bool,
    }
    shape(body, _place(ledger), optional)
    token = _token(ledger, body)
    require(str(key).startswith(f"told:{token}"), f"its key is {key!r} and should be 'told:{token}'")
    of = ledger.tapes.of[token.probe]
    require(not of.is_told(token.index), f"token '{token}' was told already")
    require(body.get("after_end", False) == ledger.is_over, "it says otherwise whether the session had ended")
    require(body.get("after_end") is not False, "it has 'after_end' without meaning it")
    refuse_unasked(ledger, token)
    require(body.get("key") not in ("", *ledger.keys), "its key is empty, or that of another value")
    _check_values(ledger, body)
    if of.is_begun(token.index):
        reads, untold = ledger.problem.reads(token.probe), of.untold(token.index)
        new = all(reads.index(name) in untold for name in body["readings"])
        require(new, "it has readings that were told already")
    require(("places" in body) == ("values" in body), "several values have places, and one has none")
    if "places" in body:
        _check_places(ledger, token, body["places"], len(body["values"]))


def _check_places(ledger: Ledger, token: Token, places: list[Any], n_values: int) -> None:
    are_numbers = all(type(place) is int and place < LONGEST_TOKEN for place in places)
    require(are_numbers, "a place is a whole number")
    require(len(places) == n_values, f"it has {n_values} values for {len(places)} places")
    require(places[0] == token.index, "its first place is not that of its token")
    require(sorted(set(places)) == places, "its places are not in order")
    told = [place for place in places if ledger.tapes.of[token.probe].is_told(place)]
    require(not told, f"the places {told} were told already")


def _recorded(ledger: Ledger, body: Body, key: str | None) -> None:
    word, told = ledger.setup.problem.probe_word, {"value": float, "readings": dict}
    shape(body, {word: int, "note": str}, {**told, "picked": bool, "late": str, "worker": str})
    _probe(ledger, body)
    require(body.get("picked") is not False, "it has 'picked' without meaning it")
    named = key is None or (key.startswith("recorded:") and key != "recorded:")
    require(named, f"its key is {key!r} and should be none or begin with 'recorded:'")
    _check_values(ledger, body)
    if "late" not in body:
        require("worker" not in body, "it has a worker, which only late values have")
        return
    require(
        re.fullmatch(r"(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})", body["late"]) is not None, "it has no token"
    )
    require("picked" not in body and body["note"] == "", "it is late, and has a remark")
    require(body.get("worker") != "", "its worker has no name")
    begin = f"recorded:late:{body['late']}:{body.get('worker', '')}:"
    require(
        str(key).startswith(begin) and str(key)[len(begin) :].isdigit(), "its key is not that of a late value"
    )


def _voided(ledger: Ledger, body: Body, key: str | None) -> None:
    if "event" in body:
        shape(body, {ledger.setup.problem.probe_word: int, "event": int, "reason": str})
        require(key == f"voided:{body['event']}", f"its key is {key!r}, not 'voided:{body['event']}'")
        require(body["reason"].strip() != "", "it has no reason")
        refuse_void_unasked(ledger, body["event"])
        return
    shape(body, {**_place(ledger), "reason": str})
    token = _token(ledger, body)
    require(key == f"voided:{token}", f"its key is {key!r} and should be 'voided:{token}'")
    require(body["reason"].strip() != "", "it has no reason")
    refuse_void(ledger, token)


def _withdrawn(ledger: Ledger, body: Body, key: str | None) -> None:
    shape(body, {**_place(ledger), "reason": str}, {"worker": str})
    token = _token(ledger, body)
    require(body.get("worker") != "", "its worker has no name")
    require(key is None, f"it has the key {key!r}, and such events have none")
    told = ledger.tapes.of[token.probe].is_told(token.index)
    require(not told, f"token '{token}' was told already")
    refuse_unasked(ledger, token)


def _noted(ledger: Ledger, body: Body, key: str | None) -> None:
    if "title" in body:
        shape(body, {"title": str})  # whoever has counted the titles knows its key
        return
    shape(body, {}, {"text": str, "late": dict})
    require(key is None, f"it has the key {key!r}, and such events have none")
    require(len(body) == 1, "it has either a text or a late measurement")
    if "late" in body:
        late = body["late"]
        kinds = {"value": float, "values": list, "readings": dict, "worker": str}
        shape(late, _place(ledger), kinds)
        token = _token(ledger, late)
        _check_values(ledger, late)
        begun = ledger.tapes.of[token.probe].is_begun(token.index)
        require(begun, f"it is noted as late, and nobody had told token '{token}'")


def _extended(ledger: Ledger, body: Body, key: str | None) -> None:
    shape(body, {"policy": dict, "budget": (int, type(None)), "n_ahead": int})
    require(key is None, f"it has the key {key!r}, and such events have none")
    before = ledger.setup
    try:
        policy = codec.policy_from_json(body["policy"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ForgedError(f"its policy cannot be read: {error}") from None
    changes = {
        name: getattr(policy, name) for name in ("delta", "epsilon") if name in body["policy"]["parameters"]
    }
    after = before.extended(changes, body["budget"])
    require(body["n_ahead"] == ledger.tapes.n_ahead, "it has another number of values told ahead")
    written = {"policy": codec.policy_to_json(after.policy), "budget": after.budget}
    require(
        codec.dumps({**written, "n_ahead": body["n_ahead"]}) == codec.dumps(body),
        "an extension makes delta or epsilon smaller or the budget larger, and changes nothing else",
    )


def _added(ledger: Ledger, body: Body, key: str | None) -> None:
    shape(body, {"name": str, "amounts": list, "n_ahead": int}, {"new_arms": list})
    require(key == f"plan:{body['name']}", f"its key is {key!r} and should be 'plan:{body['name']}'")
    problem, arms = growing(ledger), []
    require(body.get("new_arms") != [], "it has new arms, and there are none")
    for arm in body.get("new_arms", ()):
        _check_new_arm(problem, arm)
    n_arms = problem.n_arms + len(body.get("new_arms", ()))
    for pair in body["amounts"]:
        both = type(pair) is list and [type(part) for part in pair] == [int, float]
        require(both and 0 <= pair[0] < n_arms and pair[1] != 0, f"its amount {pair!r} is none")
        arms.append(pair[0])
    require(sorted(set(arms)) == arms, "its amounts are not in the order of the arms")
    require(body["n_ahead"] == ledger.tapes.n_ahead, "it has another number of values told ahead")


def _check_new_arm(problem: Problem, arm: Any) -> None:
    """A new arm is written with all that is known of it."""
    require(type(arm) is dict, f"its new arm {arm!r} is none")
    shape(arm, {"name": str, "cost": float}, {"noise": float, "low": float, "high": float})
    written = [one.to_json() for one in settled(problem, [NewArm.from_json(arm)])]
    require(codec.dumps(written) == codec.dumps([arm]), f"its new arm {arm!r} is not written as sessions do")


def _called(ledger: Ledger, body: Body, key: str | None) -> None:
    shape(body, {"n": int, "gaussian": bool, "n_ahead": int})
    require(key == ledger.calling_key(), f"its key is {key!r} and should be {ledger.calling_key()!r}")
    require(not ledger.is_over, "the session had ended, so there was no last call")
    require(body["n_ahead"] == ledger.tapes.n_ahead, "it has another number of values told ahead")
    check_gaussian(ledger.setup.problem, gaussian=body["gaussian"])
    check_last_call(ledger, body["n"])


def _closed(ledger: Ledger, body: Body, key: str | None) -> None:
    shape(body, {"reason": str})
    require(not ledger.is_over, "the session had ended already")
    require(key == ledger.closing_key(), f"its key is {key!r} and should be {ledger.closing_key()!r}")


RULES: dict[str, Callable[[Ledger, Body, str | None], None]] = {
    "measured": _measured,
    "recorded": _recorded,
    "voided": _voided,
    "withdrawn": _withdrawn,
    "noted": _noted,
    "extended": _extended,
    "closed": _closed,
    "called": _called,
    ADDED: _added,
}
