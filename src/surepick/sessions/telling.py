"""Telling, recording and withdrawing: what is checked of a measurement, and how it gets into the log.

Everything that depends on what others may have written is checked in the commit, where the ledger is at the
end of the log.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import shortened
from surepick.errors import ParameterError, SessionError
from surepick.sessions.leasing import leased
from surepick.sessions.ledger import NewEvent
from surepick.sessions.replica import Change, LostRaceError, Replica
from surepick.sessions.requests import Receipt, Token, probe_in, readings_in, told_key
from surepick.sessions.settings import Body
from surepick.sessions.tape import Bundle, Tape
from surepick.sessions.told_values import (
    check_numbers,
    is_list,
    number,
    refuse_unasked,
    takes,
    token_of,
)
from surepick.sessions.workers import is_dead
from surepick.store import Event


class Telling:
    """Brings the measurements of one session into its log; it has no state of its own."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._number = 0  # of the last value that was recorded here

    def _told(self, problem: AnyProblem, token: Token, value: Any) -> Body:
        """Return the checked values as the JSON fields of a `measured` event."""
        if len(problem.reads(token.probe)) > 1:
            wanted = self._replica.ledger.tapes.of[token.probe].untold(token.index)
            return _use(problem, token.probe, value, wanted)
        if not is_list(value):
            return _use(problem, token.probe, value, ())
        values = [number(problem, problem.readings_of(token.probe)[0], one) for one in value]
        if not values:
            raise ParameterError("tell takes at least one value, got none; withdraw the token", field="value")
        return {"value": values[0]} if len(values) == 1 else {"values": values}

    def tell(self, text: str, value: Any, worker: str, key: str = "") -> Receipt:
        """Record what was measured under this token; the receipt says if it had its measurement already."""
        replica, token = self._replica, token_of(self._replica, text)
        if replica.is_stale:
            replica.catch_up()
        problem = replica.ledger.problem
        body = {**token.to_body(problem, worker), **self._told(problem, token, value)}
        body |= {"key": key} if key else {}
        try:
            if not replica.ledger.tapes.of[token.probe].is_told(token.index):
                replica.commit(lambda: self._measured(token, body, problem))
                whole_use = replica.ledger.tapes.of[token.probe].is_told(token.index)
                return Receipt(self._number, "recorded" if whole_use else "partial")
        except LostRaceError:
            if key in replica.ledger.keys:
                return Receipt(0, "repeated")
        return self._told_before(token, body)

    def record(
        self, probe: int, value: Any, key: str, remarks: Body, exported: Event | None = None
    ) -> Receipt:
        """Record extra measurements, all of them or none, and once if they have a key.

        The first of several has the key as it is, the others with their number. `exported` is the event that
        the key stands for, where it comes from an export of this session.
        """
        problem = self._replica.ledger.problem
        uses = [value]
        if is_list(value) and (
            len(problem.reads(probe)) == 1 or any(isinstance(one, Mapping) for one in value)
        ):
            uses = list(value)
        if not uses:
            raise ParameterError("record takes at least one value, got none", field="value")
        keys = [f"recorded:{key}" if place == 0 else f"recorded:{key}, {place}" for place in range(len(uses))]
        events = [
            NewEvent(
                "recorded", {problem.probe_word: probe, **_use(problem, probe, one, ()), **remarks}, name
            )
            for one, name in zip(uses, keys if key else [None] * len(uses), strict=True)
        ]
        if exported is not None:
            self._refuse_another(key, exported, events[0].body)
            return Receipt(0, "repeated")
        try:
            self._replica.commit(lambda: self._recorded(events))
        except LostRaceError:
            return Receipt(0, "repeated")
        return Receipt(self._number, "recorded")

    def withdraw(self, text: str, reason: str, worker: str) -> Token:
        """Write down that this token was given back unmeasured, or that the rest of its readings is lost.

        Refused if it is another worker's now.
        """
        token = token_of(self._replica, text)
        self._read_on_if_unknown(token)
        body: Body = {**token.to_body(self._replica.ledger.setup.problem, worker), "reason": str(reason)}

        def make() -> Change:
            if self._replica.ledger.tapes.of[token.probe].is_told(token.index):
                raise SessionError(
                    f"token '{token}' was told already and cannot be withdrawn; nothing was changed",
                    field="token",
                )
            refuse_unasked(self._replica.ledger, token)
            self._refuse_anothers(token, worker)
            return Change([NewEvent("withdrawn", body)], [str(token)])

        self._replica.commit(make)
        return token

    def _refuse_anothers(self, token: Token, worker: str) -> None:
        """Refuse to take a token from the worker who has it, which may not be the one who had it."""
        lease = leased(self._replica.store.leases(self._replica.name)).get(token)
        if lease is None or lease.worker == worker or lease.expires <= self._replica.clock():
            return
        if is_dead(lease.worker):
            return
        whose = f"of worker {lease.worker!r}" if lease.worker else "of somebody who asked without a name"
        mine = f"the lease of {worker!r} on it has ended" if worker else "it was given back without a name"
        raise SessionError(
            f"token '{token}' is in the hands {whose}, and {mine}, so nothing was changed; to give it back "
            f"for them, say so: worker={lease.worker!r}",
            field="worker",
        )

    def _read_on_if_unknown(self, token: Token) -> None:
        """Read what is new when this token was not handed out as far as is known here."""
        if self._replica.is_stale or not takes(self._replica.ledger, token):
            self._replica.catch_up()

    def _measured(self, token: Token, body: Body, checked: AnyProblem) -> Change:
        """The event of a told token; indices for several values are chosen now that nobody else can.

        `checked` is the problem by which its numbers were: by now the noise scale may be known.
        """
        ledger, n_values = self._replica.ledger, len(body.get("values", ()))
        self._number = ledger.n_recorded + max(n_values, 1)
        of, problem = ledger.tapes.of[token.probe], ledger.problem
        if of.is_told(token.index) or body.get("key") in ledger.keys:
            raise LostRaceError
        refuse_unasked(ledger, token)
        if problem is not checked:
            check_numbers(problem, body)
        if of.is_begun(token.index):
            return self._another_part(token, body)
        if ledger.is_over:
            body = {**body, "after_end": True}
        text = str(token)
        event = NewEvent("measured", body, told_key(text))
        if "readings" in body and len(body["readings"]) < len(problem.reads(token.probe)):
            return Change([event])  # its worker keeps the token
        if not n_values:
            return Change([event], [text])
        leases = leased(self._replica.store.leases(self._replica.name))
        now, worker = self._replica.clock(), body.get("worker", "")
        others = {t for t, one in leases.items() if one.expires > now and one.worker != worker}
        places = _following(of, token, n_values, others)
        release = [
            str(t)
            for t in leases  # those on what was told before are of no use either
            if (t.probe == token.probe and t.index in places) or ledger.tapes.of[t.probe].is_told(t.index)
        ]
        return Change([event._replace(body={**body, "places": places})], release)

    def _another_part(self, token: Token, body: Body) -> Change:
        """The readings of a token that was told in part which are new; the others have to say the same."""
        parts = self._parts(token)
        kept = {name: (value, of.get("worker", "")) for of in parts for name, value in of["readings"].items()}
        new = {name: value for name, value in body["readings"].items() if name not in kept}
        other = {name: v for name, v in body["readings"].items() if name in kept and kept[name][0] != v}
        for name, value in other.items():
            if kept[name][1] == body.get("worker", ""):
                raise SessionError(
                    f"reading {name!r} of token '{token}' was told before with {kept[name][0]:g}, got "
                    f"{value:g}; the first value stays, and nothing was recorded",
                    field="value",
                )
        events = self._late(token, {**body, "readings": other}).events if other else []
        if new:
            after_end = {"after_end": True} if self._replica.ledger.is_over else {}
            told = NewEvent("measured", {**body, "readings": new, **after_end}, told_key(token, len(parts)))
            events.insert(0, told)
        if not events:
            raise LostRaceError  # all of it was told before
        done = len(new) == len(self._replica.ledger.tapes.of[token.probe].untold(token.index))
        return Change(events, [str(token)] if done else [])

    def _parts(self, token: Token) -> list[Body]:
        """What was told under this token, in one event or in parts."""
        parts: list[Body] = []
        while event := self._replica.store.find(self._replica.name, told_key(token, len(parts))):
            parts.append(json.loads(event.body))
        return parts

    def _recorded(self, events: list[NewEvent]) -> Change:
        """Those of these events whose key is new; refused where a key is of another measurement."""
        new = [event for event in events if event.key is None or not self._is_recorded(event.key, event.body)]
        if not new:
            raise LostRaceError
        self._number = self._replica.ledger.n_recorded + len(new)
        return Change(new)

    def _is_recorded(self, key: str, body: Body) -> bool:
        event = self._replica.store.find(self._replica.name, key)
        if event is not None:
            self._refuse_another(key, event, body)
        return event is not None

    def _refuse_another(self, key: str, event: Event, body: Body) -> None:
        """Refuse a measurement under the key of another one, or of one that was removed."""
        kept: Body = json.loads(event.body)
        if event.position in self._replica.ledger.unasked_voided:
            raise SessionError(
                f"the value of {key!r} was removed, and its key stays taken; give this one another",
                field="key",
            )
        if (probe_in(kept), readings_in(kept)) != (probe_in(body), readings_in(body)):
            names = self._replica.ledger.setup.problem.probe_names
            raise SessionError(
                f"{key!r} is another measurement, {names[probe_in(kept)]!r} = {_shown(kept)}, got "
                f"{names[probe_in(body)]!r} = {_shown(body)}; the first one stays: give this one its own key",
                field="key",
            )

    def _late(self, token: Token, body: Body) -> Change:
        """A value that came after another worker's: a measurement all the same, that nobody asks for now.

        It was made because it was asked for, whatever it showed, so it may count wherever unasked ones do.
        """
        worker = {"worker": body["worker"]} if "worker" in body else {}
        word = self._replica.ledger.setup.problem.probe_word
        about: Body = {word: token.probe, "note": "", "late": str(token), **worker}
        begin = f"recorded:late:{token}:{body.get('worker', '')}:"
        before: list[Body] = []
        while event := self._replica.store.find(self._replica.name, f"{begin}{len(before)}"):
            before.append(json.loads(event.body))
        if "readings" in body:
            kept = {name: value for of in before for name, value in of["readings"].items()}
            same = all(kept.get(name, value) == value for name, value in body["readings"].items())
            rest = {name: value for name, value in body["readings"].items() if name not in kept}
            new: list[Body] = [{"readings": rest}] if rest else []
        else:
            values = body.get("values", [body.get("value")])
            same = all(of["value"] == value for of, value in zip(before, values, strict=False))
            new = [{"value": value} for value in values[len(before) :]]
        if not same:
            raise SessionError(
                f"a late value of token '{token}' was told before, {_shown(before[0])}, got {_shown(body)}; "
                "it stays",
                field="value",
            )
        keys = (f"{begin}{at}" for at in itertools.count(len(before)))
        events = [NewEvent("recorded", {**about, **one}, key) for one, key in zip(new, keys, strict=False)]
        self._number = self._replica.ledger.n_recorded + len(events)
        return Change(events, [str(token)])

    def _told_before(self, token: Token, body: Body) -> Receipt:
        """What to say to a value for a token that has one: nothing new, too late, or a contradiction."""
        parts = self._parts(token)
        voided = token in self._replica.ledger.tapes.voided
        if not voided and any(_says_the_same(kept, body) for kept in _as_one(parts)):
            return Receipt(0, "repeated")
        kept = next((of for of in parts if _is_contradicted(of, body, voided=voided)), None)
        if kept is None:
            rest = body if voided else _untold(parts, body)
            self._replica.commit(lambda: self._late(token, rest) if parts else _noted_late(token, body))
            return Receipt(self._number, "extra")
        if voided:
            raise SessionError(
                f"the value of token '{token}' was voided, and its place stays empty; ask again: the "
                f"{self._replica.ledger.setup.problem.probe_word} has another token",
                field="token",
            )
        raise SessionError(
            f"token '{token}' has the value {_shown(kept)}, got {_shown(body)}; the first value stays. Each "
            "worker asks for its own tokens, under its own name; `void` removes a value entered by mistake",
            field="value",
        )


