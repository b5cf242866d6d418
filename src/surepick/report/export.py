"""Write a session into a file; the ending of its name says what: a report, values, the log, a certificate."""

from __future__ import annotations

import json
from pathlib import Path

from surepick.errors import FileError
from surepick.files.log import log_of
from surepick.files.measurements import write_csv
from surepick.sessions.session import Session
from surepick.views.sheet import write_workbook

KINDS = ".html (report), .csv or .xlsx (values), .json (log), certificate.json"
COLUMNS = ("number", "arm", "reading", "value", "worker")


def export(session: Session, path: str | Path) -> Path:
    """Write the session into this file and return its path."""
    file = Path(path)
    kind, is_certificate = file.suffix.lower(), file.stem.startswith("certificate")
    if kind == ".html":
        from surepick.report import write_report

        write_report(session, file)
    elif kind == ".json":
        certificate = (
            session.certificate().to_json() if is_certificate or session.status != "running" else None
        )
        log = log_of(session.store, session.name).to_json()
        data = certificate if is_certificate else {"certificate": certificate, "log": log}
        file.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    elif kind == ".csv":
        with file.open("w", newline="", encoding="utf-8") as stream:
            write_csv(session, stream)
    elif kind == ".xlsx":
        rows = [[m.number, m.probe_name, m.reading, m.value, m.worker] for m in session.measurements()]
        write_workbook(file, COLUMNS, rows)
    else:
        raise FileError(f"the ending says what to write: {KINDS}; got {str(file)!r}", field="path")
    return file
