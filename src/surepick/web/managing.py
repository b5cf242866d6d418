"""A session's page for those who run it: title, notes, going on, ending, taking back, importing, deleting.

Each form, and its twin in JSON, is one of the `actions`. What cannot be undone asks for the session's name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from surepick import views
from surepick.core.tables import SHEETS, count_in
from surepick.errors import ParameterError, SurepickError
from surepick.files.measurements import Row, import_rows, in_words
from surepick.sessions.arriving import growing
from surepick.sessions.ending import next_name
from surepick.sessions.requests import measurements_in
from surepick.sessions.session import Session
from surepick.views.text import number as number_text
from surepick.web.actions import (
    ACTIONS,
    AddPlan,
    Close,
    Delete,
    Extend,
    NewEpoch,
    Note,
    Rename,
    Void,
    refuse_doubtful,
)
from surepick.web.api import LONGEST_NAME, PlainJson, read
from surepick.web.context import Context
from surepick.web.entry import split_choice
from surepick.web.form_data import check_key, checked, number, text
from surepick.web.session_cache import SessionCache, name_of, slug_of
from surepick.web.uploads import Upload

LAST_EVENTS, MOST_LISTED = 300, 50  # among which values to take back are looked for, and how many are offered

Model = dict[str, Any]


class Form(NamedTuple):
    """A form of the page."""

    path: str  # below the session's
    field: str  # where a mistake is shown that names no field of the page
    done: str  # what is said when it is done
    work: Callable[[Session, FormData], object]


def add_routes(routes: FastAPI, context: Context) -> None:
    """Serve the routes of this module, unless this server is for looking alone."""
    if not context.settings.write:
        return

    @routes.get("/sessions/{slug}/manage", response_class=HTMLResponse)
    async def manage(slug: str, done: str = "") -> str:
        said = {form.path: form.done for form in FORMS}.get(done, "")
        return await _page(context, slug, said)

    for form in FORMS:
        _add_form(routes, context, form)
    _add_import(routes, context)
    _add_epoch(routes, context)
    _add_delete(routes, context)
    _add_json(routes, context.sessions)


def _add_form(routes: FastAPI, context: Context, form: Form) -> None:
    @routes.post(f"/sessions/{{slug}}/{form.path}", response_model=None)
    async def serve(slug: str, request: Request) -> Response:
        async def work(entered: FormData) -> Response:
            await context.sessions.at(slug, lambda opened: form.work(opened, entered))
            return RedirectResponse(f"/sessions/{quote(slug)}/manage?done={form.path}#h-{form.field}", 303)

        return await _answer(context, slug, await request.form(), form.field, work)


def _add_import(routes: FastAPI, context: Context) -> None:
    @routes.post("/sessions/{slug}/import", response_model=None)
    async def import_(slug: str, request: Request) -> Response:
        async def work(entered: FormData) -> Response:
            name, rows = await _rows(context, entered)
            counts = await context.sessions.at(slug, lambda opened: _imported(opened, rows, entered))
            return HTMLResponse(await _page(context, slug, f"From {name}: {in_words(counts)}."))

        return await _answer(context, slug, await request.form(max_files=1, max_fields=10), "file", work)


def _add_epoch(routes: FastAPI, context: Context) -> None:
    @routes.post("/sessions/{slug}/new-epoch", response_model=None)
    async def new_epoch(slug: str, request: Request) -> Response:
        async def work(entered: FormData) -> Response:
            begun = await context.sessions.at(slug, lambda opened: _new_epoch(opened, entered))
            return RedirectResponse(f"/sessions/{quote(slug_of(begun))}", 303)

        return await _answer(context, slug, await request.form(), "changed", work)


def _new_epoch(opened: Session, entered: FormData) -> str:
    """Begin the next epoch; its name."""
    given = {"reason": text(entered, "changed"), "name": text(entered, "epoch").strip()}
    try:
        return str(checked(NewEpoch, given).done_to(opened)["session"])
    except ParameterError as error:
        raise ParameterError(str(error), field="epoch" if error.field == "name" else "changed") from None


def _add_delete(routes: FastAPI, context: Context) -> None:
    @routes.post("/sessions/{slug}/delete", response_model=None)
    async def delete(slug: str, request: Request) -> Response:
        async def work(entered: FormData) -> Response:
            await context.sessions.at(slug, lambda opened: _delete(opened, entered))
            context.sessions.forget(name_of(slug))
            return RedirectResponse("/", 303)

        return await _answer(context, slug, await request.form(), "typed", work)


async def _answer(
    context: Context,
    slug: str,
    entered: FormData,
    field: str,
    work: Callable[[FormData], Awaitable[Response]],
) -> Response:
    """Do what a form is for; a mistake is shown at its field, with what was entered."""
    try:
        check_key(context.keys, entered)
        return await work(entered)
    except SurepickError as error:
        wrong = (error.field if error.field in FIELDS else field, str(error))
        return HTMLResponse(await _page(context, slug, "", entered, wrong), 400)


async def _page(
    context: Context,
    slug: str,
    done: str,
    entered: FormData | None = None,
    wrong: tuple[str, str] | None = None,
) -> str:
    model = await context.sessions.at(slug, lambda opened: _model(opened, done, entered, wrong))
    return context.templates.page("manage.html", model)


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


def _note(opened: Session, entered: FormData) -> object:
    return checked(Note, {"note": text(entered, "note")}).done_to(opened)


def _rename(opened: Session, entered: FormData) -> object:
    return checked(Rename, {"title": text(entered, "title").strip()}).done_to(opened)


def _extend(opened: Session, entered: FormData) -> object:
    given = {key: number(text(entered, key)) for key in ("delta", "epsilon", "budget")}
    return checked(Extend, given).done_to(opened)


def _void(opened: Session, entered: FormData) -> object:
    token, arm = split_choice(text(entered, "void"))
    if arm != opened.probe_names[opened.probe_of(token)]:
        raise ParameterError("this list was out of date; please choose again", field="void")
    try:
        return checked(Void, {"token": token, "reason": text(entered, "why")}).done_to(opened)
    except ParameterError as error:
        raise ParameterError(str(error), field="why") from None


def _add_plan(opened: Session, entered: FormData) -> object:
    names = (name.strip() for name in text(entered, "new_arms").split(";"))
    about = {key: number(text(entered, key)) for key in ("noise_scale", "cost")}
    arms = [{"name": name, **about} for name in names if name]
    given = {"name": text(entered, "plan_name").strip(), "plan": text(entered, "plan"), "new_arms": arms}
    try:
        return checked(AddPlan, given).done_to(opened)
    except SurepickError as error:
        shown_at = {"name": "plan_name", "new_arms": "new_arms"}
        raise ParameterError(str(error), field=shown_at.get(error.field or "", "plan")) from None


def _close(opened: Session, entered: FormData) -> object:
    return checked(Close, {"reason": text(entered, "reason")}).done_to(opened)


def _delete(opened: Session, entered: FormData) -> object:
    where = count_in(text(entered, "position")) or 0
    given = {"name": text(entered, "typed"), "checksum": text(entered, "checksum")}
    return checked(Delete, {**given, "position": where}).done_to(opened)


FORMS = (
    Form("note", "note", "The note is in the log.", _note),
    Form("rename", "title", "It has its new title.", _rename),
    Form("extend", "extend", "The session goes on.", _extend),
    Form("void", "void", "The value is taken back; the log keeps it, with the reason.", _void),
    Form("add-plan", "plan", "The plan is in the list; the next round knows it.", _add_plan),
    Form("close", "reason", "The session has ended.", _close),
)
FIELDS = (
    *(
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
    ),
    *("plan_name", "plan", "new_arms", "noise_scale", "cost", "changed", "epoch"),
)


def _model(
    opened: Session, done: str, entered: FormData | None = None, wrong: tuple[str, str] | None = None
) -> Model:
    """The page with what was entered, and what is wrong with it."""
    summary = views.summary(views.look(opened))
    kept = {field: "" if entered is None else text(entered, field) for field in FIELDS}
    return {
        "slug": slug_of(opened.name),
        "summary": summary,
        "is_over": opened.status != "running",
        "told": _last_told(opened),
        "arm_names": opened.arm_names,
        "why_no_plan": _why_no_plan(opened),
        "next_epoch": next_name(opened.name, opened.store.names()),
        "entered": {**kept, "title": kept["title"] or summary.title},
        "errors": [] if wrong is None else [wrong],
        "done": done,
    }


def _why_no_plan(opened: Session) -> str:
    """Why no plan can be added now; nothing where one can."""
    with opened.held() as ledger:
        try:
            growing(ledger)
        except SurepickError as error:
            return str(error)
    return ""


def _last_told(opened: Session) -> list[dict[str, str]]:
    """The values that were told last and can be taken back, the newest first."""
    first = max(0, opened.fingerprint.position - LAST_EVENTS)
    problem = opened.ledger().setup.problem
    told = [m for event in opened.events(after=first) for m in measurements_in(event, problem)]
    with opened.held() as ledger:
        kept = [m for m in told[: -MOST_LISTED - 1 : -1] if not ledger.is_voided(m.name)]
    return [
        {
            "value": f"{m.name} {m.arm_name}",
            "text": f"{m.arm_name} = {number_text(m.value, 12)} ({m.token or 'nobody had asked'})",
        }
        for m in kept
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
    answers, picked, sure = (text(form, key) == "yes" for key in ("answers", "picked", "sure"))
    who = text(form, "who").strip()[:LONGEST_NAME]
    if not sure:
        refuse_doubtful(opened, rows)
    return import_rows(opened, rows, answers=answers, picked=picked, worker=who)
