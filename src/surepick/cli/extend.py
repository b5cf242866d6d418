"""`extend`, `add-plan`, `last-call` and `close`: go on with a stricter promise or more plans, or end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, Json, Name, SessionBudget, StoreUrl
from surepick.cli.render import answer, say
from surepick.cli.status import print_status, state_of
from surepick.core.new_arms import NewArm
from surepick.core.tables import SHEETS
from surepick.errors import ParameterError

if TYPE_CHECKING:
    from surepick.sessions.session import Session


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
    opened.keep_snapshot()
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
    opened.final_batch(n, gaussian=gaussian)
    opened.keep_snapshot()
    answer(state_of(opened), as_json, lambda: print_status(opened, store))


def add_plan(
    name: Annotated[
        str,
        typer.Argument(
            help="The name of the new plan; or a table, .csv or .xlsx: a row for each new plan.",
            show_default=False,
        ),
    ],
    plan: Annotated[
        str | None,
        typer.Argument(help='What it takes of each arm: "2*tea + coffee".', show_default=False),
    ] = None,
    new_arm: Annotated[list[str] | None, typer.Option(help="A new arm; repeat the option for each.")] = None,
    noise_scale: Annotated[
        float | None, typer.Option(help="Noise scale of the new arms; by default the same as the others.")
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(help="Cost of measuring a new arm; by default the same as the others."),
    ] = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Add plans to a session that runs, or has an answer; what is promised stays as it is.

    Try: surepick add-plan "over the bridge twice" "2*bridge"
    """
    opened = open_session(store, session)
    arms = [NewArm(arm, noise_scale, cost) for arm in new_arm or ()]
    if plan is not None:
        opened.add_plan(name, plan, new_arms=arms)
    elif Path(name).suffix.lower() in (".csv", *SHEETS):
        opened.add_plans(Path(name), new_arms=arms)
    else:
        raise ParameterError(
            f"say what the plan {name!r} takes of each arm, such as 'tea + 2*milk', or name a table "
            "(.csv or .xlsx) with a row for each new plan",
            field="plan",
        )
    opened.keep_snapshot()
    answer(state_of(opened), as_json, lambda: _print_added(opened, store))


def _print_added(opened: Session, store: str) -> None:
    names = ", ".join(body["name"] for body in opened.ledger().arrived)
    say(f"added; there are {opened.problem.n_plans} plans now, of which came later: {names}")
    print_status(opened, store)


def new_epoch(
    reason: Annotated[str, typer.Argument(help="What has changed.", show_default=False)],
    name: Annotated[
        str | None,
        typer.Option(help="The name of the new session.", show_default="the old one, numbered"),
    ] = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """End a session because what is measured has changed, and begin another with its values as past alone.

    Its promise is one of its own: each epoch is wrong with probability at most delta.

    Try: surepick new-epoch "the bridge is open again"
    """
    begun = open_session(store, session).successor(reason, name=name)
    answer(state_of(begun), as_json, lambda: print_status(begun, store))


def close(
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """End a session by hand; it stays readable, and `extend` lets it go on."""
    opened = open_session(store, session)
    opened.close(reason)
    opened.keep_snapshot()
    say(f"session {opened.name!r} is {opened.status}")
    print_status(opened, store)
