"""Options that several commands share, exit codes, and what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    pass

File = Annotated[
    Path,
    typer.Argument(
        help="A spreadsheet of plans (.xlsx, .csv), or a problem file (.toml, .json).", show_default=False
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Fixes all randomness: the same seed gives the same run.")]
Delta = Annotated[float, typer.Option(help="Allowed probability of a wrong answer.")]
Epsilon = Annotated[float, typer.Option(help="Accept a plan up to this much worse than the best.")]
Budget = Annotated[int, typer.Option(help="Stop without a promise after this many measurements.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
PolicyText = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="Policy to use, with settings as in CombGapE:radius=published.",
        show_default="BetGapE",
    ),
]
UseGuess = Annotated[
    bool,
    typer.Option(
        "--guess/--no-guess", help="Begin with the file's guess, if it states a spread; it wins no bet."
    ),
]
DEFAULT_STORE = "sqlite:///surepick.db"
# exit codes; 0 is done and 2 is bad input
NOT_SURE = ENDED = 1  # no: not confident, does not hold; `ask`: nothing to measure, the session has ended
DOUBTFUL = 3  # confident, but values contradict the assumption of the guarantee
ALL_HELD, NO_BETTER, INTERRUPTED = 4, 5, 130
StoreUrl = Annotated[
    str, typer.Option("--store", envvar="SUREPICK_STORE", help="sqlite:///file.db or postgresql://...")
]
Name = Annotated[
    str | None, typer.Option("--session", "-s", help="Which session; may be left out when there is one.")
]
Worker = Annotated[
    str, typer.Option(help="Name of the worker; workers that share a session need different names.")
]
Timeout = Annotated[float | None, typer.Option(help="Seconds a measurement may take.")]
Retries = Annotated[int, typer.Option(min=0, help="Further tries when a measurement fails.")]
DEFAULT_DELTA = 0.05
SessionBudget = Annotated[
    int | None, typer.Option(help="Stop without a promise after this many measurements.")
]
PolicySeed = Annotated[int, typer.Option(min=0, help="Fixes the policy's own randomness.")]
Lease = Annotated[
    float, typer.Option(help="Seconds after which a token that was not told is handed out again.")
]
First = Annotated[
    str | None,
    typer.Argument(show_default=False, help="Which session; may be left out when there is one."),
]
Named = Annotated[str | None, typer.Option("--session", "-s", help="The same, as other commands take it.")]
