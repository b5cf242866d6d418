"""Measuring until a session has ended: ask, let a crew measure several at a time, tell.

`surepick run` does this with a crew of shell commands, `surepick.decide` with Python functions. What was
measured is told as soon as it is there; whatever ends the loop gives the rest back.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Protocol

from surepick.core.wording import how_many
from surepick.errors import MeasureError, SessionError
from surepick.sessions.requests import Request, Use
from surepick.sessions.session import Session
from surepick.sessions.workers import is_dead
from surepick.store import Lease

HEARTBEAT = 60.0  # seconds after which what a process elsewhere had in hand is free if it has died
WAIT = 0.5  # seconds between two looks at whether others have left something to measure
_calls = itertools.count()
log = logging.getLogger("surepick.sessions")


class TerminatedError(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): there is no time to wait for what is under way."""


class Crew(Protocol):
    """Those who measure, several at a time."""

    def begin(self, request: Request) -> Future[Use]:
        """Begin to measure; the value, or why there is none, comes later."""
        ...

    def stop(self) -> None:
        """Give up all that is under way; it then fails soon."""
        ...


class Watcher(Protocol):
    """Is called whenever something was told, and while all there is to measure is in others' hands."""

    def __call__(self, session: Session, told: Sequence[tuple[Request, Use]], /, *, waiting: bool) -> None:
        """Look at the session."""
        ...


@dataclass
class _Loop:
    """One call of `measure_all`; `under_way` changes as measurements begin and end."""

    session: Session
    crew: Crew
    jobs: int
    retries: int
    watch: Watcher
    worker: str
    under_way: dict[Future[Use], tuple[Request, int]] = field(default_factory=dict)

    def run(self) -> None:
        while True:
            busy = {request.token for request, _ in self.under_way.values()}
            for request in self._ask(wait=not busy):
                if request.token not in busy:
                    self._begin(request, self.retries)
            if not self.under_way:
                return
            told, failures = self._tell_finished(), []
            for request, error in told.failed:
                self._give_back(request, str(error))
                failures.append(error)
            if told.values:
                self.watch(self.session, told.values, waiting=False)
            if failures:
                raise failures[0]

    def finish(self) -> None:
        """Wait for what is under way and record it, and release the rest; it may be called again."""
        for future, (request, _) in list(self.under_way.items()):
            if future.cancel():
                self._give_back(request, "stopped")
            else:
                try:
                    self.session.tell(request, future.result())
                except Exception as error:
                    self._give_back(request, str(error))
            del self.under_way[future]
        for lease in self.session.leases():  # of a measurement that was just beginning
            if lease.worker == self.worker:
                self._give_back(lease, "stopped")

    def _give_back(self, request: Request | Lease, why: str) -> None:
        with contextlib.suppress(SessionError):  # somebody told it a moment ago, or has it now
            self.session.release(request.token, why, worker=request.worker)

    def _ask(self, *, wait: bool) -> list[Request]:
        """What to measure now; while others hold all of it, wait, say so, and look whether they live."""
        session = self.session
        while not (requests := session.ask(self.jobs, worker=self.worker, wait=False, heartbeat=HEARTBEAT)):
            if not wait or session.status != "running":
                break
            give_back_for_the_dead(session)
            self.watch(session, (), waiting=True)
            time.sleep(WAIT)
        return requests

    def _begin(self, request: Request, tries: int) -> None:
        log.debug("session %r: measuring %r (%s)", self.session.name, request.probe_name, request.token)
        self.under_way[self.crew.begin(request)] = request, tries

    def _tell_finished(self) -> _Finished:
        """Wait for at least one measurement and tell all that are there; failed ones are tried again first.

        It wakes up now and then to ask again, which keeps the leases of long measurements.
        """
        done, _ = wait(self.under_way, timeout=self.session.lease / 4, return_when=FIRST_COMPLETED)
        finished = _Finished()
        for future in done:
            request, tries = self.under_way.pop(future)
            try:
                value = future.result()
                if value is None:
                    raise MeasureError(
                        f"{request.probe_name!r} gave None; return what was measured, a number"
                    )
                self.session.tell(request, value)
            except Exception as error:
                log.warning(
                    "session %r: %r was not measured: %s", self.session.name, request.probe_name, error
                )
                if tries:
                    self._begin(request, tries - 1)
                else:
                    finished.failed.append((request, error))
            else:
                log.debug("session %r: %r is %r", self.session.name, request.probe_name, value)
                finished.values.append((request, value))
        return finished


@dataclass
class _Finished:
    values: list[tuple[Request, Use]] = field(default_factory=list)
    failed: list[tuple[Request, Exception]] = field(default_factory=list)


def measure_all(session: Session, crew: Crew, *, jobs: int, watch: Watcher, retries: int = 0) -> None:
    """Ask, measure and tell, `jobs` at a time, until the session has ended.

    When a measurement fails for good its token is given back, the others under way are awaited and told, and
    the error goes to the caller; nothing that was measured is lost. So it is after Ctrl-C; a second one, and
    a TerminatedError, drop what is under way.
    """
    call = next(_calls)
    worker = f"run on {socket.gethostname()}, process {os.getpid()}" + (f", call {call}" if call else "")
    give_back_for_the_dead(session)
    loop = _Loop(session, crew, jobs, retries, watch, worker)
    try:
        loop.run()
    except TerminatedError:
        crew.stop()
        raise
    except KeyboardInterrupt:
        n = how_many(len(loop.under_way), "measurement")
        log.warning("session %r: waiting for %s under way; Ctrl-C again drops them", session.name, n)
        raise
    finally:
        try:
            loop.finish()
        except KeyboardInterrupt:
            crew.stop()
            loop.finish()
            raise


def give_back_for_the_dead(session: Session) -> None:
    """Give back the tokens of runs on this machine that ended without doing so: killed, or by a power cut."""
    for lease in session.leases():
        if is_dead(lease.worker):
            with contextlib.suppress(SessionError):  # it was told a moment ago
                session.release(lease.token, f"the {lease.worker}, is gone", worker=lease.worker)
