"""`limit`: how few measurements any method needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from surepick.cli.options import Delta, Epsilon, File, Json
from surepick.cli.render import MOST_ROWS, bar, console, load_file, make_table, print_json
from surepick.cli.simulate import truth_of
from surepick.core.sensitivity import call_data
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from surepick.core.oracle_problem import AnyProblem
    from surepick.limits.value import Limit
    from surepick.problems.truth import Truth


def limit(
    file: File,
    delta: Delta = 0.05,
    epsilon: Epsilon = 0.0,
    as_json: Json = False,
) -> None:
    """Say how few measurements any method needs, and how to spread them over the arms or probes.

    With --epsilon, where plans are amounts within linear limits, it is a bracket: what a plan within epsilon
    of the best takes, from both sides.

    The file needs a [truth] section. Try: surepick init table, then surepick limit table.toml
    """
    from surepick.limits.limit import limit as find_limit

    loaded = load_file(file, as_json)
    means, known = truth_of(loaded).means, loaded.known
    with bar("looking for rivals", quiet=as_json):
        found = find_limit(known, means, delta=delta, epsilon=epsilon)
    _print_limit(loaded, found, as_json)


def _print_limit(loaded: Truth, found: Limit, as_json: bool) -> None:
    """The limit of any method, and the allocation that attains it."""
    problem = loaded.problem
    if as_json:
        data: dict[str, object] = {
            "title": loaded.title,
            "best_plan": problem.name_of(found.best),
            "delta": found.delta,
            "characteristic_time": found.time.value,
            "bracket": [found.time.lower, found.time.upper],
            "epsilon": found.epsilon,
            "lower_bound": found.measurements,
            "upper_bound": found.upper_bound,
            "closest_call": call_data(found.closest),
            "characteristic_cost": found.cost.value,
            "allocation": dict(zip(problem.counted_names, found.shares.tolist(), strict=False)),
        }
        print_json(data)
        return
    best = escape(problem.name_of(found.best) or "")
    console.print(f"[bold]{escape(loaded.title)}[/]: the best plan is [bold]{best}[/].")
    console.print(escape(found.explanation[0].upper() + found.explanation[1:] + "."))
    if found.closest is not None and found.is_finite:
        console.print(escape(f"The closest call: {found.closest.sentence(problem.about.unit)}."))
    if found.is_finite:
        bracket = f"between {found.time.lower:.7g} and {found.time.upper:.7g}"
        if found.epsilon:
            console.print(f"T is {bracket}, certified; the shares below attain the upper end.\n")
        else:
            console.print(f"T* = {found.time.value:.7g} ({bracket}, certified).\n")
        console.print(_allocation_table(problem, found))


def _allocation_table(problem: AnyProblem, found: Limit) -> Table:
    with_costs = bool(problem.costs.min() < problem.costs.max())
    cost = ["share when cost counts"] if with_costs else []
    what = "arm" if problem.probes is None else "probe"
    title = "Which plays read each arm" if problem.plays else "How to spread the measurements"
    table = make_table(title, what, "share of plays" if problem.plays else "share", *cost)
    order = (-found.shares).argsort(kind="stable")
    for s in order[:MOST_ROWS]:
        costs = [f"{found.cost.shares[s]:.1%}"] if with_costs else []
        table.add_row(escape(problem.counted_names[s]), f"{found.shares[s]:.1%}", *costs)
    if len(order) > MOST_ROWS:
        rest = float(found.shares[order[MOST_ROWS:]].sum())
        table.add_row(f"[dim]{how_many(len(order) - MOST_ROWS, f'other {what}')}[/]", f"[dim]{rest:.1%}[/]")
    return table
