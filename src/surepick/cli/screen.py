"""A session on the screen, for `status` and `watch`: the answer, how sure, the plan, its rivals, the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surepick.cli.render import make_table
from surepick.core.wording import how_many, in_short, shortened

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from surepick.sessions.session import Session
    from surepick.views import Page, Summary

N_RIVALS, N_ARMS, N_TOKENS = 6, 6, 5
MOST_PIECES = 8  # of the lead, on a screen that is drawn again and again
BAR = 16  # letters
ALL = 10**9  # rivals


def look_at(session: Session, n_rivals: int = N_RIVALS) -> Page:
    """What is recorded of the session, as much as is shown of it."""
    from surepick import views

    return views.page(views.look(session, n_tokens=N_TOKENS), n_rivals=n_rivals or ALL, n_arms=N_ARMS)


def screen(page: Page, *, most_pieces: int | None = MOST_PIECES) -> RenderableType:
    """Everything at a glance: the answer, how sure, the plan, its rivals, the arms, the work."""
    from rich.console import Group
    from rich.panel import Panel

    summary = page.summary
    colour = {"confident": "green", "running": "cyan"}.get(summary.state, "yellow")
    colour = colour if summary.trusted else "yellow"
    state = summary.state if summary.trusted else f"{summary.state}, DOUBTFUL"
    title = _text(f"{summary.title or summary.session}: {state}", 70, style=f"bold {colour}")
    parts: list[RenderableType] = [
        Panel(
            _text(summary.sentence, 800, style="bold"), title=title, title_align="left", border_style=colour
        ),
        *(_text(f"! {warning.text}", 800, style="yellow") for warning in summary.warnings),
        _facts(page),
    ]
    if page.plan is not None:
        parts += _plan(page, most_pieces)
    if page.rivals.rows:
        parts += _rivals(page)
    if page.arms.n_measurements:
        parts += _arms(page)
    if page.work.tokens:
        parts += _work(page)
    return Group(*parts)


def _plan(page: Page, most: int | None) -> list[RenderableType]:
    """The lead, piece by piece: what it takes of each arm, and what one of that is thought to be."""
    plan = page.plan
    assert plan is not None
    unit = f", {plan.unit}" if plan.unit else ""
    table = make_table("", "arm", "amount", f"of one{unit}", "±")
    for piece in plan.pieces[:most]:
        mean = "-" if piece.mean is None else f"{piece.mean:.4g}"
        error = "-" if piece.error is None else f"{piece.error:.2g}"
        table.add_row(_text(piece.name, 60), f"{piece.amount:.4g}", mean, error)
    if most is not None and len(plan.pieces) > most:
        table.add_row(_text(f"and {len(plan.pieces) - most:,} more", 60, style="dim"), "", "", "")
    word = "answer" if page.summary.answer is not None and page.summary.trusted else "leader"
    return [_text(f"The {word}: {plan.name}", 400, style="bold"), table]


def _text(words: object, length: int, style: str = "") -> Text:
    """Text of people: no markup, no control characters."""
    from rich.text import Text

    from surepick.views.text import plain

    return Text(plain(words, length), style=style)


def _bar(share: float | None, colour: str) -> Text:
    from rich.text import Text

    full = round(BAR * min(max(share or 0.0, 0.0), 1.0))
    return Text.assemble(("█" * full, colour), ("░" * (BAR - full), "bright_black"))


def _level(summary: Summary, delta: float) -> str:
    """How confident it is, or why that cannot be said."""
    from surepick.views.text import probability

    if summary.confidence is not None:
        return f"{probability(summary.confidence)}, confident at {1 - delta:.4g}"
    if summary.toward is not None and summary.is_proved and summary.trusted:
        return f"{summary.toward:.0%} of the evidence that is needed; {summary.no_confidence}"
    return summary.no_confidence


def _facts(page: Page) -> Table:
    from rich.table import Table
    from rich.text import Text

    from surepick.core.plan_words import measured
    from surepick.views.text import chance, local

    summary, progress = page.summary, page.progress
    grid = Table.grid(padding=(0, 2))
    sure = summary.state == "confident" and summary.trusted
    toward = summary.toward if summary.trusted else 0.0
    bar = _bar(1.0 if sure else toward, "green" if sure else "cyan")
    grid.add_row("confidence", Text.assemble(bar, "  ", _level(summary, progress.delta)))
    if summary.among is not None:
        grid.add_row("proved" if summary.trusted else "not proved", _text(summary.among, 900))
    if progress.forecast is not None:
        grid.add_row("forecast", _text(progress.forecast.explanation, 200))
    if summary.chance is not None and summary.expected_loss is not None and not sure and summary.trusted:
        loss = f"it loses {summary.expected_loss:.3g} {summary.unit}".rstrip()
        words = f"the leader is best with a chance of {chance(summary.chance)}; {loss} on average"
        grid.add_row("estimated", _text(words, 200))
    if summary.what_if is not None:
        grid.add_row("what if", _text(summary.what_if, 300))
    if summary.value is not None and summary.value_error is not None:
        value = measured((summary.value, summary.value_error), summary.unit)
        grid.add_row("value", _text(f"{value} of the {'answer' if sure else 'leader'}", 100))
    budget = "" if summary.budget is None else f" of at most {summary.budget:,}"
    waiting = f", {summary.n_missing:,} missing in this round" if summary.n_missing else ""
    in_rounds = how_many(summary.n_rounds + bool(summary.n_waiting), "round")
    total = summary.n_measurements + summary.n_waiting
    grid.add_row("measured", f"{total:,}{budget} in {in_rounds}{waiting}")
    if summary.n_unasked:
        unasked = how_many(summary.n_unasked, "measurement")
        grid.add_row("unasked", f"{unasked}, {summary.n_unasked_counted:,} counted")
    if page.arms.by_cost:
        grid.add_row("cost", f"{summary.cost:,.6g} so far")
    grid.add_row("guarantee", _text(summary.promised, 300, style="dim"))
    grid.add_row("session", _text(f"{summary.session}, begun {local(summary.created_at)}", 200, style="dim"))
    return grid


def _rivals(page: Page) -> list[RenderableType]:
    """The other plans: what each is worth, how far behind it is, and whether it is still possible."""
    from rich.text import Text

    from surepick.views.text import times

    rivals, unit = page.rivals, page.summary.unit
    out = rivals.ruled_out_words(unit)
    title = f"The other plans: {in_short(rivals.n_ruled_out)} of {in_short(rivals.n_rivals)} {out}"
    value = f"value, {unit}" if unit else "value"
    table = make_table("", "plan", value, "behind by", "", f"evidence, {times(rivals.needed)} needed")
    for column in table.columns[3:]:
        column.justify = "left"
    for row in rivals.rows:
        bar = Text.assemble(_bar(row.toward, "blue" if row.ruled_out else "yellow"), f" {times(row.times)}")
        table.add_row(
            _text(row.label, 36),
            "-" if row.value is None else f"{row.value:.4g}",
            f"{row.gap:.3g} ± {row.error:.2g}",
            _text(out if row.ruled_out else "open", 40, "dim" if row.ruled_out else "yellow"),
            bar,
        )
    left = rivals.n_rivals - len(rivals.rows)
    if left > 0:
        table.add_row(_text(f"and {in_short(left)} more", 36, style="dim"), "", "", "", "")
    return [_text(title, 200, style="bold"), _text(_who_is_who(page), 400, style="dim"), table]


def _who_is_who(page: Page) -> str:
    from surepick.views.summary import LONGEST_NAME

    summary = page.summary
    errors = "± is one standard error"
    if any(row.value is None for row in page.rivals.rows):
        errors += "; a plan has no value while an arm of it was never measured"
    if summary.rival is None or summary.runner_up is None:
        return f"{errors}."
    rival, runner_up = (shortened(name, LONGEST_NAME) for name in (summary.rival, summary.runner_up))
    if summary.rival == summary.runner_up:
        return f"Closest rival and runner-up: “{rival}”; {errors}."
    return (
        f"Closest rival, the hardest to rule out: “{rival}”; runner-up, the best after the lead by "
        f"the estimates: “{runner_up}”; {errors}."
    )


def _arms(page: Page) -> list[RenderableType]:
    arms = page.arms
    title = f"Arms: {arms.n_matter:,} of {arms.n_arms:,} matter, the most measured first"
    if arms.what != "arm":
        title = f"{arms.what.capitalize()}s: {arms.n_arms:,}, the most measured first"
    unit = f", {page.summary.unit}" if page.summary.unit else ""
    worth = {row.arm: row.worth for row in arms.rows if row.worth is not None}
    shown = bool(worth) and page.summary.state == "running"
    stays = any(row.stays_from is not None or row.stays_to is not None for row in arms.rows)
    columns = [arms.what, "measured", "best", f"estimate{unit}", "±", *(["lead stays best"] if stays else [])]
    table = make_table("", *columns, *(["one more brings"] if shown else []))
    for row in arms.rows:
        more = [_range(row.stays_from, row.stays_to)] if stays else []
        more += [f"{worth.get(row.arm, 0.0):.2g}"] if shown else []
        table.add_row(
            _text(row.name, 36),
            f"{row.count:,}",
            "-" if row.best_count is None else f"{row.best_count:,.0f}",
            "-" if row.mean is None else f"{row.mean:.4g}",
            "-" if row.error is None else f"{row.error:.2g}",
            *more,
        )
    notes = ["lead stays best: while this mean is there, the others as estimated"] if stays else []
    notes += ["one more brings: what a measurement takes off the expected loss"] if shown else []
    under = [_text("; ".join(notes) + ". Estimates, no part of the guarantee.", 300, "dim")] if notes else []
    return [_text(title, 200, style="bold"), table, *under]


def _range(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "always"
    if low is None or high is None:
        return f"below {high:.4g}" if low is None else f"above {low:.4g}"
    return f"{low:.4g} to {high:.4g}"


def _work(page: Page) -> list[RenderableType]:
    from surepick.core.probes import VALUE
    from surepick.views.text import duration

    work = page.work
    title = f"To measure: {work.n_missing:,}, of which {work.n_held:,} in somebody's hands"
    by_arm = page.arms.what == "arm" and all(token.readings in ((VALUE,), ()) for token in work.tokens)
    table = make_table("", "token", "arm" if by_arm else "probe", "worker", "lease")
    for column in table.columns[1:3]:
        column.justify = "left"
    for token in work.tokens:
        lease = (
            ""
            if token.expires_in is None
            else "ended"
            if token.expires_in <= 0
            else duration(token.expires_in)
        )
        who = "free" if token.worker is None else token.worker or "somebody"
        name = token.name if by_arm else f"{token.name} ({', '.join(token.readings)})"
        table.add_row(token.token, _text(name, 36 if by_arm else 60), _text(who, 30), lease)
    return [_text(title, 200, style="bold"), table]
