"""`check`: what a problem file was understood to mean, and what to expect."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from surepick.cli.against_truth import listing_warning
from surepick.cli.options import Delta, Epsilon, File, Json, Seed
from surepick.cli.render import bar, console, make_table, print_json
from surepick.core.wording import how_many, plural, shortened

if TYPE_CHECKING:
    from pathlib import Path

    from surepick.limits.value import Limit
    from surepick.problems.candidates import Progress
    from surepick.problems.truth import Truth
    from surepick.simulation.forecast import Forecast

MOST_ARMS = 12  # shown with their share of the forecast
ROUGH = 0.1  # tolerance of a limit of which only the closest call is shown


def check(
    file: File,
    delta: Delta = 0.05,
    worlds: Annotated[int, typer.Option(help="Worlds drawn from the guess for the forecast.")] = 20,
    seed: Seed = 0,
    noise: Annotated[
        float | None, typer.Option(help="A rough noise scale for the forecast, where the file has none.")
    ] = None,
    epsilon: Epsilon = 0.0,
    budget: Annotated[int | None, typer.Option(help="The most measurements of a rehearsal.")] = None,
    as_json: Json = False,
) -> None:
    """Say what a problem file was understood to mean, and forecast how many measurements it will take.

    Where the noise scale is unknown, it says what learning it costs.

    Try: surepick init table, then surepick check table.toml
    """
    from surepick.inputs.load import read_problem

    with bar("finding candidate plans", quiet=as_json) as progress:
        loaded = read_problem(file, progress=progress)
    with bar("forecasting", quiet=as_json) as progress:
        found = _forecast(loaded, (delta, epsilon), worlds, seed, noise, progress, budget)
        call = _closest(loaded, delta, noise) if found is not None and not epsilon else None
    if as_json:
        print_json({**_data(loaded, found), "closest_call": _call_data(call)})
        return
    _print(loaded, found, delta)
    _print_closest(loaded, call)
    _print_more(file, loaded)


def describe_file(file: Path, delta: float) -> dict[str, Any]:
    """What the file was understood to mean, with a forecast where it has a guess, as JSON values."""
    from surepick.inputs.load import read_problem

    loaded = read_problem(file)
    return _data(loaded, _forecast(loaded, (delta, 0.0), 20, 0, None, None))


def _forecast(
    loaded: Truth,
    asked: tuple[float, float],  # delta and epsilon
    worlds: int,
    seed: int,
    noise: float | None,
    progress: Progress | None,
    budget: int | None = None,
) -> Forecast | None:
    from surepick.simulation.forecast import forecast

    centre = loaded.means if loaded.guess is None else loaded.guess
    rough = loaded.noise_scale if noise is None else noise
    if centre is None or (loaded.problem.noise_scale is None and rough is None):
        return None
    return forecast(
        loaded.problem,
        centre,
        0.0 if loaded.spread is None else loaded.spread,
        delta=asked[0],
        rehearsals=worlds,
        budget=budget,
        seed=seed,
        noise=rough,
        progress=progress,
        epsilon=asked[1],
    )


def _closest(loaded: Truth, delta: float, noise: float | None) -> tuple[Limit, Limit | None] | None:
    """The limit by the guess, which has the closest call, and that within the epsilon that would end it.

    Of a polytope only.
    """
    import numpy as np

    from surepick.core.polytope import Polytope
    from surepick.limits.limit import limit

    centre = loaded.means if loaded.guess is None else loaded.guess
    problem = loaded.known
    if noise is not None:
        problem = problem.with_noise(np.full(problem.n_arms, noise))
    if centre is None or problem.noise_scale is None or not isinstance(problem, Polytope):
        return None
    exact = limit(problem, centre, delta=delta, tolerance=ROUGH)
    if exact.closest is None or exact.closest.epsilon is None:
        return exact, None
    return exact, limit(problem, centre, delta=delta, tolerance=ROUGH, epsilon=exact.closest.epsilon)


def _call_data(found: tuple[Limit, Limit | None] | None) -> dict[str, Any] | None:
    from surepick.core.sensitivity import call_data

    return None if found is None else call_data(found[0].closest)


def _print_closest(loaded: Truth, found: tuple[Limit, Limit | None] | None) -> None:
    if found is None or found[0].closest is None:
        return
    exact, near = found
    where, call = "truth" if loaded.guess is None else "guess", found[0].closest
    words = f"closest call, by the {where}: {call.sentence(loaded.problem.about.unit)}."
    if near is not None:
        least = f"takes at least {exact.measurements:,.0f}" if exact.is_finite else "does not end"
        ends = f"between {near.measurements:,.0f} and {near.upper_bound:,.0f} measurements"
        words += f" The exact question {least}; within {near.epsilon:,g} the limit is {ends}."
    console.print(escape(words))


def _noise(loaded: Truth) -> str:
    noise = loaded.problem.noise_scale
    if noise is None or not loaded.problem.knows_noise:
        missing = loaded.problem.unstated_noise
        which = f"not stated for {_some(missing)}" if missing else "unknown; the stated scales are guesses"
        return (
            f"{which}, so it is learned. Every batch is made of replicates, which takes about 1.2 to 1.4 "
            "times the measurements of a known scale"
        )
    low, high = float(noise.min()), float(noise.max())
    what = "arm" if loaded.problem.arms_alone else "reading"
    scale = f"{low:g} for every {what}" if low == high else f"from {low:g} to {high:g}, by {what}"
    if loaded.problem.is_listed and loaded.problem.bounds is not None:
        return f"learned: every {what} lies between stated bounds, and the guarantee needs no more"
    source = "stated" if loaded.problem.bounds is None else "half the width of the stated bounds"
    return f"{scale} ({source})"


def _some(names: Sequence[str]) -> str:
    """Return the first five names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _data(loaded: Truth, forecast: Forecast | None) -> dict[str, Any]:
    problem, scale = loaded.problem, loaded.problem.noise_scale
    data: dict[str, Any] = {
        "title": loaded.title,
        "kind": loaded.kind,
        "goal": problem.goal,
        "n_plans": problem.n_plans,
        "plans": loaded.problem.completeness,
        "first_plans": [list(pair) for pair in problem.first_plans()] if problem.is_listed else [],
        "n_arms": problem.n_arms,
        "arms_that_matter": [a for a, r in zip(problem.arm_names, problem.relevant, strict=True) if r],
        "n_probes": None if problem.plays else problem.n_probes,  # plays are in no list
        **({"plays": True} if problem.plays else {}),
        "noise_scale": None if scale is None or not problem.knows_noise else scale.tolist(),
        "noise_stated": problem.knows_noise,
        "noise_not_stated": list(problem.unstated_noise),
        "bounds": None if problem.bounds is None else problem.bounds.tolist(),
        "listed": problem.is_listed,
        "merged": [list(pair) for pair in problem.duplicates],
        "has_truth": loaded.means is not None,
        "forecast": None,
    }
    if forecast is not None:
        data["forecast"] = {
            "from": "truth" if loaded.guess is None else "guess",
            "worlds": len(forecast.measurements),
            "low": forecast.low,
            "median": forecast.median,
            "high": forecast.high,
            "confident": forecast.confident,
        }
    return data


