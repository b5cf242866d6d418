"""What only a store on a disk can go through: crashes, crowds, old files, damage and full disks."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import resource
import signal
import statistics
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store_workers import (
    all_succeed,
    append_until_killed,
    change,
    crowd,
    hold,
    query,
    starting_line,
    storm,
    take_turns,
    wait_for,
)
from surepick.errors import ConflictError, DamageError, StoreError
from surepick.store import START, Draft, Snapshot, Store, open_store
from surepick.store.byte_locks import LockedFile
from surepick.store.events import seal
from surepick.store.write_queue import CHAIRS
from surepick.testing.stores import note

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


def test_a_start_up_storm_of_32_processes_loses_nothing(url: str) -> None:
    assert all_succeed(crowd(32, storm, url))
    keys = [event.key for event in open_store(url).read("trips")][1:]
    assert sorted(map(str, keys)) == sorted(f"{i}-{j}" for i in range(32) for j in range(10))


def test_what_was_acknowledged_before_a_kill_is_there_once(url: str, tmp_path: Path) -> None:
    store = open_store(url)
    store.create("trips", [note()])
    journal, chance = tmp_path / "journal", random.Random(0)
    for attempt in range(10):
        workers = crowd(3, append_until_killed, url, journal, attempt)
        wait_for(lambda: journal.exists() and f"\n{attempt}-" in "\n" + journal.read_text())  # noqa: B023
        time.sleep(chance.uniform(0.0, 0.1))
        for worker in workers:
            worker.kill()
            worker.join()
    acknowledged = journal.read_text().split()
    keys = [str(event.key) for event in store.read("trips")][1:]
    assert len(set(keys)) == len(keys)
    assert set(acknowledged) <= set(keys)
    assert {key + "-twin" for key in keys if "twin" not in key} == {key for key in keys if "twin" in key}
    assert len(keys) - 2 * len(acknowledged) <= 2 * 30  # each worker had at most one append in flight


def test_waiting_ends_with_a_clear_error_and_then_works_again(sqlite_url: str, tmp_path: Path) -> None:
    store = open_store(sqlite_url, patience=0.3)
    head = store.create("trips", [note()])
    (holder,) = crowd(1, hold, sqlite_url, tmp_path / "ready")
    wait_for((tmp_path / "ready").exists)
    with pytest.raises(StoreError, match=r"in use by another process for more than 0\.3 s"):
        store.append("trips", [note()], expected=head)
    assert store.head("trips") == head  # reading never waits
    holder.kill()
    holder.join()
    store.append("trips", [note()], expected=head)


def test_events_are_not_written_where_a_crash_could_lose_them(url: str) -> None:
    store = open_store(url)
    head = store.create("trips", [note()])
    with store.exclusive("trips", durable=False), pytest.raises(StoreError, match="survive a crash"):
        store.append("trips", [note()], expected=head)
    assert store.head("trips") == head


def test_of_a_crowd_everybody_gets_a_turn_at_the_same_rate(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.create("trips", [note()])
    assert all_succeed(crowd(6, take_turns, sqlite_url, 40, 0, starting_line(6)))
    turns = [str(event.key).split("-")[0] for event in store.read("trips")][1:]
    first_done = min(len(turns) - turns[::-1].index(str(i)) for i in range(6))
    turns = turns[:first_done]  # from here on the line is shorter
    turns = [who for who, _ in itertools.groupby(turns)]  # who has had its turn may write once more
    gaps = []
    for i in range(6):
        mine = [place for place, who in enumerate(turns) if who == str(i)]
        gaps += [b - a for a, b in itertools.pairwise(mine)]
    assert statistics.median(gaps) >= 5  # 6 in line; 2 or 3 where all try their luck


def test_a_dead_one_in_line_holds_up_nobody(sqlite_url: str, tmp_path: Path) -> None:
    store = open_store(sqlite_url)
    head = store.create("trips", [note()])
    (holder,) = crowd(1, hold, sqlite_url, tmp_path / "ready")
    wait_for((tmp_path / "ready").exists)
    queue = Path(store.place + "-queue")
    waiting = crowd(3, take_turns, sqlite_url, 1)
    wait_for(lambda: queue.exists() and n_in_line(queue) == 3)
    for process in (waiting[0], waiting[1], holder):
        process.kill()
        process.join()
    assert all_succeed([waiting[2]], timeout=10)
    assert store.head("trips").position == head.position + 1
    assert n_in_line(queue) == 0


def n_in_line(queue: Path) -> int:
    """How many bytes of the file are locked by other processes."""
    with closing(LockedFile(queue, create=False)) as file:
        return sum(not file.lock(chair, 1) for chair in range(CHAIRS))


def test_a_stopped_one_in_line_is_passed_by(sqlite_url: str, tmp_path: Path) -> None:
    store = open_store(sqlite_url)
    head = store.create("trips", [note()])
    (holder,) = crowd(1, hold, sqlite_url, tmp_path / "ready")
    wait_for((tmp_path / "ready").exists)
    queue = Path(store.place + "-queue")
    (stopped,) = crowd(1, take_turns, sqlite_url, 1)
    wait_for(lambda: queue.exists() and n_in_line(queue) == 1)
    os.kill(stopped.pid or 0, signal.SIGSTOP)
    (other,) = crowd(1, take_turns, sqlite_url, 1, 7)
    wait_for(lambda: n_in_line(queue) == 2)
    holder.kill()
    holder.join()
    assert all_succeed([other], timeout=20)
    assert [event.key for event in store.read("trips", after=head)] == ["7-0"]
    os.kill(stopped.pid or 0, signal.SIGCONT)
    assert all_succeed([stopped], timeout=10)


@given(TEXT, st.none() | TEXT, st.floats(allow_nan=False, allow_infinity=False), TEXT)
def test_a_checksum_is_that_of_the_json_text(kind: str, key: str | None, time: float, body: str) -> None:
    (event,) = seal([Draft(kind, body, time, key)], START)
    row = [START.checksum, 1, kind, key, time, body]
    line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    assert event.checksum == hashlib.sha256(line.encode()).hexdigest()


def test_a_forked_child_uses_its_own_connection(url: str) -> None:
    store = open_store(url)
    head = store.create("trips", [note()])
    child = os.fork()
    if child == 0:
        try:
            store.append("trips", [note("child")], expected=head)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.append("trips", [note("parent")], expected=store.head("trips"))
    assert store.head("trips").position == 3


def test_what_a_forked_child_writes_outlives_its_parents_connection(sqlite_url: str) -> None:
    parent = open_store(sqlite_url)
    head = parent.create("trips", [note()])
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store = open_store(sqlite_url)
            for i in range(40):
                head = store.append("trips", [note(str(i))], expected=head)
                os.write(tell, b".")
                time.sleep(0.001)
            os._exit(0)
        except BaseException:
            os._exit(1)
    for _ in range(5):
        os.read(told, 1)
        parent.close()
        open_store(sqlite_url).close()  # the last one to close a file clears up: is it the last?
    assert os.waitpid(child, 0)[1] == 0
    assert parent.head("trips").position == 41
    assert len(list(parent.read("trips"))) == 41


def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    store = open_store(url)
    change(store, "INSERT INTO surepick_schema VALUES (99)")
    with pytest.raises(StoreError, match=r"newer surepick \(schema 99"):
        open_store(url)


def test_a_reader_reads_and_cannot_write(url: str) -> None:
    head = open_store(url).create("trips", [note("a", "k")])
    viewer = open_store(url, read_only=True)
    assert viewer.head("trips") == head
    assert viewer.find("trips", "k") is not None
    for write in (
        lambda: viewer.create("other", [note()]),
        lambda: viewer.append("trips", [note()], expected=head),
        lambda: viewer.claim("trips", ["a"], worker="w", now=0.0, until=1.0),
    ):
        with pytest.raises(StoreError):
            write()
    assert open_store(url).head("trips") == head


@pytest.mark.parametrize("options", [{"read_only": True}, {"create": False}])
def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path: Path, options: dict[str, bool]) -> None:
    with pytest.raises(StoreError, match="there is no store at"):
        open_store(str(tmp_path / "typo.db"), **options)
    assert list(tmp_path.iterdir()) == []


def test_a_lost_connection_is_opened_again(postgres_url: str) -> None:
    import psycopg

    store = open_store(postgres_url)
    head = store.create("trips", [note()])
    store.claim("trips", ["a"], worker="w", now=0.0, until=1.0)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND query LIKE '%surepick%'"
        )
    assert store.head("trips") == head
    assert store.claim("trips", ["a"], worker="w", now=0.0, until=1.0) == ["a"]
    store.append("trips", [note()], expected=head)


def tampered(url: str, statement: str) -> Store:
    store = open_store(url)
    store.create("trips", [note(str(i)) for i in range(20)])
    change(store, statement)
    return store


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE surepick_events SET body = '{}' WHERE position = 7", "event 7 .* does not match"),
        ("UPDATE surepick_events SET time = 2.5 WHERE position = 9", "event 9 .* does not match"),
        ("DELETE FROM surepick_events WHERE position = 5", "lacks event 5"),
    ],
)
def test_a_changed_event_is_noticed(url: str, statement: str, message: str) -> None:
    with pytest.raises(DamageError, match=message):
        list(tampered(url, statement).read("trips"))


def test_a_damaged_snapshot_counts_as_none(url: str) -> None:
    store = open_store(url)
    head = store.create("trips", [note()])
    store.save_snapshot("trips", Snapshot(head, b"abc"))
    change(store, "UPDATE surepick_snapshots SET body_checksum = 'x'")
    assert store.snapshot("trips") is None


def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.db"
    path.write_text("Dear diary, " * 200)
    with pytest.raises(DamageError, match="not a SQLite file"):
        open_store(str(path))
    assert path.read_text() == "Dear diary, " * 200


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_file_that_is_gone_takes_nothing_more(tmp_path: Path, what: str) -> None:
    path, aside = tmp_path / "store.db", tmp_path / "aside.db"
    store = open_store(str(path))
    head = store.create("trips", [note()])
    path.rename(aside)
    if what == "replaced":
        with closing(open_store(str(tmp_path / "other.db"))) as other:
            other.create("trips", [note()])
        (tmp_path / "other.db").rename(path)
    for attempt in (
        lambda: store.append("trips", [note("lost")], expected=head),
        lambda: store.create("other", [note("lost")]),
        lambda: store.claim("trips", ["a"], worker="w", now=0.0, until=1.0),
        lambda: store.head("trips"),
        store.exclusive("trips").__enter__,
    ):
        with pytest.raises(StoreError, match="no longer the file that was opened"):
            attempt()
    store.close()
    with pytest.raises(StoreError, match="no longer the file that was opened"):
        store.head("trips")
    assert path.exists() == (what == "replaced")
    aside.rename(path)
    assert store.append("trips", [note("kept")], expected=head) == store.head("trips")


def test_a_new_store_does_not_wipe_out_the_rest_of_one_that_was_moved(tmp_path: Path) -> None:
    path, aside = tmp_path / "store.db", tmp_path / "aside.db"
    store = open_store(str(path))
    head = store.create("trips", [note()])
    path.rename(aside)
    with pytest.raises(StoreError, match=r"store\.db-wal is, the last part of a store that was moved"):
        open_store(str(path))
    assert not path.exists()
    aside.rename(path)
    assert open_store(str(path)).head("trips") == head


def test_a_program_may_change_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store("store.db")
    head = store.create("trips", [note()])
    store.close()
    monkeypatch.chdir("/")
    assert store.head("trips") == head


def test_the_files_of_a_new_store_are_its_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = open_store(str(tmp_path / "store.db"))
        store.create("trips", [note()])
        (holder,) = crowd(1, hold, str(tmp_path / "store.db"), tmp_path / "ready")
        wait_for((tmp_path / "ready").exists)
        (waiting,) = crowd(1, take_turns, str(tmp_path / "store.db"), 1)
        wait_for((tmp_path / "store.db-queue").exists)
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("store.db*")}
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm", "store.db-queue"), 0o600)
    holder.kill()
    holder.join()
    assert all_succeed([waiting])


def test_a_store_that_its_owner_shares_stays_shared(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    path.chmod(0o660)
    store = open_store(str(path))
    store.create("trips", [note()])
    assert store._driver.queue.join() is not None  # type: ignore[attr-defined]
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o660}


def test_every_commit_is_synchronised(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.create("trips", [note()])
    assert query(store, "PRAGMA journal_mode") == [("wal",)]
    with store.exclusive("trips"):
        assert query(store, "PRAGMA synchronous") == [(1,)]  # the store waits for the disk itself


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What the write-ahead log held whenever somebody waited for it to be on disk."""
    seen, fdatasync = [], os.fdatasync

    def look_and_sync(handle: int) -> None:
        seen.append(Path(f"/proc/self/fd/{handle}").read_bytes())
        fdatasync(handle)

    monkeypatch.setattr(os, "fdatasync", look_and_sync)
    return seen


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
def test_what_is_acknowledged_was_on_disk_before(sqlite_url: str, synced: list[bytes]) -> None:
    store = open_store(sqlite_url)
    head = store.create("trips", [note("the first one")])
    assert b"the first one" in synced[-1]
    head = store.append("trips", [note("the second one")], expected=head)
    assert b"the second one" in synced[-1]
    with store.exclusive("trips"):
        store.append("trips", [note("the third one")], expected=head)
        assert b"the third one" not in synced[-1]
    assert b"the third one" in synced[-1]
    n_synced = len(synced)
    store.claim("trips", ["a"], worker="w", until=9.0, now=0.0)  # may be lost
    assert len(synced) == n_synced
    store.settle()
    assert len(synced) == n_synced + 1


