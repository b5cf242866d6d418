"""The sessions of `assets/plays_v0_1.json`: how they were begun, measured and gone on with."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import surepick as sp
from surepick.sessions.log_file import log_of
from surepick.sessions.requests import Request
from surepick.store import MemoryStore

FILE = Path(__file__).parents[1] / "assets" / "plays_v0_1.json"
EDGES = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "D"), ("D", "A")]
MINUTES = {"A - B": 3.0, "B - C": 1.0, "C - A": 2.0, "C - D": 2.2, "D - A": 0.5}


class Clock:
    """A clock that moves on by a minute with every measurement."""

    def __init__(self, now: float = 1_790_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def begun(name: str, clock: Clock) -> sp.Session:
    problem = sp.problems.tree_family(EDGES).oracle_problem(noise_scale=0.5, costs=2.0, probes="plan arms")
    return sp.Session.create(MemoryStore(), problem, sp.OBet(delta=0.2), name=name, clock=clock)


def measured(request: Request) -> dict[str, float]:
    """The readings of this play: the same on every machine."""
    found = {}
    for road in request.readings:
        digest = hashlib.sha256(f"{request.probe_name}/{request.token}/{road}".encode()).digest()
        share = int.from_bytes(digest[:8], "big") / 2**64
        found[road] = round(MINUTES[road] + 0.8 * (2 * share - 1), 6)
    return found


def go_on(session: sp.Session, n: int = 10**6) -> None:
    """Measure so many plays, or until the session ends; every third comes in two parts."""
    for at in range(n):
        (request,) = session.ask(1, worker="Ann") or (None,)
        if request is None:
            return
        use = measured(request)
        if at % 3 == 0:
            first = request.readings[0]
            session.tell(request, {first: use.pop(first)})
        session.tell(request, use)


def decisions(session: sp.Session) -> list[str]:
    return [event.body for event in session.events() if event.kind in ("asked", "stopped")]


def log_to_json(session: sp.Session) -> dict[str, Any]:
    return log_of(session.store, session.name).to_json()
