"""`decide`: the whole of a decision in one call of Python, as `surepick run` is for the shell."""

from __future__ import annotations

import inspect
import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, TypedDict, Unpack

import numpy as np

from surepick.core.doubt import no_guarantee
from surepick.core.frames import frame_cells, is_frame
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.past import Past
from surepick.core.policy import Policy
from surepick.core.problem import Problem
from surepick.core.wording import how_many
from surepick.errors import NoiseWarning, ParameterError, suggestion
from surepick.measure.executors import Measure, crew_of
from surepick.measure.loop import measure_all
from surepick.sessions.requests import Request, Use
from surepick.sessions.session import Session
from surepick.store import Store
from surepick.store.log import LEASE

EVERY = 1.0  # seconds between two lines of progress
log = logging.getLogger("surepick.sessions")

Callback = Callable[[Session, Request, Use], None]


class DecideOptions(TypedDict, total=False):
    """What `decide` takes beside the problem and the function, with what they are unless given.

    - `goal`: "largest" or "smallest", where options are given instead of a problem
    - `workers`: how many measurements are made at the same time; 1
    - `executor`: "threads", "processes", or an executor of `concurrent.futures`; "threads"
    - `store`: an address or a store; "memory://", which ends with the program
    - `name`: the session's name in its store; "decision"
    - `policy`: a policy, or its text as in "CombGapE:radius=published"; BetGapE unless told
    - `delta`, `epsilon`: of the policy, where none is given as an object; 0.05 and 0
    - `budget`: measurements after which it gives up; None
    - `seed`: of the policy's own randomness; 0
    - `lease`: seconds that a measurement is kept for a worker who does not answer; 3600
    - `past`: guesses or a history to begin with, which win no bet; None
    - `timeout`: seconds that a measurement may take; None. What takes longer counts as failed: if slow
      measurements tend to be high ones, leaving them out biases the rest, so be generous
    - `retries`: further tries when a measurement fails; 0
    - `progress`: True for a line on standard error every second in which something changes; False
    - `callbacks`: functions of (session, request, value), called after each measurement that was told; one
      that calls `session.close()` ends the decision
    """

    goal: str | None
    workers: int
    executor: str | Executor
    store: str | Store
    name: str
    policy: Policy | str | None
    delta: float
    epsilon: float
    budget: int | None
    seed: int
    lease: float
    past: Past | None
    timeout: float | None
    retries: int
    progress: bool
    callbacks: Sequence[Callback]


DEFAULTS: DecideOptions = {
    "goal": None,
    "workers": 1,
    "executor": "threads",
    "store": "memory://",
    "name": "decision",
    "policy": None,
    "delta": 0.05,
    "epsilon": 0.0,
    "budget": None,
    "seed": 0,
    "lease": LEASE,
    "past": None,
    "timeout": None,
    "retries": 0,
    "progress": False,
    "callbacks": (),
}


def decide(
    problem: AnyProblem | Sequence[Any] | Mapping[str, Any] | Any,
    measure: Measure,
    **options: Unpack[DecideOptions],
) -> Session:
    """Measure until the best plan is sure, or the budget is spent; the session that it ended as.

    `measure` is called with the name of an arm and returns one measurement of it; it may be an async
    function. Where the problem has probes it gets the name of one, and returns all its readings: a dictionary
    by their names, a list in their order, or a number if there is one. Where plans are played it gets the
    names of the arms to read, as a tuple, and returns their readings in the same way. Every value is in the
    store before the next is asked for. Started again with the same store, it goes on where it was: after an
    error, Ctrl-C, a kill or a power cut.

    Instead of a problem you can give the options to choose from, with a `goal`: a list, whose entries
    `measure` is called with; a dictionary, with its values; or a data frame, with its rows as dictionaries.
    Each is an arm, and the noise is unknown.

    When a measurement fails (raises, or takes longer than `timeout`) more often than `retries`, the others
    under way are awaited and told, and its error is raised. `options` are `DecideOptions`.

    >>> import surepick as sp
    >>> names = {"arm_names": ["road", "rail"], "plan_names": ["drive", "ride"]}
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise_scale=1, **names)
    >>> session = sp.decide(problem, {"road": 1.0, "rail": 9.0}.get, workers=2)
    >>> session.outcome.plan_name, session.status
    ('ride', <Status.CONFIDENT: 'confident'>)
    >>> seconds = {8: 3.0, 16: 2.0}
    >>> draw = np.random.default_rng(0).normal
    >>> sp.decide([8, 16], lambda threads: draw(seconds[threads], 0.1), goal="smallest").outcome.plan_name
    '16'
    """
    given = _completed(options)
    entries: Mapping[str, Any] | None = None
    if not isinstance(problem, Problem | OracleProblem):
        entries = entries_of(problem)
        problem = _problem_of(entries, given["goal"])
    elif given["goal"] is not None:
        raise ParameterError("the problem has its goal; leave goal out", field="goal")
    session = _opened(problem, given, frozenset(options))
    begun = "goes on" if session.ledger().n_told else "begun"
    log.info("session %r in %s: %s", session.name, session.store.place, begun)
    watch = _Watch(given["progress"], given["callbacks"])
    jobs, retries = given["workers"], given["retries"]
    try:
        how = jobs, given["executor"], given["timeout"]
        with crew_of(measure, *how, by_arms=problem.plays, entries=entries) as crew:
            measure_all(session, crew, jobs=jobs, watch=watch, retries=retries)
    except BaseException as error:
        kept = how_many(session.ledger().n_told, "measurement is", "measurements are")
        error.add_note(f"surepick: {kept} kept in {session.store.place}; the same call goes on from there")
        raise
    watch.last(session)
    log.info("session %r: %s after %s", session.name, session.status, session.ledger().n_measurements)
    if doubts := session.doubts:
        warnings.warn(f"{session.name}: {no_guarantee(doubts)}", NoiseWarning, stacklevel=2)
    return session


