"""Telling, recording and withdrawing: what is checked of a measurement, and how it gets into the log.

Everything that depends on what others may have written is checked in the commit, where the ledger is at the
end of the log.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Container, Iterable, Mapping, Set
from typing import Any, cast

from surepick.core.arrays import MOST_SCALES, furthest_value, outside
from surepick.core.numerals import numeral
from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import shortened
from surepick.errors import ParameterError, SessionError
from surepick.sessions.leasing import AHEAD, leased
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.replica import Change, LostRaceError, Replica
from surepick.sessions.requests import Receipt, Token, told_key
from surepick.sessions.settings import Body, whole
from surepick.store.write_queue import ServedError

_HOW_TOKENS_LOOK = "tokens are what `ask` gives, like 3.17 (or t3.17) for the measurement 17 of arm 3"


class Telling:
    """Brings the measurements of one session into its log; it has no state of its own."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    @property
    def _problem(self) -> AnyProblem:
        """The problem, with its noise scale once that is known."""
        return self._replica.ledger.problem

    def _body(self, token: Token, value: Any, mean: float | None, count: int | None, worker: str) -> Body:
        """What was told, checked and as JSON values."""
        body: Body = {"arm": token.arm, "index": token.index, **({"worker": str(worker)} if worker else {})}
        if (value is None) == (mean is None) or (mean is None) != (count is None):
            raise ParameterError("tell takes either a value (or several), or mean= together with count=")
        problem = self._problem
        if mean is not None:
            n = whole("count", "a number of measurements", count, least=1)
            extra = {"count": n} if n > 1 else {}
            return {**body, "value": number(problem, token.arm, mean), **extra}
        if not _is_list(value):
            return {**body, "value": number(problem, token.arm, value)}
        values = [number(problem, token.arm, one) for one in value]
        if not values:
            raise ParameterError("tell takes at least one value, got none; to give a token back use withdraw")
        return {**body, "value": values[0]} if len(values) == 1 else {**body, "values": values}

    def tell(self, text: str, value: Any, mean: float | None, count: int | None, worker: str) -> Receipt:
        """Write down what was told under this token; say so if it had its measurement already."""
        token = token_of(self._replica, text)
        body = self._body(token, value, mean, count, worker)
        if self._replica.is_stale:
            self._replica.catch_up()
        single = ("tell", text, body["value"], worker) if "value" in body and "count" not in body else None
        try:
            if not self._replica.ledger.tapes.is_told(token):
                self._replica.commit(lambda: self._measured(token, body), wish=single)
                return Receipt.ACCEPTED
        except ServedError as served:
            return Receipt(served.reply)
        except LostRaceError:
            pass
        return self._told_before(token, body)

    def wished(self, text: str, value: float, worker: str) -> Change:
        """The event of a single value that somebody else wishes to tell; refused like one's own."""
        token = token_of(self._replica, text)
        return self._measured(token, self._body(token, value, None, None, worker))

    def record(self, arm: int, value: Any, key: str, remarks: Body) -> Receipt:
        """Write down measurements that nobody asked for, all of them or none, and once if they have a key.

        The first of several has the key as it is, the others with their number.
        """
        values = list(value) if _is_list(value) else [value]
        if not values:
            raise ParameterError("record takes at least one value, got none")
        keys = [
            f"recorded:{key}" if place == 0 else f"recorded:{key}, {place}" for place in range(len(values))
        ]
        events = [
            NewEvent("recorded", {"arm": arm, "value": number(self._problem, arm, one), **remarks}, name)
            for one, name in zip(values, keys if key else [None] * len(values), strict=True)
        ]
        try:
            self._replica.commit(lambda: self._recorded(events))
        except LostRaceError:
            self._replica.store.settle()  # another process may have written it a moment ago
            return Receipt.REPEATED
        return Receipt.ACCEPTED

    def withdraw(self, text: str, reason: str) -> Token:
        """Write down that this token was given back unmeasured."""
        token = token_of(self._replica, text)
        self._read_on_if_unknown(token)
        body = {"arm": token.arm, "index": token.index, "reason": str(reason)}

        def make() -> Change:
            if self._replica.ledger.tapes.is_told(token):
                raise SessionError(
                    f"token '{token}' was told already and cannot be withdrawn; nothing was changed"
                )
            refuse_unasked(self._replica.ledger, token)
            return Change([NewEvent("withdrawn", body)], [str(token)])

        self._replica.commit(make)
        return token

    def _read_on_if_unknown(self, token: Token) -> None:
        """Read what is new when this token was not handed out as far as is known here."""
        if self._replica.is_stale or not takes(self._replica.ledger, token):
            self._replica.catch_up()

    def _measured(self, token: Token, body: Body) -> Change:
        """The event of a told token; indices for several values are chosen now that nobody else can."""
        ledger, count, n_values = self._replica.ledger, body.get("count", 1), len(body.get("values", ()))
        if ledger.tapes.is_told(token):
            raise LostRaceError
        refuse_unasked(ledger, token)
        for value in body.get("values", [body.get("value")]):
            number(ledger.problem, token.arm, value)  # again: by now the noise scale may be known
        if count > 1:
            refuse_long_mean(ledger, token, count)
        if ledger.is_over:
            body = {**body, "after_end": True}
        release = [str(token)]
        if n_values or count > 1:
            leases = leased(self._replica.store.leases(self._replica.name))
            filled: Container[int] = range(token.index, token.index + count)
            if n_values:
                now, worker = self._replica.clock(), body.get("worker", "")
                others = {t for t, of in leases.items() if of.expires > now and of.worker != worker}
                body = {**body, "places": _following(ledger, token, n_values, others)}
                filled = set(body["places"])
            told = ledger.tapes.is_told  # leases on what was told before are of no use either
            needless = (t for t in leases if (t.arm == token.arm and t.index in filled) or told(t))
            release = list(map(str, needless))
        return Change([NewEvent("measured", body, told_key(token))], release)

    def _recorded(self, events: list[NewEvent]) -> Change:
        """Those of these events whose key is new; refused where a key is of another measurement."""
        new = [event for event in events if event.key is None or not self._is_recorded(event.key, event.body)]
        if not new:
            raise LostRaceError
        return Change(new)

    def _is_recorded(self, key: str, body: Body) -> bool:
        event = self._replica.store.find(self._replica.name, key)
        kept: Body = body if event is None else json.loads(event.body)
        if event is not None and event.position in self._replica.ledger.unasked_voided:
            raise SessionError(f"{key!r} was taken back, and its key stays taken; give this one another")
        if (kept["arm"], kept["value"]) != (body["arm"], body["value"]):
            names = self._problem.arm_names
            raise SessionError(
                f"{key!r} is another measurement, {names[kept['arm']]!r} = {kept['value']:g}, got "
                f"{names[body['arm']]!r} = {body['value']:g}; the first one stays: give this one its own key"
            )
        return event is not None

    def _late(self, token: Token, body: Body) -> Change:
        """A value that came after another worker's: a measurement all the same, that nobody asks for now.

        It was made because it was asked for, whatever it showed, so it may count wherever unasked ones do.
        """
        worker = {"worker": body["worker"]} if "worker" in body else {}
        events = []
        for at, value in enumerate(body.get("values", [body.get("value")])):
            key = f"recorded:late:{token}:{body.get('worker', '')}:{at}"
            kept: Body = {"arm": token.arm, "value": value, "note": "", "late": str(token), **worker}
            before = self._replica.store.find(self._replica.name, key)
            if before is None:
                events.append(NewEvent("recorded", kept, key))
            elif json.loads(before.body)["value"] != value:
                first = json.loads(before.body)["value"]
                raise SessionError(
                    f"a late value of token '{token}' was told before, {first:g}, got {value:g}; it stays"
                )
        return Change(events, [str(token)])

    def _told_before(self, token: Token, body: Body) -> Receipt:
        """What to say to a value for a token that has one: nothing new, too late, or a contradiction."""
        event = self._replica.store.find(self._replica.name, told_key(token))
        kept: Body = {"worker": None} if event is None else json.loads(event.body)
        voided = token in self._replica.ledger.tapes.voided
        if not voided and all(kept.get(name) == body.get(name) for name in ("value", "values", "count")):
            self._replica.store.settle()  # another process may have written it a moment ago
            return Receipt.REPEATED
        if kept.get("worker", "") != body.get("worker", ""):
            once = event is not None and "count" not in body
            self._replica.commit(lambda: self._late(token, body) if once else _noted_late(token, body))
            return Receipt.LATE
        if voided:
            raise SessionError(
                f"the value of token '{token}' was voided, and its place stays empty; ask again: the arm has "
                "another token",
                field="token",
            )
        raise SessionError(
            f"token '{token}' was told before with {kept.get('value', kept.get('values'))}, got "
            f"{body.get('value', body.get('values'))}; the first value stays. If several workers "
            "measure, each needs a name of its own: ask(worker=...)"
        )


