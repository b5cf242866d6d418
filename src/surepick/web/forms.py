"""Forms: entering a measurement, taking the next one, beginning a session, logging in and out.

A mistake is shown at its field, and nothing that was entered is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from surepick.core.oracle_problem import AnyProblem
from surepick.core.tables import numeral
from surepick.errors import ParameterError, SurepickError
from surepick.sessions.requests import Receipt
from surepick.sessions.session import Session
from surepick.store.log import HAND_LEASE
from surepick.web import pages
from surepick.web.api import Ask, NewSession, Tell, begin, policies, read_problem
from surepick.web.context import Context
from surepick.web.entry import EntryForm, field_of, split_choice
from surepick.web.form_data import check_key, checked, numbers, text, with_point
from surepick.web.security import COOKIE, COOKIE_SECONDS
from surepick.web.session_cache import slug_of
from surepick.web.uploads import MOST_FILES, Upload

DEFAULTS = {"name": "", "policy": "", "delta": "0.05", "epsilon": "0", "budget": "", "seed": "0"}


def add_routes(routes: FastAPI, context: Context) -> None:
    """Serve the forms of this module."""
    _add_login(routes, context)
    _add_measuring(routes, context)
    _add_creating(routes, context)


def _add_login(routes: FastAPI, context: Context) -> None:
    keys, templates = context.keys, context.templates

    @routes.get("/login", response_class=HTMLResponse)
    async def login() -> str:
        return templates.page("login.html", {"wrong": False})

    @routes.post("/login")
    async def log_in(request: Request) -> Response:
        if not keys.opens(text(await request.form(), "token")):
            return HTMLResponse(templates.page("login.html", {"wrong": True}), 401)
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(
            COOKIE, keys.new_cookie(), COOKIE_SECONDS, httponly=True, samesite="strict", secure=secure
        )
        return answer

    @routes.post("/logout")
    async def log_out(request: Request) -> Response:
        keys.forget(request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


def _add_measuring(routes: FastAPI, context: Context) -> None:
    @routes.post("/sessions/{slug}/tell")
    async def tell(slug: str, request: Request) -> Response:
        form = await request.form()
        entry = _entry(form)
        try:
            check_key(context.keys, form)
            receipt, is_over = await context.sessions.at(slug, lambda opened: record(opened, entry))
        except SurepickError as error:
            return await again(slug, entry, error)
        return _back(slug, entry.who, str(receipt), entry.token, to_answer=is_over)

    def record(opened: Session, entry: EntryForm) -> tuple[Receipt, bool]:
        """Tell it, once somebody has said that a value which surprises is right; and whether that was all."""
        values = _readings(opened, opened.probe_of(entry.token), entry) or numbers(entry.value)
        given = {"token": entry.token, "value": values, "worker": entry.who, "arm": entry.arm or None}
        return checked(Tell, {**given, "sure": entry.sure}).told_to(opened), opened.status != "running"

    @routes.post("/sessions/{slug}/ask")
    async def ask(slug: str, request: Request) -> Response:
        form = await request.form()
        entry = _entry(form)
        try:
            check_key(context.keys, form)
            who = checked(Ask, {"worker": entry.who}).worker
        except SurepickError as error:
            return await again(slug, entry, error)
        taken = await context.sessions.at(slug, lambda opened: opened.ask(worker=who, wait=False))
        return _back(slug, who, "taken" if taken else "", taken[0].token if taken else "")

    async def again(slug: str, entry: EntryForm, error: SurepickError) -> Response:
        """The page with what was entered and what is wrong with it."""
        shown_at = {"worker": "who", "token": "token", "form": "form", "sure": "sure"}
        field = shown_at.get(error.field or "", "value")
        shown = replace(entry, errors=((field, str(error)),))
        model = await context.sessions.at(slug, lambda opened: pages.session_model(opened, shown))
        return HTMLResponse(context.templates.page("session.html", model), 400)


def _add_creating(routes: FastAPI, context: Context) -> None:
    @routes.get("/new", response_class=HTMLResponse)
    async def new() -> str:
        return page(DEFAULTS)

    @routes.post("/sessions")
    async def create(request: Request) -> Response:
        form = await request.form(max_files=MOST_FILES, max_fields=20)
        values = {name: text(form, name).strip() for name in DEFAULTS}
        uploads = await _uploads(form) or context.uploads.kept(text(form, "kept"))
        try:
            check_key(context.keys, form)
            if text(form, "step") == "check":
                problem, _ = await read_problem(context, uploads)
                return HTMLResponse(page(values, None, context.uploads.keep(uploads), problem))
            shares = {name: with_point(values[name]) for name in ("delta", "epsilon")}
            given = {**values, **shares, "budget": values["budget"] or None, "lease": HAND_LEASE}
            wanted = checked(NewSession, given)
            name = await begin(context, wanted, uploads)
        except SurepickError as error:
            kept = context.uploads.keep(uploads) if uploads and error.field != "files" else ""
            return HTMLResponse(page(values, error, kept), 400)
        return RedirectResponse(f"/sessions/{quote(slug_of(name))}", 303)

    def page(
        values: Mapping[str, str],
        error: SurepickError | None = None,
        kept: str = "",
        problem: AnyProblem | None = None,
    ) -> str:
        shown = (*DEFAULTS, "files")  # fields with a place for their mistake
        model = {
            "entered": values,
            "errors": [(error.field if error.field in shown else "form", str(error))] if error else [],
            "policies": policies(),
            "kept": kept,
            "kept_names": [upload.name for upload in context.uploads.kept(kept)],
            "problem": problem,
        }
        return context.templates.page("new.html", model)


def _back(slug: str, who: str, done: str, token: str, *, to_answer: bool = False) -> Response:
    """Back to the session's page: to the form, or to the answer once there is one."""
    given = {"who": who, "done": done, "token": token}
    query = urlencode({key: value for key, value in given.items() if value})
    return RedirectResponse(f"/sessions/{quote(slug)}?{query}{'' if to_answer else '#h-next'}", 303)


def _entry(form: FormData) -> EntryForm:
    token, arm = split_choice(text(form, "token"))
    sure = text(form, "sure") == "yes"
    readings = {name: text(form, name) for name in form if name.startswith("reading-")}
    who = text(form, "who").strip()
    return EntryForm(who, token, arm, text(form, "value"), sure=sure, readings=readings)


def _readings(opened: Session, probe: int, entry: EntryForm) -> dict[str, float]:
    """The readings that were entered for a probe with several; nothing for one with a single value."""
    reads = opened.reads(probe)
    if len(reads) == 1:
        return {}
    texts = {name: entry.readings.get(field_of(probe, k), "").strip() for k, name in enumerate(reads)}
    found: dict[str, float] = {}
    for name, entered in texts.items():
        try:
            found |= {name: numeral(entered)} if entered else {}
        except ParameterError as error:
            raise ParameterError(f"{name}: {error}", field="value") from None
    if not found:
        raise ParameterError(f"enter the readings: {', '.join(reads)}", field="value")
    return found


async def _uploads(form: FormData) -> list[Upload]:
    files = [file for file in form.getlist("files") if isinstance(file, UploadFile) and file.filename]
    return [Upload(file.filename or "", await file.read()) for file in files]
