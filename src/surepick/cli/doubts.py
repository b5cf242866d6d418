"""Asking before a value is recorded that nobody would expect; it is never left out for its size."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.options import NOT_SURE
from surepick.cli.render import remark
from surepick.errors import SessionError

if TYPE_CHECKING:
    from surepick.sessions.session import Session

Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Record values that are not plausible without a question.")
]
MOST_SHOWN = 5


def ask_if_doubtful(session: Session, told: Iterable[tuple[int | str, Any]], *, yes: bool) -> None:
    """Go on if these values of arms are plausible, or somebody says that they are right.

    Where nobody can be asked they are refused with what to do, and nothing is recorded.
    """
    if yes:
        return
    doubts = [found for arm, value in told if (found := session.doubt(arm, value)) is not None]
    if not doubts:
        return
    listed = "; ".join(doubts[:MOST_SHOWN]) + (
        f"; and {len(doubts) - MOST_SHOWN} more" if len(doubts) > MOST_SHOWN else ""
    )
    if not _can_ask():
        raise SessionError(
            f"{listed}. Nothing was recorded: if that is what was measured, say so with --yes; if it is a "
            "slip, repeat it with the right value. A right value is never left out for its size"
        )
    if not typer.confirm(f"{listed}. Is that what was measured?"):
        remark("nothing was recorded")
        raise typer.Exit(NOT_SURE)


def _can_ask() -> bool:
    return sys.stdin.isatty()
