"""Turn what people and programs ask of a session into events.

Each function looks at the state at the end of the log and returns a `Change`; what may not be is refused by
the events' own check. Nothing here writes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np

from surepick.core.given.arms import GivenArms, filled_in
from surepick.core.given.numbers import Numbers
from surepick.core.given.plans import amounts_in
from surepick.core.oracle_problem import AnyProblem
from surepick.core.prior_data import PriorData
from surepick.core.problem import Problem
from surepick.core.wording import how_many, shortened
from surepick.errors import ParameterError, SessionError, suggestion
from surepick.sessions.events import (
    AHEAD,
    Closed,
    Extended,
    FinalBatch,
    Measured,
    PlanAdded,
    Released,
    Removed,
    check_value,
    decode,
    growing,
    place_of,
    recorded_key,
)
from surepick.sessions.journal import Change, Journal, leased
from surepick.sessions.leases import Request, is_dead
from surepick.sessions.setup import whole
from surepick.sessions.state import SessionState
from surepick.sessions.streams import Place
from surepick.tables import count_in, numeral

FAR = 6.0  # noise scales from the mean of an arm: once in 30 million measurements, if the scale is right
ENOUGH = 4  # values of an arm from which unknown noise is estimated to ask about the next one,
ROUGHLY = 2.0  # times their scatter,
LEAST_SCATTER = 0.01  # and at least this part of their mean
MOST_DOUBTED = 5  # surprising values that are named together
# The result of one measurement: a number, or its readings by name or in their order.
Use: TypeAlias = float | Sequence[float | None] | Mapping[str, float | None] | None


@dataclass(frozen=True)
class Receipt:
    """The fate of a value: its number, and "recorded", "repeated" or "extra".

    Numbers count values in the order of recording, from 1; `remove` finds a value by it. "repeated" says that
    it was recorded before and nothing changed; "extra" that it answers no open request, so it waits for a
    batch that needs it. For several values recorded together it is that of the last one.
    """

    number: int
    result: str

    def __str__(self) -> str:
        return self.result


@dataclass(frozen=True)
class Given:
    """Values of one probe that a worker records; `place` is that of the request, where they answer one."""

    probe: int
    place: Place | None
    uses: list[list[float | None]]  # of the probe, each with a number for every reading
    worker: str
    key: str


def measured(
    journal: Journal, what: object, value: object, *, worker: str, key: str, note: str, sure: bool
) -> Change:
    """Return the events of these values at the end of the log, and their receipt; see `Session.tell`."""
    state = journal.state
    probe, place = _probe_and_place(state, what)
    uses = readings_of(state.setup.problem, probe, value)
    given = Given(probe, place, uses, worker, key)
    if key and (kept := _place_of_key(journal, key)) is not None:
        return Change([], result=_repeated(journal, kept, given))
    late = ""  # the request, if another worker has answered it
    if place is not None and state.streams.of[probe].is_recorded(place.index):
        if (known := _known(journal, place, given)) is not None:
            return Change([], result=known)
        late = str(place)
    if not sure:
        for use in uses:
            if words := surprise(state, probe, use):
                raise SessionError(
                    f"{words}; not recorded. If it is right, record it again as sure", field="sure"
                )
    places = [] if late else _open_places(journal, given)
    n_open = len(places)
    if n_open < len(uses):  # extra values are appended to the stream
        end = max(state.streams.of[probe].appended_at, max(places, default=-1) + 1)
        places += range(end, end + len(uses) - n_open)
    events = list[Measured]()
    for at, (index, values) in enumerate(zip(places, uses, strict=True)):
        request = f"{probe}.{index}" if at < n_open else ""
        number = state.n_recorded + at + 1
        if at == 0:
            events.append(Measured(number, probe, index, values, worker, request or late, key, note))
        else:
            nth_key = f"{key}, {at}" if key else ""
            events.append(Measured(number, probe, index, values, worker, request, nth_key, ""))
    return Change(events, Receipt(events[-1].number, "extra" if n_open < len(uses) else "recorded"))


def _probe_and_place(state: SessionState, what: Any) -> tuple[int, Place | None]:
    """Return the probe that was measured, and the place of the request if one is answered.

    The name of an arm is that arm, also where it looks like the id of a request.
    """
    if isinstance(what, Request):
        what = what.token
    elif not isinstance(what, Place):
        names = state.setup.problem.probe_names
        if isinstance(what, str) and what in names:
            return names.index(what), None
        if what in range(len(names)):
            return int(what), None
        if not isinstance(what, str):
            raise SessionError(f"expected an arm or a request, got {what!r:.60}", field="request")
    place = place_of(str(what), state)
    return place.probe, place


def _open_places(journal: Journal, given: Given) -> list[int]:
    """Return the open requests of this probe that the values answer: at most one for each value.

    First the request that is answered; then the worker's own ones, and those of the open batch from the
    oldest on. Only a value recorded by arm answers what another worker was asked for.
    """
    places = dict[int, None]()  # which keeps their order
    if given.place is not None:
        places[given.place.index] = None
    if journal.state.is_over or len(places) == len(given.uses):
        return list(places)
    stream, now = journal.state.streams.of[given.probe], journal.clock()
    own, others = set[int](), set[int]()
    for (probe, index), lease in leased(journal.log.leases()).items():
        is_open = probe == given.probe and index < stream.end + AHEAD and not stream.is_recorded(index)
        if is_open and lease.expires > now:
            (own if lease.worker == given.worker else others).add(index)
    rest = stream.missing()
    if given.place is not None:
        begin = given.place.index
        rest = (index for index in rest if index > begin and index not in others)
    for index in itertools.chain(sorted(own), rest):  # which may be long
        if len(places) == len(given.uses):
            break
        places[index] = None
    return list(places)


def _known(journal: Journal, place: Place, given: Given) -> Receipt | None:
    """Return the receipt of a value that this worker told for this request before.

    None if it is the worker's first one, and late: another value is recorded at the place. It is kept as an
    extra measurement whatever it is; keeping it only if it differs would select by value.
    """
    kept = measured_at(journal, place)
    if kept.worker != given.worker or kept.is_extra:
        if (before := journal.state.late.get((str(place), given.worker))) is not None:
            return _repeated(journal, before, given)
        return Receipt(kept.number, "repeated") if None in given.uses[0] else None  # nothing is lost
    if place in journal.state.streams.removed:
        raise SessionError(
            f"the value of request {place} was removed, and its place stays empty; ask again", field="request"
        )
    if kept.values == given.uses[0]:
        return Receipt(kept.number, "repeated")
    raise SessionError(
        f"request {place} has the value {_shown(kept.values)}, got {_shown(given.uses[0])}; remove value "
        f"{kept.number} first if it was a mistake",
        field="value",
    )


def surprise(state: SessionState, probe: int, use: Sequence[float | None]) -> str:
    """Return why these readings of one use are implausible beside those that are recorded, or "".

    It only asks. A right value is recorded however odd it is: leaving one out for its size would break the
    guarantee of every policy.
    """
    readings = state.setup.problem.readings_of(probe)
    for k, (reading, value) in enumerate(zip(readings, use, strict=True)):
        if value is not None:
            words = _out_of_range(state, reading, value) or _far_from_others(state, probe, k, value)
            if words:
                return words
    return ""


def _out_of_range(state: SessionState, reading: int, value: float) -> str:
    """Return why this value lies outside the range that was stated as plausible for its arm; "" if not."""
    problem = state.setup.problem
    if problem.about.plausible is None or problem.probes is not None:
        return ""
    low, high = problem.about.plausible[reading]
    if low <= value <= high:
        return ""
    unit = f" {problem.about.unit}" if problem.about.unit else ""
    between = f"between {low:.4g} and {high:.4g}"
    if math.isinf(low):
        between = f"at most {high:.4g}"
    elif math.isinf(high):
        between = f"at least {low:.4g}"
    return f"{value:.6g}{unit} is not plausible for {problem.reading_names[reading]!r}: {between}{unit}"


def _far_from_others(state: SessionState, probe: int, k: int, value: float) -> str:
    """Return why this value of a probe's k-th reading is far from the earlier ones; "" if it is not."""
    problem = state.setup.problem
    reading = problem.readings_of(probe)[k]
    used, squares = state.run.statistics.evidence, state.run.statistics.noise[reading].squares
    n = int(used.each[reading])
    mean = float(used.sums[reading]) / max(n, 1)
    for one in state.streams.of[probe].pending.values():  # which wait for a batch (Welford's update)
        step, n = one[k] - mean, n + 1
        mean += step / n
        squares += step * (one[k] - mean)
    scale = math.inf
    if problem.knows_noise and problem.noise_scale is not None:
        if n >= 2:
            scale = float(problem.noise_scale[reading]) * math.sqrt(1 + 1 / n)
    elif n >= ENOUGH:  # unknown, and only roughly known by the values so far
        scale = ROUGHLY * max(math.sqrt(squares / (n - 1)), LEAST_SCATTER * abs(mean))
    distance = abs(value - mean)
    if scale == 0.0 or not distance > FAR * scale:  # of values that are all 0 nothing can be far
        return ""
    unit = f" {problem.about.unit}" if problem.about.unit else ""
    return (
        f"{value:.6g}{unit} is {distance:.3g} away from the mean of {how_many(n, 'measurement')} of "
        f"{problem.reading_names[reading]!r}, {mean:.4g}, which is {distance / scale:.0f} times what the "
        "noise explains"
    )


