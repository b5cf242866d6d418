"""Damage is noticed and never changed by a check; what SQLite's shell recovers is checked by the chain."""

import random
import shutil
import sqlite3
import subprocess
import threading
from contextlib import closing

import pytest

from common import refuses
from store_contract import note
from store_workers import change
from surepick.errors import StoreError
from surepick.store import open_store
from surepick.store.doctor import back_up, examine

N_EVENTS = 2000


@pytest.fixture
def path(tmp_path):
    """A file with one log of 2000 events, all of it in the main file."""
    path = tmp_path / "store.db"
    store = open_store(str(path))
    store.create("trips", [note(f"event {i}", f"k{i}") for i in range(1, N_EVENTS + 1)])
    store.close()
    assert not path.with_name("store.db-wal").exists()
    return path


def test_a_healthy_store_is_well_also_in_use_and_a_plain_copy_of_it_lacks_values(path):
    diagnosis = examine(str(path))
    assert (diagnosis.is_well, diagnosis.advice) == (True, "")
    log = open_store(str(path)).log("trips")
    log.append([note("in the write-ahead log")], expected=log.head())
    assert examine(str(path)).logs[0].n_proved == N_EVENTS + 1
    shutil.copy(path, path.with_name("cp.db"))  # why there is `backup`
    assert examine(str(path.with_name("cp.db"))).logs[0].n_proved == N_EVENTS
    assert back_up(str(path), path.with_name("backup.db")).logs[0].n_proved == N_EVENTS + 1


@pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
def test_a_truncated_file_is_noticed_and_left_alone(path, share):
    with path.open("r+b") as stream:
        stream.truncate(int(path.stat().st_size * share))
    before = path.read_bytes()
    diagnosis = examine(str(path))
    assert diagnosis.complaints
    assert "sqlite3" in diagnosis.advice
    assert path.read_bytes() == before


def test_every_flipped_bit_that_matters_is_noticed(path):
    whole, chance, noticed = path.read_bytes(), random.Random(1), 0
    for _ in range(25):
        flipped = bytearray(whole)
        flipped[chance.randrange(4096, len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(flipped))
        diagnosis = examine(str(path))
        noticed += not diagnosis.is_well
    assert noticed > 12  # the others hit unused bytes


def test_of_a_file_with_a_wiped_page_the_beginning_is_proved(path):
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 4096] = bytes(4096)
    path.write_bytes(bytes(whole))
    log = examine(str(path)).logs[0]
    assert not log.is_well
    assert N_EVENTS / 4 < log.n_proved < 3 * N_EVENTS / 4


def shell_recovers(folder):
    """Return whether there is a shell of SQLite here whose `.recover` works; that of Debian 12 does not."""
    with closing(sqlite3.connect(folder / "tiny.db")) as tiny:
        tiny.execute("CREATE TABLE t (a)")
    command = ["sqlite3", str(folder / "tiny.db"), ".recover"]
    return shutil.which("sqlite3") is not None and not subprocess.run(command, capture_output=True).stderr


def test_the_chain_of_what_was_recovered_is_checked(path, tmp_path):
    if shell_recovers(tmp_path):
        with path.open("r+b") as stream:
            stream.truncate(path.stat().st_size * 3 // 4)
        text = subprocess.run(["sqlite3", str(path), ".recover"], capture_output=True, check=False).stdout
        path = tmp_path / "recovered.db"
        subprocess.run(["sqlite3", str(path)], input=text, check=False, capture_output=True)
    else:
        with closing(sqlite3.connect(path)) as connection:  # what a recovery gives: some rows are missing
            connection.execute("DELETE FROM surepick_events WHERE position BETWEEN 700 AND 800")
            connection.commit()
    log = examine(str(path)).logs[0]
    assert not log.is_well
    assert N_EVENTS / 4 < log.n_proved < N_EVENTS


@pytest.mark.parametrize("content", [b"", b"short", b"Dear diary, " * 1000])
def test_a_file_that_is_no_store_is_not_well_and_left_alone(tmp_path, content):
    path = tmp_path / "other.db"
    path.write_bytes(content)
    diagnosis = examine(str(path))
    assert (diagnosis.is_well, diagnosis.logs) == (False, ())
    assert path.read_bytes() == content
    with pytest.raises(StoreError):
        examine(str(tmp_path / "typo.db"))
    assert list(tmp_path.iterdir()) == [path]


def test_a_changed_event_is_found_on_a_server_and_in_a_backup(postgres_url, path):
    for url in (postgres_url, str(path)):
        store = open_store(url)
        if url == postgres_url:
            store.create("trips", [note(str(i)) for i in range(20)])
        assert examine(url).is_well
        change(store, "UPDATE surepick_events SET body = '{}' WHERE position = 7")
        found = examine(url) if url == postgres_url else back_up(url, path.with_name("copy.db"))
        assert (found.logs[0].n_proved, found.is_well) == (6, False)


def test_a_backup_of_a_store_in_use_has_all_that_was_acknowledged(tmp_path):
    url, stop, acknowledged = str(tmp_path / "store.db"), threading.Event(), [1]
    head = open_store(url).create("trips", [note()]).head()

    def write():
        log, last = open_store(url).log("trips"), head
        while not stop.is_set():
            last = log.append([note("x" * 500)], expected=last)
            acknowledged[0] = last.position

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for i in range(3):
            before = acknowledged[0]
            copied = back_up(url, tmp_path / f"copy {i}.db")
            assert copied.is_well
            assert copied.logs[0].n_proved >= before
    finally:
        stop.set()
        writer.join()
    assert sorted(path.name for path in tmp_path.glob("copy 0*")) == ["copy 0.db"]
    restored = open_store(str(tmp_path / "copy 0.db")).log("trips")
    restored.append([note()], expected=restored.head())


def test_a_backup_overwrites_nothing_and_a_server_has_its_own_tools(path, postgres_url):
    other, new = path.with_name("other.db"), path.with_name("new.db")
    other.write_text("mine")
    for url, target, field in (
        (str(path), other, "file"),
        (postgres_url, new, "store"),
        (str(path.with_name("typo.db")), new, "store"),
    ):
        with refuses(field, StoreError):
            back_up(url, target)
    assert (other.read_text(), new.exists()) == ("mine", False)
    with refuses("file", StoreError):
        back_up(str(path), path, replace=True)
    n = len(examine(str(path)).logs)
    assert len(back_up(str(path), other, replace=True).logs) == n
    assert len(examine(str(path)).logs) == n
