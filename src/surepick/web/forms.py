"""Bodies of requests: JSON, or the fields and files of a form, which become the same actions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request

from surepick.errors import ParameterError, SurepickError
from surepick.web.actions import B, read_form, read_json
from surepick.web.pages import FIELDS, Entered, reading_field
from surepick.web.security import Keys, is_form
from surepick.web.uploads import MOST_FILES, Upload, Uploads

MOST_FIELDS = 1200  # readings of a probe have a field each
OUT_OF_DATE = "this form was out of date, so nothing was recorded; look it over and send it again"
NOT_SENT_ON = ("form_key", "kept", "example", "correct", "other", "delta_other", "next")


@dataclass(frozen=True)
class Sent:
    """The body of a request; `fields` is None where it is JSON."""

    content: bytes = b""
    fields: Mapping[str, str] | None = None
    files: tuple[Upload, ...] = ()

    @classmethod
    async def read(cls, request: Request) -> Sent:
        """Read the body."""
        if not is_form(request):
            return cls(await request.body())
        form = await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS)
        fields = {name: given for name, given in form.multi_items() if isinstance(given, str)}
        files = [file for _, file in form.multi_items() if isinstance(file, UploadFile) and file.filename]
        uploads = [Upload(file.filename or "", await file.read()) for file in files]
        return cls(b"", fields, tuple(uploads))

    def check_key(self, request: Request, keys: Keys) -> None:
        """Refuse a form that no page of this server sent; programs that send the token need no key."""
        if self.fields is None or request.scope.get("by_header"):
            return
        if not keys.is_form_key(self.fields.get("form_key", "")):
            raise ParameterError(OUT_OF_DATE, field="form")

    def field(self, name: str) -> str:
        """Return a field of the form; empty if it is missing."""
        return "" if self.fields is None else self.fields.get(name, "")

    def body(self, model: type[B], action: str = "") -> B:
        """Return the body as this model."""
        if self.fields is None:
            return read_json(model, self.content)
        return read_form(model, to_body(action, self.fields))

    def uploads(self, kept: Uploads) -> list[Upload]:
        """Return the files that came, or those that a form before this one had sent."""
        return list(self.files) or kept.kept(self.field("kept"))

    def entered(self, action: str, **more: Any) -> Entered:
        """Return what the form shows again."""
        fields = dict(self.fields or {})
        return Entered(action, fields, by=fields.get("worker", ""), **more)


def to_body(action: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a form under the names and in the shapes that JSON has."""
    given: dict[str, Any] = {
        name: text.strip()
        for name, text in fields.items()
        if name not in NOT_SENT_ON and not name.startswith("reading/")
    }
    if given.get("delta") == "other":
        given["delta"] = fields.get("delta_other", "").strip()
    match action:
        case "tell":
            given["arm"] = arm = _line_ends(given.get("arm") or fields.get("other", ""))
            start = reading_field(arm, "")
            readings = {
                name.removeprefix(start): text.strip()
                for name, text in fields.items()
                if name.startswith(start) and text.strip()
            }
            if readings:
                given["value"] = readings
        case "release":
            given["arm"] = _line_ends(given.get("arm", ""))
        case "plans":
            given["arms"] = [_arm(text) for text in given.get("arms", "").split(";") if text.strip()]
        case "delete":
            position, _, checksum = given.get("head", "").partition(" ")
            given["head"] = {"position": position, "checksum": checksum}
    return given


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n")  # browsers write them so


def _arm(text: str) -> dict[str, str]:
    """Return a new arm as it is typed.

    >>> _arm(" Ferry noise=2 cost=3 ")
    {'name': 'Ferry', 'noise': '2', 'cost': '3'}
    """
    settings = dict(re.findall(r"\b(noise|cost|low|high)=(\S+)", text))
    name = re.sub(r"\b(noise|cost|low|high)=\S+", "", text).strip()
    return {"name": name, **settings}


def with_error(entered: Entered, error: SurepickError) -> Entered:
    """Return the form with what is wrong, at the field that is to blame."""
    shown = error.field if error.field in FIELDS.get(entered.action, ()) else "form"
    action = entered.action if entered.action in FIELDS else ""
    first, *mistakes = str(error).split("\n")  # a file with several has one on each line
    return Entered(
        action,
        entered.fields,
        wrong=shown or "form",
        error=first,
        mistakes=tuple(one.strip() for one in mistakes),
        kept=entered.kept,
        kept_names=entered.kept_names,
        by=entered.by,
    )
