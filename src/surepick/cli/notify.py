"""`--notify URL`: tell somebody that a session has ended; whatever comes of it, the run itself stands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.render import remark

if TYPE_CHECKING:
    from surepick.sessions.session import Session

PATIENCE = 10.0  # seconds
Notify = Annotated[
    str | None,
    typer.Option("--notify", help="POST the end of the session as JSON to this address (http or https)."),
]


def tell_of_end(url: str | None, session: Session) -> None:
    """POST the answer and the certificate of an ended session; what goes wrong is said, and harms nothing."""
    if url is None or session.status is None:
        return
    from urllib.request import Request, urlopen

    try:
        if not url.lower().startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        body = json.dumps(_end_of(session)).encode()
        request = Request(url, body, {"Content-Type": "application/json"}, method="POST")
        with urlopen(request, timeout=PATIENCE) as answer:
            answer.read(1)
    except Exception as error:  # a wrong address, no network, a server that is down or talks nonsense
        remark(f"surepick: {url!r} was not told of the end ({error}); the session is kept as it is")


def _end_of(session: Session) -> dict[str, Any]:
    from surepick.views import look, summary, to_json

    seen = summary(look(session))
    return {
        "event": "ended",
        "session": session.name,
        "title": seen.title,
        "state": seen.state,
        "sentence": seen.sentence,
        "answer": seen.answer,
        "n_measurements": seen.n_measurements,
        "cost": seen.cost,
        "certificate": to_json(session.certificate().to_json()),
    }
