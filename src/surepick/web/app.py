"""The application: the door, the pages behind it, and how errors look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.types import Scope

from surepick.errors import StoreError, SurepickError
from surepick.web import pages, writing
from surepick.web.context import Desk
from surepick.web.keys import Keys
from surepick.web.live import Hub, TooManyViewersError
from surepick.web.security import Guard
from surepick.web.session_cache import Shelf, UnknownSessionError
from surepick.web.settings import Settings
from surepick.web.templating import Renderer
from surepick.web.twins import PlainJson


def create_app(settings: Settings) -> tuple[Guard, Hub]:
    """The whole dashboard as an ASGI application, and the hub of its live streams.

    >>> guard, hub = create_app(Settings("memory://"))
    >>> hub.n_viewers
    0
    """
    keys = Keys(settings.token)
    shelf = Shelf(settings.store, write=settings.write)
    desk = Desk(settings, keys, shelf, Hub(shelf), Renderer(settings, keys))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.create_task(pages.warm(desk))
        yield
        warming.cancel()
        desk.hub.stop()
        shelf.close()

    # The interactive pages about the API load scripts from elsewhere, so there are none: see docs/http.md.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    pages.add_routes(app, desk)
    writing.add_routes(app, desk)
    app.mount("/static", StaticFiles(directory=str(files("surepick.web") / "static")), name="static")
    explain = _Explain(desk.renderer)
    for kind in (SurepickError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, explain.answer)
    return Guard(app, settings, keys, explain), desk.hub


class _Explain:
    """Errors as pages, and as JSON to those who asked under /api."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def __call__(self, scope: Scope, status: int, reason: str) -> tuple[str, bytes]:
        if scope["path"].startswith("/api/"):
            return "application/json", bytes(PlainJson({"error": reason}).body)
        title = HTTPStatus(status).phrase
        page = self._renderer.page("error.html", {"status": status, "title": title, "reason": reason})
        return "text/html; charset=utf-8", page.encode()

    async def answer(self, request: Request, error: Exception) -> Response:
        status, reason = _status(error)
        kind, body = self(request.scope, status, reason)
        headers = {"retry-after": "10"} if status == 503 else {}
        return Response(body, status, headers, media_type=kind)


def _status(error: Exception) -> tuple[int, str]:
    """The HTTP status for an error, and what to say about it."""
    if isinstance(error, HTTPException):
        return error.status_code, str(error.detail)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return 400, f"{first['loc'][-1]}: {first['msg']}"
    if isinstance(error, UnknownSessionError):
        return 404, str(error)
    if isinstance(error, StoreError | TooManyViewersError):
        return 503, str(error)
    if isinstance(error, SurepickError):
        return 400, str(error)
    return 500, "something went wrong in this server; nothing that was recorded before is lost"
