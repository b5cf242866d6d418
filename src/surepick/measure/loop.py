"""Measure until a session has ended: ask, let workers measure several at a time, tell.

`surepick run` does this with programs, `surepick.decide` with Python functions. What was measured is recorded
as soon as it is there; whatever ends the loop releases the rest.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from surepick.core.wording import how_many
from surepick.errors import MeasureError, ParameterError, SessionError
from surepick.measure.workers import TerminatedError, Workers
from surepick.sessions.commands import Use
from surepick.sessions.leases import Request, is_dead
from surepick.sessions.session import Session
from surepick.store import Lease

LEASE = 60.0  # seconds: requests of a process elsewhere are free so long after it died
WAIT = 0.5  # seconds between two looks at whether other workers have left something to measure
_calls = itertools.count()
log = logging.getLogger("surepick.measure")


Progress = Callable[[Session, bool], None]  # called after values were recorded, and while it waits (True)


@dataclass
class _Loop:
    """One call of `measure_all`; `under_way` changes as measurements begin and end."""

    session: Session
    workers: Workers
    jobs: int
    retries: int
    final_batch: int | None
    progress: Progress
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
            failed = self._record_finished()
            for request, error in failed:
                self._release(request, str(error))
            if failed:
                raise failed[0][1]

    def finish(self) -> None:
        """Wait for what is under way and record it, and release the rest; it may be called again."""
        for future, (request, _) in list(self.under_way.items()):
            try:
                self.session.tell(request, future.result(), sure=True)
            except Exception as error:
                self._release(request, str(error))
            del self.under_way[future]
        for lease in self.session.leases():  # of a measurement that was just beginning
            if lease.worker == self.worker:
                self._release(lease, "stopped")

    def _release(self, request: Request | Lease, why: str) -> None:
        with contextlib.suppress(SessionError):  # another worker recorded it a moment ago, or has it now
            self.session.release(request.token, why, worker=request.worker)

    def _ask(self, *, wait: bool) -> list[Request]:
        """Return what to measure now; while other workers have all of it, wait for it or for their end."""
        session = self.session
        while not (requests := session.ask(self.jobs, worker=self.worker, wait=False, lease=LEASE)):
            if not wait or session.status != "running":
                break
            release_for_the_dead(session)
            self.progress(session, True)
            time.sleep(WAIT)
        return requests

    def _begin(self, request: Request, tries: int) -> None:
        log.debug("session %r: measuring %r (%s)", self.session.name, request.probe_name, request.token)
        self.under_way[self.workers.begin(request)] = request, tries

    def _record_finished(self) -> list[tuple[Request, Exception]]:
        """Wait for at least one measurement and record all that are there; return those that failed for good.

        It wakes up now and then to ask again, which keeps the leases of long measurements.
        """
        session = self.session
        done, _ = wait(
            self.under_way,
            timeout=min(LEASE, session.journal.setup.lease) / 4,
            return_when=FIRST_COMPLETED,
        )
        failed: list[tuple[Request, Exception]] = []
        for future in done:
            request, tries = self.under_way.pop(future)
            try:
                value = future.result()
                if value is None:
                    raise MeasureError(f"{request.probe_name!r} gave None; return a number")
                session.tell(request, value, sure=True)
                log.debug("session %r: %r is %r", session.name, request.probe_name, value)
            except Exception as error:
                if tries:
                    log.warning("%r failed, and is tried again: %s", request.probe_name, error)
                    self._begin(request, tries - 1)
                else:
                    failed.append((request, error))
        if len(failed) < len(done):
            self._begin_final_batch()
            self.progress(session, False)
        return failed

    def _begin_final_batch(self) -> None:
        """Make the rest of the budget one final batch, as soon as it is no more than was asked for."""
        budget = self.session.journal.setup.budget
        if self.final_batch is None or budget is None:
            return
        state = self.session.state()
        is_possible = not state.is_over and state.final is None
        if is_possible and state.streams.n_missing < budget - state.n_measurements <= self.final_batch:
            self.session.final_batch()


def measure_all(
    session: Session,
    workers: Workers,
    *,
    jobs: int = 1,
    retries: int = 0,
    final_batch: int | None = None,
    progress: Progress = lambda session, waiting: None,
) -> None:
    """Ask, measure and tell until the session has ended.

    - jobs: how many are measured at the same time
    - retries: further tries of a measurement that fails
    - final_batch: how many of the budget's measurements are the final batch

    When a measurement fails for good, its request is released, the others under way are awaited and recorded,
    and the error is raised; nothing that was measured is lost. The same happens after Ctrl-C. A second one,
    and a TerminatedError, drop what is under way.
    """
    if final_batch is not None and session.journal.setup.budget is None:
        raise ParameterError("the final batch is the end of the budget; give a budget too", field="budget")
    if jobs > 1 and getattr(session.policy, "one_at_a_time", False):
        log.warning("session %r: %d at the same time disturb each other; use 1", session.name, jobs)
    call = next(_calls)
    worker = f"run on {socket.gethostname()}, process {os.getpid()}" + (f", call {call}" if call else "")
    release_for_the_dead(session)
    loop = _Loop(session, workers, jobs, retries, final_batch, progress, worker)
    try:
        loop.run()
    except TerminatedError:
        workers.stop()
        raise
    finally:
        try:
            if loop.under_way:
                n = how_many(len(loop.under_way), "measurement")
                log.warning("session %r: waiting for %s under way; Ctrl-C drops them", session.name, n)
            loop.finish()
        except KeyboardInterrupt:
            workers.stop()
            loop.finish()
            raise


def release_for_the_dead(session: Session) -> None:
    """Release the requests of runs on this machine that were killed, or ended by a power cut."""
    for lease in session.leases():
        if is_dead(lease.worker):
            with contextlib.suppress(SessionError):  # it was recorded a moment ago
                session.release(lease.token, f"the {lease.worker}, is gone", worker=lease.worker)
