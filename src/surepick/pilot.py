"""Unknown noise: measure every arm a few times first, and go on with a scale that is large enough.

Under Gaussian noise of unknown scale sigma, (n - 1) s^2 / sigma^2 of n pilot measurements is chi-square with
n - 1 degrees of freedom. So s * sqrt((n - 1) / q), with q its quantile at the arm's share of the error, is at
least sigma except with that probability. The shares of all arms add up to `share * delta` (a union bound),
and the policy runs with what is left, (1 - share) * delta: the whole answer is wrong with probability at most
delta.

The bound is a function of the spreads s alone, and for Gaussian noise the spread and the mean of a sample are
independent. Given the bound, the pilot's sums are therefore like fresh ones, and a policy whose proof holds
for any way of choosing arms may take them in (`USES_PILOT`); every other policy starts from nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from scipy import stats

from surepick.errors import ParameterError, ProblemError
from surepick.oracle import AnyProblem
from surepick.policy import Policy
from surepick.problem import FloatArray, IntArray, per_arm, replaced

P = TypeVar("P", bound=AnyProblem)

USES_PILOT = frozenset({"CombGapE", "Uniform"})  # their radii hold for any rule of choosing arms


@dataclass(frozen=True)
class Pilot:
    """How to learn an unknown noise scale: `size` measurements of each relevant arm.

    `share` is the part of delta that the scale may cost. `pooled` says that all arms have the same scale,
    which then is known much better.
    """

    size: int = 12
    share: float = 0.2
    pooled: bool = False

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ParameterError(f"a pilot needs at least 2 measurements of each arm, got size={self.size!r}")
        if not 0 < self.share < 1:
            raise ParameterError(f"share is the pilot's part of delta, between 0 and 1, got {self.share!r}")

    def counts(self, problem: AnyProblem) -> IntArray:
        """How often the pilot measures each arm."""
        return np.where(problem.relevant, self.size, 0).astype(np.int64)

    def scale_bound(self, variances: FloatArray, problem: AnyProblem, delta: float) -> FloatArray:
        """For each arm a scale that is not too small, except with probability share * delta in all.

        `variances` are the arms' sample variances; arms that nobody measures get the largest bound.
        """
        relevant = problem.relevant
        n_arms = int(relevant.sum())
        seen = variances[relevant]
        _refuse_constant(seen, problem)
        if self.pooled:
            freedom, level, seen = n_arms * (self.size - 1), self.share * delta, np.full(n_arms, seen.mean())
        else:
            freedom, level = self.size - 1, self.share * delta / n_arms
        factor = math.sqrt(freedom / float(stats.chi2.ppf(level, freedom)))
        bound = np.full(problem.n_arms, factor * math.sqrt(float(seen.max())))
        bound[relevant] = factor * np.sqrt(seen)
        return bound

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Pilot:
        """The pilot that these JSON values describe."""
        return cls(**data)


def with_scale(problem: P, scale: FloatArray) -> P:
    """The same problem, with this noise scale.

    >>> from surepick.problem import Problem
    >>> with_scale(Problem([[1, 0], [0, 1]], noise_scale=None), np.array([1.0, 2.0])).noise_scale.tolist()
    [1.0, 2.0]
    """
    return replaced(problem, per_arm("noise_scale", scale, problem.arm_names), problem.bounds)


def after_pilot(policy: Policy, pilot: Pilot) -> Policy:
    """The same policy with the part of delta that the pilot leaves."""
    left = (1.0 - pilot.share) * policy.delta
    return cast(Policy, dataclasses.replace(cast(Any, policy), delta=left))


def may_use_pilot(policy: Policy) -> bool:
    """Whether the policy's proof allows it to take in the pilot's measurements."""
    return policy.name in USES_PILOT


def _refuse_constant(variances: FloatArray, problem: AnyProblem) -> None:
    if not (variances > 0).all():
        arm = int(np.flatnonzero(problem.relevant)[int(np.argmin(variances > 0))])
        raise ProblemError(
            f"all pilot measurements of arm {arm} ({problem.arm_names[arm]!r}) are equal, so its noise "
            "cannot be learned from them; give noise_scale yourself"
        )
