"""What a session can write: for each kind of event, what is allowed in a given state of the ledger.

An event that no rule allows was written by nobody honest. `verify` replays a log with `Replay`: every event
is checked against the state that the events before it give, and decisions are not checked but made again.
Opening a session is more lenient: there the log is right, whatever it says.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from surepick.core.layout import Layout
from surepick.core.new_arms import NewArm, settled
from surepick.core.oracle_problem import Best, OracleProblem
from surepick.core.pilot import check_gaussian
from surepick.core.problem import Problem
from surepick.core.wording import shortened
from surepick.errors import MissingFunctionError, SurepickError
from surepick.sessions import codec
from surepick.sessions.arriving import ADDED, growing
from surepick.sessions.ending import check_last_call
from surepick.sessions.leasing import AHEAD
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Token, probe_in, readings_in, told_key
from surepick.sessions.settings import LATER, Body, NewSession, Setup
from surepick.sessions.telling import check_numbers, refuse_long_mean, refuse_unasked
from surepick.sessions.voiding import refuse_void, refuse_void_unasked
from surepick.store import Event

DECISIONS = ("asked", "stopped")
# A log that makes a policy fail was not written by a session that went on with it.
FAILURES = (SurepickError, ArithmeticError, LookupError, ValueError, AssertionError)
LONGEST_TOKEN = 10**18  # tokens are written with at most 18 digits

VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:[.a-z+-][.a-z0-9+-]{0,40})?")

_Kinds = type | tuple[type, ...]


class ForgedError(Exception):
    """An event that no session writes at this point of its log; `verify` makes an objection of it."""


class Replay:
    """A ledger that takes in nothing but what a session can write; it changes by `take` alone."""

    def __init__(self, first: Event, oracle: Best | OracleProblem | None = None) -> None:
        body = _body_of(first)
        _require(
            first.kind == "created" and first.key is None, "a log begins with an event of kind 'created'"
        )
        self.setup = checked_setup(body, oracle)
        self.name: str | None = body.get("name")
        self.surepick: str = body["surepick"]
        self.is_old = first.is_old
        self.ledger = Ledger(self.setup)
        self.n_extended = 0
        self._time = -math.inf
        self._keys: set[str] = set()
        self._told: dict[Token, Body] = {}  # by the token under which it was told; of parts the first
        self._n_parts: dict[Token, int] = {}
        self._unasked: dict[int, int] = {}  # by the event that recorded it: its probe
        self._asked_up_to: dict[int, int] = {}  # by probe: the furthest end of a round so far
        self._check_time(first)

    def take(self, event: Event) -> None:
        """Take in the next event, or say with a `ForgedError` why no session writes it here."""
        body = _body_of(event)
        self._check_time(event)
        if event.key is not None:
            _require(event.key not in self._keys, f"the key {event.key!r} is in the log already")
            self._keys.add(event.key)
        if event.kind in DECISIONS:
            self._decide(event)
        else:
            try:
                self._check(event, body)
                self.ledger.apply(event.kind, body, event.position)
            except ForgedError:
                raise
            except FAILURES as error:  # what `tell` and the others refuse, and what no policy can take
                raise ForgedError(str(error)) from None

    def _check_time(self, event: Event) -> None:
        """Times are finite and, but in old logs, where it was not seen to, none is before another."""
        _require(type(event.time) is float and math.isfinite(event.time), "its time is no finite number")
        _require(self.is_old or event.time >= self._time, "it is dated before the event that it follows")
        self._time = event.time

    def _decide(self, event: Event) -> None:
        """The decision of the log has to be the one that the policy makes."""
        _require(not self.ledger.is_over, "the session had ended, so nothing was left to decide")
        _require(
            self.ledger.is_due, "the round is not complete, and a policy decides on complete rounds alone"
        )
        try:
            made = self.ledger.decide_once()
        except MissingFunctionError:
            raise
        except FAILURES as error:
            raise ForgedError(f"the policy cannot decide here: {type(error).__name__}: {error}") from None
        if (made.kind, codec.dumps(made.body)) != (event.kind, event.body):
            raise ForgedError(
                f"in round {self.ledger.n_rounds} the log has another decision than the policy takes, which "
                f"is {made.kind} {shortened(codec.dumps(made.body), 200, '...')}"
            )
        _require(event.key == made.key, f"its key is {event.key!r} and should be {made.key!r}")
        tapes = self.ledger.tapes
        for probe in tapes.probes_of_round():
            self._asked_up_to[probe] = max(self._asked_up_to.get(probe, 0), tapes.end_of_round(probe))

    def _check(self, event: Event, body: Body) -> None:
        if event.kind not in RULES:
            raise ForgedError("no session writes such an event here")
        RULES[event.kind](self.ledger, body, event.key)
        if event.kind == "measured":
            token, part = Token.of(body), self._n_parts.get(Token.of(body), 0)
            _require(event.key == told_key(token, part), f"its key should be {told_key(token, part)!r}")
            self._check_skipped(token.probe, body.get("places", ()))
            self._told.setdefault(token, body)
            self._n_parts[token] = part + 1
        elif event.kind == "noted" and "title" in body:
            number = sum(key.startswith("title:") for key in self._keys)
            _require(event.key == f"title:{number}", f"it is title {number}, and its key is {event.key!r}")
        elif event.kind == "noted" and "late" in body:
            self._check_late(body["late"])
        elif event.kind == "recorded":
            self._unasked[event.position] = probe_in(body)
            if "late" in body:
                self._check_recorded_late(body)
        elif event.kind == "voided" and "event" in body:
            probe = self._unasked.get(body["event"])
            _require(probe is not None, f"event {body['event']} records nothing that nobody had asked for")
            _require(probe == probe_in(body), "it names another arm or probe than what it takes back")
        elif event.kind == "voided":
            told = self._told.get(Token.of(body), {})
            averaged = self.ledger.tapes.is_averaged(Token.of(body))
            _require(not averaged or "count" in told, "it is a part of a mean, which is voided as a whole")
            _require(body.get("count") == told.get("count"), "its count is not that of what was told")
        elif event.kind == "extended":
            self.n_extended += 1
        elif event.kind == "closed":
            due = self.ledger.is_due and not self.is_old
            _require(not due, "the round was complete, and a session is not closed before it has decided")

    def _check_skipped(self, probe: int, places: list[int]) -> None:
        """Of several values, a place may be left out if it is told, or may have been in another's hands."""
        tapes, handed_out = self.ledger.tapes, self._asked_up_to.get(probe, 0) + AHEAD
        for before, place in itertools.pairwise(places):
            skipped = range(max(before + 1, handed_out), place)
            told = len(skipped) <= tapes.n_told and all(tapes.is_told(Token(probe, i)) for i in skipped)
            _require(told, f"place {place} is not the next free one after {before}")

    def _check_recorded_late(self, body: Body) -> None:
        """A value that is recorded as late came after one of another worker under the same token."""
        first = self._told.get(Token.parse(body["late"]))
        _require(first is not None, f"it is recorded as late, and nobody had told token {body['late']!r}")
        assert first is not None
        other = first.get("worker", "") != body.get("worker", "")
        _require(
            other and probe_in(first) == probe_in(body), "it is recorded as late, and is not another worker's"
        )

    def _check_late(self, late: Body) -> None:
        token = Token.of(late)
        first = self._told.get(token)
        if first is None or self._n_parts[token] > 1:
            return  # it was told as one of several, under another token, or in parts by several workers
        same = all(first.get(name) == late.get(name) for name in ("value", "values", "count", "readings"))
        other = first.get("worker", "") != late.get("worker", "")
        _require(other and not same, "it is noted as late, and is by the worker who told it or says the same")


