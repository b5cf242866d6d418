"""The schema of a SQL store: an ordered list of steps, each applied once and never edited afterwards."""

from __future__ import annotations

from surepick.errors import StoreError
from surepick.store.drivers import Driver
from surepick.store.transactions import Transactions

# {identity}, {real}, {bytes} and {clustered} are the few words in which SQLite and PostgreSQL differ.
_STEP_1 = (
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
)

# Coordination and cache: neither is part of the truth, so they live beside the log.
_STEP_2 = (
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
        body {bytes} NOT NULL,
        body_checksum TEXT NOT NULL
    )""",
)

STEPS: tuple[tuple[str, ...], ...] = (_STEP_1, _STEP_2)
VERSION = len(STEPS)

WORDS = {
    "sqlite": {
        "identity": "INTEGER PRIMARY KEY",
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


def statements_from(version: int, dialect: str) -> list[str]:
    """The statements that bring a store of this version (0: an empty one) to the current one.

    >>> statements_from(VERSION, "sqlite")
    []
    """
    return [text.format(**WORDS[dialect]) for step in STEPS[version:] for text in step]


def bring_up_to_date(transactions: Transactions, driver: Driver) -> None:
    """Apply the steps that a store lacks, or say why it cannot be used."""
    version = _version(transactions, driver)
    if version > VERSION:
        raise StoreError(
            f"{driver.place} was written by a newer surepick (schema {version}, this one knows up to "
            f"{VERSION}); upgrade surepick to open it"
        )
    if version == VERSION:
        return
    if driver.read_only:
        raise StoreError(
            f"{driver.place} has schema {version} and needs {VERSION}, but was opened for reading only; "
            "open it once for writing, e.g. with `surepick list`"
        )
    with transactions.open():  # of many processes only the first does it
        if driver.lock_schema:
            transactions.run([(driver.lock_schema, {})])
        version = _version(transactions, driver)
        if version == 0:
            transactions.run([("CREATE TABLE surepick_schema (version INTEGER NOT NULL)", {})])
        done = "INSERT INTO surepick_schema VALUES (:step)"
        transactions.run([(text, {}) for text in statements_from(version, driver.dialect)])
        transactions.run([(done, {"step": step}) for step in range(version + 1, VERSION + 1)])


def _version(transactions: Transactions, driver: Driver) -> int:
    """The schema version of the store; 0: it is empty."""
    if ("surepick_schema",) not in transactions.query(driver.list_tables):
        return 0
    return int(transactions.query("SELECT max(version) FROM surepick_schema")[0][0])
