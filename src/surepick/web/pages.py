"""Pages to look at: they show what is recorded, and nothing is decided, leased or written by looking.

Each page has a JSON twin: one function makes the model, the page shows it, the twin sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from surepick import views
from surepick.errors import SurepickError
from surepick.sessions.session import Session
from surepick.views.events import LogRow, log_row
from surepick.web.api import PlainJson
from surepick.web.context import Context
from surepick.web.entry import EntryForm, choices, readings, told_meanwhile, what_became
from surepick.web.live import Parts
from surepick.web.session_cache import (
    NotYetError,
    SessionCache,
    name_of,
    slug_of,
)

SESSIONS, ROWS, LAST_EVENTS = 24, 100, 6  # on a page
WARM = 8  # sessions that are opened when the server starts
GLANCE = 0.2  # seconds that a live page waits for a session that is busy; it comes back soon
SESSION_PARTS = ("answer", "warnings", "next", "rivals", "progress", "plan", "arms", "about", "log")
MOST_COMPARED = 12

Page = Annotated[int, Query(ge=1, le=10**7)]
At = Annotated[int, Query(ge=0, le=10**15)]
Who = Annotated[str, Query(max_length=200)]
Done = Annotated[str, Query(max_length=20)]
TokenText = Annotated[str, Query(max_length=40)]
Chosen = Annotated[list[str] | None, Query(max_length=MOST_COMPARED)]

Model = dict[str, Any]
Show = Callable[[str, str], Callable[[Callable[..., Awaitable[Model]]], Any]]  # of a path and a template


def add_routes(routes: FastAPI, context: Context) -> None:
    """Serve the pages of this module."""
    show = _showing(routes, context)
    _add_overviews(show, context.sessions)
    _add_session(routes, show, context)
    _add_tables(show, context.sessions)
    _add_streams(routes, context)


def _showing(routes: FastAPI, context: Context) -> Show:
    """What serves the model that a function returns: at its path as a page, at `/api` + path as JSON."""

    def show(path: str, template: str) -> Callable[[Callable[..., Awaitable[Model]]], Any]:
        def register(model: Callable[..., Awaitable[Model]]) -> Callable[..., Awaitable[Model]]:
            async def page(**given: Any) -> HTMLResponse:
                return HTMLResponse(context.templates.page(template, await model(**given)))

            async def data(**given: Any) -> PlainJson:
                return PlainJson(await model(**given))

            for serve, at in ((page, path), (data, "/api" + path)):
                # what FastAPI reads the parameters from, with its annotations as types
                signature = inspect.signature(model, eval_str=True)
                setattr(serve, "__signature__", signature)  # noqa: B010  # functions declare no such attribute
                routes.get(at, response_model=None)(serve)
            return model

        return register

    return show


def _add_overviews(show: Show, sessions: SessionCache) -> None:
    @show("/", "home.html")
    async def home(page: Page = 1) -> Model:
        return await sessions.run(lambda: home_model(sessions, page))

    @show("/compare", "compare.html")
    async def compare(s: Chosen = None) -> Model:
        return await sessions.run(lambda: compared(sessions, s or []))


def _add_session(routes: FastAPI, show: Show, context: Context) -> None:
    sessions = context.sessions

    @show("/sessions/{slug}", "session.html")
    async def session(slug: str, who: Who = "", done: Done = "", token: TokenText = "") -> Model:
        chosen = token if done == "taken" else ""
        entry = EntryForm(who=who, token=chosen, done=done, about=token)
        return await sessions.at(
            slug, lambda opened: session_model(opened, entry), patience=sessions.patience
        )

    @routes.get("/api/sessions/{slug}/told", response_model=None)
    async def told(slug: str, token: TokenText) -> Response:
        return PlainJson({"text": await sessions.at(slug, lambda opened: told_meanwhile(opened, token))})

    @show("/sessions/{slug}/history", "history.html")
    async def history(slug: str, at: At = 0) -> Model:
        return await sessions.at(slug, lambda opened: past_model(opened, at), patience=sessions.patience)

    @routes.get("/sessions/{slug}/past", response_class=HTMLResponse)
    async def past(slug: str, at: At = 0) -> str:
        return context.templates.page("part_past.html", await history(slug, at))


def _add_tables(show: Show, sessions: SessionCache) -> None:
    """The tables of a session that are too long for its page, a part at a time."""

    @show("/sessions/{slug}/rivals", "rivals.html")
    async def rivals(slug: str, page: Page = 1) -> Model:
        def model(opened: Session) -> Model:
            found = views.rivals(views.look(opened), first=ROWS * (page - 1), n=ROWS)
            return _listing(opened, "rivals", found, page, found.n_rivals)

        return await sessions.at(slug, model, patience=sessions.patience)

    @show("/sessions/{slug}/arms", "arms.html")
    async def arms(slug: str, page: Page = 1) -> Model:
        def model(opened: Session) -> Model:
            found = views.arms(views.look(opened), first=ROWS * (page - 1), n=ROWS)
            return _listing(opened, "arms", found, page, found.n_arms)

        return await sessions.at(slug, model, patience=sessions.patience)

    @show("/sessions/{slug}/log", "log.html")
    async def log(slug: str, page: Page = 1) -> Model:
        def model(opened: Session) -> Model:
            opened.ledger()
            n_events = opened.fingerprint.position
            rows = log_rows(opened, n_events - ROWS * page, n_events - ROWS * (page - 1))
            return _listing(opened, "log", rows, page, n_events)

        return await sessions.at(slug, model, patience=sessions.patience)


def _add_streams(routes: FastAPI, context: Context) -> None:
    @routes.get("/sessions/{slug}/events", response_model=None)
    async def session_events(slug: str, request: Request) -> Response:
        name = name_of(slug)
        await context.sessions.run(lambda: context.sessions.open(name))  # is there such a session?
        last: list[Any] = [None, {}]  # what the page depends on, and the parts that were made of it

        def look() -> Parts:
            with contextlib.suppress(NotYetError):  # there is nothing to show yet; the next look may find it
                now = context.sessions.use(name, _moment, patience=GLANCE)
                if last[0] != now:
                    last[:] = now, _session_parts(context, name)
            parts: Parts = last[1]
            return parts

        return stream(f"session {name}", look, request)

    @routes.get("/events", response_model=None)
    async def home_events(request: Request, page: Page = 1) -> Response:
        def look() -> Parts:
            return {
                "sessions": context.templates.page("home_sessions.html", home_model(context.sessions, page))
            }

        return stream(f"home {page}", look, request)

    def stream(key: str, look: Callable[[], Parts], request: Request) -> Response:
        messages = context.hub.channel(key, look).view(request.headers.get("last-event-id", ""))
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(messages, media_type="text/event-stream", headers=headers)


async def warm(context: Context) -> None:
    """Open the youngest sessions and draw their pages once, so that nobody has to wait for that."""
    names = (await context.sessions.run(context.sessions.names))[:WARM]
    for name in names:
        with contextlib.suppress(SurepickError):  # whoever asks for it is told
            await asyncio.wrap_future(context.sessions.open(name))
            await context.sessions.run(lambda name=name: _session_parts(context, name))  # type: ignore[misc]


def home_model(sessions: SessionCache, page: int) -> Model:
    """A page of the list of sessions, the youngest first."""
    names, until = sessions.names(), time.monotonic() + sessions.patience
    return {
        "place": sessions.store.place,
        "n_sessions": len(names),
        "page": page,
        "n_pages": max(1, -(-len(names) // SESSIONS)),
        "sessions": [_tile(sessions, name, until) for name in names[SESSIONS * (page - 1) : SESSIONS * page]],
    }


def _tile(sessions: SessionCache, name: str, until: float) -> Model:
    """A session in the list, as far as it is open by then; nothing about one must hide the others."""
    try:
        patience = max(0.0, until - time.monotonic())
        seen = sessions.use(name, lambda opened: views.summary(views.look(opened)), patience=patience)
    except NotYetError:
        shown = _untold("opening", "Its numbers will be here in a moment.")
    except Exception as error:
        reason = str(error) if isinstance(error, SurepickError) else f"it cannot be read ({error!r})"
        shown = _untold("unreadable", reason)
    else:
        keys = ("title", "state", "trusted", "sentence", "n_measurements", "n_waiting", "toward")
        shown = {key: getattr(seen, key) for key in keys}
    return {"session": name, "slug": slug_of(name), **shown}


def _untold(state: str, sentence: str) -> Model:
    return {
        "title": "",
        "state": state,
        "trusted": True,
        "sentence": sentence,
        "n_measurements": None,
        "n_waiting": None,
        "toward": None,
    }


def compared(sessions: SessionCache, slugs: list[str]) -> Model:
    """The chosen sessions side by side; all names to choose from."""
    chosen = {name_of(slug) for slug in slugs}
    names = sessions.names()
    rows = [
        sessions.use(name, lambda opened: views.summary(views.look(opened)), patience=sessions.patience)
        for name in names
        if name in chosen
    ]
    return {
        "rows": [{"slug": slug_of(row.session), "summary": row} for row in rows],
        "names": [{"name": name, "slug": slug_of(name), "chosen": name in chosen} for name in names[:100]],
        "most": MOST_COMPARED,
    }


def session_model(opened: Session, entry: EntryForm = EntryForm()) -> Model:  # noqa: B008  # it is frozen
    """The first page of a session, and no more than it shows."""
    seen = views.look(opened)
    page = views.page(seen)
    last = opened.fingerprint.position
    return {
        "slug": slug_of(opened.name),
        "at": seen.n_used,
        "summary": page.summary,
        "progress": page.progress,
        "forecast": page.progress.forecast,
        "rivals": page.rivals,
        "arms": page.arms,
        "by_cost": page.arms.by_cost,
        "work": page.work,
        "picture": page.picture,
        "log": log_rows(opened, last - LAST_EVENTS, last),
        "entry": entry,
        "choices": (offered := choices(opened, page.work, entry)),
        "readings": readings(opened, offered, entry),
        "done": what_became(opened, entry),
    }


def past_model(opened: Session, at: int) -> Model:
    """The session as it was when the policy had seen that many measurements."""
    now, seen = views.look(opened), views.look(opened, n_used=at)
    page = views.page(seen)
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


def log_rows(opened: Session, first: int, last: int) -> list[LogRow]:
    """The events after position `first` up to `last`, the newest first."""
    first = max(first, 0)
    events = itertools.islice(opened.events(after=first), max(last - first, 0))
    return [log_row(event, opened.problem) for event in events][::-1]


def _listing(opened: Session, name: str, found: Any, page: int, n: int) -> Model:
    there = {"session": opened.name, "slug": slug_of(opened.name)}
    return {**there, name: found, "n": n, "page": page, "n_pages": max(1, -(-n // ROWS))}


def _moment(opened: Session) -> object:
    """What the page of a session depends on: the log, and who holds which tokens."""
    held = tuple((lease.token, lease.worker, lease.expires > opened.now()) for lease in opened.leases())
    return opened.store.head(opened.name), held


def _session_parts(context: Context, name: str) -> Parts:
    model = context.sessions.use(name, session_model)
    parts = (*SESSION_PARTS, "entry") if context.settings.write else SESSION_PARTS
    return {part: context.templates.page(f"part_{part}.html", model) for part in parts}
