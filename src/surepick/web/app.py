"""The application: one table of routes; pages and JSON answer by the same actions.

A browser gets HTML, a program JSON, by the header Accept. A form that is refused comes back with what was
entered; JSON gets the same mistake as an object.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import mimetypes
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote, urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from surepick.errors import NameTakenError, ParameterError, StoreError, SurepickError
from surepick.files.measurements import in_words
from surepick.policies import POLICIES, parse_policy
from surepick.report.check import begin
from surepick.report.export import export
from surepick.sessions.commands import next_name
from surepick.sessions.session import Session
from surepick.tables import count_in
from surepick.views.build import build
from surepick.views.sheet import write_workbook
from surepick.views.view import to_json
from surepick.web import pages
from surepick.web.actions import ACTIONS, Action, New, delete, import_table
from surepick.web.forms import Sent
from surepick.web.live import VIEW, Live, Parts, TooManyViewersError
from surepick.web.pages import Entered
from surepick.web.security import COOKIE, COOKIE_SECONDS, Guard, Keys, safe_path, wants_html
from surepick.web.session_cache import SessionCache, UnknownSessionError, name_of, slug_of
from surepick.web.settings import Settings
from surepick.web.uploads import Upload, Uploads

OUR_FAULT = "something went wrong in this server; nothing that was recorded before is lost"
PARTS = ("answer", "plans", "next", "history", "folds")
MOST_EVENTS = 1000  # of the log in one answer
EXPORTS = ("report.html", "certificate.json", "log.json", "values.csv")  # `surepick export` writes them too
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class JsonResponse(Response):
    """An answer in JSON; what is not finite is null."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Return the answer as bytes."""
        text = json.dumps(to_json(content), ensure_ascii=False, allow_nan=False)
        return text.encode(errors="backslashreplace")  # half a surrogate pair, as JSON writes it


def create_app(settings: Settings) -> tuple[Guard, Live]:
    """Return the server as an ASGI application, and its live streams.

    >>> guard, live = create_app(Settings("memory://", token="correct horse battery"))
    >>> live.n_viewers
    0
    """
    web = Web(settings)
    app = Starlette(routes=web.routes(), lifespan=web.lifespan)
    for kind in (SurepickError, HTTPException, Exception):
        app.add_exception_handler(kind, web.explain)
    return Guard(app, settings, web.keys, web.refusal), web.live


