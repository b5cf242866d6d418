"""`check`: how a file was read, how many measurements to expect, and what would save some."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli import output
from surepick.cli.simulate import limit_of
from surepick.core.wording import first_of, how_many, plural
from surepick.errors import ParameterError
from surepick.views.numbers import count

if TYPE_CHECKING:
    from surepick.report.check import Check

BUSIEST = 3  # arms named in the forecast


def check(
    file: output.File,
    delta: output.Delta = None,
    epsilon: output.Epsilon = None,
    budget: output.Budget = None,
    low: output.Low = None,
    high: output.High = None,
    rehearsals: Annotated[int, typer.Option(min=1, help="Simulated runs for the forecast.")] = 20,
    limit: Annotated[
        bool, typer.Option("--limit", help="Also the fewest any method needs (needs truth).")
    ] = False,
) -> None:
    """Show how a file was read and forecast the measurements.

    Example: surepick check routes.csv --epsilon 1
    """
    from surepick.policies import policy_for
    from surepick.report.check import ASK_LIMITS, USUAL, asks_limits, with_limits
    from surepick.report.check import check as rehearsed

    loaded = with_limits(output.load_file(file), low, high)
    problem = loaded.problem
    if limit and loaded.means is None:
        raise ParameterError("--limit needs the true means: add a row truth", field="limit")
    given = {"delta": delta, "epsilon": epsilon, "budget": budget}
    with output.Progress() as progress:
        found = rehearsed(loaded, given, rehearsals=rehearsals, progress=progress.count("rehearsal"))
    asked = found.asked
    lines = [*described(found), *_forecast_lines(found), *_choice_lines(found)]
    data = {**found.to_json(), "limit": None}
    if limit:
        data["limit"] = limit_of(loaded, policy_for(None, delta=asked["delta"], epsilon=asked["epsilon"]))
    if data["limit"] is not None:
        lines.append(f"Limit     {count(data['limit'])} for any method, on average")
    output.answer(data, lines)
    missing = None if problem.about.listing is None else problem.about.listing.warning(asked["delta"])
    if missing is not None:
        output.note(missing)
    if asks_limits(problem):
        output.note(ASK_LIMITS)
    options = {**{name: asked[name] for name in USUAL}, "low": low, "high": high}
    changed = [f" --{name} {now:g}" for name, now in options.items() if now != USUAL.get(name)]
    output.hint(f"surepick new {shlex.quote(str(file))}{''.join(changed)}")


def described(found: Check) -> Iterator[str]:
    """Yield how the file was read, in a few lines."""
    loaded, problem, roles = found.loaded, found.loaded.problem, found.arms_by_role
    goal = "smallest" if problem.sign < 0 else "largest"
    unit = f"; {problem.about.unit}" if problem.about.unit else ""
    yield output.wrapped(
        f"{loaded.title}: {found.all_plans} over {problem.n_arms} arms; the {goal} total is best{unit}"
    )
    if problem.is_listed:
        yield output.wrapped(
            first_of(output.unbroken(problem.plan_names[:6]), n=problem.n_plans), "Plans     "
        )
    words = f"{len(roles['measured'])} to measure."
    for role in ("same in all plans", "in no plan"):
        if arms := roles[role]:
            what = role.replace("same", "the same")
            words += f" {first_of(arms, 3)} {plural(len(arms), 'is', 'are')} {what}: not measured."
    if roles["known"]:
        words += f" Known: {first_of(roles['known'], 3)}."
    yield output.wrapped(words, "Arms      ")
    if problem.probes is not None:
        yield output.wrapped(f"{problem.probes.summary}.", "Probes    ")
    yield output.wrapped(found.noise_text, "Limits    " if problem.bounds is not None else "Noise     ")
    if problem.is_listed and problem.duplicates:
        gone, kept = problem.duplicates[0]
        alike = how_many(len(problem.duplicates), "plan")
        yield output.wrapped(f"{alike} like others, as {gone!r} and {kept!r}.", "Merged    ")


def _forecast_lines(checked: Check) -> Iterator[str]:
    found, budget = checked.forecast, checked.asked["budget"]
    if found is None:
        yield output.wrapped(f"none: it needs {checked.missing}.", "Forecast  ")
        return
    if budget is not None:
        rest = "" if found.confident == 1 else "; else a few plans remain"
        text = f"{count(budget)} end confident in {found.confident:.0%} of rehearsals{rest}."
    elif not math.isfinite(found.median):
        text = "no end in sight: the best plans are close to a tie"
    else:
        high = "no end" if not math.isfinite(found.high) else count(found.high, about=True)
        text = f"about {count(found.median, about=True)} measurements; "
        text += f"{count(found.low, about=True)} to {high} in 8 of 10 rehearsals"
    yield output.wrapped(text, "Forecast  ")
    busy = sorted(found.shares.items(), key=lambda pair: -pair[1])
    named = [f"{name} {share:.0%}" for name, share in busy[:BUSIEST] if share > 0]
    others = [share for _, share in busy[BUSIEST:] if share > 0]
    rest = f", {how_many(len(others), 'other')} {sum(others):.0%}" if others else ""
    yield output.wrapped(f"{', '.join(named)}{rest}", " " * 10)


def _choice_lines(checked: Check) -> Iterator[str]:
    """Yield what another epsilon, limits, a stated noise or the guess would take."""
    budget = checked.asked["budget"]
    unknown = "no end in sight" if budget is None else f"more than {count(budget)}"
    words = [checked.choice_words(one) for one in checked.choices]
    first, second = (max((len(pair[k]) for pair in words), default=0) for k in (0, 1))
    for k, (one, (what, how)) in enumerate(zip(checked.choices, words, strict=True)):
        label = "Choices   " if k == 0 else " " * 10
        about = unknown if not math.isfinite(one.median) else f"about {count(one.median, about=True)}"
        yield f"{label}{what:<{first}}  {how:<{second}}  {about}"
