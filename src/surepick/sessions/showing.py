"""How a session shows itself: in one line, as a table in a notebook, as a data frame, and while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from surepick.core.cards import alarm, card, listing
from surepick.core.doubt import no_guarantee
from surepick.core.frames import make_frame
from surepick.core.policy import delta_of
from surepick.core.wording import how_many, shortened
from surepick.sessions.ledger import Ledger
from surepick.sessions.requests import Measurement
from surepick.simulation.outcome import described

COLUMNS = ("token", "arm_name", "value", "worker")
PROBE_COLUMNS = ("token", "probe_name", "reading", "value", "worker")
LONGEST_NAME = 60  # letters of a plan in one line


class Shown:
    """What `Session` shows of itself; it asks for nothing but the state and the measurements."""

    name: str
    held: Callable[[], AbstractContextManager[Ledger]]
    measurements: Callable[[], Iterator[Measurement]]

    def __repr__(self) -> str:
        return f"Session({self.line()})"

    def line(self) -> str:
        """Where the session stands, in one line.

        >>> import surepick as sp
        >>> names = {"arm_names": ["road", "rail"], "plan_names": ["drive", "ride"]}
        >>> problem = sp.Problem([[1, 0], [0, 1]], noise_scale=1, **names)
        >>> sp.decide(problem, {"road": 1.0, "rail": 9.0}.get, name="trips").line()
        "trips: confident, 'ride' after 4 measurements, risk at most 6.59e-07"
        """
        with self.held() as ledger:
            state, lead, risk = _standing(ledger)
            doubts = ledger.doubts()
            n = how_many(ledger.n_told if lead is None else ledger.n_measurements, "measurement")
        named = "nothing leads yet" if lead is None else repr(shortened(lead, LONGEST_NAME))
        if doubts:
            return f"{self.name}: DOUBTFUL, {named} after {n}; {no_guarantee(doubts)}"
        return f"{self.name}: {state}, {named} after {n}" + (
            "" if risk is None else f", risk at most {risk:.3g}"
        )

    def _repr_html_(self) -> str:
        with self.held() as ledger:
            state, lead, risk = _standing(ledger)
            problem, evidence, doubts = ledger.problem, ledger.evidence, ledger.doubts()
            proved = ledger.plan is not None and not doubts
            rows: list[tuple[str, object]] = [
                ("state", state),
                ("answer" if proved else "leader", "none yet" if lead is None else lead),
                ("measurements", f"{ledger.n_measurements:,} in {how_many(ledger.n_rounds, 'round')}"),
                ("policy", described(ledger.setup.policy)),
            ]
            if risk is not None and not doubts:
                rows.insert(2, ("risk", f"{risk:.3g}, an answer needs {delta_of(ledger.setup.policy):g}"))
            counts, means = evidence.each.tolist(), evidence.means.tolist()
        names, order = problem.reading_names, sorted(range(problem.n_readings), key=lambda r: -counts[r])
        read = [[names[r], f"{counts[r]:,}", f"{means[r]:.4g}" if counts[r] else "-"] for r in order]
        what = "arm" if problem.probes is None else "probe"
        first = alarm(no_guarantee(doubts)) if doubts else ""
        return card(self.name, rows, listing([what, "measurements", "mean"], read), first=first)

    def to_frame(self, backend: str | None = None) -> Any:
        """Everything that was told or recorded, as a data frame with a row per number.

        `backend` is "pandas", "polars" or "pyarrow"; unless given, the first of them that is installed.
        """
        told = list(self.measurements())
        with self.held() as ledger:
            names = COLUMNS if ledger.problem.arms_alone else PROBE_COLUMNS
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


def _standing(ledger: Ledger) -> tuple[str, str | None, float | None]:
    """The state, the name of the answer or the lead, and the risk."""
    standing = ledger.standing()
    lead = ledger.problem.name_of(ledger.plan if ledger.plan is not None else standing.lead)
    return ("running" if ledger.status is None else str(ledger.status)), lead, standing.risk


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
