"""`--notify URL`: POST the end of a session; a failure is reported and changes nothing."""

from __future__ import annotations

import json
import threading
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
    """POST the answer and the certificate of an ended session; report a failure on standard error."""
    if url is None or session.status == "running":
        return
    # A server that sends a byte now and then never times out on one read, so the whole call has a deadline: a
    # daemon thread that is left behind ends with the process.
    failures: list[Exception | str] = ["no answer in time"]
    calling = threading.Thread(target=_post, args=(url, _end_of(session), failures), daemon=True)
    calling.start()
    calling.join(PATIENCE)
    if failures:
        remark(f"surepick: could not notify {url!r} ({failures[-1]}); the session is kept as it is")


def _post(url: str, data: dict[str, Any], failures: list[Exception | str]) -> None:
    """POST the data to exactly this address; empties `failures` if that worked, else adds the reason."""
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class NoRedirect(HTTPRedirectHandler):
        """The data go to the address that was given and to no other."""

        def redirect_request(self, *_: Any) -> None:
            return None

    try:
        if not url.lower().startswith(("http://", "https://")):
            raise ValueError("an address begins with http:// or https://")
        body = json.dumps(data).encode()
        request = Request(url, body, {"Content-Type": "application/json"}, method="POST")
        with build_opener(NoRedirect).open(request, timeout=PATIENCE) as answer:
            answer.read(1)
        failures.clear()
    except Exception as error:  # a wrong address, no network, a server that is down or answers nonsense
        failures.append(error)


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
