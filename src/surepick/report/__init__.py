"""A report: one HTML file without scripts, with the answer first and the log and certificate inside.

`surepick verify report.html` replays the log, and writes the page again from it: what the page shows must be
what its log gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from surepick._version import __version__
from surepick.core.answers import listed
from surepick.core.wording import how_many
from surepick.errors import FileError, SurepickError
from surepick.files.log import LogFile, log_of
from surepick.sessions.session import Session
from surepick.views.chart import STYLE as CHART_STYLE
from surepick.views.chart import caption, plans_chart
from surepick.views.numbers import count, minute, safe_range, value
from surepick.views.view import View, labelled

MOST_VALUES = 1000  # rows; the log inside has all of them
GUARANTEES = "https://surepick.readthedocs.io/guarantees"
DATA = re.compile(r'<script type="application/json" id="surepick-log">(.*?)</script>', re.DOTALL)
VERSION = re.compile(r'<meta name="generator" content="surepick ([^"]*)">')
STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:2rem;line-height:1.2;margin:.2rem 0} h2{font-size:1.1rem;margin:2rem 0 .4rem} .soft{opacity:.7}
.doubt{border-left:.4rem solid #d97706;background:rgba(217,119,6,.15);padding:.5rem 1rem}
table{border-collapse:collapse;width:100%}
td,th{padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid rgba(128,128,128,.3)} td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
@media print{body{margin:0;max-width:none} tr,svg{break-inside:avoid}}
"""


def write_report(session: Session, path: str | Path) -> Path:
    """Write the report of the session into this file."""
    path = Path(path)
    path.write_text(report(session), encoding="utf-8")
    return path


