"""Calling the user's program for measurements: one process each, with time-outs and retries."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from surepick.cli.printed import one_number, readings
from surepick.core.probes import VALUE
from surepick.errors import MeasureError, ParameterError

if TYPE_CHECKING:
    from surepick.sessions.requests import Request, Use

# Programs that make a script for a shell of their own out of their arguments.
SECOND_SHELL = {"ssh", "rsh", "su", "runuser", "eval"}
SHELL = {"sh", "bash", "dash", "ksh", "zsh"}
SHELL_SYNTAX = {"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"}
VARIABLES = {
    "{arm}": "SUREPICK_ARM",
    "{probe}": "SUREPICK_PROBE",
    "{index}": "SUREPICK_INDEX",
    "{token}": "SUREPICK_TOKEN",
}
NAMES = ("{arm}", "{probe}")  # placeholders for text that other people may have chosen
PLACEHOLDER = re.compile("|".join(map(re.escape, VARIABLES)))
TAIL = 400  # characters of a failed program's output to show
READINGS = "SUREPICK_READINGS"  # the names of the readings to print, one per line


@dataclass(frozen=True)
class Command:
    """A program and its arguments, with {arm} or {probe} (also {index}, {token}) where the name goes.

    The template is split into arguments once, as a shell would; placeholders are then replaced inside the
    arguments, and the program is called without a shell. So a name such as `$(rm -r x)` is only a name. The
    same values are in the environment variables `SUREPICK_ARM`, `SUREPICK_PROBE`, `SUREPICK_INDEX` and
    `SUREPICK_TOKEN`. `running` holds the processes of measurements under way.
    """

    template: str
    timeout: float | None = None
    retries: int = 0
    running: set[subprocess.Popen[str]] = field(default_factory=set, compare=False)
    stopped: threading.Event = field(default_factory=threading.Event, compare=False)

    def __post_init__(self) -> None:
        _check_words(self._words(), self.template)

    def _words(self) -> list[str]:
        try:
            return shlex.split(self.template)
        except ValueError as error:
            raise ParameterError(
                f"the measure command {self.template!r} cannot be split into words: {error}", field="measure"
            ) from None

    def measure(self, request: Request) -> Use:
        """Return what the command prints for this arm or probe, after as many tries as are allowed.

        The last line printed is one number, or a JSON object for a probe with several readings.
        """
        for left in reversed(range(self.retries + 1)):
            try:
                return self._once(request)
            except MeasureError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def stop(self) -> None:
        """End all measurements under way, and those that are just beginning."""
        self.stopped.set()
        for process in list(self.running):
            _kill(process)

    def _once(self, request: Request) -> Use:
        values = (request.probe_name, request.probe_name, str(request.probe), request.token)
        replacements = dict(zip(VARIABLES, values, strict=True))
        words = [PLACEHOLDER.sub(lambda found: replacements[found[0]], word) for word in self._words()]
        variables = dict(zip(VARIABLES.values(), values, strict=True))
        code, output, errors = self._run(words, variables | {READINGS: "\n".join(request.readings)})
        if code != 0:
            shown = (errors or output).strip()[-TAIL:]
            raise MeasureError(
                f"the command for {request.probe_name!r} failed ({code}): {self.template}\n{shown}"
            )
        if request.readings == (VALUE,):
            return one_number(output, request.probe_name)
        return readings(output, request.probe_name, request.readings)

    def _run(self, words: Sequence[str], variables: Mapping[str, str]) -> tuple[int | str, str, str]:
        """Return exit code, output and errors of a program; all of its processes end with it."""
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={**os.environ, **variables},
                start_new_session=True,
            )
        except ValueError as error:  # a name with a NUL, or with half a surrogate pair
            raise MeasureError(
                f"the name {variables['SUREPICK_ARM']!r} cannot be handed to a program ({error}); begin "
                "again with another name"
            ) from None
        except OSError as error:
            raise MeasureError(f"cannot start {words[0]!r}: {error.strerror}") from None
        self.running.add(process)
        if self.stopped.is_set():  # `stop` looked before this one was there
            _kill(process)
        try:
            output, errors = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            return f"no answer within {self.timeout:g} s", "", ""
        finally:
            _kill(process)
            self.running.discard(process)
        return process.returncode, output, errors


def _check_words(words: Sequence[str], template: str) -> None:
    """Refuse a command without a placeholder, one that needs a shell, and one that hands names to a shell."""
    if not any(PLACEHOLDER.search(word) for word in words):
        raise ParameterError(
            f"the measure command needs {{arm}} where the name goes, got {template!r}", field="measure"
        )
    if syntax := SHELL_SYNTAX.intersection(words):
        raise ParameterError(
            f"the measure command has {min(syntax)!r}, and it is called without a shell; put it into a "
            "script, as in ./drive.sh {arm}",
            field="measure",
        )
    programs = [word.rsplit("/", 1)[-1] for word in words]
    for place, word in enumerate(words):
        script = place > 1 and programs[place - 2] in SHELL and re.fullmatch(r"-\w*c", words[place - 1])
        if any(name in word for name in NAMES) and (script or SECOND_SHELL.intersection(programs[:place])):
            raise ParameterError(
                f"the measure command {template!r} makes the name part of a shell's script, which would run "
                "it; use {index}, or a script of your own that reads SUREPICK_ARM",
                field="measure",
            )


class Commands:
    """A crew of one command, called several times at once; it ends with the block that it is made in."""

    def __init__(self, command: Command, jobs: int) -> None:
        self._command, self._pool = command, ThreadPoolExecutor(jobs)

    def __enter__(self) -> Commands:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def begin(self, request: Request) -> Future[Use]:
        """Call the command for this arm or probe."""
        return self._pool.submit(self._command.measure, request)

    def stop(self) -> None:
        """End all measurements under way."""
        self._command.stop()


@contextlib.contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """Within, being asked to end (SIGTERM: a shutdown, a scheduler) is a Ctrl-C that waits for nothing."""
    from surepick.measure.loop import TerminatedError

    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
