"""What --write allows: entering a measurement, taking the next ones, beginning a session; and logging in."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from surepick.core.policy import Policy
from surepick.core.promise import Promise
from surepick.errors import ParameterError, SurepickError
from surepick.policies import POLICIES, parse_policy
from surepick.sessions.session import Receipt, Session
from surepick.web import models
from surepick.web.context import Desk
from surepick.web.keys import COOKIE, COOKIE_SECONDS
from surepick.web.session_cache import slug_of
from surepick.web.strict_json import read_object
from surepick.web.twins import PlainJson
from surepick.web.uploads import MOST_FILES, Upload, read_problem

DEFAULTS = {"name": "", "policy": "BetGapE", "delta": "0.05", "epsilon": "0", "budget": "", "seed": "0"}
MOST_VALUES = 1000  # told at once
LONGEST_NAME = 200
MOST_ASKED = 64

OUT_OF_DATE = "this form was out of date, so nothing was recorded; please look it over and send it again"


class FieldError(SurepickError):
    """A form has a mistake in one of its fields."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text, field=field)
        self.field: str = field


def add_routes(routes: FastAPI, desk: Desk) -> None:
    """Serve the forms of this module."""
    _add_login(routes, desk)
    _add_measuring(routes, desk)
    _add_creating(routes, desk)


def _add_login(routes: FastAPI, desk: Desk) -> None:
    @routes.post("/login")
    async def log_in(request: Request) -> Response:
        token = _text(await request.form(), "token")
        if not desk.keys.opens(token):
            return HTMLResponse(desk.renderer.page("login.html", {"wrong": True}), 401)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            COOKIE,
            desk.keys.new_cookie(),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    @routes.post("/logout")
    async def log_out() -> Response:
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


def _add_measuring(routes: FastAPI, desk: Desk) -> None:
    @routes.post("/sessions/{slug}/tell")
    async def tell(slug: str, request: Request) -> Response:
        form = await request.form()
        entry = models.Entry(_text(form, "who").strip(), _text(form, "token"), _text(form, "value"))
        try:
            _check_form(desk, form)
            told = _numbers(entry.value)
            receipt = await desk.with_session(slug, lambda opened: _tell(opened, entry, told))
        except FieldError as error:
            return await _entry_again(desk, slug, replace(entry, errors=((error.field, str(error)),)))
        return _back(slug, entry.who, str(receipt))

    @routes.post("/sessions/{slug}/ask")
    async def ask(slug: str, request: Request) -> Response:
        form = await request.form()
        entry = models.Entry(_text(form, "who").strip(), _text(form, "token"), _text(form, "value"))
        try:
            _check_form(desk, form)
            who = _name(entry.who, "who")
        except FieldError as error:
            return await _entry_again(desk, slug, replace(entry, errors=((error.field, str(error)),)))
        taken = await desk.with_session(slug, lambda opened: opened.ask(worker=who, wait=False))
        return _back(slug, entry.who, "taken" if taken and who else "")

    @routes.post("/api/sessions/{slug}/tell")
    async def tell_json(slug: str, request: Request) -> Response:
        body = read_object(await request.body())
        values = {key: body.get(key) for key in ("value", "mean", "count")}
        _refuse_unknown(body, {"token", "worker", *values})
        token, worker = _want(body, "token", str), _name(_want(body, "worker", str, ""), "worker")
        _check_measurement(values)
        receipt = await desk.with_session(slug, lambda opened: opened.tell(token, worker=worker, **values))
        return PlainJson({"receipt": str(receipt)})

    @routes.post("/api/sessions/{slug}/ask")
    async def ask_json(slug: str, request: Request) -> Response:
        body = read_object(await request.body())
        _refuse_unknown(body, {"n", "worker"})
        n, worker = _want(body, "n", int, 1), _name(_want(body, "worker", str, ""), "worker")
        if not 1 <= n <= MOST_ASKED:
            raise ParameterError(f"n is a number of measurements from 1 to {MOST_ASKED}, got {n}")
        return PlainJson(await desk.with_session(slug, lambda opened: _ask(opened, n, worker)))


def _add_creating(routes: FastAPI, desk: Desk) -> None:
    @routes.get("/new", response_class=HTMLResponse)
    async def new() -> str:
        return _new_page(desk, DEFAULTS, {}, "")

    @routes.post("/sessions")
    async def create(request: Request) -> Response:
        form = await request.form(max_files=MOST_FILES, max_fields=20)
        values = {name: _text(form, name).strip() for name in DEFAULTS}
        uploads = await _uploads(form) or desk.stash.get(_text(form, "kept"))
        try:
            _check_form(desk, form)
            session = await _create(desk, values, uploads)
        except FieldError as error:
            kept = desk.stash.put(uploads) if uploads and error.field != "files" else ""
            page = _new_page(desk, values, {error.field: str(error)}, kept)
            return HTMLResponse(page, 400)
        return RedirectResponse(f"/sessions/{quote(slug_of(session))}", 303)

    @routes.post("/api/sessions")
    async def create_json(request: Request) -> Response:
        body = read_object(await request.body())
        _refuse_unknown(body, {"problem", *DEFAULTS})
        document = json.dumps(_want(body, "problem", dict)).encode()
        values = {
            name: str(body.get(name) if body.get(name) is not None else text)
            for name, text in DEFAULTS.items()
        }
        session = await _create(desk, values, [Upload("problem.json", document)])
        return PlainJson({"session": session, "slug": slug_of(session)}, 201)


# Measuring


def _tell(opened: Session, entry: models.Entry, told: list[float]) -> Receipt:
    try:
        return opened.tell(entry.token, told, worker=_name(entry.who, "who"))
    except SurepickError as error:
        raise FieldError(error.field or "value", str(error)) from error