def report(session: Session) -> str:
    """Return the session as one HTML page that needs nothing else.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], goal="largest", plan_names=["<b>road</b>", "rail"], noise=1)
    >>> page = report(sp.Session.create("memory://", "trips", problem))
    >>> page.startswith("<!doctype html>"), "<b>road</b>" in page
    (True, False)
    """
    view = session.view()
    certificate = session.certificate().to_json() if view.state != "running" else None
    data = json.dumps({"certificate": certificate, "log": log_of(session.store, session.name).to_json()})
    title = escape(view.title or view.session)
    parts = [
        "<!doctype html>",
        f'<html lang="en"><meta charset="utf-8"><title>{title}</title>',
        f'<meta name="generator" content="surepick {__version__}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{STYLE}</style>",
        CHART_STYLE,
        *_answer(view, title),
        *_tables(session, view),
        f"<p>This file holds the log{' and the certificate' if certificate else ''}.",
        "To check it: <code>surepick verify report.html</code></p>",
        f'<p>What this proves, and what not: <a href="{GUARANTEES}">{GUARANTEES}</a></p>',
        f'<script type="application/json" id="surepick-log">{data.replace("<", chr(92) + "u003c")}</script>',
        "</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _answer(view: View, title: str) -> Iterator[str]:
    """Yield the headline, what is proved, and our bet; doubts replace the headline."""
    yield f'<p class="soft">{title}: {view.state}, {count(view.n_measured)} measured</p>'
    best = view.best
    shown = "" if best is None or best.value is None else value(best.value, view.unit, best.se)
    mark = "" if view.trusted else ' class="doubt"'
    facts = f'data-state="{view.state}" data-trusted="{str(view.trusted).lower()}"'
    yield f"<h1{mark} {facts}>{escape(view.headline)}</h1>"
    yield f"<p>{escape(shown)}</p>" if shown and view.trusted else ""
    yield from (f"<p>{escape(labelled(*claim))}</p>" for claim in view.claims)
    yield f"<p>Assumes {escape(view.proved.assumes)}.</p>" if view.proved.assumes else ""
    for remark in view.remarks:
        if remark.code not in ("worker", "budget"):  # those are about the moment
            yield f"<p>! {escape(remark.text)}</p>"


def _tables(session: Session, view: View) -> Iterator[str]:
    """Yield the plans, the arms, the values and the settings, each under its heading."""
    unit = view.unit
    yield "<h2>All plans</h2>"
    yield plans_chart(view)
    yield f'<p class="soft">{escape(caption(view))}</p>'
    yield _table(
        ("plan:", "total", "behind", "status:"),
        [
            (
                row.name,
                value(row.value, unit, row.se) + ("*" if row.uses_guess else ""),
                value(row.behind, unit, row.behind_se),
                row.status,
            )
            for row in view.plans
        ],
    )
    yield "<h2>Arms</h2>"
    if view.amounts:
        yield f"<p>{escape(view.leader or 'The leader')}: {escape(listed(dict(view.amounts)))}</p>"
    yield _table(
        ("arm:", "measured", "mean", "safe range:", "role:"),
        [
            (
                arm.name,
                count(arm.n),
                value(arm.mean, unit, arm.se),
                safe_range(arm.safe, unit),
                arm.role,
            )
            for arm in view.arms
        ],
    )
    values = list(session.measurements())
    yield "<h2>Values</h2>"
    yield _table(
        ("number", "arm:", "value", "by:", "UTC:", ":"),
        [
            (
                str(m.number),
                m.probe_name if m.reading == "value" else f"{m.probe_name}: {m.reading}",
                f"{m.value:.6g} {unit}".rstrip(),
                m.worker,
                minute(m.time),
                "removed" if m.removed else "",
            )
            for m in values[-MOST_VALUES:]
        ],
    )
    if len(values) > MOST_VALUES:
        yield f'<p class="soft">and {len(values) - MOST_VALUES:,} earlier ones, in the log</p>'
    yield "<h2>What it rests on</h2>"
    facts = {
        "goal": f"the {view.goal} total",
        "delta": f"{view.delta:g}",
        "epsilon": value(view.epsilon, unit),
        "budget": "none" if view.budget is None else count(view.budget),
        "policy": view.policy,
        "values": f"{count(view.n_measured)}; {count(view.n_extra)} extra, {count(view.n_removed)} removed",
        "log": f"{how_many(view.head.position, 'event')}, checksum {view.head.checksum}",
    }
    yield _table((":", ":"), list(facts.items()))


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; columns whose heading ends in a colon are text, the others numbers."""
    kinds = ["" if heading.endswith(":") else ' class="n"' for heading in headings]
    head = "".join(f"<th{k}>{escape(h.rstrip(':'))}</th>" for h, k in zip(headings, kinds, strict=True))
    lines = ("".join(f"<td{k}>{escape(x)}</td>" for x, k in zip(row, kinds, strict=True)) for row in rows)
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def read_report(path: Path) -> dict[str, Any]:
    """Return the log and certificate that a report holds."""
    try:
        text = path.read_text(encoding="utf-8")
        found = DATA.search(text)
        data = json.loads(found[1]) if found else None
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"cannot read a report from {str(path)!r}: {error}") from None
    if not isinstance(data, dict):
        raise FileError(
            f"{str(path)!r} is no report with a log inside; write one: surepick export -o report.html"
        )
    return data


def objection_to_page(path: Path, log: LogFile) -> str | None:
    """Return how a report differs from what its log gives; None if it does not.

    A page of another version of surepick may be worded otherwise, so that only its data are checked.
    """
    text = path.read_text(encoding="utf-8")
    version = VERSION.search(text)
    if version is not None and version[1] != __version__:
        return None
    try:
        again = report(log.session())
    except SurepickError as error:
        return f"the page cannot be written again from its log: {error}"
    for mine, theirs in zip(again.splitlines(), text.splitlines(), strict=False):
        if mine != theirs:
            return f"the page shows {theirs[:80]!r}, and its log gives {mine[:80]!r}"
    return None if again == text else "the page has lines that its log does not give"