def _repeated(journal: Journal, place: Place, given: Given) -> Receipt:
    """Return the receipt of values that were recorded before; refused if they were others."""
    kept = measured_at(journal, place)
    if given.key and place in journal.state.streams.removed:
        raise SessionError(
            f"the value of {given.key!r} was removed, and its key stays taken; give this one another",
            field="key",
        )
    if (kept.probe, kept.values) != (given.probe, given.uses[0]):
        names = journal.state.setup.problem.probe_names
        raise SessionError(
            f"{given.key or str(given.place)!r} is another measurement, {names[kept.probe]!r} = "
            f"{_shown(kept.values)}, got {names[given.probe]!r} = {_shown(given.uses[0])}; the first one "
            "stays",
            field="key" if given.key else "value",
        )
    return Receipt(kept.number, "repeated")


def exported_key(journal: Journal, number: int) -> str:
    """Return the key that exports give to an extra measurement without one: `tell` knows it again."""
    return f"{journal.created.checksum[:12]}-{number}"


def _place_of_key(journal: Journal, key: str) -> Place | None:
    """Return the place of the value that is recorded under this key, or was exported with it."""
    number = count_in(key.rpartition("-")[2])
    if number is not None and key == exported_key(journal, number):
        return place_of_number(journal, number)
    return journal.state.keys.get(key)


