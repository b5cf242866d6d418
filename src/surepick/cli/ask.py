"""`ask` and `tell`: measurements by hand, or by a program that calls both."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli import output
from surepick.core.wording import how_many
from surepick.errors import FileError, ParameterError, SessionError
from surepick.tables import numeral

if TYPE_CHECKING:
    from surepick.sessions.commands import Receipt
    from surepick.sessions.session import Session
    from surepick.views.view import View

SHEET_ROWS = 40  # of a measuring sheet, unless -n says otherwise: about two pages


def ask(
    n: Annotated[int | None, typer.Option("-n", min=1, help="How many. [1; with -o the batch]")] = None,
    worker: output.Worker = "user",
    wait: Annotated[float, typer.Option(help="Seconds to wait until there is something.")] = 0.0,
    to: Annotated[Path | None, typer.Option("-o", help="Write a measuring sheet: .xlsx or .csv.")] = None,
    session: output.Name = None,
) -> None:
    """Show what to measure next, or write a measuring sheet.

    Exit code 1: nothing to measure now.

    Example: surepick ask -o monday.xlsx
    """
    from surepick.views.sheet import openpyxl, write_sheet

    opened = output.open_session(session)
    if to is not None:  # refuse what cannot be written before any measurement is taken
        if to.suffix.lower() not in (".csv", ".xlsx"):
            raise FileError(f"a measuring sheet ends in .xlsx or .csv, got {str(to)!r}", field="o")
        if to.suffix.lower() == ".xlsx":
            openpyxl()
        output.refuse_existing(to, force=False)
    wanted = n or (1 if to is None else max(1, len(opened.pending(SHEET_ROWS))))
    requests = opened.ask(wanted, worker=worker, wait=wait)
    view = opened.view()
    if not requests:
        output.answer({"requests": [], "view": view}, [])
        if view.state == "running":
            output.note("other workers have taken all that can be measured now; wait with --wait SECONDS")
        else:
            output.note(f"{view.session} is {view.state}: {view.headline}")
            output.hint("surepick status", session=session)
        raise typer.Exit(output.NO)
    if to is not None:
        write_sheet(opened, requests, to)
        many = how_many(len(requests), "measurement")
        output.answer({"file": str(to), "n": len(requests)}, f"Wrote {to} with {many} to make.")
        output.hint(f"surepick tell --from {shlex.quote(str(to))}", "Filled in", session=session)
        return
    rows = list[dict[str, Any]]()
    lines = list[str]()
    for one in requests:
        reads = [] if opened.problem.arms_alone else list(one.readings)
        rows.append({"id": one.id, "arm": one.arm, "readings": reads, "expires": one.expires})
        lines.append(f"{one.arm} ({', '.join(reads)})" if reads else one.arm)
    output.answer({"requests": rows, "view": view}, lines)
    order = "In this order; then" if len(requests) > 1 else "Then"
    output.hint(f"surepick tell {shlex.quote(requests[0].probe_name)} VALUE", order, session=session)


def tell(
    arm: Annotated[str | None, typer.Argument(help="What was measured.")] = None,
    values: Annotated[
        list[str] | None, typer.Argument(help="The value, or several; NAME=VALUE for readings of a probe.")
    ] = None,
    source: Annotated[Path | None, typer.Option("--from", help="A filled-in sheet: .csv or .xlsx.")] = None,
    worker: output.Worker = "user",
    yes: Annotated[bool, typer.Option("--yes", help="A surprising value is right.")] = False,
    lost: Annotated[bool, typer.Option("--lost", help="It was tried and gave no value.")] = False,
    remark: Annotated[str, typer.Option("--note", help="A remark for the log.")] = "",
    key: Annotated[str, typer.Option(help="Record once, however often it is told.")] = "",
    session: output.Name = None,
) -> None:
    """Record measurements.

    Example: surepick tell Tunnel 10.4
    """
    if source is not None:
        _tell_file(source, session, worker, yes=yes)
        return
    if arm is None or not (values or lost):
        raise ParameterError("say what was measured and its value: surepick tell Tunnel 10.4", field="values")
    opened = output.open_session(session)
    told = [None] if lost else _numbers(opened, arm, values or [])
    refuse_surprising(opened, [(arm, one) for one in told if one is not None], yes=yes)
    receipts = []
    for k, one in enumerate(told):
        own = f"{key}-{k + 1}" if key and k else key
        receipts.append(opened.tell(arm, one, worker=worker, lost=lost, sure=yes, note=remark, key=own))
    opened.journal.keep_if_small()
    view = opened.view()
    data = [{"number": one.number, "result": one.result} for one in receipts]
    shown = [_receipt_line(view, arm, one, receipt) for one, receipt in zip(told, receipts, strict=True)]
    output.answer({"recorded": data, "view": view}, [*shown, *output.where(view)])
    if view.state != "running":
        output.hint("surepick status", "See", session=session)
    elif receipts[-1].number:
        output.hint(
            f"surepick session remove {receipts[-1].number} --reason typo", "A slip?", session=session
        )


def _receipt_line(view: View, arm: str, told: Any, receipt: Receipt) -> str:
    from surepick.views.numbers import value

    if told is None:
        return f"Released: {arm} gave no value."
    shown = (
        ", ".join(f"{name} {value(one, view.unit)}" for name, one in told.items())
        if isinstance(told, dict)
        else f"{told:.6g} {view.unit}".rstrip()
    )
    words = {"recorded": "Recorded", "extra": "Recorded as an extra value", "repeated": "Recorded before"}
    return f"{words.get(receipt.result, receipt.result)} {receipt.number}: {arm} = {shown}."


def _numbers(session: Session, arm: str, typed: Sequence[str]) -> list[Any]:
    """Return the numbers that were typed: several of an arm, or the readings of one use of a probe."""
    problem = session.problem
    reads = problem.reads(problem.probe(arm)) if arm in problem.probe_names else ("value",)
    if len(reads) == 1:
        return [_number(text.rpartition("=")[2]) for text in typed]
    named = dict(text.rpartition("=")[::2] for text in typed if "=" in text)
    if named and len(named) < len(typed):
        raise ParameterError("name every reading once, as in A-B=3.2, or give all in order", field="values")
    if not named and len(typed) != len(reads):
        listed = ", ".join(reads)
        raise ParameterError(f"{arm!r} has {len(reads)} readings: {listed}; got {len(typed)}", field="values")
    pairs = named or dict(zip(reads, typed, strict=True))
    return [{name: _number(text) for name, text in pairs.items()}]


def _number(text: str) -> float:
    try:
        return numeral(text)
    except ParameterError as error:
        raise ParameterError(str(error), field="values") from None


def refuse_surprising(session: Session, told: Sequence[tuple[Any, Any]], *, yes: bool) -> None:
    """Ask about values that are far from the others, or refuse them without a terminal to ask in.

    A right value is recorded however odd it is: leaving one out for its size would break the guarantee.
    """
    from surepick.sessions.commands import doubts

    text = "" if yes else doubts(session.state(), told)
    if not text:
        return
    if sys.stdin.isatty() and not output.settings.json:
        output.note(f"{text}.")
        if typer.confirm("Is that right?", err=True):
            return
        output.note("nothing was recorded")
        raise typer.Exit(output.NO)
    raise SessionError(f"{text}; not recorded. If it is right, repeat the command with --yes", field="values")


def _tell_file(file: Path, name: str | None, worker: str, *, yes: bool) -> None:
    """Record all values of a file, or none if one cannot be read."""
    from surepick.files.measurements import import_rows, in_words, probes_and_values, read_rows

    opened = output.open_session(name)
    rows = read_rows(file)
    refuse_surprising(opened, probes_and_values(opened, rows), yes=yes)
    counts = import_rows(opened, rows, worker=worker)
    opened.journal.keep_if_small()
    view = opened.view()
    output.show(
        view, [f"{file}: {in_words(counts)}.", *output.where(view)], name, {"counts": counts, "view": view}
    )
