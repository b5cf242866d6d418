"""`watch`: a session live in the terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.notify import Notify, tell_of_end
from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, DOUBTFUL, NOT_SURE, First, Json, Named, StoreUrl
from surepick.cli.render import answer, console
from surepick.cli.screen import look_at, screen

if TYPE_CHECKING:
    from surepick.sessions.session import Session
    from surepick.views import Page


def watch(
    session: First = None,
    named: Named = None,
    every: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once and end.")] = False,
    notify: Notify = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Watch a session until it ends; looking decides nothing and writes nothing.

    Where the output is no terminal, a line for each change. Exit code 1: it ended without an answer; 3: with
    one whose guarantee does not apply.
    """
    from surepick.views import State, to_json

    opened = open_session(store, session or named, read_only=True)
    if once:
        page = look_at(opened)
        answer(to_json(page), as_json, lambda: console.print(screen(page)))
        return
    page = (
        _on_screen(opened, every)
        if console.is_terminal and not as_json
        else _in_lines(opened, every, as_json)
    )
    tell_of_end(notify, opened)
    confident = page.summary.state == State.CONFIDENT
    raise typer.Exit((0 if page.summary.trusted else DOUBTFUL) if confident else NOT_SURE)


def _on_screen(session: Session, every: float) -> Page:
    """Show it until it ends; what was seen last stays on the screen."""
    from rich.live import Live

    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        return _until_end(session, every, lambda page: live.update(screen(page), refresh=True))


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
        page = look_at(session)
        show(page)
        if session.status != "running":
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
