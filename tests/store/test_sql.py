"""What only a store on a disk can go through: crashes, many processes, forks, damage, replaced files."""

import gc
import hashlib
import json
import os
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store_contract import append_held, note
from store_workers import (
    all_succeed,
    append_one,
    append_until_killed,
    change,
    crowd,
    hold,
    query,
    storm,
    wait_for,
)
from surepick.errors import DamageError, StoreError
from surepick.store import START, Draft, Snapshot, open_store
from surepick.store.connections import Database
from surepick.store.log import checked, seal

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def log(url):
    return open_store(url).create("trips", [note()])


def test_a_start_up_storm_of_32_processes_loses_nothing(url):
    assert all_succeed(crowd(32, storm, url))
    keys = [event.key for event in open_store(url).log("trips").read()][1:]
    assert sorted(map(str, keys)) == sorted(f"{i}-{j}" for i in range(32) for j in range(10))


def test_what_was_acknowledged_before_a_kill_is_there_once(log, url, tmp_path):
    journal, chance = tmp_path / "journal", random.Random(0)
    for attempt in range(10):
        workers = crowd(3, append_until_killed, url, journal, attempt)
        wait_for(lambda: journal.exists() and f"\n{attempt}-" in "\n" + journal.read_text())  # noqa: B023
        time.sleep(chance.uniform(0.0, 0.1))
        for worker in workers:
            worker.kill()
            worker.join()
    acknowledged = journal.read_text().split()
    keys = [str(event.key) for event in log.read()][1:]
    assert len(set(keys)) == len(keys)
    assert set(acknowledged) <= set(keys)
    assert {key + "-twin" for key in keys if "twin" not in key} == {key for key in keys if "twin" in key}
    assert len(keys) - 2 * len(acknowledged) <= 2 * 30  # each worker had at most one append in flight


def test_waiting_ends_with_a_clear_error_and_then_works_again(sqlite_url, tmp_path, monkeypatch):
    monkeypatch.setattr(Database, "patience", 0.3)
    log = open_store(sqlite_url).create("trips", [note()])
    head = log.head()
    (holder,) = crowd(1, hold, sqlite_url, tmp_path / "ready")
    wait_for((tmp_path / "ready").exists)
    with pytest.raises(StoreError):
        log.append([note()], expected=head)
    assert log.head() == head  # reading never waits
    holder.kill()
    holder.join()
    log.append([note()], expected=head)


def test_events_are_not_written_where_a_crash_could_lose_them(log):
    head = log.head()
    with log.transaction(after=head, durable=False), pytest.raises(StoreError):
        log.append([note()], expected=head)
    assert log.head() == head


def test_a_writer_that_dies_while_it_waits_holds_up_no_other(sqlite_url, tmp_path):
    log = open_store(sqlite_url).create("trips", [note()])
    head = log.head()
    (holder,) = crowd(1, hold, sqlite_url, tmp_path / "ready")
    wait_for((tmp_path / "ready").exists)
    waiting = crowd(3, append_one, sqlite_url)
    time.sleep(0.2)
    os.kill(waiting[1].pid or 0, signal.SIGSTOP)
    for process in (waiting[0], holder):
        process.kill()
        process.join()
    assert all_succeed([waiting[2]], timeout=10)
    assert log.head().position == head.position + 1
    os.kill(waiting[1].pid or 0, signal.SIGCONT)
    assert all_succeed([waiting[1]], timeout=10)


@given(TEXT, st.none() | TEXT, st.floats(allow_nan=False, allow_infinity=False), TEXT)
def test_a_checksum_is_that_of_the_json_text(kind, key, time, body):
    (event,) = seal([Draft(kind, body, time, key)], START)
    row = [START.checksum, 1, kind, key, time, body]
    line = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    assert event.checksum == hashlib.sha256(line.encode()).hexdigest()


