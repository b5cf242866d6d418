"""The events of a log, as people read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from surepick.core.oracle_problem import AnyProblem
from surepick.core.wording import first_of, how_many, in_short, shortened
from surepick.store import Event

MOST_TEXT = 160  # letters of an event


@dataclass(frozen=True)
class LogRow:
    """An event for people: its kind, then the text, as in "measured" and "Tunnel = 10.4 by Pat"."""

    position: int
    time: float
    kind: str
    text: str


def log_row(event: Event, problem: AnyProblem) -> LogRow:
    """Return an event in words. Names are not escaped: the caller escapes them for its output."""
    words = " ".join(filter(None, _words(event.kind, json.loads(event.body), problem)))
    return LogRow(event.position, event.time, event.kind, shortened(words, MOST_TEXT))


def _words(kind: str, body: dict[str, Any], problem: AnyProblem) -> Iterator[str]:
    names = problem.probe_names
    match kind:
        case "created":
            plans = f"{in_short(problem.n_plans)} plans" if problem.n_plans else "many plans"
            ways = how_many(len(problem.counted_names), "arm" if problem.probes is None else "probe")
            yield f"{plans}, {ways}, {body['policy']['name']}, seed {body['seed']}"
        case "asked":
            yield f"batch {body['number']}:"
            yield first_of([f"{count} × {names[probe]}" for probe, count in body["counts"]])
        case "measured":
            reads = problem.reads(body["probe"])
            shown = ["lost" if value is None else f"{value:g}" for value in body["values"]]
            if len(reads) > 1:
                shown = [f"{read} {one}" for read, one in zip(reads, shown, strict=True)]
            yield f"{names[body['probe']]} = {first_of(shown)}"
            yield f"by {body['worker']}" if body["worker"] else ""
            place = f"{body['probe']}.{body['index']}"
            yield "(extra)" if body["request"] == "" else "" if body["request"] == place else "(late)"
            yield f"({body['note']})" if body["note"] else ""
        case "removed":
            yield f"{names[body['probe']]}, the value of request {body['probe']}.{body['index']}"
            yield f"({body['reason']})"
        case "stopped":
            yield body["status"]
            yield "" if body["plan"] is None else f"with {problem.name_of(body['plan'])}"
        case "plan-added":
            amounts = ", ".join(f"{amount:g} × {problem.arm_names[arm]}" for arm, amount in body["amounts"])
            yield f"“{body['name']}” ({amounts})"
        case "final-batch":
            yield f"of the next {how_many(body['n'], 'measurement')}"
            yield "whose noise is Gaussian" if body["gaussian"] else ""
        case _:
            yield ", ".join(f"{key} {value}" for key, value in body.items() if value not in ("", None))
