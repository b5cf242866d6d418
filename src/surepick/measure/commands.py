"""Call a program for each measurement: one process each, without a shell."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from surepick.core.probes import VALUE
from surepick.errors import MeasureError, ParameterError

if TYPE_CHECKING:
    from surepick.sessions.commands import Use
    from surepick.sessions.leases import Request

# Programs that make a script for a shell of their own out of their arguments.
SECOND_SHELL = {"ssh", "rsh", "su", "runuser", "eval"}
SHELL = {"sh", "bash", "dash", "ksh", "zsh"}
SHELL_SYNTAX = {"|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"}
VARIABLES = {"{arm}": "SUREPICK_ARM", "{probe}": "SUREPICK_PROBE", "{seed}": "SUREPICK_SEED"}
NAMES = ("{arm}", "{probe}")  # placeholders for text that other people may have chosen
PLACEHOLDER = re.compile("|".join(map(re.escape, VARIABLES)))
READINGS = "SUREPICK_READINGS"  # the names of the readings to print, one per line
# Nothing else may stand on the line: "5 ± 0.2", "12:30", "mean=4 sd=2" or "1,234" have more than one meaning.
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
TAIL, SHOWN = 400, 120  # characters of a failed program's output, and of one that cannot be read, to show


@dataclass(frozen=True)
class Command:
    """A program and its arguments, with {arm} (or {probe}) where the name goes.

    Placeholders are replaced inside the arguments, and the program is called without a shell: a name such as
    `$(rm -r x)` is only a name. {seed} becomes a number that is new for each measurement: a simulation that
    is seeded with it gives all readings of one probe the same random numbers. The same values are in the
    environment variables SUREPICK_ARM, SUREPICK_PROBE and SUREPICK_SEED. `running` holds the processes
    of measurements under way.
    """

    words: Sequence[str]
    timeout: float | None = None
    running: set[subprocess.Popen[str]] = field(default_factory=set, compare=False)
    stopped: threading.Event = field(default_factory=threading.Event, compare=False)

    def __post_init__(self) -> None:
        _check_words(self.words)

    def measure(self, request: Request, *, retries: int = 0) -> Use:
        """Return what the command prints for this arm or probe, after as many further tries as are allowed.

        The last line printed is one number, or a JSON object for a probe with several readings.
        """
        while True:
            try:
                return self._once(request)
            except MeasureError:
                if not retries:
                    raise
                retries -= 1

    def stop(self) -> None:
        """End all measurements under way, and those that are just beginning."""
        self.stopped.set()
        for process in list(self.running):
            _kill(process)

    def _once(self, request: Request) -> Use:
        name = request.probe_name
        values = dict(zip(VARIABLES, (name, name, str(request.seed)), strict=True))
        words = [PLACEHOLDER.sub(lambda found: values[found[0]], word) for word in self.words]
        variables = {VARIABLES[placeholder]: value for placeholder, value in values.items()}
        code, output, errors = self._run(words, variables | {READINGS: "\n".join(request.readings)})
        if code != 0:
            shown = (errors or output).strip()[-TAIL:]
            raise MeasureError(f"{words[0]} failed for {name!r} ({code})" + (f":\n{shown}" if shown else ""))
        if request.readings == (VALUE,):
            return one_number(output, name)
        return readings(output, name, request.readings)

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
            name = variables["SUREPICK_ARM"]
            raise MeasureError(
                f"the name {name!r} cannot be handed to a program ({error}); begin again with another name"
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


def _check_words(words: Sequence[str]) -> None:
    """Refuse a command without a placeholder, one that needs a shell, and one that hands names to a shell."""
    if not any(PLACEHOLDER.search(word) for word in words):
        raise ParameterError(
            f"the command needs {{arm}} where the name goes, got {' '.join(words)!r}", field="measure"
        )
    if syntax := SHELL_SYNTAX.intersection(words):
        raise ParameterError(
            f"the command has {min(syntax)!r} and is called without a shell; put it into a script: "
            "./drive.sh {arm}",
            field="measure",
        )
    programs = [word.rsplit("/", 1)[-1] for word in words]
    for place, word in enumerate(words):
        script = place > 1 and programs[place - 2] in SHELL and re.fullmatch(r"-\w*c", words[place - 1])
        if any(name in word for name in NAMES) and (script or SECOND_SHELL.intersection(programs[:place])):
            raise ParameterError(
                f"the command {' '.join(words)!r} makes the name part of a shell's script, which would run "
                "it; call a script of your own that reads SUREPICK_ARM",
                field="measure",
            )


def one_number(output: str, name: str) -> float:
    """Return the number on the last line that a program printed for the arm `name`.

    >>> one_number("warming up\\n12.5\\n", "road")
    12.5
    """
    line = _last_line(output)
    if NUMBER.fullmatch(line) is None or not math.isfinite(value := float(line)):
        raise _unreadable(name, line, "one number, such as 1234.5")
    return value


def readings(output: str, name: str, wanted: Sequence[str]) -> dict[str, float]:
    """Return the readings by name from the JSON object on the last line that a program printed.

    >>> readings('done\\n{"A-B": 3.2, "B-C": 4}', "loop", ["A-B", "B-C"])
    {'A-B': 3.2, 'B-C': 4.0}
    """
    line = _last_line(output)
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(_is_number(found.get(reading)) for reading in wanted):
        example = json.dumps(dict.fromkeys(wanted[:3], 1.5))
        raise _unreadable(name, line, f"a JSON object of all {len(wanted)} readings, such as {example}")
    return {reading: float(found[reading]) for reading in wanted}


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _is_number(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < math.inf  # type: ignore[arg-type]


def _unreadable(name: str, line: str, expected: str) -> MeasureError:
    return MeasureError(
        f"the command for {name!r} printed {line[-SHOWN:]!r}; expected {expected} on its last line"
    )


class Commands:
    """A command that is called several times at once; it ends with the block that it is made in."""

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
    """Within, a request to end (SIGTERM: a shutdown, a scheduler) is a Ctrl-C that waits for nothing."""
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