def token_of(replica: Replica, text: object) -> Token:
    """The token with this text, if it can be one of this session; its arm may have come a moment ago."""
    try:
        token = Token.parse(text)
    except ValueError:
        token = None
    if token is not None and token.arm >= replica.ledger.setup.problem.n_arms:
        replica.catch_up()
    if token is None or token.arm >= replica.ledger.setup.problem.n_arms:
        raise SessionError(
            f"{text!r} is not a token of session {replica.name!r}; {_HOW_TOKENS_LOOK}", field="token"
        )
    return token


def _noted_late(token: Token, body: Body) -> Change:
    """What cannot be kept as single measurements that nobody asked for is noted, and not counted."""
    return Change([NewEvent("noted", {"late": body})], [str(token)])


def takes(ledger: Ledger, token: Token) -> bool:
    """Whether a value for this token can be told: it is asked for, told already, or not far ahead."""
    return token.index < ledger.tapes.end_of_round(token.arm) + AHEAD


def refuse_unasked(ledger: Ledger, token: Token) -> None:
    """Refuse a token that cannot have been handed out."""
    if not takes(ledger, token):
        raise SessionError(f"token '{token}' was never handed out; {_HOW_TOKENS_LOOK}", field="token")


def refuse_long_mean(ledger: Ledger, token: Token, count: int) -> None:
    """Refuse the mean of more measurements than the open round takes from this token on."""
    if ledger.run.is_piloting:
        raise SessionError(
            "the noise scale is being learned from single measurements; tell the values, not their mean"
        )
    wanted = ledger.tapes.n_wanted(token)
    if count > wanted:
        raise SessionError(
            f"token '{token}' takes the mean of at most {wanted} measurements (`wanted`), "
            f"got count={count}; tell the single values instead, of which any number may come at once"
        )


