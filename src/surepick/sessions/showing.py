"""How a session shows itself: in one line, as a table in a notebook, as a data frame, and while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from surepick.core.frames import make_frame
from surepick.errors import ParameterError
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from surepick.sessions.session import Session
    from surepick.views.view import View

COLUMNS = ("token", "arm_name", "value", "worker")
PROBE_COLUMNS = ("token", "probe_name", "reading", "value", "worker")


class Shown:
    """What `Session` shows of itself; it asks for nothing but the state and the measurements."""

    name: str
    held: Callable[[], AbstractContextManager[Ledger]]
    measurements: Callable[[], Iterator[Measurement]]

    def view(self) -> View:
        """Return where the session stands: answer, proof, estimates, plans, arms, what to measure."""
        from surepick.views.build import build

        return build(cast("Session", self))

    def __repr__(self) -> str:
        return f"Session({self.line()})"

    def line(self) -> str:
        """Return where the session stands, in one line.

        >>> import surepick as sp
        >>> names = {"arms": ["road", "rail"], "plan_names": ["drive", "ride"]}
        >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest", **names)
        >>> sp.decide(problem, {"road": 1.0, "rail": 9.0}.get, session="trips").line()
        "trips: confident, 'ride' is the best, wrong at most 1 in 20, 4 measured"
        """
        return self.view().line()

    def _repr_html_(self) -> str:
        return self.view()._repr_html_()

    def plot(self, what: str = "plans") -> Figure:
        """Return a matplotlib figure: "plans", "progress", "arms" or "picture" (the leader's plan)."""
        from surepick import plots

        if what not in plots.__all__:
            raise ParameterError(f"a session plots {', '.join(plots.__all__)}, got {what!r}", field="what")
        figure: Figure = getattr(plots, what)(self)
        return figure

    def export(self, path: str | Path) -> Path:
        """Write a report (.html), the values (.csv, .xlsx), the log (.json) or certificate.json."""
        from surepick.report.export import export

        return export(cast("Session", self), path)

    def to_frame(self, what: str = "values", *, backend: str | None = None) -> Any:
        """Return "values" (a row per recorded number), "plans" or "arms" as a data frame.

        `backend` is "pandas", "polars" or "pyarrow"; unless given, the first of them that is installed.
        """
        if what in ("plans", "arms"):
            rows: Sequence[Any] = getattr(self.view(), what)
            names = [one.name for one in fields(rows[0])] if rows else []
            return make_frame({name: [getattr(row, name) for row in rows] for name in names}, backend)
        if what != "values":
            raise ParameterError(f"a frame has values, plans or arms, got {what!r}", field="what")
        told = list(self.measurements())
        with self.held() as ledger:
            names = list(COLUMNS if ledger.problem.arms_alone else PROBE_COLUMNS)
        columns: dict[str, list[Any]] = {name: [getattr(m, name) for m in told] for name in names}
        times = [datetime.fromtimestamp(m.time, UTC) for m in told]
        return make_frame({**columns, "time": times, "picked": [m.picked for m in told]}, backend)

    def watch(self, every: float = 1.0) -> None:
        """Show where the session stands, updated in place until it has ended; Ctrl-C ends the watching alone.

        In a notebook it is the table that the session shows, elsewhere a line on the terminal.
        """
        update, done = _display(self)
        try:
            while True:
                update()
                with self.held() as ledger:
                    if ledger.is_over:
                        break
                time.sleep(every)
            update()
        except KeyboardInterrupt:
            pass
        finally:
            done()


def _display(session: Shown) -> tuple[Callable[[], None], Callable[[], None]]:
    """How to show the session again in the same place, and what to do at the end."""
    if _in_notebook():
        from IPython.display import display

        handle = display(session, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        return (lambda: handle.update(session)), (lambda: None)
    shown = [""]

    def update() -> None:
        line = session.line()
        if line != shown[0]:
            print(f"\r{line:<{len(shown[0])}}", end="", file=sys.stderr, flush=True)
        shown[0] = line

    return update, (lambda: print(file=sys.stderr))


def _in_notebook() -> bool:
    """Whether a notebook or another front end that shows HTML is looking."""
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell is not None else None
    return current is not None and type(current).__name__ != "TerminalInteractiveShell"
