"""A session's page for those who run it: title, notes, going on, ending, files to take away, deleting.

Each form, and its twin in JSON, is one of the `actions`. What cannot be undone asks for the session's name.
"""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from surepick import views
from surepick.core.numerals import is_numeral, numeral
from surepick.core.tables import SHEETS
from surepick.errors import ParameterError, SurepickError
from surepick.sessions.measurement_files import Row, import_rows, write_csv, write_json
from surepick.sessions.requests import measurements_in
from surepick.sessions.session import Session
from surepick.views.text import number
from surepick.web.actions import ACTIONS, Close, Delete, Extend, Note, Rename, Void, refuse_doubtful
from surepick.web.api import LONGEST_NAME, PlainJson, read
from surepick.web.context import Context
from surepick.web.entry import split_choice
from surepick.web.session_cache import SessionCache, name_of, slug_of
from surepick.web.uploads import Upload

LAST_EVENTS, MOST_LISTED = 300, 50  # among which values to take back are looked for, and how many are offered
MOST_COMPARED = 12
Chosen = Annotated[list[str] | None, Query(max_length=MOST_COMPARED)]

Model = dict[str, Any]
Checked = Callable[[type[Any], Mapping[str, object]], Any]


def add_routes(
    routes: FastAPI, context: Context, check_key: Callable[[FormData], None], checked: Checked
) -> None:
    """Serve the routes of this module; `check_key` and `checked` are how forms are looked at."""
    sessions, templates = context.sessions, context.templates

    @routes.get("/sessions/{slug}/report.html", response_model=None)
    async def report(slug: str) -> Response:
        from surepick.report import report  # an edge beside this one, made of its templates

        page = await sessions.at(slug, report)
        return _download(page, "text/html; charset=utf-8", f"report-{_plain(name_of(slug))}.html")

    @routes.get("/api/sessions/{slug}/export.{form}", response_model=None)
    @routes.get("/sessions/{slug}/export.{form}", response_model=None)
    async def export(slug: str, form: Literal["csv", "json"]) -> Response:
        def written(opened: Session) -> str:
            stream = io.StringIO(newline="")
            (write_csv if form == "csv" else write_json)(opened, stream)
            return stream.getvalue()

        kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
        name = f"{_plain(name_of(slug))}.{form}"
        return _download(await sessions.at(slug, written), kind, name)

    @routes.get("/compare", response_class=HTMLResponse)
    async def compare(s: Chosen = None) -> str:
        return templates.page("compare.html", await sessions.run(lambda: compared(sessions, s or [])))

    @routes.get("/api/compare", response_model=None)
    async def compare_data(s: Chosen = None) -> Response:
        return PlainJson(await sessions.run(lambda: compared(sessions, s or [])))

    if not context.settings.write:
        return

    @routes.get("/sessions/{slug}/manage", response_class=HTMLResponse)
    async def manage(slug: str, done: str = "") -> str:
        said = DONE.get(done, "")
        return templates.page("manage.html", await sessions.at(slug, lambda opened: _model(opened, said)))

    def form(path: str, field: str, done: str) -> Callable[[Callable[..., Any]], Any]:
        """Serve a form; a mistake is shown at its field, with what was entered."""

        def register(work: Callable[[Session, FormData], None]) -> Callable[..., Awaitable[Response]]:
            async def serve(slug: str, request: Request) -> Response:
                entered = await request.form()
                try:
                    check_key(entered)
                    await sessions.at(slug, lambda opened: work(opened, entered))
                except SurepickError as error:
                    wrong = (error.field if error.field in FIELDS else field, str(error))
                    model = await sessions.at(slug, lambda opened: _model(opened, "", entered, wrong))
                    return HTMLResponse(templates.page("manage.html", model), 400)
                return RedirectResponse(f"/sessions/{quote(slug)}/manage?done={done}#h-{field}", 303)

            routes.post(f"/sessions/{{slug}}/{path}", response_model=None)(serve)
            return serve

        return register

    @form("note", "note", "noted")
    def note(opened: Session, entered: FormData) -> None:
        checked(Note, {"note": _text(entered, "note")}).done_to(opened)

    @form("rename", "title", "renamed")
    def rename(opened: Session, entered: FormData) -> None:
        checked(Rename, {"title": _text(entered, "title").strip()}).done_to(opened)

    @form("extend", "extend", "extended")
    def extend(opened: Session, entered: FormData) -> None:
        given = {key: _number(_text(entered, key)) for key in ("delta", "epsilon", "budget")}
        checked(Extend, given).done_to(opened)

    @form("void", "void", "voided")
    def void(opened: Session, entered: FormData) -> None:
        token, arm = split_choice(_text(entered, "void"))
        if arm != opened.given_problem.arm_names[opened.arm_of(token)]:
            raise ParameterError("this list was out of date; please choose again", field="void")
        try:
            checked(Void, {"token": token, "reason": _text(entered, "why")}).done_to(opened)
        except ParameterError as error:
            raise ParameterError(str(error), field="why") from None

    @form("close", "reason", "closed")
    def close(opened: Session, entered: FormData) -> None:
        checked(Close, {"reason": _text(entered, "reason")}).done_to(opened)

    @routes.post("/sessions/{slug}/import", response_model=None)
    async def import_(slug: str, request: Request) -> Response:
        entered = await request.form(max_files=1, max_fields=10)
        try:
            check_key(entered)
            name, rows = await _rows(context, entered)
            counts = await sessions.at(slug, lambda opened: _imported(opened, rows, entered))
        except SurepickError as error:
            wrong = ("sure" if error.field == "sure" else "file", str(error))
            model = await sessions.at(slug, lambda opened: _model(opened, "", entered, wrong))
            return HTMLResponse(templates.page("manage.html", model), 400)
        said = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing to import"
        model = await sessions.at(slug, lambda opened: _model(opened, f"From {name}: {said}."))
        return HTMLResponse(templates.page("manage.html", model))

    @routes.post("/sessions/{slug}/delete", response_model=None)
    async def delete(slug: str, request: Request) -> Response:
        entered, name = await request.form(), name_of(slug)

        def work(opened: Session) -> None:
            check_key(entered)
            position = _text(entered, "position")
            given = {"name": _text(entered, "typed"), "checksum": _text(entered, "checksum")}
            checked(Delete, {**given, "position": int(position) if position.isdigit() else 0}).done_to(opened)

        try:
            await sessions.at(slug, work)
        except SurepickError as error:
            wrong = ("typed", str(error))
            model = await sessions.at(slug, lambda opened: _model(opened, "", entered, wrong))
            return HTMLResponse(templates.page("manage.html", model), 400)
        sessions.forget(name)
        return RedirectResponse("/", 303)

    _add_json(routes, sessions)


