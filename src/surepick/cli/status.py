"""`status`, `list` and `log`: where sessions stand and what happened."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.hints import next_steps
from surepick.cli.opening import only_name, open_session, open_to_read
from surepick.cli.options import DEFAULT_STORE, DOUBTFUL, Json, Name, StoreUrl
from surepick.cli.render import answer, console, print_columns, say
from surepick.cli.screen import N_RIVALS, look_at, screen

if TYPE_CHECKING:
    from surepick.sessions.session import Session
    from surepick.store import Event, Store
    from surepick.views import Page

_LONGEST_EVENT = 1000  # letters: a terminal wraps them


def status(
    plans: Annotated[int, typer.Option(min=0, help="Show this many other plans; 0 shows all.")] = N_RIVALS,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Say where a session stands: the answer or the lead, what it does, its rivals, and what to do next."""
    opened = open_session(store, session, read_only=True)
    if as_json:
        data = {**state_of(opened), **_in_words(look_at(opened, plans))}
        certificate = {"certificate": opened.certificate().to_json()} if opened.status != "running" else {}
        answer({**data, **certificate}, True, lambda: None)
    else:
        print_status(opened, store, plans)
    raise typer.Exit(DOUBTFUL if opened.status == "confident" and opened.doubts else 0)


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
    """Show what happened, event by event; --json has the events as they are stored."""
    place = open_to_read(store)
    name = session or only_name(place)
    skipped = max(0, place.head(name).position - last) if last else 0
    events = [event for event in place.read(name) if event.position > skipped]
    answer([*map(_event, events)], as_json, lambda: _print_log(store, name, events))


def state_of(session: Session) -> dict[str, Any]:
    """What every answer in JSON says about the session."""
    from surepick.certificates.rivals import MOST_RIVALS
    from surepick.core.plan_words import among, named
    from surepick.sessions import codec

    ledger = session.ledger()
    standing, name_of, doubts = ledger.standing(), ledger.problem.name_of, ledger.doubts()
    return {
        "session": session.name,
        "status": "running" if ledger.status is None else str(ledger.status),
        "trusted": not doubts,
        "doubts": [asdict(doubt) for doubt in doubts],
        "answer": name_of(ledger.plan),
        "lead": name_of(standing.lead),
        "rival": name_of(standing.rival),
        "gap": codec.finite_or_none(standing.gap),
        "radius": codec.finite_or_none(standing.radius),
        "risk": codec.finite_or_none(standing.risk),
        "n_remaining": None if standing.remaining is None else len(standing.remaining),
        "remaining": None if standing.remaining is None else named(ledger.problem, standing, MOST_RIVALS),
        "among": among(ledger.problem, session.policy, standing),
        "n_told": ledger.n_told,
        "n_used": ledger.n_measurements,
        "n_unasked": ledger.n_unasked,
        "n_unasked_counted": ledger.run.n_unasked_counted,
        "n_missing": ledger.tapes.n_missing,
        "n_rounds": ledger.n_rounds,
        "counts": dict(zip(ledger.problem.counted_names, ledger.evidence.counts.tolist(), strict=True)),
    }


def _summary(place: Store, name: str) -> dict[str, Any]:
    """One line of `list`; a session that cannot be opened is listed with the reason."""
    from surepick.sessions.session import Session

    try:
        ledger = Session.load(place, name, read_only=True).ledger()
    except Exception as error:  # one odd session must not hide the others
        return {"session": name, "status": str(error), "measurements": None, "answer": None}
    return {
        "session": name,
        "status": "running" if ledger.status is None else str(ledger.status),
        "measurements": ledger.n_told,
        "answer": ledger.setup.problem.name_of(ledger.plan),
    }


def _event(event: Event) -> dict[str, Any]:
    moment = datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds")
    return {"position": event.position, "time": moment, "kind": event.kind, "body": json.loads(event.body)}


def _print_log(store: str, name: str, events: list[Event]) -> None:
    """The events in the words of the dashboard and the report, with the time of this place."""
    from surepick.views.events import log_row

    problem = open_session(store, name, read_only=True).problem
    columns = ("number", "time", "event", "what happened")
    rows = []
    for event in events:
        row = log_row(event, problem, most_text=_LONGEST_EVENT)
        moment = datetime.fromtimestamp(row.time, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
        rows.append(dict(zip(columns, (row.position, moment, row.kind, row.text), strict=True)))
    print_columns(columns, rows)


def _in_words(page: Page) -> dict[str, Any]:
    """What `status` says beside the bare state."""
    from surepick.views import to_json

    summary, coming = page.summary, page.progress.forecast
    found: dict[str, Any] = to_json(
        {
            "title": summary.title,
            "unit": summary.unit,
            "sentence": summary.sentence,
            "runner_up": summary.runner_up,
            "value": summary.value,
            "value_error": summary.value_error,
            "estimates": {
                "chance": summary.chance,
                "expected_loss": summary.expected_loss,
                "sure_within": None if coming is None else {str(n): chance for n, chance in coming.chances},
                "what_if": summary.what_if,
            },
            "cost": summary.cost,
            "plan": page.plan,
            "other_plans": page.rivals.rows,
        }
    )
    return found


def print_status(session: Session, store: str, plans: int = N_RIVALS) -> None:
    """Print where the session stands, its certificate once it has ended, and what to do next."""
    from rich.rule import Rule

    console.print(screen(look_at(session, plans), most_pieces=None))
    if session.status != "running":
        console.print(Rule("Certificate", align="left", style="dim"))
        say(str(session.certificate()))
    print_next(session, store)


def print_next(session: Session, store: str) -> None:
    """Print the commands that lead on from here."""
    steps = next_steps(session, store)
    width = max((len(words) for words, _ in steps), default=0)
    for at, (words, what) in enumerate(steps):
        say(f"{'next:' if at == 0 else '     '} {words.ljust(width)}  {what}")
