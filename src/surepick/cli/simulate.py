"""`simulate`: rehearse a decision with simulated measurements."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

from surepick.cli.against_truth import listing_warning, truth_data, truth_sentence
from surepick.cli.options import (
    Budget,
    Delta,
    Epsilon,
    File,
    Json,
    PolicyText,
    Seed,
    UseGuess,
)
from surepick.cli.render import (
    console,
    exit_code,
    load_file,
    make_table,
    number,
    print_json,
    short,
)
from surepick.core.plan_words import among

if TYPE_CHECKING:
    from surepick.core.arrays import FloatArray
    from surepick.core.oracle_problem import AnyProblem
    from surepick.core.past import Past
    from surepick.core.policy import Policy
    from surepick.core.run import Answer
    from surepick.limits.value import Limit
    from surepick.problems.truth import Truth
    from surepick.simulation.environments import Gaussian, UniformNoise
    from surepick.simulation.outcome import Outcome
    from surepick.simulation.outcome import Progress as SimulationProgress

RANGED = 5  # arms shown with how far their means may move
SHOWN = 1e-7  # smaller shares are rounding
UNLISTED_TOLERANCE = 0.25  # of the upper end of a limit that is shown by its lower end


def simulate(
    file: File,
    seed: Seed = 0,
    delta: Delta = 0.05,
    epsilon: Epsilon = 0.0,
    policy: PolicyText = None,
    budget: Budget = 10**7,
    last_call: Annotated[
        float | None, typer.Option(help="Share of the budget for a last block, settled as a test.")
    ] = None,
    gaussian: Annotated[bool, typer.Option("--gaussian", help="Let that test use Gaussian noise.")] = False,
    guess: UseGuess = True,
    as_json: Json = False,
) -> None:
    """Rehearse a decision: measurements are drawn around the file's true means, with its noise scale.

    The file needs a [truth] section. A policy that cannot learn unknown noise gets that of the truth. A guess
    with a spread is what the policy begins with, as in a session.

    Try: surepick init table, then surepick simulate table.toml
    """
    from surepick.core.policy import takes_past
    from surepick.policies import policy_for

    loaded = load_file(file, as_json)
    chosen = policy_for(policy, delta=delta, epsilon=epsilon)
    ending = {"last_call": last_call, "gaussian": gaussian}
    past = loaded.past if guess and takes_past(chosen) else None
    outcome = rehearse(loaded, chosen, as_json, seed=seed, budget=budget, past=past, **ending)
    _print_outcome(loaded, outcome, past, as_json)
    raise typer.Exit(exit_code(outcome))


def truth_of(loaded: Truth) -> Gaussian | UniformNoise:
    """What a rehearsal measures: Gaussian noise; within bounds, as evenly spread as they allow."""
    from surepick.errors import FileError
    from surepick.simulation.environments import Gaussian, UniformNoise

    means = loaded.true_means
    if loaded.problem.probes is not None:
        return Gaussian(means)
    bounds = loaded.problem.bounds
    if bounds is not None:
        return UniformNoise(means, (abs(bounds.T - means)).min(axis=0))
    scale = loaded.problem.noise_scale if loaded.noise_scale is None else loaded.noise_scale
    if scale is None:
        raise FileError(
            "the problem leaves the noise scale unknown, and a simulation has to draw with some; add to the "
            "problem file:\n  [truth]\n  noise = ...   # a number, or one per arm\n"
            "or to a spreadsheet a row named noise",
            field="truth.noise_scale",
        )
    return Gaussian(means, scale)


def rehearse(loaded: Truth, policy: Policy, quiet: bool, **how: Any) -> Outcome:
    """Run the policy in the file's truth, with its standing on the screen where there is one.

    `how` are the settings of `simulate`: seed, budget, last call.
    """
    from surepick.simulation.comparison import knowing_noise
    from surepick.simulation.simulate import simulate as run

    truth = truth_of(loaded)
    with live(loaded.problem, policy, quiet=quiet) as progress:
        return run(
            knowing_noise(loaded.problem, policy, truth), truth, policy=policy, progress=progress, **how
        )


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
        table.add_row("lead", f"[bold]{escape(short(problem.name_of(standing.lead)))}[/]")
    if standing.rival is not None and standing.rival != standing.lead:
        table.add_row("closest rival", escape(short(problem.name_of(standing.rival))))
    if standing.gap is not None and standing.radius is not None:
        table.add_row("estimated gap", f"{standing.gap:.4g}, known to within {standing.radius:.4g}")
    if standing.risk is not None:
        table.add_row("risk if declared now", f"at most {standing.risk:.3g}")
    return table


def _print_outcome(loaded: Truth, result: Outcome, past: Past | None, as_json: bool) -> None:
    """The answer, how sure it is, and what it cost."""
    found = limit_of(loaded, result)
    if as_json:
        worth = (
            None if past is None else dict(zip(loaded.problem.arm_names, past.worth.tolist(), strict=True))
        )
        print_json({**outcome_data(loaded, result, found), "past": worth})
        return
    print_answer(loaded, result)
    if past is not None:
        low, high = float(past.worth.min()), float(past.worth.max())
        known = f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
        console.print(
            f"It began with the file's guess, which counted as {known} measurements of each arm and proved "
            "nothing; --no-guess leaves it out."
        )
    console.print(effort_table([result], found))


def print_answer(loaded: Truth, result: Outcome) -> None:
    """The plan and its promise, or who leads without one."""
    if result.plan is None:
        found = among(loaded.problem, result.policy, result.standing)
        proved = "nothing is proved of it." if found is None else f"and this is proved: {escape(found)}."
        text = (
            f"[bold yellow]Not sure yet[/]: the budget was spent. {escape(repr(result.lead_name))} leads, "
            f"{proved}{_estimates(result)}{_closest(result)} Give a larger --budget, or accept near-ties "
            "with --epsilon."
        )
        console.print(Panel(text, border_style="yellow"))
    else:
        console.print(_plan_table(loaded, result.plan))
        text = f"[bold green]{escape(result.plan_name or '')}[/] is the answer: {result.guarantee}."
        console.print(Panel(text, title="certificate", border_style="green"))
        if truth := truth_sentence(loaded, result):
            console.print(escape(truth) + "\n")
        if result.ranging is not None:
            console.print(_ranging_table(loaded, result))
    if warning := listing_warning(loaded, result.policy.delta):
        console.print(f"[yellow]![/] {escape(warning)}\n")


def _estimates(result: Outcome) -> str:
    if result.estimate is None:
        return ""
    return (
        f" Estimated, not proved: it is the best plan with a chance of {result.chance:.2g}, and loses "
        f"{result.expected_loss:.3g} on average."
    )


def _closest(result: Outcome) -> str:
    """The closest call of a polytope, which says what epsilon is for."""
    if result.estimate is not None or result.what_if is None:
        return ""
    return f" The closest call: {escape(result.what_if)}."


def _ranging_table(loaded: Truth, result: Outcome) -> Table:
    """The arms whose means are nearest to where another plan would be best."""
    assert result.ranging is not None
    table = make_table("What would have to change", "arm", "estimate", "the plan stays best")
    means = dict(zip(loaded.problem.arm_names, result.means.tolist(), strict=True))
    room = {name: min(means[name] - low, high - means[name]) for name, (low, high) in result.ranging.items()}
    for name in sorted((name for name in room if math.isfinite(room[name])), key=room.__getitem__)[:RANGED]:
        low, high = result.ranging[name]
        words = f"{low:.4g} to {high:.4g}"
        if math.isinf(high):
            words = f"above {low:.4g}"
        elif math.isinf(low):
            words = f"below {high:.4g}"
        table.add_row(escape(name), f"{means[name]:.4g}", words)
    return table


def _plan_table(loaded: Truth, plan: Answer) -> Table:
    row = loaded.problem.vector(plan)
    return _items(loaded, row) if loaded.axes is None else _shipments(loaded.axes, row)


def _shipments(axes: tuple[tuple[str, ...], tuple[str, ...]], row: FloatArray) -> Table:
    """A plan as a table of amounts: suppliers down, demanders across where the terminal is wide enough."""
    suppliers, demanders = (tuple(map(escape, names)) for names in axes)
    shares = row.reshape(len(suppliers), len(demanders)) * (100 / row.sum())
    wide = console.width >= 20 + sum(len(name) + 3 for name in demanders)
    table = make_table("The plan: shipments in % of all goods", "from", *(demanders if wide else ["to"]))
    if not wide:
        table.columns[1].justify, table.columns[1].no_wrap = "left", False
    for supplier, line in zip(suppliers, shares, strict=True):
        if wide:
            table.add_row(supplier, *(f"{x:.1f}" if x > SHOWN else "[dim]·[/]" for x in line))
        else:
            sent = (f"{name} {x:.1f}" for name, x in zip(demanders, line, strict=True) if x > SHOWN)
            table.add_row(supplier, ", ".join(sent))
    return table


def _items(loaded: Truth, row: FloatArray) -> Table:
    """A plan as the list of arms it uses."""
    table = make_table("The plan", "arm", "amount")
    for s in row.nonzero()[0]:
        table.add_row(escape(loaded.problem.arm_names[s]), f"{row[s]:g}")
    return table


def effort_table(results: Sequence[Outcome], found: Limit | None) -> Table:
    """What each policy measured, beside the limit of any method."""
    table = make_table("The effort", "", "measurements", "x the limit", "seconds")
    unit = (found.measurements if found is not None and found.is_finite else 0.0) or math.nan
    most = found.upper_bound if found is not None and found.epsilon else unit  # within epsilon: a bracket
    for result in results:
        count = f"{result.n_measurements:,}"
        sure = result.plan is not None
        times = number(result.n_measurements / unit)
        if most > unit:
            times = f"{number(result.n_measurements / most)} to {times}"
        table.add_row(
            result.policy.name,
            count if sure else f"> {count}",
            times if sure or math.isnan(unit) else f"> {times}",
            f"{result.seconds:.2f}",
        )
    if not math.isnan(unit):
        limit = f"{unit:,.0f}" if most == unit else f"{unit:,.0f} to {most:,.0f}"
        table.add_row("[dim]the limit of any method[/]", f"[dim]{limit}[/]", "[dim]1[/]", "")
    return table


def limit_of(loaded: Truth, result: Outcome) -> Limit | None:
    """The limit under the file's truth, if it has one."""
    from surepick.core.policy import epsilon_of
    from surepick.core.polytope import Polytope
    from surepick.limits.limit import limit as find_limit

    if loaded.means is None:
        return None
    tolerance = 1e-4 if loaded.problem.is_listed else UNLISTED_TOLERANCE
    near = epsilon_of(result.policy) if isinstance(loaded.known, Polytope) else 0.0
    return find_limit(
        loaded.known, loaded.means, delta=result.policy.delta, tolerance=tolerance, epsilon=near
    )


