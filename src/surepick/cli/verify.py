"""`verify` and `doctor`: does a session hold, is its store intact?"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.opening import only_name, open_to_read
from surepick.cli.options import DEFAULT_STORE, NOT_SURE, Json, Name, StoreUrl
from surepick.cli.render import answer, say
from surepick.core.wording import how_many
from surepick.errors import FileError

if TYPE_CHECKING:
    from surepick.store import Event
    from surepick.store.doctor import LogHealth

RESCUED = ("session", "token", "arm_index", "value", "count", "proved", "arm", "key", "picked")


def verify(
    certificate: Annotated[
        Path | None, typer.Argument(help="A certificate: the JSON of `status` or `export`.")
    ] = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Replay a session from its first event: do it, and a certificate, hold? Exit code 1: no."""
    from surepick.sessions.verify import verify as check

    place = open_to_read(store)
    verdict = check(place, session or only_name(place), read_certificate(certificate))
    data = {"holds": verdict.holds, **vars(verdict)}
    answer(data, as_json, lambda: _print_verdict(verdict))
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
    answer(data, as_json, lambda: _print_diagnosis(diagnosis.place, data))
    if rescue is not None:
        n_rescued = rescue_measurements(diagnosis.logs, rescue)
        if not as_json:
            say(f"{how_many(n_rescued, 'measurement')} written to {rescue}")
    raise typer.Exit(0 if diagnosis.is_well else NOT_SURE)


def _print_verdict(verdict: Any) -> None:
    for objection in verdict.objections:
        say(f"objection: {objection}")
    for remark in verdict.remarks:
        say(f"remark: {remark}")
    found = f"{how_many(verdict.n_events, 'event')}, {how_many(verdict.n_rounds, 'round')}, {verdict.status}"
    answer = f", answer {verdict.plan_name!r}" if verdict.plan_name else ""
    say(f"{'holds' if verdict.holds else 'does not hold'}: {found}{answer}")


def _print_diagnosis(place: str, data: dict[str, Any]) -> None:
    say(f"{place}: {'nothing is wrong' if data['well'] else 'damaged'}")
    for complaint in data["complaints"]:
        say(f"  {complaint}")
    for log in data["sessions"]:
        state = f"{log['proved']:,} of {how_many(log['events'], 'event')} proved intact"
        say(f"  session {log['session']!r}: {state}, {log['lost']} unreadable")
    if not data["well"]:
        say("nothing was changed. Keep a copy of the file, and save what can be read with --rescue FILE")


def read_certificate(path: Path | None) -> dict[str, Any] | None:
    """The certificate in a JSON file, on its own or as a part of what `status` and `export` write."""
    if path is None:
        return None
    from surepick.core.tables import refuse_endless

    try:
        refuse_endless(path)
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read a certificate from {str(path)!r}: {error}") from None
    certificate = data.get("certificate", data) if isinstance(data, dict) else None
    if not isinstance(certificate, dict) or "log_checksum" not in certificate:
        raise FileError(f"{str(path)!r} holds no certificate; write one with `surepick status --json`")
    return certificate


def rescue_measurements(logs: Iterable[LogHealth], path: Path) -> int:
    """Write the measurements of all readable events, unasked ones included; how many there were.

    `import` takes the file. There an unasked measurement needs the name of its arm, and gets a key, so that
    it is kept once however often the file is imported.
    """
    n = 0
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, RESCUED)
        writer.writeheader()
        for log in logs:
            names = _arm_names(log)
            for event, proved in zip(log.events, log.proved, strict=True):
                for row in _told(event, names):
                    writer.writerow({"session": log.name, **row, "proved": proved})
                    n += 1
    return n


def _arm_names(log: LogHealth) -> Sequence[str]:
    """The names of the arms, if the first event can still be read."""
    try:
        names: list[str] = json.loads(log.events[0].body)["problem"]["arm_names"]
        return names
    except (ValueError, LookupError, TypeError):
        return ()


def _told(event: Event, names: Sequence[str]) -> list[dict[str, Any]]:
    """The measurements of this event as rows; none of one that was damaged beyond reading."""
    from surepick.sessions.requests import Token, told_in

    if event.kind not in ("measured", "recorded"):
        return []
    try:
        body = json.loads(event.body)
        arm = body["arm"]
        row = {"arm_index": arm, "count": body.get("count", 1), "arm": names[arm] if names else arm}
        if event.kind == "measured":
            return [
                {**row, "token": Token(arm, index), "value": repr(value)} for index, value in told_in(body)
            ]
        key = (event.key or "").removeprefix("recorded:") or f"event {event.position}, rescued"
        picked = "yes" if body.get("picked") else ""
        return [{**row, "value": repr(body["value"]), "key": key, "picked": picked}]
    except (ValueError, LookupError, TypeError):
        return []
