"""A session's page for those who run it: title, notes, going on, ending, files to take away, deleting.

Each form is one call of the session. What cannot be undone asks for the session's name.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import Field
from starlette.datastructures import FormData, UploadFile

from surepick import views
from surepick.core.numerals import is_numeral, numeral
from surepick.errors import FileError, ParameterError, SurepickError
from surepick.sessions.measurement_files import import_rows, read_rows, write_csv, write_json
from surepick.sessions.requests import measurements_in
from surepick.sessions.session import Session
from surepick.store import Head
from surepick.views.text import number
from surepick.web.api import LARGEST, Body, Name, PlainJson
from surepick.web.context import Context
from surepick.web.entry import split_choice
from surepick.web.session_cache import SessionCache, name_of, slug_of

LONGEST_NOTE = 2000  # letters
LAST_EVENTS, MOST_LISTED = 300, 50  # among which values to take back are looked for, and how many are offered
MOST_COMPARED = 12
Chosen = Annotated[list[str] | None, Query(max_length=MOST_COMPARED)]

Model = dict[str, Any]
Checked = Callable[[type[Any], Mapping[str, object]], Any]


class Extension(Body):
    """What a session goes on with."""

    delta: float | None = None
    epsilon: float | None = None
    budget: int | None = Field(None, ge=1, le=LARGEST)


class Title(Body):
    """A new title."""

    title: Name


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
        text = _text(entered, "note").strip()
        if not text or len(text) > LONGEST_NOTE:
            raise ParameterError(f"a note has 1 to {LONGEST_NOTE:,} letters", field="note")
        opened.note(text)

    @form("rename", "title", "renamed")
    def rename(opened: Session, entered: FormData) -> None:
        opened.rename(checked(Title, {"title": _text(entered, "title").strip()}).title)

    @form("extend", "extend", "extended")
    def extend(opened: Session, entered: FormData) -> None:
        given = {key: _number(_text(entered, key)) for key in ("delta", "epsilon", "budget")}
        wanted = checked(Extension, given)
        opened.extend(delta=wanted.delta, epsilon=wanted.epsilon, budget=wanted.budget)

    @form("void", "void", "voided")
    def void(opened: Session, entered: FormData) -> None:
        token, arm = split_choice(_text(entered, "void"))
        if arm != opened.given_problem.arm_names[opened.arm_of(token)]:
            raise ParameterError("this list was out of date; please choose again", field="void")
        try:
            opened.void(token, _text(entered, "why").strip()[:LONGEST_NOTE])
        except ParameterError as error:
            raise ParameterError(str(error), field="why") from None

    @form("close", "reason", "closed")
    def close(opened: Session, entered: FormData) -> None:
        opened.close(_text(entered, "reason").strip()[:LONGEST_NOTE])

    @routes.post("/sessions/{slug}/import", response_model=None)
    async def import_(slug: str, request: Request) -> Response:
        entered = await request.form(max_files=1, max_fields=10)
        try:
            check_key(entered)
            name, content = await _csv(entered)
            counts = await sessions.at(slug, lambda opened: _imported(opened, name, content, entered))
        except SurepickError as error:
            wrong = ("file", str(error))
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
            if _text(entered, "typed") != opened.name:
                raise ParameterError(f"to delete it, type its name: {opened.name}", field="typed")
            position = _text(entered, "position")
            seen = Head(int(position) if position.isdigit() else 0, _text(entered, "checksum"))
            opened.delete(expected=seen)

        try:
            await sessions.at(slug, work)
        except SurepickError as error:
            wrong = ("typed", str(error))
            model = await sessions.at(slug, lambda opened: _model(opened, "", entered, wrong))
            return HTMLResponse(templates.page("manage.html", model), 400)
        sessions.forget(name)
        return RedirectResponse("/", 303)


DONE = {
    "noted": "The note is in the log.",
    "renamed": "It has its new title.",
    "extended": "The session goes on.",
    "closed": "The session has ended.",
    "voided": "The value is taken back; the log keeps it, with the reason.",
}
FIELDS = ("note", "void", "why", "title", "extend", "delta", "epsilon", "budget", "reason", "typed", "form")


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


async def _csv(form: FormData) -> tuple[str, bytes]:
    """The name and the bytes of the file that came with a form."""
    file = form.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise ParameterError("choose a CSV file", field="file")
    name = file.filename.replace("\\", "/").rsplit("/", 1)[-1]
    if not name.lower().endswith(".csv"):
        raise ParameterError(f"expected a CSV file, got {name!r}; save the spreadsheet as CSV", field="file")
    return name, await file.read()


def _imported(opened: Session, name: str, content: bytes, form: FormData) -> dict[str, int]:
    """Tell what is in this file; how many values became what."""
    with tempfile.TemporaryDirectory(prefix="surepick-import-") as folder:
        path = Path(folder) / "file.csv"
        path.write_bytes(content)
        try:
            rows = read_rows(path)
        except SurepickError as error:
            raise FileError(str(error).replace(str(path), name)) from None
    answers, picked = (_text(form, name) == "yes" for name in ("answers", "picked"))
    return import_rows(opened, rows, answers=answers, picked=picked, worker=_text(form, "who").strip()[:200])


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