def place_of_number(journal: Journal, number: int) -> Place:
    """Return where the value of this number is; its event is searched for in the log."""
    for found in journal.events():
        if found.kind == "measured" and f'"number":{number},' in found.body:
            event = decode(found.kind, found.body)
            if isinstance(event, Measured) and event.number == number:
                return place_of(str(event.place), journal.state)  # it may be of an arm not known here yet
    raise SessionError(f"session {journal.name!r} has no value {number}", field="number")


def doubts(state: SessionState, told: Iterable[tuple[int | str, Any]]) -> str:
    """Return why these values, each with its arm, would surprise; empty if none does.

    The readings of a probe are one value, a mapping by their names.
    """
    problem, found = state.problem, list[str]()
    for arm, value in told:
        probe = problem.probe(arm) if isinstance(arm, str) else arm
        reads = problem.reads(probe)
        by_name = value if isinstance(value, Mapping) else {reads[0]: value}
        why = surprise(state, probe, [by_name.get(name) for name in reads])
        if why:
            found.append(why)
    more = f"; and {len(found) - MOST_DOUBTED:,} more" if len(found) > MOST_DOUBTED else ""
    return "; ".join(found[:MOST_DOUBTED]) + more


def measured_at(journal: Journal, place: Place) -> Measured:
    """Return the event that records the value of this place."""
    row = journal.log.find(recorded_key(place))
    event = None if row is None else decode(row.kind, row.body)
    assert isinstance(event, Measured)  # what is recorded has its event
    return event


