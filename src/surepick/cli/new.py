"""`new`: begin a session from a problem file; `run` begins or goes on with one in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from surepick.cli.opening import open_session
from surepick.cli.options import (
    DEFAULT_DELTA,
    DEFAULT_STORE,
    Delta,
    Epsilon,
    File,
    Json,
    Lease,
    PolicySeed,
    PolicyText,
    SessionBudget,
    StoreUrl,
    UseGuess,
)
from surepick.cli.render import answer, remark, say
from surepick.cli.status import print_next, state_of
from surepick.errors import NameTakenError, SessionError
from surepick.store.log import HAND_LEASE

if TYPE_CHECKING:
    from surepick.sessions.session import Session


class Wishes(NamedTuple):
    """What a new session is to be, by the options."""

    policy: str | None
    delta: float
    epsilon: float
    budget: int | None
    seed: int
    lease: float
    guess: bool
    store: str


def new(
    file: File,
    name: Annotated[str | None, typer.Option(help="Its name; the file's unless given.")] = None,
    policy: PolicyText = None,
    delta: Delta = DEFAULT_DELTA,
    epsilon: Epsilon = 0.0,
    budget: SessionBudget = None,
    seed: PolicySeed = 0,
    lease: Lease = HAND_LEASE,
    guess: UseGuess = True,
    announce: Annotated[
        bool, typer.Option("--announce", help="Print the fingerprint of the question, to publish it now.")
    ] = False,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Begin a session: a problem, a policy and a store that keeps every measurement.

    Try: surepick init table, then surepick new table.toml, then surepick ask
    """
    wishes = Wishes(policy, delta, epsilon, budget, seed, lease, guess, store)
    session = _create(file, name, wishes)
    question = {"question": session.question} if announce else {}
    data = {"session": session.name, "store": session.store.place, **question, **state_of(session)}
    session.keep_snapshot()
    answer(data, as_json, lambda: _print_begun(session, store, announce=announce))


def _print_begun(session: Session, store: str, *, announce: bool) -> None:
    about = session.given_problem.about
    say(f"session {session.name!r} begun{f': {about.title}' if about.title else ''}")
    warning = None if about.listing is None else about.listing.warning(session.policy.delta)
    if warning is not None:
        remark(f"! {warning}")
    if announce:
        say(f"question {session.question}")
        remark("publish that line before you measure; `surepick verify --announced` compares it with the log")
    print_next(session, store)


def _create(file: Path, name: str | None, wishes: Wishes) -> Session:
    from surepick.core.policy import takes_past
    from surepick.inputs.load import read_problem
    from surepick.policies import policy_for
    from surepick.sessions.session import Session

    loaded = read_problem(file)
    chosen = policy_for(wishes.policy, delta=wishes.delta, epsilon=wishes.epsilon)
    return Session.create(
        wishes.store,
        name or file.stem,
        loaded.problem,
        policy=chosen,
        seed=wishes.seed,
        budget=wishes.budget,
        lease=wishes.lease,
        prior=loaded.past if wishes.guess and takes_past(chosen) else None,
    )


def begin_or_go_on(file: Path | None, name: str | None, wishes: Wishes) -> Session:
    """The session that an earlier call began, or a new one; two calls at the same time share it.

    Without a file it must have been begun.
    """
    if file is None:
        return open_session(wishes.store, name)
    session = _go_on(file, name, wishes.store)
    if session is not None:
        return session
    try:
        return _create(file, name, wishes)
    except NameTakenError:
        session = _go_on(file, name, wishes.store)
        if session is None:
            raise
        return session


def refuse_other_settings(session: Session, policy: str | None, given: Mapping[str, Any]) -> None:
    """Refuse settings that somebody gave and that a session which was begun before does not have."""
    from surepick.core.policy import epsilon_of
    from surepick.policies import describe, policy_for

    mine, delta, epsilon = session.policy, given["delta"], given["epsilon"]
    wanted = policy_for(policy, delta=delta, epsilon=epsilon)
    other = {
        "--policy": policy is not None and describe(wanted) != describe(mine),
        "--delta": delta not in (DEFAULT_DELTA, mine.delta),
        "--epsilon": epsilon not in (0.0, epsilon_of(mine)),
        "--budget": given["budget"] not in (None, session.budget),
        "--seed": given["seed"] not in (0, session.seed),
    }
    named = [option for option, differs in other.items() if differs]
    if named:
        limit = "no budget" if session.budget is None else f"budget {session.budget}"
        raise SessionError(
            f"session {session.name!r} was begun before with {describe(mine)}, delta {mine.delta:g}, epsilon "
            f"{epsilon_of(mine):g}, {limit} and seed {session.seed}, and {named[0]} says otherwise; leave it "
            "out, change the session with `surepick extend`, or choose another --name"
        )


def _go_on(file: Path, name: str | None, store: str) -> Session | None:
    """The session that an earlier call began, if it is about the same problem."""
    from surepick.inputs.load import read_problem
    from surepick.sessions import codec
    from surepick.sessions.session import Session
    from surepick.store import open_store

    place = open_store(store)
    name = name or file.stem
    if name not in place.names():
        return None
    session = Session.load(place, name)
    now = read_problem(file).problem
    if codec.problem_to_json(session.given_problem) != codec.problem_to_json(now):
        raise SessionError(
            f"session {name!r} in {place.place} is about another problem than {str(file)!r}; "
            "choose another --name or --store"
        )
    return session
