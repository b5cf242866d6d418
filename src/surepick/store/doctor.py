"""Check a store without changing it: SQLite's own check, then the chain of every log; and back it up.

Where SQLite can no longer read a file, its shell often can: `sqlite3 broken.db .recover | sqlite3 new.db`.
The chain then says how many events of the new file are exactly what was written.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surepick.errors import DamageError, StoreError
from surepick.store.address import database_at
from surepick.store.connections import Database
from surepick.store.log import START, Head, checked
from surepick.store.schema import VERSION

RECOVER = "sqlite3 {place} .recover | sqlite3 recovered.db && surepick verify --all --store recovered.db"
CHUNK = 256  # events read at once; of a chunk that cannot be read nothing is proved
Rows = list[tuple[Any, ...]]
Query = Callable[[str], Rows]


@dataclass(frozen=True)
class LogHealth:
    """The state of one log."""

    name: str
    head: Head  # where the log says that it ends
    last: Head  # the end of the unbroken chain from its first event: all before it is as it was written

    @property
    def n_proved(self) -> int:
        """The number of events, from the first one on, that are exactly what was written."""
        return self.last.position

    @property
    def is_well(self) -> bool:
        """Whether every event is there and is what was written."""
        return self.last == self.head


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
    database = database_at(url, read_only=True)
    if not database.exists():
        raise StoreError(f"there is no store at {database.place}; check the path")
    try:
        connection = database.connect()
    except database.errors as error:
        return _diagnosis(database, [str(error).strip()], [])
    failures: tuple[type[Exception], ...] = (*database.errors, UnicodeDecodeError, DamageError)

    def query(text: str) -> Rows:
        try:
            rows: Rows = connection.execute(text).fetchall()
            return rows
        except failures as error:
            raise DamageError(str(error).strip()) from None

    with closing(connection):
        complaints, logs, ends = list[str](), list[LogHealth](), dict[int, int]()
        try:
            connection.execute(_BEGIN[database.dialect])  # one moment is read, while others may write
            if database.dialect == "sqlite":
                complaints += _integrity(query)
            version = query("SELECT max(version) FROM surepick_schema")[0][0]
            if version != VERSION:
                complaints.append(f"it has schema {version}, of another surepick; this one has {VERSION}")
            with suppress(DamageError):
                ends = dict(query(_ENDS))  # the last event by the number of its log
            for number, name, position, checksum in query(_SESSIONS):
                if ends.pop(number, 0) > position:
                    complaints.append(f"session {name!r} has events after event {position}, its end")
                logs.append(_health(query, number, name, Head(position, checksum)))
            complaints += [f"there are events of a session that is not listed (number {n})" for n in ends]
        except failures as error:
            complaints.append(str(error).strip())
    return _diagnosis(database, complaints, logs)


def back_up(url: str, target: Path) -> Diagnosis:
    """Copy the SQLite store at this address into a new file, and return what a check of the copy found.

    `cp` is not enough: the last values are in the write-ahead log beside the file, and a file that is written
    to while it is copied may be torn. SQLite's backup interface copies one moment of the store.
    """
    database = database_at(url, read_only=True)
    if database.dialect != "sqlite":
        raise StoreError(f"{database.place} is backed up by its own tools; run pg_dump", field="store")
    if not database.exists():
        raise StoreError(f"there is no store at {database.place}; check the path", field="store")
    try:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StoreError(
            f"{target} cannot be made ({error.strerror}); name a new file", field="file"
        ) from None
    try:
        with closing(database.connect()) as source, closing(sqlite3.connect(target)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, complete by itself
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, database.errors):
            raise database.explain(error) from error
        raise
    return examine(str(target))


def _diagnosis(database: Database, complaints: list[str], logs: list[LogHealth]) -> Diagnosis:
    found = Diagnosis(database.place, tuple(complaints), tuple(logs))
    if found.is_well or database.dialect != "sqlite":
        return found
    return Diagnosis(found.place, found.complaints, found.logs, RECOVER.format(place=database.place))


def _integrity(query: Query) -> list[str]:
    try:
        found = [str(row[0]) for row in query("PRAGMA integrity_check(5)")]
    except DamageError as error:
        found = [str(error)]
    return [f"SQLite says: {line}" for line in found if line != "ok"]


def _health(query: Query, number: int, name: str, head: Head) -> LogHealth:
    """Follow the chain of a log to its end, or to the first event that is missing or changed."""
    last = START
    with suppress(DamageError):
        while rows := query(_EVENTS.format(number, last.position + 1, last.position + CHUNK)):
            for event in checked(rows, last, name):
                last = event.head
    return LogHealth(name, head, last)


_BEGIN = {"sqlite": "BEGIN", "postgresql": "BEGIN ISOLATION LEVEL REPEATABLE READ"}
_SESSIONS = "SELECT id, name, position, checksum FROM surepick_sessions ORDER BY id"
_ENDS = "SELECT session_id, max(position) FROM surepick_events GROUP BY session_id"
_EVENTS = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = {:d} AND position BETWEEN {:d} AND {:d} ORDER BY position"
)
