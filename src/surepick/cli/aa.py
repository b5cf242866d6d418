"""`aa`: measure one thing as if it were two, to see whether the set-up is honest."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from surepick.cli.options import NOT_SURE, File, Json, Retries, Timeout
from surepick.cli.render import answer, console, load_file, make_table, say
from surepick.measure.commands import Command, ended_as_interrupted

if TYPE_CHECKING:
    from surepick.core.oracle_problem import AnyProblem
    from surepick.noise.aa import Against
    from surepick.problems.truth import Truth


def aa(
    file: File,
    measure: Annotated[str, typer.Option(help="The command that `run` will call; {arm} or {probe}.")],
    probe: Annotated[
        str | None, typer.Option(help="The arm or probe to measure.", show_default="the first")
    ] = None,
    pairs: Annotated[int, typer.Option(min=4, help="Pairs of measurements.")] = 20,
    timeout: Timeout = None,
    retries: Retries = 0,
    seed: Annotated[int, typer.Option(min=0, help="Fixes which of a pair goes first.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure one arm or probe as if it were two, and say whether anything differs that should not.

    Before a long session: it finds an effect of the order (what runs second, what runs later) and noise that
    is larger than the file says, each of which would be taken for a difference between arms. An honest set-up
    is doubted once in 100. Nothing is recorded. Exit code 1: something differs.

    Try: surepick aa table.toml --measure './drive.sh {arm}' --probe ring
    """
    from surepick.noise.aa import against_itself, turns
    from surepick.sessions.requests import Request

    problem = _with_a_play(load_file(file, as_json))
    chosen = 0 if probe is None else problem.probe(probe)
    reads, readings = problem.reads(chosen), problem.readings_of(chosen)
    command, labels = Command(shlex.split(measure), timeout), turns(pairs, seed)
    uses: list[dict[str, float]] = []
    with ended_as_interrupted():
        for at, _ in enumerate(labels):
            request = Request(f"{chosen}.{at}", chosen, problem.probe_names[chosen], 1, "", 0.0, reads)
            found = command.measure(request, retries=retries)
            uses.append(dict(found) if isinstance(found, Mapping) else {reads[0]: float(str(found))})
    known = problem.noise_scale
    scale = {n: None if known is None else float(known[r]) for n, r in zip(reads, readings, strict=True)}
    result = against_itself(labels, uses, scale)
    data = {
        "probe": problem.probe_names[chosen],
        "pairs": result.n_pairs,
        "honest": result.is_honest,
        "difference": {n: {"mean": m, "error": e} for n, (m, e) in result.difference.items()},
        "doubts": [vars(doubt) for doubt in result.doubts],
    }
    answer(data, as_json, lambda: _print(problem.probe_names[chosen], result))
    if not result.is_honest:
        raise typer.Exit(NOT_SURE)


def _with_a_play(loaded: Truth) -> AnyProblem:
    """The problem of the file; where plans are played, with the one that is best by the guess asked for."""
    import numpy as np

    problem = loaded.problem
    if problem.is_listed or not problem.plays:
        return problem
    plan = problem.best_plan(np.ones(problem.n_arms) if loaded.guess is None else loaded.guess)
    return problem.with_asked_plays([np.flatnonzero(plan).tolist()])


def _print(name: str, result: Against) -> None:
    table = make_table(f"{name} against itself", "reading", "A less B", "±")
    for reading, (mean, error) in result.difference.items():
        table.add_row(reading, f"{mean:+.4g}", f"{error:.2g}")
    console.print(table)
    for doubt in result.doubts:
        say(f"{doubt.reading}: {doubt.what}")
    say(f"{'honest' if result.is_honest else 'not honest'}: {result.sentence}")
