"""What can still be read of a damaged store; it looks at a copy and changes nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surepick.errors import DamageError, StoreError
from surepick.store import migrations
from surepick.store.drivers import Driver, driver_for
from surepick.store.events import START, Event, Head, is_successor
from surepick.store.salvage import carve

CHUNK = 4096  # events read at once while nothing is wrong
SMALLEST = 512  # bytes; no SQLite file is shorter
LONGEST_END = 2**36  # bytes; a header that asks for more than this is itself damaged
_MAGIC = b"SQLite format 3\x00"

Rows = list[tuple[Any, ...]]
Query = Callable[[str], Rows]


@dataclass(frozen=True)
class LogHealth:
    """What is left of one log."""

    name: str
    head: Head  # where the log said that it ends
    events: tuple[Event, ...]  # every event that could be read, in order
    proved: tuple[bool, ...]  # for each of them, whether it fits the checksum of the one before it

    @property
    def n_proved(self) -> int:
        """How many events are exactly what was written."""
        return sum(self.proved)

    @property
    def n_lost(self) -> int:
        """How many events could not be read."""
        return self.head.position - len(self.events)

    @property
    def is_well(self) -> bool:
        """Whether every event is there and is what was written."""
        whole = self.n_lost == 0 and all(self.proved)
        return whole and (self.events[-1].head if self.events else START) == self.head


@dataclass(frozen=True)
class Diagnosis:
    """What a look at a store found."""

    place: str
    schema: int | None
    complaints: tuple[str, ...]  # in words, about the store as a whole
    logs: tuple[LogHealth, ...]

    @property
    def is_well(self) -> bool:
        """Whether nothing at all is wrong."""
        return not self.complaints and all(log.is_well for log in self.logs)

    def log(self, name: str) -> LogHealth:
        """What is left of the log with this name."""
        for log in self.logs:
            if log.name == name:
                return log
        raise DamageError(f"of session {name!r} nothing could be read in {self.place}")


def examine(url: str) -> Diagnosis:
    """Everything that can be read of the store at this address, and all that is wrong with it."""
    if url.startswith("memory:"):
        raise StoreError("a store in memory has no file that could be damaged; name a file or a database")
    driver = driver_for(url, read_only=True)
    if not driver.exists():
        raise StoreError(f"there is no store at {driver.place}; check the path")
    if driver.dialect != "sqlite":
        return _examine(driver, driver.place, [])
    with tempfile.TemporaryDirectory(prefix="surepick-doctor-") as folder:
        copy, complaints = _copy(Path(driver.place), Path(folder))
        return _examine(driver_for(str(copy), read_only=False), driver.place, complaints)


def _copy(path: Path, folder: Path) -> tuple[Path, list[str]]:
    """A copy of a SQLite file and of its write-ahead log, mended as far as it takes to open it."""
    copy = folder / "store.db"
    shutil.copyfile(path, copy)
    wal = path.with_name(path.name + "-wal")
    if wal.exists():
        shutil.copyfile(wal, folder / "store.db-wal")
    return copy, [*_mend_beginning(copy), *_mend_end(copy)]


def _mend_beginning(copy: Path) -> Iterator[str]:
    with copy.open("r+b") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC and copy.stat().st_size > SMALLEST:
            stream.seek(0)
            stream.write(_MAGIC)
            yield "the first bytes are not those of a SQLite file (in the copy they were put right)"


def _mend_end(copy: Path) -> Iterator[str]:
    """SQLite refuses to open a file that is too short; with an empty end it reads what is there."""
    size = copy.stat().st_size
    if size <= SMALLEST:
        return
    with copy.open("r+b") as stream:
        header = stream.read(32)
        page_size, n_pages = int.from_bytes(header[16:18], "big"), int.from_bytes(header[28:32], "big")
        missing = page_size * n_pages - size
        if 0 < missing < LONGEST_END:
            stream.truncate(size + missing)
            yield f"the file ends {missing} bytes too early: it was cut off"


def _examine(driver: Driver, place: str, complaints: list[str]) -> Diagnosis:
    complaints = list(complaints)
    with _connected(driver, complaints) as query:
        if driver.dialect == "sqlite":
            complaints += _integrity(query)
        schema = _schema(query, complaints)
        logs, ends = {}, _ends(query)
        for number, name, position, checksum in _sessions(query):
            if ends.pop(number, 0) > position:
                complaints.append(
                    f"session {name!r} has events after event {position}, where it says it ends"
                )
            logs[number] = _health(name, position, checksum, list(_readable(query, number, position)))
        complaints += [f"there are events of a session that is not listed (number {n})" for n in sorted(ends)]
    if driver.dialect == "sqlite" and not (logs and all(log.is_well for log in logs.values())):
        _add_carved(logs, Path(driver.place))
    return Diagnosis(place, schema, tuple(complaints), tuple(logs.values()))


def _add_carved(logs: dict[int, LogHealth], path: Path) -> None:
    """Add the events that stand in the file but could not be reached."""
    carved: dict[int, list[Event]] = defaultdict(list)
    for session_id, event in carve(path):
        carved[session_id].append(event)
    for session_id, found in carved.items():
        log = logs.get(session_id)
        if log is None:
            head = max(found).head
            logs[session_id] = _health(f"session {session_id}", *head, found)
        else:
            logs[session_id] = _health(log.name, *log.head, [*log.events, *found])


@contextmanager
def _connected(driver: Driver, complaints: list[str]) -> Iterator[Query]:
    """A function that runs a statement; it raises DamageError when what it asks for cannot be read."""
    try:
        connection = driver.connect()
    except driver.errors as error:
        complaints.append(str(driver.explain(error)))
        yield _nothing
        return

    failures: tuple[type[Exception], ...] = (*driver.errors, UnicodeDecodeError)

    def query(text: str) -> Rows:
        try:
            rows: Rows = connection.execute(text).fetchall()
            return rows
        except failures as error:
            raise DamageError(str(error).strip()) from None

    try:
        yield query
    finally:
        connection.close()


def _nothing(text: str) -> Rows:
    raise DamageError("the store cannot be opened")


def _integrity(query: Query) -> list[str]:
    try:
        found = [str(row[0]) for row in query("PRAGMA integrity_check(5)")]
    except DamageError as error:
        found = [str(error)]
    return [f"SQLite says: {line}" for line in found if line != "ok"]


def _schema(query: Query, complaints: list[str]) -> int | None:
    try:
        version = int(query("SELECT max(version) FROM surepick_schema")[0][0])
    except (DamageError, TypeError):
        complaints.append("the table with the schema version cannot be read")
        return None
    if version > migrations.VERSION:
        complaints.append(
            f"schema {version} is of a newer surepick, this one knows up to {migrations.VERSION}"
        )
    return version


def _sessions(query: Query) -> Rows:
    """Number, name and head of each log that is still listed."""
    try:
        return query("SELECT id, name, position, checksum FROM surepick_sessions ORDER BY id")
    except DamageError:
        return []


def _ends(query: Query) -> dict[int, int]:
    """The last event of each log by the number of its session, wherever the log says that it ends."""
    try:
        return dict(query("SELECT session_id, max(position) FROM surepick_events GROUP BY session_id"))
    except DamageError:
        return {}


def _health(name: str, position: int, checksum: str, found: list[Event]) -> LogHealth:
    """What is left of a log, given everything that was found of it, in any order and maybe more than once."""
    versions: dict[int, list[Event]] = defaultdict(list)
    for event in found:
        if event.position <= position:
            versions[event.position].append(event)
    events: list[Event] = []
    proved: list[bool] = []
    for place in sorted(versions):
        before = events[-1].head if events else START
        genuine = [event for event in versions[place] if is_successor(event, before)]
        events.append((genuine or versions[place])[0])
        proved.append(bool(genuine))
    return LogHealth(name, Head(position, checksum), tuple(events), tuple(proved))


def _readable(query: Query, number: int, last: int) -> Iterator[Event]:
    """The events of a log that can be read: where a chunk fails it is halved, down to single events."""
    pending = [(a, min(a + CHUNK - 1, last)) for a in range(1, last + 1, CHUNK)][::-1]
    while pending:
        a, b = pending.pop()
        try:
            yield from (Event(*row) for row in query(_SELECT.format(number, a, b)))
        except DamageError:
            if a < b:
                middle = (a + b) // 2
                pending += [(middle + 1, b), (a, middle)]


_SELECT = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = {:d} AND position BETWEEN {:d} AND {:d} ORDER BY position"
)
