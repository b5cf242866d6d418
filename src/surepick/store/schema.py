"""The tables of a SQL store, and all that is said to them; parameters are written :name, for every database.

There is one schema: a store with another one is refused.
"""

from __future__ import annotations

VERSION = 4  # of the tables below
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

MAKE_SESSION = (
    "INSERT INTO surepick_sessions (name, position, checksum) VALUES (:name, :position, :checksum) "
    "ON CONFLICT (name) DO NOTHING"
)
NAMES = "SELECT name FROM surepick_sessions ORDER BY id"
SESSION = "SELECT id FROM surepick_sessions WHERE name = :name"
HEAD = "SELECT position, checksum FROM surepick_sessions WHERE id = :session_id"
HEAD_AT = (
    "SELECT position, checksum FROM surepick_events WHERE session_id = :session_id AND position = :position"
)
# The event at `after` is read too: without it the log is deleted, or another one.
READ = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = :session_id AND position >= :after ORDER BY position LIMIT :limit"
)
# Both in one round trip: the leases come first, as rows at position 0.
LOOK = (
    "SELECT 0 AS position, '' AS kind, token AS key, expires AS time, worker AS body, '' AS checksum "
    "FROM surepick_leases WHERE session_id = :session_id "
    f"UNION ALL SELECT * FROM ({READ}) AS news ORDER BY position, key"
)
# A list of tokens is given as JSON text, since SQLite has no parameters that are lists.
_TOKENS = {
    "sqlite": "(SELECT value AS token FROM json_each(:tokens))",
    "postgresql": "(SELECT json_array_elements_text(CAST(:tokens AS JSON)) AS token)",
}
# It takes the id from the table of sessions: nothing is leased in a log that was deleted.
CLAIM = {
    dialect: "INSERT INTO surepick_leases (session_id, token, worker, expires) "
    f"SELECT id, token, :worker, :expires FROM surepick_sessions, {tokens} AS wanted WHERE id = :session_id "
    "ON CONFLICT (session_id, token) DO UPDATE SET worker = excluded.worker, expires = excluded.expires "
    "WHERE surepick_leases.expires <= :now OR surepick_leases.worker = excluded.worker RETURNING token"
    for dialect, tokens in _TOKENS.items()
}
RELEASE = {
    dialect: "DELETE FROM surepick_leases WHERE session_id = :session_id "
    f"AND token IN (SELECT token FROM {tokens} AS ended)"
    for dialect, tokens in _TOKENS.items()
}
FIND = (
    "SELECT position, kind, key, time, body, checksum FROM surepick_events "
    "WHERE session_id = :session_id AND key = :key"
)
LEASES = "SELECT token, worker, expires FROM surepick_leases WHERE session_id = :session_id ORDER BY token"
# A snapshot is saved and read only if the event at its position has the checksum that it names.
SAVE_SNAPSHOT = (
    "INSERT INTO surepick_snapshots (session_id, position, checksum, body, digest) "
    "SELECT :session_id, :position, :checksum, :body, :digest FROM surepick_events AS event "
    "WHERE event.session_id = :session_id AND event.position = :position AND event.checksum = :checksum "
    "ON CONFLICT (session_id) DO UPDATE SET position = excluded.position, checksum = excluded.checksum, "
    "body = excluded.body, digest = excluded.digest"
)
SNAPSHOT = (
    "SELECT kept.position, kept.checksum, kept.body, kept.digest "
    "FROM surepick_snapshots AS kept JOIN surepick_events AS event "
    "ON (event.session_id, event.position, event.checksum) = (kept.session_id, kept.position, kept.checksum) "
    "WHERE kept.session_id = :session_id"
)
MOVE_HEAD = (
    "UPDATE surepick_sessions SET position = :position, checksum = :checksum "
    "WHERE id = :session_id AND position = :expected_position AND checksum = :expected_checksum"
)
DELETE_SESSION = (
    "DELETE FROM surepick_sessions WHERE id = :session_id AND position = :position AND checksum = :checksum"
)
DELETE_REST = tuple(
    f"DELETE FROM surepick_{table} WHERE session_id = :session_id"
    for table in ("events", "leases", "snapshots")
)

# An append is MOVE_HEAD and then these. They change nothing unless the head has moved to :head.
_MOVED = "FROM surepick_sessions WHERE id = :session_id AND checksum = :head"
_COLUMNS = "INSERT INTO surepick_events (session_id, position, kind, key, time, body, checksum)"
INSERT = {
    "sqlite": f"{_COLUMNS} SELECT id, :position, :kind, :key, :time, :body, :checksum {_MOVED}",
    # all events in one statement: a text with a thousand statements is slow to parse
    "postgresql": f"{_COLUMNS} SELECT :session_id, event.* FROM json_to_recordset(CAST(:events AS JSON)) "
    "AS event(position BIGINT, kind TEXT, key TEXT, time DOUBLE PRECISION, body TEXT, checksum TEXT) "
    f"WHERE EXISTS (SELECT 1 {_MOVED})",
}
END_LEASES = {dialect: f"{release} AND EXISTS (SELECT 1 {_MOVED})" for dialect, release in RELEASE.items()}

# For PostgreSQL; a server that is set to more than `on` keeps its setting.
WAIT_FOR_DISK = (
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
)
DO_NOT_WAIT = "SET LOCAL synchronous_commit = off"
LOCK_LOG = "SELECT 1 FROM surepick_sessions WHERE id = :session_id FOR UPDATE"
# A lock of its own: those who claim need not wait until an append has reached the disk.
LOCK_LEASES = "SELECT pg_advisory_xact_lock(7305807000000 + :session_id)"
