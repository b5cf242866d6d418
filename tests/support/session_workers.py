"""What the session tests run in processes of their own, to be crowded together or killed."""

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
    """Measure, and die by kill -9 just before or just after the given statement reaches the database."""
    session, tapes = Session.load(url, "mine", problem=best), Tapes(seed)
    session.store.close()
    fate = Fate(last)
    fate.take_over(session.store)
    for request in session.ask(4, worker="mortal"):
        session.tell(request, tapes.value(request.token))
        acknowledge(journal, request.token)


class Fate:
    """Counts the statements of this process and ends it by kill -9 at the last one."""

    def __init__(self, last):
        self._left = last
        self._die_before = bool(last % 2)

    def passes(self, execute, *arguments):
        """Run one statement, unless it is the last."""
        self._left -= 1
        if self._left == 0 and self._die_before:
            os.kill(os.getpid(), signal.SIGKILL)
        result = execute(*arguments)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    def take_over(self, store):
        """See every statement that the store sends; in SQLite also those in the middle of an append."""
        run_all = store._database.run_all

        def counted_batch(connection, batch):
            if store._database.remote:
                return list(self.passes(run_all, connection, batch))
            return [self.passes(run_all, connection, [statement])[0] for statement in batch]

        store._database.run_all = counted_batch


def acknowledge(journal, token):
    handle = os.open(journal, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(handle, f"{token}\n".encode())
    os.close(handle)
