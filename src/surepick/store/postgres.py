"""PostgreSQL: one schema of a database, through psycopg 3.

Between client and server may stand a pooler, which gives each transaction whatever connection is free. What
is set for a connection would then be lost, or reach other programs. So every setting that matters is made
inside the transaction that needs it, and statements are prepared only where there is no pooler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar

from surepick.errors import ConflictError, StoreError, missing_extra
from surepick.store.connections import NO_PARAMETERS, Answer, Database, Parameters, Statement
from surepick.store.log import Event
from surepick.store.schema import DO_NOT_WAIT, INSERT, LOCK_LEASES, LOCK_LOG, WAIT_FOR_DISK


class Postgres(Database):
    """The driver of one database."""

    dialect: ClassVar[str] = "postgresql"
    lock_schema: ClassVar[str | None] = "SELECT pg_advisory_xact_lock(7305806)"
    remote: ClassVar[bool] = True
    list_tables: ClassVar[str] = (
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )

    def __init__(self, url: str, shown: str, *, read_only: bool) -> None:
        if find_spec("psycopg") is None:
            raise missing_extra("psycopg", "postgres")
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        self.errors = (psycopg.Error,)
        self.place = self.where = shown
        super().__init__()
        self.read_only = read_only
        self._url = url
        try:
            port = conninfo_to_dict(url).get("port", "")
        except psycopg.ProgrammingError:  # whose words may contain the password
            port = "?"
        if not str(port or "").replace(",", "0").isdecimal() and port:
            raise StoreError(
                f"the store address {shown!r} cannot be read; in user names and passwords write @ as %40, "
                "/ as %2F and : as %3A",
                field="store",
            )

    def connect(self) -> Any:
        import psycopg

        connection = psycopg.connect(self._url, autocommit=True, prepare_threshold=None)
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        if row == (connection.info.backend_pid,):  # no pooler: it would have answered for itself
            connection.prepare_threshold = 2  # the same dozen statements for hours,
            connection.execute("SET plan_cache_mode = force_generic_plan")  # with plans that never change
        return connection

    def begin(self, *, durable: bool, log: int | None = None) -> list[Statement]:
        """Open a transaction that sees what was committed, whatever the server's own settings are."""
        settings = WAIT_FOR_DISK if durable else DO_NOT_WAIT
        begin = [("BEGIN ISOLATION LEVEL READ COMMITTED", NO_PARAMETERS), (settings, NO_PARAMETERS)]
        if log is None:
            return begin
        return [*begin, (LOCK_LOG if durable else LOCK_LEASES, {"session_id": log})]

    def run_all(self, connection: Any, batch: Sequence[Statement]) -> list[Answer]:
        """Run these statements in one round trip, and return an answer for each."""
        import psycopg

        if len(batch) == 1:
            text, parameters = batch[0]
            return [_answer(connection.execute(_with_percents(text), parameters))]
        # The server takes several statements in one text only without parameters. So the client writes the
        # values into the text, quoted; this costs half as much as psycopg's pipeline mode.
        cursor = psycopg.ClientCursor(connection)
        texts = [cursor.mogrify(_with_percents(text), parameters) for text, parameters in batch]
        cursor.execute("; ".join(texts))
        answers = [_answer(cursor)]
        while cursor.nextset():
            answers.append(_answer(cursor))
        return answers

    def inserting(self, row: Parameters, events: Sequence[Event]) -> list[Statement]:
        written = json.dumps([event._asdict() for event in events])
        return [(INSERT["postgresql"], {**row, "events": written})]

    def in_transaction(self, connection: Any) -> bool:
        return bool(connection.info.transaction_status)  # 0: idle

    def is_busy(self, error: Exception) -> bool:
        """Whether it may work a moment later: it met another transaction, or there are too many clients."""
        return getattr(error, "sqlstate", None) in ("40001", "40P01", "55P03", "53300")

    def is_gone(self, error: Exception) -> bool:
        import psycopg

        state = getattr(error, "sqlstate", None)
        lost = state is None or state.startswith(("08", "57P"))  # no answer, broken, or shut down
        return lost and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def explain(self, error: Exception) -> StoreError:
        import psycopg

        if isinstance(error, psycopg.errors.UniqueViolation):
            return ConflictError(f"an event with this key is already in the log ({error})")
        if isinstance(error, psycopg.errors.DiskFull):
            return StoreError(f"{self.place}: the server's disk is full ({error}); make room and repeat")
        if isinstance(error, psycopg.OperationalError):
            return StoreError(
                f"{self.place} does not answer ({str(error).strip()}); check that the server is running and "
                "repeat this step: what is told, or recorded under a key, counts once"
            )
        return StoreError(f"{self.place}: {str(error).strip()}")


def _answer(cursor: Any) -> Answer:
    """Return the row count of a statement, and its rows if it is one that returns rows."""
    return Answer(cursor.rowcount, cursor.fetchall() if cursor.description else [])


@cache
def _with_percents(text: str) -> str:
    """Return the statement with each parameter :name written as psycopg expects it, %(name)s."""
    return re.sub(r":(\w+)", r"%(\1)s", text)
