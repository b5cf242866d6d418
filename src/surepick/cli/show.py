"""What people see in a terminal: progress, answers and tables, or the same as JSON."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape as escape  # for the other modules too
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from surepick.core.oracle_problem import OracleProblem, in_short
from surepick.core.promise import Promise
from surepick.core.wording import how_many

if TYPE_CHECKING:
    from surepick.core.arrays import FloatArray
    from surepick.core.oracle_problem import AnyProblem
    from surepick.core.policy import Answer, Policy
    from surepick.planning.comparison import Comparison
    from surepick.planning.limit import Limit
    from surepick.planning.theory import Theory, UnlistedTheory
    from surepick.problems.files.load import Loaded
    from surepick.simulation.simulate import Outcome
    from surepick.simulation.simulate import Progress as SimulationProgress

console = Console(highlight=False)
SHOWN = 1e-7  # smaller shares are rounding
LONGEST_NAME = 100  # letters of a plan in one line
UNLISTED_TOLERANCE = 0.25  # of the upper end of a limit that is shown by its lower end
MOST_ROWS = 20  # of a plan or an allocation; the rest is summed up in one line


@contextmanager
def bar(what: str, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on standard error, if somebody watches it; None when quiet."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def live(
    problem: AnyProblem, policy: Policy, *, quiet: bool
) -> Iterator[Callable[[SimulationProgress], None] | None]:
    """Lead, rival, gap and radius of a running simulation, on standard error; None when nobody looks."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    with Live(console=console, transient=True, refresh_per_second=8) as screen:
        yield lambda state: screen.update(_standing_table(problem, policy, state))


def _standing_table(problem: AnyProblem, policy: Policy, state: SimulationProgress) -> Table:
    standing = state.standing
    table = Table.grid(padding=(0, 2))
    table.add_row("measurements", f"[bold]{state.n_measurements:,}[/] ({state.seconds:.1f} s, {policy.name})")
    if standing.lead is not None:
        table.add_row("lead", f"[bold]{escape(_short(problem.name_of(standing.lead)))}[/]")
    if standing.rival is not None and standing.rival != standing.lead:
        table.add_row("closest rival", escape(_short(problem.name_of(standing.rival))))
    if standing.gap is not None and standing.radius is not None:
        table.add_row("estimated gap", f"{standing.gap:.4g}, known to within {standing.radius:.4g}")
    if standing.risk is not None:
        table.add_row("risk if declared now", f"at most {standing.risk:.3g}")
    return table


def introduce(loaded: Loaded, policy: Policy, as_json: bool) -> None:
    """Say what is about to be decided."""
    if as_json:
        return
    problem = loaded.problem
    console.print(f"[bold]{escape(loaded.title)}[/]")
    plans = (
        f"{in_short(problem.n_plans)} plans, none of them listed"
        if isinstance(problem, OracleProblem) and problem.n_plans is not None
        else f"{problem.n_plans} candidate plans"
    )
    arms, n_matter = how_many(problem.n_arms, "arm"), int(problem.relevant.sum())
    matter = "" if problem.relevant.all() else f" ({how_many(n_matter, 'matters', 'matter')})"
    promise = Promise.of(policy, problem).text
    console.print(f"{plans}, {arms} to measure{matter}. {policy.name} promises: {promise}.\n")


def outcome(loaded: Loaded, result: Outcome, as_json: bool) -> None:
    """The answer, how sure it is, and what it cost."""
    found = _limit_of(loaded, result)
    if as_json:
        _print_json(_outcome_data(loaded, result, found))
        return
    _print_answer(loaded, result)
    if result.n_pilot and result.noise_scale is not None:
        low, high = float(result.noise_scale.min()), float(result.noise_scale.max())
        bound = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        pilot = how_many(result.n_pilot, "measurement")
        console.print(f"The noise scale was not known: a pilot of {pilot} bounded it by {bound}.")
    console.print(_effort_table(loaded, [result], found))


def demo(loaded: Loaded, result: Outcome, others: Sequence[Outcome], as_json: bool) -> None:
    """The answer of the demo, beside other policies and the limit of any method."""
    found = _limit_of(loaded, result)
    if as_json:
        data = _outcome_data(loaded, result, found)
        for other in others:
            data[other.policy.name] = {"n_measurements": other.n_measurements, "status": str(other.status)}
        _print_json(data)
        return
    _print_answer(loaded, result)
    console.print(_effort_table(loaded, [result, *others], found))
    console.print(
        "\nNext: [bold]surepick simulate examples/routes.toml[/], or "
        "[bold]surepick compare examples/routes.toml[/]"
    )


