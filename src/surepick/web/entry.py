"""The form for a measurement: what can be chosen, what is chosen, and what became of the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from surepick.core.probes import VALUE
from surepick.errors import SurepickError
from surepick.sessions.requests import Measurement, Token
from surepick.sessions.session import Session
from surepick.views.text import duration, number
from surepick.views.work import Work

MOST_SHOWN = 5  # values of one measurement, in words


@dataclass(frozen=True)
class EntryForm:
    """What was entered, what was wrong with it, and what became of the one before.

    `token` is what is chosen, `arm` the name that it had then, `about` the token that `done` tells of.
    """

    who: str = ""
    token: str = ""
    arm: str = ""
    value: str = ""
    errors: tuple[tuple[str, str], ...] = ()  # by field
    done: str = ""
    about: str = ""
    sure: bool = False  # that a value which surprises is what was measured
    readings: Mapping[str, str] = field(default_factory=dict)  # by field, of probes with several


@dataclass(frozen=True)
class Choice:
    """A line of the list of what can be measured; it sends the name of the arm with the token."""

    value: str  # the token, a space, and the arm's name
    text: str
    is_chosen: bool
    probe: int = -1


@dataclass(frozen=True)
class Field:
    """A reading to be entered: its name, the name of its field, and what was entered before."""

    name: str
    field: str
    entered: str


@dataclass(frozen=True)
class Readings:
    """The fields of a probe with several readings."""

    probe: int
    name: str
    fields: tuple[Field, ...]


def field_of(probe: int, reading: int) -> str:
    """The name of the field of a reading.

    >>> field_of(2, 0)
    'reading-2-0'
    """
    return f"reading-{probe}-{reading}"


def readings(opened: Session, choices: list[Choice], form: EntryForm) -> list[Readings]:
    """What to enter for each probe with several readings that can be chosen; without any, one value is."""
    chosen = dict.fromkeys(choice.probe for choice in choices)
    return [
        Readings(
            probe,
            opened.probe_names[probe],
            tuple(
                Field(name, field_of(probe, k), form.readings.get(field_of(probe, k), ""))
                for k, name in enumerate(opened.reads(probe))
            ),
        )
        for probe in chosen
        if probe >= 0 and len(opened.reads(probe)) > 1
    ]


def split_choice(value: str) -> tuple[str, str]:
    """The token and the name of the arm in what a form sends; the name may be missing.

    >>> split_choice("0.1 ring road"), split_choice("0.1")
    (('0.1', 'ring road'), ('0.1', ''))
    """
    token, _, arm = value.partition(" ")
    return token, arm.replace("\r\n", "\n")  # browsers write line ends so


def choices(opened: Session, work: Work, form: EntryForm) -> list[Choice]:
    """What can be measured now; what was chosen before stays in the list, and chosen."""
    names = opened.probe_names
    holders = {
        one.token: one.worker for one in work.tokens if one.expires_in is not None and one.expires_in > 0
    }
    tokens = {one.token: one.name for one in work.tokens}
    if form.token and form.token not in tokens:
        tokens = {form.token: form.arm or _name(form.token, names), **tokens}
    chosen = form.token or _usual(tokens, holders, form.who)
    return [
        Choice(
            f"{token} {name}", f"{name} ({_remark(token, holders)})", token == chosen, _probe(token, names)
        )
        for token, name in tokens.items()
    ]


def _usual(tokens: dict[str, str], holders: dict[str, str | None], who: str) -> str:
    """What to begin with: what this person has taken, or else what nobody has."""
    mine = [token for token in tokens if who and holders.get(token) == who]
    free = [token for token in tokens if token not in holders]
    return next(iter([*mine, *free, *tokens]), "")


def _remark(token: str, holders: dict[str, str | None]) -> str:
    return f"{token}, {holders[token] or 'taken'}" if token in holders else token


def _probe(token: str, names: tuple[str, ...]) -> int:
    try:
        probe = Token.parse(token).probe
    except ValueError:
        return -1
    return probe if probe < len(names) else -1


def _name(token: str, names: tuple[str, ...]) -> str:
    try:
        return names[Token.parse(token).probe]
    except (ValueError, IndexError):
        return ""


def what_became(opened: Session, form: EntryForm) -> str:
    """What to say about the token that was told or taken a moment ago."""
    try:
        told = opened.told(form.about) if form.done else []
    except SurepickError:  # an address that somebody made up
        return ""
    if form.done == "taken":
        return _taken(opened, form.about)
    if not told:
        return ""
    first, what = told[0], _in_words(told, opened.given_problem.about.unit)
    match form.done:
        case "recorded":
            return f"Recorded: {what}. Thank you."
        case "partial":
            missing = ", ".join(opened.readings_wanted(form.about))
            return f"Recorded: {what}. Still to come: {missing or 'nothing'}."
        case "repeated":
            return f"{what} was recorded before; nothing changed."
        case "extra":
            who = first.worker or "Somebody else"
            return f"{who} was first: {what}. Your value is in the log, too."
    return ""


def told_meanwhile(opened: Session, token: str) -> str:
    """What to tell somebody who has chosen this token, if it has its value; empty if it has none."""
    told = opened.told(token)
    if not told:
        return "It came together with others." if opened.is_told(token) else ""
    what = _in_words(told, opened.given_problem.about.unit)
    return f"{told[0].worker or 'Somebody else'} has recorded it meanwhile: {what}."


def _taken(opened: Session, token: str) -> str:
    lease = next((one for one in opened.leases() if one.token == token), None)
    if lease is None:
        return ""
    name = _name(token, opened.probe_names)
    left = duration(lease.expires - opened.now())
    return f"{name} ({token}) is yours for {left}; nobody else is asked for it until then."


def _in_words(told: list[Measurement], unit: str) -> str:
    """What was measured: ferry = 8.1 min (0.0)."""
    first = told[0]
    shown = ", ".join(
        number(one.value, 12) if one.reading == VALUE else f"{one.reading} {number(one.value, 12)}"
        for one in told[:MOST_SHOWN]
    )
    more = f" and {len(told) - MOST_SHOWN} more" if len(told) > MOST_SHOWN else ""
    of_unit = f" {unit}" if unit else ""
    return f"{first.arm_name} = {shown}{more}{of_unit} ({first.token})"