@pytest.mark.parametrize("version", [2, 99])
def test_a_store_of_another_schema_is_refused_and_left_alone(log, url, version):
    head = log.head()
    change(log, f"UPDATE surepick_schema SET version = {version}")
    for read_only in (False, True):
        with pytest.raises(StoreError) as caught:
            open_store(url, read_only=read_only)
        assert str(version) in str(caught.value)
    assert log.head() == head


def test_the_number_of_a_deleted_log_is_never_used_again(url):
    store = open_store(url)
    numbers = []
    for _ in range(3):
        log = store.create("trips", [note()])
        head = log.head()
        numbers += [number for (number,) in query(store, "SELECT id FROM surepick_sessions")]
        log.delete(expected=head)
    assert len(set(numbers)) == 3


def test_a_reader_reads_and_cannot_write(url):
    log = open_store(url).create("trips", [note("a", "k")])
    head = log.head()
    store = open_store(url, read_only=True)
    viewer = store.log("trips")
    assert viewer.head() == head
    assert viewer.find("k") is not None
    for write in (
        lambda: store.create("other", [note()]),
        lambda: viewer.append([note()], expected=head),
        lambda: viewer.claim(["a"], worker="w", now=0.0, until=1.0),
    ):
        with pytest.raises(StoreError):
            write()
    assert log.head() == head


