"""Wrote `sessions_v0_1.db`, `certificates_v0_1/` and `nets/continued.json`, once, with surepick 0.1.0.

They stand for the files that people have, so they are never written again: a later surepick has to read them
as they are. The script is kept to show what is in them; it refuses another version, and files that are there.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import stored_sessions as stored
import surepick as sp
from stored_sessions import BEGUN, METALS, PLANS, STORED, Clock
from surepick.problems import knapsack_family, path_family
from surepick.store import Snapshot, Store, open_store

ROADS = [("A", "B"), ("A", "C"), ("B", "D"), ("C", "D"), ("B", "C"), ("D", "E"), ("C", "E"), ("B", "E")]
SCALE = 0.15
ALSO_KEPT = ("function", "unknown scale", "recorded counted", "disturbed", "extended", "RAGE authors")
Act = Callable[[sp.Session], object]


@dataclass(frozen=True)
class Case:
    """A problem and a policy; `acts` are done after so many steps, besides asking and telling."""

    problem: sp.Problem | sp.OracleProblem
    policy: Any
    options: dict[str, Any] = field(default_factory=dict)
    acts: dict[int, Act] = field(default_factory=dict)
    last: Act | None = None  # done to the finished session
    left: float = 0.5  # after which share of its steps the open session is left


def metals(**options: Any) -> sp.Problem:
    return sp.Problem(PLANS, arm_names=METALS, **{"noise_scale": SCALE, **options})


def blends() -> sp.Problem:
    """Plans close enough to each other for several phases."""
    plans = [[1, 1, 0, 0], [1, 0, 1, 0], [1, 0.2, 0.8, 0], [0, 0, 1, 1]]
    return sp.Problem(plans, arm_names=METALS, noise_scale=0.1)


def roads(noise_scale: float) -> sp.OracleProblem:
    return path_family(ROADS, "A", "E", directed=True).oracle_problem(noise_scale=noise_scale)


def bags(noise_scale: float) -> sp.OracleProblem:
    family = knapsack_family([2, 3, 4, 5], 7, item_names=["tent", "rope", "stove", "lamp"])
    return family.oracle_problem(noise_scale=noise_scale)


def function() -> sp.OracleProblem:
    return sp.OracleProblem(stored.own_function, 4, SCALE, arm_names=METALS, n_plans=5)


def record_some(session: sp.Session) -> None:
    session.record("tin", 0.31, note="from last year")
    session.record("zinc", 0.52, key="sheet 17")
    session.record("zinc", 0.52, key="sheet 17")
    session.record("copper", 0.99, picked=True)
    session.note("three sheets from the old laboratory")


def disturb(session: sp.Session) -> None:
    """A token that is given back, one that is told twice, one that comes late, and three values at once."""
    first, second = session.ask(2, worker="dora", wait=False)
    session.withdraw(first, "the scale was busy")
    session.tell(second, [stored.measured(session.name, second.token), 0.41, 0.44])
    session.tell(second, [stored.measured(session.name, second.token), 0.41, 0.44])
    session.tell(second.token, 0.5, worker="ben")


def close_and_reopen(session: sp.Session) -> None:
    session.close("a holiday")
    session.extend(budget=1000)


CASES = {
    "BetGapE": Case(metals(), sp.BetGapE(delta=0.05)),
    "CLUCB": Case(metals(noise_scale=0.08), sp.CLUCB(delta=0.1)),
    "CombGapE": Case(metals(), sp.CombGapE(delta=0.1)),
    "CombGapE joint": Case(metals(), sp.CombGapE(delta=0.1, radius="normal-mixture-joint")),
    "CombGapE kaufmann-koolen": Case(metals(), sp.CombGapE(delta=0.1, radius="kaufmann-koolen")),
    "CombGapE published": Case(metals(noise_scale=0.25), sp.CombGapE(delta=0.1, radius="published")),
    "CombGapE naive": Case(metals(), sp.CombGapE(delta=0.1, arm_rule="naive")),
    "GenTSExplore": Case(metals(noise_scale=0.05), sp.GenTSExplore(delta=0.1), {"seed": 5}),
    "LinGapE": Case(metals(noise_scale=0.1), sp.LinGapE(delta=0.1, norm_bound=0.3)),
    "LinGapE ratio": Case(metals(noise_scale=0.1), sp.LinGapE(delta=0.1, norm_bound=0.3, arm_rule="ratio")),
    "OBet": Case(roads(noise_scale=0.06), sp.OBet(delta=0.1)),
    "OBet bags": Case(bags(noise_scale=0.4), sp.OBet(delta=0.1, max_batch=4)),
    "OBet metals": Case(metals(), sp.OBet(delta=0.1)),
    "Peace": Case(blends(), sp.Peace(delta=0.1), {"seed": 7}),
    "RAGE": Case(blends(), sp.RAGE(delta=0.1)),
    "RAGE authors": Case(metals(noise_scale=0.6), sp.RAGE(delta=0.1, variant="authors")),
    "TSExplore": Case(metals(noise_scale=0.05), sp.TSExplore(delta=0.1), {"seed": 8}),
    "Uniform": Case(metals(), sp.Uniform(delta=0.1)),
    "function": Case(function(), sp.OBet(delta=0.1)),
    "unknown scale": Case(
        metals(noise_scale=None), sp.BetGapE(delta=0.1), {"pilot": sp.Pilot(size=8)}, left=0.85
    ),
    "unknown scale pooled": Case(
        metals(noise_scale=None), sp.CombGapE(delta=0.1), {"pilot": sp.Pilot(size=4, pooled=True)}
    ),
    "bounds": Case(metals(noise_scale=1.0).with_bounds((0.0, 1.0)), sp.BetGapE(delta=0.3)),
    "recorded": Case(metals(), sp.BetGapE(delta=0.05), acts={2: record_some}),
    "recorded counted": Case(metals(), sp.CombGapE(delta=0.05), acts={2: record_some}),
    "epsilon costs batches": Case(
        metals(costs=[1.0, 2.0, 5.0, 1.0], minimize=True),
        sp.BetGapE(delta=0.05, epsilon=0.02, max_batch=5),
    ),
    "disturbed": Case(metals(), sp.CombGapE(delta=0.05), {"lease": 900.0}, acts={3: disturb}),
    "budget": Case(metals(), sp.CombGapE(delta=0.01), {"budget": 20}),
    "extended": Case(metals(), sp.CombGapE(delta=0.2), acts={6: lambda session: session.extend(delta=0.02)}),
    "extended after its end": Case(
        metals(), sp.BetGapE(delta=0.2), last=lambda session: session.extend(delta=0.01)
    ),
    "reopened": Case(
        metals(noise_scale=0.08), sp.CLUCB(delta=0.1), {"budget": 500}, acts={4: close_and_reopen}
    ),
    "closed": Case(metals(), sp.Uniform(delta=0.1), acts={5: lambda session: session.close("no more ore")}),
}


def make(store: Store, name: str, case: Case, *, n_steps: int | None) -> int:
    """Drive a session to its end, or for so many steps; how many it took."""
    clock = Clock(BEGUN)
    session = sp.Session.create(store, case.problem, case.policy, name=name, clock=clock, **case.options)
    done = 0
    while session.status is None and done != n_steps:
        stored.step(session, clock, [("anna", 2), ("ben", 1)])
        done += 1
        if done in case.acts:
            case.acts[done](session)
        if n_steps is not None and done == (n_steps + 1) // 2 and is_kept(name, case):
            keep_snapshot(session)
        assert done < stored.MOST_STEPS, name
    if n_steps is None and case.last is not None:
        case.last(session)
        while session.status is None:
            stored.step(session, clock, [("anna", 2), ("ben", 1)])
    if session.status is None:
        leave_open(session, clock)
    return done


def leave_open(session: sp.Session, clock: Clock) -> None:
    """Some tokens are asked and not told, and of those ahead some are told."""
    clock.now = STORED
    requests = session.ask(3, worker="anna", wait=False)
    session.ask(1, worker="ben", wait=False)
    for request in requests[-1:]:
        stored.tell(session, request)


def is_kept(name: str, case: Case) -> bool:
    """One session of each policy has a snapshot, and some with something unusual: the file is to be small."""
    label = name.removesuffix(" open")
    return label in (case.policy.name, *ALSO_KEPT)


def keep_snapshot(session: sp.Session) -> None:
    """What the library itself keeps beside a log after some thousand measurements."""
    kind = [sp.__version__, 2, session.policy.name, session.policy.version]
    ledger = session.ledger().to_json()
    assert ledger is not None
    body = json.dumps({"format": kind, "ledger": ledger}).encode()
    session.store.save_snapshot(session.name, Snapshot(session.fingerprint, body))


def main() -> None:
    if sp.__version__ != stored.WRITTEN_BY or stored.STORE.exists():
        raise SystemExit(f"these files were written once, by surepick {stored.WRITTEN_BY}")
    store = open_store(f"sqlite:///{stored.STORE}")
    for label, case in CASES.items():
        n_steps = make(store, f"{label} finished", case, n_steps=None)
        if label != "closed":
            make(store, f"{label} open", case, n_steps=int(case.left * n_steps))
    stored.CERTIFICATES.mkdir()
    for name in store.names():
        session = stored.opened(store, name, read_only=True)
        n_events, n_measurements = session.fingerprint.position, session.ledger().n_measurements
        print(f"{name:40} {session.status!s:14} {n_events:5} {n_measurements}")
        if name.endswith(" finished"):
            session = stored.opened(store, name)
            stored.certificate_file(name).write_text(stored.certificate_text(session), encoding="utf-8")
    store.close()
    with sqlite3.connect(stored.STORE) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("VACUUM")
    write_continued()


def write_continued() -> None:
    """Go on with the open sessions in a copy."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{stored.copied(Path(folder))}")
        found = {}
        for name in stored.names("open"):
            clock = Clock(STORED)
            found[name] = stored.go_on(stored.opened(store, name, clock=clock), clock)
        store.close()
    stored.CONTINUED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
