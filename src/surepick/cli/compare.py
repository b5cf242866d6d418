"""`compare`: policies side by side on the same problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from surepick.cli.options import Budget, Delta, Epsilon, File, Json, Seed
from surepick.cli.render import bar, console, load_file, make_table, print_json
from surepick.cli.simulate import truth_of
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from surepick.problems.truth import Truth
    from surepick.simulation.comparison import Comparison

COMPARED = "BetGapE,CombGapE,CombGapE:radius=published,Uniform"
COMPARED_UNLISTED = "BetGapE"  # the other policies that need no list take minutes a run


def compare(
    file: File,
    policies: Annotated[
        str | None,
        typer.Option(
            help="Policies with commas between them.",
            show_default=f"{COMPARED}; {COMPARED_UNLISTED} where plans are not listed",
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs of each policy.")] = 20,
    seed: Seed = 0,
    delta: Delta = 0.05,
    epsilon: Epsilon = 0.0,
    budget: Budget = 10**6,
    as_json: Json = False,
) -> None:
    """Compare policies on the same problem: measurements, spread, errors with their exact interval.

    The file needs a [truth] section.

    Try: surepick init table, then surepick compare table.toml --runs 50
    """
    from surepick.policies import describe, parse_policy
    from surepick.simulation.comparison import compare as run_comparison
    from surepick.simulation.comparison import takers

    loaded = load_file(file, as_json)
    usual = COMPARED if loaded.problem.is_listed else COMPARED_UNLISTED
    chosen = [parse_policy(text, delta=delta, epsilon=epsilon) for text in (policies or usual).split(",")]
    truth = truth_of(loaded)
    able = takers(loaded.problem, chosen)
    if not as_json:
        for policy, why in able.left_out:
            console.print(f"{escape(describe(policy))} is left out: {escape(why)}", style="dim")
    with bar("comparing", quiet=as_json) as progress:
        rows = run_comparison(
            loaded.problem,
            able.policies,
            truth,
            runs=runs,
            seed=seed,
            budget=budget,
            progress=progress,
        )
    _print_comparison(loaded, rows, delta, as_json)


def _print_comparison(loaded: Truth, rows: Sequence[Comparison], delta: float, as_json: bool) -> None:
    """Policies side by side."""
    from surepick.core.guarantee import Promise
    from surepick.policies import describe

    if as_json:
        policies = [_comparison_data(loaded, row) for row in rows]
        print_json({"title": loaded.title, "delta": delta, "policies": policies})
        return
    with_costs = bool(loaded.problem.costs.min() < loaded.problem.costs.max())
    title = f"{escape(loaded.title)}: {how_many(rows[0].runs, 'run')} each, delta = {delta:g}"
    cost = ["cost"] if with_costs else []
    numbers = ("mean ± sd", "median", *cost, "wrong", "95% CI", "cut", "risk")
    table = make_table(title, "policy", *numbers)
    for row in rows:
        low, high = row.error_interval
        table.add_row(
            describe(row.policy).replace(":", "\n  "),
            ("> " if row.cut_off else "") + f"{row.mean:,.0f} ± {row.deviation:,.0f}",
            f"{row.median:,.0f}",
            *([f"{row.mean_cost:,.0f}"] if with_costs else []),
            str(row.errors),
            f"{low:.2f}-{high:.2f}",
            str(row.cut_off),
            "-" if row.risk is None else f"{row.risk:.2g}",
        )
    console.print(table)
    for row in rows:
        if not (promise := Promise.of(row.policy, loaded.problem)).proved:
            console.print(f"[yellow]{describe(row.policy)} promises nothing[/]: {promise.reason}.")


def _comparison_data(loaded: Truth, row: Comparison) -> dict[str, Any]:
    from surepick.core.guarantee import Promise
    from surepick.policies import describe

    data = dataclasses.asdict(row)
    data["policy"] = describe(row.policy)
    data["guarantee"] = Promise.of(row.policy, loaded.problem).text
    return data
