"""Production: how much of everything to make when what each unit yields must be measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import Bounds
from surepick.problems.candidates import Progress
from surepick.problems.family import FoundProblem, PerArm
from surepick.problems.files.mps_lp import read_program
from surepick.problems.program import Program, as_program, program_family


def production(
    use: npt.ArrayLike | Program | str | Path,
    limits: npt.ArrayLike | None = None,
    guess: npt.ArrayLike | None = None,
    *,
    senses: str | Sequence[str] = "<=",
    lower: npt.ArrayLike = 0.0,
    upper: npt.ArrayLike = np.inf,
    whole: bool | Sequence[bool] = False,
    minimize: bool = False,
    spread: npt.ArrayLike = 1.0,
    n_draws: int = 1000,
    seed: int = 0,
    noise_scale: PerArm = 1.0,
    costs: PerArm = None,
    bounds: Bounds | None = None,
    variable_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> FoundProblem:
    """The problem of making the most of limited resources when the yield of each product is near a guess.

    `use` has one row per resource and one column per product, `limits` one number per resource; `senses` says
    how they compare. Products lie between `lower` and `upper`, in whole numbers where `whole` says so. `use`
    may also be a `Program` or the path of an MPS or LP file; `guess` is then its objective unless given. The
    candidates are the best programs of `n_draws` draws within `spread` of the guess. `noise_scale`, `costs`
    and `bounds` (of one measurement, not of the variables) are those of `Problem`.

    >>> problem = production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0], n_draws=100)
    >>> sorted(problem.plans.tolist())
    [[0.0, 4.0], [2.0, 3.0]]
    """
    if isinstance(use, Program | str | Path):
        program = use if isinstance(use, Program) else read_program(use)
    else:
        program = as_program(
            use,
            limits,
            guess,
            senses=senses,
            lower=lower,
            upper=upper,
            whole=whole,
            minimize=minimize,
            variable_names=variable_names,
        )
    return program_family(program).problem(
        program.objective if guess is None else guess,
        spread=spread,
        n_draws=n_draws,
        seed=seed,
        noise_scale=noise_scale,
        costs=costs,
        bounds=bounds,
        progress=progress,
    )
