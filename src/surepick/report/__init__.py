"""A report: one HTML file that needs nothing else. The answer first, then the evidence, then the log."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter, deque
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from surepick import views
from surepick._version import __version__
from surepick.core.oracle_problem import in_short
from surepick.core.wording import how_many, plural
from surepick.plots import paper
from surepick.report.figures import inline_svg
from surepick.report.html import Html, joined, table, tag
from surepick.sessions.session import Session
from surepick.store import Event
from surepick.views import Arms, Look, Picture, Progress, Rivals, Summary
from surepick.views.text import times

MOST_RIVALS, MOST_ARMS, MOST_ENTRIES = 15, 25, 40
LAST_EVENTS = 40  # of the log; those that are no measurements are listed beyond them
MOST_REMARKS = 200
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'"  # no scripts, nothing from elsewhere
_ALWAYS = ("created", "extended", "stopped", "closed", "noted", "withdrawn")


def write_report(session: Session, path: str | Path) -> Path:
    """Write the report of the session into this file."""
    path = Path(path)
    path.write_text(report(session), encoding="utf-8")
    return path


def report(session: Session) -> str:
    """The session as one HTML page without scripts and without anything to fetch.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["<b>road</b>", "rail"])
    >>> session = sp.Session.create("memory://", problem, sp.CombGapE(), name="trips")
    >>> page = report(session)
    >>> page.startswith("<!doctype html>"), "<b>road</b>" in page
    (True, False)
    """
    seen = views.look(session)
    page = views.page(seen, n_rivals=MOST_RIVALS, n_arms=MOST_ARMS)
    style = (files("surepick.report") / "style.css").read_text(encoding="utf-8")
    head = joined(
        [
            Html('<meta charset="utf-8">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">'),
            tag("title", f"{seen.session}: {page.summary.state}"),
            Html(f"<style>{style}</style>"),
        ]
    )
    body = tag(
        "main",
        _answer(page.summary, seen),
        _plan(page.picture),
        _progress(page.progress),
        _rivals(page.rivals),
        _arms(page.arms),
        _certificate(session),
        _log(session, page.summary),
    )
    footer = tag("footer", f"surepick {__version__}, {_moment(seen.now)}", class_="quiet")
    return "<!doctype html>\n" + tag("html", tag("head", head), tag("body", body, footer), lang="en")


def _answer(summary: Summary, look: Look) -> Html:
    state = tag("span", summary.state, class_="state sure" if summary.state == "sure" else "state")
    warnings = [tag("p", warning.text, class_="warning", role="note") for warning in summary.warnings]
    facts = {
        "measurements used": f"{summary.n_measurements:,}",
        "rounds": f"{summary.n_rounds:,}",
        "plans": "too many to list" if summary.n_plans is None else in_short(summary.n_plans),
        "arms": f"{summary.n_arms:,}",
        "policy": summary.policy,
        "delta": f"{summary.delta:g}",
        "epsilon": f"{summary.epsilon:g}",
        "cost": f"{summary.cost:,.6g}",
        "budget": "none" if summary.budget is None else f"{summary.budget:,}",
        "told, not used": f"{summary.n_told - summary.n_measurements:,}",
        "begun": _moment(summary.created_at),
        "last decision": "none" if summary.decided_at is None else _moment(summary.decided_at),
    }
    listed = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items()]
    return tag(
        "header",
        tag("h1", summary.session, " ", state),
        tag("p", summary.sentence, class_="answer"),
        tag("p", _promise(summary), class_="promise"),
        *warnings,
        tag("dl", *listed),
    )


def _promise(summary: Summary) -> str:
    if not summary.is_proved:
        return f"{summary.policy} makes no promise."
    when = "The promise" if summary.state == "sure" else "What is promised once it is sure"
    return f"{when}: {summary.guarantee}."


def _plan(picture: Picture | None) -> Html:
    if picture is None:
        return Html("")
    rival = "" if picture.other is None else f" Dashed or hollow: the closest rival, “{picture.other}”."
    drawn = inline_svg(paper.picture(picture), "plan", f"“{picture.plan}”.{rival}")
    value = (
        ""
        if picture.value is None
        else f"Its value by the estimates: {picture.value:.5g} ± {picture.error or 0.0:.2g}."
    )
    rows = [
        (
            entry.name,
            f"{entry.amount:.6g}",
            *([f"{entry.other:.6g}"] if picture.other else []),
            _number(entry.mean),
        )
        for entry in picture.entries[:MOST_ENTRIES]
    ]
    header = ["arm", "amount", *(["closest rival"] if picture.other else []), "estimate"]
    return tag(
        "section",
        tag("h2", "The plan"),
        _said(value),
        drawn,
        table(header, rows),
        _more(picture.n_entries - len(rows), "more entry", "more entries"),
    )


def _said(text: str) -> Html:
    return tag("p", text) if text else Html("")


def _more(count: int, one: str, many: str) -> Html:
    return tag("p", f"and {how_many(count, one, many)}", class_="quiet") if count > 0 else Html("")


def _progress(progress: Progress) -> Html:
    if all(point.toward is None for point in progress.points):
        return tag("section", tag("h2", "How sure"), tag("p", "Nothing can be compared yet."))
    words = (
        "Confidence in the lead as it grew: one minus a bound, valid at every moment, on the probability "
        "that to declare the lead would have been wrong."
        if progress.proved
        else "The evidence against the closest rival as it grew, as a share of what the policy asks for. "
        "This policy has no bound that is valid at every moment."
    )
    coming = "" if progress.forecast is None else f"Forecast: {progress.forecast.explanation}."
    drawn = inline_svg(paper.progress(progress), "progress", words)
    return tag("section", tag("h2", "How sure"), _said(coming), drawn)


def _rivals(rivals: Rivals) -> Html:
    if not rivals.rows:
        return Html("")
    out = f"{rivals.n_ruled_out:,} {plural(rivals.n_ruled_out, 'is', 'are')} ruled out"
    words = (
        f"Of {how_many(rivals.n_rivals, 'rival')} {out}. Shown are those with the least "
        f"evidence against them; a rival is ruled out at {times(rivals.needed)}."
    )
    rows = [
        (
            row.name,
            f"{row.gap:.4g} ± {row.error:.2g}",
            f"{row.low:.4g} to {row.high:.4g}",
            times(row.times),
            "ruled out" if row.ruled_out else f"{row.toward:.0%} of the way",
        )
        for row in rivals.rows
    ]
    about = "" if rivals.proved else " The evidence is a likelihood ratio, no proof."
    caption = f"How far each rival is behind “{rivals.lead_name}”, and how much speaks for it.{about}"
    return tag(
        "section",
        tag("h2", "The lead and its rivals"),
        tag("p", words),
        inline_svg(paper.rivals(rivals), "rivals", caption),
        table(("rival", "behind by", "interval", "evidence", ""), rows),
    )


def _arms(arms: Arms) -> Html:
    if not arms.n_measurements:
        return Html("")
    rows = [
        (
            row.name,
            f"{row.count:,}",
            "–" if row.best_count is None else f"{row.best_count:,.0f}",
            _number(row.mean),
            "–" if row.error is None else f"{row.error:.2g}",
        )
        for row in arms.rows
    ]
    matter = how_many(arms.n_matter, "arm that matters", "arms that matter")
    words = f"{how_many(arms.n_measurements, 'measurement')} of {matter}, of {arms.n_arms:,}."
    best = "The mark is where the best allocation for the estimates has them"
    cost = ", by cost" if arms.by_cost else ""
    return tag(
        "section",
        tag("h2", "What was measured"),
        tag("p", words),
        inline_svg(paper.arms(arms), "arms", f"Measurements of each arm. {best}{cost}."),
        table(("arm", "measured", "best", "estimate", "±"), rows),
        _more(arms.n_arms - len(rows), "more arm", "more arms"),
    )


def _certificate(session: Session) -> Html:
    if session.status is None:
        return Html("")
    certificate = session.certificate()
    data = json.dumps(views.to_json(certificate.to_json()), indent=1, ensure_ascii=False)
    file = "data:application/json;base64," + b64encode(data.encode()).decode()
    return tag(
        "section",
        tag("h2", "Certificate"),
        tag("pre", str(certificate)),
        tag(
            "p",
            tag("a", "certificate.json", href=file, download="certificate.json"),
            " holds all of it. ",
            tag("code", "surepick verify certificate.json"),
            " replays the log from its first event and checks every decision.",
        ),
    )


def _log(session: Session, summary: Summary) -> Html:
    kinds: Counter[str] = Counter()
    last: deque[Event] = deque(maxlen=LAST_EVENTS)
    remarks: deque[Event] = deque(maxlen=MOST_REMARKS)
    for event in session.events():
        kinds[event.kind] += 1
        if len(last) == LAST_EVENTS and last[0].kind in _ALWAYS:
            remarks.append(last[0])
        last.append(event)
    counted = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    rows = [_event_row(event, session) for event in [*remarks, *last]]
    return tag(
        "section",
        tag("h2", "The log"),
        tag(
            "p",
            f"{how_many(summary.position, 'event')} ({counted}), fingerprint ",
            tag("code", summary.checksum),
            ".",
        ),
        tag("p", "Remarks and decisions to end or go on, and the last events:", class_="quiet"),
        table(("event", "when", "what", ""), rows, numbers=0),
    )


def _event_row(event: Event, session: Session) -> tuple[Any, ...]:
    body = json.loads(event.body)
    return f"{event.position:,}", _moment(event.time), event.kind, _what(event.kind, body, session)


def _what(kind: str, body: dict[str, Any], session: Session) -> str:
    """An event in words."""
    names = session.given_problem.arm_names
    if kind in ("measured", "recorded"):
        values = body.get("values", [body.get("value")])
        shown = ", ".join(f"{value:.6g}" for value in values[:5]) + (" …" if len(values) > 5 else "")
        mean = f" (mean of {body['count']})" if "count" in body else ""
        worker = f", by {body['worker']}" if body.get("worker") else ""
        return f"{names[body['arm']]}: {shown}{mean}{worker}"
    if kind == "asked":
        wanted = [f"{count} × {names[arm]}" for arm, count in body["counts"][:6]]
        return ", ".join(wanted) + (" …" if len(body["counts"]) > 6 else "")
    if kind == "created":
        return f"{body['policy']['name']}, seed {body['seed']}"
    if kind == "stopped":
        return str(body["status"])
    text = body.get("reason", body.get("text", body))
    return views.shortened(text if isinstance(text, str) else json.dumps(text, ensure_ascii=False), 300)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.5g}"
