"""What is done to a session beside measuring: each a checked body and one call of the session.

Forms (`managing`) and JSON share these, so that both refuse the same things.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from surepick.core.new_arms import NewArm
from surepick.errors import ParameterError
from surepick.files.measurements import Row, checked_row, import_rows, probes_and_values
from surepick.sessions.session import Session
from surepick.store import Head
from surepick.web.api import LARGEST, MOST_VALUES, Body, Name, refuse_other_arm

LONGEST_NOTE = 2000  # letters
MOST_DOUBTED = 5  # named of the values that surprise

Answer = dict[str, Any]


def _of_few_letters(text: str) -> str:
    if len(text) > LONGEST_NOTE:
        raise ValueError(f"at most {LONGEST_NOTE:,} letters")
    return text.strip()


def _some(text: str) -> str:
    if not text:
        raise ValueError(f"1 to {LONGEST_NOTE:,} letters are needed")
    return text


Remark = Annotated[str, AfterValidator(_of_few_letters)]


class Note(Body):
    """What happened, for the log."""

    note: Annotated[Remark, AfterValidator(_some)]

    def done_to(self, session: Session) -> Answer:
        """Write it down."""
        session.note(self.note)
        return _state(session)


class Rename(Body):
    """Another title; the name stays."""

    title: Name

    def done_to(self, session: Session) -> Answer:
        """Write it down."""
        session.rename(self.title)
        return {"title": session.title, **_state(session)}


class Extend(Body):
    """A stricter promise or a larger budget to go on with."""

    delta: float | None = None
    epsilon: float | None = None
    budget: int | None = Field(None, ge=1, le=LARGEST)

    def done_to(self, session: Session) -> Answer:
        """Go on."""
        session.extend(delta=self.delta, epsilon=self.epsilon, budget=self.budget)
        return _state(session)


class Close(Body):
    """An end without a promise."""

    reason: Remark = ""

    def done_to(self, session: Session) -> Answer:
        """End it."""
        session.close(self.reason)
        return _state(session)


class Void(Body):
    """A value that was no measurement, and why; with an arm, a token of another arm is refused."""

    token: str
    reason: Remark
    arm: int | str | None = None

    def done_to(self, session: Session) -> Answer:
        """Take it back; whether the policy had seen it, so that it starts over."""
        if self.arm is not None:
            refuse_other_arm(session, self.token, self.arm)
        return {"seen": session._remove(self.token, self.reason), **_state(session)}


class Arm(Body):
    """An arm that there was not before; what is left out is as it is for the others."""

    name: Name
    noise: float | None = None
    cost: float | None = None
    low: float | None = None
    high: float | None = None

    def as_new(self) -> NewArm:
        """The same as sessions take it."""
        return NewArm(self.name, self.noise, self.cost, self.low, self.high)


class AddPlan(Body):
    """A plan that came up in the middle: a sum of arms, or amounts by their names."""

    name: Name
    plan: str | dict[str, float]
    new_arms: Annotated[list[Arm], Field(default_factory=list, max_length=MOST_VALUES)]

    def done_to(self, session: Session) -> Answer:
        """Add it."""
        session.add_plan(self.name, self.plan, new_arms=[arm.as_new() for arm in self.new_arms])
        return {"n_plans": session.problem.n_plans, **_state(session)}


class NewEpoch(Body):
    """What has changed of what is measured; the next epoch is a session of its own."""

    reason: Annotated[Remark, AfterValidator(_some)]
    name: Name = ""

    def done_to(self, session: Session) -> Answer:
        """End this one and begin the next, whose name is in the answer."""
        begun = session.successor(self.reason, name=self.name or None)
        return {"session": begun.name, **_state(begun)}


class Measured(Body):
    """One row of what is imported, as in a CSV file."""

    token: str = ""
    arm: str = ""
    value: float
    worker: Name = ""
    picked: bool = False
    key: Name = ""

    def as_row(self, number: int) -> Row:
        """The same as a row of a file."""
        row = {"token": self.token, "arm": self.arm, "value": repr(self.value)}
        more = {"worker": self.worker, "picked": "yes" if self.picked else "", "key": self.key}
        return checked_row(f"row {number}", {**row, **more})


class Import(Body):
    """Measurements, all of which are told or none."""

    rows: Annotated[list[Measured], Field(max_length=MOST_VALUES)]
    answers: bool = False
    picked: bool = False
    sure: bool = False
    worker: Name = ""

    def done_to(self, session: Session) -> Answer:
        """Tell them; how many became what."""
        rows = [row.as_row(number) for number, row in enumerate(self.rows, 1)]
        if not self.sure:
            refuse_doubtful(session, rows)
        told = import_rows(session, rows, answers=self.answers, picked=self.picked, worker=self.worker)
        return {"told": told, **_state(session)}


class Delete(Body):
    """The session's name once more, and where its log was seen to end."""

    name: str
    position: int = Field(ge=0, le=LARGEST)
    checksum: str

    def done_to(self, session: Session) -> Answer:
        """Delete it for good."""
        if self.name != session.name:
            raise ParameterError(f"to delete it, type its name: {session.name}", field="typed")
        session.delete(expected=Head(self.position, self.checksum))
        return {"deleted": self.name}


ACTIONS: dict[str, type[Note | Rename | Extend | Close | Void | AddPlan | NewEpoch | Import]] = {
    "note": Note,
    "rename": Rename,
    "extend": Extend,
    "close": Close,
    "void": Void,
    "add-plan": AddPlan,
    "new-epoch": NewEpoch,
    "import": Import,
}


def refuse_doubtful(session: Session, rows: Sequence[Row]) -> None:
    """Refuse rows with values that surprise, before any is told; whoever says that they are right goes on."""
    doubts = _doubts(session, rows)
    if doubts:
        more = f"; and {len(doubts) - MOST_DOUBTED:,} more" if len(doubts) > MOST_DOUBTED else ""
        raise ParameterError(
            f"{'; '.join(doubts[:MOST_DOUBTED])}{more}. Nothing was recorded yet: if that is what was "
            "measured, say that you are sure; a right value is never left out for its size",
            field="sure",
        )


def _doubts(session: Session, rows: Sequence[Row]) -> list[str]:
    told = probes_and_values(session, rows)
    return [found for arm, value in told if (found := session.doubt(arm, value)) is not None]


def _state(session: Session) -> Answer:
    return {"status": str(session.status)}
