"""The sessions of `assets/sessions_v0_1.db`: what is measured in them, and how they are gone on with."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import surepick as sp
from surepick.sessions import codec
from surepick.sessions.certificate import NEWER
from surepick.store import Event, Store

ASSETS = Path(__file__).parents[1] / "assets"
STORE = ASSETS / "sessions_v0_1.db"
CERTIFICATES = ASSETS / "certificates_v0_1"
CONTINUED = Path(__file__).parents[1] / "nets" / "continued.json"
WRITTEN_BY = "0.1.0"

BEGUN, STORED = 1_750_000_000.0, 1_750_100_000.0  # when the sessions were begun, and when they were left
MEANS = (0.8, 0.3, 0.55, 0.2, 0.45, 0.35, 0.6, 0.25)
NOISE = 0.05  # the standard deviation of what is measured; most problems allow for more
LONG_ROUND = 8  # from so many measurements of one arm on, their mean is told
MOST_STEPS = 3000

# These draw their random numbers otherwise since, as version 2: what they stored is only read.
CHANGING = {"GenTSExplore", "TSExplore"}

# policies that came after the file was written
LATER = {
    *("CSA", "CSAR", "Challenge", "LinearOCBA", "MinimaxCombSAR", "OCBA", "Pick", "PolyBet"),
    *("ExactExpGap", "FWS", "GenLUCB", "LinGame", "NaiveGapElim", "XYAdaptive"),
    *("CombGame", "PFWS", "PolyALBA"),
    *("EBTCI", "KN", "KNPlusPlus", "LUCB", "LilUCB", "Rinott", "TTTS", "TTUCB", "TrackAndStop"),
}

PLANS = ((1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1), (1, 0, 0, 1), (1, 0, 1, 0))
METALS = ("copper", "tin", "zinc", "lead")


def own_function(weights: Sequence[float]) -> np.ndarray[Any, Any]:
    """The plans as a function of the user's own knows them; no store keeps it."""
    plans = np.array(PLANS, dtype=float)
    return plans[np.argmax(plans @ np.asarray(weights))]


class Clock:
    """A clock that stands still until it is moved: how often it is looked at leaves no trace."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def measured(name: str, token: str) -> float:
    """What the measurement with this token gives in the session of this name: the same on every machine."""
    arm = int(token.split(".")[0])
    digest = hashlib.sha256(f"{name}/{token}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return round(MEANS[arm] + NOISE * math.sqrt(3) * (2 * share - 1), 6)


def copied(folder: Path) -> Path:
    """A copy of the store, since opening a file may change it."""
    return Path(shutil.copy(STORE, folder / STORE.name))


def opened(store: Store, name: str, **options: Any) -> sp.Session:
    """The session, with the function that it needs if it is one that needs it."""
    if name.startswith("function"):
        options["best"] = own_function
    return sp.Session.load(store, name, **options)


def names(which: str = "") -> list[str]:
    """The names of the stored sessions that end so: finished or open; looking leaves no file beside it."""
    with closing(sqlite3.connect(f"file:{STORE}?immutable=1", uri=True)) as connection:
        rows = connection.execute("SELECT name FROM surepick_sessions ORDER BY id").fetchall()
    return [name for (name,) in rows if name.endswith(which)]


def begun_with(store: Store, name: str) -> tuple[str, int]:
    """Name and version of the policy that the log of this session begins with."""
    policy = json.loads(next(iter(store.read(name, limit=1))).body)["policy"]
    return policy["name"], policy["version"]


def version_now(store: Store, name: str) -> int:
    """The version that the same policy has in this surepick."""
    return codec.version_now(json.loads(next(iter(store.read(name, limit=1))).body)["policy"])


def certificate_text(session: sp.Session) -> str:
    """The certificate as it was kept in a file, without the keys that certificates did not have then."""
    now = {key: value for key, value in session.certificate().to_json().items() if key not in NEWER}
    now["noise_findings"] = []  # the check looks at more than it did; it has tests of its own
    return json.dumps(now, indent=1) + "\n"


def as_written_now(text: str) -> str:
    """A kept text with the version of surepick, which a certificate names, as it is now."""
    return text.replace(f'"surepick": "{WRITTEN_BY}"', f'"surepick": "{sp.__version__}"')


def certificate_file(name: str) -> Path:
    return CERTIFICATES / f"{name.replace(' ', '-')}.json"


def step(session: sp.Session, clock: Clock, workers: Iterable[tuple[str, int]]) -> list[str]:
    """Each worker asks for so many tokens, then all are told; who got what, as text.

    The last is told first, so that some are told early; of a long round the mean is told, all of it at once.
    """
    clock.now += 300.0
    asked = [
        (worker, request) for worker, n in workers for request in session.ask(n, worker=worker, wait=False)
    ]
    is_long = any(request.wanted >= LONG_ROUND for _, request in asked)
    for _, request in asked if is_long else reversed(asked):
        tell(session, request)
    return [f"{worker} {request.token}" for worker, request in asked]


def tell(session: sp.Session, request: Any) -> None:
    if session.is_told(request.token):
        return
    value = measured(session.name, request.token)
    is_learning = session.problem.noise_scale is None  # from single values alone
    if request.wanted >= LONG_ROUND and not is_learning:
        session.tell(request, mean=value, count=request.wanted)
    else:
        session.tell(request, value)


def go_on(session: sp.Session, clock: Clock) -> dict[str, Any]:
    """Measure until the session ends; everything that it asked for, decided and found on the way."""
    begin, asked = session.fingerprint.position, []
    for _ in range(MOST_STEPS):
        if session.status is not None:
            break
        asked.append(", ".join(step(session, clock, [("anna", 2), ("carl", 1)])))
    outcome = session.outcome
    assert outcome is not None, f"{session.name} did not end within {MOST_STEPS} steps"
    return {
        "asked": asked,
        "decisions": [text for event in session.events(after=begin) for text in decision(event)],
        "status": str(outcome.status),
        "plan": outcome.plan_name,
        "n_measurements": outcome.n_measurements,
        "n_rounds": outcome.n_rounds,
        "counts": outcome.counts.tolist(),
        "events": session.fingerprint.position,
        "checksum": session.fingerprint.checksum,
    }


def decision(event: Event) -> Iterator[str]:
    """The decision that an event records, if it is one, as text: arms with how often, or how it ended."""
    body = json.loads(event.body)
    if event.kind == "asked":
        yield " ".join(f"{arm}x{count}" for arm, count in body["counts"])
    elif event.kind == "stopped":
        yield f"{body['status']}: {body['plan']}"