def checked_setup(body: Body, oracle: Best | OracleProblem | None) -> Setup:
    """What the first event of a log says, refused unless a new session would write the same.

    A function that is missing and a policy of another version are no forgery: they are raised as they are.
    """
    try:
        setup = Setup.from_json(body, oracle)
        name = body.get("name", "any")
        new = NewSession(
            setup.problem,
            setup.policy,
            name,
            setup.seed,
            setup.budget,
            body["lease"],
            setup.pilot,
            setup.past,
        ).to_json()
        layout = Layout.from_json(body.get("layout"))
    except MissingFunctionError:
        raise
    except SurepickError as error:
        if _is_of_another_version(body):
            raise
        raise ForgedError(f"its settings are none that a session begins with: {error}") from None
    except Exception as error:  # any JSON may stand there
        raise ForgedError(f"its settings cannot be read: {type(error).__name__}: {error}") from None
    _require(version_of(body.get("surepick")) is not None, "it does not say which surepick began the session")
    written = {
        **{name: value for name, value in new.items() if name != "layout"},
        "surepick": body["surepick"],
        **({} if layout is None else {"layout": layout.to_json()}),
    }
    for name in (*LATER, "name"):
        if name not in body:  # a session begun before there was such a thing
            written.pop(name)
    differing = [name for name in sorted({*written, *body}) if not _same(written, body, name)]
    _require(not differing, f"no session begins with its {', '.join(map(repr, differing))}")
    return setup


