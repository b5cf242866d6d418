"""The schema of a SQL store: an ordered list of steps, each applied once and never edited afterwards."""

from __future__ import annotations

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