_own = [*inspect.signature(decide).parameters.values()][:2]
_named = [inspect.Parameter(k, inspect.Parameter.KEYWORD_ONLY, default=v) for k, v in DEFAULTS.items()]
setattr(decide, "__signature__", inspect.Signature([*_own, *_named]))  # noqa: B010  # for `help` and editors


def entries_of(given: Any) -> dict[str, Any]:
    """Return what is to be chosen from by name: entries of a list, values of a dictionary, rows of a frame.

    >>> entries_of(["a", 2]), entries_of({"slow": 1, "fast": 8})
    ({'a': 'a', '2': 2}, {'slow': 1, 'fast': 8})
    """
    if is_frame(given):
        columns, rows = frame_cells(given)
        labels = map(str, getattr(given, "index", range(len(rows))))  # pandas alone has an index
        named = list(zip(labels, [dict(zip(columns, row, strict=True)) for row in rows], strict=True))
    elif isinstance(given, Mapping):
        named = [(str(name), entry) for name, entry in given.items()]
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes):
        named = [(str(entry), entry) for entry in given]
    else:
        raise ParameterError(
            f"decide takes a problem, a list, a dictionary or a data frame, got {type(given).__name__}",
            field="problem",
        )
    entries = dict(named)
    if len(entries) < max(2, len(named)):
        what = "two of them have the same name" if len(entries) < len(named) else f"got {len(entries)}"
        raise ParameterError(f"give at least two different options to choose from; {what}", field="problem")
    return entries


def _problem_of(entries: Mapping[str, Any], goal: str | None) -> Problem:
    if goal not in ("largest", "smallest"):
        raise ParameterError(
            f'say what to look for: goal="largest" or goal="smallest", got {goal!r}', field="goal"
        )
    names = list(entries)
    plans = np.eye(len(names))
    return Problem(plans, arm_names=names, plan_names=names, minimize=goal == "smallest")


def _completed(options: DecideOptions) -> DecideOptions:
    for name in options:
        if name not in DEFAULTS:
            hint = suggestion(name, DEFAULTS)
            raise TypeError(f"decide() got an unexpected keyword argument {name!r}; {hint}")
    given: DecideOptions = {**DEFAULTS, **options}
    for name, least in (("workers", 1), ("retries", 0)):
        value: Any = given[name]  # type: ignore[literal-required]
        if not hasattr(value, "__index__") or value < least:
            raise ParameterError(f"{name} is a whole number, {least} or more, got {value!r}", field=name)
    if given["timeout"] is not None and not given["timeout"] > 0:
        raise ParameterError(f"timeout is in seconds, more than 0, got {given['timeout']!r}", field="timeout")
    return given


def _opened(problem: AnyProblem, given: DecideOptions, said: frozenset[str]) -> Session:
    """The session to go on with, or a new one."""
    kept = ("delta", "epsilon", "policy", "seed", "budget", "lease")
    settings: Any = {name: value for name, value in given.items() if name in kept and name in said}
    settings["prior"] = given["past"]
    return Session.open(given["store"], given["name"], problem, **settings)


class _Watch:
    """Calls the callbacks, and prints where the session stands when that has changed, once a second."""

    def __init__(self, progress: bool, callbacks: Sequence[Callback]) -> None:
        self._progress, self._callbacks = progress, callbacks
        self._next, self._line = 0.0, ""

    def __call__(self, session: Session, told: Sequence[tuple[Request, Use]], /, *, waiting: bool) -> None:
        for request, value in told:
            for callback in self._callbacks:
                callback(session, request, value)
        if self._progress and time.monotonic() >= self._next:
            self._say("waiting for what other workers measure" if waiting else session.line())

    def last(self, session: Session) -> None:
        """How it ended."""
        if self._progress:
            self._say(session.line())

    def _say(self, line: str) -> None:
        self._next = time.monotonic() + EVERY
        if line != self._line:
            print(line, file=sys.stderr)
        self._line = line