def _use(problem: AnyProblem, probe: int, given: Any, wanted: Sequence[int]) -> Body:
    """What one use of this probe gave: its value, or its readings by name.

    A list is in the order of its readings; where only some of them are wanted, it may be of those.
    """
    reads, readings = problem.reads(probe), problem.readings_of(probe)
    if len(reads) == 1 and not (isinstance(given, Mapping) or is_list(given)):
        return {"value": number(problem, readings[0], given)}
    by_name = given
    if not isinstance(given, Mapping):
        values = list(given) if is_list(given) else [given]
        names = reads if len(values) == len(reads) else tuple(reads[k] for k in wanted)
        if len(values) != len(names):
            got = shortened(repr(given), 60)
            raise SessionError(f"{_names_wanted(problem, probe)}, got {got}", field="value")
        by_name = dict(zip(names, values, strict=True))
    unknown = [name for name in by_name if name not in reads]
    if len(reads) == 1 and unknown:
        number(problem, readings[0], given)  # which says that it is none
    if unknown or not by_name:
        got = f"{unknown[0]!r}" if unknown else "none"
        raise SessionError(f"{_names_wanted(problem, probe)}, got {got}", field="value")
    told = {
        name: number(problem, reading, by_name[name])
        for name, reading in zip(reads, readings, strict=True)
        if name in by_name
    }
    if problem.must_be_whole(probe) and len(told) < len(reads):
        missing = ", ".join(repr(name) for name in reads if name not in told)
        known = problem.knows_noise
        shared = "share noise whose covariance is given" if known else "may share noise that is unknown"
        raise SessionError(
            f"the readings of {problem.probe_names[probe]!r} {shared}, so "
            f"they are told together, and {missing} is missing; nothing was recorded: repeat the whole "
            "measurement, or withdraw its token",
            field="value",
        )
    return {"readings": told} if len(reads) > 1 else {"value": told[reads[0]]}


