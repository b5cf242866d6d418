"""The chart of all plans, as HTML for pages, reports and notebooks: a table whose middle column is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from surepick.core.wording import how_many, shortened
from surepick.views.numbers import count, value
from surepick.views.view import LEADER, PlanRow, View

MOST_ROWS = 12  # plans
STEPS = (1, 2, 5, 10)  # between ticks, times a power of ten
WIDEST = 2.0  # a whisker reaches at most this many times the range of the dots beyond them
STYLE = """<style>
.plans{width:100%;max-width:46em;border-collapse:collapse;font:15px system-ui,sans-serif}
.plans th,.plans td{border:0;padding:.1em .4em;text-align:left;vertical-align:middle}
.plans th{font-weight:500;line-height:1.2;background:none}
.plans td.n,.plans th.n{text-align:right;white-space:nowrap}
.plans .unseen{position:absolute;clip-path:inset(50%);white-space:nowrap}
.plans .strip{width:50%}.plans svg{display:block;width:100%;overflow:visible}
.plans text{font:12px system-ui,sans-serif;fill:currentColor;opacity:.7}
.plans .zero{stroke:#888}.plans .epsilon{stroke:#2563eb;stroke-dasharray:2 4}
.plans .whisker{stroke:#888;stroke-width:3}.plans .dot{fill:#888}
.plans [data-status="ruled out"]>:not(.strip){opacity:.7}.plans [data-status=leader] th{font-weight:700}
.plans [data-status=leader] .dot{fill:#16803c}.plans [data-status=open] .whisker{stroke:#2563eb}
.plans [data-status=open] .dot{fill:Canvas;stroke:#2563eb;stroke-width:2.5}
</style>"""  # the pages of the server have theirs in style.css


def plans_chart(view: View, *, most: int = MOST_ROWS) -> str:
    """Return all plans by how far behind the leader they are, worse to the right; empty without estimates.

    A dot is an estimate, a whisker two standard errors to each side. Grey plans are ruled out, hollow dots
    are open. The dotted line is epsilon better than the leader: nothing ruled out lies beyond it.
    """
    rows = [row for row in view.plans if row.behind is not None][:most]
    if not rows or not view.n_measured:
        return ""
    low, high = _ends(rows, view.epsilon)

    def x(behind: float) -> str:
        return f"{100 * (min(max(behind, low), high) - low) / (high - low):.2f}%"

    ticks = "".join(
        f'<text x="{x(at)}" y="15" text-anchor="middle">{value(at)}</text>' for at in _ticks(low, high)
    )
    lines = f'<line class="zero" x1="{x(0)}" x2="{x(0)}" y1="0" y2="36"/>'
    if view.epsilon:
        better = x(-view.epsilon)
        lines += f'<line class="epsilon" x1="{better}" x2="{better}" y1="0" y2="36"/>'
    body = []
    for row in rows:
        at, error = row.behind or 0.0, 2 * (row.behind_se or 0.0)
        drawn = f'<circle class="dot" cx="{x(at)}" cy="18" r="6"/>'
        words = row.status
        if row.status != LEADER:
            ends = f'x1="{x(at - error)}" x2="{x(at + error)}"'
            drawn = f'<line class="whisker" {ends} y1="18" y2="18"/>{drawn}'
            words += f", {value(row.behind, '', row.behind_se)} behind"
        total = value(row.value, "", row.se).split(" ±")[0] + ("*" if row.uses_guess else "")
        body.append(
            f'<tr data-status="{row.status}"><th scope="row">{escape(shortened(row.name, 60))}'
            f'<span class="unseen"> ({escape(words)})</span></th><td class="strip"><svg height="36" '
            f'aria-hidden="true">{lines}{drawn}</svg></td><td class="n">{escape(total)}</td></tr>'
        )
    axis = escape(f"{view.unit} behind".strip())
    return (
        f'<table class="plans"><thead><tr><th scope="col" class="axis">{axis}</th><td class="strip">'
        f'<svg height="22" aria-hidden="true">{ticks}</svg></td><th scope="col" class="n">'
        f"{escape(view.unit or 'Total')}</th></tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def caption(view: View, *, most: int = MOST_ROWS) -> str:
    """Return what the chart shows, in words."""
    shown = view.plans[:most]
    if not view.n_measured:
        n = "" if view.n_plans is None else f"{count(view.n_plans)} plans; "
        return f"{n}their estimates appear with the first values."
    n_more = (view.n_plans or len(shown)) - len(shown)
    parts = [
        f"Behind {view.leader}: worse to the right. Line: ± 2 standard errors.",
        "Hollow: still open. Grey: ruled out.",
        f"Dotted: {value(view.epsilon, view.unit)} better than the leader." if view.epsilon else "",
        "* with arms by their guess." if any(row.uses_guess for row in shown) else "",
        f"{how_many(n_more, 'more plan')}." if n_more > 0 else "",
    ]
    return " ".join(filter(None, parts))


def _ends(rows: list[PlanRow], epsilon: float) -> tuple[float, float]:
    """Return the ends of the axis: it holds all dots, the line of epsilon, and the whiskers.

    Whiskers that are much longer than the dots are apart are cut off, or the dots would lie on one another.
    """
    dots = [row.behind or 0.0 for row in rows]
    errors = [2 * (row.behind_se or 0.0) for row in rows]
    longest = WIDEST * max(max(dots) - min(dots), epsilon) or math.inf  # no limit where all dots are equal
    whiskers_begin = min(at - error for at, error in zip(dots, errors, strict=True))
    whiskers_end = max(at + error for at, error in zip(dots, errors, strict=True))
    low = min(max(whiskers_begin, min(dots) - longest), -epsilon)
    high = max(min(whiskers_end, max(dots) + longest), epsilon)
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def _ticks(low: float, high: float) -> Iterator[float]:
    """Yield the ticks of an axis from low to high: two to six multiples of 1, 2 or 5 times a power of ten.

    >>> list(_ticks(-1.3, 7.2))
    [0.0, 2.0, 4.0, 6.0]
    """
    length = high - low
    power = 10.0 ** math.floor(math.log10(length / 4))
    # The axis is 4 to 40 powers long. The smallest step that fits into it at most 5 times also fits at least
    # twice, because neighbouring steps differ by a factor of at most 2.5.
    step = next(power * factor for factor in STEPS if power * factor * 5 >= length)
    for k in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield k * step
