"""Check a store without changing it: SQLite's own check, then the chain of every log.

Where SQLite can no longer read a file, its shell often can: `sqlite3 broken.db .recover | sqlite3 new.db`.
The chain then says which events of the new file are exactly what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from surepick.errors import DamageError, StoreError
from surepick.store.drivers import Driver, driver_for
from surepick.store.events import START, Event, Head, is_successor
from surepick.store.schema import VERSION

RECOVER = "sqlite3 {place} .recover | sqlite3 recovered.db && surepick doctor --store recovered.db"
CHUNK = 4096  # events read at once
Rows = list[tuple[Any, ...]]
Query = Callable[[str], Rows]


@dataclass(frozen=True)
class LogHealth:
    """The state of one log."""

    name: str
    head: Head  # where the log says that it ends
    events: tuple[Event, ...]  # every event that could be read, in order
    proved: tuple[bool, ...]  # for each of them, whether it fits the checksum of the one before it

    @property
    def n_proved(self) -> int:
        """The number of events that are exactly what was written."""
        return sum(self.proved)

    @property
    def n_lost(self) -> int:
        """The number of events that could not be read."""
        return self.head.position - len(self.events)

    @property
    def is_well(self) -> bool:
        """Whether every event is there and is what was written."""
        is_whole = self.n_lost == 0 and all(self.proved)
        return is_whole and (self.events[-1].head if self.events else START) == self.head


@dataclass(frozen=True)
class Diagnosis:
    """What a check of a store found."""

    place: str
    complaints: tuple[str, ...]  # in words, about the store as a whole
    logs: tuple[LogHealth, ...]
    advice: str = ""  # a command that may bring back what cannot be read

    @property
    def is_well(self) -> bool:
        """Whether nothing at all is wrong."""
        return not self.complaints and all(log.is_well for log in self.logs)

    def log(self, name: str) -> LogHealth:
        """Return the state of the log with this name."""
        for log in self.logs:
            if log.name == name:
                return log
        raise DamageError(f"nothing of session {name!r} could be read in {self.place}")


def examine(url: str) -> Diagnosis:
    """Check the store at this address."""
    if url.startswith("memory:"):
        raise StoreError("a store in memory has no file that could be damaged; name a file or a database")
    driver = driver_for(url, read_only=True)
    if not driver.exists():
        raise StoreError(f"there is no store at {driver.place}; check the path")
    try:
        connection = driver.connect()
    except driver.errors as error:
        return _diagnosis(driver, [str(error).strip()], [])
    failures: tuple[type[Exception], ...] = (*driver.errors, UnicodeDecodeError, DamageError)

    def query(text: str) -> Rows:
        try:
            rows: Rows = connection.execute(text).fetchall()
            return rows
        except failures as error:
            raise DamageError(str(error).strip()) from None

    with closing(connection):
        complaints, logs = list[str](), list[LogHealth]()
        try:
            connection.execute(_BEGIN[driver.dialect])  # one moment is read, while others may write
            complaints += _integrity(query) if driver.dialect == "sqlite" else []
            complaints += _schema(query)
            ends = _ends(query)
            for number, name, position, checksum in query(_SESSIONS):
                if ends.pop(number, 0) > position:
                    complaints.append(f"session {name!r} has events after event {position}, its end")
                logs.append(_health(query, number, name, Head(position, checksum)))
            complaints += [f"there are events of a session that is not listed (number {n})" for n in ends]
        except failures as error:
            complaints.append(str(error).strip())
    return _diagnosis(driver, complaints, logs)


def _diagnosis(driver: Driver, complaints: list[str], logs: list[LogHealth]) -> Diagnosis:
    found = Diagnosis(driver.place, tuple(complaints), tuple(logs))
    if found.is_well or driver.dialect != "sqlite":
        return found
    return Diagnosis(found.place, found.complaints, found.logs, RECOVER.format(place=driver.place))


def _integrity(query: Query) -> list[str]:
    try:
        found = [str(row[0]) for row in query("PRAGMA integrity_check(5)")]
    except DamageError as error:
        found = [str(error)]
    return [f"SQLite says: {line}" for line in found if line != "ok"]


def _schema(query: Query) -> Iterator[str]:
    version = query("SELECT max(version) FROM surepick_schema")[0][0]
    if version != VERSION:
        yield f"it has schema {version}, of another version of surepick; this one has {VERSION}"


def _ends(query: Query) -> dict[int, int]:
    """Return the position of the last event by the number of its log, as far as they can be read."""
    try:
        return dict(query(_ENDS))
    except DamageError:
        return {}


def _health(query: Query, number: int, name: str, head: Head) -> LogHealth:
    events: list[Event] = []
    proved: list[bool] = []
    for event in _readable(query, number, head.position):
        proved.append(is_successor(event, events[-1].head if events else START))
        events.append(event)
    return LogHealth(name, head, tuple(events), tuple(proved))


def _readable(query: Query, number: int, last: int) -> Iterator[Event]:
    """Yield the events of a log that can be read; a chunk that cannot is halved, down to single events."""
    pending = [(a, min(a + CHUNK - 1, last)) for a in range(1, last + 1, CHUNK)][::-1]
    while pending:
        a, b = pending.pop()
        try:
            yield from (Event(*row) for row in query(_EVENTS.format(number, a, b)))
        except DamageError:
            if a < b:
                middle = (a + b) // 2
                pending += [(middle + 1, b), (a, middle)]


_BEGIN = {"sqlite": "BEGIN", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ"}
_SESSIONS = "SELECT id, name, position, checksum FROM surepick_sessions ORDER BY id"
_ENDS = "SELECT session_id, max(position) FROM surepick_events GROUP BY session_id"
_EVENTS = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = {:d} AND position BETWEEN {:d} AND {:d} ORDER BY position"
)