def _print_answer(loaded: Loaded, result: Outcome) -> None:
    if result.plan is None:
        text = (
            f"[bold yellow]Not sure yet[/]: the budget was spent. {escape(repr(result.lead_name))} leads, "
            "but nothing is promised. Give a larger --budget, or accept near-ties with --epsilon."
        )
        console.print(Panel(text, border_style="yellow"))
    else:
        console.print(_plan_table(loaded, result.plan))
        text = f"[bold green]{escape(result.plan_name or '')}[/] is the answer: {result.guarantee}."
        console.print(Panel(text, title="certificate", border_style="green"))
        truth = _truth_sentence(loaded, result)
        if truth:
            console.print(truth)


def _truth_sentence(loaded: Loaded, result: Outcome) -> str:
    """In a simulation the truth is known: say how the answer compares."""
    from surepick.planning.comparison import loss

    if loaded.means is None or result.plan is None:
        return ""
    lost = loss(loaded.problem, result.plan, loaded.means)
    if lost == 0:
        return "The truth of this simulation agrees: it is the best plan.\n"
    return f"The truth of this simulation: it is {lost:.3g} worse than the best plan.\n"


def _plan_table(loaded: Loaded, plan: Answer) -> Table:
    row = loaded.problem.vector(plan)
    return _items(loaded, row) if loaded.axes is None else _shipments(loaded.axes, row)


def _shipments(axes: tuple[tuple[str, ...], tuple[str, ...]], row: FloatArray) -> Table:
    """A plan as a table of amounts: suppliers down, demanders across where the terminal is wide enough."""
    suppliers, demanders = (tuple(map(escape, names)) for names in axes)
    shares = row.reshape(len(suppliers), len(demanders)) * (100 / row.sum())
    wide = console.width >= 20 + sum(len(name) + 3 for name in demanders)
    table = _table("The plan: shipments in % of all goods", "from", *(demanders if wide else ["to"]))
    if not wide:
        table.columns[1].justify, table.columns[1].no_wrap = "left", False
    for supplier, line in zip(suppliers, shares, strict=True):
        if wide:
            table.add_row(supplier, *(f"{x:.1f}" if x > SHOWN else "[dim]·[/]" for x in line))
        else:
            sent = (f"{name} {x:.1f}" for name, x in zip(demanders, line, strict=True) if x > SHOWN)
            table.add_row(supplier, ", ".join(sent))
    return table


def _items(loaded: Loaded, row: FloatArray) -> Table:
    """A plan as the list of arms it uses."""
    table = _table("The plan", "arm", "amount")
    used = np.flatnonzero(row)
    for s in used[:MOST_ROWS]:
        table.add_row(escape(loaded.problem.arm_names[s]), f"{row[s]:g}")
    if len(used) > MOST_ROWS:
        table.add_row(f"[dim]and {len(used) - MOST_ROWS} more[/]", "")
    return table


