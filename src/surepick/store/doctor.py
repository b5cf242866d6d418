"""Check a store without changing it: SQLite's own check, then the chain of every log; and back it up.

Where SQLite can no longer read a file, its shell often can: `sqlite3 broken.db .recover | sqlite3 new.db`.
The chain then says how many events of the new file are exactly what was written.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from surepick.errors import StoreError
from surepick.store import Store, open_store
from surepick.store.log import START, Head
from surepick.store.sql import database_at

RECOVER = "sqlite3 {place} .recover | sqlite3 recovered.db && surepick verify --all --store recovered.db"
CHUNK = 256  # events read at once; of a chunk that cannot be read nothing is proved


class LogHealth(NamedTuple):
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
    """The result of a check of a store."""

    place: str
    complaints: tuple[str, ...]  # in words, about the store as a whole
    logs: tuple[LogHealth, ...]
    advice: str = ""  # a command that may bring back what cannot be read

    @property
    def is_well(self) -> bool:
        """Whether nothing at all is wrong."""
        return not self.complaints and all(log.is_well for log in self.logs)


def examine(url: str) -> Diagnosis:
    """Check the store at this address."""
    if url.startswith("memory:"):
        raise StoreError("a store in memory has no file that could be damaged; name a file or a database")
    database = database_at(url, read_only=True)
    if not database.exists():
        raise StoreError(f"there is no store at {database.place}; check the path")
    complaints, logs = list[str](), list[LogHealth]()
    try:
        store = open_store(url, read_only=True)
        logs += [_health(store, name) for name in store.names()]
        if database.dialect == "sqlite":
            found = [str(row[0]) for row in database.query("PRAGMA integrity_check(5)")]
            complaints += [f"SQLite says: {line}" for line in found if line != "ok"]
    except StoreError as error:
        complaints.append(str(error))
    is_well = not complaints and all(log.is_well for log in logs)
    advice = "" if is_well or database.dialect != "sqlite" else RECOVER.format(place=database.place)
    return Diagnosis(database.place, tuple(complaints), tuple(logs), advice)


def _health(store: Store, name: str) -> LogHealth:
    """Follow the chain of a log to its end, or to the first event that is missing or changed."""
    log, last, before = store.log(name), START, None
    head = log.head()
    with suppress(StoreError):
        while last != before:  # others may append meanwhile; in the end nothing came after this head
            before, head = last, log.head()
            for event in log.read(after=last, limit=CHUNK):
                last = event.head
    return LogHealth(name, head, last)


def back_up(url: str, target: Path, *, replace: bool = False) -> Diagnosis:
    """Copy the SQLite store at this address into a file, and return what a check of the copy found.

    With `replace` an earlier backup gives way once the new one is complete; the store itself never does.

    `cp` is not enough: the last values are in the write-ahead log beside the file, and a file that is written
    to while it is copied may be torn. SQLite's backup interface copies one moment of the store.
    """
    database = database_at(url, read_only=True)
    if database.dialect != "sqlite":
        raise StoreError(f"{database.place} is backed up by its own tools; run pg_dump", field="store")
    if not database.exists():
        raise StoreError(f"there is no store at {database.place}; check the path", field="store")
    if target.exists() and (not replace or target.samefile(database.where)):
        why = "is the store itself" if target.samefile(database.where) else "is there already"
        raise StoreError(f"{target} {why}; name a new file", field="file")
    part = target.with_name(f"{target.name}.part")
    try:
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    except OSError as error:
        raise StoreError(
            f"{target} cannot be made ({error.strerror}); name a new file", field="file"
        ) from None
    try:
        with closing(database.connect()) as source, closing(sqlite3.connect(part)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, complete by itself
        part.replace(target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, database.errors):
            raise database.explain(error) from error
        raise
    return examine(str(target))
