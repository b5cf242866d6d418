"""A damaged store is noticed, explained and read as far as it goes, and never changed by looking."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from store_workers import change
from surepick.errors import StoreError
from surepick.store import open_store
from surepick.store.doctor import examine
from surepick.store.salvage import carve
from surepick.testing.stores import note

N_EVENTS = 2000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one log of 2000 events, all of it in the main file."""
    path = tmp_path / "store.db"
    store = open_store(str(path))
    store.create("trips", [note(f"event {i}", f"k{i}") for i in range(1, N_EVENTS + 1)])
    store.close()
    assert not path.with_name("store.db-wal").exists()
    return path


def test_a_healthy_store_is_well(path: Path) -> None:
    diagnosis = examine(str(path))
    assert diagnosis.is_well
    assert diagnosis.log("trips").n_proved == N_EVENTS


def test_a_healthy_store_in_use_is_well(path: Path) -> None:
    store = open_store(str(path))
    store.append("trips", [note("in the write-ahead log")], expected=store.head("trips"))
    assert examine(str(path)).log("trips").n_proved == N_EVENTS + 1


@pytest.mark.parametrize("share", [0.9, 0.5, 0.2])
def test_of_a_truncated_file_the_rest_is_read(path: Path, share: float) -> None:
    size = path.stat().st_size
    with path.open("r+b") as stream:
        stream.truncate(int(size * share))
    before = path.read_bytes()
    diagnosis = examine(str(path))
    assert not diagnosis.is_well
    assert diagnosis.complaints
    log = diagnosis.log("trips")
    assert (share - 0.2) * N_EVENTS < log.n_proved <= len(log.events) < N_EVENTS
    assert log.n_lost == N_EVENTS - len(log.events)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["store.db"]


def test_every_flipped_bit_that_matters_is_noticed_and_what_is_proved_is_true(path: Path) -> None:
    whole = path.read_bytes()
    chance = random.Random(1)
    noticed = 0
    for _ in range(40):
        place = chance.randrange(4096, len(whole))
        flipped = bytearray(whole)
        flipped[place] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(flipped))
        diagnosis = examine(str(path))
        for log in diagnosis.logs:
            for event, proved in zip(log.events, log.proved, strict=True):
                assert not proved or event.body == f'{{"text":"event {event.position}"}}'
        noticed += not diagnosis.is_well
    assert noticed > 20  # the others hit unused bytes


def test_a_lost_first_page_loses_the_names_and_not_the_events(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[100:4096] = bytes(3996)
    path.write_bytes(bytes(whole))
    (log,) = examine(str(path)).logs
    assert (log.name, log.n_proved) == ("session 1", N_EVENTS)


def test_long_events_are_read_across_pages(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(str(path))
    store.create("trips", [note("x" * size) for size in (10, 900, 1100, 5000, 70_000, 1_000_000)])
    store.close()
    (found,) = ({event for _, event in carve(path)},)
    assert sorted(found) == list(open_store(str(path)).read("trips"))


def test_a_damaged_beginning_is_put_right_in_the_copy_only(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[3] ^= 8
    path.write_bytes(bytes(whole))
    diagnosis = examine(str(path))
    assert "first bytes" in diagnosis.complaints[0]
    assert diagnosis.log("trips").n_proved == N_EVENTS
    assert path.read_bytes() == bytes(whole)


@pytest.mark.parametrize("content", [b"", b"short", b"Dear diary, " * 1000])
def test_something_else_is_said_to_be_something_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.db"
    path.write_bytes(content)
    diagnosis = examine(str(path))
    assert not diagnosis.is_well
    assert diagnosis.logs == ()
    assert path.read_bytes() == content


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store at"):
        examine(str(tmp_path / "typo.db"))


def test_a_changed_event_in_a_database_is_found(postgres_url: str) -> None:
    store = open_store(postgres_url)
    store.create("trips", [note(str(i)) for i in range(20)])
    assert examine(postgres_url).is_well
    change(store, "UPDATE surepick_events SET body = '{}' WHERE position = 7")
    log = examine(postgres_url).log("trips")
    assert (log.n_proved, len(log.events), log.is_well) == (19, 20, False)
