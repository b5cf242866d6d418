"""A log replayed: every event is checked against the state before it, and decisions are made again.

Opening a session is more lenient: there the log is right, whatever it says.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Mapping
from typing import Any

from surepick.core.layout import Layout
from surepick.core.oracle_problem import Best, OracleProblem
from surepick.core.probes import VALUE
from surepick.core.wording import shortened
from surepick.errors import MissingFunctionError, SurepickError
from surepick.sessions import codec
from surepick.sessions.leasing import AHEAD
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Token, probe_in, told_key
from surepick.sessions.rules import RULES, ForgedError, require
from surepick.sessions.settings import Body, NewSession, Setup
from surepick.store import Event

DECISIONS = ("asked", "stopped")


# A log that makes a policy fail was not written by a session that went on with it.
FAILURES = (SurepickError, ArithmeticError, LookupError, ValueError, AssertionError)


# With the suffixes of Python packages: builds before, after and beside a release can have written it.
VERSION = re.compile(
    r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:(?:a|b|rc)[0-9]{1,9})?(?:\.post[0-9]{1,9})?"
    r"(?:\.dev[0-9]{1,9})?(?:\+[a-z0-9]{1,40}(?:\.[a-z0-9]{1,40}){0,3})?"
)


class Replay:
    """A ledger that takes in nothing but what a session can write; it changes by `take` alone."""

    def __init__(self, first: Event, oracle: Best | OracleProblem | None = None) -> None:
        body = _body_of(first)
        require(first.kind == "created" and first.key is None, "a log begins with an event of kind 'created'")
        self.setup = checked_setup(body, oracle)
        self.name: str = body["name"]
        self.surepick: str = body["surepick"]
        self.ledger = Ledger(self.setup)
        self._time = -math.inf
        self._keys: set[str] = set()
        self._told: dict[Token, list[Body]] = {}  # by the token under which it was told, in parts or at once
        self._unasked: dict[int, int] = {}  # by the event that recorded it: its probe
        self._asked_up_to: dict[int, int] = {}  # by probe: the furthest end of a round so far
        self._check_time(first)

    def take(self, event: Event) -> None:
        """Take in the next event, or say with a `ForgedError` why no session writes it here."""
        body = _body_of(event)
        self._check_time(event)
        if event.key is not None:
            require(event.key not in self._keys, f"the key {event.key!r} is in the log already")
            self._keys.add(event.key)
        if event.kind in DECISIONS:
            self._decide(event, body)
        else:
            try:
                self._check(event, body)
                self.ledger.apply(event.kind, body, event.position)
            except ForgedError:
                raise
            except FAILURES as error:  # what `tell` and the others refuse, and what no policy can take
                raise ForgedError(str(error)) from None

    def _check_time(self, event: Event) -> None:
        """Times are finite, and none is before another."""
        require(type(event.time) is float and math.isfinite(event.time), "its time is no finite number")
        require(event.time >= self._time, "it is dated before the event that it follows")
        self._time = event.time

    def _decide(self, event: Event, body: Body) -> None:
        """Require a decision that the policy takes here, or may take if it follows recorded ones."""
        require(not self.ledger.is_over, "the session had ended, so nothing was left to decide")
        require(
            self.ledger.is_due, "the round is not complete, and a policy decides on complete rounds alone"
        )
        try:
            if self.ledger.run.follows:
                made = self.ledger.follow_strictly(event.kind, body)
            else:
                made = self.ledger.decide_once()
        except MissingFunctionError:
            raise
        except FAILURES as error:
            raise ForgedError(f"the policy cannot decide so here: {error}") from None
        if (made.kind, codec.dumps(made.body)) != (event.kind, event.body):
            raise ForgedError(
                f"in round {self.ledger.n_rounds} the log has another decision than the policy takes, which "
                f"is {made.kind} {shortened(codec.dumps(made.body), 200, '...')}"
            )
        require(event.key == made.key, f"its key is {event.key!r} and should be {made.key!r}")
        tapes = self.ledger.tapes
        for probe in tapes.probes_of_round():
            self._asked_up_to[probe] = max(self._asked_up_to.get(probe, 0), tapes.of[probe].end_of_round)

    def _check(self, event: Event, body: Body) -> None:
        if event.kind not in RULES:
            raise ForgedError("no session writes such an event here")
        RULES[event.kind](self.ledger, body, event.key)
        if event.kind == "measured":
            token, parts = Token.of(body), self._told.setdefault(Token.of(body), [])
            key = told_key(token, len(parts))
            require(event.key == key, f"its key should be {key!r}")
            self._check_skipped(token.probe, body.get("places", ()))
            parts.append(body)
        elif event.kind == "noted" and "title" in body:
            number = sum(key.startswith("title:") for key in self._keys)
            require(event.key == f"title:{number}", f"it is title {number}, and its key is {event.key!r}")
        elif event.kind == "noted" and "late" in body:
            alone = Token.of(body["late"]) in self._told
            require(not alone, "it is noted as late, and its token was told by itself")
        elif event.kind == "recorded":
            self._unasked[event.position] = probe_in(body)
            if "late" in body:
                self._check_recorded_late(body)
        elif event.kind == "voided" and "event" in body:
            probe = self._unasked.get(body["event"])
            require(probe is not None, f"event {body['event']} records nothing that nobody had asked for")
            require(probe == probe_in(body), "it names another arm or probe than what it takes back")
        elif event.kind == "closed":
            require(
                not self.ledger.is_due,
                "the round was complete, and a session is not closed before it has decided",
            )

    def _check_skipped(self, probe: int, places: list[int]) -> None:
        """Of several values, a place may be left out if it is told, or may have been in another's hands."""
        tapes, handed_out = self.ledger.tapes, self._asked_up_to.get(probe, 0) + AHEAD
        for before, place in itertools.pairwise(places):
            skipped = range(max(before + 1, handed_out), place)
            told = len(skipped) <= tapes.n_told and all(map(tapes.of[probe].is_told, skipped))
            require(told, f"place {place} is not the next free one after {before}")

    def _check_recorded_late(self, body: Body) -> None:
        """A value that is recorded as late came after others under the same token, none of which was it."""
        parts = self._told.get(Token.parse(body["late"]), [])
        require(parts != [], f"it is recorded as late, and nobody had told token {body['late']!r}")
        own = [of for of in parts if of.get("worker", "") == body.get("worker", "")]
        told = {name for of in own for name in of.get("readings", [VALUE])}
        other = told.isdisjoint(body.get("readings", [VALUE])) and probe_in(parts[0]) == probe_in(body)
        require(other, "it is recorded as late, and is not another worker's")


