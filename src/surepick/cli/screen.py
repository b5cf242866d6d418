"""A View as text for the terminal: answer, Proved, Our bet, runner-up; at most a screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from surepick.cli.output import LONGEST_NAME, WIDTH, unbroken, wrapped
from surepick.core.wording import first_of, how_many, shortened
from surepick.views.numbers import count, value
from surepick.views.view import LEADER, PlanRow, View, lower

RIVALS = 2  # plans shown behind the leader, unless all are asked for
MOST_AMOUNTS = 12  # arms of a plan that are listed
ARROW = " -> "


def answer_lines(view: View, *, everything: bool = False) -> Iterator[str]:
    """Yield the answer of a session and what it rests on."""
    if view.state == "running":
        more = ""
        if view.forecast is not None:
            middle = view.forecast.median
            more = ", no end in sight" if middle is None else f", about {count(middle, about=True)} more"
        yield f"{view.session}: running, {count(view.n_measured)} measured{more}"
    yield from _headline(view)
    yield from plan_lines(view.amounts, view.leader)
    yield from claims(view)
    if view.state == "running" or everything:
        yield from _plan_rows(view, everything)
        yield from _open(view)
    elif view.second is not None and not view.proved.is_tie:
        yield wrapped(
            f"{shortened(view.second.name, LONGEST_NAME)}; {_behind(view, view.second)}", "Runner-up: "
        )


def _headline(view: View) -> Iterator[str]:
    """Yield the first line: what to take, or what leads, with its total."""
    total = "" if view.best is None or view.best.value is None else _total(view, view.best)
    amounts, leader = view.amounts, view.leader or ""
    # the name of a transport only repeats its amounts, which are shown as a table below it
    is_in_table = ARROW in leader and len(amounts) > 3 and any(n != 1 for n in amounts.values())
    is_one_plan = not view.proved.is_tie and view.proved.claim != "no_plan"
    if is_one_plan and view.trusted and view.state == "confident":
        verb, name = view.headline.split(" ", 1)  # as in: Take "Tunnel + station"
        shown = f"{verb} {'this plan' if is_in_table else name}"
        yield wrapped(f"{shown}: {total}" if total else shown, indent=2)
    elif is_one_plan and view.trusted and view.state == "running" and leader and view.n_measured:
        shown = "this plan" if is_in_table else shortened(leader, LONGEST_NAME)
        yield wrapped(f"{shown}, {total}" if total else shown, "Leader: ")
    else:
        yield wrapped(f"{view.headline}.", indent=2)


def _total(view: View, row: PlanRow) -> str:
    """Return the total of a plan; arms that were not measured are named with their guess."""
    total = value(row.value, view.unit, row.se)
    if not row.uses_guess:
        return total
    arms = [arm.name for arm in view.arms if arm.mean is None and arm.name in view.amounts]
    return f"{total} ({', '.join(arms[:3])} by {'its' if len(arms) == 1 else 'their'} guess)"


def claims(view: View) -> Iterator[str]:
    """Yield what is proved and what is our bet: two sentences that are never mixed."""
    for label, text in view.claims:
        if text == view.proved.text and view.proved.assumes and "Wrong at most" in text:
            text = f"{text.rstrip('.')}, assuming {view.proved.assumes}."
        yield wrapped(lower(text), f"{label}: ") if label else wrapped(text, indent=2)


def _plan_rows(view: View, everything: bool) -> Iterator[str]:
    rows = [row for row in view.plans if row.status != LEADER and row.behind is not None]
    shown = rows if everything else rows[:RIVALS]
    wide = max((len(shortened(row.name, 36)) for row in shown), default=0)
    cells = [(shortened(row.name, 36), _behind(view, row), row.status) for row in shown]
    middle = max((len(cell[1]) for cell in cells), default=0)
    for k, (name, behind, status) in enumerate(cells):
        more = len(rows) - len(shown)
        last = f"   ({more:,} more: --all)" if more and k == len(cells) - 1 else ""
        yield f"  {name:<{wide}}  {behind:<{middle}}  {status}{last}"


def _behind(view: View, row: PlanRow) -> str:
    """Return how far a plan is behind the leader; a negative estimate is ahead of it."""
    behind = row.behind or 0.0
    side = "behind" if behind >= 0 else "ahead"
    return f"{value(abs(behind), view.unit, row.behind_se)} {side}"


def _open(view: View) -> Iterator[str]:
    if not view.open:
        return
    names = unbroken(one.arm if one.n == 1 else f"{one.arm} ({one.n}x)" for one in view.open)
    workers = sorted({one.worker for item in view.open for one in item.assigned})
    yield wrapped(f"{first_of(names)}; assigned: {first_of(workers, 4) or 'none'}", "Open: ")


def plan_lines(amounts: Mapping[str, float], name: str | None) -> Iterator[str]:
    """Yield the amount of each arm in a plan, shipments as a table; nothing where the name says it."""
    is_numbered = bool(name) and str(name).split()[-1].isdigit()
    if not amounts or (all(amount == 1 for amount in amounts.values()) and not is_numbered):
        return
    if all(arm.count(ARROW) == 1 for arm in amounts):
        table = list(_shipments(amounts))
        if max(map(len, table)) <= WIDTH:
            yield from table
            return
    yield wrapped(first_of(unbroken(f"{arm} {value(n)}" for arm, n in amounts.items()), MOST_AMOUNTS), "  ")


def _shipments(amounts: Mapping[str, float]) -> Iterator[str]:
    """Yield amounts by place: from each row to each column."""
    pairs = {tuple(arm.split(ARROW)): amount for arm, amount in amounts.items()}
    rows = list(dict.fromkeys(row for row, _ in pairs))
    columns = sorted({column for _, column in pairs})
    wide = max(len("from"), *map(len, rows))
    cells = {pair: value(amount) for pair, amount in pairs.items()}
    widths = {c: max(len(c), *(len(cells.get((r, c), ".")) for r in rows)) for c in columns}
    yield f"  {'from':<{wide}}  " + "  ".join(f"{c:>{widths[c]}}" for c in columns)
    for row in rows:
        line = "  ".join(f"{cells.get((row, c), '.'):>{widths[c]}}" for c in columns)
        yield f"  {row:<{wide}}  {line}"


def kept_line(view: View, place: str) -> str:
    """Return how many measurements there are, and where."""
    return f"{how_many(view.n_measured, 'measurement')}, kept in {place} as {view.session!r}"
