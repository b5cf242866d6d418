"""Sessions of plays that surepick 0.1.0 wrote stay what they are: verified and gone on with as then.

The file is explained in `assets/README.md`. If one of these tests fails, the code is wrong, not the file.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

import surepick as sp
from stored_plays import FILE, Clock, begun, decisions, go_on
from surepick.sessions.log_file import LogFile, log_in, put_log
from surepick.store import MemoryStore

KEPT: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
AS_COMMITTED = "15e9bb6feb03d9c1fdf69eef453ed8f15b06722fb5514e9f62a52e134bfa4e14"


def kept_log(name: str) -> LogFile:
    log = log_in({"log": KEPT[name]})
    assert log is not None
    return log


def test_the_original_file_is_what_was_committed() -> None:
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() == AS_COMMITTED


def test_the_finished_session_holds_with_its_certificate_and_gives_the_same_one() -> None:
    store = MemoryStore()
    put_log(store, kept_log("finished"))
    session = sp.Session.load(store, "finished")
    assert session.verify(KEPT["certificate"]).holds
    now = json.loads(json.dumps(session.certificate().to_json()))
    assert {**now, "surepick": KEPT["certificate"]["surepick"]} == KEPT["certificate"]


@pytest.mark.parametrize("keep", [False, True], ids=["from its log", "from a snapshot"])
def test_the_open_session_goes_on_as_it_did_then(keep: bool) -> None:
    store, clock = MemoryStore(), Clock()
    put_log(store, kept_log("open"))
    session = sp.Session.load(store, "open", clock=clock)
    n_before = len(decisions(session))
    if keep:
        session.keep_snapshot()
        session = sp.Session.load(store, "open", clock=clock)
    go_on(session)
    assert decisions(session)[n_before:] == KEPT["continued"]


def test_a_session_that_begins_now_writes_the_same_log() -> None:
    session = begun("finished", Clock())
    go_on(session)
    written = [(event.kind, event.body) for event in session.events()][1:]
    assert written == [(event["kind"], event["body"]) for event in KEPT["finished"]["events"]][1:]
