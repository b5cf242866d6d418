"""The tables of a SQL store. There is one schema: a store with another one is refused."""

from __future__ import annotations

from surepick.errors import StoreError
from surepick.store.drivers import Driver
from surepick.store.transactions import Transactions

VERSION = 3  # of the tables below
# {identity}, {real}, {bytes} and {clustered} are the few words in which SQLite and PostgreSQL differ. The id
# of a log is never used again, so that a process with a deleted log open cannot reach another one by it.
TABLES = (
    "CREATE TABLE surepick_schema (version INTEGER NOT NULL)",
    f"INSERT INTO surepick_schema VALUES ({VERSION})",
    """CREATE TABLE surepick_sessions (
        id {identity},
        name TEXT NOT NULL UNIQUE,
        position BIGINT NOT NULL,
        checksum TEXT NOT NULL
    )""",
    """CREATE TABLE surepick_events (
        session_id BIGINT NOT NULL,
        position BIGINT NOT NULL,
        kind TEXT NOT NULL,
        key TEXT,
        time {real} NOT NULL,
        body TEXT NOT NULL,
        checksum TEXT NOT NULL,
        PRIMARY KEY (session_id, position)
    ) {clustered}""",
    "CREATE UNIQUE INDEX surepick_events_key ON surepick_events (session_id, key) WHERE key IS NOT NULL",
    """CREATE TABLE surepick_leases (
        session_id BIGINT NOT NULL,
        token TEXT NOT NULL,
        worker TEXT NOT NULL,
        expires {real} NOT NULL,
        PRIMARY KEY (session_id, token)
    ) {clustered}""",
    """CREATE TABLE surepick_snapshots (
        session_id BIGINT PRIMARY KEY,
        position BIGINT NOT NULL,
        checksum TEXT NOT NULL,
        first TEXT NOT NULL,
        body {bytes} NOT NULL,
        digest TEXT NOT NULL
    )""",
)
WORDS = {
    "sqlite": {
        "identity": "INTEGER PRIMARY KEY AUTOINCREMENT",
        "real": "REAL",
        "bytes": "BLOB",
        "clustered": "WITHOUT ROWID",
    },
    "postgresql": {
        "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "real": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "clustered": "",
    },
}


def make_tables(transactions: Transactions, driver: Driver) -> None:
    """Make the tables where there are none; a StoreError if there are those of another surepick."""
    if _has_tables(transactions, driver):
        return
    if driver.read_only:
        raise StoreError(f"{driver.place} is empty; make a session in it with `surepick new`")
    with transactions.open():  # of many processes only the first does it
        if driver.lock_schema:
            transactions.run([(driver.lock_schema, {})])
        if not _has_tables(transactions, driver):
            words = WORDS[driver.dialect]
            transactions.run([(text.format(**words), {}) for text in TABLES])


def _has_tables(transactions: Transactions, driver: Driver) -> bool:
    if ("surepick_schema",) not in transactions.query(driver.list_tables):
        return False
    version = transactions.query("SELECT max(version) FROM surepick_schema")[0][0]
    if version != VERSION:
        raise StoreError(
            f"{driver.place} was written by another version of surepick (schema {version}, this one has "
            f"{VERSION}); open it with that version, or begin a new store"
        )
    return True
