"""What each page shows: views of one session or of all, cut to what fits on the page."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surepick import views
from surepick.core.oracle_problem import in_short
from surepick.core.wording import how_many
from surepick.errors import SurepickError
from surepick.sessions.session import Session
from surepick.store import Event
from surepick.web.session_cache import Shelf, slug_of

SESSIONS, ROWS, LOG_ROWS, LAST_EVENTS = 24, 100, 100, 6  # on a page
MOST_TEXT = 160  # letters of an event

Model = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """The form for a measurement: what was entered, and what was wrong with it."""

    who: str = ""
    token: str = ""
    value: str = ""
    errors: tuple[tuple[str, str], ...] = ()  # by field
    done: str = ""


@dataclass(frozen=True)
class LogRow:
    """An event for people."""

    position: int
    time: float
    kind: str
    text: str


def home(shelf: Shelf, page: int) -> Model:
    """A page of the list of sessions, the youngest first."""
    names = shelf.names()
    shown = names[SESSIONS * (page - 1) : SESSIONS * page]
    return {
        "place": shelf.store.place,
        "n_sessions": len(names),
        "page": page,
        "n_pages": max(1, -(-len(names) // SESSIONS)),
        "sessions": [_tile(shelf, name) for name in shown],
    }


def _tile(shelf: Shelf, name: str) -> Model:
    try:
        with shelf.session(name) as session:
            seen = views.summary(views.look(session))
    except SurepickError as error:
        seen, reason = None, str(error)
    tile = {"session": name, "slug": slug_of(name)}
    if seen is None:
        return {**tile, "state": "unreadable", "sentence": reason, "n_measurements": None, "toward": None}
    return {
        **tile,
        "state": seen.state,
        "sentence": seen.sentence,
        "n_measurements": seen.n_measurements,
        "toward": seen.toward,
    }


def session(opened: Session, *, entry: Entry | None = None) -> Model:
    """The first page of a session, and no more than it shows."""
    seen = views.look(opened)
    page = views.page(seen)
    return {
        **{
            name: getattr(page, name) for name in ("summary", "progress", "rivals", "arms", "work", "picture")
        },
        "slug": slug_of(opened.name),
        "forecast": page.progress.forecast,
        "by_cost": page.arms.by_cost,
        "at": seen.n_used,
        "log": last_events(opened),
        "entry": entry or Entry(),
    }


def past(opened: Session, at: int) -> Model:
    """The session as it was when the policy had seen so many measurements."""
    now = views.look(opened)
    seen = views.look(opened, n_used=at)
    page = views.page(seen, n_rivals=10, n_arms=20)
    return {
        "slug": slug_of(opened.name),
        "at": seen.n_used,
        "summary": page.summary,
        "rivals": page.rivals,
        "arms": page.arms,
        "picture": page.picture,
        "progress": views.progress(now),
        "moments": views.moments(now),
    }


def rivals(opened: Session, page: int) -> Model:
    """A page of all rivals."""
    found = views.rivals(views.look(opened), first=ROWS * (page - 1), n=ROWS)
    return _listing(opened, "rivals", found, page, found.n_rivals)


def arms(opened: Session, page: int) -> Model:
    """A page of all arms."""
    found = views.arms(views.look(opened), first=ROWS * (page - 1), n=ROWS)
    return _listing(opened, "arms", found, page, found.n_arms)


def log(opened: Session, page: int) -> Model:
    """A page of the log, the newest events first."""
    opened.ledger()
    n_events = opened.fingerprint.position
    last = max(n_events - LOG_ROWS * (page - 1), 0)
    first = max(last - LOG_ROWS, 0)
    rows = [_log_row(opened, event) for event in itertools.islice(opened.events(after=first), last - first)]
    return _listing(opened, "log", rows[::-1], page, n_events, size=LOG_ROWS)


def last_events(opened: Session) -> list[LogRow]:
    """The newest events, the newest first."""
    first = max(opened.fingerprint.position - LAST_EVENTS, 0)
    return [_log_row(opened, event) for event in opened.events(after=first)][::-1][:LAST_EVENTS]


def _listing(opened: Session, name: str, found: Any, page: int, n: int, *, size: int = ROWS) -> Model:
    return {
        "session": opened.name,
        "slug": slug_of(opened.name),
        name: found,
        "n": n,
        "page": page,
        "n_pages": max(1, -(-n // size)),
    }


def _log_row(opened: Session, event: Event) -> LogRow:
    text = " ".join(_words(opened, event.kind, json.loads(event.body)))
    return LogRow(
        event.position,
        event.time,
        event.kind,
        text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…",
    )


def _words(opened: Session, kind: str, body: Model) -> Iterator[str]:
    """What happened, in words; names are given as they are, to be escaped where they are shown."""
    problem = opened.given_problem
    if kind == "created":
        plans = f"{in_short(problem.n_plans)} plans" if problem.n_plans else "many plans"
        yield f"{plans}, {how_many(problem.n_arms, 'arm')}, {body['policy']['name']}"
    elif kind == "asked":
        counts = body["counts"]
        yield "pilot:" if body.get("pilot") else f"round {body['round']}:"
        yield ", ".join(f"{problem.arm_names[arm]} {count} ×" for arm, count in counts[:8])
        yield f"and {len(counts) - 8} more" if len(counts) > 8 else ""
    elif kind in ("measured", "recorded"):
        values = body.get("values", [body.get("value")])
        yield f"{problem.arm_names[body['arm']]} = {', '.join(f'{value:g}' for value in values[:8])}"
        yield f"mean of {body['count']}" if "count" in body else ""
        yield f"by {body['worker']}" if body.get("worker") else ""
        yield "(nobody had asked)" if kind == "recorded" else ""
    elif kind == "stopped":
        yield body["status"]
        yield "" if body["plan"] is None else f"with {problem.name_of(body['plan'])}"
    elif kind == "extended":
        yield f"delta {body['policy']['parameters'].get('delta')}, budget {body['budget']}"
    else:
        yield ", ".join(f"{key} {value}" for key, value in body.items() if value not in ("", None))
