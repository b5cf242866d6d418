"""What the session tests run in processes of their own, to be crowded together or killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from session_tools import Tapes
from surepick.session import Receipt, Session
from surepick.store import sql


def work(i: int, url: str, seed: int, journal: Path | None = None) -> None:
    """Measure until the session has ended; write down each token once it is acknowledged."""
    session, tapes = Session.load(url, "mine"), Tapes(seed)
    while requests := session.ask(2, worker=f"worker {i}"):
        for request in requests:
            receipt = session.tell(request, tapes.value(request.token))
            assert receipt in (Receipt.ACCEPTED, Receipt.REPEATED)
            if journal is not None:
                acknowledge(journal, request.token)


def work_until_statement(i: int, url: str, seed: int, journal: Path, last: int) -> None:
    """Measure, and die by kill -9 just before or after the given statement reaches the database."""
    session = Session.load(url, "mine")
    left = last
    original = sql._Link.__init__

    def counting(link: sql._Link, connection: object) -> None:
        original(link, connection)
        execute = link.execute

        def execute_or_die(text: str, parameters: object) -> object:
            nonlocal left
            left -= 1
            if left == 0 and last % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            result = execute(text, parameters)  # type: ignore[arg-type]
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        link.execute = execute_or_die  # type: ignore[assignment]

    session.store.close()
    sql._Link.__init__ = counting  # type: ignore[method-assign]
    tapes = Tapes(seed)
    for request in session.ask(2, worker="mortal"):
        session.tell(request, tapes.value(request.token))
        acknowledge(journal, request.token)


def acknowledge(journal: Path, token: str) -> None:
    handle = os.open(journal, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(handle, f"{token}\n".encode())
    os.close(handle)
