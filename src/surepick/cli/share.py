"""`export` and `verify`: what to send to others, and what they check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli import output
from surepick.core.wording import how_many
from surepick.errors import FileError, ParameterError

if TYPE_CHECKING:
    from surepick.files.log import LogFile
    from surepick.sessions.session import Session
    from surepick.sessions.verify import Verdict
    from surepick.views.view import View

MANY, QUICK = 10, 60.0  # this many values within this many seconds look recorded by a program
KINDS = ".html (report), .csv or .xlsx (values), .json (log), certificate.json, .db (backup)"


def export(
    to: Annotated[list[Path], typer.Option("-o", help=f"The file: {KINDS}; repeat for several.")],
    sign: Annotated[
        Path | None, typer.Option(help="Sign with this private Ed25519 key (PEM, OpenSSH).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    session: output.Name = None,
) -> None:
    """Write a report, certificate, table or backup.

    Example: surepick export -o report.html
    """
    for file in to:
        output.refuse_existing(file, force=force)
    opened = (
        None if all(file.suffix == ".db" for file in to) else output.open_session(session, read_only=True)
    )
    lines = [f"Wrote {file}{_write(file, opened, sign)}" for file in to]
    output.answer({"files": [str(file) for file in to]}, lines)
    checkable = [file for file in to if file.suffix in (".html", ".json")]
    if checkable:
        output.hint(f"surepick verify {' '.join(map(str, checkable))}", "Check it")


def _write(file: Path, session: Session | None, sign: Path | None) -> str:
    """Write one file; return what is worth saying about it."""
    if file.suffix.lower() == ".db":
        from surepick.store.doctor import back_up

        found = back_up(output.settings.url, file, replace=True)  # `export` has asked for --force
        return f" ({how_many(len(found.logs), 'session')}, {'intact' if found.is_well else 'DAMAGED'})"
    assert session is not None
    if sign is not None and file.name.startswith("certificate"):
        from surepick.certificates import signing

        key = signing.read_key(sign, lambda: str(typer.prompt("password", hide_input=True, err=True)))
        data = signing.sign(session.certificate().to_json(), key)
        file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        return " (signed)"
    from surepick.report.export import export as write

    write(session, file)
    inside = "log" if session.status == "running" else "log and certificate"
    return f" ({inside} inside)" if file.suffix.lower() == ".html" else ""


def verify(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Reports, logs and certificates. [the session of the store]")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Check the store and every session.")] = False,
    public_key: Annotated[
        Path | None, typer.Option(help="The key that the certificate is signed with.")
    ] = None,
    session: output.Name = None,
) -> None:
    """Replay a log and check every step.

    Exits with 1 if a check fails, with 3 if values contradict the assumption.

    Example: surepick verify report.html
    """
    from surepick.certificates import signing
    from surepick.sessions.verify import verify as check

    if everything:
        _verify_store()
        return
    logs, certificates, wrong_pages = _read(files or ())
    named = str(certificates[0].get("session", "")) if certificates else ""
    name = logs[0].name if logs else session or named or output.only_name(output.open_place())
    given: list[Any] = [*certificates] or [None]
    if logs:
        verdicts = [log.verify(one) for log in logs for one in given]
    else:
        verdicts = [check(output.open_place().log(name), one) for one in given]
    verdict = next((one for one in verdicts if not one.holds), verdicts[0])
    objections = list(verdict.objections) or wrong_pages
    if public_key is not None:
        if not certificates:
            raise ParameterError("--public-key needs the certificate that is signed", field="public_key")
        wrong = signing.objection_to_signature(certificates[0], signing.read_key(public_key))
        objections += [] if wrong is None else [wrong]
    if objections:
        lines = ["Does not hold.", *(output.wrapped(one, "  - ") for one in objections)]
    else:
        shown = logs[0].session() if logs else output.open_session(name, read_only=True)
        lines = list(verdict_lines(verdict, shown.view()))
        if certificates and "signature" in certificates[0] and public_key is None:
            lines.append("Remark     the signature was not checked; give --public-key")
    data = {**vars(verdict), "doubts": [asdict(doubt) for doubt in verdict.doubts]}
    data |= {"session": name, "holds": not objections, "trusted": verdict.trusted, "objections": objections}
    output.answer(data, lines)
    if objections:
        raise typer.Exit(output.NO)
    if verdict.status == "confident" and verdict.doubts:
        raise typer.Exit(output.DOUBTFUL)


def _read(files: Any) -> tuple[list[LogFile], list[dict[str, Any]], list[str]]:
    """Return the logs and certificates in these files, and objections to pages of reports.

    A report and an exported log may hold both.
    """
    from surepick.files.log import certificate_in, log_in, read_json
    from surepick.report import objection_to_page, read_report

    logs = list[Any]()
    certificates = list[dict[str, Any]]()
    pages = list[str]()
    for file in files:
        is_page = file.suffix.lower() in (".html", ".htm")
        data = read_report(file) if is_page else read_json(file)
        log, certificate = log_in(data), certificate_in(data)
        if is_page and log is not None and (found := objection_to_page(file, log)) is not None:
            pages.append(found)
        if log is None and certificate is None:
            raise FileError(f"{str(file)!r} holds neither a log nor a certificate", field="files")
        logs += [] if log is None else [log]
        certificates += [] if certificate is None else [certificate]
    certificates.sort(key=lambda one: "signature" not in one)
    return logs, certificates, pages


def verdict_lines(verdict: Verdict, view: View) -> Iterator[str]:
    """Yield what was checked, what is claimed, and what that rests on."""
    from surepick.views.build import quoted
    from surepick.views.numbers import day, minute, value
    from surepick.views.view import lower

    events, values = how_many(verdict.n_events, "event"), how_many(verdict.n_values, "value")
    yield output.wrapped(f"Holds. {events} and {values} replay; every bet was fixed before its batch.")
    if not view.trusted:
        yield output.wrapped(f"{view.headline}.", "Doubts     ")
    leader = "" if view.plan is None else f"{quoted(view.plan)}: "
    claim = f"{leader}{lower(view.proved.text)}" if leader else view.proved.text
    within = f"delta {view.delta:g}, epsilon {value(view.epsilon, view.unit)}"
    yield output.wrapped(f"{claim.rstrip('.')} ({within}).", "Claim      ")
    for to in verdict.extensions:
        budget = "" if to["budget"] is None else f", budget {to['budget']:,}"
        yield f"Extended   to delta {to['delta']:g}{budget}"
    yield output.wrapped(view.proved.assumes or "nothing", "Assumes    ")
    first, last = verdict.first_time or 0.0, verdict.last_time or 0.0
    until = minute(last).removeprefix(f"{day(first)}, ")
    when = f"{minute(first)} to {until} UTC"
    yield output.wrapped(
        f"{verdict.n_values:,} recorded, {view.n_removed:,} removed, {view.n_extra:,} extra; {when}",
        "Values     ",
    )
    remarks = list(verdict.remarks)
    if verdict.n_values >= MANY and last - first < QUICK:
        remarks.append(f"{verdict.n_values:,} values within a minute: recorded by a program?")
    yield from (output.wrapped(remark, "Remark     ") for remark in remarks)
    yield output.wrapped("whether values are true, whether other sessions were tried", "Unchecked  ")


def _verify_store() -> None:
    """Check the store for damage and every session of it."""
    from surepick.sessions.verify import verify as check
    from surepick.store.doctor import examine

    found = examine(output.settings.url)
    wrong = {
        one.name: f"{one.n_proved:,} of {one.head.position:,} events are as written"
        for one in found.logs
        if not one.is_well
    }
    if found.is_well:
        place = output.open_place()
        verdicts = {name: check(place.log(name)) for name in place.names()}
        wrong = {name: one.objections[0] for name, one in verdicts.items() if not one.holds}
    holds = found.is_well and not wrong
    name = found.place.removeprefix("sqlite:///")
    head = f"{name}: {how_many(len(found.logs), 'session')}, {'all hold' if holds else 'not all hold'}."
    lines = [output.wrapped(one, "  - ") for one in found.complaints]
    lines += [output.wrapped(f"{name}: {one}", "  - ") for name, one in wrong.items()]
    if found.advice:
        lines.append(f"To recover what can be read: {found.advice}")
    data = {"holds": holds, "complaints": found.complaints, "sessions": wrong, "advice": found.advice}
    output.answer(data, [head, *lines])
    if not holds:
        raise typer.Exit(output.NO)
