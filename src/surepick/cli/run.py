"""`run`: call a program for each measurement until the answer is sure."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.new import Wishes, begin_or_go_on, refuse_other_settings
from surepick.cli.notify import Notify, tell_of_end
from surepick.cli.options import (
    DEFAULT_DELTA,
    DEFAULT_STORE,
    DOUBTFUL,
    INTERRUPTED,
    NO_BETTER,
    NOT_SURE,
    Delta,
    Epsilon,
    Json,
    PolicySeed,
    PolicyText,
    Retries,
    SessionBudget,
    StoreUrl,
    Timeout,
    UseGuess,
)
from surepick.cli.render import answer
from surepick.cli.status import print_status, state_of
from surepick.core.policy import check_gaussian
from surepick.core.wording import how_many
from surepick.errors import ParameterError
from surepick.measure.commands import Command, Commands, ended_as_interrupted

if TYPE_CHECKING:
    from surepick.sessions.session import Session


def run(
    file: Annotated[
        Path | None,
        typer.Argument(help="As for new; without it, a session that was begun before.", show_default=False),
    ] = None,
    *,
    measure: Annotated[str, typer.Option(help="Your program; {arm} or {probe} becomes the name.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Measurements at the same time.")] = 1,
    timeout: Timeout = None,
    retries: Retries = 0,
    name: Annotated[
        str | None,
        typer.Option("--name", "--session", "-s", help="The session's name; the file's unless given."),
    ] = None,
    policy: PolicyText = None,
    delta: Delta = DEFAULT_DELTA,
    epsilon: Epsilon = 0.0,
    budget: SessionBudget = None,
    seed: PolicySeed = 0,
    lease: Annotated[
        float | None,
        typer.Option(
            help="Seconds after which a token that was not told is handed out again; by default an hour, or "
            "twice what --timeout and --retries allow."
        ),
    ] = None,
    last_call: Annotated[
        float | None, typer.Option(help="Share of the budget for a last block, settled as a test.")
    ] = None,
    gaussian: Annotated[bool, typer.Option("--gaussian", help="Let that test use Gaussian noise.")] = False,
    notify: Notify = None,
    guess: UseGuess = True,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Call your program for each measurement until the answer is sure.

    The last line that it prints is the value: one number, or a JSON object for a probe with several readings.
    It is called without a shell.

    Interrupt it and start it again as you like: it goes on where it was. Several may share a session. A
    session that `new` or the dashboard has begun needs no file.

    Try: surepick run table.toml --measure './drive.sh {arm}' --jobs 4
    """
    from surepick.measure.loop import measure_all

    command = Command(shlex.split(measure), timeout)
    longest = RUN_LEASE if timeout is None else 2 * timeout * (retries + 1)
    lasting = lease or longest
    wishes = Wishes(policy, delta, epsilon, budget, seed, lasting, guess, store)
    session = begin_or_go_on(file, name, wishes)
    given = {"delta": delta, "epsilon": epsilon, "budget": budget, "seed": seed}
    refuse_other_settings(session, policy, given)
    called = LastCall(last_call, gaussian)
    called.check(session)
    try:
        with ended_as_interrupted(), Commands(command, jobs) as crew:
            measure_all(session, crew, jobs=jobs, retries=retries, progress=_Progress(called, quiet=as_json))
    except KeyboardInterrupt:
        kept = how_many(session.ledger().n_told, "measurement is", "measurements are")
        print(f"surepick: interrupted; {kept} kept, and the same command goes on from there", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    data = {**state_of(session), "certificate": session.certificate().to_json()}
    answer(data, as_json, lambda: print_status(session, store))
    tell_of_end(notify, session)
    raise typer.Exit(_exit_code(session))


def _exit_code(session: Session) -> int:
    """0 with an answer, 1 without, 3 if its guarantee does not apply; 5 if a challenge's incumbent stays."""
    from surepick.policies import Challenge

    ledger = session.ledger()
    policy, problem = ledger.setup.policy, ledger.problem
    if ledger.plan is None:
        return NOT_SURE
    if ledger.status == "confident" and session.doubts:
        return DOUBTFUL
    if isinstance(policy, Challenge) and problem.is_listed:
        return NO_BETTER if ledger.plan == policy.place(problem) else 0
    return 0


RUN_LEASE = 3600.0  # seconds for a program of which nobody says how long it may take


@dataclass(frozen=True)
class LastCall:
    """The last call that `run --last-call` makes: the last share of the budget is one block, and a test."""

    share: float | None
    gaussian: bool

    def check(self, session: Session) -> None:
        """Refuse a share that is none, and one of no budget."""
        if self.share is None:
            return
        if not 0 < self.share < 1:
            said = f"--last-call is a share of the budget, between 0 and 1, got {self.share:g}"
            raise ParameterError(said, field="last_call")
        if session.budget is None:
            raise ParameterError("--last-call is a share of the budget; give --budget", field="last_call")
        check_gaussian(session.given_problem, gaussian=self.gaussian)
        session.ledger().run.check_last_call()

    def make_if_due(self, session: Session) -> None:
        """Call when no more than that share of the budget is left after the open round; there is one call."""
        ledger, budget = session.ledger(), session.budget
        if self.share is None or budget is None or ledger.is_over or ledger.run.called is not None:
            return
        left, n_missing = budget - ledger.n_measurements, ledger.tapes.n_missing
        if ledger.n_measurements + n_missing >= (1 - self.share) * budget and left > n_missing:
            session.final_batch(gaussian=self.gaussian)


class _Progress:
    """A line on standard error when something has changed, at most once a second."""

    def __init__(self, last_call: LastCall, *, quiet: bool) -> None:
        self._last_call, self._quiet = last_call, quiet
        self._next = 0.0
        self._last = ""

    def __call__(self, session: Session, waiting: bool) -> None:
        self._last_call.make_if_due(session)
        now = time.monotonic()
        if self._quiet or now < self._next:
            return
        self._next = now + 1.0
        self._say(_waiting(session) if waiting else self._standing(session))

    def _say(self, line: str) -> None:
        if line != self._last:
            print(line, file=sys.stderr)
        self._last = line

    def _standing(self, session: Session) -> str:
        state = state_of(session)
        risk = "" if state["risk"] is None else f", risk {state['risk']:.3g}"
        lead = "nothing leads yet" if state["lead"] is None else f"leader {state['lead']}"
        if state["doubts"]:
            risk = f"; the guarantee does not apply: {state['doubts'][0]['text']}"
        return f"{how_many(state['n_used'], 'measurement')}, {lead}{risk}"


def _waiting(session: Session) -> str:
    """For whom a run waits, and how long it may take."""
    from surepick.views.text import duration

    held = [lease for lease in session.leases() if lease.expires > session.now()]
    if not held:
        return "waiting for what others measure"
    first = min(held, key=lambda lease: lease.expires)
    who, left = first.worker or "without a name", duration(first.expires - session.now())
    others = f"{how_many(len(held), 'measurement')} in the hands of others"
    name = f" --worker {shlex.quote(first.worker)}" if first.worker else ""
    back = f"who will not measure it gives it back with: surepick withdraw {first.token}{name}"
    return f"waiting for {others}; the first lease ({who}) ends in {left}; {back}"