def _print(loaded: Truth, forecast: Forecast | None, delta: float) -> None:
    problem, say = loaded.problem, console.print
    goal = "smallest" if problem.minimize else "largest"
    say(f"[bold]{escape(loaded.title)}[/] ({loaded.kind}; the {goal} is best)")
    say(f"plans: {loaded.problem.completeness}.")
    shown = problem.first_plans() if problem.is_listed else []
    for name, uses in shown:
        say(escape(f"  {shortened(name, 60)}: {shortened(uses, 120)}"), soft_wrap=True)
    more = (problem.n_plans or 0) - len(shown)
    if shown and more > 0:
        say(f"  and {more:,} more")
    if warning := listing_warning(loaded, delta):
        say(f"[yellow]![/] {escape(warning)}")
    idle = [a for a, r in zip(problem.arm_names, problem.relevant, strict=True) if not r]
    n_matter = problem.n_arms - len(idle)
    matter = f"{n_matter} of {problem.n_arms} {plural(n_matter, 'matters', 'matter')}"
    same = f"; all plans agree on {_some(idle)}" if idle else ""
    say(escape(f"arms: {matter}{same}."))
    if problem.is_listed and problem.probes is not None:
        n_plans = how_many(problem.n_plans, "plan")
        say(f"probes: {problem.probes.summary}; all {n_plans} can be told apart.")
    if problem.plays:
        say("probes: plays of whole plans, found as they are needed; each reads every arm of its plan.")
    say(escape(f"noise: {_noise(loaded)}."))
    if problem.setup_cost:
        say(f"set-up: starting a batch costs {problem.setup_cost:g}, so BetGapE asks for fewer, larger ones.")
    if merged := problem.duplicates:
        gone, kept = merged[0]
        count = how_many(len(merged), "plan")
        say(escape(f"merged: {count} equal to others, such as {gone!r} with {kept!r}."))
    _print_forecast(loaded, forecast)


def _print_more(file: Path, loaded: Truth) -> None:
    """What the file might say besides, of a spreadsheet the rows that it does not have; and what is next."""
    from surepick.core.tables import named_rows
    from surepick.inputs.sheet import ROWS, SUFFIXES

    if file.suffix.lower() not in SUFFIXES:
        if loaded.means is None:
            console.print("no \\[truth]: to rehearse with simulate, add the means to draw from.")
        return
    there = {row[0].strip().lower() for _, row in named_rows(file, short=ROWS)[1]}
    missing = [f"{row} ({says})" for row, (_, says) in ROWS.items() if row not in there]
    if missing:
        console.print(f"rows that you may add to the sheet: {', '.join(missing)}.")
    console.print(f"next: surepick new {shlex.quote(str(file))}", soft_wrap=True)


def _print_forecast(loaded: Truth, forecast: Forecast | None) -> None:
    say = console.print
    if forecast is None:
        wants = []
        if loaded.known.noise_scale is None:
            wants.append("a noise scale (a rough one will do: --noise)")
        if loaded.guess is None and loaded.means is None:
            wants.append("a guess of the means")
        say(f"forecast: none; it needs {' and '.join(wants)}.")
        return
    if loaded.guess is None:
        say("forecast, from \\[truth] since there is no guess:")
    else:
        say("forecast:")
    n = f"{forecast.low:,.0f} to {forecast.high:,.0f}"
    say(f"about {forecast.median:,.0f} measurements; {n} in 8 of 10 rehearsals.")
    if not any(x < float("inf") for x in forecast.measurements):
        return
    names, what = loaded.problem.counted_names, "arm" if loaded.problem.probes is None else "probe"
    title = "Which arms the plays read" if loaded.problem.plays else "Where the measurements go"
    say(title, style="bold")  # wider than the table, in which it would wrap
    table = make_table("", what, "share")
    for name in sorted(names, key=lambda name: -forecast.shares[name])[:MOST_ARMS]:
        table.add_row(escape(name), f"{forecast.shares[name]:.1%}")
    say(table)