class Web:
    """What the routes share, and what each of them does.

    A handler of a form sets `request.state.again`: it shows the form again with what is wrong.
    """

    def __init__(self, settings: Settings) -> None:
        self.keys = Keys(settings.token)
        self.sessions = SessionCache(settings.store, read_only=settings.read_only)
        self.live = Live(self.sessions)
        self.templates = pages.templates(read_only=settings.read_only)
        self.uploads = Uploads()

    def routes(self) -> list[Route | Mount]:
        """Return all routes; docs/reference/http.md describes each."""
        one = "/api/sessions/{slug}"
        return [
            Route("/", self.home),
            Route("/new", self.new),
            Route("/s/{slug}", self.session),
            Route("/s/{slug}/history", self.history),
            Route("/s/{slug}/sheet", self.sheet),
            Route("/login", self.login),
            Mount("/static", StaticFiles(directory=str(files("surepick.web") / "static"))),
            Route("/login", self.log_in, methods=["POST"]),
            Route("/logout", self.log_out, methods=["POST"]),
            Route("/healthz", self.healthz),
            Route("/api/check", self.check, methods=["POST"]),
            Route("/api/sessions", self.listing),
            Route("/api/sessions", self.create, methods=["POST"]),
            Route(one, self.view),
            Route(one + "/stream", self.stream),
            Route(one + "/events", self.events),
            Route(one + "/export/{name}", self.export),
            Route(one, self.acting("delete", Action(delete)), methods=["DELETE", "POST"]),  # POST: forms
            *(
                Route(f"{one}/{name}", self.acting(name, of), methods=["POST"])
                for name, of in ACTIONS.items()
            ),
        ]

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """End everything when the server stops."""
        yield
        self.live.stop()
        self.sessions.close()

    # Pages

    async def home(self, request: Request) -> Response:
        """Show the sessions."""
        page = _count(request, "page", 1)
        return self._page("home.html", await self.sessions.run(lambda: pages.home_model(self.sessions, page)))

    async def new(self, request: Request) -> Response:
        """Show the questions about a new session."""
        return self._new_page(Entered())

    async def session(self, request: Request) -> Response:
        """Show a session."""
        done = ACTIONS.get(request.query_params.get("done", ""))
        entered = Entered(by=request.query_params.get("by", "")[:200], done="" if done is None else done.done)
        return await self._session_page(request.path_params["slug"], entered)

    async def history(self, request: Request) -> Response:
        """Show all recorded values, page by page."""
        page = _count(request, "page", 1)
        slug = request.path_params["slug"]
        found = await self.sessions.at(slug, lambda session: pages.history_model(session, page))
        return self._page("history.html", found)

    async def sheet(self, request: Request) -> Response:
        """Show the measuring sheet, to print or as a spreadsheet."""
        found = await self.sessions.at(request.path_params["slug"], pages.sheet_model)
        if request.query_params.get("as") == "xlsx":
            book = io.BytesIO()
            write_workbook(book, found["names"], found["rows"])
            return _download(book.getvalue(), XLSX, f"{found['session']}-sheet.xlsx")
        return self._page("sheet.html", found)

    async def login(self, request: Request) -> Response:
        """Ask for the token."""
        return self._page("login.html", {"wrong": False, "next": request.query_params.get("next", "/")})

    async def log_in(self, request: Request) -> Response:
        """Give a browser that sends the token a cookie, and open the page that it had asked for."""
        sent = await Sent.read(request, self.uploads)
        back = safe_path(sent.field("next") or "/")
        if not self.keys.opens(sent.field("token").strip()):
            return self._page("login.html", {"wrong": True, "next": back}, 401)
        answer = RedirectResponse(back, 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, self.keys.new_cookie(), COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure
        )
        return answer

    async def log_out(self, request: Request) -> Response:
        """End the cookie."""
        self.keys.revoke(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    # Looking

    async def healthz(self, request: Request) -> Response:
        """Answer without a token whether the store can be read; an error becomes 503."""
        await self.sessions.run(self.sessions.store.names)
        return JsonResponse({"store": "readable"})

    async def listing(self, request: Request) -> Response:
        """List the sessions, the newest first."""
        page = _count(request, "page", 1)
        return JsonResponse(await self.sessions.run(lambda: pages.home_model(self.sessions, page)))

    async def view(self, request: Request) -> Response:
        """Return the View."""
        return JsonResponse(await self.sessions.at(request.path_params["slug"], build))

    async def events(self, request: Request) -> Response:
        """Return events of the log after a position."""
        after = _count(request, "after", 0)
        n = min(_count(request, "n", MOST_EVENTS), MOST_EVENTS)

        def read(session: Session) -> list[dict[str, Any]]:
            return [
                {"position": one.position, "time": one.time, "kind": one.kind, "body": json.loads(one.body)}
                for one in itertools.islice(session.events(after=after), n)
            ]

        return JsonResponse({"events": await self.sessions.at(request.path_params["slug"], read)})

    async def stream(self, request: Request) -> Response:
        """Stream the View, or with `parts=page` the parts of the page, whenever they change."""
        name = name_of(request.path_params["slug"])
        await self.sessions.run(lambda: self.sessions.use(name, bool))  # refuses a name that is not there
        as_page = request.query_params.get("parts") == "page"
        messages = self.live.stream(name, self.parts if as_page else _view_part)
        headers = {"x-accel-buffering": "no"}
        return StreamingResponse(messages, media_type="text/event-stream", headers=headers)

    def parts(self, session: Session) -> Parts:
        """Return the parts of a session's page."""
        model = pages.session_model(session)
        return {name: self._html(f"part_{name}.html", model) for name in PARTS}

    async def export(self, request: Request) -> Response:
        """Return a file: report, certificate, log or values."""
        slug = request.path_params["slug"]
        name = request.path_params["name"]
        if name not in EXPORTS:
            raise HTTPException(404, f"there is no file {name!r}; known: {', '.join(EXPORTS)}")

        def write(session: Session) -> bytes:
            with tempfile.TemporaryDirectory(prefix="surepick-") as folder:
                return export(session, Path(folder) / name).read_bytes()

        kind = mimetypes.guess_type(name)[0] or ""
        return _download(await self.sessions.at(slug, write), kind, f"{name_of(slug)}-{name}")

    # Changing

    def acting(self, name: str, action: Action) -> Callable[[Request], Any]:
        """Return what serves this action."""

        async def act(request: Request) -> Response:
            slug = request.path_params["slug"]
            sent = await Sent.read(request, self.uploads)
            entered = sent.entered(name)

            async def again(error: SurepickError) -> Response:
                return await self._session_page(slug, entered.with_error(error), _status(error)[0])

            request.state.again = again
            work = await self._work(action, name, sent)
            answer = await self.sessions.at(slug, work)
            if name == "delete":
                self.sessions.forget(name_of(slug))
                return RedirectResponse("/", 303) if wants_html(request) else JsonResponse(answer)
            if not wants_html(request):
                return JsonResponse({"view": await self.sessions.at(slug, build), **answer})
            if name == "import":
                return await self._session_page(slug, Entered(done=in_words(answer["counts"])))
            shown = {"by": entered.by, "done": name if action.done else ""}
            query = urlencode({key: given for key, given in shown.items() if given})
            return RedirectResponse(f"/s/{quote(slug)}" + (f"?{query}" if query else ""), 303)

        return act

    async def _work(self, action: Action, name: str, sent: Sent) -> Callable[[Session], dict[str, Any]]:
        """Return what an action does with what was sent; a form's import is a file."""
        if name != "import" or sent.fields is None:
            body = sent.body(action.body, name)
            return lambda session: action.do(session, body)
        if len(sent.uploads) != 1:
            raise ParameterError("choose one file", field="file")
        rows = await self.uploads.rows(sent.uploads[0])
        is_sure = sent.field("sure") == "yes"
        return lambda session: import_table(session, rows, worker=sent.field("worker"), sure=is_sure)

    async def check(self, request: Request) -> Response:
        """Read a problem and forecast the measurements; nothing is kept but the upload of a form."""
        sent = await Sent.read(request, self.uploads)
        entered = sent.entered("new")
        request.state.again = self._new_again(entered)
        body = sent.body(New)
        settings = body.model_dump(include={"delta", "epsilon", "budget"}) | body.limits
        found = await self.uploads.read("check", _files(body, sent), settings)
        return self._new_page(entered, found) if wants_html(request) else JsonResponse(found)

    async def create(self, request: Request) -> Response:
        """Begin a session: from a problem, from files, or again from a session that came before."""
        sent = await Sent.read(request, self.uploads)
        entered = sent.entered("new")
        prior = sent.field("prior")

        async def on_session(error: SurepickError) -> Response:
            return await self._session_page(slug_of(prior), entered.with_error(error), 400)

        request.state.again = on_session if prior else self._new_again(entered)
        body = sent.body(New)
        name = await (self._successor(body) if body.prior else self._begin(body, _files(body, sent)))
        if wants_html(request):
            return RedirectResponse(f"/s/{quote(slug_of(name))}", 303)
        view = await self.sessions.run(lambda: self.sessions.use(name, build))
        return JsonResponse({"view": view, "slug": slug_of(name)}, 201)

    async def _begin(self, body: New, uploads: Sequence[Upload]) -> str:
        """Begin a session with the problem in these files; return its name."""
        if body.policy and body.policy not in policies():
            raise ParameterError(f"there is no policy {body.policy[:40]!r} here", field="policy")
        loaded = await self.uploads.problem(uploads, body.limits)
        given = body.model_dump(include={"delta", "epsilon", "budget", "policy", "seed"})

        def begun() -> str:
            store = self.sessions.store
            stem, taken = PurePath(uploads[0].name).stem, store.names()
            name = body.name or (next_name(stem, taken) if stem in taken else stem)
            return begin(store, name, loaded, given).name

        try:
            return await self.sessions.run(begun)
        except NameTakenError as error:
            raise ParameterError(str(error), field="name") from error

    async def _successor(self, body: New) -> str:
        """Close the session that came before and begin again with its values as prior data."""

        def follow(session: Session) -> str:
            name = body.name or None
            if not body.noise_unknown:
                return session.successor("begun again", name=name).name
            problem = session.problem.with_noise(None)
            return session.successor("begun again, noise unknown", name=name, problem=problem).name

        return await self.sessions.at(slug_of(body.prior or ""), follow)

    # Answers

    def _html(self, template: str, model: Mapping[str, Any]) -> str:
        """Return the page, or the part of one, that shows this model; what UTF-8 cannot say becomes "?"."""
        return self.templates.get_template(template).render(it=model).encode(errors="replace").decode()

    def _page(
        self,
        template: str,
        model: Mapping[str, Any],
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        return HTMLResponse(self._html(template, model), status, headers)

    async def _session_page(self, slug: str, entered: Entered, status: int = 200) -> Response:
        model = await self.sessions.at(slug, lambda session: pages.session_model(session, entered))
        return self._page("session.html", model, status)

    def _new_page(self, entered: Entered, read: Any = None, status: int = 200) -> Response:
        model = {"entered": entered, "read": read, "policies": policies()}
        return self._page("new.html", model, status)

    def _new_again(self, entered: Entered) -> Callable[[SurepickError], Awaitable[Response]]:
        """Return what shows this form again; a mistake in an uploaded problem is shown at its files."""

        async def again(error: SurepickError) -> Response:
            if error.field not in pages.FIELDS["new"]:
                error = ParameterError(str(error), field="files")
            return self._new_page(entered.with_error(error), status=400)

        return again

    def refusal(self, scope: Scope, status: int, reason: str, headers: Mapping[str, str]) -> Response:
        """Return an error without a class of its own, as a page or as JSON."""
        return self._error(HTTPConnection(scope), status, {"class": "HTTPError", "message": reason}, headers)

    async def explain(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed: a form again, a page, or JSON."""
        again = getattr(request.state, "again", None)
        if again is not None and isinstance(error, SurepickError) and wants_html(request):
            request.state.again = None  # the page itself may fail
            answer: Response = await again(error)
            return answer
        status, message = _status(error)
        found = {"class": type(error).__name__, "field": getattr(error, "field", None), "message": message}
        if mistakes := message.split("\n")[1:]:
            found["mistakes"] = [one.strip() for one in mistakes]
        if status == HTTPStatus.CONFLICT:
            found["hint"] = 'if it is right, send it again with "sure": true'
        return self._error(request, status, found, {"retry-after": "10"} if status == 503 else {})

    def _error(
        self, asked: HTTPConnection, status: int, found: dict[str, Any], headers: Mapping[str, str]
    ) -> Response:
        if not wants_html(asked):
            known = {"class": "", "field": None, "message": "", "hint": None}
            return JsonResponse({"error": {**known, **found}}, status, dict(headers))
        model = {"title": HTTPStatus(status).phrase, "reason": found["message"]}
        return self._page("error.html", model, status, headers)


def _status(error: Exception) -> tuple[int, str]:
    """Return the HTTP status for an error, and what to say about it."""
    match error:
        case HTTPException():
            return error.status_code, str(error.detail)
        case UnknownSessionError():
            return 404, str(error)
        case StoreError() | TooManyViewersError():
            return 503, str(error)
        case SurepickError(field="sure"):
            return 409, str(error)
        case SurepickError():
            return 400, str(error)
    return 500, OUR_FAULT


def _view_part(session: Session) -> Parts:
    return {VIEW: json.dumps(build(session).to_json(), ensure_ascii=False)}


def _count(request: Request, name: str, default: int) -> int:
    """Return a whole number of the query."""
    given = request.query_params.get(name)
    found = default if given is None else count_in(given)
    if found is None or not min(default, 1) <= found <= 10**12:
        raise ParameterError(f"{name}: expected a whole number, got {(given or '')[:40]!r}", field=name)
    return found


def policies() -> list[str]:
    """Return the policies with a guarantee that need no further settings."""
    found = []
    for name in POLICIES:
        with contextlib.suppress(TypeError, SurepickError):
            found += [name] if parse_policy(name).guarantee.proved else []
    return sorted(found)


def _files(body: New, sent: Sent) -> Sequence[Upload]:
    """Return the files of a new session; a problem that was sent as JSON is one."""
    if body.problem is None:
        return sent.uploads
    return [Upload("problem.json", json.dumps(body.problem).encode())]


def _download(content: bytes, kind: str, name: str) -> Response:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name)[:80]
    headers = {"content-disposition": f'attachment; filename="{plain}"'}
    return Response(content, media_type=kind, headers=headers)