def _shown(values: Sequence[float | None]) -> str:
    return ", ".join("lost" if value is None else f"{value:g}" for value in values)


def readings_of(problem: AnyProblem, probe: int, value: Any) -> list[list[float | None]]:
    """Return the uses of a probe in `value`, one use or a list of them, as one number per reading.

    For a probe with several readings, give them by name or in their order, None for a lost one.
    """
    reads = problem.reads(probe)
    several = _is_list(value) and (
        len(reads) == 1 or any(isinstance(one, Mapping) or _is_list(one) for one in value)
    )
    uses = list(value) if several else [value]
    if not uses:
        raise SessionError("tell takes at least one value, got none", field="value")
    return [_use(problem, probe, one) for one in uses]


def _use(problem: AnyProblem, probe: int, given: Any) -> list[float | None]:
    reads, readings = problem.reads(probe), problem.readings_of(probe)
    if given is None:
        return [None] * len(reads)
    if len(reads) == 1 and not isinstance(given, Mapping):
        return [number(problem, readings[0], given)]
    if isinstance(given, Mapping):
        by_name = {str(name): one for name, one in given.items()}
    else:
        values = list(given) if _is_list(given) else [given]
        by_name = dict(zip(reads, values, strict=False)) if len(values) == len(reads) else {}
    if set(by_name) != set(reads):
        listed = shortened(", ".join(map(repr, reads)), 200, "...")
        raise SessionError(
            f"one use of {problem.probe_names[probe]!r} gives {len(reads)} readings, told together by name "
            f"or in this order: {listed}; None for a lost one",
            field="value",
        )
    return [
        None if by_name[name] is None else number(problem, reading, by_name[name])
        for name, reading in zip(reads, readings, strict=True)
    ]


def _is_list(value: object) -> bool:
    """Return whether these are several values in an order; bytes and mappings are neither one nor several."""
    one = isinstance(value, str | bytes | bytearray | memoryview | Mapping | Set)
    return isinstance(value, Iterable) and not one and getattr(value, "ndim", 1) > 0


def number(problem: AnyProblem, reading: int, value: object) -> float:
    """Return the value of this reading as a float; refuse what cannot be one."""
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            raise TypeError  # which float would read
        found = numeral(value) if isinstance(value, str) else float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        shown, what = shortened(repr(value), 60), problem.reading_in_words(reading)
        raise SessionError(f"the value of {what} must be a number, got {shown}", field="value") from None
    check_value(problem, reading, found)
    return found


def released(journal: Journal, token: str, worker: str, reason: str) -> Change:
    """Return the event that releases this request of a worker; refused if another worker has it."""
    place = place_of(token, journal.state)
    lease = leased(journal.log.leases()).get(place)
    is_held = lease is not None and lease.expires > journal.clock() and not is_dead(lease.worker)
    if lease is not None and is_held and lease.worker != worker:
        raise SessionError(
            f"request {place} is assigned to {lease.worker!r}, not to {worker!r}; to release it for them, "
            f"say so: worker={lease.worker!r}",
            field="worker",
        )
    is_recorded = journal.state.streams.of[place.probe].is_recorded(place.index)
    if is_recorded and measured_at(journal, place).is_extra:
        return Change([])  # an extra value took its place: nothing is asked for
    return Change([Released(*place, worker, reason)])


def removed(journal: Journal, text: str, reason: str) -> Change:
    """Return the event that removes the value of this number or request, and whether it was used."""
    number = count_in(text)
    place = place_of(text, journal.state) if number is None else place_of_number(journal, number)
    is_used = place.index < journal.state.streams.of[place.probe].cursor
    return Change([Removed(*place, reason)], is_used)


