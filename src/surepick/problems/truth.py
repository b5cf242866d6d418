"""A problem together with what is behind it: the truth of simulations, or what is thought of it before."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy.typing as npt

from surepick.core.arrays import FloatArray, Numbers
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.core.problem import Problem

Axes: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Truth:
    """A problem, the means that simulations draw from, and the guess of them, each where it is known."""

    problem: AnyProblem
    means: FloatArray | None = field(default=None, repr=False)  # (n_arms,)
    noise_scale: FloatArray | None = field(default=None, repr=False)  # (n_arms,) None: the problem's own
    guess: Numbers | None = field(default=None, repr=False)  # (n_arms,)
    spread: Numbers | None = field(default=None, repr=False)  # how far the means may lie from the guess
    title: str = ""
    kind: str = ""  # of the file that it came from
    axes: Axes | None = None  # suppliers and demanders, where a plan is best shown as a table of amounts
    pair: str = " -> "  # between the names of a row and a column in the name of their arm
    past: Past | None = None  # the guess as what a session begins with, where its spread was stated

    @property
    def description(self) -> str:
        """The title."""
        return self.title

    @property
    def true_scale(self) -> FloatArray | None:
        """The noise scale that simulations draw with; None: the problem's own."""
        return self.noise_scale

    @property
    def known(self) -> AnyProblem:
        """The problem with the noise scale that simulations draw with, where it leaves its own unknown."""
        return (
            self.problem
            if self.problem.noise_scale is not None
            else self.problem.with_noise(self.noise_scale)
        )


class Instance(Truth):
    """A `Truth` whose means are known, made from problem, means and description."""

    problem: Problem
    means: FloatArray

    def __init__(self, problem: Problem, means: FloatArray, description: str) -> None:
        super().__init__(problem, means, title=description)


class Built(Truth):
    """A `Truth` whose means are not known yet: what the `build` of a `Kind` makes of a file."""

    def __init__(
        self,
        problem: AnyProblem,
        guess: npt.ArrayLike | None = None,
        spread: npt.ArrayLike = 0.0,
        axes: Axes | None = None,
        pair: str = " -> ",
    ) -> None:
        super().__init__(problem, guess=guess, spread=spread, axes=axes, pair=pair)


class Loaded(Truth):
    """A `Truth` as a problem file says it, with arrays of one number per arm."""

    guess: FloatArray | None
    spread: FloatArray | None

    def __init__(
        self,
        problem: AnyProblem,
        means: FloatArray | None,
        kind: str,
        title: str,
        axes: Axes | None = None,
        guess: FloatArray | None = None,
        spread: FloatArray | None = None,
        true_scale: FloatArray | None = None,
        past: Past | None = None,
    ) -> None:
        super().__init__(problem, means, true_scale, guess, spread, title, kind, axes, past=past)
