"""Every kind of event: its fields, its key, and the one check that decides whether it may come next.

The writer (`Journal.commit`) and `verify` run the same two lines, `event.check(state); state.apply(event)`:
what can be written is what verifies. A kind of event has one form, with all of its fields, always.
"""

from __future__ import annotations

import functools
import json
import math
import types
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from surepick.core.given.arms import NewArm, filled_in
from surepick.core.given.numbers import MOST_SCALES, furthest_values, outside
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import check_gaussian
from surepick.core.problem import Problem
from surepick.core.run import MOST_MEASUREMENTS
from surepick.errors import ParameterError, SessionError, SurepickError
from surepick.sessions import codec
from surepick.sessions.setup import MOST_BUDGET
from surepick.sessions.streams import Place
from surepick.simulation.outcome import State

if TYPE_CHECKING:
    from surepick.sessions.state import SessionState

AHEAD = 64  # places that may be recorded before the policy asks for them
MOST_PLACES = 10**18  # ids of requests have at most 18 digits on either side
SUCCESSOR = "begin a new session with these values as prior data, `surepick new --prior NAME`"


def require(holds: bool, words: str, field: str = "", *, error: type[SurepickError] = SessionError) -> None:
    """Refuse the event unless this holds; `field` is the part to blame."""
    if not holds:
        raise error(words, field=field or None)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a session. `kind` is its name in the log."""

    kind: ClassVar[str] = ""
    key_form: ClassVar[str | None] = None  # of its key, in terms of its fields

    def log_key(self) -> str | None:
        """Return a text that no other event of the log has, or None."""
        return None if self.key_form is None else self.key_form.format(self)

    def check(self, state: SessionState) -> None:
        """Refuse the event if it may not come next; a session and `verify` both call this."""

    def encode(self) -> str:
        """Return the JSON text of the event: its checksum covers it."""
        return codec.dumps({name: getattr(self, name) for name in _shape(self.kind)})

    @classmethod
    def decode(cls, body: str) -> Self:
        """Return the event with this text, which a session wrote."""
        return cls(**json.loads(body))


class AtPlace:
    """An event about one place in the stream of a probe."""

    __slots__ = ()
    probe: int
    index: int

    @property
    def place(self) -> Place:
        """The place in the stream of its probe."""
        return Place(self.probe, self.index)


@dataclass(frozen=True, slots=True)
class Created(Event):
    """The problem, the policy and the settings that a session begins with."""

    body: dict[str, Any]
    kind: ClassVar[str] = "created"

    def encode(self) -> str:
        return codec.dumps(self.body)

    @classmethod
    def decode(cls, body: str) -> Self:
        return cls(json.loads(body))


@dataclass(frozen=True, slots=True)
class Decision(Event):
    """A decision of the policy on complete batches; decisions are numbered 1, 2, ..."""

    number: int
    key_form: ClassVar[str] = "decision:{0.number}"

    def check(self, state: SessionState) -> None:
        require(not state.is_over, "the session had ended, so nothing was left to decide", "kind")
        require(state.is_due, "the open batch is not complete", "kind")
        require(self.number == state.n_decisions + 1, f"it is decision {state.n_decisions + 1}", "number")
        state.check_decision(self)


@dataclass(frozen=True, slots=True)
class Asked(Decision):
    """The next batch, recorded before it is measured.

    counts:   [probe, uses] of each probe that is used
    plays:    the arms of plan probes that are asked for the first time; they are numbered from here on
    decision: what fixes the bets of a policy that follows recorded decisions
    """

    counts: list[Any]
    plays: list[Any]
    decision: dict[str, Any] | None
    kind: ClassVar[str] = "asked"


@dataclass(frozen=True, slots=True)
class Stopped(Decision):
    """The answer, or None where the budget or the final batch is spent.

    value_sum and wealth are two numbers that every value moves, of a policy that follows recorded decisions.
    """

    status: str
    plan: Any
    value_sum: float | None
    wealth: float | None
    kind: ClassVar[str] = "stopped"


@dataclass(frozen=True, slots=True)
class Measured(AtPlace, Event):
    """A measurement: one use of a probe.

    number:  1, 2, ... in the order of recording
    index:   its place in the stream of the probe
    values:  one for each reading of the probe; None is a lost reading, and then the use does not count
    request: the id of the request that it was made for: its own place; another place if that had a value
             already (this one is late); "" for an extra measurement
    key:     the caller's key, by which a value is recorded once
    """

    number: int
    probe: int
    index: int
    values: list[float | None]
    worker: str
    request: str
    key: str
    note: str
    kind: ClassVar[str] = "measured"
    key_form: ClassVar[str] = "measured:{0.probe}.{0.index}"

    @property
    def is_lost(self) -> bool:
        """Whether a reading was lost, so that the use does not count."""
        return None in self.values

    @property
    def is_extra(self) -> bool:
        """Whether it answers no open request: an extra or a late value."""
        return self.request != f"{self.probe}.{self.index}"

    def check(self, state: SessionState) -> None:
        problem = state.setup.problem
        require(self.number == state.n_recorded + 1, f"it is value {state.n_recorded + 1}", "number")
        require(0 <= self.probe < len(state.streams.of), f"there is no probe {self.probe}", "probe")
        require(0 <= self.index < MOST_PLACES, f"there is no place {self.index}", "index")
        stream = state.streams.of[self.probe]
        own = f"{self.probe}.{self.index}"
        require(not stream.is_recorded(self.index), f"request {own} was answered already", "request")
        require(self.key == "" or self.key not in state.keys, f"{self.key!r} is recorded already", "key")
        if self.request != own:
            require(not self.is_lost, "an extra measurement has all its values", "values")
            at = stream.appended_at
            require(self.index == at, f"an extra value is appended to its stream, at place {at}", "index")
            if self.request:  # late: made for a place that has another value, and the worker's first for it
                late_for = place_of(self.request, state)
                is_known = str(late_for) == self.request and late_for.probe == self.probe
                require(is_known, "it is late for no request of its probe", "request")
                is_recorded = stream.is_recorded(late_for.index)
                require(is_recorded, f"request {late_for} is not answered, so it is not late", "request")
                again = (self.request, self.worker) in state.late
                require(not again, "a late value of this request and worker is recorded", "worker")
        else:
            require(self.index < stream.end + AHEAD, f"request {own} was never made", "request")
        readings = problem.readings_of(self.probe)
        require(len(self.values) == len(readings), f"one use has {len(readings)} readings", "value")
        for reading, value in zip(readings, self.values, strict=True):
            if value is not None:
                check_value(problem, reading, value)


@dataclass(frozen=True, slots=True)
class Removed(AtPlace, Event):
    """A value recorded by mistake: its place is empty from now on, and its batch is settled without it."""

    probe: int
    index: int
    reason: str
    kind: ClassVar[str] = "removed"
    key_form: ClassVar[str] = "removed:{0.probe}.{0.index}"

    def check(self, state: SessionState) -> None:
        has_reason = bool(self.reason.strip())
        why = "say why the value is removed: the log keeps the reason"
        require(has_reason, why, "reason", error=ParameterError)
        known = 0 <= self.probe < len(state.streams.of)
        require(known, f"there is no request {self.place}", "number")
        require(self.place not in state.streams.removed, "this value was removed before", "number")
        stream = state.streams.of[self.probe]
        require(stream.has_value(self.index), f"no value is recorded at {self.place}", "number")
        require(
            state.final is None,
            f"after the final batch no value can be removed: it would be tested twice; {SUCCESSOR}",
            "number",
        )
        is_used = self.index < stream.cursor
        require(
            not is_used or state.run.follows,
            f"{state.setup.policy.name} has used this value and cannot go on without it; {SUCCESSOR}",
            "number",
        )


@dataclass(frozen=True, slots=True)
class Released(AtPlace, Event):
    """A request that its worker gave back; whether one is must have nothing to do with its value."""

    probe: int
    index: int
    worker: str
    reason: str
    kind: ClassVar[str] = "released"

    def check(self, state: SessionState) -> None:
        place = place_of(str(self.place), state)
        stream = state.streams.of[place.probe]
        require(not stream.is_recorded(place.index), f"request {place} was answered already", "request")
        require(place.index < stream.end + AHEAD, f"request {place} was never made", "request")


@dataclass(frozen=True, slots=True)
class Extended(Event):
    """Delta and budget from now on. The same process continues; nothing starts again."""

    number: int
    delta: float
    budget: int | None
    n_ahead: int  # values that waited for a later batch
    kind: ClassVar[str] = "extended"
    key_form: ClassVar[str] = "extended:{0.number}"

    def check(self, state: SessionState) -> None:
        setup = state.setup
        delta, budget = setup.policy.delta, setup.budget
        require(self.number == len(state.extensions) + 1, "extensions are numbered 1, 2, ...", "number")
        require(self.n_ahead == state.streams.n_ahead, "it has another number of values ahead", "n_ahead")
        demand = functools.partial(require, error=ParameterError)
        is_smaller = 0 < self.delta <= delta or repr(self.delta) == repr(delta)
        demand(is_smaller, f"delta is {delta:g} and can only become smaller, got {self.delta!r}", "delta")
        grows = self.budget is not None and max(budget or 0, 1) <= self.budget <= MOST_BUDGET
        may_be = grows or self.budget == budget
        demand(may_be, f"the budget is {budget} and can only grow, got {self.budget!r}", "budget")
        is_other = (self.delta, self.budget) != (delta, budget)
        demand(is_other, "extend needs a smaller delta or a larger budget", "delta")
        field = "budget" if self.budget != budget else "delta"
        demand(state.final is None, f"the final batch ended what this session can prove; {SUCCESSOR}", field)
        can_lower = self.delta == delta or state.run.follows
        demand(can_lower, f"{setup.policy.name} fixes delta before measuring; {SUCCESSOR}", "delta")


@dataclass(frozen=True, slots=True)
class PlanAdded(Event):
    """A plan that joins when the open batch is settled, with the arms that are new with it.

    amounts: [arm, amount] where the plan uses an arm, in the order of the arms
    """

    name: str
    amounts: list[Any]
    new_arms: list[Any]
    n_ahead: int
    kind: ClassVar[str] = "plan-added"
    key_form: ClassVar[str] = "plan:{0.name}"

    def check(self, state: SessionState) -> None:
        problem, arms = growing(state), list[int]()
        require(self.n_ahead == state.streams.n_ahead, "it has another number of values ahead", "n_ahead")
        kinds = {"name": str, "cost": float, "noise": float, "low": float, "high": float}
        for arm in self.new_arms:
            is_arm = type(arm) is dict and "name" in arm
            is_arm = is_arm and all(type(value) is kinds.get(name) for name, value in arm.items())
            require(is_arm, f"{arm!r:.60} is not a new arm as surepick writes it", "new_arms")
            written = [one.to_json() for one in filled_in(problem, [NewArm(**arm)])]
            require(codec.dumps(written) == codec.dumps([arm]), "a new arm has all its settings", "new_arms")
        n_arms = problem.n_arms + len(self.new_arms)
        for pair in self.amounts:
            is_pair = type(pair) is list and [type(part) for part in pair] == [int, float]
            holds = is_pair and 0 <= pair[0] < n_arms and math.isfinite(pair[1]) and pair[1] != 0
            require(holds, f"{pair!r:.60} is not [arm, amount]", "amounts")
            arms.append(pair[0])
        require(sorted(set(arms)) == arms, "amounts are in the order of the arms", "amounts")
        state.setup.with_plan(self.name, self.amounts, self.new_arms)  # refuses a name that is taken


@dataclass(frozen=True, slots=True)
class FinalBatch(Event):
    """The next n measurements are the last; what leads then is tested."""

    n: int
    gaussian: bool
    n_ahead: int
    kind: ClassVar[str] = "final-batch"
    key_form: ClassVar[str] = "final-batch"

    def check(self, state: SessionState) -> None:
        require(not state.is_over, f"this session has ended ({state.status}): it has no final batch", "n")
        require(state.final is None, "the final batch was called already", "n")
        require(self.n_ahead == state.streams.n_ahead, "it has another number of values ahead", "n_ahead")
        state.run.check_final_batch()
        check_gaussian(state.setup.problem, gaussian=self.gaussian)
        left, n_missing = state.budget_left, state.streams.n_missing
        if not (n_missing < self.n <= MOST_MEASUREMENTS and (left is None or self.n <= left)):
            most = f"{MOST_MEASUREMENTS:,}" if left is None else f"the {left} that the budget leaves"
            raise ParameterError(
                f"a final batch takes more than the {n_missing} that the open batch waits for and at most "
                f"{most}, got {self.n}",
                field="n",
            )


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """The end by hand."""

    number: int
    reason: str
    kind: ClassVar[str] = "closed"
    key_form: ClassVar[str] = "closed:{0.number}"

    def check(self, state: SessionState) -> None:
        require(not state.is_over, "the session had ended already", "kind")
        require(not state.is_due, "the open batch is complete, so the policy decides first", "kind")
        require(self.number == state.n_closed + 1, f"it is close {state.n_closed + 1}", "number")


@dataclass(frozen=True, slots=True)
class Renamed(Event):
    """A new title of the session."""

    number: int
    title: str
    kind: ClassVar[str] = "renamed"
    key_form: ClassVar[str] = "title:{0.number}"

    def check(self, state: SessionState) -> None:
        require(self.number == state.n_titles + 1, f"it is title {state.n_titles + 1}", "number")


EVENTS: dict[str, type[Event]] = {
    event.kind: event
    for event in (
        *(Created, Asked, Stopped, Measured, Removed, Released),
        *(Extended, PlanAdded, FinalBatch, Closed, Renamed),
    )
}


def recorded_key(place: object) -> str:
    """Return the key of the event that records the value of this place."""
    return f"measured:{place}"


def place_of(text: object, state: SessionState) -> Place:
    """Return the place with this id; refused if this session has none such."""
    try:
        place = Place.parse(text)
    except ValueError:
        place = None
    if place is None or place.probe >= len(state.streams.of):
        raise SessionError(
            f"{text!r:.60} is no request of this session; `ask` gives requests", field="request"
        )
    return place


def check_value(problem: AnyProblem, reading: int, value: float) -> None:
    """Refuse a number that cannot be a measurement of this reading."""
    if not math.isfinite(value):
        raise SessionError(
            f"the value of {problem.reading_in_words(reading)} must be finite, got {value}; repeat the "
            "measurement, or record it as lost",
            field="value",
        )
    if problem.bounds is not None and outside(problem.bounds, reading, value):
        low, high = problem.bounds[reading].tolist()
        raise SessionError(
            f"the value of {problem.reading_in_words(reading)} must lie within {low:g} to {high:g}, got "
            f"{value:g}; if it is right, {SUCCESSOR} with wider bounds",
            field="value",
        )
    furthest = float(furthest_values(problem.noise_scale, problem.n_readings)[reading])
    if abs(value) > furthest:
        scales = f" ({MOST_SCALES:g} times the noise)" if problem.noise_scale is not None else ""
        raise SessionError(
            f"the value of {problem.reading_in_words(reading)} must lie within {furthest:g} of zero{scales}, "
            f"got {value:g}; check its unit, or subtract a constant from all values",
            field="value",
        )


def growing(state: SessionState) -> Problem:
    """Return the problem of a session that takes a plan now; refused if it does not."""
    problem = state.setup.problem
    if not isinstance(problem, Problem) or problem.probes is not None:
        what = "has no list of plans" if not isinstance(problem, Problem) else "measures probes"
        raise ParameterError(f"plans are added to a list measured by arms; this one {what}", field="plan")
    if not state.run.can_grow:
        raise ParameterError(f"{state.setup.policy.name} takes no plans here; {SUCCESSOR}", field="plan")
    require(state.final is None, f"after the final batch no plan is added; {SUCCESSOR}", "plan")
    ended = state.status not in (None, State.CONFIDENT, State.DONE)
    require(not ended, f"this session has ended ({state.status}); extend it first", "plan")
    return problem


# Text


def decode(kind: str, body: str) -> Event:
    """Return the event of this kind with this text, which a session wrote."""
    if kind not in EVENTS:
        raise SessionError(
            f"the log has an event of kind {kind!r}, which this surepick does not know; upgrade surepick",
            field="kind",
        )
    return EVENTS[kind].decode(body)


def decode_strictly(kind: str, body: str) -> Event:
    """Return the event; refused unless the text has exactly the fields, types and spelling of `encode`."""
    require(kind in EVENTS, f"no event is of kind {kind!r}", "kind")
    try:
        found = json.loads(body)
        spelled = codec.dumps(found) == body
    except (ValueError, TypeError, RecursionError) as error:
        raise SessionError(f"its body is not JSON that surepick writes: {error}", field="body") from None
    require(isinstance(found, dict) and spelled, "its body is not spelled as surepick writes it", "body")
    if kind == "created":
        return Created(found)
    shape = _shape(kind)
    require(found.keys() == shape.keys(), f"it has the fields {', '.join(sorted(shape))}", "body")
    for name, hint in shape.items():
        _check_type(found[name], hint, name)
    return EVENTS[kind](**found)


@functools.cache
def _shape(kind: str) -> dict[str, Any]:
    """Return the types of the fields of this kind of event."""
    hints = get_type_hints(EVENTS[kind])
    return {field.name: hints[field.name] for field in fields(EVENTS[kind])}


def _check_type(found: Any, hint: Any, name: str) -> None:
    """Refuse a JSON value that is not exactly of this type: no int for a float, no bool for an int."""
    if hint is Any:
        return
    if get_origin(hint) in (Union, types.UnionType):
        if found is None:
            return
        (hint,) = (one for one in get_args(hint) if one is not types.NoneType)
    if get_origin(hint) is list:
        require(type(found) is list, f"{name} is a list", name)
        for item in found:
            _check_type(item, get_args(hint)[0], name)
        return
    kind = get_origin(hint) or hint
    require(type(found) is kind, f"{name} is of type {kind.__name__}, not {found!r:.40}", name)
