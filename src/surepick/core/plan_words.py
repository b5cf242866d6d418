"""Plans as people say them: by what they do, not by their number."""

from __future__ import annotations

import re

import numpy as np

from surepick.core.evidence import Evidence
from surepick.core.gaps import arm_means, mean_variance
from surepick.core.oracle_problem import AnyProblem
from surepick.core.pooled import pooled
from surepick.core.run import Answer
from surepick.core.wording import shortened

ROUNDING = 1e-9  # of a plan's largest entry; less of an arm is nothing
LONGEST = 60  # letters of what a plan does, within a sentence
_NUMBERED = re.compile(r"\w+ (\d+)")


def amounts(problem: AnyProblem, plan: Answer) -> dict[str, float]:
    """What the plan takes of each arm, those that it leaves out left out.

    >>> from surepick.core.problem import Problem
    >>> amounts(Problem([[1, 0, 2.5], [0, 1, 0]], arms=["road", "rail", "sea"], goal="largest"), 0)
    {'road': 1.0, 'sea': 2.5}
    """
    vector = problem.vector(plan)
    used = np.flatnonzero(np.abs(vector) > ROUNDING * np.abs(vector).max(initial=0.0))
    return {problem.arm_names[s]: float(vector[s]) for s in used}


def listed(amounts: dict[str, float], length: int | None = None) -> str:
    """Arms with their amounts, which are left out where all are 1; cut off where it gets long.

    >>> listed({"Boston -> Portland": 12.2, "Salem -> Reno": 3.0}), listed({"road": 1.0, "sea": 1.0})
    ('Boston -> Portland 12.2, Salem -> Reno 3', 'road, sea')
    """
    plain = all(amount == 1 for amount in amounts.values())
    words = ", ".join(name if plain else f"{name} {amount:.4g}" for name, amount in amounts.items())
    return shortened(words or "nothing", len(words) + 9 if length is None else length)


def has_own_name(problem: AnyProblem, plan: Answer) -> bool:
    """Whether somebody named the plan, or its name says what it does; "plan 4" is only its number."""
    numbered = _NUMBERED.fullmatch(problem.name_of(plan) or "") if isinstance(plan, int) else None
    return numbered is None or int(numbered[1]) != plan


def called(problem: AnyProblem, plan: Answer | None, length: int = LONGEST) -> str | None:
    """The plan's name; where that is a number only, with what the plan does.

    >>> from surepick.core.problem import Problem
    >>> called(Problem([[1, 0], [0, 2]], arms=["road", "rail"], goal="largest"), 1)
    'plan 1 (rail 2)'
    """
    if plan is None:
        return None
    name = problem.name_of(plan)
    if name is not None and has_own_name(problem, plan):
        return name
    return f"{name} ({listed(amounts(problem, plan), length)})"


def value_of(problem: AnyProblem, plan: Answer, evidence: Evidence) -> tuple[float, float] | None:
    """The plan's value by the estimates and its standard deviation; None while an arm of it is unmeasured."""
    vector = problem.vector(plan)
    if problem.probes is not None:
        (value,), (error,) = pooled(problem, evidence).gaps(vector[None])
        return (float(value), float(error)) if np.isfinite(error) else None
    used = vector != 0
    variance = mean_variance(problem, evidence)
    if not np.isfinite(variance[used]).all():
        return None
    means = arm_means(problem, evidence)
    return float(vector[used] @ means[used]), float(np.sqrt(vector[used] ** 2 @ variance[used]))


def measured(value: tuple[float, float] | None, unit: str) -> str | None:
    """A value with its standard deviation and its unit.

    >>> measured((51.234, 0.512), "min"), measured(None, "min")
    ('51.23 ± 0.51 min', None)
    """
    return None if value is None else f"{value[0]:.4g} ± {value[1]:.2g}" + (f" {unit}" if unit else "")
