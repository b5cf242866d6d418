"""What the pages show, and the templates that show it; looking decides, assigns and writes nothing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from surepick._version import __version__
from surepick.core.probes import VALUE
from surepick.errors import SurepickError
from surepick.sessions.commands import next_name
from surepick.sessions.records import Measurement
from surepick.sessions.session import Session
from surepick.views import numbers
from surepick.views.build import build
from surepick.views.chart import caption, plans_chart
from surepick.views.events import log_row
from surepick.views.numbers import iso, value
from surepick.views.sheet import sheet_table
from surepick.views.view import BRIEF, LEADER, OPEN, Open, View
from surepick.web.session_cache import SessionCache, slug_of

SESSIONS = 24  # on a page of the home page
MOST_PLANS = 12  # named on the page
MOST_CHOICES = 8  # arms to choose from, besides the list of others
LATEST, HISTORY = 6, 60  # values on the page of a session, and on a page of its history
LOG = 40  # events on the page
SHEET = 200  # lines of a measuring sheet

Model = dict[str, Any]


@dataclass(frozen=True)
class Entered:
    """What was entered in the form of an action, and what is wrong with it: the field, and why.

    `kept` is the key of uploaded files that need not be chosen again, `by` the name of the person.
    """

    action: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    wrong: str = ""
    error: str = ""
    mistakes: Sequence[str] = ()  # all of them, of a file with several
    kept: str = ""
    kept_names: str = ""
    by: str = ""
    done: str = ""

    def value(self, action: str, name: str, default: str = "") -> str:
        """Return what was entered in this field."""
        return self.fields.get(name, default) if action == self.action else default

    def is_wrong(self, action: str, name: str) -> bool:
        """Return whether the mistake is shown at this field."""
        return bool(self.error) and action == self.action and name == self.wrong

    def with_error(self, error: SurepickError) -> Entered:
        """Return the form with what is wrong, at the field that is to blame."""
        shown = error.field if error.field in FIELDS.get(self.action, ()) else "form"
        first, *mistakes = str(error).split("\n")  # a file with several has one on each line
        action = self.action if self.action in FIELDS else ""
        listed = tuple(one.strip() for one in mistakes)
        return replace(self, action=action, wrong=shown or "form", error=first, mistakes=listed)


FIELDS = {  # where each form shows a mistake; any other one is shown below the form
    "tell": ("arm", "value", "worker", "sure"),
    "import": ("file", "sure"),
    "remove": ("number", "reason"),
    "extend": ("delta", "budget"),
    "final-batch": ("n",),
    "plans": ("name", "plan", "arms"),
    "close": ("reason",),
    "rename": ("name",),
    "delete": ("name",),
    "new": ("files", "name", "policy", "delta", "epsilon", "budget", "low", "high", "seed"),
}


def home_model(sessions: SessionCache, page: int) -> Model:
    """Return a page of the list of sessions, the newest first."""
    names = sessions.names()
    shown = names[SESSIONS * (page - 1) : SESSIONS * page]
    return {
        "place": sessions.store.place,
        "page": page,
        "n_pages": max(1, math.ceil(len(names) / SESSIONS)),
        "sessions": [brief(sessions, name) for name in shown],
    }


def brief(sessions: SessionCache, name: str) -> Model:
    """Return a session in the list; one that fails must not hide the others."""
    shown: Model = {**dict.fromkeys((*BRIEF, "at")), "session": name, "slug": slug_of(name)}
    try:
        view = sessions.use(name, build)
    except Exception as error:
        reason = str(error) if isinstance(error, SurepickError) else f"it cannot be read ({error!r})"
        return shown | {"state": "unreadable", "trusted": True, "headline": reason}
    return shown | view.brief() | {"at": view.created if view.last is None else view.last.at}


def session_model(session: Session, entered: Entered | None = None) -> Model:
    """Return the page of a session."""
    entered = entered or Entered()
    view = build(session)
    slug = quote(slug_of(session.name))
    problem = session.problem
    names = problem.probe_names
    choices = _choices(view, entered)
    listed = {choice["arm"] for choice in choices}
    history = _values(session.measurements(HISTORY), view.unit)
    rivals = [row for row in view.plans if row.status != LEADER and row.behind is not None]
    rivals.sort(key=lambda row: (row.status != OPEN, row.wealth or 0.0))  # the hardest to rule out first
    return {
        "view": view,
        "here": f"/s/{slug}",
        "api": f"/api/sessions/{slug}",
        "entered": entered,
        "headline": view.headline.replace(f'"{view.leader}"', view.leader or ""),  # large: without quotes
        "total": _total(view),
        "amounts": _amounts(view),
        "chart": Markup(plans_chart(view)),
        "caption": caption(view),
        "choices": choices,
        "others": [name for name in names if name not in listed],
        "is_other": entered.action == "tell" and not entered.fields.get("arm"),
        "readings": {
            probe: reads
            for k, probe in enumerate(names)
            if len(reads := problem.reads(k)) > 1 and (len(names) <= MOST_CHOICES or probe in listed)
        },
        "last": next((one for one in history if not one["removed"]), None),
        "history": history[:LATEST],
        "has_older": len(history) > LATEST,
        "rivals": rivals[: 4 * MOST_PLANS],
        "log": _log(session, view.head.position),
        "seed": session.journal.setup.seed,
        "noise_is_stated": problem.bounds is None and problem.knows_noise,
        "example_sum": " + ".join(names[:2]),
        "next_name": next_name(session.name, session.store.names()),
    }


def _total(view: View) -> str:
    """Return the total of the plan to take, beside its name."""
    best = view.best
    named = view.leader is not None and view.leader in view.headline
    if not view.trusted or not named or best is None or best.value is None or not view.n_measured:
        return ""
    return value(best.value, view.unit, best.se) + (" *" if best.uses_guess else "")


def _amounts(view: View) -> str:
    """Return what the leader is made of, unless its name says so."""
    shown = view.leader is not None and view.leader in view.headline and view.n_measured
    if not shown or len(view.amounts) > 3 * MOST_PLANS:
        return ""
    parts = [arm if n == 1 else f"{value(n)} × {arm}" for arm, n in view.amounts.items()]
    text = " + ".join(parts)
    return "" if text == view.leader else text


def _choices(view: View, entered: Entered) -> list[Model]:
    """Return the arms to choose from; chosen is the one before, else the person's own or a free one."""
    arms = {one.arm: one for one in view.open[:MOST_CHOICES]}
    chosen = entered.value("tell", "arm")
    own = [one.arm for one in arms.values() if entered.by and entered.by in {a.worker for a in one.assigned}]
    free = [one.arm for one in arms.values() if len(one.assigned) < one.n]
    first = chosen or next(iter([*own, *free, *arms]), "")
    if chosen and chosen not in arms:
        arms = {chosen: Open(chosen, 0), **arms}
    is_other = entered.action == "tell" and not chosen
    return [
        {
            "arm": one.arm,
            "n": one.n,
            "assigned": ", ".join(dict.fromkeys(held.worker or "assigned" for held in one.assigned)),
            "is_chosen": one.arm == first and not is_other,
        }
        for one in arms.values()
    ]


