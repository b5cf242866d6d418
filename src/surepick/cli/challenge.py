"""`challenge`: is anything better than the plan we use today?"""

from __future__ import annotations

from typing import Annotated

import typer

from surepick.cli.options import (
    DEFAULT_DELTA,
    DEFAULT_STORE,
    Delta,
    File,
    Json,
    Retries,
    SessionBudget,
    StoreUrl,
    Timeout,
)
from surepick.cli.render import load_file
from surepick.cli.run import run
from surepick.errors import ParameterError


def challenge(
    file: File,
    incumbent: Annotated[str, typer.Option(help="The plan of today, by its name.")],
    measure: Annotated[str, typer.Option(help="A command; {arm} becomes the arm's name.")],
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Measurements at the same time.")] = 1,
    timeout: Timeout = None,
    retries: Retries = 0,
    name: Annotated[
        str | None, typer.Option(help="The session's name.", show_default="the file's, with -challenge")
    ] = None,
    delta: Delta = DEFAULT_DELTA,
    epsilon: Annotated[float, typer.Option(help="Do not bother with improvements up to this much.")] = 0.0,
    budget: SessionBudget = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """Find out whether any plan is better than the one you use today.

    Ends with exit code 0 if a better plan is proved, and names it; 5 if no plan is better by more than
    epsilon; 1 if the budget was not enough to tell. It goes on where it was, as `run` does.

    Try: surepick challenge table.toml --incumbent "Ring road" --epsilon 2 --measure './drive.sh {arm}'
    """
    from surepick.policies import Challenge

    problem = load_file(file, as_json).problem
    if not problem.is_listed:
        raise ParameterError("an incumbent is a plan of a list, and this file's plans are not listed")
    place = Challenge(incumbent).place(problem)
    run(
        file,
        measure=measure,
        jobs=jobs,
        timeout=timeout,
        retries=retries,
        name=name or f"{file.stem}-challenge",
        policy=f"{Challenge.name}:incumbent={place}",
        delta=delta,
        epsilon=epsilon,
        budget=budget,
        store=store,
        as_json=as_json,
    )
