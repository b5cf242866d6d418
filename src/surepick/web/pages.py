"""Pages to look at: they show what is recorded, and nothing is decided, leased or written by looking."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from surepick.errors import SurepickError
from surepick.sessions.session import Session
from surepick.web import models
from surepick.web.context import Desk
from surepick.web.live import Parts
from surepick.web.session_cache import name_of
from surepick.web.twins import Model, twin

Page = Annotated[int, Query(ge=1, le=10**7)]
At = Annotated[int, Query(ge=0, le=10**15)]
Who = Annotated[str, Query(max_length=200)]
Done = Annotated[str, Query(max_length=20)]

WARM = 8  # sessions that are opened when the server starts
SESSION_PARTS = ("answer", "warnings", "next", "rivals", "progress", "plan", "arms", "about", "log")


def add_routes(routes: FastAPI, desk: Desk) -> None:
    """Serve the pages of this module."""

    def show(path: str, template: str) -> Callable[[Model], Model]:
        return twin(routes, desk.renderer, path, template)

    @show("/", "home.html")
    async def home(page: Page = 1) -> models.Model:
        return await desk.shelf.run(lambda: models.home(desk.shelf, page))

    @show("/sessions/{slug}", "session.html")
    async def session(slug: str, who: Who = "", done: Done = "") -> models.Model:
        entry = models.Entry(who=who, done=done)
        return await desk.with_session(slug, lambda opened: models.session(opened, entry=entry))

    @show("/sessions/{slug}/rivals", "rivals.html")
    async def rivals(slug: str, page: Page = 1) -> models.Model:
        return await desk.with_session(slug, lambda opened: models.rivals(opened, page))

    @show("/sessions/{slug}/arms", "arms.html")
    async def arms(slug: str, page: Page = 1) -> models.Model:
        return await desk.with_session(slug, lambda opened: models.arms(opened, page))

    @show("/sessions/{slug}/log", "log.html")
    async def log(slug: str, page: Page = 1) -> models.Model:
        return await desk.with_session(slug, lambda opened: models.log(opened, page))

    @show("/sessions/{slug}/history", "history.html")
    async def history(slug: str, at: At = 0) -> models.Model:
        return await desk.with_session(slug, lambda opened: models.past(opened, at))

    @routes.get("/sessions/{slug}/past", response_class=HTMLResponse)
    async def past(slug: str, at: At = 0) -> str:
        return desk.renderer.page("part_past.html", await history(slug, at))

    @routes.get("/sessions/{slug}/certificate.json", response_model=None)
    async def certificate(slug: str) -> Response:
        return await desk.with_session(slug, _certificate)

    @routes.get("/sessions/{slug}/events", response_model=None)
    async def session_events(slug: str, request: Request) -> Response:
        name = name_of(slug)
        await desk.with_session(slug, lambda _: None)  # is there such a session?
        look = _Watch(lambda: desk.in_session(name, _moment), lambda: _session_parts(desk, name))
        return _stream(desk, f"session {name}", look, request)

    @routes.get("/events", response_model=None)
    async def home_events(request: Request, page: Page = 1) -> Response:
        return _stream(desk, f"home {page}", lambda: _home_parts(desk, page), request)

    folder = desk.settings.results
    if folder is not None:
        _add_experiments(show, desk, folder)

    @routes.get("/login", response_class=HTMLResponse)
    async def login() -> str:
        return desk.renderer.page("login.html", {"wrong": False})


def _add_experiments(show: Callable[[str, str], Callable[[Model], Model]], desk: Desk, folder: Path) -> None:
    from surepick.web import experiments  # slow to import, and seldom needed

    @show("/experiments", "experiments.html")
    async def listing() -> models.Model:
        return await desk.shelf.run(lambda: experiments.listing(folder))

    @show("/experiments/{slug}", "comparison.html")
    async def comparison(slug: str) -> models.Model:
        return await desk.shelf.run(lambda: experiments.comparison(folder, name_of(slug)))


async def warm(desk: Desk) -> None:
    """Open the youngest sessions and draw their pages once, so that nobody has to wait for that."""
    for name in (await desk.shelf.run(desk.shelf.names))[:WARM]:
        with contextlib.suppress(SurepickError):  # whoever asks for it is told
            await desk.shelf.run(lambda name=name: _session_parts(desk, name))  # type: ignore[misc]


class _Watch:
    """A look that is taken again only when the moment has changed; it remembers the last one."""

    def __init__(self, moment: Callable[[], object], parts: Callable[[], Parts]) -> None:
        self._moment, self._parts = moment, parts
        self._last: tuple[object, Parts] | None = None

    def __call__(self) -> Parts:
        now = self._moment()
        if self._last is None or self._last[0] != now:
            self._last = (now, self._parts())
        return self._last[1]


def _moment(session: Session) -> object:
    """What the page of a session depends on: the log, and who holds which tokens."""
    held = tuple((lease.token, lease.worker, lease.expires > session.now()) for lease in session.leases())
    return session.store.head(session.name), held


def _session_parts(desk: Desk, name: str) -> Parts:
    model = desk.in_session(name, models.session)
    parts = (*SESSION_PARTS, "entry") if desk.settings.write else SESSION_PARTS
    return {part: desk.renderer.page(f"part_{part}.html", model) for part in parts}


def _home_parts(desk: Desk, page: int) -> Parts:
    return {"sessions": desk.renderer.page("home_sessions.html", models.home(desk.shelf, page))}


def _stream(desk: Desk, key: str, look: Callable[[], Parts], request: Request) -> Response:
    channel = desk.hub.channel(key, look)
    messages = channel.view(request.headers.get("last-event-id", ""))
    return StreamingResponse(messages, media_type="text/event-stream", headers={"x-accel-buffering": "no"})


def _certificate(session: Session) -> Response:
    body = json.dumps(session.certificate().to_json(), indent=1)
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in session.name)[:60]
    disposition = f'attachment; filename="certificate-{name}.json"'
    return Response(body, media_type="application/json", headers={"content-disposition": disposition})
