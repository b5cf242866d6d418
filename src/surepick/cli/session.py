"""`surepick session ...`: rare changes to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli import output
from surepick.core.wording import how_many
from surepick.errors import ParameterError, SessionError

if TYPE_CHECKING:
    from surepick.sessions.session import Session


def _done(session: Session, name: str | None, done: str) -> None:
    """Print what was done to the session, where it stands, and the next step."""
    session.journal.keep_if_small()
    view = session.view()
    output.show(view, [done, *output.where(view)], name)


def remove(
    number: Annotated[int, typer.Argument(help="The number of the value; status --log shows them.")],
    reason: Annotated[str, typer.Option(help="What went wrong, for the log.")],
    session: output.Name = None,
) -> None:
    """Remove a value recorded by mistake.

    Its arm is asked for again. A right value stays, however odd: its size is no reason.

    Example: surepick session remove 15 --reason typo
    """
    opened = output.open_session(session)
    opened.remove(number, reason)
    _done(opened, session, f"Removed {number}: {reason}. The log keeps it, with the reason.")


def release(
    arm: Annotated[str | None, typer.Argument(help="Which arm. [all of the worker]")] = None,
    worker: Annotated[str, typer.Option(help="Who had taken it.")] = "user",
    session: output.Name = None,
) -> None:
    """Release an assigned measurement.

    Example: surepick session release Tunnel --worker Pat
    """
    opened = output.open_session(session)
    held = [one for one in opened.pending() if one.worker == worker and arm in (None, one.probe_name)]
    if not held:
        what = "nothing" if arm is None else f"no {arm}"
        raise SessionError(f"{worker} has taken {what}; see surepick status", field="arm")
    for one in held:
        opened.release(one, worker=worker)
    _done(opened, session, f"Released {how_many(len(held), 'measurement')} of {worker}.")


def extend(delta: output.Delta = None, budget: output.Budget = None, session: output.Name = None) -> None:
    """Tighten delta, raise the budget.

    Example: surepick session extend --delta 0.01
    """
    if delta is None and budget is None:
        raise ParameterError("say what to change: --delta or --budget", field="delta")
    opened = output.open_session(session)
    opened.extend(delta=delta, budget=budget)
    given = {"delta": delta, "budget": budget}
    now = ", ".join(f"{name} {to:g}" for name, to in given.items() if to is not None)
    _done(opened, session, f"Now {now}.")


def final_batch(
    n: Annotated[int, typer.Argument(min=1, help="How many measurements are still to come.")],
    session: output.Name = None,
) -> None:
    """Make the next N measurements the last.

    Example: surepick session final-batch 20
    """
    opened = output.open_session(session)
    opened.final_batch(n)
    _done(opened, session, f"The next {how_many(n, 'measurement is', 'measurements are')} the last.")


def close(
    reason: Annotated[str, typer.Option(help="Why, for the log.")] = "", session: output.Name = None
) -> None:
    """End a session.

    It stays readable, and session extend continues it.

    Example: surepick session close --reason "road works"
    """
    opened = output.open_session(session)
    opened.close(reason)
    view = opened.view()
    output.show(view, [f"{view.session}: {view.headline}."], session)


def add_plan(
    name: Annotated[str, typer.Argument(help="The name of the new plan.")],
    plan: Annotated[str, typer.Argument(help="What it takes of each arm: 'A + 2*Ferry'.")],
    arm: Annotated[
        list[str] | None, typer.Option(help="A new arm, as in 'Ferry noise=2 cost=3'; repeat for each.")
    ] = None,
    session: output.Name = None,
) -> None:
    """Add a plan.

    Example: surepick session add-plan "By ferry" "Harbour + 2*Ferry" --arm "Ferry noise=2"
    """
    opened = output.open_session(session)
    opened.add_plan(name, plan, arms=arm or ())
    _done(opened, session, f"Added. The session has {how_many(opened.problem.n_plans or 0, 'plan')}.")


def rename(
    to: Annotated[str, typer.Argument(metavar="NEW", help="What people shall call it.")],
    session: output.Name = None,
) -> None:
    """Rename a session.

    Example: surepick session rename "Trips in May"
    """
    opened = output.open_session(session)
    opened.rename(to)
    _done(opened, session, f"{opened.name!r} is titled {to!r}.")


def delete(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False, session: output.Name = None
) -> None:
    """Delete a session.

    It must have ended.

    Example: surepick session delete --yes
    """
    opened = output.open_session(session)
    seen = opened.journal.head
    if not yes:
        values = how_many(opened.view().n_measured, "value")
        if output.settings.json or not typer.confirm(
            f"Delete {opened.name!r} with {values} for good?", err=True
        ):
            output.note("nothing was deleted; say --yes to delete without a question")
            raise typer.Exit(1)
    opened.delete(expected=seen)
    output.answer({"deleted": opened.name}, f"Deleted {opened.name!r}.")
