"""`limit`: how few measurements any method needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.markup import escape
from rich.table import Table

from surepick.cli.options import Delta, Epsilon, File, Json
from surepick.cli.render import MOST_ROWS, bar, console, load_file, make_table, number, print_json
from surepick.cli.simulate import truth_of
from surepick.core.close_call import call_data
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from surepick.core.oracle_problem import AnyProblem
    from surepick.planning.limit_value import Limit
    from surepick.planning.theory import ProbeTheory, Theory, UnlistedTheory
    from surepick.problems.truth import Truth

    AnyTheory: TypeAlias = Theory | UnlistedTheory | ProbeTheory


def limit(
    file: File,
    delta: Delta = 0.05,
    epsilon: Epsilon = 0.0,
    theory: Annotated[bool, typer.Option("--theory", help="Add the paper's quantities and bounds.")] = False,
    as_json: Json = False,
) -> None:
    """Say how few measurements any method needs, and how to spread them over the arms or probes.

    With --epsilon, where plans are amounts within linear limits, it is a bracket: what a plan within epsilon
    of the best takes, from both sides.

    The file needs a [truth] section. Try: surepick init table, then surepick limit table.toml
    """
    from surepick.planning.limit import limit as find_limit
    from surepick.planning.theory import probe_theory
    from surepick.planning.theory import theory as theory_of

    loaded = load_file(file, as_json)
    means, known = truth_of(loaded).means, loaded.known
    with bar("looking for rivals", quiet=as_json):
        found = find_limit(known, means, delta=delta, epsilon=epsilon)
        extra: AnyTheory | None = None
        if theory and known.is_listed and known.probes is not None:
            extra = probe_theory(known, means, delta)
        elif theory:
            extra = theory_of(known, means, delta)
    _print_limit(loaded, found, extra, as_json)


def _print_limit(loaded: Truth, found: Limit, theory: AnyTheory | None, as_json: bool) -> None:
    """The limit of any method, and the allocation that attains it."""
    problem = loaded.problem
    if as_json:
        data: dict[str, object] = {
            "title": loaded.title,
            "best_plan": problem.name_of(found.best),
            "delta": found.delta,
            "characteristic_time": found.characteristic_time,
            "bracket": [found.lower, found.upper],
            "epsilon": found.epsilon,
            "lower_bound": found.lower_bound,
            "upper_bound": found.upper_bound,
            "closest_call": call_data(found.closest),
            "characteristic_cost": found.characteristic_cost,
            "allocation": dict(zip(problem.counted_names, found.allocation.tolist(), strict=False)),
        }
        if theory is not None:
            data["theory"] = [
                dict(zip(("name", "formula", "value"), row, strict=True)) for row in theory.rows()
            ]
            data["theory_left_out"] = [
                {"name": name, "because": why} for name, why in getattr(theory, "left_out", ())
            ]
        print_json(data)
        return
    best = escape(problem.name_of(found.best) or "")
    console.print(f"[bold]{escape(loaded.title)}[/]: the best plan is [bold]{best}[/].")
    console.print(escape(found.explanation[0].upper() + found.explanation[1:] + "."))
    if found.closest is not None and found.is_finite:
        console.print(escape(f"The closest call: {found.closest.sentence(problem.about.unit)}."))
    if found.is_finite:
        bracket = f"between {found.lower:.7g} and {found.upper:.7g}"
        if found.epsilon:
            console.print(f"T is {bracket}, certified; the shares below attain the upper end.\n")
        else:
            console.print(f"T* = {found.characteristic_time:.7g} ({bracket}, certified).\n")
        console.print(_allocation_table(problem, found))
    if theory is not None:
        console.print(_theory_table(theory))
        for name, why in getattr(theory, "left_out", ()):
            console.print(f"[dim]Left out: {name}, for {why}.[/]")


def _allocation_table(problem: AnyProblem, found: Limit) -> Table:
    with_costs = bool(problem.costs.min() < problem.costs.max())
    cost = ["share when cost counts"] if with_costs else []
    what = "arm" if problem.probes is None else "probe"
    title = "Which plays read each arm" if problem.plays else "How to spread the measurements"
    table = make_table(title, what, "share of plays" if problem.plays else "share", *cost)
    order = (-found.allocation).argsort(kind="stable")
    for s in order[:MOST_ROWS]:
        costs = [f"{found.cost_allocation[s]:.1%}"] if with_costs else []
        table.add_row(escape(problem.counted_names[s]), f"{found.allocation[s]:.1%}", *costs)
    if len(order) > MOST_ROWS:
        rest = float(found.allocation[order[MOST_ROWS:]].sum())
        table.add_row(f"[dim]{how_many(len(order) - MOST_ROWS, f'other {what}')}[/]", f"[dim]{rest:.1%}[/]")
    return table


def _theory_table(theory: AnyTheory) -> Table:
    title = f"The paper's quantities (one noise scale for all arms: the largest, {theory.noise_scale:g})"
    table = make_table(title, "quantity", "formula", "value")
    table.columns[0].no_wrap = table.columns[1].no_wrap = False
    table.columns[1].justify = "left"
    for name, formula, value in theory.rows():
        table.add_row(name, formula, number(value))
    return table
