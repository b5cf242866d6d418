"""`new` and `status`: begin a session, and show where it stands."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli import output
from surepick.errors import ParameterError
from surepick.store.log import HAND_LEASE
from surepick.tables import numeral

if TYPE_CHECKING:
    from surepick.sessions.session import Session
    from surepick.views.view import View

LOG_LINES = 18  # of `status --log`, unless all are asked for
LOG_TEXT = 48  # letters of an event with its kind, beside its number and time


def new(
    file: output.MaybeFile = None,
    session: output.Name = None,
    delta: output.Delta = None,
    epsilon: output.Epsilon = None,
    budget: output.Budget = None,
    low: output.Low = None,
    high: output.High = None,
    policy: output.Policy = None,
    incumbent: Annotated[str | None, typer.Option(help="The plan in use: is another better?")] = None,
    prior: Annotated[
        str | None, typer.Option(help="A session to close; its values become prior data.")
    ] = None,
) -> None:
    """Begin a session.

    Example: surepick new routes.csv --epsilon 2
    """
    given: dict[str, Any] = {"delta": delta, "epsilon": epsilon, "budget": budget}
    given |= {"policy": policy, "incumbent": incumbent}
    if prior is not None:
        begun = begin_again(prior, file, session, (low, high), given)
    elif file is None:
        raise ParameterError("which problem? Name a file: surepick new routes.csv", field="file")
    else:
        begun = begin(file, session, (low, high), given, is_new=True, lease=HAND_LEASE)
    begun.journal.keep_if_small()
    view = begun.view()
    title = f": {view.title}" if view.title and view.title != view.session else ""
    plans = "plans" if view.n_plans is None else begun.problem.about.plans(view.n_plans)
    lines = [f"Began {view.session!r}{title}, {plans} over {view.n_arms} arms."]
    assumes = view.proved.assumes
    lines.append(output.wrapped(f"{assumes}.", "Assumes: ") if assumes else "No guarantee.")
    output.answer(view, lines)
    output.show_remarks(view)
    output.hint("surepick ask", session=output.name_for_hints(begun, session))


def begin(
    file: Path,
    name: str | None,
    limits: tuple[float | None, float | None],
    given: Mapping[str, Any],
    *,
    is_new: bool,
    lease: float,
) -> Session:
    """Return a new session about this file's problem; or, unless `is_new`, the one that was begun before.

    A person who begins one without noise and limits is asked for limits first.
    """
    from surepick.report import check

    loaded = check.with_limits(output.load_file(file), *limits)
    if is_new and check.asks_limits(loaded.problem) and sys.stdin.isatty() and not output.settings.json:
        print("With limits of all values nothing is assumed about the noise. Enter: none.", file=sys.stderr)
        low = typer.prompt("No value is below", default="", show_default=False, err=True)
        high = low and typer.prompt("No value is above", default="", show_default=False, err=True)
        if high:
            loaded = check.with_limits(loaded, numeral(low), numeral(high))
    return check.begin(output.settings.url, name or file.stem, loaded, given, is_new=is_new, lease=lease)


def begin_again(
    prior: str,
    file: Path | None,
    name: str | None,
    limits: tuple[float | None, float | None],
    given: Mapping[str, Any],
) -> Session:
    """Close a session and begin another with its values as prior data, about this file's problem or its own.

    What is not given is as in the file, else as it was. The name is the file's unless that is taken.
    """
    from surepick.problems.truth import Truth
    from surepick.report.check import with_limits

    old = output.open_session(prior)
    chosen = {key: value for key, value in given.items() if value is not None}
    if file is not None:
        loaded = with_limits(output.load_file(file), *limits)
        of_file = {key: value for key, value in loaded.settings.items() if key in given}
        chosen = {"problem": loaded.problem, "prior": loaded.prior, **of_file, **chosen}
        if name is None and file.stem not in old.store.names():
            name = file.stem
    elif limits != (None, None):
        chosen["problem"] = with_limits(Truth(old.journal.state.given.problem), *limits).problem
    return old.successor("values become prior data", name=name, **chosen)


def status(
    name: Annotated[str | None, typer.Argument(help="Which session. [the only one; several: a list]")] = None,
    session: output.Name = None,
    watch: Annotated[bool, typer.Option("--watch", help="Follow the session until it ends.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Show the events of the log.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Show all plans, all events.")] = False,
) -> None:
    """Show the answer so far and the next step.

    Example: surepick status --watch
    """
    chosen = name or session
    place = output.open_place()
    if chosen is None and len(place.names()) > 1 and not (watch or log):
        _list_sessions(place)
        return
    opened = output.open_session(chosen or output.only_name(place), read_only=True)
    if log:
        _show_log(opened, everything=everything)
        return
    view = _follow(opened) if watch else opened.view()
    show_view(view, output.place_name(place), chosen, everything=everything)
    if view.state == "confident" and not view.trusted:
        raise typer.Exit(output.DOUBTFUL)


def show_view(view: View, place: str, name: str | None, *, everything: bool = False) -> None:
    """Print the answer of a session, what to know about it, and the next step."""
    from surepick.cli.screen import answer_lines, kept_line

    lines = list(answer_lines(view, everything=everything))
    if view.state != "running":
        lines.append(kept_line(view, place))
    output.answer(view, lines)
    output.show_remarks(view)
    output.next_step(view, name)


def _list_sessions(place: Any) -> None:
    from surepick.core.wording import shortened
    from surepick.sessions.session import Session

    views = [Session.load(place, name, read_only=True).view() for name in place.names()]
    wide = max(len(view.session) for view in views)
    lines = [
        f"{view.session:<{wide}}  {view.state:<12}  {view.n_measured:>7,} measured  "
        f"{shortened(view.headline, 40)}"
        for view in views
    ]
    output.answer({"sessions": [view.brief() for view in views]}, lines)
    output.hint(f"surepick status {views[0].session}", "One of them")


def _show_log(session: Session, *, everything: bool) -> None:
    from surepick.core.wording import shortened
    from surepick.views.events import log_row
    from surepick.views.numbers import minute

    problem = session.problem
    numbers = {m.event: m.number for m in session.measurements()}
    rows = [log_row(event, problem) for event in session.events()]
    shown = rows if everything or output.settings.json else rows[-LOG_LINES:]
    lines = [
        f"{numbers.get(row.position, ''):>5}  {minute(row.time)} UTC  "
        f"{shortened(f'{row.kind} {row.text}', LOG_TEXT)}"
        for row in shown
    ]
    more = len(rows) - len(shown)
    output.answer(
        {"events": [{"number": numbers.get(row.position), **vars(row)} for row in shown]},
        [*([f"({more:,} earlier events: --all)"] if more else []), *lines],
    )


def _follow(session: Session) -> View:
    """Show the session in one line until it ends; Ctrl-C ends the watching alone."""
    view = session.view()
    with output.Progress() as progress:
        try:
            while view.state == "running":
                progress.say(view.line())
                time.sleep(1.0)
                view = session.view()
        except KeyboardInterrupt:
            pass
    return view