def _ask(opened: Session, n: int, worker: str) -> dict[str, Any]:
    requests = opened.ask(n, worker=worker, wait=False)
    return {
        "requests": [vars(request) for request in requests],
        "status": "running" if opened.status is None else str(opened.status),
    }


async def _entry_again(desk: Desk, slug: str, entry: models.Entry) -> Response:
    """The page with what was entered and what is wrong with it."""
    model = await desk.with_session(slug, lambda opened: models.session(opened, entry=entry))
    return HTMLResponse(desk.renderer.page("session.html", model), 400)


def _back(slug: str, who: str, done: str) -> Response:
    query = urlencode({key: value for key, value in (("who", who), ("done", done)) if value})
    return RedirectResponse(f"/sessions/{quote(slug)}?{query}#h-next", 303)


def _numbers(text: str) -> list[float]:
    """The numbers that somebody entered."""
    words = text.replace(";", " ").split()
    if not 1 <= len(words) <= MOST_VALUES:
        raise FieldError("value", f"enter a number, or up to {MOST_VALUES} with spaces between them")
    return [_number("value", word) for word in words]


def _number(field: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        hint = "; write the decimals after a point, as in 12.5" if "," in text else ""
        raise FieldError(field, f"expected a number, got {text[:40]!r}{hint}") from None
    if not math.isfinite(number):
        raise FieldError(field, f"expected a finite number, got {text[:40]!r}")
    return number


def _whole(field: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise FieldError(field, f"expected a whole number, 0 or more, got {text[:40]!r}")
    return int(text)


def _name(text: str, field: str) -> str:
    if len(text) > LONGEST_NAME or not text.isprintable():
        raise FieldError(field, f"a name has at most {LONGEST_NAME} letters that can be printed")
    return text


# Beginning a session


async def _create(desk: Desk, values: Mapping[str, str], uploads: list[Upload]) -> str:
    """Begin a session; its name."""
    policy, budget, seed = _policy(values), _budget(values["budget"]), _whole("seed", values["seed"])
    try:
        problem = await read_problem(uploads, desk.upload_turn)
    except SurepickError as error:
        raise FieldError("files", str(error)) from error
    name = _name(values["name"], "name")
    if not name.strip():
        raise FieldError("name", "a session needs a name")

    def begin() -> str:
        return Session.create(desk.shelf.store, problem, policy, name=name, seed=seed, budget=budget).name

    try:
        return await desk.shelf.run(begin)
    except SurepickError as error:
        field = error.field if error.field in DEFAULTS else None
        raise FieldError(field or "form", str(error)) from error


def _policy(values: Mapping[str, str]) -> Policy:
    """The policy with these settings; a mistake is shown at the setting that it is about."""
    delta, epsilon = _number("delta", values["delta"]), _number("epsilon", values["epsilon"])
    if values["policy"] not in {policy["name"] for policy in _policies()}:
        raise FieldError("policy", f"there is no policy {values['policy'][:40]!r} to begin with here")
    try:
        return parse_policy(values["policy"], delta=delta, epsilon=epsilon)
    except SurepickError as error:
        raise FieldError(error.field or "policy", str(error)) from error


def _policies() -> list[dict[str, Any]]:
    """The policies that need no further settings, those with a promise first."""
    found = []
    for name in POLICIES:
        try:
            policy = parse_policy(name)
        except (TypeError, SurepickError):
            continue
        found.append({"name": name, "promises": Promise.read(policy.guarantee).proved})
    return sorted(found, key=lambda policy: (not policy["promises"], policy["name"]))


def _budget(text: str) -> int | None:
    if not text:
        return None
    budget = _whole("budget", text)
    if budget < 1:
        raise FieldError("budget", "the budget is a number of measurements, 1 or more; empty: no limit")
    return budget


async def _uploads(form: FormData) -> list[Upload]:
    files = [file for file in form.getlist("files") if isinstance(file, UploadFile) and file.filename]
    return [Upload(file.filename or "", await file.read()) for file in files]


def _new_page(desk: Desk, values: Mapping[str, str], errors: Mapping[str, str], kept: str) -> str:
    model = {
        "entered": values,
        "errors": tuple(errors.items()),
        "policies": _policies(),
        "kept": kept,
        "kept_names": [upload.name for upload in desk.stash.get(kept)],
    }
    return desk.renderer.page("new.html", model)


# Reading what came


def _check_form(desk: Desk, form: FormData) -> None:
    if not desk.keys.is_form_key(_text(form, "form_key")):
        raise FieldError("form", OUT_OF_DATE)


def _text(form: FormData, name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _want(body: Mapping[str, Any], key: str, kind: type, default: Any = None) -> Any:
    value = body.get(key, default)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ParameterError(f"{key!r} must be a {kind.__name__}, got {str(value)[:40]!r}")
    return value


def _refuse_unknown(body: Mapping[str, Any], known: set[str]) -> None:
    for key in body:
        if key not in known:
            raise ParameterError(f"unknown key {key[:40]!r}; known: {', '.join(sorted(known))}")


def _check_measurement(values: Mapping[str, Any]) -> None:
    value, mean, count = values["value"], values["mean"], values["count"]
    numbers = value if isinstance(value, list) else [v for v in (value, mean) if v is not None]
    if len(numbers) > MOST_VALUES:
        raise ParameterError(f"at most {MOST_VALUES} values can be told at once, got {len(numbers)}")
    if not all(isinstance(n, int | float) and not isinstance(n, bool) for n in numbers):
        raise ParameterError("'value' must be a number or a list of numbers, and 'mean' a number")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool)):
        raise ParameterError(f"'count' must be a whole number, got {str(count)[:40]!r}")
