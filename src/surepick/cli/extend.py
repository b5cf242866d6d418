"""`extend`, `last-call` and `close`: go on with a stricter promise, or end."""

from __future__ import annotations

from typing import Annotated

import typer

from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, Json, Name, SessionBudget, StoreUrl
from surepick.cli.render import answer, say
from surepick.cli.status import print_status, state_of


def extend(
    delta: Annotated[float | None, typer.Option(help="A smaller delta.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="A smaller epsilon.")] = None,
    budget: SessionBudget = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Go on with a smaller delta or epsilon, or with more budget."""
    opened = open_session(store, session)
    opened.extend(delta=delta, epsilon=epsilon, budget=budget)
    answer(state_of(opened), as_json, lambda: print_status(opened, store))


def last_call(
    n: Annotated[
        int | None,
        typer.Argument(
            show_default="the rest of the budget", help="How many measurements are still to come."
        ),
    ] = None,
    gaussian: Annotated[
        bool, typer.Option("--gaussian", help="Their noise is Gaussian; the test then proves more.")
    ] = False,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Say that the next N measurements are the last: they are asked for at once and settled as a test.

    The session ends with them: with an answer if its risk is at most delta, otherwise with its risk and the
    plans that the best one is among.
    """
    opened = open_session(store, session)
    opened.last_call(n, gaussian=gaussian)
    answer(state_of(opened), as_json, lambda: print_status(opened, store))


def close(
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """End a session by hand; it stays readable, and `extend` lets it go on."""
    opened = open_session(store, session)
    opened.close(reason)
    say(f"session {opened.name!r} is {opened.status}")
    print_status(opened, store)