def _is_list(value: object) -> bool:
    """Whether these are several values in an order; bytes and mappings are neither a number nor several."""
    one = isinstance(value, str | bytes | bytearray | memoryview | Mapping | Set)
    return isinstance(value, Iterable) and not one and getattr(value, "ndim", 1) > 0


def number(problem: AnyProblem, arm: int, value: object) -> float:
    """The value, or mean of several, of a measurement of this arm; refused if it cannot be one."""
    name = problem.arm_names[arm]
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError  # which float would read
        found = numeral(value) if isinstance(value, str) else float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        shown = shortened(repr(value), 60)
        raise SessionError(f"the value of arm {arm} ({name!r}) must be a number, got {shown}") from None
    if not math.isfinite(found):
        raise SessionError(
            f"the value of arm {arm} ({name!r}) must be finite, got {found}; repeat the measurement, or "
            "withdraw its token"
        )
    if problem.bounds is not None and outside(problem.bounds, arm, found):
        low, high = problem.bounds[arm].tolist()
        raise SessionError(
            f"the value of arm {arm} ({name!r}) must lie within its bounds, {low:g} to {high:g}, got "
            f"{found:g}; the guarantee rests on them, so if the value is right, begin again with wider "
            "bounds"
        )
    furthest = furthest_value(problem.noise_scale, arm)
    if abs(found) > furthest:
        scales = f" ({MOST_SCALES:g} noise scales)" if problem.noise_scale is not None else ""
        raise SessionError(
            f"the value of arm {arm} ({name!r}) must lie within {furthest:g} of zero{scales}, got {found:g}; "
            "beyond it rounding outweighs the noise: check the value and its unit, and where all values are "
            "that large begin again with a constant subtracted from them"
        )
    return found


def _following(ledger: Ledger, token: Token, count: int, others: Container[Token]) -> list[int]:
    """This index and the next ones of the tape that are not told and not another worker's."""
    rest = (Token(token.arm, index) for index in itertools.count(token.index + 1))
    free = (t.index for t in rest if not ledger.tapes.is_told(t) and t not in others)
    return [token.index, *itertools.islice(free, count - 1)]
