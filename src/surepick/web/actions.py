"""The table of actions: what can be done to a session, for forms, JSON and MCP alike.

Each action is one function; its parameters after the session are what is sent. A form sends them as text:
there numbers may have a decimal comma, and empty fields count as left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)

from surepick.core.given.arms import NewArm
from surepick.core.given.numbers import scale_and_bounds
from surepick.core.wording import shortened
from surepick.errors import ParameterError
from surepick.files import measurements
from surepick.sessions import commands
from surepick.sessions.events import place_of
from surepick.sessions.session import Session
from surepick.store import Head
from surepick.tables import numeral
from surepick.views.numbers import iso
from surepick.views.view import RUNNING

MOST_ROWS = 1000  # recorded at once
MOST_ASKED = 64
LONGEST_NAME, LONGEST_NOTE = 200, 2000  # letters
LARGEST = 10**15  # whole number; beyond it floating-point numbers are no longer exact

B = TypeVar("B", bound="Body")
Answer = dict[str, Any]


def _number(given: Any, info: ValidationInfo) -> Any:
    """Read a number as people type it; JSON has numbers of its own."""
    return numeral(given.strip()) if isinstance(given, str) and info.mode == "python" else given


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a name has only printable characters")
    return text.strip()


def _some_letters(text: str) -> str:
    if not text.strip():
        raise ValueError("enter some letters")
    return text


Number = Annotated[float, BeforeValidator(_number)]
Count = Annotated[int, BeforeValidator(_number), Field(ge=1, le=LARGEST)]
Name = Annotated[str, Field(max_length=LONGEST_NAME), AfterValidator(_printable)]
GivenName = Annotated[Name, AfterValidator(_some_letters)]
Note = Annotated[str, Field(max_length=LONGEST_NOTE)]
Reason = Annotated[Note, AfterValidator(_some_letters)]


class Body(BaseModel):
    """What was sent; keys that are null count as left out, unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {key: v for key, v in given.items() if v is not None} if isinstance(given, dict) else given


class Row(Body):
    """One row of an import, as in a measuring sheet."""

    arm: Name
    value: Number | None = None
    reading: Name = ""
    worker: Name = ""
    remarks: Note = ""
    key: Name = ""


class Arm(Body):
    """A new arm; what is left out is as for the others."""

    name: GivenName
    noise: Number | None = None
    cost: Number | None = None
    low: Number | None = None
    high: Number | None = None


class HeadOfLog(Body):
    """The position and checksum of a log's end, as the sender saw it."""

    position: Count
    checksum: str


