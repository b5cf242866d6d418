"""The application: the door, the routes behind it, and how errors look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from surepick.errors import StoreError, SurepickError
from surepick.web import api, downloads, forms, managing, pages
from surepick.web.context import Context
from surepick.web.live import Hub, TooManyViewersError
from surepick.web.security import Guard, Keys
from surepick.web.session_cache import NotYetError, SessionCache, UnknownSessionError, slug_of
from surepick.web.settings import Settings
from surepick.web.templating import Templates

OUR_FAULT = "something went wrong in this server; nothing that was recorded before is lost"


def create_app(settings: Settings) -> tuple[Guard, Hub]:
    """The whole dashboard as an ASGI application, and the hub of its live streams.

    >>> guard, hub = create_app(Settings("memory://"))
    >>> hub.n_viewers
    0
    """
    keys = Keys(settings.token)
    sessions = SessionCache(settings.store, write=settings.write, patience=settings.patience)
    templates = Templates(
        can_write=settings.write,
        has_token=keys.needed,
        form_key=keys.form_key,
    )
    context = Context(settings, keys, sessions, Hub(sessions), templates)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        warming = asyncio.create_task(pages.warm(context))
        yield
        warming.cancel()
        context.hub.stop()
        sessions.close()

    # The interactive pages about the API load scripts from elsewhere, so there are none: see docs/http.md.
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    for routes in (pages, downloads, forms, managing, api):
        routes.add_routes(app, context)
    app.mount("/static", StaticFiles(directory=str(files("surepick.web") / "static")), name="static")

    def refusal(path: str, status: int, reason: str, headers: Mapping[str, str]) -> Response:
        """An error as a page, and as JSON to those who asked under /api."""
        if path.startswith("/api/"):
            confirm = {"confirm": "sure"} if status == HTTPStatus.CONFLICT else {}
            return api.PlainJson({"error": reason, **confirm}, status, headers)
        model = {"title": HTTPStatus(status).phrase, "reason": reason}
        return HTMLResponse(templates.page("error.html", model), status, headers)

    async def explain(request: Request, error: Exception) -> Response:
        status, reason = _status(error)
        if isinstance(error, NotYetError) and not request.url.path.startswith("/api/"):
            model = {"session": error.session, "slug": slug_of(error.session)}
            return HTMLResponse(templates.page("opening.html", model), HTTPStatus.ACCEPTED)
        return refusal(request.url.path, status, reason, {"retry-after": "10"} if status == 503 else {})

    for kind in (SurepickError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, explain)
    return Guard(app, settings, keys, refusal), context.hub


def _status(error: Exception) -> tuple[int, str]:
    """The HTTP status for an error, and what to say about it."""
    match error:
        case HTTPException():
            return error.status_code, str(error.detail)
        case RequestValidationError():
            first = error.errors()[0]
            return 400, f"{first['loc'][-1]}: {first['msg']}"
        case UnknownSessionError():
            return 404, str(error)
        case StoreError() | TooManyViewersError() | NotYetError():
            return 503, str(error)
        case SurepickError(field="sure"):
            return 409, f'{error}. To record it all the same, send it again with "sure": true'
        case SurepickError():
            return 400, str(error)
    return 500, OUR_FAULT