def outcome_data(loaded: Truth, result: Outcome, found: Limit | None) -> dict[str, Any]:
    """A simulation as JSON."""
    measured = found.measurements if found is not None and found.is_finite else None
    return {
        "title": loaded.title,
        "status": str(result.status),
        "plan": result.plan_name,
        "lead": result.lead_name,
        "guarantee": result.guarantee,
        "policy": result.policy.name,
        "parameters": dataclasses.asdict(result.policy),  # type: ignore[call-overload]
        "n_measurements": result.n_measurements,
        "noise_scale": None if result.noise_scale is None else result.noise_scale.tolist(),
        "n_rounds": result.n_rounds,
        "cost": result.cost,
        "risk": result.risk,
        "estimates": {
            "chance": result.chance,
            "expected_loss": result.expected_loss,
            "what_if": result.what_if,
        },
        "n_remaining": None if result.remaining is None else len(result.remaining),
        "among": among(loaded.problem, result.policy, result.standing),
        **truth_data(loaded, result),
        "limit": measured,
        "limit_upper": found.upper_bound if found is not None and measured else None,
        "times_the_limit": result.n_measurements / measured if measured else None,
        "counts": dict(zip(loaded.problem.counted_names, result.counts.tolist(), strict=True)),
        "seed": result.seed,
        "seconds": result.seconds,
    }