class New(Body):
    """A new session: its problem, or the session whose values are its prior data, and how it decides."""

    problem: dict[str, Any] | None = None
    prior: str | None = None
    noise_unknown: bool = False  # with prior: the new session learns the noise that was stated
    name: Name = ""
    policy: str | None = None
    delta: Number | None = None  # what is left out is as the file says
    epsilon: Number | None = None
    budget: Count | None = None
    low: Number | None = None  # no value is below it
    high: Number | None = None
    seed: Annotated[int, Field(ge=0, le=LARGEST)] | None = None

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits of all values; refused at their field if they are none."""
        scale_and_bounds(None, self.low, self.high, ("value",))
        return {"low": self.low, "high": self.high}


def ask(session: Session, n: Annotated[Count, Field(le=MOST_ASKED)] = 1, worker: Name = "") -> Answer:
    """Return measurements to make now, assigned to the worker."""
    requests = session.ask(n, worker=worker, wait=False)
    return {
        "requests": [
            {"id": one.id, "arm": one.probe_name, "readings": list(one.readings), "expires": iso(one.expires)}
            for one in requests
        ]
    }


def tell(
    session: Session,
    arm: int | str | None = None,
    request: str | None = None,
    value: Number | Annotated[dict[str, Number], Field(max_length=MOST_ROWS)] | None = None,
    worker: Name = "",
    key: Name = "",
    note: Note = "",
    lost: bool = False,
    sure: bool = False,
) -> Answer:
    """Record a value, or the readings of a probe by name; one that surprises only if the sender is sure.

    `request` is the id of a request; the arm is enough.
    """
    what = arm if request is None else request
    if what is None:
        raise ParameterError("choose what was measured: an arm, or a request", field="arm")
    if value is None and not lost:
        raise ParameterError("enter a number", field="value")
    about = what if request is None else place_of(request, session.state()).probe
    if request is not None and arm not in (None, about, session.problem.probe_names[int(about)]):
        raise ParameterError(f"request {what!r} is not about {arm!r}; nothing was recorded", field="arm")
    if not sure and not lost:
        refuse_surprising(session, [(about, value)])
    receipt = session.tell(what, value, worker=worker, key=key, note=note, lost=lost, sure=sure)
    _decide(session, worker)
    return {"number": receipt.number, "result": receipt.result}


def _decide(session: Session, worker: str) -> None:
    """Have the next batch decided once this one is complete, so that the page shows what to measure."""
    if session.status == RUNNING and not session.pending(1):
        session.ask(worker=worker, wait=False)


def refuse_surprising(session: Session, told: Sequence[tuple[int | str, Any]]) -> None:
    """Refuse values that surprise, before any is recorded."""
    text = commands.doubts(session.state(), told)
    if text:
        raise ParameterError(f"{text}. Not recorded yet", field="sure")


def import_rows(
    session: Session,
    rows: Annotated[list[Row], Field(max_length=MOST_ROWS)],
    worker: Name = "",
    sure: bool = False,
) -> Answer:
    """Record rows that came as JSON; how many became what."""
    table = [
        measurements.Row.from_cells(
            f"row {k}", {name: str(of) for name, of in row.model_dump().items() if of}
        )
        for k, row in enumerate(rows, 1)
    ]
    return import_table(session, table, worker=worker, sure=sure)


def import_table(session: Session, rows: list[measurements.Row], *, worker: str, sure: bool) -> Answer:
    """Record the rows of a table, all or none; how many became what."""
    if not sure:
        refuse_surprising(session, measurements.probes_and_values(session, rows))
    counts = measurements.import_rows(session, rows, worker=worker)
    _decide(session, worker)
    return {"counts": counts}


def remove(session: Session, number: Count, reason: Reason) -> None:
    """Remove a value that was recorded by mistake."""
    session.remove(number, reason)


def release(session: Session, arm: str | None = None, worker: Name = "") -> Answer:
    """Release the assigned measurements of an arm, or all; those of one worker, if one is named."""
    held = [one for one in session.pending() if one.worker and worker in ("", one.worker)]
    chosen = [one for one in held if arm in (None, one.probe_name)]
    for one in chosen:
        session.release(one, "released", worker=one.worker)
    return {"released": len(chosen)}


def extend(session: Session, delta: Number | None = None, budget: Count | None = None) -> None:
    """Continue with a smaller delta, or a larger budget."""
    session.extend(delta=delta, budget=budget)


def final_batch(session: Session, n: Count) -> None:
    """Make the next measurements the last."""
    session.final_batch(n)


def add_plan(
    session: Session,
    name: GivenName,
    plan: str | dict[str, Number],
    arms: Annotated[list[str | Arm], Field(max_length=MOST_ROWS)] | None = None,
) -> None:
    """Add a plan: a sum of arms, or amounts by their names."""
    new = [one if isinstance(one, str) else NewArm(**one.model_dump()) for one in arms or ()]
    session.add_plan(name, plan, arms=new)


def close(session: Session, reason: Note = "") -> None:
    """End the session."""
    session.close(reason)


def rename(session: Session, name: GivenName) -> None:
    """Give the session a new title."""
    session.rename(name)


def delete(session: Session, name: str, head: HeadOfLog) -> Answer:
    """Delete the session for good, if its name is right and its log still ends where it was seen to."""
    if name != session.name:
        raise ParameterError(f"to delete it, type its name: {session.name}", field="name")
    session.delete(expected=Head(head.position, head.checksum))
    return {"deleted": name}


@dataclass(frozen=True)
class Action:
    """What is done to a session, and what the page says when it is done."""

    work: Callable[..., Answer | None]  # returns what there is to say beside the View, if anything
    done: str = ""

    @cached_property
    def body(self) -> type[Body]:
        """What is sent: the parameters of the function but for the session."""
        _, *given = inspect.signature(self.work, eval_str=True).parameters.values()
        fields: Any = {p.name: (p.annotation, ... if p.default is p.empty else p.default) for p in given}
        made: type[Body] = create_model(self.work.__name__, __base__=Body, **fields)
        return made

    def do(self, session: Session, body: Body) -> Answer:
        """Do it; return what there is to say."""
        return self.work(session, **{name: getattr(body, name) for name in type(body).model_fields}) or {}


ACTIONS = {  # by the last part of the route
    "ask": Action(ask),
    "tell": Action(tell),
    "import": Action(import_rows),
    "remove": Action(remove, "The value is removed. The log keeps it, with the reason."),
    "release": Action(release, "The measurement is free again."),
    "extend": Action(extend, "The session continues."),
    "final-batch": Action(final_batch, "These measurements are the last."),
    "plans": Action(add_plan, "The plan is added."),
    "close": Action(close, "The session is closed."),
    "rename": Action(rename, "The session has its new name."),
}


def read_json(model: type[B], content: bytes) -> B:
    """Return the body in this JSON; the first mistake is a `ParameterError` with its field."""
    try:
        return model.model_validate_json(content, strict=True)
    except ValidationError as error:
        raise _mistake(model, error) from None


def read_form(model: type[B], fields: Mapping[str, Any]) -> B:
    """Return the body in the fields of a form; empty ones count as left out."""
    try:
        return model.model_validate({name: given for name, given in fields.items() if given != ""})
    except ValidationError as error:
        raise _mistake(model, error) from None


def _mistake(model: type[Body], error: ValidationError) -> ParameterError:
    # Where a field may be of two kinds, there is an error for each; the last one says more.
    first = error.errors(include_url=False)[0]["loc"][:1]
    one = [found for found in error.errors(include_url=False) if found["loc"][:1] == first][-1]
    field = str(first[0]) if first else "body"
    expected = one["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if one["type"] == "extra_forbidden":
        expected = f"there is no such key; known: {', '.join(model.model_fields)}"
    elif one["type"] not in ("missing", "value_error"):
        expected += f", got {shortened(repr(one['input']), 40)}"
    return ParameterError(f"{shortened(field, 40)}: {expected}", field=field)
