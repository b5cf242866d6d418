"""Sessions that surepick 0.1.0 wrote stay what they are: read, verified, certified and gone on with as then.

The files are explained in `assets/README.md`. If one of these tests fails, the code is wrong, not the file.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import stored_sessions as stored
import surepick as sp
from stored_sessions import CHANGING, STORED, Clock, begun_with, opened, version_now
from surepick.cli import app
from surepick.policies import POLICIES
from surepick.store import Store, open_store

FINISHED, OPEN = stored.names("finished"), stored.names("open")
OF_CHANGING = [name for name in FINISHED + OPEN if name.split()[0] in CHANGING]
CONTINUED = json.loads(stored.CONTINUED.read_text(encoding="utf-8"))
NEEDS_ITS_WHOLE_LOG = {"extended open"}  # the policy started over after its snapshot


@pytest.fixture
def file(memory_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the store."""
    copy = memory_disk / f"{tmp_path_factory.mktemp('stored').name}.db"
    copy.write_bytes(stored.STORE.read_bytes())
    yield copy
    for left in copy.parent.glob(f"{copy.name}*"):
        left.unlink()


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    place = open_store(f"sqlite:///{file}", create=False)
    yield place
    place.close()


def skip_if_its_version_has_changed(store: Store, name: str) -> None:
    """Only the policies in `CHANGING` may have another version; what then holds is tested below."""
    policy, version = begun_with(store, name)
    if version != version_now(store, name):
        assert policy in CHANGING, f"{policy} has another version than the one that stored sessions have"
        pytest.skip(f"{policy} is no longer at version {version}")


def change(file: Path, statement: str, *parameters: Any) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement, parameters)


def snapshot_positions() -> dict[str, int]:
    query = (
        "SELECT name, p.position FROM surepick_snapshots p JOIN surepick_sessions s ON s.id = p.session_id"
    )
    with closing(sqlite3.connect(f"file:{stored.STORE}?immutable=1", uri=True)) as connection:
        return dict(connection.execute(query).fetchall())


def looks(session: sp.Session) -> list[Any]:
    """What can be seen of an open session."""
    return [session.status, session.pending(), session.leases(), session.standing(), session.fingerprint]


def test_every_policy_has_a_finished_and_an_open_session(store: Store) -> None:
    for names in (FINISHED, OPEN):
        assert {begun_with(store, name)[0] for name in names} == set(POLICIES) - stored.LATER


def test_the_original_file_is_what_was_committed() -> None:
    assert not list(stored.ASSETS.glob("sessions_v0_1.db-*")), "somebody opened the original: open a copy"


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_session_gives_its_certificate_byte_for_byte(store: Store, name: str) -> None:
    skip_if_its_version_has_changed(store, name)
    kept = stored.certificate_file(name).read_text(encoding="utf-8")
    session = opened(store, name)
    assert stored.certificate_text(session) == stored.as_written_now(kept)
    assert session.verify().holds, session.verify().objections
    assert session.verify(json.loads(kept)).holds, session.verify(json.loads(kept)).objections
    wrong = {**json.loads(kept), "n_measurements": 1}
    assert not session.verify(wrong).holds


def way_and_name() -> Iterator[tuple[str, str]]:
    """How open sessions can be opened."""
    yield from (("from its snapshot", name) for name in snapshot_positions())
    yield from (("from its log alone", name) for name in OPEN)


@pytest.mark.parametrize(("way", "name"), list(way_and_name()))
def test_an_open_session_goes_on_as_it_did(file: Path, store: Store, way: str, name: str) -> None:
    skip_if_its_version_has_changed(store, name)
    if way == "from its log alone":
        change(file, "DELETE FROM surepick_snapshots")
    clock = Clock(STORED)
    session = opened(store, name, clock=clock)
    assert session.verify().holds, session.verify().objections
    assert stored.go_on(session, clock) == CONTINUED[name]
    assert session.verify(session.certificate().to_json()).holds
    again = opened(store, name)
    assert again.certificate() == session.certificate()


@pytest.mark.parametrize("name", [name for name in snapshot_positions() if name not in NEEDS_ITS_WHOLE_LOG])
def test_a_snapshot_stands_for_the_log_before_it(file: Path, store: Store, name: str) -> None:
    """The log before the snapshot is taken away, so that the session can be opened from nothing else."""
    skip_if_its_version_has_changed(store, name)
    if sp.__version__ != stored.WRITTEN_BY:
        pytest.skip("snapshots of another surepick are not read: the log is")
    whole = looks(opened(store, name, clock=Clock(STORED)))
    before = (
        "position > 1 AND position < ? AND session_id = (SELECT id FROM surepick_sessions WHERE name = ?)"
    )
    change(file, f"DELETE FROM surepick_events WHERE {before}", snapshot_positions()[name], name)
    assert looks(opened(store, name, clock=Clock(STORED))) == whole


def test_open_sessions_were_left_in_the_middle_of_things(store: Store) -> None:
    """So that what the other tests find means something: tokens in hand, measurements made ahead."""
    sessions = [opened(store, name, clock=Clock(STORED)) for name in OPEN if name not in OF_CHANGING]
    assert all(session.pending() and session.leases() for session in sessions)
    assert sum(session.ledger().tapes.n_ahead > 0 for session in sessions) > len(sessions) / 2


@pytest.mark.parametrize("name", OF_CHANGING)
@pytest.mark.parametrize("version", ["the version now", "another version"])
def test_a_session_of_another_version_is_refused_clearly_and_stays_readable(
    file: Path, store: Store, name: str, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, begun = begun_with(store, name)
    if version == "another version":
        monkeypatch.setattr(POLICIES[policy], "version", 99)
    now = version_now(store, name)
    if begun == now:
        assert opened(store, name).verify().holds
    else:
        with pytest.raises(sp.SurepickError, match=f"{policy} version {begun}.* version {now}"):
            opened(store, name)
    assert_readable(file, store, name)
    listed = json.loads(CliRunner().invoke(app, ["list", "--store", str(file), "--json"]).stdout)
    (row,) = [row for row in listed if row["session"] == name]
    if begun != now:
        assert f"version {now}" in row["status"]
    elif name in FINISHED:
        assert row["status"] == "confident"


def assert_readable(file: Path, store: Store, name: str) -> None:
    """Whatever the version: log, measurements, and how it ended."""
    events = list(store.read(name))
    log = CliRunner().invoke(app, ["log", "--last", "0", "--session", name, "--store", str(file), "--json"])
    assert [row["body"] for row in json.loads(log.stdout)] == [json.loads(event.body) for event in events]
    told = [json.loads(event.body) for event in events if event.kind == "measured"]
    rescued = file.with_suffix(".csv")
    assert CliRunner().invoke(app, ["doctor", "--store", str(file), "--rescue", str(rescued)]).exit_code == 0
    with rescued.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["session"] == name]
    rescued.unlink()
    assert [(row["token"], float(row["value"])) for row in rows] == [
        (f"{body['arm']}.{body['index']}", body["value"]) for body in told
    ]
    if name in FINISHED:
        kept = json.loads(stored.certificate_file(name).read_text(encoding="utf-8"))
        end = events[kept["log_position"] - 1]
        assert (end.kind, end.checksum) == ("stopped", kept["log_checksum"])
        assert json.loads(end.body) == {"status": kept["status"], "plan": kept["plan"]}
