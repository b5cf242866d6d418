"""The schema of a SQL store: an ordered list of steps, each applied once and never edited afterwards."""

from __future__ import annotations

# {identity}, {real} and {clustered} are the few words in which SQLite and PostgreSQL differ.
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

STEPS: tuple[tuple[str, ...], ...] = (_STEP_1,)
VERSION = len(STEPS)

WORDS = {
    "sqlite": {"identity": "INTEGER PRIMARY KEY", "real": "REAL", "clustered": "WITHOUT ROWID"},
    "postgresql": {
        "identity": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "real": "DOUBLE PRECISION",
        "clustered": "",
    },
}


def statements_from(version: int, dialect: str) -> list[str]:
    """The statements that bring a store of this version (0: an empty one) to the current one.

    >>> statements_from(VERSION, "sqlite")
    []
    """
    return [text.format(**WORDS[dialect]) for step in STEPS[version:] for text in step]
