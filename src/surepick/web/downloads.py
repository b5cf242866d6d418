"""Files to take away: the certificate, the report, and what was measured."""

from __future__ import annotations

import io
import json
from typing import Literal

from fastapi import FastAPI
from fastapi.responses import Response

from surepick.files.measurements import write_csv, write_json
from surepick.sessions.session import Session
from surepick.web.context import Context
from surepick.web.session_cache import name_of


def add_routes(routes: FastAPI, context: Context) -> None:
    """Serve the files."""
    sessions = context.sessions

    @routes.get("/sessions/{slug}/certificate.json", response_model=None)
    async def certificate(slug: str) -> Response:
        body = await sessions.at(slug, lambda opened: json.dumps(opened.certificate().to_json(), indent=1))
        return _download(body, "application/json", f"certificate-{_plain(name_of(slug))}.json")

    @routes.get("/sessions/{slug}/report.html", response_model=None)
    async def report(slug: str) -> Response:
        from surepick.report import report  # an edge beside this one, made of its templates

        page = await sessions.at(slug, report)
        return _download(page, "text/html; charset=utf-8", f"report-{_plain(name_of(slug))}.html")

    @routes.get("/api/sessions/{slug}/export.{form}", response_model=None)
    @routes.get("/sessions/{slug}/export.{form}", response_model=None)
    async def export(slug: str, form: Literal["csv", "json"]) -> Response:
        def written(opened: Session) -> str:
            stream = io.StringIO(newline="")
            (write_csv if form == "csv" else write_json)(opened, stream)
            return stream.getvalue()

        kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
        what = "measurements" if form == "csv" else "log"
        return _download(await sessions.at(slug, written), kind, f"{what}-{_plain(name_of(slug))}.{form}")


def _download(content: str, kind: str, name: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    return Response(content, media_type=kind, headers={"content-disposition": disposition})


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:60]
