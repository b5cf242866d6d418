"""`init` and `check`: problem files, from an example to what was understood."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surepick.cli.decisions import Delta, File, Json, Seed

if TYPE_CHECKING:
    from surepick.forecasts import Forecast
    from surepick.oracle import AnyProblem
    from surepick.problems.candidates import Progress
    from surepick.problems.files import Loaded

MOST_ARMS = 12  # shown with their share of the forecast


def init(
    kind: Annotated[str, typer.Argument(help="The kind of problem: table, paths, trees, knapsack, ...")],
    into: Annotated[Path, typer.Option(help="The folder to write to.")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
) -> None:
    """Write KIND.toml and its attachments: a commented problem that runs, to be changed into yours.

    Try: surepick init paths, then surepick check paths.toml
    """
    from surepick.cli import show
    from surepick.problems.starter_files import write_starter

    written = write_starter(kind, into, force=force)
    for path in written:
        show.console.print(f"wrote {path}", soft_wrap=True)
    first = written[0]
    show.console.print(
        f"Next: [bold]surepick check {first}[/], then [bold]surepick simulate {first}[/]", soft_wrap=True
    )


def check(
    file: File,
    delta: Delta = 0.05,
    worlds: Annotated[int, typer.Option(help="Worlds drawn from the guess for the forecast.")] = 20,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say what a problem file was understood to mean, and forecast how many measurements it will take.

    Try: surepick check examples/routes.toml
    """
    from surepick.cli import show
    from surepick.problems import load

    with show.bar("finding candidate plans", quiet=as_json) as progress:
        loaded = load(file, progress=progress)
    with show.bar("forecasting", quiet=as_json) as progress:
        forecast = _forecast(loaded, delta, worlds, seed, progress)
    if as_json:
        show.print_json(_data(loaded, forecast))
        return
    _print(loaded, forecast)


def _forecast(
    loaded: Loaded, delta: float, worlds: int, seed: int, progress: Progress | None
) -> Forecast | None:
    from surepick.forecasts import forecast

    centre = loaded.means if loaded.guess is None else loaded.guess
    if centre is None or loaded.problem.noise_scale is None:
        return None
    spread = 0.0 if loaded.spread is None else loaded.spread
    return forecast(
        loaded.problem, centre, spread, delta=delta, n_worlds=worlds, seed=seed, progress=progress
    )


def _completeness(loaded: Loaded) -> str:
    from surepick.oracle import in_short
    from surepick.problems.families import FamilyProblem, FoundProblem

    problem = loaded.problem
    if isinstance(problem, FamilyProblem):
        about = "" if problem.family.count_is_exact else "at most "
        return f"{about}{in_short(problem.n_plans or 0)} {problem.family.noun}s, none of them listed"
    if isinstance(problem, FoundProblem):
        return problem.candidates.explanation
    return f"{problem.n_plans} plans, as listed"


def _merged(problem: AnyProblem) -> tuple[tuple[str, str], ...]:
    from surepick.problem import Problem

    return problem.duplicates if isinstance(problem, Problem) else ()


def _noise(loaded: Loaded) -> str:
    noise = loaded.problem.noise_scale
    if noise is None:
        return "unknown: a session will spend some measurements on it first"
    low, high = float(noise.min()), float(noise.max())
    return f"{low:g} for every arm" if low == high else f"from {low:g} to {high:g}, by arm"


def _data(loaded: Loaded, forecast: Forecast | None) -> dict[str, Any]:
    from surepick.problem import Problem

    problem = loaded.problem
    data: dict[str, Any] = {
        "title": loaded.title,
        "kind": loaded.kind,
        "goal": "minimize" if problem.minimize else "maximize",
        "n_plans": problem.n_plans,
        "plans": _completeness(loaded),
        "n_arms": problem.n_arms,
        "arms_that_matter": [a for a, r in zip(problem.arm_names, problem.relevant, strict=True) if r],
        "noise_scale": None if problem.noise_scale is None else problem.noise_scale.tolist(),
        "listed": isinstance(problem, Problem),
        "merged": [list(pair) for pair in _merged(problem)],
        "has_truth": loaded.means is not None,
        "forecast": None,
    }
    if forecast is not None:
        data["forecast"] = {
            "delta": forecast.delta,
            "from": "truth" if loaded.guess is None else "guess",
            "worlds": len(forecast.measurements),
            "low": forecast.quantile(0.1),
            "median": forecast.quantile(0.5),
            "high": forecast.quantile(0.9),
        }
    return data


def _print(loaded: Loaded, forecast: Forecast | None) -> None:
    from surepick.cli import show

    problem, say = loaded.problem, show.console.print
    goal = "smallest" if problem.minimize else "largest"
    say(f"[bold]{loaded.title}[/] ({loaded.kind}; the {goal} is best)")
    say(f"plans: {_completeness(loaded)}.")
    idle = [a for a, r in zip(problem.arm_names, problem.relevant, strict=True) if not r]
    matter = f"{problem.n_arms - len(idle)} of {problem.n_arms} matter"
    same = f"; all plans agree on {', '.join(idle[:5])}{' and more' if len(idle) > 5 else ''}" if idle else ""
    say(f"arms: {matter}{same}.")
    say(f"noise: {_noise(loaded)}.")
    if merged := _merged(problem):
        gone, kept = merged[0]
        say(f"merged: {len(merged)} plans equal to others, such as {gone!r} with {kept!r}.")
    _print_forecast(loaded, forecast)
    if loaded.means is None:
        say("no \\[truth]: to rehearse with simulate, add the means to draw from.")


def _print_forecast(loaded: Loaded, forecast: Forecast | None) -> None:
    from surepick.cli import show

    say = show.console.print
    if forecast is None:
        say("forecast: none; it needs a noise scale and a guess of the means.")
        return
    if loaded.guess is None:
        say("forecast, from \\[truth] since there is no guess:")
    else:
        say("forecast:")
    say(forecast.explanation + ".")
    if not any(x < float("inf") for x in forecast.measurements):
        return
    order = sorted(range(loaded.problem.n_arms), key=lambda s: -forecast.arm_shares[s])[:MOST_ARMS]
    table = show.make_table("Where the measurements go", "arm", "share")
    for s in order:
        table.add_row(loaded.problem.arm_names[s], f"{forecast.arm_shares[s]:.1%}")
    say(table)
