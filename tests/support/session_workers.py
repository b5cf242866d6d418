"""What the session tests run in processes of their own, to be crowded together or killed."""

import itertools
import os
import signal

from session_tools import Tapes
from surepick.sessions.session import Session


def work(i, url, seed, journal=None, best=None):
    """Measure until the session has ended; write down each token once it is acknowledged."""
    session, tapes = Session.load(url, "mine", problem=best), Tapes(seed)
    while requests := session.ask(2, worker=f"worker {i}"):
        for request in requests:
            receipt = session.tell(request, tapes.value(request.token))
            assert receipt.result in ("recorded", "repeated")
            if journal is not None:
                acknowledge(journal, request.token)


def work_until_statement(i, url, seed, journal, last, best=None):
    """Measure, and die by kill -9 just after this statement has reached the database."""
    session, tapes = Session.load(url, "mine", problem=best), Tapes(seed)
    session.store.close()
    die_after(last, session.store._database)
    for request in session.ask(4, worker="mortal"):
        session.tell(request, tapes.value(request.token))
        acknowledge(journal, request.token)


def die_after(n, database):
    """End this process by kill -9 when n statements were sent; in SQLite also in the middle of an append."""
    run_all, sent = database.run_all, itertools.count(1)

    def mortal(connection, batch):
        answers = []
        for part in [batch] if database.remote else [[statement] for statement in batch]:
            answers += run_all(connection, part)
            if next(sent) == n:
                os.kill(os.getpid(), signal.SIGKILL)
        return answers

    database.run_all = mortal


def acknowledge(journal, token):
    handle = os.open(journal, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(handle, f"{token}\n".encode())
    os.close(handle)