def test_what_did_not_reach_the_disk_is_not_acknowledged(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(sqlite_url)
    head = store.create("trips", [note()])

    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", fail)
        with pytest.raises(StoreError, match="the disk is full or failing"):
            store.append("trips", [note("unsure")], expected=head)
        with pytest.raises(StoreError, match="the disk is full or failing"):
            store.settle()
    store.settle()
    store.append("trips", [note("sure")], expected=store.head("trips"))


def test_a_full_disk_is_explained_and_what_was_acknowledged_stays(sqlite_url: str) -> None:
    store = open_store(sqlite_url)
    store.create("trips", [note()])
    child = os.fork()
    if child == 0:
        os._exit(fill_the_disk(sqlite_url))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status > 3  # events acknowledged; negative or small: it failed in another way
    assert len(list(store.read("trips"))) == 1 + status
    store.append("trips", [note()], expected=store.head("trips"))


def fill_the_disk(url: str) -> int:
    """Append under a limit on the size of files until it is refused; how many were acknowledged."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
    store = open_store(url)
    head = store.head("trips")
    for done in range(200):
        try:
            head = store.append("trips", [note("x" * 20_000)], expected=head)
        except StoreError as error:
            return done if "disk is full" in str(error) else 1
    return 2


def test_a_refused_first_event_leaves_the_name_free(url: str) -> None:
    store = open_store(url)
    with pytest.raises(ConflictError):
        store.create("trips", [note("a", "k"), note("b", "k")])
    assert store.names() == []
    assert open_store(url).create("mines", [note()]).position == 1
    assert store.create("trips", [note()]) == store.head("trips")
    assert [event.position for event in store.read("trips", after=START)] == [1]
