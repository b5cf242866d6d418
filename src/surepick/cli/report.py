"""`report`: a session as a file to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surepick.cli.opening import open_session
from surepick.cli.options import DEFAULT_STORE, First, Named, StoreUrl


def report(
    session: First = None,
    named: Named = None,
    to: Annotated[Path, typer.Option("-o", "--to", help="The file to write.")] = Path("report.html"),
    store: StoreUrl = DEFAULT_STORE,
) -> None:
    """Write a report: one HTML file with the answer, the evidence and the log, to send and to print."""
    from surepick.report import write_report

    typer.echo(f"written to {write_report(open_session(store, session or named, read_only=True), to)}")
