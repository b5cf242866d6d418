"""A problem together with what is behind it: the truth of simulations, or what is thought of it before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from surepick.core.arrays import FloatArray, Numbers, read_only, vector
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.errors import FileError
from surepick.problems.numbers import half_widths

Axes: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Truth:
    """A problem, the means that simulations draw from, and the guess of them, each where it is known."""

    problem: AnyProblem
    means: FloatArray | None = field(default=None, repr=False)  # (n_arms,)
    noise_scale: FloatArray | None = field(default=None, repr=False)  # (n_arms,) None: the problem's own
    guess: FloatArray | None = field(default=None, repr=False)  # (n_arms,)
    spread: FloatArray | None = field(default=None, repr=False)  # (n_arms,) how far off the guess may be
    title: str = ""
    kind: str = ""  # of the file that it came from
    axes: Axes | None = None  # suppliers and demanders, where a plan is best shown as a table of amounts
    pair: str = " -> "  # between the names of a row and a column in the name of their arm
    settings: Mapping[str, Any] = field(default_factory=dict)  # of sessions: delta, epsilon, ...
    past: Past | None = None  # the guess as what a session begins with, where its spread was stated

    @classmethod
    def guessed(
        cls,
        problem: AnyProblem,
        guess: Numbers | None,
        spread: Numbers = 0.0,
        *,
        axes: Axes | None = None,
        pair: str = " -> ",
    ) -> Truth:
        """Return a problem whose means are guessed, where they are: in the order of its arms, or by name.

        >>> from surepick.core.problem import Problem
        >>> problem = Problem([[1, 0], [0, 1]], arms=["road", "rail"], goal="largest")
        >>> Truth.guessed(problem, {"rail": 2, "road": 1}, 0.5).guess.tolist()
        [1.0, 2.0]
        """
        if guess is None:
            return cls(problem, axes=axes, pair=pair)
        centre = vector("guess", guess, problem.arm_names)
        width = half_widths(spread, problem.arm_names)
        return cls(
            problem,
            guess=read_only(centre.copy()),
            spread=read_only(width.copy()),
            axes=axes,
            pair=pair,
        )

    @property
    def true_means(self) -> FloatArray:
        """The means, for what cannot be done without them."""
        if self.means is None:
            raise FileError(
                "this needs the true means of the arms, or what you take them to be for a rehearsal; add to "
                "a spreadsheet a row named truth, or to a problem file:\n"
                "  [truth]\n  means = [...]   # one per arm, or a table of arm names",
                field="truth.means",
            )
        return self.means

    @property
    def known(self) -> AnyProblem:
        """The problem with the noise scale that simulations draw with, where it leaves its own unknown."""
        return (
            self.problem
            if self.problem.noise_scale is not None
            else self.problem.with_noise(self.noise_scale)
        )
