"""Calling the user's program for measurements: one process each, with time-outs and retries."""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from surepick.core.numerals import is_numeral, numeral
from surepick.errors import SessionError

if TYPE_CHECKING:
    from surepick.sessions.requests import Request
    from surepick.sessions.session import Session

HAS_NUMBER = re.compile(r"\d|(?<!\w)(?:nan|inf|infinity)(?!\w)", re.IGNORECASE)
LIST = re.compile(r"[;:=|]+")  # what may stand between numbers of one word, beside commas
DECIMALS = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?", re.ASCII)  # between commas these are a list
GROUPS = re.compile(r"(?<![\d.,])[-+]?\d{1,3}(?: \d{3})+(?:[.,]\d+)?$")  # 1 234 at the end of the output
BRACKETS = "()[]{}<>"
AROUND = BRACKETS + "\"'$\u20ac\u00a3%"  # may stand around a number
TAIL = 400  # characters of a failed program's output to show
WAIT = 0.5  # seconds between two looks at whether others have left something to measure
VARIABLES = {"{arm}": "SUREPICK_ARM", "{index}": "SUREPICK_INDEX", "{token}": "SUREPICK_TOKEN"}
RUN = re.compile(r"run on (?P<host>.*), process (?P<process>\d+)")


class MeasureError(SessionError):
    """The user's program did not give a measurement; its token was given back."""


@dataclass(frozen=True)
class Command:
    """A shell command with {arm} (also {index} and {token}) where the arm's name goes.

    Names never become part of the shell's text: a placeholder is replaced by a quoted environment variable
    (`SUREPICK_ARM`, `SUREPICK_INDEX`, `SUREPICK_TOKEN`), so that a name such as `$(rm -r x)` is only a name.
    Inside quotes that would not hold, and it is refused. `running` are the processes of measurements under
    way; it changes as they begin and end.
    """

    template: str
    timeout: float | None = None
    retries: int = 0
    running: set[subprocess.Popen[str]] = field(default_factory=set, compare=False)

    def __post_init__(self) -> None:
        if not any(word in self.template for word in VARIABLES):
            raise SessionError(
                f"the measure command needs {{arm}} where the arm's name goes, got {self.template!r}"
            )
        quoted = _quoted_placeholder(self.template)
        if quoted is not None:
            raise SessionError(
                f"the measure command has {quoted} inside quotes, got {self.template!r}; write it without, "
                f"as in ./drive.sh {quoted} (a name is handed over as one argument, whatever it holds), or "
                f"read the environment variable {VARIABLES[quoted]} in your program"
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
        for word, variable in VARIABLES.items():
            text = text.replace(word, f'"${variable}"')
        values = (request.arm_name, str(request.arm), request.token)
        code, output, errors = self._run(text, dict(zip(VARIABLES.values(), values, strict=True)))
        if code != 0:
            shown = (errors or output).strip()[-TAIL:]
            raise MeasureError(
                f"the command for arm {request.arm_name!r} failed ({code}): {self.template}\n{shown}"
            )
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


def _quoted_placeholder(template: str) -> str | None:
    """The first placeholder that stands inside quotes of the shell, if one does.

    >>> _quoted_placeholder("./drive.sh --road={arm}"), _quoted_placeholder("echo '{arm}' 5")
    (None, '{arm}')
    """
    quote, at = "", 0
    while at < len(template):
        letter = template[at]
        if letter == "\\" and quote != "'":
            at += 1
        elif letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        elif quote:
            found = next((word for word in VARIABLES if template.startswith(word, at)), None)
            if found:
                return found
        at += 1
    return None


def last_number(output: str, arm_name: str) -> float:
    """The number that a program printed last; what is not plainly one number is refused.

    Words are looked at from the end: the first that has a digit must be a number, or a list that ends with
    one. So a unit may follow after a space, and 1,234 or 1'234 or 12.5h is an error instead of a wrong value.

    >>> last_number("run 3 took\\n 12.5 h", "road"), last_number("12,5", "road")
    (12.5, 12.5)
    """
    words = re.split(r"[ \t\r\n\f\v]+", output.strip())  # other spaces, as in 1 234, belong to a word
    word = next((word for word in reversed(words) if HAS_NUMBER.search(word)), None)
    if word is None:
        shown = output.strip()[-TAIL:]
        raise MeasureError(f"the command for arm {arm_name!r} printed no number, got {shown!r}")
    piece = _last_of_list(word.strip(AROUND + ",;.!"), bracketed=any(sign in word for sign in BRACKETS))
    if piece is None or not is_numeral(piece) or GROUPS.search(output.strip()):
        raise MeasureError(
            f"the command for arm {arm_name!r} printed {output.strip()[-TAIL:]!r}, and {word!r} is not "
            "plainly one number; print the value last, with a decimal point and nothing between thousands, "
            "such as 1234.5; a unit may follow after a space"
        )
    value = numeral(piece)
    if not math.isfinite(value):
        raise MeasureError(f"the command for arm {arm_name!r} measured {value}, which is not a finite number")
    return value


def _last_of_list(word: str, *, bracketed: bool) -> str | None:
    """The last number of a word that may be a list; None where commas may be decimal ones or not.

    >>> [_last_of_list(word, bracketed=False) for word in ("x=12,5", "12.5,13.5", "1,2,3")]
    ['12,5', '13.5', None]
    >>> _last_of_list("3,4", bracketed=True)
    """
    last = LIST.split(word)[-1].strip(AROUND)
    parts = last.split(",")
    if len(parts) == 1 or (len(parts) == 2 and not bracketed and parts[1].isdecimal()):
        return last
    return parts[-1] if all(map(DECIMALS.fullmatch, parts)) else None


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


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
