"""Bodies of requests: JSON, or the fields and files of a form, which become the same actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request

from surepick.web.actions import B, read_form, read_json
from surepick.web.pages import Entered
from surepick.web.security import is_form
from surepick.web.uploads import MOST_FILES, Upload, Uploads, example

MOST_FIELDS = 1200  # readings of a probe have a field each
NOT_SENT_ON = ("kept", "example", "correct", "other", "delta_other", "next")


@dataclass(frozen=True)
class Sent:
    """The body of a request; `fields` is None where it is JSON."""

    content: bytes = b""
    fields: Mapping[str, str] | None = None
    uploads: tuple[Upload, ...] = ()
    kept: str = ""  # the key of the uploads, for the form that comes back

    @classmethod
    async def read(cls, request: Request, kept: Uploads) -> Sent:
        """Read the body; the files of a form are those that came, those that were kept, or the example."""
        if not is_form(request):
            return cls(await request.body())
        form = await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS)
        fields = {name: given for name, given in form.multi_items() if isinstance(given, str)}
        files = [file for _, file in form.multi_items() if isinstance(file, UploadFile) and file.filename]
        uploads = [Upload(file.filename or "", await file.read()) for file in files]
        if fields.get("example"):
            uploads = [example()]
        uploads = uploads or kept.kept(fields.get("kept", ""))
        return cls(b"", fields, tuple(uploads), kept.keep(uploads) if uploads else "")

    def field(self, name: str) -> str:
        """Return a field of the form; empty if it is missing."""
        return "" if self.fields is None else self.fields.get(name, "")

    def body(self, model: type[B], action: str = "") -> B:
        """Return the body as this model."""
        if self.fields is None:
            return read_json(model, self.content)
        return read_form(model, to_body(action, self.fields))

    def entered(self, action: str) -> Entered:
        """Return what the form shows again."""
        fields = dict(self.fields or {})
        names = ", ".join(one.name for one in self.uploads)
        return Entered(action, fields, by=fields.get("worker", ""), kept=self.kept, kept_names=names)


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
            start = f"reading/{arm}/"
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
            given["arms"] = [text for text in given.get("arms", "").split(";") if text.strip()]
        case "delete":
            position, _, checksum = given.get("head", "").partition(" ")
            given["head"] = {"position": position, "checksum": checksum}
    return given


def _line_ends(text: str) -> str:
    return text.replace("\r\n", "\n")  # browsers write them so