def _as_one(parts: list[Body]) -> list[Body]:
    """What was told under a token, with the readings of all its parts together."""
    if len(parts) < 2:
        return parts
    return [{**parts[0], "readings": {name: v for of in parts for name, v in of["readings"].items()}}]


def _says_the_same(kept: Body, body: Body) -> bool:
    """Whether nothing is told here that is not kept with the same value."""
    if "readings" in kept and "readings" in body:
        return all(kept["readings"].get(name) == value for name, value in body["readings"].items())
    return all(kept.get(name) == body.get(name) for name in ("value", "values", "readings"))


def _is_contradicted(kept: Body, body: Body, *, voided: bool) -> bool:
    """Whether this worker told it before, with another value; of readings, one of the same name."""
    if kept.get("worker", "") != body.get("worker", ""):
        return False
    if voided or "readings" not in body:
        return True
    return any(kept["readings"].get(name, value) != value for name, value in body["readings"].items())


def _untold(parts: list[Body], body: Body) -> Body:
    """What is told here without the readings that this worker told before: nothing is to count twice."""
    if "readings" not in body:
        return body
    own = [of for of in parts if of.get("worker", "") == body.get("worker", "")]
    told = {name for of in own for name in of["readings"]}
    return {**body, "readings": {name: v for name, v in body["readings"].items() if name not in told}}


