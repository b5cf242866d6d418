"""Writing over JSON: each body is checked by a strict model; what is wrong with one is said in words.

The same models check what people enter into forms (see `forms`), where numbers come as text.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from surepick import views
from surepick.core.guarantee import Promise
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.core.policy import takes_past
from surepick.core.wording import shortened
from surepick.errors import ParameterError, SurepickError
from surepick.policies import POLICIES, parse_policy, policy_for
from surepick.sessions.requests import Receipt
from surepick.sessions.requests import Request as Measurement
from surepick.sessions.session import Session
from surepick.store.log import LEASE
from surepick.web.context import Context
from surepick.web.session_cache import slug_of
from surepick.web.uploads import Upload

MOST_VALUES = 1000  # told at once
MOST_ASKED = 64
LONGEST_NAME = 200
LARGEST = 10**15  # whole number; beyond it floating-point numbers are no longer exact

B = TypeVar("B", bound=BaseModel)


class PlainJson(Response):
    """An answer in JSON, from anything that is made of views and plain values."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """As bytes; NaN and infinities are null."""
        text = json.dumps(views.to_json(content), ensure_ascii=False, allow_nan=False)
        return text.encode(errors="backslashreplace")  # half a surrogate pair, as JSON writes it


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a name has only letters that can be printed")
    return text


Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_printable)]


class Body(BaseModel):
    """What somebody sent; keys that are null count as left out, and unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: v for key, v in given.items() if v is not None} if isinstance(given, dict) else given


Readings = Annotated[dict[str, float], Field(max_length=MOST_VALUES)]  # by name


class Ask(Body):
    """For the next measurements."""

    n: int = Field(1, ge=1, le=MOST_ASKED)
    worker: Name = ""


class Tell(Body):
    """What was measured: a value, several, or the readings of a probe by name.

    With an arm or probe, by its name or number, a token of another one is refused. A value that surprises is
    refused unless the sender is `sure` of it.
    """

    token: str
    arm: int | str | None = None
    value: float | Annotated[list[float], Field(max_length=MOST_VALUES)] | Readings
    worker: Name = ""
    sure: bool = False

    def told_to(self, session: Session) -> Receipt:
        """Tell it."""
        if self.arm is not None:
            refuse_other_arm(session, self.token, self.arm)
        if not self.sure:
            self._refuse_doubtful(session)
        return session.tell(self.token, self.value, worker=self.worker)

    def _refuse_doubtful(self, session: Session) -> None:
        """Ask about a value that surprises, before it is told."""
        values = self.value if isinstance(self.value, list) else [self.value]
        doubt = session.doubt(session.probe_of(self.token), *values)
        if doubt is not None:
            raise ParameterError(f"{doubt}. Nothing was recorded yet", field="sure")


class NewSession(Body):
    """The settings of a new session, without its problem."""

    name: Annotated[Name, Field(pattern=r"\S")]
    policy: str = ""  # the usual one for the problem
    delta: float = 0.05
    epsilon: float = 0.0
    budget: int | None = Field(None, ge=1, le=LARGEST)
    seed: int = Field(0, ge=0, le=LARGEST)
    lease: float = Field(LEASE, gt=0, le=LARGEST)  # seconds that a measurement is kept for who has taken it


class NewProblem(NewSession):
    """A new session with its problem, which has the keys of a problem file."""

    problem: dict[str, Any]


def refuse_other_arm(session: Session, token: str, arm: int | str) -> None:
    """Refuse a token of another arm or probe than the one that was measured."""
    names, right = session.probe_names, session.probe_of(token)
    if arm not in (right, names[right]):
        word = session.given_problem.probe_word
        raise ParameterError(
            f"token {token!r} is of {word} {names[right]!r}, and the value came with {arm!r}; nothing was "
            "recorded: see which of the two was measured, and tell it with its own token",
            field="token",
        )


def add_routes(routes: FastAPI, context: Context) -> None:
    """Serve the routes of this module."""

    @routes.get("/healthz")
    async def healthz() -> Response:
        """Answer without a token whether the store can be read; a StoreError becomes 503."""
        await context.sessions.run(context.sessions.store.names)
        return PlainJson({"store": "readable"})

    @routes.post("/api/sessions/{slug}/tell")
    async def tell(slug: str, request: Request) -> Response:
        body = await read(Tell, request)
        receipt = await context.sessions.at(slug, body.told_to)
        return PlainJson({"receipt": str(receipt)})

    @routes.post("/api/sessions/{slug}/ask")
    async def ask(slug: str, request: Request) -> Response:
        body = await read(Ask, request)
        return PlainJson(await context.sessions.at(slug, lambda opened: _ask(opened, body)))

    @routes.post("/api/sessions")
    async def create(request: Request) -> Response:
        body = await read(NewProblem, request)
        document = Upload("problem.json", json.dumps(body.problem).encode())
        name = await begin(context, body, [document])
        return PlainJson({"session": name, "slug": slug_of(name)}, 201)


