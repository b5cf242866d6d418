"""`demo`, `simulate`, `compare` and `limit`: everything that decides with simulated measurements.

Heavy modules are imported by the command that needs them, so that `surepick --help` is quick.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from surepick.core.pilot import Pilot
    from surepick.core.policy import Policy
    from surepick.problems.files.load import Loaded
    from surepick.simulation.environments import Gaussian, UniformNoise
    from surepick.simulation.simulate import Outcome

COMPARED = "BetGapE,CombGapE,CombGapE:radius=published,Uniform"
COMPARED_UNLISTED = "OBet"  # the other policies that need no list take minutes a run
BESIDE_THE_DEMO = ("CombGapE", "Uniform")
DEMO_BUDGET = 3 * 10**6  # how far the demo follows the others

File = Annotated[Path, typer.Argument(help="A problem file, TOML or JSON.", show_default=False)]
Seed = Annotated[int, typer.Option(help="Fixes all randomness: the same seed gives the same run.")]
Delta = Annotated[float, typer.Option(help="Allowed probability of a wrong answer.")]
Epsilon = Annotated[float, typer.Option(help="A plan this much worse than the best is fine, too.")]
Budget = Annotated[int, typer.Option(help="Give up after this many measurements.")]
Distances = Literal["great-circle", "freeway"]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Case = Literal["transport", "trees"]
PolicyText = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="Who decides: a name, with settings as in CombGapE:radius=published.",
        show_default="BetGapE, or OBet where plans are not listed",
    ),
]

PilotSize = Annotated[int, typer.Option(help="Pilot measurements per arm when the noise scale is unknown.")]
Pooled = Annotated[bool, typer.Option("--one-scale", help="All arms have the same unknown noise scale.")]


def demo(
    case: Annotated[Case, typer.Option(help="trees: a choice between 6e10 plans that are never listed.")] = (
        "transport"
    ),
    seed: Annotated[int, typer.Option(help="Draws the case, and the noise.")] = 1,
    delta: Delta = 0.05,
    epsilon: Epsilon = 0.0,
    policy: PolicyText = None,
    distances: Annotated[
        Distances, typer.Option(help="Travel hours. By freeway many plans tie: add --epsilon 0.05.")
    ] = "great-circle",
    budget: Budget = 10**7,
    as_json: Json = False,
) -> None:
    """Decide the paper's transport case: which shipments between 18 cities take the fewest hours?

    Nobody knows the 81 travel times exactly. Each can be measured by a trip, with an hour of noise. Watch
    surepick choose which trips to make until it knows the best plan, wrong with probability at most delta.

    With --case trees: which cables connect twelve towns for the least cost? There are 6e10 ways.
    """
    from surepick.cli import show
    from surepick.policies import parse_policy, policy_for

    loaded = _demo_trees(seed) if case == "trees" else _demo_case(seed, distances, as_json)
    chosen = policy_for(loaded.problem, policy, delta=delta, epsilon=epsilon)
    show.introduce(loaded, chosen, as_json)
    outcome = _run(loaded, chosen, seed, budget, as_json)
    others = [
        _run(
            loaded, parse_policy(name, delta=delta, epsilon=epsilon), seed, min(budget, DEMO_BUDGET), as_json
        )
        for name in BESIDE_THE_DEMO
        if name != chosen.name and case == "transport"
    ]
    show.demo(loaded, outcome, others, as_json)
    raise typer.Exit(show.exit_code(outcome))


def simulate(
    file: File,
    seed: Seed = 0,
    delta: Delta = 0.05,
    epsilon: Epsilon = 0.0,
    policy: PolicyText = None,
    budget: Budget = 10**7,
    pilot: PilotSize = 12,
    one_scale: Pooled = False,
    as_json: Json = False,
) -> None:
    """Rehearse a decision: measurements are drawn around the file's true means, with its noise scale.

    The file needs a [truth] section. A noise scale that it leaves unknown is learned from a pilot, as in a
    session. Try: surepick simulate examples/routes.toml
    """
    from surepick.cli import show
    from surepick.policies import policy_for

    loaded = _load(file, as_json)
    chosen = policy_for(loaded.problem, policy, delta=delta, epsilon=epsilon)
    outcome = _run(loaded, chosen, seed, budget, as_json, pilot=pilot_of(loaded, pilot, one_scale))
    show.outcome(loaded, outcome, as_json)
    raise typer.Exit(show.exit_code(outcome))


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
    pilot: PilotSize = 12,
    one_scale: Pooled = False,
    as_json: Json = False,
) -> None:
    """Compare policies on the same problem: measurements, spread, errors with their exact interval.

    The file needs a [truth] section. Try: surepick compare examples/routes.toml --runs 50
    """
    from surepick.cli import show
    from surepick.core.oracle_problem import OracleProblem
    from surepick.planning.comparison import compare as run_comparison
    from surepick.policies import parse_policy

    loaded = _load(file, as_json)
    usual = COMPARED_UNLISTED if isinstance(loaded.problem, OracleProblem) else COMPARED
    chosen = [parse_policy(text, delta=delta, epsilon=epsilon) for text in (policies or usual).split(",")]
    truth = _truth(loaded)
    with show.bar("comparing", quiet=as_json) as progress:
        rows = run_comparison(
            loaded.problem,
            chosen,
            truth,
            runs=runs,
            seed=seed,
            budget=budget,
            pilot=pilot_of(loaded, pilot, one_scale),
            progress=progress,
        )
    show.comparison(loaded, rows, delta, as_json)


def limit(
    file: File,
    delta: Delta = 0.05,
    theory: Annotated[bool, typer.Option("--theory", help="Add the paper's quantities and bounds.")] = False,
    as_json: Json = False,
) -> None:
    """Say how few measurements any method needs, and how to spread them over the arms.

    The file needs a [truth] section. Try: surepick limit examples/routes.toml
    """
    from surepick.cli import show
    from surepick.planning.limit import limit as find_limit
    from surepick.planning.theory import theory as find_theory

    loaded = _load(file, as_json)
    means, known = _truth(loaded).means, loaded.known
    with show.bar("looking for rivals", quiet=as_json):
        found = find_limit(known, means, delta=delta)
        extra = find_theory(known, means, delta) if theory else None
    show.limit(loaded, found, extra, as_json)


def _load(file: Path, quiet: bool) -> Loaded:
    from surepick.cli import show
    from surepick.problems import load

    with show.bar("finding candidate plans", quiet=quiet) as progress:
        return load(file, progress=progress)


def pilot_of(loaded: Loaded, size: int, one_scale: bool) -> Pilot | None:
    """The pilot of these options, where the file leaves the noise scale unknown."""
    from surepick.core.pilot import Pilot

    return Pilot(size=size, pooled=one_scale) if loaded.problem.noise_scale is None else None


def _demo_case(seed: int, distances: Distances, quiet: bool) -> Loaded:
    from surepick.cli import show
    from surepick.problems import city_hours, transport_instance
    from surepick.problems.files.load import Loaded

    hours = city_hours(distances)
    with show.bar("finding candidate plans", quiet=quiet) as progress:
        case = transport_instance(seed, distances=distances, progress=progress)
    title = f"Transport between 18 cities, {distances} hours"
    return Loaded(case.problem, case.means, "transport", title, (hours.row_names, hours.column_names))


def _demo_trees(seed: int) -> Loaded:
    from surepick.problems import cable_instance
    from surepick.problems.files.load import Loaded

    problem, means = cable_instance(seed)
    return Loaded(problem, means, "trees", "Cables that connect twelve towns for the least cost")


def _truth(loaded: Loaded) -> Gaussian | UniformNoise:
    """What a rehearsal measures: Gaussian noise; within bounds, as evenly spread as they allow."""
    from surepick.errors import FileError
    from surepick.simulation.environments import Gaussian, UniformNoise

    if loaded.means is None:
        raise FileError(
            "a simulation needs the true means of the arms; add to the problem file:\n"
            "  [truth]\n  means = [...]   # one per arm, or a table of arm names"
        )
    bounds = loaded.problem.bounds
    if bounds is not None:
        return UniformNoise(loaded.means, (abs(bounds.T - loaded.means)).min(axis=0))
    scale = loaded.problem.noise_scale if loaded.true_scale is None else loaded.true_scale
    if scale is None:
        raise FileError(
            "the problem leaves the noise scale unknown, and a simulation has to draw with some; add to the "
            "problem file:\n  [truth]\n  noise_scale = ...   # a number, or one per arm"
        )
    return Gaussian(loaded.means, scale)


def _run(
    loaded: Loaded, policy: Policy, seed: int, budget: int, quiet: bool, *, pilot: Pilot | None = None
) -> Outcome:
    from surepick.cli import show
    from surepick.simulation.simulate import simulate as run

    truth = _truth(loaded)
    with show.live(loaded.problem, policy, quiet=quiet) as progress:
        return run(loaded.problem, policy, truth, seed=seed, budget=budget, pilot=pilot, progress=progress)
