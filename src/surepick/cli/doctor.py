"""`doctor` and `backup`: is a store intact, and a copy of it that is."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.options import DEFAULT_STORE, NOT_SURE, Json, StoreUrl
from surepick.cli.render import answer, say
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from surepick.store import Event
    from surepick.store.doctor import LogHealth

RESCUED = ("session", "token", "arm_index", "value", "proved", "arm", "key", "picked", "reading")


def backup(
    file: Annotated[Path, typer.Argument(help="The new file.")],
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Copy a SQLite store into a new file, also while it is in use.

    The copy is one moment of the store, complete in one file, and is checked as `doctor` does.
    `cp` of a store in use can miss the last values. Example: surepick backup monday.db
    """
    from surepick.store.doctor import back_up

    diagnosis = back_up(store, file)
    logs = [{"session": log.name, "events": log.head.position} for log in diagnosis.logs]
    data = {"well": diagnosis.is_well, "file": str(file), "sessions": logs}
    n_events = sum(log.head.position for log in diagnosis.logs)
    what = f"{how_many(len(logs), 'session')}, {how_many(n_events, 'event')}"
    state = "intact" if diagnosis.is_well else "damaged, as the store is: run `surepick doctor`"
    answer(data, as_json, lambda: say(f"{file}: {what}, {state}"))
    raise typer.Exit(0 if diagnosis.is_well else NOT_SURE)


def doctor(
    rescue: Annotated[Path | None, typer.Option(help="Write all readable measurements to this CSV.")] = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Check a store for damage; nothing is changed. Exits with 1 if something is wrong.

    It runs SQLite's own check and compares every event with its checksum.
    """
    from surepick.store.doctor import examine

    diagnosis = examine(store)
    logs = [
        {"session": log.name, "events": log.head.position, "proved": log.n_proved, "lost": log.n_lost}
        for log in diagnosis.logs
    ]
    data = {
        "well": diagnosis.is_well,
        "complaints": list(diagnosis.complaints),
        "sessions": logs,
        "advice": diagnosis.advice,
    }
    answer(data, as_json, lambda: _print_diagnosis(diagnosis.place, data))
    if rescue is not None:
        n_rescued, n_voided = rescue_measurements(diagnosis.logs, rescue)
        voided = f"; {how_many(n_voided, 'value')} left out that had been removed" if n_voided else ""
        if not as_json:
            say(f"{how_many(n_rescued, 'measurement')} written to {rescue}{voided}")
    raise typer.Exit(0 if diagnosis.is_well else NOT_SURE)


def _print_diagnosis(place: str, data: dict[str, Any]) -> None:
    say(f"{place}: {'nothing is wrong' if data['well'] else 'damaged'}")
    for complaint in data["complaints"]:
        say(f"  {complaint}")
    for log in data["sessions"]:
        state = f"{log['proved']:,} of {how_many(log['events'], 'event')} proved intact"
        say(f"  session {log['session']!r}: {state}, {log['lost']} unreadable")
    if not data["well"]:
        say("nothing was changed. Keep a copy of the file; --rescue FILE saves the values that can be read")
    if data["advice"]:
        say(f"to recover more: {data['advice']}")


def rescue_measurements(logs: Iterable[LogHealth], path: Path) -> tuple[int, int]:
    """Write the measurements of all readable events, unasked ones included; how many, and how many not.

    `import` takes the file. There an unasked measurement needs the name of its arm, and gets a key, so that
    it is kept once however often the file is imported. Values that were taken back are left out, as far as
    the events that say so can be read.
    """
    from surepick.files.measurements import names_as_cells

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
        row = {"arm_index": probe, "arm": names.get(probe, probe)}
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
