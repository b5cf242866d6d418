"""A report: one HTML file that needs nothing else. The answer first, then the evidence, then the log.

It is made of the templates and the style of the dashboard, so this room may import `web.templating`, and
every room below the edges. It needs Jinja2, which the extras `report` and `web` install.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter, deque
from importlib.resources import files
from pathlib import Path
from typing import Any

from surepick import views
from surepick.sessions.session import Session
from surepick.store import Event
from surepick.views.events import log_row
from surepick.web.templating import Templates

MOST_RIVALS, MOST_ARMS = 15, 25
LAST_EVENTS = 40  # of the log; those that are no measurements are listed beyond them
MOST_REMARKS = 200
LONGEST_EVENT = 300  # letters
_REMARKS = (
    "created",
    "extended",
    "called",
    "stopped",
    "closed",
    "noted",
    "withdrawn",
    "voided",
    "plan-added",
)


def write_report(session: Session, path: str | Path) -> Path:
    """Write the report of the session into this file."""
    path = Path(path)
    path.write_text(report(session), encoding="utf-8")
    return path


def report(session: Session) -> str:
    """The session as one HTML page without scripts and without anything to fetch.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["<b>road</b>", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.CombGapE())
    >>> page = report(session)
    >>> page.startswith("<!doctype html>"), "<b>road</b>" in page
    (True, False)
    """
    seen = views.look(session)
    page = views.page(seen, n_rivals=MOST_RIVALS, n_arms=MOST_ARMS)
    sources = (files("surepick.web") / "static" / "style.css", files("surepick.report") / "style.css")
    style = "".join(source.read_text(encoding="utf-8") for source in sources)
    model = {
        **vars(page),
        "forecast": page.progress.forecast,
        "by_cost": page.arms.by_cost,
        "now": seen.now,
        "certificate": _certificate(session),
        "log": _log(session),
    }
    return Templates("surepick.report", style=style).page("report.html", model)


def _certificate(session: Session) -> dict[str, str] | None:
    """The certificate as text, and as the address of a file that the page itself holds."""
    if session.status == "running":
        return None
    certificate = session.certificate()
    data = json.dumps(views.to_json(certificate.to_json()), indent=1, ensure_ascii=False)
    file = "data:application/json;base64," + b64encode(data.encode()).decode()
    return {"text": str(certificate), "file": file}


def _log(session: Session) -> dict[str, Any]:
    """How many events there are of each kind; the last ones, after remarks and decisions to end or go on."""
    kinds: Counter[str] = Counter()
    last: deque[Event] = deque(maxlen=LAST_EVENTS)
    remarks: deque[Event] = deque(maxlen=MOST_REMARKS)
    for event in session.events():
        kinds[event.kind] += 1
        if len(last) == LAST_EVENTS and last[0].kind in _REMARKS:
            remarks.append(last[0])
        last.append(event)
    problem = session.problem
    rows = [log_row(event, problem, most_text=LONGEST_EVENT) for event in (*remarks, *last)]
    return {"kinds": kinds.most_common(), "rows": rows}
