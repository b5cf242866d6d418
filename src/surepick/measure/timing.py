"""Time programs and functions, one at a time, for a `SignRace`: who is fastest?"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.errors import MeasureError, ParameterError
from surepick.measure.commands import SHELL_SYNTAX, TAIL, Programs

if TYPE_CHECKING:
    from surepick.sessions.session import Session

FEWEST = 12  # rounds before a drift is looked for


def seconds(function: Callable[[], Any]) -> float:
    """Return how long a call of this function takes: what `decide` measures when it times functions.

    >>> import surepick as sp
    >>> view = sp.decide(
    ...     {"short": lambda: sum(range(10)), "long": lambda: sum(range(10_000))},
    ...     seconds,
    ...     goal="smallest",
    ...     policy="SignRace",
    ... )
    >>> view.plan
    'short'
    """
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def as_words(command: str, *, shell: bool) -> list[str]:
    """Return the program and arguments of a command line; with `shell` a shell reads it.

    >>> as_words("gzip -c 'my file'", shell=False), as_words("sort f | uniq", shell=True)
    (['gzip', '-c', 'my file'], ['/bin/sh', '-c', 'sort f | uniq'])
    """
    if shell:
        return ["/bin/sh", "-c", command]
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ParameterError(f"{command!r} cannot be read ({error})", field="commands") from None
    if syntax := SHELL_SYNTAX.intersection(words):
        raise ParameterError(f"{command!r} has {min(syntax)!r}; add --shell", field="shell")
    if not words:
        raise ParameterError("an empty command cannot be timed", field="commands")
    return words


class CommandTimer(Programs):
    """Runs one command after the other and measures the time of each, from its start to its end.

    Output is dropped. `prepare` runs before each of them and is not timed. A command that fails, or takes
    longer than `timeout` seconds, is an error.
    """

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],  # words, by name
        prepare: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(timeout)
        self.commands = commands
        self.prepare = prepare

    def time(self, name: str) -> float:
        """Return the seconds that this command takes."""
        if self.prepare is not None:
            self._seconds(self.prepare)
        return self._seconds(self.commands[name])

    def _seconds(self, words: Sequence[str]) -> float:
        ended = self.run(words, output=False)
        if ended.code is None:
            raise MeasureError(f"{shlex.join(words)} took more than {self.timeout:g} s; see --timeout")
        if ended.code != 0:
            tail = ended.errors.strip()[-TAIL:]
            raise MeasureError(
                f"{shlex.join(words)} failed ({ended.code}){tail and f':{chr(10)}{tail}'}\n"
                "its exit code does not matter? Write 'COMMAND || true' and add --shell"
            )
        return ended.seconds


def rounds_of(session: Session) -> FloatArray:
    """Return the values of a race by round and plan; NaN where a plan was not measured, or its value lost."""
    values: dict[tuple[int, int], float] = {}
    for one in session.measurements():
        if one.token is not None and not one.removed:
            values[int(one.token.rpartition(".")[2]), one.probe] = one.value
    n = 1 + max((at for at, _ in values), default=-1)
    found = np.full((n, session.problem.n_arms), np.nan)
    for place, value in values.items():
        found[place] = value
    return found


def drift(rounds: FloatArray) -> float:
    """Return by which share the last third of the rounds is slower than the first; 0 for a few rounds.

    It compares the commands with themselves, so which of them are left does not matter.

    >>> round(drift(np.repeat([[1.0, 2.0], [1.0, 2.0], [1.5, 3.0]], 4, axis=0)), 3)
    0.5
    """
    if len(rounds) < FEWEST:
        return 0.0
    third = len(rounds) // 3
    stays = np.isfinite(rounds[0]) & np.isfinite(rounds[-1])
    ratios = np.nanmedian(rounds[-third:, stays], axis=0) / np.nanmedian(rounds[:third, stays], axis=0)
    return float(np.median(ratios)) - 1.0


def load() -> float:
    """Return the load of the last minute, per processor: the mean number of programs ready to run."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):  # Windows has no such function; other systems may not know
        return 0.0
