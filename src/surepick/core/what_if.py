"""What if: what one more measurement would bring, and what would have to be true for another plan to win.

All of it is about the estimates and proves nothing; see `estimates` for how sure a lead probably is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import Evidence
from surepick.core.gaps import arm_means, behind, mean_variance, noise_variance, squares_of
from surepick.core.oracle_problem import AnyProblem
from surepick.core.run import Answer

_ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


def worth_of_one(
    problem: AnyProblem, evidence: Evidence, plan: Answer | None, epsilon: float = 0.0
) -> FloatArray | None:
    """For each arm how much one more measurement takes off the plan's expected loss, summed over its rivals.

    With T_s measurements of arm s the gap to rival j has variance v_j = sum_s y_s^2 R_s^2 / T_s, and what is
    lost to j on average is sqrt(v_j) psi(z_j), z_j = gap_j / sqrt(v_j), whose derivative by v_j is
    phi(z_j) / (2 sqrt(v_j)). None where plans are not listed or an arm that matters has no measurement.

    >>> from surepick.core.problem import Problem
    >>> seen = Evidence(np.array([4, 4, 2]), np.array([4.0, 3.2, 0.4]))
    >>> worth = worth_of_one(Problem(np.eye(3), goal="largest"), seen, 0)
    >>> (worth / worth.max()).round(3).tolist()
    [0.841, 0.541, 1.0]
    """
    if not problem.is_listed or not isinstance(plan, int) or problem.probes is not None:
        return None
    if not evidence.counts[problem.relevant].all():
        return None
    plans, row = problem.oriented, problem.vector(plan) * problem.sign
    squares = squares_of(plans)
    variance = np.where(evidence.counts > 0, mean_variance(problem, evidence), 0.0)
    gap, error = behind(problem, plan, arm_means(problem, evidence), variance, squares)
    error[plan] = 0.0
    differs = error > 0
    error = np.where(differs, error, 1.0)
    density = np.exp(-0.5 * ((gap + epsilon) / error) ** 2) / _ROOT_TWO_PI
    weight = np.where(differs, density / (2.0 * error), 0.0)
    across = float(weight.sum()) * row**2 - 2.0 * row * np.asarray(weight @ plans)
    moved = np.maximum(across + np.asarray(weight @ squares), 0.0)  # sum_j w_j y_js^2, multiplied out
    n = np.maximum(evidence.counts, 1)
    return np.asarray(np.where(problem.relevant, noise_variance(problem) * moved / (n * (n + 1.0)), 0.0))


@dataclass(frozen=True)
class Turn:
    """What would have to be true for another plan to win: one mean beyond `at`, the rest as estimated.

    Of all arms the one that has to move by the fewest of its standard errors.
    """

    rival: Answer
    rival_name: str
    arm: int
    arm_name: str
    above: bool  # whether the mean would have to be above `at`, or below
    at: float
    mean: float
    error: float

    @property
    def n_errors(self) -> float:
        """How many standard errors that is away."""
        return abs(self.at - self.mean) / self.error

    def sentence(self, unit: str = "") -> str:
        """In words.

        >>> Turn(1, "by rail", 0, "road", True, 23.0, 20.0, 1.5).sentence("min")
        '“by rail” would win if road were above 23 min: it is estimated at 20 ± 1.5, 2 errors from there'
        """
        side, unit = "above" if self.above else "below", f" {unit}" if unit else ""
        away = f"{self.n_errors:.2g} {'error' if f'{self.n_errors:.2g}' == '1' else 'errors'} from there"
        return (
            f"“{self.rival_name}” would win if {self.arm_name} were {side} {self.at:.4g}{unit}: it is "
            f"estimated at {self.mean:.4g} ± {self.error:.2g}, {away}"
        )


def turn(problem: AnyProblem, evidence: Evidence, lead: Answer | None, rival: Answer | None) -> Turn | None:
    """What would have to be true for this rival to win against the lead; None where nothing is known.

    >>> from surepick.core.problem import Problem
    >>> problem = Problem(
    ...     [[1, 0], [0, 1]], arms=["tea", "coffee"], plan_names=["A", "B"], noise=1, goal="largest"
    ... )
    >>> found = turn(problem, Evidence(np.array([4, 16]), np.array([12.0, 32.0])), 0, 1)
    >>> found.arm_name, found.above, found.at
    ('tea', False, 2.0)
    """
    if lead is None or rival is None or lead == rival or problem.noise_scale is None:
        return None
    if problem.probes is not None:  # it is about single arms
        return None
    ahead = problem.sign * (problem.vector(lead) - problem.vector(rival))
    means, variance = arm_means(problem, evidence), mean_variance(problem, evidence)
    differs = np.flatnonzero((ahead != 0) & ~problem.is_known)
    if not len(differs) or not np.isfinite(variance[differs]).all():
        return None
    move = -float(ahead @ means) / ahead[differs]
    nearest = int(np.argmin(np.abs(move) / np.sqrt(variance[differs])))
    arm, by = int(differs[nearest]), float(move[nearest])
    name, error = problem.name_of(rival) or "", math.sqrt(float(variance[arm]))
    at, mean = float(means[arm]) + by, float(means[arm])
    return Turn(rival, name, arm, problem.arm_names[arm], by > 0, at, mean, error)
