"""Pure data for everything that is shown anywhere; plots, reports, pages and terminals only draw it.

    seen = look(session)               # one reading of what is recorded; nothing is decided or written
    seen = look(session, n_used=500)   # as it was after 500 measurements, for a slider

`look` is the only thing here that touches a session. Every view is a function of a `Look` and gives a frozen
dataclass of plain values (numbers, text, None, tuples of such), which `to_json` turns into JSON values:

| view | gives | holds |
|---|---|---|
| `summary(seen)` | `Summary` | state, the answer so far in one sentence, risk, counts, `warnings` |
| `progress(seen)` | `Progress` | `points` (confidence along the way, the last one is now), `forecast` |
| `rivals(seen, first=0, n=10)` | `Rivals` | `rows`: gap, interval, evidence of each rival, closest first |
| `arms(seen, first=0, n=None)` | `Arms` | `rows`: measurements of each arm beside the best allocation |
| `work(seen)` | `Work` | the open round: `wants` by arm, first `tokens`, `workers` |
| `plan(seen)` | `Plan` or None | the lead as what it does: all its `pieces`, its value and unit |
| `picture(seen, plan=None, other=None)` | `Picture` or None | a plan, the lead unless given, to draw |
| `moments(seen)` | tuple of `Moment` | the positions of a slider, for `look(session, n_used=...)` |
| `page(seen)` | `Page` | all of these at once |

`State` is the state of a session: running, confident, budget spent, closed. A session keeps at most 256
moments of its past, evenly spaced in rounds, so that no view has to read the log; of a past look, `work` is
empty, and `asked` and `decided_at` belong to the decision that was recorded then. This room may import
`sessions` and the rooms below it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surepick.core.wording import shortened
from surepick.sessions.codec import finite_or_none
from surepick.views.arms import Arm, Arms, arms
from surepick.views.look import Look, look
from surepick.views.pictures import Entry, Link, Picture, Place, picture
from surepick.views.plan import Piece, Plan, plan
from surepick.views.progress import Forecast, Point, Progress, progress
from surepick.views.rivals import Rival, Rivals, rivals
from surepick.views.summary import State, Summary, Warning, summary
from surepick.views.text import duration
from surepick.views.work import Token, Want, Work, Worker, work

__all__ = [
    "Arm",
    "Arms",
    "Entry",
    "Forecast",
    "Link",
    "Look",
    "Moment",
    "Page",
    "Picture",
    "Piece",
    "Place",
    "Plan",
    "Point",
    "Progress",
    "Rival",
    "Rivals",
    "State",
    "Summary",
    "Token",
    "Want",
    "Warning",
    "Work",
    "Worker",
    "arms",
    "duration",
    "look",
    "moments",
    "page",
    "picture",
    "plan",
    "progress",
    "rivals",
    "shortened",
    "summary",
    "to_json",
    "work",
]


@dataclass(frozen=True)
class Moment:
    """A position of the history slider."""

    n_measurements: int
    n_rounds: int


@dataclass(frozen=True)
class Page:
    """A session as its page shows it."""

    summary: Summary
    progress: Progress
    rivals: Rivals
    arms: Arms
    work: Work
    plan: Plan | None
    picture: Picture | None
    moments: tuple[Moment, ...]


def page(look: Look, *, n_rivals: int = 10, n_arms: int = 20) -> Page:
    """Everything that the first page of a session shows, and no more."""
    return Page(
        summary=summary(look),
        progress=progress(look),
        rivals=rivals(look, n=n_rivals),
        arms=arms(look, n=n_arms),
        work=work(look),
        plan=plan(look),
        picture=picture(look, other=look.rival),
        moments=moments(look),
    )


def moments(look: Look) -> tuple[Moment, ...]:
    """The moments of the past that can be looked at again, and now."""
    past = {sample.n_measurements: Moment(sample.n_measurements, sample.n_rounds) for sample in look.samples}
    past[look.n_used] = Moment(look.n_used, look.n_rounds)
    return tuple(past[n] for n in sorted(past))


def to_json(view: Any) -> Any:
    """A view as JSON values; what is not finite becomes null.

    >>> to_json(Moment(3, 1)), to_json(float("inf"))
    ({'n_measurements': 3, 'n_rounds': 1}, None)
    """
    if dataclasses.is_dataclass(view) and not isinstance(view, type):
        return {field.name: to_json(getattr(view, field.name)) for field in dataclasses.fields(view)}
    if isinstance(view, Mapping):
        return {str(key): to_json(value) for key, value in view.items()}
    if isinstance(view, list | tuple):
        return [to_json(value) for value in view]
    if isinstance(view, enum.Enum):
        return str(view)
    return finite_or_none(view)
