"""Taking back a value that was no measurement: what is refused, and the event that says so."""

from __future__ import annotations

import json

from surepick.errors import ParameterError, SessionError
from surepick.sessions.arriving import refuse_starting_over
from surepick.sessions.ledger import Ledger, NewEvent
from surepick.sessions.replica import Change, Replica
from surepick.sessions.requests import Token, probe_in
from surepick.sessions.settings import Body
from surepick.sessions.tapes import LostTapesError
from surepick.store import Event


def void(replica: Replica, token: Token, reason: str) -> bool:
    """Write down that a told value was no measurement; whether the policy had seen it."""
    _refuse_without(reason)
    seen: list[bool] = []

    def make() -> Change:
        refuse_void(replica.ledger, token)
        body: Body = {**token.to_body(replica.ledger.setup.problem), "reason": reason}
        seen[:] = [token.index < replica.ledger.tapes.of[token.probe].first_unused]
        return Change([NewEvent("voided", body, f"voided:{token}")], [str(token)])

    replica.commit(make, quick=False)
    return seen[-1]


def void_unasked(replica: Replica, recorded: Event, reason: str) -> bool:
    """The same of a value that nobody had asked for, by the event that recorded it."""
    _refuse_without(reason)
    position = recorded.position
    seen: list[bool] = []

    def make() -> Change:
        try:
            refuse_void_unasked(replica.ledger, position)
        except LostTapesError:
            replica.read_whole()
            refuse_void_unasked(replica.ledger, position)
        seen[:] = [replica.ledger.run.has_counted(position)]
        word, probe = replica.ledger.setup.problem.probe_word, probe_in(json.loads(recorded.body))
        body: Body = {word: probe, "event": position, "reason": reason}
        return Change([NewEvent("voided", body, f"voided:{position}")])

    replica.commit(make, quick=False)
    return seen[-1]


def _refuse_without(reason: str) -> None:
    if not reason.strip():
        raise ParameterError("say why the value is taken back: the log keeps the reason", field="reason")


def refuse_void(ledger: Ledger, token: Token) -> None:
    """Refuse to take back what was not told, what was taken back before, and what nothing rests on."""
    tapes = ledger.tapes
    if token in tapes.voided:
        raise SessionError(f"token '{token}' was voided before; nothing was changed", field="token")
    if not tapes.of[token.probe].is_told(token.index):
        raise SessionError(
            f"token '{token}' has no value that could be voided; to give it back unmeasured, withdraw it",
            field="token",
        )
    _refuse_now(ledger, f"token '{token}'", is_seen=token.index < tapes.of[token.probe].first_unused)


def refuse_void_unasked(ledger: Ledger, position: int) -> None:
    """The same for the value that nobody asked for and that this event recorded."""
    if position in ledger.unasked_voided:
        raise SessionError(
            f"the value of event {position} was voided before; nothing was changed", field="token"
        )
    _refuse_now(ledger, f"event {position}", is_seen=ledger.run.has_counted(position))


def _refuse_now(ledger: Ledger, what: str, *, is_seen: bool) -> None:
    if is_seen and not ledger.run.follows:
        refuse_starting_over(ledger.arrived, "taking back a value that the policy has seen")
    if ledger.run.called is not None:
        raise SessionError(
            "after the last call no value can be taken back: the session would start over and could be "
            "tested a second time; begin a new session",
            field="token",
        )
    if ledger.is_over and not is_seen:
        raise SessionError(
            f"the session ended without using the value of {what}, so nothing rests on it", field="token"
        )