def checked_setup(body: Body, oracle: Best | OracleProblem | None) -> Setup:
    """What the first event of a log says, refused unless a new session would write the same.

    A function that is missing and a policy of another version are no forgery: they are raised as they are.
    """
    try:
        setup = Setup.from_json(body, oracle)
        new = NewSession(
            setup.problem,
            setup.policy,
            body["name"],
            setup.seed,
            setup.budget,
            body["lease"],
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
    require(version_of(body.get("surepick")) is not None, "it does not say which surepick began the session")
    written = {
        **{name: value for name, value in new.items() if name != "layout"},
        "surepick": body["surepick"],
        **({} if layout is None else {"layout": layout.to_json()}),
    }
    differing = [name for name in sorted({*written, *body}) if not _same(written, body, name)]
    require(not differing, f"no session begins with its {', '.join(map(repr, differing))}")
    return setup


def version_of(text: object) -> tuple[int, ...] | None:
    """The numbers of a version of surepick; None if it is none.

    >>> version_of("0.1.0"), version_of("1.2.3.dev4"), version_of("0.1.0x")
    ((0, 1, 0), (1, 2, 3), None)
    """
    found = VERSION.fullmatch(text) if isinstance(text, str) else None
    return None if found is None else tuple(map(int, found.groups()))


def _is_of_another_version(body: Body) -> bool:
    try:
        return bool(body["policy"]["version"] != codec.version_now(body["policy"]))
    except Exception:  # any JSON may stand there
        return False


def _same(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> bool:
    return name in a and name in b and codec.dumps(a[name]) == codec.dumps(b[name])


def _body_of(event: Event) -> Body:
    """The body, which has to be the very text that surepick writes for these values."""
    try:
        body = json.loads(event.body)
        written = codec.dumps(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise ForgedError(f"its body is not JSON that surepick writes: {error}") from None
    require(isinstance(body, dict) and written == event.body, "its body is not written as surepick does it")
    return dict(body)