@pytest.mark.parametrize("options", [{"read_only": True}, {"create": False}])
def test_a_store_that_is_not_there_is_not_made_by_looking(tmp_path, options):
    with pytest.raises(StoreError):
        open_store(str(tmp_path / "typo.db"), **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_a_file_that_is_gone_takes_nothing_more(tmp_path, what):
    path, aside = tmp_path / "store.db", tmp_path / "aside.db"
    store = open_store(str(path))
    log = store.create("trips", [note()])
    head = log.head()
    path.rename(aside)
    if what == "replaced":
        with closing(open_store(str(tmp_path / "other.db"))) as other:
            other.create("trips", [note()])
        (tmp_path / "other.db").rename(path)
    for attempt in (
        lambda: log.append([note("lost")], expected=head),
        lambda: store.create("other", [note("lost")]),
        lambda: log.claim(["a"], worker="w", now=0.0, until=1.0),
        log.head,
        log.transaction(after=head).__enter__,
    ):
        with pytest.raises(StoreError):
            attempt()
    store.close()
    with pytest.raises(StoreError):
        log.head()
    assert path.exists() == (what == "replaced")
    aside.rename(path)
    assert log.append([note("kept")], expected=head) == log.head()


def test_every_append_is_synchronised(sqlite_url):
    log = open_store(sqlite_url).create("trips", [note()])
    assert query(log, "PRAGMA journal_mode") == [("wal",)]
    with log.transaction(after=log.head()):
        assert query(log, "PRAGMA synchronous") == [(2,)]  # FULL
    with log.transaction(after=log.head(), durable=False):
        assert query(log, "PRAGMA synchronous") == [(1,)]  # leases may be lost


def test_a_reader_sees_a_writer_that_comes_later(tmp_path):
    url = str(tmp_path / "store.db")
    with closing(open_store(url)) as store:
        head = store.create("trips", [note()]).head()
    viewer = open_store(url, read_only=True).log("trips")
    assert viewer.head() == head
    later = open_store(url).log("trips").append([note()], expected=head)
    assert viewer.head() == later


@pytest.mark.parametrize("how", ["a dropped store", "another thread", "an open transaction"])
def test_no_fork_loses_what_its_child_writes(sqlite_url, how):
    """A child with a connection of its parent would write to a log that the parent's last close deletes."""
    store, others = open_store(sqlite_url), ThreadPoolExecutor(1)
    log = store.create("trips", [note()])
    head = log.head()
    others.submit(log.head).result()
    if how == "a dropped store":
        del store, log

    with log.transaction(after=head) if how == "an open transaction" else nullcontext():
        ready, go, child = os.pipe(), os.pipe(), os.fork()
        if child == 0:
            os._exit(append_when_told(sqlite_url, head, ready[1], go[0]))
        os.read(ready[0], 1)
    others.shutdown()
    if how != "a dropped store":
        store.close()
    gc.collect()  # now the parent has no connection any more
    os.write(go[1], b".")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == (how == "an open transaction")  # then it is refused
    assert open_store(sqlite_url).log("trips").head().position == 2 - code


def append_when_told(url, head, ready, go):
    """Open a store, wait for a word, and append; 1 if the store refuses."""
    try:
        store = open_store(url)
        log = store.log("trips")
        os.write(ready, b".")
        os.read(go, 1)
        log.append([note("child")], expected=head)
        store.close()
        return 0
    except StoreError:
        os.write(ready, b".")
        return 1


@pytest.mark.parametrize("column", ["digest", "checksum"])
def test_a_snapshot_that_was_changed_or_is_of_another_log_counts_as_none(log, column):
    head = log.head()
    log.save_snapshot(Snapshot(head, b"abc"))
    assert log.snapshot() is not None
    change(log, f"UPDATE surepick_snapshots SET {column} = 'x'")
    assert log.snapshot() is None


@pytest.mark.parametrize(
    ("statement", "n_read"),
    [
        ("UPDATE surepick_events SET body = '{}' WHERE position = 7", 6),
        ("UPDATE surepick_events SET time = 2.5 WHERE position = 9", 8),
        ("DELETE FROM surepick_events WHERE position = 5", 4),
    ],
)
def test_a_changed_event_is_noticed(url, statement, n_read):
    store, read = open_store(url), []
    log = store.create("trips", [note(str(i)) for i in range(20)])
    change(log, statement)
    with pytest.raises(DamageError):
        read.extend(iter(log.read()))
    assert len(read) == n_read


@pytest.mark.parametrize("digits", [0, 1, 16, 63])
def test_a_chain_of_short_checksums_is_no_chain(digits):
    """A log that was changed and sealed again with fewer digits is refused at its first event."""
    line = f'["{START.checksum}",1,"noted",null,0.0,"{{}}"]'
    short = hashlib.sha256(line.encode()).hexdigest()[:digits]
    with pytest.raises(DamageError):
        next(checked([(1, "noted", None, 0.0, "{}", short)], START, "trips"))
    assert len(list(checked(seal([Draft("noted", "{}", 0.0)] * 3, START), START, "trips"))) == 3


def test_the_files_of_a_store_have_the_owners_permissions(tmp_path, monkeypatch):
    """0600 for a new one; one that its owner shares stays shared. The program may change its folder."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0)
    try:
        store = open_store("store.db")
        log = store.create("trips", [note()])
        head = log.head()
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob("store.db*")}
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)
    store.close()
    monkeypatch.chdir("/")
    (tmp_path / "store.db").chmod(0o660)
    log.append([note()], expected=head)
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o660}


def test_files_that_are_no_store_and_leftovers_of_one_are_left_alone(tmp_path):
    letter, path, aside = tmp_path / "letter.db", tmp_path / "store.db", tmp_path / "aside.db"
    letter.write_text("Dear diary, " * 200)
    with pytest.raises(DamageError):
        open_store(str(letter))
    assert letter.read_text() == "Dear diary, " * 200
    store = open_store(str(path))
    head = store.create("trips", [note()]).head()
    path.rename(aside)
    with pytest.raises(StoreError):  # its write-ahead log is still there
        open_store(str(path))
    assert not path.exists()
    aside.rename(path)
    assert open_store(str(path)).log("trips").head() == head


def test_threads_go_on_while_their_process_forks_and_nothing_is_lost(sqlite_url):
    store, stop = open_store(sqlite_url), threading.Event()
    log = store.create("trips", [note()])

    def work(name, most):
        for n in range(most):
            if stop.is_set():
                return n
            append_held(log, note(key=f"{name} {n}"))
        return most

    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(work, f"thread {i}", 10**6) for i in range(3)]
        for k in range(15):
            child = os.fork()
            if child == 0:
                os._exit(0 if work(f"child {k}", 2) == 2 else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
    written = sum(one.result() for one in done) + 2 * 15
    assert log.head().position == written + 1
