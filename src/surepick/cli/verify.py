"""`verify` and `doctor`: does a session hold, is its store intact?"""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.opening import only_name, open_to_read
from surepick.cli.options import DEFAULT_STORE, NOT_SURE, Json, Name, StoreUrl
from surepick.cli.render import answer, say
from surepick.core.wording import how_many
from surepick.errors import FileError, StoreError

if TYPE_CHECKING:
    from surepick.sessions.log_file import LogFile
    from surepick.sessions.verify import Verdict
    from surepick.store import Event, Store
    from surepick.store.doctor import LogHealth

RESCUED = ("session", "token", "arm_index", "value", "count", "proved", "arm", "key", "picked", "reading")


def verify(
    certificate: Annotated[
        Path | None,
        typer.Argument(help="A certificate: what `certificate`, `status --json` or `export` writes."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Argument(help="A log, as `export --format json` writes it; then no store is needed."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The public key that the certificate has to be signed with.")
    ] = None,
    announced: Annotated[
        str | None, typer.Option(help="The fingerprint of the question that `new --announce` printed.")
    ] = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Replay a session from its first event: do it, and a certificate, hold? Exit code 1: no.

    It shows that the log is consistent: a session can have written every event of it, and the policy decides
    what it says. It does not show that the values were measured.
    """
    from surepick.sessions.verify import verify as check

    given, file = _given(certificate, log)
    if file is not None:
        verdict = file.verify(given)
    else:
        place = _store_of(store, certificate)
        verdict = check(place, session or only_name(place), given)
    objections = [*verdict.objections, *_other_objections(verdict, given, key, announced)]
    remarks = [*verdict.remarks, *_other_remarks(given, file, key)]
    verdict = replace(verdict, objections=tuple(objections), remarks=tuple(remarks))
    data = {"holds": verdict.holds, **vars(verdict)}
    answer(data, as_json, lambda: _print_verdict(verdict))
    raise typer.Exit(0 if verdict.holds else NOT_SURE)


def _store_of(store: str, certificate: Path | None) -> Store:
    """The store; who has a certificate and no store is told what else there is."""
    try:
        return open_to_read(store)
    except StoreError as error:
        if certificate is None:
            raise
        both = f"surepick verify {shlex.quote(str(certificate))} log.json"
        raise StoreError(
            f"{error}. Without the store it takes the log: {both}, where log.json is what `surepick export "
            "--to log.json` writes for whoever has the store"
        ) from None


def _given(*paths: Path | None) -> tuple[dict[str, Any] | None, LogFile | None]:
    """The certificate and the log in these files, which may be in any order, or both in one."""
    from surepick.sessions.log_file import certificate_in, log_in, read_json

    found: list[tuple[dict[str, Any] | None, LogFile | None]] = []
    for path in filter(None, paths):
        data = read_json(path)
        found.append((certificate_in(data), log_in(data)))
        if found[-1] == (None, None):
            raise FileError(
                f"{str(path)!r} holds neither a certificate nor a log; write one with `surepick certificate` "
                "or both with `surepick export --format json`"
            )
    certificates = [given for given, _ in found if given is not None]
    logs = [log for _, log in found if log is not None]
    if len(found) == 2 and not logs:
        raise FileError(f"{str(paths[1])!r} holds no log; write one with `surepick export --format json`")
    return certificates[0] if certificates else None, logs[-1] if logs else None


def _other_objections(
    verdict: Verdict, given: dict[str, Any] | None, key: Path | None, announced: str | None
) -> Iterator[str]:
    if announced is not None and announced.strip().lower() != verdict.question:
        yield f"another question was announced; the fingerprint of this one is {verdict.question}"
    if key is None:
        return
    from surepick.sessions import signing

    public = signing.read_public_key(key)
    if given is None:
        raise FileError("--key is for the signature of a certificate; give the certificate too")
    objection = signing.objection_to_signature(given, public)
    if objection is not None:
        yield objection


def _other_remarks(given: dict[str, Any] | None, file: LogFile | None, key: Path | None) -> Iterator[str]:
    if file is not None:
        yield "the log in the file was checked; no store was looked at"
    if given is not None and "signature" in given and key is None:
        yield "the certificate is signed, and the signature was not checked; give the public key with --key"


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
    answer(data, as_json, lambda: _print_diagnosis(diagnosis.place, data))
    if rescue is not None:
        n_rescued, n_voided = rescue_measurements(diagnosis.logs, rescue)
        voided = f"; {how_many(n_voided, 'value')} left out that had been taken back" if n_voided else ""
        if not as_json:
            say(f"{how_many(n_rescued, 'measurement')} written to {rescue}{voided}")
    raise typer.Exit(0 if diagnosis.is_well else NOT_SURE)


def _print_verdict(verdict: Any) -> None:
    for objection in verdict.objections:
        say(f"objection: {objection}")
    for remark in verdict.remarks:
        say(f"remark: {remark}")
    found = f"{how_many(verdict.n_events, 'event')}, {how_many(verdict.n_rounds, 'round')}, {verdict.status}"
    answer = f", answer {verdict.plan_name!r}" if verdict.plan_name else ""
    say(f"{'holds' if verdict.holds else 'does not hold'}: {found}{answer}")
    if verdict.question:
        say(f"fingerprint of the question: {verdict.question}")


def _print_diagnosis(place: str, data: dict[str, Any]) -> None:
    say(f"{place}: {'nothing is wrong' if data['well'] else 'damaged'}")
    for complaint in data["complaints"]:
        say(f"  {complaint}")
    for log in data["sessions"]:
        state = f"{log['proved']:,} of {how_many(log['events'], 'event')} proved intact"
        say(f"  session {log['session']!r}: {state}, {log['lost']} unreadable")
    if not data["well"]:
        say("nothing was changed. Keep a copy of the file, and save what can be read with --rescue FILE")


def rescue_measurements(logs: Iterable[LogHealth], path: Path) -> tuple[int, int]:
    """Write the measurements of all readable events, unasked ones included; how many, and how many not.

    `import` takes the file. There an unasked measurement needs the name of its arm, and gets a key, so that
    it is kept once however often the file is imported. Values that were taken back are left out, as far as
    the events that say so can be read.
    """
    from surepick.sessions.measurement_files import names_as_cells

    n = n_voided = 0
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, RESCUED)
        writer.writeheader()
        for log in logs:
            names, voided = _names(log), _voided(log)
            for event, proved in zip(log.events, log.proved, strict=True):
                rows = _told(event, names)
                valid = [row for row in rows if row.get("token", event.position) not in voided]
                cells = ({"session": log.name, **row, "proved": proved} for row in valid)
                writer.writerows(map(names_as_cells, cells))
                n, n_voided = n + len(valid), n_voided + len(rows) - len(valid)
    return n, n_voided


def _names(log: LogHealth) -> Mapping[int, str]:
    """The names of the arms, or of the probes, by number, if the first event can still be read."""
    try:
        problem = json.loads(log.events[0].body)["problem"]
        if problem.get("plays"):
            return _play_names(log)
        names: list[str] = problem["probes"]["names"] if "probes" in problem else problem["arm_names"]
        return dict(enumerate(names))
    except (ValueError, LookupError, TypeError):
        return {}


def _play_names(log: LogHealth) -> Mapping[int, str]:
    """What plays are called whose readings were told: the event that first asked for one may be lost."""
    from surepick.core.oracle_problem import absent
    from surepick.sessions import codec
    from surepick.sessions.requests import probe_in

    data, arms = json.loads(log.events[0].body)["problem"], dict[int, set[int]]()
    for event in log.events:
        with suppress(ValueError, LookupError, TypeError):
            body = json.loads(event.body)
            own = {data["arm_names"].index(name) for name in body["readings"]}
            arms.setdefault(probe_in(body), set()).update(own)
    problem = codec.problem_from_json(data, absent if codec.needs_function(data) else None)
    assert not problem.is_listed
    named = problem.with_asked_plays([sorted(own) for own in arms.values()])
    return dict(zip(arms, named.probe_names, strict=True))


def _voided(log: LogHealth) -> set[tuple[int, int] | int]:
    """The tokens, or events of unasked values, that were taken back, by the events that can be read."""
    from surepick.sessions.requests import Token

    tokens: set[tuple[int, int] | int] = set()
    for event in log.events:
        with suppress(ValueError, LookupError, TypeError):
            if event.kind == "voided":
                body = json.loads(event.body)
                tokens.add(body["event"] if "event" in body else Token.of(body))
    return tokens


def _told(event: Event, names: Mapping[int, str]) -> list[dict[str, Any]]:
    """The measurements of this event as rows; none of one that was damaged beyond reading."""
    from surepick.sessions.requests import Token, probe_in, readings_in, told_in

    if event.kind not in ("measured", "recorded"):
        return []
    try:
        body = json.loads(event.body)
        probe = probe_in(body)
        row = {"arm_index": probe, "count": body.get("count", 1), "arm": names.get(probe, probe)}
        told: Iterable[tuple[int | None, Mapping[str, float]]]
        if event.kind == "measured":
            told = told_in(body)
        else:
            told = [(None, readings_in(body))]
            key = (event.key or "").removeprefix("recorded:") or f"event {event.position}, rescued"
            row |= {"key": key, "picked": "yes" if body.get("picked") else ""}
        cells = [(index, name, value) for index, values in told for name, value in values.items()]
        return [
            row
            | ({} if index is None else {"token": Token(probe, index)})
            | ({"reading": name} if "readings" in body else {})
            | {"value": repr(value)}
            for index, name, value in cells
        ]
    except (ValueError, LookupError, TypeError):
        return []
