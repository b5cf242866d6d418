"""`decide`: a whole decision in one call of Python, as `surepick run` is for the shell."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from surepick.core.given.plans import frame_cells, is_frame
from surepick.core.guarantee import no_guarantee
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.policy import Policy
from surepick.core.prior_data import PriorData
from surepick.core.problem import Problem
from surepick.core.wording import how_many
from surepick.errors import NoiseWarning, ParameterError, hinted
from surepick.measure.loop import measure_all
from surepick.measure.workers import Measure, workers_for
from surepick.sessions.leases import Request
from surepick.sessions.session import Session
from surepick.store import Store
from surepick.views.view import View

EVERY = 1.0  # seconds between two reports of progress
log = logging.getLogger("surepick.measure")


@hinted
def decide(
    problem: AnyProblem | Sequence[Any] | Mapping[str, Any] | Any,
    measure: Measure,
    *,
    goal: str | None = None,
    low: float | None = None,
    high: float | None = None,
    noise: float | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    budget: int | None = None,
    policy: Policy | str | None = None,
    store: str | Store | None = None,
    session: str = "decision",
    workers: int = 1,
    executor: str | Executor = "threads",
    timeout: float | None = None,
    retries: int = 0,
    incumbent: str | int | None = None,
    prior: PriorData | None = None,
    final_batch: int | None = None,
    seed: int = 0,
    progress: bool | Callable[[View], object] = False,
) -> View:
    """Measure until the best plan is known, or the budget is spent; return the View of the session.

    - problem: a Problem; or the options to choose from, with a `goal`: a list, whose entries `measure` is
      called with, a dictionary (its values) or a data frame (its rows as dictionaries). Each option is an
      arm.
    - measure: a function, also an async one, of the name of an arm that returns one measurement of it. Where
      the problem has probes, it gets the name of a probe and returns its readings: a dictionary by their
      names, a list in their order, or a number if there is one. Where plans are measured, it gets the names
      of the arms to read, as a tuple. If it has a parameter `seed`, it gets a number that is new for each
      measurement: a simulator that uses it gives all readings of one probe the same random numbers.
    - goal: "largest" or "smallest", where options are given instead of a problem
    - low, high, noise: limits of every value, such as 0 and 1 for failure and success, or the standard
      deviation of one measurement, where options are given; with neither the noise is learned
    - delta: how often the answer may be wrong (0.05 unless given)
    - epsilon: the difference in value that does not matter (0 unless given)
    - budget: the most measurements
    - policy: a policy, or its text such as "CombGapE"; BetGapE unless given
    - store: an address or a store; memory, which ends with the program, unless given
    - session: the name of the session in its store
    - workers: how many measurements are made at the same time
    - executor: "threads", "processes", or an executor of `concurrent.futures`
    - timeout: seconds that a measurement may take. What takes longer counts as failed: if slow measurements
      tend to be high ones, leaving them out biases the rest, so be generous
    - retries: further tries when a measurement fails
    - incumbent: the plan in use, by its name or number: is any other better?
    - prior: guesses or earlier values; they guide the design and never count as evidence
    - final_batch: how many of the budget's measurements are made as one final batch
    - seed: of the policy's own randomness
    - progress: True prints a line on standard error once a second; a function is called with the View

    Every value is in the store before the next is asked for. The same call with the same store continues
    after an error, Ctrl-C, a kill or a power cut. When a measurement fails more often than `retries`, the
    others under way are awaited and recorded, and its error is raised. So it is after Ctrl-C; a second one
    drops what is under way.

    >>> import numpy as np, surepick as sp
    >>> seconds, draw = {8: 3.0, 16: 2.0}, np.random.default_rng(0).normal
    >>> view = sp.decide([8, 16], lambda threads: draw(seconds[threads], 0.1), goal="smallest")
    >>> view.plan, view.state
    ('16', 'confident')
    """
    for name, number, least in (("workers", workers, 1), ("retries", retries, 0)):
        if not hasattr(number, "__index__") or number < least:
            raise ParameterError(f"{name} is a whole number, {least} or more, got {number!r}", field=name)
    if timeout is not None and not timeout > 0:
        raise ParameterError(f"timeout is in seconds, more than 0, got {timeout!r}", field="timeout")
    entries: Mapping[str, Any] | None = None
    if not isinstance(problem, Problem | OracleProblem):
        entries = entries_of(problem)
        problem = _problem_of(list(entries), goal, low=low, high=high, noise=noise)
    else:
        for name, setting in (("goal", goal), ("low", low), ("high", high), ("noise", noise)):
            if setting is not None:
                raise ParameterError(f"the problem says it; leave {name} out", field=name)
    opened = Session.open(
        "memory://" if store is None else store,
        session,
        problem,
        delta=delta,
        epsilon=epsilon,
        budget=budget,
        policy=policy,
        incumbent=incumbent,
        prior=prior,
        seed=seed,
    )
    report = _Report(progress)
    by_arms = problem.plays

    def argument(request: Request) -> Any:
        if entries is not None:
            return entries[request.probe_name]
        return request.readings if by_arms else request.probe_name

    try:
        with workers_for(measure, argument, n=workers, executor=executor, timeout=timeout) as running:
            measure_all(
                opened, running, jobs=workers, retries=retries, final_batch=final_batch, progress=report
            )
    except BaseException as error:
        kept = how_many(opened.state().n_values, "measurement is", "measurements are")
        error.add_note(f"surepick: {kept} kept in {opened.store.place}; the same call resumes")
        raise
    view = opened.view()
    report.show(view)
    log.info("session %r: %s after %s", session, view.state, how_many(view.n_measured, "measurement"))
    if view.doubts:
        warnings.warn(f"{session}: {no_guarantee(opened.state().doubts())}", NoiseWarning, stacklevel=3)
    return view


def entries_of(given: Any) -> dict[str, Any]:
    """Return the options by name: entries of a list, values of a dictionary, rows of a frame.

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


def _problem_of(names: list[str], goal: str | None, **noise: float | None) -> Problem:
    """Return the problem of choosing one of these options, each of which is an arm."""
    if goal not in ("largest", "smallest"):
        raise ParameterError(f'state the goal: goal="largest" or goal="smallest", got {goal!r}', field="goal")
    return Problem(np.eye(len(names)), arms=names, plan_names=names, goal=goal, **noise)  # type: ignore[arg-type]


class _Report:
    """Shows how the session stands, at most once a second."""

    def __init__(self, progress: bool | Callable[[View], object]) -> None:
        self._progress = progress
        self._next = 0.0

    def __call__(self, session: Session, waiting: bool) -> None:
        if self._progress is not False and time.monotonic() >= self._next:
            self.show(session.view())

    def show(self, view: View) -> None:
        """Show this view: print a line, or call the function."""
        self._next = time.monotonic() + EVERY
        if callable(self._progress):
            self._progress(view)
        elif self._progress:
            end = "\r" if view.state == "running" and sys.stderr.isatty() else "\n"
            print(view.line(), file=sys.stderr, end=end, flush=True)
