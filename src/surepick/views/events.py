"""The events of a log, as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import how_many, in_short, shortened
from surepick.sessions.requests import Token, probe_in
from surepick.store import Event

MOST_LISTED = 8  # arms of a round, values of a measurement
MOST_TEXT = 160  # letters of an event


@dataclass(frozen=True)
class LogRow:
    """An event for people."""

    position: int
    time: float
    kind: str
    text: str


def log_row(event: Event, problem: AnyProblem, *, most_text: int = MOST_TEXT) -> LogRow:
    """What happened, in words; names are given as they are, to be escaped where they are shown."""
    words = " ".join(filter(None, _words(event.kind, json.loads(event.body), problem)))
    return LogRow(event.position, event.time, event.kind, shortened(words, most_text))


def _words(kind: str, body: dict[str, Any], problem: AnyProblem) -> Iterator[str]:
    names = problem.probe_names
    match kind:
        case "created":
            plans = f"{in_short(problem.n_plans)} plans" if problem.n_plans else "many plans"
            ways = how_many(len(problem.counted_names), "arm" if problem.probes is None else "probe")
            ways += " read by plays" if problem.plays else ""
            yield f"{plans}, {ways}, {body['policy']['name']}, seed {body['seed']}"
        case "asked":
            counts = body["counts"]
            yield f"asked, batch {body['round']}:"
            yield ", ".join(f"{names[probe]} {count} ×" for probe, count in counts[:MOST_LISTED])
            yield _and_more(len(counts))
        case "measured" | "recorded":
            yield from _told(kind, body, names[probe_in(body)])
        case "voided":
            value = f"event {body['event']}" if "event" in body else f"request {Token.of(body)}"
            yield f"removed: {names[probe_in(body)]}, the value of {value}"
            yield f"({body['reason']})"
        case "stopped":
            yield body["status"]
            yield "" if body["plan"] is None else f"with {problem.name_of(body['plan'])}"
        case "extended":
            yield f"delta {body['policy']['parameters'].get('delta')}, budget {body['budget']}"
        case "plan-added":
            amounts = ", ".join(f"{amount:g} × {problem.arm_names[arm]}" for arm, amount in body["amounts"])
            yield f"added the plan “{body['name']}” ({amounts})"
            new = ", ".join(arm["name"] for arm in body.get("new_arms", ()))
            yield f"with {'a new arm' if len(body['new_arms']) == 1 else 'new arms'}: {new}" if new else ""
        case "called":
            yield f"the next {how_many(body['n'], 'measurement')} are the last"
            yield "and their noise is Gaussian" if body["gaussian"] else ""
        case "noted" if "title" in body:
            yield f"renamed to “{body['title']}”"
        case _:
            yield ", ".join(f"{key} {value}" for key, value in body.items() if value not in ("", None))


def _told(kind: str, body: dict[str, Any], name: str) -> Iterator[str]:
    """What was told of this arm or probe."""
    if "readings" in body:
        values = [f"{reading} {value:g}" for reading, value in body["readings"].items()]
    else:
        values = [f"{value:g}" for value in body.get("values", [body.get("value")])]
    yield f"{name} = {', '.join(values[:MOST_LISTED])}"
    yield _and_more(len(values))
    yield f"by {body['worker']}" if body.get("worker") else ""
    yield f"(late for {body['late']})" if "late" in body else ""
    yield "(extra)" if kind == "recorded" and "late" not in body else ""
    yield f"({body['note']})" if body.get("note") else ""


def _and_more(n: int) -> str:
    return f"and {n - MOST_LISTED} more" if n > MOST_LISTED else ""
