"""`new`, `ask`, `tell` and their companions: real measurements, by hand or by a program."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.decisions import PilotSize, PolicyText, Pooled, pilot_of
from surepick.cli.session_files import (
    import_rows,
    read_certificate,
    read_rows,
    rescue_measurements,
    write_csv,
    write_json,
)
from surepick.core.wording import how_many
from surepick.errors import NameTakenError, SessionError, SurepickError

if TYPE_CHECKING:
    from surepick.sessions.session import Request, Session
    from surepick.store import Event, Store

DEFAULT_STORE = "sqlite:///surepick.db"
NOT_SURE, ENDED, ALL_HELD, INTERRUPTED = 1, 3, 4, 130  # exit codes; 0 is done and 2 is bad input

File = Annotated[Path, typer.Argument(help="A problem file, TOML or JSON.", show_default=False)]
StoreUrl = Annotated[
    str, typer.Option("--store", envvar="SUREPICK_STORE", help="sqlite:///file.db or postgresql://...")
]
Name = Annotated[
    str | None, typer.Option("--session", "-s", help="Which session; may be left out when there is one.")
]
Worker = Annotated[str, typer.Option(help="Who measures; workers that share a session need names.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Delta = Annotated[float, typer.Option(help="Allowed probability of a wrong answer.")]
DEFAULT_DELTA = 0.05
Epsilon = Annotated[float, typer.Option(help="A plan this much worse than the best is fine, too.")]
Budget = Annotated[int | None, typer.Option(help="Give up after this many measurements.")]
Seed = Annotated[int, typer.Option(help="Fixes the policy's own randomness.")]
Lease = Annotated[float, typer.Option(help="Seconds until a token that was not told is handed out again.")]


def register(app: typer.Typer) -> None:
    """Add these commands to the main application."""
    for command in COMMANDS:
        app.command(command.__name__.rstrip("_"), context_settings=_NEGATIVE)(command)


_NEGATIVE = {"ignore_unknown_options": True}  # so that -0.5 is a value, not an option


def new(
    file: File,
    name: Annotated[str | None, typer.Option(help="Its name; the file's unless given.")] = None,
    policy: PolicyText = None,
    delta: Delta = DEFAULT_DELTA,
    epsilon: Epsilon = 0.0,
    budget: Budget = None,
    seed: Seed = 0,
    lease: Lease = 3600.0,
    pilot: PilotSize = 12,
    one_scale: Pooled = False,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Begin a session: a problem, a policy and a store that keeps every measurement.

    Try: surepick new examples/routes.toml && surepick ask
    """
    session = _create(file, name, policy, delta, epsilon, budget, seed, lease, pilot, one_scale, store)
    data = {"session": session.name, "store": session.store.place, **_state(session)}
    _answer(data, as_json, lambda: _say(f"session {session.name!r} begun; next: surepick ask"))


