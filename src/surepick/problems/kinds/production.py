"""Production: how much of everything to make when what each unit yields must be measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np

from surepick.core.arrays import Goal, Numbers
from surepick.core.oracle_problem import OracleProblem
from surepick.core.polytope import Polytope
from surepick.errors import ProblemError
from surepick.problems.found import FoundProblem
from surepick.problems.options import DrawOptions, builder_problem, lists
from surepick.problems.program import Program, as_program, program_family
from surepick.problems.program_files import read_program


@lists(DrawOptions)
def production(
    use: Numbers | Program | str | Path,
    limits: Numbers | None = None,
    guess: Numbers | None = None,
    *,
    senses: str | Sequence[str] | Mapping[str, str] = "<=",
    lower: Numbers = 0.0,
    upper: Numbers = np.inf,
    whole: bool | Sequence[bool] | Mapping[str, bool] = False,
    goal: Goal | None = None,
    variable_names: Sequence[str] | None = None,
    **options: Unpack[DrawOptions],
) -> OracleProblem | FoundProblem:
    """The problem of making the most of limited resources when the yield of each product is near a guess.

    Every plan that keeps the limits can be chosen (a `Polytope`; where all products are whole, an oracle with
    `list_plans=False`). With `list_plans`, or where draws are asked for, the plans are the best of draws near
    the guess.

    - `use`: what each product (column) takes of each resource (row); or a `Program`, or an MPS or LP file,
      which say all of the following up to `options`, so that these but `guess` are refused
    - `limits`: one number per resource
    - `guess`: what one unit of each product brings; with a program, its objective unless given. Variables
      that a program's objective does not have are known to bring 0 and are never measured
    - `senses`: how use compares to limits, "<=", ">=" or "=", one or one per resource; "<="
    - `lower`, `upper`: the limits of each product, one number or one per product; 0 and none
    - `whole`: whether a product comes in whole numbers, one or one per product; False
    - `goal`: the total of the best plan, "smallest" or "largest"; "largest"
    - `variable_names`: names for the products; the columns of a DataFrame, or "variable 0", ...
    - `options`: `DrawOptions`; `low` and `high` are of one measurement, not of the variables

    >>> production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0])
    Polytope(2 arms, 2 rows, at most 6 vertices, largest)
    >>> sorted(production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0], n_draws=100).plans.tolist())
    [[0.0, 4.0], [2.0, 3.0]]
    """
    if isinstance(use, Program | str | Path):
        given = {"limits": limits is not None, "senses": senses != "<=", "lower": np.any(lower != 0.0)}
        given |= {"upper": np.any(upper != np.inf), "whole": whole is not False, "goal": goal is not None}
        for name, is_given in (given | {"variable_names": variable_names is not None}).items():
            if is_given:
                raise ProblemError(f"{name} is said by the program; change it there", field=name)
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
            goal=goal or "largest",
            variable_names=variable_names,
        )
    centre = program.objective if guess is None else guess
    problem = builder_problem(production, program_family(program), centre, options)
    if guess is not None or not isinstance(problem, Polytope):
        return problem
    names = zip(program.variable_names, program.objective.tolist(), strict=True)
    return problem.with_known({name: 0.0 for name, cost in names if cost == 0.0})
