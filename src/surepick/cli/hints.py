"""Commands to type next, as they work here: with the store and the session where these must be named."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from surepick.cli.options import DEFAULT_STORE
from surepick.core.policy import delta_of

if TYPE_CHECKING:
    from surepick.sessions.requests import Request
    from surepick.sessions.session import Session


def command(words: str, session: Session, store: str) -> str:
    """`surepick` with these words, for this session of the store that the command line named.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], goal="largest")
    >>> session = sp.Session.create("memory://", "my trips", problem, policy=sp.BetGapE())
    >>> command("ask -n 4", session, "sqlite:///trips.db")
    'surepick ask -n 4 --store sqlite:///trips.db'
    """
    parts = ["surepick", words]
    if len(session.store.names()) > 1:
        parts += ["--session", shlex.quote(session.name)]
    if store != os.environ.get("SUREPICK_STORE", DEFAULT_STORE):
        parts += ["--store", shlex.quote(store)]
    return " ".join(parts)


def _values(session: Session, request: Request) -> str:
    """What to type after a token: VALUE, or the names of a few readings."""
    if len(session.reads(request.probe)) == 1:
        return "VALUE"
    shown = [f"{shlex.quote(name)}=VALUE" for name in request.readings[:2]]
    return " ".join([*shown, *(["..."] if len(request.readings) > 2 else [])])


def next_steps(session: Session, store: str) -> list[tuple[str, str]]:
    """What to do now: a command, and what it is for. VALUE stands for what was measured."""
    from surepick.simulation.outcome import Status

    if not session.given_problem.can_decide:
        return []  # its function is in somebody's Python program
    report = (command("report", session, store), "all of it as one page, to keep or to send")
    if session.status == "running":
        return [
            (command("ask", session, store), "what to measure next"),
            *(
                (
                    command(f"tell {request.token} {_values(session, request)}", session, store),
                    f"record it, here of {request.probe_name}",
                )
                for request in session.pending(1)
            ),
        ]
    if session.status is Status.CONFIDENT:
        return [
            report,
            (
                command("certificate -o certificate.json", session, store),
                "what is promised, to send with the log",
            ),
            (command("export -o log.json", session, store), "the log: whoever has both can check them"),
            (command("verify", session, store), "replay the log and check every decision"),
        ]
    budget, spent = session.budget, session.status is Status.BUDGET_SPENT
    further = f"--budget {2 * budget}" if spent and budget else f"--delta {delta_of(session.policy):g}"
    return [(command(f"extend {further}", session, store), "go on measuring"), report]
