"""`watch`: a session live in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, NOT_SURE, First, Json, Named, StoreUrl
from surepick.cli.render import answer, console, make_table
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from surepick.sessions.session import Session
    from surepick.views import Page

N_RIVALS, N_ARMS, N_TOKENS = 6, 6, 5
BAR = 16  # letters


def watch(
    session: First = None,
    named: Named = None,
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Watch a session until it ends; looking decides nothing and writes nothing.

    Where the output is no terminal, a line for each change. Exit code 1: it ended without certainty.
    """
    from surepick.views import State, to_json

    opened = open_session(store, session or named, read_only=True)
    if once:
        page = _look(opened)
        answer(to_json(page), as_json, lambda: console.print(_screen(page)))
        return
    page = (
        _on_screen(opened, every)
        if console.is_terminal and not as_json
        else _in_lines(opened, every, as_json)
    )
    raise typer.Exit(0 if page.summary.state == State.SURE else NOT_SURE)


def _look(session: Session) -> Page:
    from surepick import views

    return views.page(views.look(session, n_tokens=N_TOKENS), n_rivals=N_RIVALS, n_arms=N_ARMS)


def _on_screen(session: Session, every: float) -> Page:
    """Show it until it ends; what was seen last stays on the screen."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        return _until_end(session, every, lambda page: live.update(_screen(page), refresh=True))


def _in_lines(session: Session, every: float, as_json: bool) -> Page:
    """A line whenever something was told or decided."""
    last: list[object] = []

    def show(page: Page) -> None:
        state = [page.summary.position, page.summary.state]
        if state != last:
            last[:] = state
            answer(_brief(page), as_json, lambda: typer.echo(_line(page)))
            sys.stdout.flush()

    return _until_end(session, every, show)


def _until_end(session: Session, every: float, show: Callable[[Page], None]) -> Page:
    while True:
        page = _look(session)
        show(page)
        if session.status is not None:
            return page
        time.sleep(every)


def _line(page: Page) -> str:
    from surepick.views.text import plain

    coming = page.progress.forecast
    more = "" if coming is None else f" Forecast: {coming.explanation}."
    return plain(f"{page.summary.state}: {page.summary.sentence}{more}", 1000)


def _brief(page: Page) -> dict[str, Any]:
    from surepick.views import to_json

    found: dict[str, Any] = {"summary": to_json(page.summary), "forecast": to_json(page.progress.forecast)}
    return found


def _screen(page: Page) -> RenderableType:
    """Everything at a glance: the answer, how sure, the rivals, the arms, the work."""
    from rich.console import Group
    from rich.panel import Panel

    summary = page.summary
    colour = {"sure": "green", "running": "cyan"}.get(summary.state, "yellow")
    title = _text(f"{summary.session}: {summary.state}", 70, style=f"bold {colour}")
    parts: list[RenderableType] = [
        Panel(
            _text(summary.sentence, 400, style="bold"), title=title, title_align="left", border_style=colour
        ),
        *(_text(f"! {warning.text}", 400, style="yellow") for warning in summary.warnings),
        _facts(page),
    ]
    if page.rivals.rows:
        parts += _rivals(page)
    if page.arms.n_measurements:
        parts += _arms(page)
    if page.work.tokens:
        parts += _work(page)
    return Group(*parts)


def _text(words: object, length: int, style: str = "") -> Text:
    """Text of people: no markup, no control characters."""
    from rich.text import Text

    from surepick.views.text import plain

    return Text(plain(words, length), style=style)


def _bar(share: float | None, colour: str) -> Text:
    from rich.text import Text

    full = round(BAR * min(max(share or 0.0, 0.0), 1.0))
    return Text.assemble(("█" * full, colour), ("░" * (BAR - full), "bright_black"))


def _facts(page: Page) -> Table:
    from rich.table import Table
    from rich.text import Text

    summary, progress = page.summary, page.progress
    grid = Table.grid(padding=(0, 2))
    sure = summary.state == "sure"
    goal = f"{1 - progress.delta:.4g}"
    level = f"{summary.toward or 0.0:.0%} of the evidence that is needed"
    if summary.confidence is not None:
        level = f"{summary.confidence:.4f}, sure at {goal}"
    bar = _bar(1.0 if sure else summary.toward, "green" if sure else "cyan")
    grid.add_row("confidence", Text.assemble(bar, "  ", level))
    if progress.forecast is not None:
        grid.add_row("forecast", _text(progress.forecast.explanation, 200))
    budget = "" if summary.budget is None else f" of at most {summary.budget:,}"
    waiting = f", {summary.n_missing:,} missing in this round" if summary.n_missing else ""
    grid.add_row(
        "measured", f"{summary.n_measurements:,}{budget} in {how_many(summary.n_rounds, 'round')}{waiting}"
    )
    grid.add_row("promise", _text(summary.guarantee, 200, style="dim"))
    return grid


def _rivals(page: Page) -> list[RenderableType]:
    from rich.text import Text

    from surepick.views.text import times

    rivals = page.rivals
    title = f"Rivals: {rivals.n_ruled_out:,} of {rivals.n_rivals:,} ruled out"
    table = make_table("", "rival", "behind by", f"evidence, {times(rivals.needed)} needed")
    table.columns[2].justify = "left"
    for row in rivals.rows:
        bar = Text.assemble(_bar(row.toward, "blue" if row.ruled_out else "yellow"), f" {times(row.times)}")
        table.add_row(_text(row.label, 36), f"{row.gap:.3g} ± {row.error:.2g}", bar)
    return [_text(title, 200, style="bold"), table]


def _arms(page: Page) -> list[RenderableType]:
    arms = page.arms
    title = f"Arms: {arms.n_matter:,} of {arms.n_arms:,} matter, the most measured first"
    table = make_table("", "arm", "measured", "best", "estimate", "±")
    for row in arms.rows:
        table.add_row(
            _text(row.name, 36),
            f"{row.count:,}",
            "-" if row.best_count is None else f"{row.best_count:,.0f}",
            "-" if row.mean is None else f"{row.mean:.4g}",
            "-" if row.error is None else f"{row.error:.2g}",
        )
    return [_text(title, 200, style="bold"), table]


def _work(page: Page) -> list[RenderableType]:
    from surepick.views.text import duration

    work = page.work
    title = f"To measure: {work.n_missing:,}, of which {work.n_held:,} in somebody's hands"
    table = make_table("", "token", "arm", "worker", "lease")
    for column in table.columns[1:3]:
        column.justify = "left"
    for token in work.tokens:
        lease = (
            ""
            if token.expires_in is None
            else "ended"
            if token.expires_in <= 0
            else duration(token.expires_in)
        )
        who = "free" if token.worker is None else token.worker or "somebody"
        table.add_row(token.token, _text(token.name, 36), _text(who, 30), lease)
    return [_text(title, 200, style="bold"), table]
