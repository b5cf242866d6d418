"""Prior data: guesses of the means, or earlier measurements. They guide a run and never count as evidence.

A run treats them as measurements made before its first batch: they inform which plan leads, what is measured
and what is bet. The guarantee holds however wrong they are; wrong ones cost measurements alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from surepick.core.arrays import FloatArray, first_true, read_only
from surepick.core.given.numbers import LARGEST, Numbers, furthest_values, vector
from surepick.core.oracle_problem import AnyProblem
from surepick.core.probes import refuse_probes
from surepick.errors import ParameterError, ProblemError

P = TypeVar("P", bound="PriorData | None")

MOST_WORTH = 20.0  # measurements per arm that a history counts as; without a cap a wrong one is dear


@dataclass(frozen=True, eq=False)
class PriorData:
    """Prior data: for each arm a mean, and how many measurements it is worth; 0 where there are none.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=4.0, goal="largest")
    >>> sp.problems.PriorData.from_guess(problem, [10.0, 12.0], spread=2.0).worth.tolist()
    [4.0, 4.0]
    >>> sp.problems.PriorData.from_history(problem, counts=[3, 400], means=[10.2, 11.7]).worth.tolist()
    [3.0, 20.0]
    """

    worth: FloatArray  # (n_arms,)
    means: FloatArray  # (n_arms,)

    @classmethod
    def from_guess(cls, problem: AnyProblem, means: Numbers, spread: Numbers) -> PriorData:
        """Return a guess of each mean, off by about `spread`, as prior data.

        It is worth (noise scale / spread)^2 measurements, up to 20. A spread of infinity, or of 0, says that
        it is unknown how far off it is: it is then worth nothing.
        """
        refuse_probes(problem, "prior data", field="prior")
        if problem.noise_scale is None:
            raise ParameterError(
                "the worth of a guess depends on the noise, which is not stated; give noise, or no guess",
                field="prior",
            )
        width = _per_arm("spread", spread, problem)
        if (width < 0).any():
            raise ParameterError(f"the spread of a guess is 0 or more, got {width.min():g}", field="prior")
        width = np.where(width > 0, width, np.inf)
        return cls._capped((problem.noise_scale / width) ** 2, means, problem)

    @classmethod
    def of_problem(cls, problem: AnyProblem) -> PriorData | None:
        """Return a problem's guess as prior data; None without a spread of it, or without a stated noise."""
        guess, spread = problem.guess, problem.spread
        if guess is None or spread is None or problem.noise_scale is None or not problem.arms_alone:
            return None
        return cls.from_guess(problem, guess, spread) if spread.any() else None

    @classmethod
    def from_history(cls, problem: AnyProblem, counts: Numbers, means: Numbers) -> PriorData:
        """Return prior data from earlier measurements, with their counts and means per arm.

        An arm counts as at most 20 measurements: its mean may have moved since, and the cap limits the cost
        of that.
        """
        worth = _per_arm("counts", counts, problem)
        if (worth < 0).any():
            raise ParameterError(f"counts of a history are 0 or more, got {worth.min():g}", field="prior")
        return cls._capped(worth, means, problem)

    @classmethod
    def _capped(cls, worth: FloatArray, means: Numbers, problem: AnyProblem) -> PriorData:
        capped = read_only(np.minimum(worth, MOST_WORTH))
        return fitting(problem, cls(capped, read_only(problem.as_means(means))))

    def or_else(self, guess: PriorData) -> PriorData:
        """Return these prior data, with the guess for arms that have none."""
        has = self.worth > 0
        worth = np.where(has, self.worth, guess.worth)
        return PriorData(read_only(worth), read_only(np.where(has, self.means, guess.means)))

    def lengthened(self, n_arms: int) -> PriorData:
        """Return the prior data for n_arms arms; the added ones have none."""
        more = np.zeros(n_arms - len(self.worth))
        return PriorData(read_only(np.append(self.worth, more)), read_only(np.append(self.means, more)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PriorData) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((tuple(self.worth), tuple(self.means)))

    def to_json(self) -> dict[str, Any]:
        """Return this as JSON values."""
        return {"worth": self.worth.tolist(), "means": self.means.tolist()}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> PriorData:
        """Invert `to_json`."""
        return cls(read_only(np.array(kept["worth"], float)), read_only(np.array(kept["means"], float)))


def fitting(problem: AnyProblem, prior: P) -> P:
    """Return the prior data; refuse data about other arms than this problem's. None is allowed."""
    if prior is None:
        return prior
    refuse_probes(problem, "prior data", field="prior")
    if not prior.worth.shape == prior.means.shape == (problem.n_arms,):
        raise ParameterError(
            f"prior data have a worth and a mean for each of the {problem.n_arms} arms, got shapes "
            f"{prior.worth.shape} and {prior.means.shape}",
            field="prior",
        )
    furthest = furthest_values(problem.noise_scale, problem.n_arms)
    is_right = (prior.worth >= 0) & (prior.worth <= LARGEST) & (np.abs(prior.means) <= furthest)
    arm = first_true(~is_right)
    if arm is not None:
        raise ParameterError(
            f"prior data of arm {problem.arm_names[arm]!r} are worth {prior.worth[arm]:g} measurements of "
            f"{prior.means[arm]:g}; a worth is 0 or more, and means are not so far from 0 that rounding "
            "outweighs the noise",
            field="prior",
        )
    return prior


def _per_arm(what: str, given: Numbers, problem: AnyProblem) -> FloatArray:
    """Return one number per arm, one of which may hold for all; infinity is allowed.

    An error names `prior`, the argument of functions that take prior data.
    """
    try:
        return vector(what, given, problem.arm_names, one_for_all=True, infinite=True)
    except ProblemError as error:
        raise ParameterError(str(error), field="prior") from None