def extended(state: SessionState, delta: float | None, budget: int | None) -> Change:
    """Return the event that extends the session."""
    setup = state.setup
    new_delta, new_budget = setup.policy.delta, setup.budget
    if delta is not None:
        if setup.policy.delta >= 1:
            raise ParameterError(f"policy {setup.policy.name} has no delta", field="delta")
        try:
            new_delta = float(delta)
        except (TypeError, ValueError, OverflowError):
            raise ParameterError(f"delta is a number, got {delta!r:.60}", field="delta") from None
    if budget is not None:
        new_budget = whole("budget", "a number of measurements", budget, least=1)
    number = len(state.extensions) + 1
    return Change([Extended(number, new_delta, new_budget, state.streams.n_ahead)])


def final_batch(state: SessionState, n: int | None, *, gaussian: bool) -> Change:
    """Return the event of a final batch of n measurements, or of the rest of the budget."""
    if n is None and state.setup.budget is None and not state.is_over:
        raise ParameterError(
            "a final batch needs the number of measurements still to come: the session has no budget",
            field="n",
        )
    wanted = state.budget_left if n is None else whole("n", "a number of measurements", n, least=1)
    return Change([FinalBatch(wanted or 0, bool(gaussian), state.streams.n_ahead)])


def closed(state: SessionState, reason: str) -> Change:
    """Return the event that closes a session; none if it has ended, or its policy has yet to decide."""
    return Change([] if state.is_over or state.is_due else [Closed(state.n_closed + 1, str(reason))])


def plan_added(state: SessionState, name: str, plan: Numbers | str, given: GivenArms) -> Change:
    """Return the event that adds this plan, and the arms that are new."""
    problem, arms = growing(state), filled_in(growing(state), given)
    problem = problem.with_arms(arms)
    _refuse_unknown(name, plan, problem)
    row = problem.with_plan(name, plan).vector(problem.n_plans)
    for arm in arms:
        if not row[problem.arm(arm.name)]:
            raise ParameterError(
                f"the plan does not use the new arm {arm.name!r}; leave it out", field="arms"
            )
    amounts = [[int(s), float(row[s])] for s in np.flatnonzero(row)]
    return Change([PlanAdded(name, amounts, [arm.to_json() for arm in arms], state.streams.n_ahead)])


def _refuse_unknown(name: str, plan: Numbers | str, problem: Problem) -> None:
    """Refuse a plan with an arm that is neither known nor said to be new: it may be misspelt."""
    named = amounts_in(name, plan, problem.arm_names) if isinstance(plan, str) else plan
    if not isinstance(named, Mapping):
        return
    for arm in map(str, named):
        if arm not in problem.arm_names:
            raise ParameterError(
                f"the plan {name!r} uses {arm!r}, which is an unknown arm; if it is new, give it as a new "
                f"arm, too; {suggestion(arm, problem.arm_names)}",
                field="plan",
            )


def prior_of(
    state: SessionState, problem: AnyProblem, policy: Any, guess: PriorData | None = None
) -> PriorData | None:
    """Return the values of a session as prior data for another one about this problem.

    The guess is for arms of which the session has no value.
    """
    evidence, before = state.evidence, state.setup.problem
    if not (policy.takes_prior and problem.arms_alone):
        return None
    if not (before.arms_alone and evidence.counts.any()):
        return guess
    counts, means = np.zeros(problem.n_arms, dtype=np.int64), np.zeros(problem.n_arms)
    known = {name: arm for arm, name in enumerate(before.arm_names)}
    for arm, name in enumerate(problem.arm_names):
        if name in known:
            counts[arm], means[arm] = evidence.counts[known[name]], np.nan_to_num(evidence.means[known[name]])
    if not counts.any():
        return guess
    prior = PriorData.from_history(problem, counts, means)
    return prior if guess is None else prior.or_else(guess)


def next_name(name: str, taken: Iterable[str]) -> str:
    """Return a name for the successor of this session that no other has.

    >>> next_name("trips", ["trips"]), next_name("trips-2", ["trips", "trips-2", "trips-3"])
    ('trips-2', 'trips-4')
    """
    stem, _, number_ = name.rpartition("-")
    before = count_in(number_) if stem else None
    stem, first = (name, 2) if before is None else (stem, before + 1)
    known = set(taken)
    return next(new for n in itertools.count(first) if (new := f"{stem}-{n}") not in known)