def _add_json(routes: FastAPI, sessions: SessionCache) -> None:
    """Serve the same as JSON."""

    def serve(path: str, action: type[Any]) -> None:
        @routes.post(f"/api/sessions/{{slug}}/{path}", response_model=None)
        async def do(slug: str, request: Request) -> Response:
            wanted = await read(action, request)
            return PlainJson(await sessions.at(slug, wanted.done_to))

    for path, action in ACTIONS.items():
        serve(path, action)

    @routes.post("/api/sessions/{slug}/delete", response_model=None)
    async def delete(slug: str, request: Request) -> Response:
        wanted = await read(Delete, request)
        answer = await sessions.at(slug, wanted.done_to)
        sessions.forget(name_of(slug))
        return PlainJson(answer)


DONE = {
    "noted": "The note is in the log.",
    "renamed": "It has its new title.",
    "extended": "The session goes on.",
    "closed": "The session has ended.",
    "voided": "The value is taken back; the log keeps it, with the reason.",
}
FIELDS = (
    "note",
    "void",
    "why",
    "title",
    "extend",
    "delta",
    "epsilon",
    "budget",
    "reason",
    "typed",
    "sure",
    "form",
)


def _model(
    opened: Session, done: str, entered: FormData | None = None, wrong: tuple[str, str] | None = None
) -> Model:
    """The page with what was entered, and what is wrong with it."""
    summary = views.summary(views.look(opened))
    kept = {field: "" if entered is None else _text(entered, field) for field in FIELDS}
    return {
        "slug": slug_of(opened.name),
        "summary": summary,
        "is_over": opened.status is not None,
        "told": _last_told(opened),
        "entered": {**kept, "title": kept["title"] or summary.title},
        "errors": [] if wrong is None else [wrong],
        "done": done,
    }


def _last_told(opened: Session) -> list[dict[str, str]]:
    """The values that were told last and can be taken back, the newest first."""
    names, first = opened.given_problem.arm_names, max(0, opened.fingerprint.position - LAST_EVENTS)
    told = [m for event in opened.events(after=first) for m in measurements_in(event, names) if m.token]
    with opened.held() as ledger:
        voided = {str(token) for token in ledger.tapes.voided}
    return [
        {"value": f"{m.token} {m.arm_name}", "text": f"{m.arm_name} = {number(m.value, 12)} ({m.token})"}
        for m in told[: -MOST_LISTED - 1 : -1]
        if m.token not in voided
    ]


async def _rows(context: Context, form: FormData) -> tuple[str, list[Row]]:
    """The name of the file that came with a form, and the measurements in it."""
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise ParameterError("choose a file", field="file")
    name = file.filename.replace("\\", "/").rsplit("/", 1)[-1]
    if not name.lower().endswith((".csv", *SHEETS)):
        raise ParameterError(
            f"expected a spreadsheet (.xlsx or .csv), got {name!r}; save it as one of them", field="file"
        )
    return name, await context.uploads.rows(Upload(name, await file.read()))


def _imported(opened: Session, rows: list[Row], form: FormData) -> dict[str, int]:
    """Tell what is in a file; how many values became what."""
    answers, picked, sure = (_text(form, key) == "yes" for key in ("answers", "picked", "sure"))
    who = _text(form, "who").strip()[:LONGEST_NAME]
    if not sure:
        refuse_doubtful(opened, rows)
    return import_rows(opened, rows, answers=answers, picked=picked, worker=who)


def compared(sessions: SessionCache, slugs: list[str]) -> Model:
    """The chosen sessions side by side; all names to choose from."""
    chosen = {name_of(slug) for slug in slugs}
    names = sessions.names()
    rows = [
        sessions.use(name, lambda opened: views.summary(views.look(opened)))
        for name in names
        if name in chosen
    ]
    return {
        "rows": [{"slug": slug_of(row.session), "summary": row} for row in rows],
        "names": [{"name": name, "slug": slug_of(name), "chosen": name in chosen} for name in names[:100]],
        "most": MOST_COMPARED,
    }


def _download(content: str, kind: str, name: str) -> Response:
    return Response(
        content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'}
    )


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:60]


def _number(text: str) -> object:
    """What was entered, as a number where it is one: with a decimal comma, too."""
    word = text.strip()
    if not word:
        return None
    value = numeral(word) if is_numeral(word) else word
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""
