"""Problems whose plans were searched for in a family: they know how sure it is that none is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surepick.core.about import About
from surepick.core.arrays import FloatArray
from surepick.core.measurable import Measurable
from surepick.core.problem import Problem
from surepick.errors import ProblemError
from surepick.problems.candidates import Box, Candidates, Progress

if TYPE_CHECKING:
    from surepick.problems.family import Family

LONGEST_NAME = 100  # letters; plans with longer names are numbered


class OneCandidateError(ProblemError):
    """The search found one plan only, so there is nothing to choose."""


class FoundProblem(Problem):
    """A problem whose plans were searched for: knows how sure it is that none is missing.

    >>> from surepick.problems import knapsack
    >>> problem = knapsack([4, 5], guess=[4.0, 5.0], capacity=10, spread=1.0, n_draws=100)
    >>> print(problem.candidates.explanation)
    2 plans from 100 draws, the last 94 without a new one; if the truth is like one more draw, its best plan
    is missing with a chance of about 0 (at most 0.46, at 95%)
    """

    candidates: Candidates  # in numbers per piece
    family: Family

    def __init__(self, family: Family, candidates: Candidates, options: Mapping[str, Any]) -> None:
        if candidates.n_plans < 2:
            raise OneCandidateError(_one_candidate(family, candidates))
        super().__init__(
            family.in_arms(candidates.plans),
            arms=family.arm_names,
            plan_names=_plan_names(family, candidates.plans),
            goal=family.goal,
            layout=family.layout,
            **options,
        )
        values = {"family": family, "candidates": candidates, "about": About(listing=candidates.listing)}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def completeness(self) -> str:
        """How the plans were found, and how likely one is missing."""
        return self.candidates.explanation

    def __reduce__(self) -> tuple[type[Problem], tuple[()], dict[str, object]]:
        # families hold functions, which cannot be pickled; other processes get the problem itself
        kept = {*Problem.__dataclass_fields__, *Measurable.__annotations__}
        state = {name: value for name, value in self.__dict__.items() if name in kept}
        return _blank, (), state  # type: ignore[return-value]


def drawn(family: Family, box: Box, n_draws: int, progress: Progress | None) -> Candidates:
    """Return the best plans of draws from the box, in numbers per piece."""
    n_entries = len(family.piece_names)
    return box.best_plans(lambda means: family.solve(family.weights(means)), n_entries, n_draws, progress)


def _plan_names(family: Family, plans: FloatArray) -> list[str]:
    """A short name where the family has one, a number where it is long or taken."""
    names: list[str] = []
    taken: set[str] = set()
    for k, plan in enumerate(plans):
        name = f"{family.noun} {k}" if family.name_of is None else family.name_of(plan)
        if len(name) > LONGEST_NAME or name in taken:
            name = f"{family.noun} {k}"
        taken.add(name)
        names.append(name)
    return names


def _one_candidate(family: Family, candidates: Candidates) -> str:
    if candidates.how == "draws":
        return (
            f"all {candidates.n_draws} draws lead to the same plan, so within this spread there is nothing "
            "to choose; widen the spread or raise n_draws"
        )
    if candidates.how == "best":
        return "n_best = 1 leaves nothing to choose; ask for 2 or more"
    return f"there is only one {family.noun}, so there is nothing to choose"


def _blank() -> Problem:
    return object.__new__(Problem)
