"""Calling the user's program for measurements: one process each, with time-outs and retries."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from surepick.errors import SessionError

if TYPE_CHECKING:
    from surepick.sessions.session import Request, Session

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\w)")
DOUBTFUL = re.compile(r"(?<![\w.])[-+]?\d+,[\d.,]*(?:[eE][-+]?\d+)?$")  # 12,5 or 1,234.5, at the end
NO_NUMBER = re.compile(r"(?<!\w)[-+]?(?:nan|inf|infinity)(?!\w)", re.IGNORECASE)
TAIL = 400  # characters of a failed program's output to show
WAIT = 0.5  # seconds between two looks at whether others have left something to measure
RUN = re.compile(r"run on (?P<host>.*), process (?P<process>\d+)")


class MeasureError(SessionError):
    """The user's program did not give a measurement; its token was given back."""


@dataclass(frozen=True)
class Command:
    """A shell command with {arm} (also {index} and {token}) where the arm's name goes.

    `running` are the processes of measurements under way; it changes as they begin and end.
    """

    template: str
    timeout: float | None = None
    retries: int = 0
    running: set[subprocess.Popen[str]] = field(default_factory=set, compare=False)

    def __post_init__(self) -> None:
        if not any(word in self.template for word in _words("", 0, "")):
            raise SessionError(
                f"the measure command needs {{arm}} where the arm's name goes, got {self.template!r}"
            )

    def measure(self, request: Request) -> float:
        """The last number that the command prints for this arm, after as many tries as are allowed."""
        for left in reversed(range(self.retries + 1)):
            try:
                return self._once(request)
            except MeasureError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """End all measurements under way."""
        for process in list(self.running):
            _kill(process)

    def _once(self, request: Request) -> float:
        text = self.template
        for word, value in _words(request.arm_name, request.arm, request.token).items():
            text = text.replace(word, shlex.quote(value))
        variables = {"SUREPICK_ARM": request.arm_name, "SUREPICK_TOKEN": request.token}
        code, output, errors = self._run(text, variables)
        if code != 0:
            shown = (errors or output).strip()[-TAIL:]
            raise MeasureError(f"the command for arm {request.arm_name!r} failed ({code}): {text}\n{shown}")
        return last_number(output, request.arm_name)

    def _run(self, text: str, variables: Mapping[str, str]) -> tuple[int | str, str, str]:
        """Exit code, output and errors of a shell command; all of its processes end with it."""
        process = subprocess.Popen(
            text,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, **variables},
            start_new_session=True,
        )
        self.running.add(process)
        try:
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            return f"no answer within {self.timeout:g} s", "", ""
        finally:
            _kill(process)
            self.running.discard(process)
        return process.returncode, output, errors


def last_number(output: str, arm_name: str) -> float:
    """The last number in what a program printed.

    >>> last_number("run 3 took\\n 12.5 h", "road")
    12.5
    """
    found = [*NUMBER.finditer(output), *NO_NUMBER.finditer(output)]
    if not found:
        shown = output.strip()[-TAIL:]
        raise MeasureError(f"the command for arm {arm_name!r} printed no number, got {shown!r}")
    last = max(found, key=re.Match.start)
    if DOUBTFUL.search(output, max(0, last.start() - 40), last.end()):
        raise MeasureError(
            f"the command for arm {arm_name!r} printed {output.strip()[-TAIL:]!r}: a number with a comma can "
            "be read in two ways; print it with a decimal point and nothing between thousands"
        )
    value = float(last.group())
    if not math.isfinite(value):
        raise MeasureError(f"the command for arm {arm_name!r} measured {value}, which is not a finite number")
    return value


class Show(Protocol):
    """Says where the session stands, and whether all there is to measure is in the hands of others."""

    def __call__(self, session: Session, *, waiting: bool = False) -> None:
        """Say it."""
        ...


def measure_all(session: Session, command: Command, *, jobs: int, show: Show) -> None:
    """Ask, call the command and tell, several at a time, until the session has ended.

    When a measurement fails for good its token is given back, the others under way are awaited and told, and
    the error goes to the caller; nothing that was measured is lost.
    """
    worker = f"run on {socket.gethostname()}, process {os.getpid()}"
    give_back_for_the_dead(session)
    under_way: dict[Future[float], Request] = {}
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while True:
                busy = {request.token for request in under_way.values()}
                ask = _ask if not busy else _ask_once
                for request in ask(session, jobs, worker, show):
                    if request.token not in busy:
                        under_way[pool.submit(command.measure, request)] = request
                if not under_way:
                    return
                _tell_finished(session, under_way)
                show(session)
        except BaseException as error:
            if not isinstance(error, MeasureError):
                command.stop()
            raise
        finally:
            _finish(session, under_way)


def _ask_once(session: Session, jobs: int, worker: str, _: Show) -> list[Request]:
    return session.ask(jobs, worker=worker, wait=False)


def _ask(session: Session, jobs: int, worker: str, show: Show) -> list[Request]:
    """What to measure now; while others hold all of it this waits, says so, and looks whether they live."""
    while not (requests := session.ask(jobs, worker=worker, wait=False)) and session.status is None:
        give_back_for_the_dead(session)
        show(session, waiting=True)
        time.sleep(WAIT)
    return requests


def give_back_for_the_dead(session: Session) -> None:
    """Give back the tokens of runs on this machine that ended without doing so: killed, or by a power cut."""
    for lease in session.leases():
        if _is_dead(lease.worker):
            with contextlib.suppress(SessionError):  # it was told a moment ago
                session.withdraw(lease.token, f"the {lease.worker}, is gone")


def _is_dead(worker: str) -> bool:
    """Whether this is the name of a run on this machine, and there is no such process any more.

    >>> _is_dead("truck 7"), _is_dead(f"run on {socket.gethostname()}, process {os.getpid()}")
    (False, False)
    """
    found = RUN.fullmatch(worker)
    if found is None or found["host"] != socket.gethostname():
        return False
    try:
        os.kill(int(found["process"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, and is somebody else's
        return False
    return False


@contextlib.contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """Within, being asked to end (SIGTERM: a shutdown, a scheduler) is what Ctrl-C is."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _tell_finished(session: Session, under_way: dict[Future[float], Request]) -> None:
    """Wait for at least one measurement and tell all that are there."""
    finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
    failures = []
    for future in finished:
        request = under_way.pop(future)
        try:
            session.tell(request, future.result())
        except MeasureError as error:
            session.withdraw(request, str(error))
            failures.append(error)
    if failures:
        raise failures[0]


def _finish(session: Session, under_way: dict[Future[float], Request]) -> None:
    """Tell what still comes and give the rest back."""
    for future, request in under_way.items():
        if future.cancel():
            session.withdraw(request, "stopped")
            continue
        try:
            session.tell(request, future.result())
        except MeasureError as error:
            session.withdraw(request, str(error))


def _words(arm: str, index: int, token: str) -> dict[str, str]:
    return {"{arm}": arm, "{index}": str(index), "{token}": token}


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
