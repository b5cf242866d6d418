"""Calling the user's program for measurements: one process each, with time-outs and retries."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from surepick.cli.printed import TAIL, last_number, readings
from surepick.core.probes import VALUE
from surepick.errors import MeasureError, SessionError

if TYPE_CHECKING:
    from surepick.sessions.requests import Request, Use

# Programs that make text for another shell of their arguments; after `sh -c SCRIPT` arguments are arguments.
READ_AGAIN = re.compile(
    r"(?:^|[\s;|&(`/])(?:(eval|ssh)\s[^;|&\n]*|((?:ba|da|k|z)?sh\s+-\w*c)\s+)\{(?:arm|probe)\}", re.ASCII
)
VARIABLES = {
    "{arm}": "SUREPICK_ARM",
    "{probe}": "SUREPICK_PROBE",
    "{index}": "SUREPICK_INDEX",
    "{token}": "SUREPICK_TOKEN",
}
READINGS = "SUREPICK_READINGS"  # the names of the readings that are wanted, a line each


@dataclass(frozen=True)
class Command:
    """A shell command with {arm} or {probe} (also {index} and {token}) where the name goes.

    Names never become part of the shell's text: a placeholder is replaced by a quoted environment variable
    (`SUREPICK_ARM`, `SUREPICK_PROBE`, `SUREPICK_INDEX`, `SUREPICK_TOKEN`), so that a name such as
    `$(rm -r x)` is only a name. Inside quotes that would not hold, and it is refused. `running` are the
    processes of measurements under way; it changes as they begin and end.
    """

    template: str
    timeout: float | None = None
    retries: int = 0
    running: set[subprocess.Popen[str]] = field(default_factory=set, compare=False)
    stopped: threading.Event = field(default_factory=threading.Event, compare=False)

    def __post_init__(self) -> None:
        if not any(word in self.template for word in VARIABLES):
            raise SessionError(
                f"the measure command needs {{arm}} where the arm's name goes ({{probe}} for a probe's), got "
                f"{self.template!r}"
            )
        quoted = _quoted_placeholder(self.template)
        if quoted is not None:
            raise SessionError(
                f"the measure command has {quoted} inside quotes, got {self.template!r}; write it without, "
                f"as in ./drive.sh {quoted} (a name is handed over as one argument, whatever it holds), or "
                f"read the environment variable {VARIABLES[quoted]} in your program"
            )
        again = READ_AGAIN.search(self.template)
        if again is not None:
            raise SessionError(
                f"the measure command hands {{arm}} to {again[1] or again[2]!r}, where a shell reads it as a "
                f"command, got {self.template!r}; hand it over as an input, as in printf %s {{arm}} | ssh "
                "host 'read -r arm; ./drive.sh \"$arm\"', or use {index}, which is a number"
            )

    def measure(self, request: Request) -> Use:
        """What the command prints for this arm or probe, after as many tries as are allowed.

        One reading is the last number; of several see `printed.readings`.
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
        text = self.template
        for word, variable in VARIABLES.items():
            text = text.replace(word, f'"${variable}"')
        values = (request.probe_name, request.probe_name, str(request.probe), request.token)
        variables = dict(zip(VARIABLES.values(), values, strict=True))
        code, output, errors = self._run(text, variables | {READINGS: "\n".join(request.readings)})
        if code != 0:
            shown = (errors or output).strip()[-TAIL:]
            raise MeasureError(
                f"the command for {request.probe_name!r} failed ({code}): {self.template}\n{shown}"
            )
        if request.readings == (VALUE,):
            return last_number(output, request.probe_name)
        return readings(output, request.probe_name, request.readings)

    def _run(self, text: str, variables: Mapping[str, str]) -> tuple[int | str, str, str]:
        """Exit code, output and errors of a shell command; all of its processes end with it."""
        try:
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
        except ValueError as error:  # a name with a NUL, or with half a letter
            raise MeasureError(
                f"the name {variables['SUREPICK_ARM']!r} cannot be handed to a program ({error}); begin "
                "again with another name"
            ) from None
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


def _quoted_placeholder(template: str) -> str | None:
    """The first placeholder that stands inside quotes of the shell, if one does.

    >>> _quoted_placeholder("./drive.sh --road={arm}"), _quoted_placeholder("echo '{arm}' 5")
    (None, '{arm}')
    """
    quote, at = "", 0
    while at < len(template):
        letter = template[at]
        if letter == "\\" and quote != "'":
            found = next((word for word in VARIABLES if template.startswith(word, at + 1)), None)
            if found:  # the backslash would be before the quote that we put there
                return found
            at += 1
        elif letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        elif quote:
            found = next((word for word in VARIABLES if template.startswith(word, at)), None)
            if found:
                return found
        at += 1
    return None


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


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
