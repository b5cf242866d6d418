"""Call a program for each measurement: one process each, without a shell."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
LARGEST = 1e300  # a reading
TAIL, SHOWN = 400, 120  # characters of a failed program's output, and of one that cannot be read, to show


class Ended(NamedTuple):
    """How a program ended: its exit code (None: it took too long), its seconds and what it printed."""

    code: int | None
    seconds: float
    output: str
    errors: str


class Programs:
    """Runs programs without a shell, each in a process group of its own; `stop` ends all under way."""

    def __init__(self, timeout: float | None = None) -> None:
        self.timeout = timeout
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End all programs under way, and those that are just beginning."""
        self._stopped.set()
        for process in list(self._running):
            _kill(process)

    def run(
        self, words: Sequence[str], variables: Mapping[str, str] | None = None, *, output: bool = True
    ) -> Ended:
        """Run a program; all of its processes end with it. Without `output` what it prints is dropped."""
        late = threading.Event()
        environment = {**os.environ, **(variables or {})}
        with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as errors:
            begin = time.perf_counter()
            try:
                process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=printed if output else subprocess.DEVNULL,
                    stderr=errors,
                    env=environment,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:  # ValueError: a NUL, or half a surrogate pair, in a name
                raise MeasureError(f"cannot start {shlex.join(words)!r}: {error}") from None
            self._running.add(process)
            if self._stopped.is_set():  # `stop` looked before this one was there
                _kill(process)

            def end() -> None:
                late.set()
                _kill(process)

            # `wait` with a timeout would poll, which is as coarse as what is timed
            timer = threading.Timer(self.timeout or 0.0, end)
            try:
                if self.timeout is not None:
                    timer.start()
                process.wait()
                seconds = time.perf_counter() - begin
            finally:
                timer.cancel()
                _kill(process)
                self._running.discard(process)
            texts = []
            for file in (printed, errors):
                file.seek(0)
                texts.append(file.read().decode(errors="replace"))
        return Ended(None if late.is_set() else process.returncode, seconds, *texts)


class Command(Programs):
    """A program and its arguments, with {arm} (or {probe}) where the name goes.

    Placeholders are replaced inside the arguments, and the program is called without a shell: a name such as
    `$(rm -r x)` is only a name. {seed} becomes a number that is new for each measurement: a simulation that
    is seeded with it gives all readings of one probe the same random numbers. The same values are in the
    environment variables SUREPICK_ARM, SUREPICK_PROBE and SUREPICK_SEED.
    """

    def __init__(self, words: Sequence[str], timeout: float | None = None) -> None:
        super().__init__(timeout)
        _check_words(words)
        self.words = words

    def measure(self, request: Request) -> Use:
        """Return what the command prints for this arm or probe.

        The last line printed is one number, or a JSON object for a probe with several readings.
        """
        name = request.probe_name
        values = dict(zip(VARIABLES, (name, name, str(request.seed)), strict=True))
        words = [PLACEHOLDER.sub(lambda found: values[found[0]], word) for word in self.words]
        variables = {VARIABLES[placeholder]: value for placeholder, value in values.items()}
        ended = self.run(words, variables | {READINGS: "\n".join(request.readings)})
        if ended.code is None:
            raise MeasureError(f"{words[0]} failed for {name!r} (no answer within {self.timeout:g} s)")
        if ended.code != 0:
            shown = (ended.errors or ended.output).strip()[-TAIL:]
            words_of = f":\n{shown}" if shown else ""
            raise MeasureError(f"{words[0]} failed for {name!r} ({ended.code}){words_of}")
        if request.readings == (VALUE,):
            return one_number(ended.output, name)
        return readings(ended.output, name, request.readings)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


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
    values: list[Any] = [found.get(reading) for reading in wanted] if isinstance(found, dict) else [None]
    if not all(type(value) in (int, float) and abs(value) < LARGEST for value in values):
        example = json.dumps(dict.fromkeys(wanted[:3], 1.5))
        raise _unreadable(name, line, f"a JSON object of all {len(wanted)} readings, such as {example}")
    return dict(zip(wanted, map(float, values), strict=True))


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _unreadable(name: str, line: str, expected: str) -> MeasureError:
    return MeasureError(
        f"the command for {name!r} printed {line[-SHOWN:]!r}; expected {expected} on its last line"
    )