def _table(title: str, first: str, *others: str) -> Table:
    """A table whose first column is text and whose other columns are numbers."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _effort_table(loaded: Loaded, results: Sequence[Outcome], found: Limit | None) -> Table:
    table = _table("The effort", "", "measurements", "x the limit", "seconds")
    unit = found.measurements() if found is not None and found.is_finite else math.nan
    for result in results:
        count = f"{result.n_measurements:,}"
        sure = result.plan is not None
        times = result.n_measurements / unit
        table.add_row(
            result.policy.name,
            count if sure else f"> {count}",
            _number(times) if sure or math.isnan(times) else f"> {_number(times)}",
            f"{result.seconds:.2f}",
        )
    if not math.isnan(unit):
        table.add_row("[dim]the limit of any method[/]", f"[dim]{unit:,.0f}[/]", "[dim]1[/]", "")
    return table


def comparison(loaded: Loaded, rows: Sequence[Comparison], delta: float, as_json: bool) -> None:
    """Policies side by side."""
    from surepick.policies import describe

    if as_json:
        policies = [_comparison_data(loaded, row) for row in rows]
        _print_json({"title": loaded.title, "delta": delta, "policies": policies})
        return
    with_costs = bool(np.ptp(loaded.problem.costs) > 0)
    title = f"{escape(loaded.title)}: {how_many(rows[0].runs, 'run')} each, delta = {delta:g}"
    cost = ["cost"] if with_costs else []
    numbers = ("mean ± sd", "median", *cost, "wrong", "95% CI", "cut", "risk")
    table = _table(title, "policy", *numbers)
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


def limit(loaded: Loaded, found: Limit, theory: Theory | UnlistedTheory | None, as_json: bool) -> None:
    """The limit of any method, and the allocation that attains it."""
    problem = loaded.problem
    if as_json:
        data: dict[str, object] = {
            "title": loaded.title,
            "best_plan": problem.name_of(found.best),
            "delta": found.delta,
            "characteristic_time": found.characteristic_time,
            "bracket": [found.lower, found.upper],
            "lower_bound": found.lower_bound,
            "characteristic_cost": found.characteristic_cost,
            "allocation": dict(zip(problem.arm_names, found.allocation.tolist(), strict=False)),
        }
        if theory is not None:
            data["theory"] = [
                dict(zip(("name", "formula", "value"), row, strict=True)) for row in theory.rows()
            ]
            data["theory_left_out"] = [
                {"name": name, "because": why} for name, why in getattr(theory, "left_out", ())
            ]
        _print_json(data)
        return
    best = escape(problem.name_of(found.best) or "")
    console.print(f"[bold]{escape(loaded.title)}[/]: the best plan is [bold]{best}[/].")
    console.print(escape(found.explanation[0].upper() + found.explanation[1:] + "."))
    if found.is_finite:
        bracket = f"between {found.lower:.7g} and {found.upper:.7g}"
        console.print(f"T* = {found.characteristic_time:.7g} ({bracket}, certified).\n")
        console.print(_allocation_table(problem, found))
    if theory is not None:
        console.print(_theory_table(theory))
        for name, why in getattr(theory, "left_out", ()):
            console.print(f"[dim]Not without a list of plans: {name}, for {why}.[/]")


def _allocation_table(problem: AnyProblem, found: Limit) -> Table:
    with_costs = bool(np.ptp(problem.costs) > 0)
    cost = ["share when cost counts"] if with_costs else []
    table = _table("How to spread the measurements", "arm", "share", *cost)
    order = np.argsort(-found.allocation, kind="stable")
    for s in order[:MOST_ROWS]:
        costs = [f"{found.cost_allocation[s]:.1%}"] if with_costs else []
        table.add_row(escape(problem.arm_names[s]), f"{found.allocation[s]:.1%}", *costs)
    if len(order) > MOST_ROWS:
        rest = float(found.allocation[order[MOST_ROWS:]].sum())
        table.add_row(f"[dim]{how_many(len(order) - MOST_ROWS, 'other arm')}[/]", f"[dim]{rest:.1%}[/]")
    return table


def _theory_table(theory: Theory | UnlistedTheory) -> Table:
    title = f"The paper's quantities (one noise scale for all arms: the largest, {theory.noise_scale:g})"
    table = _table(title, "quantity", "formula", "value")
    table.columns[0].no_wrap = table.columns[1].no_wrap = False
    table.columns[1].justify = "left"
    for name, formula, value in theory.rows():
        table.add_row(name, formula, _number(value))
    return table


def exit_code(result: Outcome) -> int:
    """0 when the answer is certain, 1 when the run ended without certainty."""
    return 0 if result.plan is not None else 1


def _limit_of(loaded: Loaded, result: Outcome) -> Limit | None:
    from surepick.planning.limit import limit as find_limit

    if loaded.means is None:
        return None
    tolerance = UNLISTED_TOLERANCE if isinstance(loaded.problem, OracleProblem) else 1e-4
    return find_limit(loaded.known, loaded.means, delta=result.policy.delta, tolerance=tolerance)


def _outcome_data(loaded: Loaded, result: Outcome, found: Limit | None) -> dict[str, Any]:
    measured = found.measurements() if found is not None and found.is_finite else None
    return {
        "title": loaded.title,
        "status": str(result.status),
        "plan": result.plan_name,
        "lead": result.lead_name,
        "guarantee": result.guarantee,
        "policy": result.policy.name,
        "parameters": dataclasses.asdict(result.policy),  # type: ignore[call-overload]
        "n_measurements": result.n_measurements,
        "n_pilot": result.n_pilot,
        "noise_scale": None if result.noise_scale is None else result.noise_scale.tolist(),
        "n_rounds": result.n_rounds,
        "cost": result.cost,
        "risk": result.risk,
        "limit": measured,
        "times_the_limit": result.n_measurements / measured if measured else None,
        "counts": dict(zip(loaded.problem.arm_names, result.counts.tolist(), strict=True)),
        "seed": result.seed,
        "seconds": result.seconds,
    }


def _comparison_data(loaded: Loaded, row: Comparison) -> dict[str, Any]:
    from surepick.policies import describe

    data = dataclasses.asdict(row)
    data["policy"] = describe(row.policy)
    data["guarantee"] = Promise.of(row.policy, loaded.problem).text
    return data


def _short(name: str | None) -> str:
    """A name that fits a line."""
    text = name or ""
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}" if abs(value) < 1e7 else f"{value:.2e}"


def _print_json(data: dict[str, Any]) -> None:
    print(json.dumps(_without_infinities(data), indent=2))


def _without_infinities(value: Any) -> Any:
    """JSON has no infinity: null stands for it."""
    if isinstance(value, dict):
        return {key: _without_infinities(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_infinities(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


print_json, make_table = _print_json, _table  # for the commands of other modules
