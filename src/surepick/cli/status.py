"""`status`, `list` and `log`: where sessions stand and what happened."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.opening import only_name, open_session, open_to_read
from surepick.cli.options import DEFAULT_STORE, Json, Name, StoreUrl
from surepick.cli.render import answer, print_columns, say
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from surepick.sessions.session import Session
    from surepick.store import Event, Store


def status(session: Name = None, store: StoreUrl = DEFAULT_STORE, as_json: Json = False) -> None:
    """Say where a session stands: the lead, its closest rival, what was measured; or its answer."""
    opened = open_session(store, session, read_only=True)
    data = {**state_of(opened), **({"certificate": opened.certificate().to_json()} if opened.status else {})}
    answer(data, as_json, lambda: print_status(opened))


def list_(store: StoreUrl = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the sessions of a store."""
    place = open_to_read(store)
    rows = [_summary(place, name) for name in place.names()]
    answer(rows, as_json, lambda: print_columns(("session", "status", "measurements", "answer"), rows))


def log(
    last: Annotated[int, typer.Option(help="Show only this many of the last events; 0 shows all.")] = 20,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Show what happened, event by event."""
    place = open_to_read(store)
    name = session or only_name(place)
    skipped = max(0, place.head(name).position - last) if last else 0
    rows = [_event(event) for event in place.read(name) if event.position > skipped]
    answer(rows, as_json, lambda: print_columns(("position", "time", "kind", "body"), rows))


def state_of(session: Session) -> dict[str, Any]:
    """What every answer in JSON says about the session."""
    from surepick.core.among import among, named
    from surepick.sessions import codec
    from surepick.sessions.certificate import MOST_RIVALS

    ledger = session.ledger()
    standing, name_of = ledger.standing(), ledger.problem.name_of
    return {
        "session": session.name,
        "status": "running" if ledger.status is None else str(ledger.status),
        "answer": name_of(ledger.plan),
        "lead": name_of(standing.lead),
        "rival": name_of(standing.rival),
        "gap": codec.finite_or_none(standing.gap),
        "radius": codec.finite_or_none(standing.radius),
        "risk": codec.finite_or_none(standing.risk),
        "n_remaining": None if standing.remaining is None else len(standing.remaining),
        "remaining": None if standing.remaining is None else named(ledger.problem, standing, MOST_RIVALS),
        "among": among(ledger.problem, session.policy, standing),
        "learning_noise": ledger.run.is_piloting,
        "n_told": ledger.n_told,
        "n_used": ledger.n_measurements,
        "n_unasked": ledger.n_unasked,
        "n_unasked_counted": ledger.run.n_unasked_counted,
        "n_missing": ledger.tapes.n_missing,
        "n_rounds": ledger.n_rounds,
        "counts": dict(zip(ledger.problem.arm_names, ledger.evidence.counts.tolist(), strict=True)),
    }


def _summary(place: Store, name: str) -> dict[str, Any]:
    """One line of `list`; a session that cannot be opened is listed with the reason."""
    from surepick.sessions.session import Session

    try:
        state = state_of(Session.load(place, name, read_only=True))
    except Exception as error:  # one odd session must not hide the others
        return {"session": name, "status": str(error), "measurements": None, "answer": None}
    return {
        "session": name,
        "status": state["status"],
        "measurements": state["n_told"],
        "answer": state["answer"],
    }


def _event(event: Event) -> dict[str, Any]:
    moment = datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds")
    return {"position": event.position, "time": moment, "kind": event.kind, "body": json.loads(event.body)}


def print_status(session: Session) -> None:
    """Print where a running session stands, or the certificate of one that has ended."""
    if session.status is not None:
        say(str(session.certificate()))
        return
    state = state_of(session)
    lines = {
        "session": f"{state['session']}: running",
        "told": f"{how_many(state['n_told'], 'measurement')}, {state['n_used']:,} used in "
        + how_many(state["n_rounds"], "round"),
        "unasked": f"{how_many(state['n_unasked'], 'measurement')}, {state['n_unasked_counted']:,} counted"
        if state["n_unasked"]
        else None,
        "waits for": how_many(state["n_missing"], "measurement"),
        "phase": "learning the noise scale" if state["learning_noise"] else None,
        "lead": state["lead"],
        "rival": state["rival"],
        "gap": _gap(state),
        "risk": None if state["risk"] is None else f"at most {state['risk']:.3g} if declared now",
        "proved": state["among"],
    }
    for name, value in lines.items():
        if value is not None:
            say(f"{name:<13}{value}")


def _gap(state: dict[str, Any]) -> str | None:
    if state["gap"] is None:
        return None
    within = "" if state["radius"] is None else f", known to within {state['radius']:.4g}"
    return f"{state['gap']:.4g}{within}"
