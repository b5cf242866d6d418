"""SQLite: one file with a write-ahead log, every acknowledged event on disk.

Appends are committed with `synchronous=FULL`: SQLite lets readers see a commit only when it is on disk.
Leases are committed without waiting for the disk (`NORMAL`): losing one costs a repeated measurement.

A failed fsync needs care. The kernel reports the error once and then takes the pages for written, so a later
fsync succeeds although frames in the middle of the write-ahead log are missing on disk; after a power cut
SQLite would read the log up to that hole and drop what was acknowledged after it. So after an I/O error the
connection is closed, and the next one first moves the whole write-ahead log into the main file, on disk
(`wal_checkpoint(TRUNCATE)`), and writes nothing until that has worked. The kernel reports the error to every
process that had the file open. One that opens it later begins with the same checkpoint.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from surepick.errors import ConflictError, DamageError, StoreError
from surepick.store.connections import NO_PARAMETERS, Answer, Database, Parameters, Statement
from surepick.store.log import Event
from surepick.store.schema import INSERT

# SQLite itself waits for another writer so long, trying after 1, 2, 5 and 10 ms, which takes a tenth of the
# processor that tries from Python take. Then it is asked again and begins with 1 ms: after its later pauses
# of up to 100 ms a writer that has waited long would be the last to notice that the lock is free.
BUSY_TIMEOUT = 0.02  # seconds


class Sqlite(Database):
    """The driver of one file."""

    dialect: ClassVar[str] = "sqlite"
    remote: ClassVar[bool] = False
    list_tables: ClassVar[str] = "SELECT name FROM sqlite_master WHERE type = 'table'"
    errors = (sqlite3.Error,)

    def __init__(self, path: str, *, read_only: bool) -> None:
        self.place = str(Path(path))
        self.path = Path(path).absolute()  # the program may change its folder
        self.where = str(self.path.resolve())
        super().__init__()
        self.read_only = read_only
        self._is_suspect = False  # whether an I/O error may have left a hole in the write-ahead log
        self._opened: tuple[int, int] | None = None  # device and inode of the file that was opened

    def exists(self) -> bool:
        return self.path.exists()

    def check(self) -> None:
        """Raise an error if the file that was opened is no longer there: what is written would go with it."""
        if self._opened is None:
            return
        try:
            found = self.path.stat()
            is_same = (found.st_dev, found.st_ino) == self._opened
        except OSError:
            is_same = False
        if not is_same:
            raise StoreError(
                f"{self.place} is no longer the file that was opened: it was deleted, moved or replaced; "
                "nothing was written now. Put it back, or open the store again to begin with what is there"
            )

    def _make_file(self) -> None:
        """An empty file that only its owner may read; SQLite gives its other files the same permissions.

        SQLite would delete a write-ahead log that lies there without its file, and what it has acknowledged.
        """
        log = self.path.with_name(self.path.name + "-wal")
        if not self.path.exists() and log.exists() and log.stat().st_size:
            raise StoreError(
                f"{self.place} is not there, but {log.name} is, the last part of a store that was moved or "
                "deleted while it was in use; put the file back beside it, or delete that one too if nothing "
                "of it is wanted"
            )
        with suppress(OSError):  # it is there, or SQLite will say why it cannot be
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))

    def connect(self) -> sqlite3.Connection:
        self.check()
        if self._opened is None and not self.read_only:
            self._make_file()
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode={'ro' if self.read_only else 'rw'}",
            uri=True,
            timeout=0,  # until the write-ahead log was moved, which waits for nothing
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
        )
        try:
            if not self.read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                if self._opened is None or self._is_suspect:
                    self._move_log(connection)
            found = self.path.stat()
            self._opened = self._opened or (found.st_dev, found.st_ino)
            connection.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_TIMEOUT)}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _move_log(self, connection: sqlite3.Connection) -> None:
        """Move the write-ahead log into the main file, on disk; after an I/O error this has to work."""
        try:
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError as error:
            self._is_suspect = self._is_suspect or _code(error) == sqlite3.SQLITE_IOERR
            if self._is_suspect:
                raise
            return  # a full disk, for example, which can still be read
        if is_busy and self._is_suspect:
            busy = sqlite3.OperationalError("after an I/O error the write-ahead log has to be moved first")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise busy
        self._is_suspect = False

    def begin(self, *, durable: bool, log: int | None = None) -> list[Statement]:
        """Take the one write lock first, so that no later statement meets another writer."""
        return [
            (f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}", NO_PARAMETERS),
            ("BEGIN IMMEDIATE", NO_PARAMETERS),
        ]

    def run_all(self, connection: sqlite3.Connection, batch: Sequence[Statement]) -> list[Answer]:
        """Run these statements one after the other; after an I/O error the connection is closed.

        An I/O error may leave a hole in the write-ahead log, and commits after a hole would be lost in a
        crash. So the next connection first moves that log into the main file (`_move_log`).
        """
        answers = []
        try:
            for text, parameters in batch:
                cursor = connection.execute(text, parameters)
                answers.append(Answer(cursor.rowcount, cursor.fetchall()))
        except sqlite3.OperationalError as error:
            if _code(error) == sqlite3.SQLITE_IOERR:
                self._is_suspect = True
                connection.close()
            raise
        return answers

    def inserting(self, row: Parameters, events: Sequence[Event]) -> list[Statement]:
        return [(INSERT["sqlite"], {**row, **event._asdict()}) for event in events]

    def in_transaction(self, connection: sqlite3.Connection) -> bool:
        return connection.in_transaction

    def is_busy(self, error: Exception) -> bool:
        return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)

    def explain(self, error: Exception) -> StoreError:
        code, place = _code(error), self.place
        if isinstance(error, sqlite3.IntegrityError):
            return ConflictError(f"an event with this key is already in the log ({error})")
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return DamageError(
                f"{place} is damaged or is not a SQLite file ({error}); nothing was changed, "
                "run `surepick verify --all` to see what can be read"
            )
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return StoreError(
                f"{place} could not be written ({error}): the disk is full or failing. What was acknowledged "
                "is safe; make room and repeat this step"
            )
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            return StoreError(
                f"{place} cannot be opened for this ({error}); check that its folder exists and that you may "
                "write to both"
            )
        return StoreError(f"{place}: {error}")


def _code(error: Exception) -> int | None:
    """The primary result code; the extended one only adds where it happened."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
