"""One View of a session: the only shape that screens, pages, JSON, MCP and notifications show.

`build.build(session)` makes it. What is proved and what is only estimated stand in two fields, `proved` and
`bet`, and no sentence mixes them. `docs/reference/http.md` describes each field.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from surepick.core.guarantee import Doubt
from surepick.core.wording import shortened
from surepick.views.numbers import count, odds, value

MOST_LISTED = 200  # rows of each list of a View
LONGEST_NAME = 60  # letters of a plan in one line
RUNNING, CONFIDENT, BUDGET_SPENT, CLOSED = STATES = ("running", "confident", "budget spent", "closed")
BRIEF = ("session", "title", "state", "trusted", "headline", "leader", "n_measured", "n_open", "created")
LEADER, TIED, OPEN, RULED_OUT = "leader", "tied", "open", "ruled out"  # the status of a plan


@dataclass(frozen=True)
class Proved:
    """What is wrong with probability at most `risk`, if what it `assumes` holds.

    `claim` is best, within_epsilon, one_of, better_than_incumbent, incumbent_stays, no_plan (it is proved
    that none will do), none, or own where the policy words it. `plans` are the plans that it is about: of
    one_of those that may be best.
    """

    claim: str
    plans: tuple[str, ...]
    risk: float | None
    assumes: str
    text: str

    @property
    def is_tie(self) -> bool:
        """Whether several plans are the answer."""
        return self.claim == "own" and len(self.plans) > 1


@dataclass(frozen=True)
class Bet:
    """An estimate of how good the leader is: the chance that it is best, and what it loses on average."""

    plan: str
    chance: float | None  # None: by the guess alone
    expected_loss: float | None
    text: str


@dataclass(frozen=True)
class Forecast:
    """How many more measurements to expect; 8 of 10 simulated runs end between `low` and `high`.

    None stands for no end in sight: the best plans are too close to a tie.
    """

    median: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PlanRow:
    """A plan by its estimates; `behind` is how much worse than the leader it is."""

    name: str
    value: float | None
    se: float | None
    behind: float | None
    behind_se: float | None
    status: str
    uses_guess: bool  # arms that were not measured are taken at their guess
    wealth: float | None = None  # evidence against it as a rival of the leader; ruled out at 1/delta


@dataclass(frozen=True)
class ArmRow:
    """An arm (or a reading of a probe) by its estimates.

    `safe` is the range of its mean in which the leader stays best, the other estimates as they are.
    """

    name: str
    mean: float | None
    se: float | None
    n: int
    role: str  # measured, known, same in all plans, in no plan
    safe: tuple[float | None, float | None] | None


@dataclass(frozen=True)
class Assigned:
    """A worker that has taken a measurement, and until when it is reserved."""

    worker: str
    until: str


@dataclass(frozen=True)
class Open:
    """An arm (or probe) to measure `n` times now; a probe has several `readings`."""

    arm: str
    n: int
    assigned: tuple[Assigned, ...] = ()
    readings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Last:
    """The last recorded value; `number` is what `session remove` calls it."""

    number: int
    arm: str
    value: float | None
    worker: str
    at: str


@dataclass(frozen=True)
class Next:
    """A command to type next, and what it does."""

    command: str
    text: str


@dataclass(frozen=True)
class Remark:
    """What to know before relying on the answer; `code` names it for programs."""

    code: str
    text: str


@dataclass(frozen=True)
class HeadOfLog:
    """How many events the log has, and the checksum of the last."""

    position: int
    checksum: str


@dataclass(frozen=True, repr=False, kw_only=True)
class View:
    """A session at one moment. `plan` is None unless the state is confident.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["road", "rail"], noise=1, goal="largest")
    >>> session = sp.Session.create("memory://", "trips", problem, policy=sp.BetGapE())
    >>> from surepick.views.build import build
    >>> build(session)
    View(trips: running, nothing measured yet)
    """

    view: int = 1  # the version of this shape
    session: str
    title: str
    state: str
    trusted: bool
    doubts: tuple[Doubt, ...]
    goal: str
    unit: str
    delta: float
    epsilon: float
    budget: int | None
    policy: str
    incumbent: str | None
    headline: str
    plan: str | None
    leader: str | None
    runner_up: str | None
    amounts: Mapping[str, float]
    proved: Proved
    bet: Bet | None
    n_measured: int
    n_open: int
    n_assigned: int
    n_extra: int
    n_removed: int
    cost: float
    n_plans: int | None
    n_arms: int
    forecast: Forecast | None
    plans: tuple[PlanRow, ...]
    arms: tuple[ArmRow, ...]
    open: tuple[Open, ...]
    last: Last | None
    remarks: tuple[Remark, ...]
    next: tuple[Next, ...]
    created: str
    head: HeadOfLog

    @property
    def best(self) -> PlanRow | None:
        """The row of the leader."""
        return next((row for row in self.plans if row.status == LEADER), None)

    @property
    def second(self) -> PlanRow | None:
        """The row of the runner-up."""
        return next((row for row in self.plans if row.name == self.runner_up), None)

    @property
    def claims(self) -> list[tuple[str, str]]:
        """What is proved and what is our bet, each with its label; with doubts nothing is labelled proved."""
        found = [("Proved" if self.trusted else "", self.proved.text)]
        return found if self.bet is None else [*found, ("Our bet", self.bet.text)]

    def to_json(self) -> dict[str, Any]:
        """Return the View as JSON values."""
        found: dict[str, Any] = to_json(self)
        return found

    def brief(self) -> dict[str, Any]:
        """Return what a list of sessions shows, as JSON values."""
        return {name: getattr(self, name) for name in BRIEF}

    def __repr__(self) -> str:
        return f"View({self.line()})"

    def line(self) -> str:
        """Return one line: the session, its state, what is proved or which plan leads, and the count."""
        leader = "" if self.leader is None else repr(shortened(self.leader, LONGEST_NAME))
        leads = f"{leader} leads" if leader else "nothing leads"
        if not self.trusted:
            doubt = brief_doubt(self.doubts[0], self.unit)
            return f"{self.session}: DOUBTFUL, {leads}; {doubt}"
        measured = f"{self.n_measured:,} measured"
        wrong = f"wrong at most {odds(self.delta).replace(' time ', ' ')}"
        claims = {  # what is proved of the leader
            "best": "is the best",
            "within_epsilon": f"within {value(self.epsilon, self.unit)} of the best",
            "better_than_incumbent": "is better than the plan in use",
            "incumbent_stays": "stays",
            "own": "is the answer",  # a guarantee that the policy words itself
        }
        if self.proved.claim == "no_plan":
            return f"{self.session}: {self.state}, no plan will do, {wrong}, {measured}"
        if self.proved.claim in claims:
            return f"{self.session}: {self.state}, {leader} {claims[self.proved.claim]}, {wrong}, {measured}"
        if not self.n_measured:
            return f"{self.session}: {self.state}, nothing measured yet"
        more = ""
        if self.forecast is not None and self.forecast.median is not None:
            more = f", about {count(self.forecast.median, about=True)} more"
        return f"{self.session}: {self.state}, {measured}{more}; {leads}"

    def _repr_html_(self) -> str:
        from surepick.views.chart import STYLE, plans_chart

        title, headline = escape(self.title or self.session), escape(self.headline)
        state = f'<div style="opacity:.7">{title}: {self.state}, {self.n_measured:,} measured</div>'
        if self.trusted:
            head = f'{state}<div style="font-size:1.5em">{headline}</div>'
        else:
            amber = "border-left:.4em solid #d97706;background:rgba(217,119,6,.15);padding:.4em .7em"
            head = f'<div style="{amber}" role="alert" data-trusted="false">{headline}</div>{state}'
        claims = "".join(f"<div>{escape(labelled(*claim))}</div>" for claim in self.claims)
        box = "max-width:46em;padding:.4em 0;line-height:1.45;color:inherit"
        return f'{STYLE}<div style="{box}">{head}{claims}{plans_chart(self)}</div>'


def brief_doubt(doubt: Doubt, unit: str) -> str:
    """Return a doubt in a few words.

    >>> brief_doubt(Doubt("noise_larger", None, 9, 1.0, 2.3, "", ""), "min")
    'noise 2.3 min, 1 min stated'
    """
    if doubt.stated is None or doubt.code != "noise_larger":
        return shortened(doubt.text, 80)
    return f"noise {doubt.seen:.2g} {unit}".rstrip() + f", {value(doubt.stated, unit)} stated"


def lower(text: str) -> str:
    """Return a sentence with a small first letter, to follow a colon; a quoted name stays as it is."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def upper(text: str) -> str:
    """Return a text with a capital first letter, to stand alone."""
    return text[:1].upper() + text[1:]


def labelled(label: str, text: str) -> str:
    """Return a claim of `View.claims` as one sentence."""
    return f"{label}: {lower(text)}" if label else text


def to_json(found: Any) -> Any:
    """Return dataclasses, mappings and tuples as JSON values; what is not finite becomes null.

    >>> to_json(Forecast(24.0, 11.0, math.inf))
    {'median': 24.0, 'low': 11.0, 'high': None}
    """
    if isinstance(found, Doubt):
        return {name: to_json(getattr(found, name)) for name in ("code", "arm", "stated", "seen", "text")}
    if dataclasses.is_dataclass(found) and not isinstance(found, type):
        return {one.name: to_json(getattr(found, one.name)) for one in dataclasses.fields(found)}
    if isinstance(found, Mapping):
        return {str(key): to_json(one) for key, one in found.items()}
    if isinstance(found, list | tuple):
        return [to_json(one) for one in found]
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return found