def ask(
    n: Annotated[int, typer.Option("-n", help="How many measurements.")] = 1,
    worker: Worker = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Say what to measure next: a token and the name of the arm, one per line.

    Asking again gives the same tokens until something is told. Exit code 3: the session has ended; 4: other
    workers hold everything that can be measured now.
    """
    opened = _load(store, session)
    requests = opened.ask(n, worker=worker, wait=False)
    data = {"requests": [_request(request) for request in requests], **_state(opened)}
    _answer(data, as_json, lambda: _print_requests(requests, opened))
    if not requests:
        raise typer.Exit(ALL_HELD if opened.status is None else ENDED)


def tell(
    token: Annotated[str, typer.Argument(help="The token, or the name of an arm that is asked for.")],
    values: Annotated[list[float], typer.Argument(help="What was measured: one number or several.")],
    mean_of: Annotated[int | None, typer.Option(help="The number is the mean of so many.")] = None,
    unasked: Annotated[
        bool, typer.Option("--unasked", help="Nobody asked for it; counted if the policy's proof allows it.")
    ] = False,
    picked: Annotated[
        bool, typer.Option("--picked", help="Chosen after looking at values: kept and never counted.")
    ] = False,
    key: Annotated[
        str, typer.Option(help="Of an unasked one: a name of its own, under which it is kept only once.")
    ] = "",
    worker: Worker = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Record what was measured; it is on disk when the command ends. Try: surepick tell 0.0 12.5"""
    opened = _load(store, session)
    if key and not (unasked or picked):
        raise SessionError("--key is for unasked measurements; a token is a key already")
    if unasked or picked:
        for place, value in enumerate(values):
            opened.record(token, value, picked=picked, key=f"{key}, {place}" if key and place else key)
        counts = opened.counts_unasked and not picked
        text = f"kept; it {'counts once the open round is complete' if counts else 'decides nothing'}"
        _answer({"receipt": "unasked", "will_count": counts, **_state(opened)}, as_json, lambda: _say(text))
        return
    found = _token_of(opened, token)
    if mean_of is not None:
        if len(values) != 1:
            raise SessionError(f"--mean-of takes one number, the mean, got {len(values)}")
        receipt = opened.tell(found, mean=values[0], count=mean_of, worker=worker)
    else:
        receipt = opened.tell(found, values, worker=worker)
    _answer({"receipt": str(receipt), **_state(opened)}, as_json, lambda: _print_told(receipt, opened))


def withdraw(
    token: Annotated[str, typer.Argument(help="A token from `ask`.")],
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Give a token back unmeasured; it will be handed out again."""
    _load(store, session).withdraw(token, reason)
    _say(f"{token} will be handed out again")


def status(session: Name = None, store: StoreUrl = DEFAULT_STORE, as_json: Json = False) -> None:
    """Say where a session stands: the lead, its closest rival, what was measured; or its answer."""
    opened = _load(store, session, read_only=True)
    data = {**_state(opened), **({"certificate": opened.certificate().to_json()} if opened.status else {})}
    _answer(data, as_json, lambda: _print_status(opened))


def list_(store: StoreUrl = DEFAULT_STORE, as_json: Json = False) -> None:
    """List the sessions of a store."""
    place = _store(store)
    rows = [_summary(place, name) for name in place.names()]
    _answer(rows, as_json, lambda: _print_columns(("session", "status", "measurements", "answer"), rows))


def log(
    last: Annotated[int, typer.Option(help="Only so many of the last events; 0: all.")] = 20,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Show what happened, event by event."""
    place = _store(store)
    name = session or _only_name(place)
    skipped = max(0, place.head(name).position - last) if last else 0
    rows = [_event(event) for event in place.read(name) if event.position > skipped]
    _answer(rows, as_json, lambda: _print_columns(("position", "time", "kind", "body"), rows))


def export(
    to: Annotated[Path | None, typer.Option("-o", "--to", help="A file; the terminal unless given.")] = None,
    form: Annotated[str, typer.Option("--format", help="csv (measurements) or json (everything).")] = "csv",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Write all measurements as CSV, or the whole session as JSON."""
    opened = _load(store, session, read_only=True)
    if form not in ("csv", "json"):
        raise SessionError(f"--format is csv or json, got {form!r}")
    write = write_csv if form == "csv" else write_json
    if to is None:
        write(opened, sys.stdout)
        return
    with to.open("w", newline="", encoding="utf-8") as stream:
        write(opened, stream)


def import_(
    file: Annotated[Path, typer.Argument(help="CSV with the columns token,value or arm,value.")],
    answers: Annotated[
        bool, typer.Option("--answers", help="Rows without a token answer what is asked, in their order.")
    ] = False,
    picked: Annotated[
        bool, typer.Option("--picked", help="Unasked rows were chosen after looking at values.")
    ] = False,
    worker: Worker = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Tell measurements from a CSV file, for example one filled in by hand or written by `export`.

    Rows with a token answer it. Rows with an arm alone are measurements that nobody asked for, unless
    --answers says that they were made because surepick asked for them. Unasked ones are counted if the
    policy's proof allows it, and never with --picked; with a column `key` each is kept once, however often
    the file is imported.
    """
    opened = _load(store, session)
    counts = import_rows(opened, read_rows(file), answers=answers, picked=picked, worker=worker)
    text = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing to import"
    _answer({"imported": counts, **_state(opened)}, as_json, lambda: _say(text))


def extend(
    delta: Annotated[float | None, typer.Option(help="A smaller delta.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="A smaller epsilon.")] = None,
    budget: Budget = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Go on with a smaller delta or epsilon, or with more budget."""
    opened = _load(store, session)
    opened.extend(delta=delta, epsilon=epsilon, budget=budget)
    _answer(_state(opened), as_json, lambda: _print_status(opened))


def close(
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """End a session by hand; it stays readable, and `extend` lets it go on."""
    opened = _load(store, session)
    opened.close(reason)
    _say(f"session {opened.name!r} is {opened.status}")


def verify(
    certificate: Annotated[
        Path | None, typer.Argument(help="A certificate: the JSON of `status` or `export`.")
    ] = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Replay a session from its first event: do it, and a certificate, hold? Exit code 1: no."""
    from surepick.sessions.certificate import verify as check

    place = _store(store)
    verdict = check(place, session or _only_name(place), read_certificate(certificate))
    data = {"holds": verdict.holds, **vars(verdict)}
    _answer(data, as_json, lambda: _print_verdict(verdict))
    raise typer.Exit(0 if verdict.holds else NOT_SURE)


def doctor(
    rescue: Annotated[Path | None, typer.Option(help="Write all readable measurements to this CSV.")] = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Look for damage in a store and say what can still be read; it changes nothing. Exit code 1: damage."""
    from surepick.store.doctor import examine

    diagnosis = examine(store)
    logs = [
        {"session": log.name, "events": log.head.position, "proved": log.n_proved, "lost": log.n_lost}
        for log in diagnosis.logs
    ]
    data = {"well": diagnosis.is_well, "complaints": list(diagnosis.complaints), "sessions": logs}
    _answer(data, as_json, lambda: _print_diagnosis(diagnosis.place, data))
    if rescue is not None:
        n_rescued = rescue_measurements(diagnosis.logs, rescue)
        if not as_json:
            _say(f"{how_many(n_rescued, 'measurement')} written to {rescue}")
    raise typer.Exit(0 if diagnosis.is_well else NOT_SURE)


def run(
    file: File,
    measure: Annotated[str, typer.Option(help="A command; {arm} becomes the arm's name.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Measurements at the same time.")] = 1,
    timeout: Annotated[float | None, typer.Option(help="Seconds a measurement may take.")] = None,
    retries: Annotated[int, typer.Option(min=0, help="Further tries when a measurement fails.")] = 0,
    name: Annotated[str | None, typer.Option(help="The session's name; the file's unless given.")] = None,
    policy: PolicyText = None,
    delta: Delta = DEFAULT_DELTA,
    epsilon: Epsilon = 0.0,
    budget: Budget = None,
    seed: Seed = 0,
    lease: Lease = 3600.0,
    pilot: PilotSize = 12,
    one_scale: Pooled = False,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Call your program for each measurement until the answer is sure.

    The last number that it prints is the value. Interrupt it and start it again as you like: it goes on where
    it was. Several may share a session.

    Try: surepick run routes.toml --measure './drive.sh {arm}' --jobs 4
    """
    from surepick.cli.measuring import Command, ended_as_interrupted, measure_all

    command = Command(measure, timeout, retries)
    created = (file, name, policy, delta, epsilon, budget, seed, lease, pilot, one_scale, store)
    session = _continue(file, name, store) or _create_once(*created)
    _refuse_other_settings(session, policy, delta, epsilon, budget)
    try:
        with ended_as_interrupted():
            measure_all(session, command, jobs=jobs, show=_Progress(quiet=as_json))
    except KeyboardInterrupt:
        kept = how_many(session.ledger().n_told, "measurement is", "measurements are")
        print(f"surepick: interrupted; {kept} kept, and the same command goes on from there", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    outcome = session.outcome
    assert outcome is not None
    data = {**_state(session), "certificate": session.certificate().to_json()}
    _answer(data, as_json, lambda: _say(str(session.certificate())))
    raise typer.Exit(0 if outcome.plan is not None else NOT_SURE)


COMMANDS = (new, ask, tell, withdraw, status, list_, log, export, import_, extend, close, verify, doctor, run)


def _create(
    file: Path,
    name: str | None,
    policy: str | None,
    delta: float,
    epsilon: float,
    budget: int | None,
    seed: int,
    lease: float,
    pilot: int,
    one_scale: bool,
    store: str,
) -> Session:
    from surepick.policies import policy_for
    from surepick.problems.files.load import load
    from surepick.sessions.session import Session

    loaded = load(file)
    return Session.create(
        store,
        loaded.problem,
        policy_for(loaded.problem, policy, delta=delta, epsilon=epsilon),
        name=name or file.stem,
        seed=seed,
        budget=budget,
        lease=lease,
        pilot=pilot_of(loaded, pilot, one_scale),
    )


def _create_once(file: Path, name: str | None, *settings: Any) -> Session:
    """The new session; or the one that somebody else began under this name a moment ago."""
    try:
        return _create(file, name, *settings)
    except NameTakenError:
        session = _continue(file, name, settings[-1])
        if session is None:
            raise
        return session


def _refuse_other_settings(
    session: Session, policy: str | None, delta: float, epsilon: float, budget: int | None
) -> None:
    """Refuse settings that somebody gave and that a session which was begun before does not have."""
    from surepick.core.policy import epsilon_of
    from surepick.policies import describe, policy_for

    mine, wanted = session.policy, policy_for(session.problem, policy, delta=delta, epsilon=epsilon)
    other = {
        "--policy": policy is not None and describe(wanted) != describe(mine),
        "--delta": delta not in (DEFAULT_DELTA, mine.delta),
        "--epsilon": epsilon not in (0.0, epsilon_of(mine)),
        "--budget": budget not in (None, session.budget),
    }
    named = [option for option, differs in other.items() if differs]
    if named:
        limit = "no budget" if session.budget is None else f"budget {session.budget}"
        raise SessionError(
            f"session {session.name!r} was begun before with {describe(mine)}, delta {mine.delta:g}, epsilon "
            f"{epsilon_of(mine):g} and {limit}, and {named[0]} says otherwise; leave it out, "
            "change the session with `surepick extend`, or choose another --name"
        )


def _continue(file: Path, name: str | None, store: str) -> Session | None:
    """The session that an earlier call began, if it is about the same problem."""
    from surepick.problems.files.load import load
    from surepick.sessions import codec
    from surepick.sessions.session import Session
    from surepick.store import open_store

    place = open_store(store)
    name = name or file.stem
    if name not in place.names():
        return None
    session = Session.load(place, name)
    if codec.problem_to_json(load(file).problem) != codec.problem_to_json(session.given_problem):
        raise SessionError(
            f"session {name!r} in {place.place} is about another problem than {str(file)!r}; "
            "choose another --name or --store"
        )
    return session


def _load(store: str, name: str | None, *, read_only: bool = False) -> Session:
    """The session; one that is only looked at opens even where its plans need a Python function."""
    from surepick.sessions.session import Session

    return Session.load(_store(store), name, read_only=read_only)


def _store(url: str) -> Store:
    from surepick.store import open_store

    return open_store(url, create=False)


def _only_name(place: Store) -> str:
    from surepick.sessions.session import only_session

    return only_session(place)


def _token_of(session: Session, given: str) -> str:
    """The token itself, or the first one that is asked for of the arm with this name."""
    if given.replace(".", "", 1).isdigit() and given not in session.problem.arm_names:
        return given
    arm = session.problem.arm(given)
    for request in session.pending():
        if request.arm == arm:
            return request.token
    raise SessionError(
        f"arm {given!r} is not asked for now; see `surepick ask`, or keep a measurement that nobody asked "
        "for with --unasked"
    )


def _state(session: Session) -> dict[str, Any]:
    """What every answer in JSON says about the session."""
    from surepick.sessions import codec

    ledger = session.ledger()
    standing, name_of = ledger.standing(), ledger.problem.name_of
    return {
        "session": session.name,
        "status": "running" if ledger.status is None else str(ledger.status),
        "answer": name_of(ledger.plan),
        "lead": name_of(standing.lead),
        "rival": name_of(standing.rival),
        "gap": codec.finite_or_none(standing.gap),
        "radius": codec.finite_or_none(standing.radius),
        "risk": codec.finite_or_none(standing.risk),
        "learning_noise": ledger.is_piloting,
        "n_told": ledger.n_told,
        "n_used": ledger.n_used,
        "n_unasked": ledger.n_recorded,
        "n_unasked_counted": ledger.n_counted,
        "n_missing": ledger.n_missing,
        "n_rounds": ledger.n_rounds,
        "counts": dict(zip(ledger.problem.arm_names, ledger.evidence.counts.tolist(), strict=True)),
    }


def _summary(place: Store, name: str) -> dict[str, Any]:
    """One line of `list`; a session that cannot be opened is listed with the reason."""
    from surepick.sessions.session import Session

    try:
        state = _state(Session.load(place, name, read_only=True))
    except SurepickError as error:
        return {"session": name, "status": str(error), "measurements": None, "answer": None}
    return {
        "session": name,
        "status": state["status"],
        "measurements": state["n_told"],
        "answer": state["answer"],
    }


def _request(request: Request) -> dict[str, Any]:
    return {"token": request.token, "arm": request.arm_name, "wanted": request.wanted}


def _event(event: Event) -> dict[str, Any]:
    moment = datetime.fromtimestamp(event.time, UTC).isoformat(timespec="seconds")
    return {"position": event.position, "time": moment, "kind": event.kind, "body": json.loads(event.body)}


class _Progress:
    """A line on standard error when something has changed, at most once a second."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._next = 0.0
        self._last = ""

    def __call__(self, session: Session, *, waiting: bool = False) -> None:
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + 1.0
        self._say(_waiting(session) if waiting else self._standing(session))

    def _say(self, line: str) -> None:
        if line != self._last:
            print(line, file=sys.stderr)
        self._last = line

    def _standing(self, session: Session) -> str:
        state = _state(session)
        risk = "" if state["risk"] is None else f", risk if declared now {state['risk']:.3g}"
        lead = "nothing leads yet" if state["lead"] is None else f"lead {state['lead']}"
        return f"{how_many(state['n_used'], 'measurement')}, {lead}{risk}"


def _waiting(session: Session) -> str:
    """For whom a run waits, and how long it may take."""
    from surepick.views.text import duration

    held = [lease for lease in session.leases() if lease.expires > session.now()]
    if not held:
        return "waiting for what others measure"
    first = min(held, key=lambda lease: lease.expires)
    who, left = first.worker or "without a name", duration(first.expires - session.now())
    others = f"{how_many(len(held), 'measurement')} in the hands of others"
    return f"waiting for {others}; the first lease ({who}) ends in {left}"


def _answer(data: Any, as_json: bool, text: Callable[[], None]) -> None:
    if as_json:
        typer.echo(json.dumps(data, default=list))
    else:
        text()


def _say(text: str) -> None:
    typer.echo(text)


def _print_requests(requests: list[Request], session: Session) -> None:
    for request in requests:
        _say(f"{request.token}\t{request.arm_name}")
    if not requests and session.status is None:
        _say("other workers hold everything that can be measured now; try again later")
    elif not requests:
        _print_status(session)


def _print_told(receipt: object, session: Session) -> None:
    state = _state(session)
    end = f"; the session has ended: {state['status']}" if session.status else ""
    _say(f"{receipt}; {how_many(state['n_told'], 'measurement')} told{end}")


def _print_status(session: Session) -> None:
    if session.status is not None:
        _say(str(session.certificate()))
        return
    state = _state(session)
    lines = {
        "session": f"{state['session']}: running",
        "told": f"{how_many(state['n_told'], 'measurement')}, {state['n_used']:,} used in "
        + how_many(state["n_rounds"], "round"),
        "unasked": f"{how_many(state['n_unasked'], 'measurement')}, {state['n_unasked_counted']:,} counted"
        if state["n_unasked"]
        else None,
        "waits for": how_many(state["n_missing"], "measurement"),
        "phase": "learning the noise scale" if state["learning_noise"] else None,
        "lead": state["lead"],
        "rival": state["rival"],
        "gap": _gap(state),
        "risk": None if state["risk"] is None else f"at most {state['risk']:.3g} if declared now",
    }
    for name, value in lines.items():
        if value is not None:
            _say(f"{name:<13}{value}")


def _gap(state: dict[str, Any]) -> str | None:
    if state["gap"] is None:
        return None
    within = "" if state["radius"] is None else f", known to within {state['radius']:.4g}"
    return f"{state['gap']:.4g}{within}"


def _print_columns(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    cells = [columns, *(tuple(_cell(row[column]) for column in columns) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    for line in cells:
        _say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if not isinstance(value, dict):
        return str(value)
    text = json.dumps(value)
    return text if len(text) <= 100 else text[:97] + "..."


def _print_verdict(verdict: Any) -> None:
    for objection in verdict.objections:
        _say(f"objection: {objection}")
    found = f"{how_many(verdict.n_events, 'event')}, {how_many(verdict.n_rounds, 'round')}, {verdict.status}"
    answer = f", answer {verdict.plan_name!r}" if verdict.plan_name else ""
    _say(f"{'holds' if verdict.holds else 'does not hold'}: {found}{answer}")


def _print_diagnosis(place: str, data: dict[str, Any]) -> None:
    _say(f"{place}: {'nothing is wrong' if data['well'] else 'damaged'}")
    for complaint in data["complaints"]:
        _say(f"  {complaint}")
    for log in data["sessions"]:
        state = f"{log['proved']:,} of {how_many(log['events'], 'event')} proved intact"
        _say(f"  session {log['session']!r}: {state}, {log['lost']} unreadable")
    if not data["well"]:
        _say("nothing was changed. Keep a copy of the file, and save what can be read with --rescue FILE")


answer, open_to_read = _answer, _store  # for the commands of other modules
