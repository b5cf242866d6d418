"""`verify`: does a session hold?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.opening import only_name, open_to_read
from surepick.cli.options import DEFAULT_STORE, DOUBTFUL, NOT_SURE, Json, Name, StoreUrl
from surepick.cli.render import answer, say
from surepick.core.guarantee import no_guarantee
from surepick.core.wording import how_many
from surepick.errors import FileError, StoreError

if TYPE_CHECKING:
    from surepick.files.log import LogFile
    from surepick.sessions.verify import Verdict
    from surepick.store import Store


def verify(
    certificate: Annotated[
        Path | None,
        typer.Argument(help="A certificate: what `certificate`, `status --json` or `export` writes."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Argument(help="A log, as `export --format json` writes it; then no store is needed."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The public key that the certificate has to be signed with.")
    ] = None,
    announced: Annotated[
        str | None, typer.Option(help="The fingerprint of the question that `new --announce` printed.")
    ] = None,
    session: Name = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Replay a session's log and check every step, and a certificate if given.

    Exits with 1 if a check fails, with 3 if all hold and the values contradict what the guarantee assumes. It
    shows that the log is consistent, not that the values were measured.

    Try: surepick export --session table --to log.json, then surepick verify log.json
    """
    from surepick.sessions.verify import verify as check

    certificates, file = _given(certificate, log)
    none: list[dict[str, Any] | None] = [None]
    verdicts = []
    for given in certificates or none:
        if file is not None:
            verdicts.append(file.verify(given))
        else:
            place = _store_of(store, certificate)
            verdicts.append(check(place, session or only_name(place), given))
    verdict = next((one for one in verdicts if not one.holds), verdicts[0])
    objections = [*verdict.objections, *_other_objections(verdict, certificates, key, announced)]
    remarks = [*verdict.remarks, *_other_remarks(certificates, file, key)]
    verdict = replace(verdict, objections=tuple(objections), remarks=tuple(remarks))
    doubts = [asdict(doubt) for doubt in verdict.doubts]
    data = {"holds": verdict.holds, "trusted": verdict.trusted, **vars(verdict), "doubts": doubts}
    answer(data, as_json, lambda: _print_verdict(verdict))
    raise typer.Exit(_exit_code(verdict))


def _exit_code(verdict: Verdict) -> int:
    """0 if it holds, 1 if not; 3 if it holds, and values contradict the assumption of its guarantee."""
    if not verdict.holds:
        return NOT_SURE
    return DOUBTFUL if verdict.status == "confident" and verdict.doubts else 0


def _store_of(store: str, certificate: Path | None) -> Store:
    """The store; who has a certificate and no store is told what else there is."""
    try:
        return open_to_read(store)
    except StoreError as error:
        if certificate is None:
            raise
        both = f"surepick verify {shlex.quote(str(certificate))} log.json"
        raise StoreError(
            f"{error}. Without the store it takes the log: {both}, where log.json is what `surepick export "
            "--to log.json` writes for whoever has the store"
        ) from None


def _given(*paths: Path | None) -> tuple[list[dict[str, Any]], LogFile | None]:
    """Return the certificates and the log in these files, which may be in any order, or both in one.

    Of two equal certificates one is enough to check; the signed one, if one is signed.
    """
    from surepick.files.log import certificate_in, log_in, read_json

    found: list[tuple[dict[str, Any] | None, LogFile | None]] = []
    for path in filter(None, paths):
        data = read_json(path)
        found.append((certificate_in(data), log_in(data)))
        if found[-1] == (None, None):
            raise FileError(
                f"{str(path)!r} holds neither a certificate nor a log; write one with `surepick certificate` "
                "or both with `surepick export --format json`"
            )
    certificates = [given for given, _ in found if given is not None]
    logs = [log for _, log in found if log is not None]
    if len(found) == 2 and not logs:
        raise FileError(f"{str(paths[1])!r} holds no log; write one with `surepick export --format json`")
    certificates.sort(key=lambda given: "signature" not in given)
    if len(certificates) == 2 and _unsigned(certificates[0]) == _unsigned(certificates[1]):
        certificates.pop()
    return certificates, logs[-1] if logs else None


def _unsigned(certificate: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in certificate.items() if name != "signature"}


def _other_objections(
    verdict: Verdict, given: list[dict[str, Any]], key: Path | None, announced: str | None
) -> Iterator[str]:
    if announced is not None and announced.strip().lower() != verdict.question:
        yield f"another question was announced; the fingerprint of this one is {verdict.question}"
    if key is None:
        return
    from surepick.certificates import signing

    public = signing.read_public_key(key)
    if not given:
        raise FileError("--key is for the signature of a certificate; give the certificate too", field="key")
    objection = signing.objection_to_signature(given[0], public)
    if objection is not None:
        yield objection


def _other_remarks(given: list[dict[str, Any]], file: LogFile | None, key: Path | None) -> Iterator[str]:
    if file is not None:
        yield "the log in the file was checked; no store was looked at"
    if given and "signature" in given[0] and key is None:
        yield "the certificate is signed, and the signature was not checked; give the public key with --key"


def _print_verdict(verdict: Any) -> None:
    for objection in verdict.objections:
        say(f"objection: {objection}")
    if verdict.doubts:
        say(f"doubts: {no_guarantee(verdict.doubts)}")
    for remark in verdict.remarks:
        say(f"remark: {remark}")
    found = f"{how_many(verdict.n_events, 'event')}, {how_many(verdict.n_rounds, 'round')}, {verdict.status}"
    answer = f", answer {verdict.plan_name!r}" if verdict.plan_name else ""
    say(f"{'holds' if verdict.holds else 'does not hold'}: {found}{answer}")
    if verdict.holds:
        for name, fact in _facts(verdict):
            say(f"  {name}: {fact}")
    if verdict.question:
        say(f"fingerprint of the question: {verdict.question}")


def _facts(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What is claimed by a session that holds, and what that rests on."""
    yield "claim", verdict.claim
    yield "delta, epsilon", f"{verdict.delta:g}, {verdict.epsilon:g}"
    yield "assumes", verdict.assumption
    yield "values", f"{verdict.n_values:,}; {verdict.n_removed:,} removed"
    for to in verdict.extensions:
        budget = "" if to["budget"] is None else f", budget {to['budget']:,}"
        yield "extended to", f"delta {to['delta']:g}, epsilon {to['epsilon']:g}{budget}"
    times = (verdict.first_time or 0.0, verdict.last_time or 0.0)
    first, last = (datetime.fromtimestamp(t, UTC).isoformat(" ", "seconds") for t in times)
    yield "first and last event", f"{first}, {last}"