def _values(measurements: Iterable[Measurement], unit: str) -> list[Model]:
    """Return recorded values, the newest first; the readings of one measurement are one value."""
    found: list[Model] = []
    for one in measurements:
        text = value(one.value, unit) if one.reading == VALUE else f"{one.reading} {value(one.value)}"
        if found and found[-1]["number"] == one.number:
            found[-1]["text"] += f", {text}"
        else:
            shown = {"number": one.number, "arm": one.probe_name, "text": text, "worker": one.worker}
            found.append({**shown, "at": iso(one.time), "removed": one.removed})
    return found[::-1]


def history_model(session: Session, page: int) -> Model:
    """Return a page of all recorded values."""
    found = _values(session.measurements(), session.problem.about.unit)
    slug = quote(slug_of(session.name))
    return {
        "title": session.journal.state.title or session.name,
        "here": f"/s/{slug}",
        "api": f"/api/sessions/{slug}",
        "entered": Entered(),
        "page": page,
        "n_pages": max(1, math.ceil(len(found) / HISTORY)),
        "history": found[HISTORY * (page - 1) : HISTORY * page],
    }


def _log(session: Session, position: int) -> list[Any]:
    """Return the last events, the newest first."""
    events = itertools.islice(session.events(after=max(0, position - LOG)), LOG)
    rows = [log_row(event, session.problem) for event in events]
    return [{**vars(row), "time": iso(row.time)} for row in reversed(rows)]


def sheet_model(session: Session) -> Model:
    """Return the measuring sheet: the open measurements in the order of measuring, with room for values."""
    unit = session.problem.about.unit
    names, rows = sheet_table(session, session.pending(SHEET), assigned=False)
    return {
        "session": session.name,
        "title": session.journal.state.title or session.name,
        "here": f"/s/{quote(slug_of(session.name))}",
        "names": names,
        "columns": ["#", *(f"value ({unit})" if name == "value" and unit else name for name in names)],
        "rows": rows,
    }


def when(moment: str) -> str:
    """Return a moment of a View for people: in UTC, to the minute.

    >>> when("2026-11-17T20:01:59Z")
    '17 Nov, 20:01 UTC'
    """
    found = datetime.fromisoformat(moment)
    return f"{found.day} {found:%b, %H:%M} UTC"


def wealth(number: float | None) -> str:
    """Return the evidence against a rival."""
    return "-" if number is None else f"{min(number, 9999):,.3g}"


FILTERS = {
    "wealth": wealth,
    "value": numbers.value,
    "count": numbers.count,
    "odds": numbers.odds,
    "when": when,
    "safe_range": numbers.safe_range,
}


def templates(*, read_only: bool) -> Environment:
    """Return the templates, which escape every value and leave forms out of a read-only server."""
    found = Environment(
        loader=PackageLoader("surepick.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(FILTERS)
    found.globals.update(version=__version__, read_only=read_only)
    return found