def version_of(text: object) -> tuple[int, ...] | None:
    """The numbers of a version of surepick; None if it is none.

    >>> version_of("0.1.0"), version_of("1.2.3.dev4"), version_of("x")
    ((0, 1, 0), (1, 2, 3), None)
    """
    found = VERSION.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else tuple(map(int, found.groups()))


def _is_of_another_version(body: Body) -> bool:
    policy = body["policy"]
    return bool(policy["version"] != codec.version_now(policy))


def _same(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> bool:
    return name in a and name in b and codec.dumps(a[name]) == codec.dumps(b[name])


def _body_of(event: Event) -> Body:
    """The body, which has to be the very text that surepick writes for these values."""
    try:
        body = json.loads(event.body)
        written = codec.dumps(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise ForgedError(f"its body is not JSON that surepick writes: {error}") from None
    _require(isinstance(body, dict) and written == event.body, "its body is not written as surepick does it")
    return dict(body)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ForgedError(otherwise)


def _shape(body: Body, needed: Mapping[str, _Kinds], optional: Mapping[str, _Kinds] | None = None) -> None:
    """The body has what is needed, perhaps what is optional, and nothing else; true is no number."""
    allowed = {**needed, **(optional or {})}
    for name in needed:
        _require(name in body, f"it lacks {name!r}")
    for name, value in body.items():
        _require(name in allowed, f"it has {name!r}, which no session writes")
        kinds = allowed[name]
        _require(
            type(value) in (kinds if isinstance(kinds, tuple) else (kinds,)), f"its {name!r} is {value!r}"
        )


def _place(ledger: Ledger) -> Mapping[str, _Kinds]:
    """How an event of this session says what it is about."""
    return {ledger.setup.problem.probe_word: int, "index": int}


def _probe(ledger: Ledger, body: Body) -> int:
    problem, probe = ledger.setup.problem, probe_in(body)
    _require(0 <= probe < problem.n_probes, f"there is no {problem.probe_word} {probe}")
    return probe


def _token(ledger: Ledger, body: Body) -> Token:
    probe, index = _probe(ledger, body), body["index"]
    _require(0 <= index < LONGEST_TOKEN, f"there is no measurement {index} of it")
    return Token(probe, index)


def _check_values(ledger: Ledger, body: Body) -> None:
    """One value, several, the mean of several, or readings by name; each of them one that `tell` accepts."""
    problem, probe = ledger.problem, probe_in(body)
    reads, form = problem.reads(probe), [name for name in ("value", "values", "readings") if name in body]
    _require(len(form) == 1, "it has either a value or values")
    _require(
        (form == ["readings"]) == (len(reads) > 1), "readings are of a probe with several, and of no other"
    )
    _require("count" not in body or ("values" not in body and body["count"] > 1), "its count is of no mean")
    _require(body.get("worker") != "", "its worker has no name")
    told = body["values"] if form == ["values"] else list(readings_in(body).values())
    _require("values" not in body or len(told) > 1, "it has values and not more than one")
    if form == ["readings"]:
        names = [name for name in reads if name in body["readings"]]
        _require(sorted(names) == list(body["readings"]) != [], f"its readings are not of {list(reads)}")
        whole = problem.must_be_whole(probe) or "count" in body
        _require(len(names) == len(reads) or not whole, "readings that belong together are missing")
    for value in told:
        _require(type(value) is float, f"the value {value!r} is not written as measurements are")
    check_numbers(problem, body)


def _measured(ledger: Ledger, body: Body, key: str | None) -> None:
    optional = {
        "value": float,
        "values": list,
        "readings": dict,
        "places": list,
        "count": int,
        "worker": str,
        "after_end": bool,
    }
    _shape(body, _place(ledger), optional)
    token = _token(ledger, body)
    _require(str(key).startswith(f"told:{token}"), f"its key is {key!r} and should be 'told:{token}'")
    _require(not ledger.tapes.is_told(token), f"token '{token}' was told already")
    _require(
        body.get("after_end", False) == ledger.is_over, "it says otherwise whether the session had ended"
    )
    _require(body.get("after_end") is not False, "it has 'after_end' without meaning it")
    refuse_unasked(ledger, token)
    _check_values(ledger, body)
    if ledger.tapes.is_begun(token):
        reads, untold = ledger.problem.reads(token.probe), ledger.tapes.untold(token)
        new = "count" not in body and all(reads.index(name) in untold for name in body["readings"])
        _require(new, "it has readings that were told already")
    if "count" in body:
        refuse_long_mean(ledger, token, body["count"])
    _require(("places" in body) == ("values" in body), "several values have places, and one has none")
    if "places" in body:
        _check_places(ledger, token, body["places"], len(body["values"]))


def _check_places(ledger: Ledger, token: Token, places: list[Any], n_values: int) -> None:
    are_numbers = all(type(place) is int and place < LONGEST_TOKEN for place in places)
    _require(are_numbers, "a place is a whole number")
    _require(len(places) == n_values, f"it has {n_values} values for {len(places)} places")
    _require(places[0] == token.index, "its first place is not that of its token")
    _require(sorted(set(places)) == places, "its places are not in order")
    told = [place for place in places if ledger.tapes.is_told(Token(token.probe, place))]
    _require(not told, f"the places {told} were told already")


def _recorded(ledger: Ledger, body: Body, key: str | None) -> None:
    word, told = ledger.setup.problem.probe_word, {"value": float, "readings": dict}
    _shape(body, {word: int, "note": str}, {**told, "picked": bool, "late": str, "worker": str})
    _probe(ledger, body)
    _require(body.get("picked") is not False, "it has 'picked' without meaning it")
    named = key is None or (key.startswith("recorded:") and key != "recorded:")
    _require(named, f"its key is {key!r} and should be none or begin with 'recorded:'")
    _check_values(ledger, body)
    if "late" not in body:
        _require("worker" not in body, "it has a worker, which only late values have")
        return
    _require(
        re.fullmatch(r"(0|[1-9]\d{0,17})\.(0|[1-9]\d{0,17})", body["late"]) is not None, "it has no token"
    )
    _require("picked" not in body and body["note"] == "", "it is late, and has a remark")
    _require(body.get("worker") != "", "its worker has no name")
    begin = f"recorded:late:{body['late']}:{body.get('worker', '')}:"
    _require(
        str(key).startswith(begin) and str(key)[len(begin) :].isdigit(), "its key is not that of a late value"
    )


def _voided(ledger: Ledger, body: Body, key: str | None) -> None:
    if "event" in body:
        _shape(body, {ledger.setup.problem.probe_word: int, "event": int, "reason": str})
        _require(key == f"voided:{body['event']}", f"its key is {key!r}, not 'voided:{body['event']}'")
        _require(body["reason"].strip() != "", "it has no reason")
        refuse_void_unasked(ledger, body["event"])
        return
    _shape(body, {**_place(ledger), "reason": str}, {"count": int})
    token = _token(ledger, body)
    _require(key == f"voided:{token}", f"its key is {key!r} and should be 'voided:{token}'")
    _require(body["reason"].strip() != "", "it has no reason")
    _require(body.get("count", 2) > 1, "its count is not of a mean")
    refuse_void(ledger, token)


def _withdrawn(ledger: Ledger, body: Body, key: str | None) -> None:
    _shape(body, {**_place(ledger), "reason": str}, {"worker": str})
    token = _token(ledger, body)
    _require(body.get("worker") != "", "its worker has no name")
    _require(key is None, f"it has the key {key!r}, and such events have none")
    _require(not ledger.tapes.is_told(token), f"token '{token}' was told already")
    refuse_unasked(ledger, token)


def _noted(ledger: Ledger, body: Body, key: str | None) -> None:
    if "title" in body:
        _shape(body, {"title": str})  # whoever has counted the titles knows its key
        return
    _shape(body, {}, {"text": str, "late": dict})
    _require(key is None, f"it has the key {key!r}, and such events have none")
    _require(len(body) == 1, "it has either a text or a late measurement")
    if "late" in body:
        late = body["late"]
        kinds = {"value": float, "values": list, "readings": dict, "count": int, "worker": str}
        _shape(late, _place(ledger), kinds)
        token = _token(ledger, late)
        _check_values(ledger, late)
        _require(ledger.tapes.is_begun(token), f"it is noted as late, and nobody had told token '{token}'")


def _extended(ledger: Ledger, body: Body, key: str | None) -> None:
    _shape(body, {"policy": dict, "budget": (int, type(None))})
    _require(key is None, f"it has the key {key!r}, and such events have none")
    before = ledger.setup
    try:
        policy = codec.policy_from_json(body["policy"])
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ForgedError(f"its policy cannot be read: {error}") from None
    changes = {
        name: getattr(policy, name) for name in ("delta", "epsilon") if name in body["policy"]["parameters"]
    }
    after = before.extended(changes, body["budget"])
    written = {"policy": codec.policy_to_json(after.policy), "budget": after.budget}
    _require(
        codec.dumps(written) == codec.dumps(body),
        "an extension makes delta or epsilon smaller or the budget larger, and changes nothing else",
    )


def _added(ledger: Ledger, body: Body, key: str | None) -> None:
    _shape(body, {"name": str, "amounts": list, "n_ahead": int}, {"new_arms": list})
    _require(key == f"plan:{body['name']}", f"its key is {key!r} and should be 'plan:{body['name']}'")
    problem, arms = growing(ledger), []
    _require(body.get("new_arms") != [], "it has new arms, and there are none")
    for arm in body.get("new_arms", ()):
        _check_new_arm(problem, arm)
    n_arms = problem.n_arms + len(body.get("new_arms", ()))
    for pair in body["amounts"]:
        both = type(pair) is list and [type(part) for part in pair] == [int, float]
        _require(both and 0 <= pair[0] < n_arms and pair[1] != 0, f"its amount {pair!r} is none")
        arms.append(pair[0])
    _require(sorted(set(arms)) == arms, "its amounts are not in the order of the arms")
    _require(body["n_ahead"] == ledger.tapes.n_ahead, "it has another number of values told ahead")


def _check_new_arm(problem: Problem, arm: Any) -> None:
    """A new arm is written with all that is known of it."""
    _require(type(arm) is dict, f"its new arm {arm!r} is none")
    _shape(arm, {"name": str, "cost": float}, {"noise_scale": float, "bounds": list})
    ends = arm.get("bounds", [0.0, 0.0])
    _require([type(end) for end in ends] == [float, float], f"the bounds of its new arm are {ends!r}")
    written = [one.to_json() for one in settled(problem, [NewArm.from_json(arm)])]
    _require(codec.dumps(written) == codec.dumps([arm]), f"its new arm {arm!r} is not written as sessions do")


def _called(ledger: Ledger, body: Body, key: str | None) -> None:
    _shape(body, {"n": int, "gaussian": bool, "n_ahead": int})
    _require(key == ledger.calling_key(), f"its key is {key!r} and should be {ledger.calling_key()!r}")
    _require(not ledger.is_over, "the session had ended, so there was no last call")
    _require(body["n_ahead"] == ledger.tapes.n_ahead, "it has another number of values told ahead")
    check_gaussian(ledger.setup.problem, body["gaussian"])
    check_last_call(ledger, body["n"])


def _closed(ledger: Ledger, body: Body, key: str | None) -> None:
    _shape(body, {"reason": str})
    _require(not ledger.is_over, "the session had ended already")
    _require(key == ledger.closing_key(), f"its key is {key!r} and should be {ledger.closing_key()!r}")


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