async def read(model: type[B], request: Request) -> B:
    """The body of a request; whatever is wrong with it is a `ParameterError`."""
    try:
        return model.model_validate_json(await request.body(), strict=True)
    except ValidationError as error:
        field, text = next(iter(mistakes(model, error).items()))
        raise ParameterError(f"{shortened(field, 40)}: {text}", field=field) from None


_WORDS = {  # for what is expected, by the kind of mistake
    "extra_forbidden": "there is no such key; known: {known}",
    "missing": "this key is missing",
    "float_parsing": "expected a number",
    "float_type": "expected a number",
    "finite_number": "expected a finite number",
    "list_type": "expected a number or a list of numbers",
    "dict_type": "expected a number, a list of numbers, or an object of readings by name",
    "int_parsing": "expected a whole number",
    "int_parsing_size": "expected a whole number that is not as large",
    "int_from_float": "expected a whole number",
    "int_type": "expected a whole number",
    "greater_than_equal": "expected a whole number, {ge} or more",
    "less_than_equal": "expected a whole number, {le} or less",
    "string_too_long": "a name has at most {max_length} letters",
    "string_pattern_mismatch": "a session needs a name",
    "too_long": "at most {max_length} values can be told at once",
}


def mistakes(model: type[BaseModel], error: ValidationError) -> dict[str, str]:
    """What is wrong with each field, in words: what was expected, what came, what to do."""
    known = ", ".join(model.model_fields)
    found = {}
    for one in error.errors(
        include_url=False
    ):  # where a field may be of two kinds, the second one tells more
        words = _WORDS.get(one["type"])
        expected = one["msg"].removeprefix("Value error, ")  # may hold braces, of the JSON it complains about
        if words is not None:
            expected = words.format(**one.get("ctx", {}), known=known)
        field = str(one["loc"][0]) if one["loc"] else "body"
        found[field] = f"{expected}, got {shortened(repr(one['input']), 40)}"
    return found


async def read_problem(context: Context, uploads: list[Upload]) -> tuple[AnyProblem, Past | None]:
    """Return the problem in these files and its guess; a mistake in them names the field of the files."""
    try:
        return await context.uploads.problem(uploads)
    except SurepickError as error:
        raise ParameterError(str(error), field="files") from error


async def begin(context: Context, wanted: NewSession, uploads: list[Upload]) -> str:
    """Begin a session with the problem in these files; its name."""
    if wanted.policy and wanted.policy not in {policy["name"] for policy in policies()}:
        named = shortened(wanted.policy, 40)
        raise ParameterError(f"there is no policy {named!r} to begin with here", field="policy")
    problem, past = await read_problem(context, uploads)
    policy = policy_for(wanted.policy or None, delta=wanted.delta, epsilon=wanted.epsilon)

    def create() -> str:
        settings: Any = wanted.model_dump(include={"seed", "budget", "lease"})
        settings["prior"] = past if takes_past(policy) else None
        return Session.create(context.sessions.store, wanted.name, problem, policy=policy, **settings).name

    try:
        return await context.sessions.run(create)
    except SurepickError as error:
        raise ParameterError(str(error), field=error.field) from error


def policies() -> list[dict[str, Any]]:
    """The policies that need no further settings, those with a promise first."""
    found = []
    for name in POLICIES:
        try:
            policy = parse_policy(name)
        except (TypeError, SurepickError):
            continue
        found.append({"name": name, "promises": Promise.read(policy.guarantee).proved})
    return sorted(found, key=lambda policy: (not policy["promises"], policy["name"]))


def _ask(opened: Session, body: Ask) -> dict[str, Any]:
    requests = opened.ask(body.n, worker=body.worker, wait=False)
    return {
        "requests": [_request(request) for request in requests],
        "status": str(opened.status),
    }


def _request(request: Measurement) -> dict[str, Any]:
    """Return a request as docs/http.md shows it; `arm` is the probe where probes are measured."""
    return {
        "token": request.token,
        "arm": request.probe,
        "arm_name": request.probe_name,
        "readings": list(request.readings),
        "wanted": request.wanted,
        "worker": request.worker,
        "expires": request.expires,
    }