def _shown(body: Body) -> str:
    """What was told, for people."""
    if "readings" in body:
        return ", ".join(f"{name} {value:g}" for name, value in body["readings"].items())
    return str(body["values"]) if "values" in body else f"{body['value']:g}" if "value" in body else "nothing"


def _names_wanted(problem: AnyProblem, probe: int) -> str:
    """What one use of this probe gives, to tell somebody who gave something else."""
    name, reads = problem.probe_names[probe], problem.reads(probe)
    if len(reads) == 1:
        return f"one measurement of {name!r} is one number"
    listed = shortened(", ".join(map(repr, reads)), 200, "...")
    return f"one use of {name!r} gives {len(reads)} readings, told by name or in this order: {listed}"


def _noted_late(token: Token, body: Body) -> Change:
    """What cannot be kept as single measurements that nobody asked for is noted, and not counted."""
    return Change([NewEvent("noted", {"late": body})], [str(token)])


def _following(of: Tape | Bundle, token: Token, count: int, others: Container[Token]) -> list[int]:
    """This index and the next ones of the tape that are not told and not another worker's."""
    rest = (Token(token.probe, index) for index in itertools.count(token.index + 1))
    free = (t.index for t in rest if not of.is_told(t.index) and t not in others)
    return [token.index, *itertools.islice(free, count - 1)]
