"""Peace: RAGE with the Gaussian width of the plans left in place of a union over them.

Paper: Katz-Samuels, Jain, Karnin & Jamieson (2020), An Empirical Process Approach to the Union Bound;
here measurements are of single arms. Phase k, delta_k = delta/(2k^2), Z the plans left, B = `max_gap`:
tau(lambda) = (E max_{z,z' in Z} (z-z').diag(lambda)^(-1/2) eta)^2 + 2 log(1/delta_k) max sum_s
(z-z')_s^2/lambda_s; lambda makes tau small (`design.width_allocation`), N = max(ceil(2 (1+eps) tau R^2
(2^(k+1)/B)^2), d/eps^2), eps = 1/10, rounded by Pukelsheim's rule; a plan is dropped when some other
leads it by B/2^(k+1) or more in the means of the phase alone.

Assumption: independent Gaussian measurements with the noise scale of the problem.

Proof status: proved up to the Monte-Carlo error of tau, and for any B > 0 that does not depend on the
phases' measurements. A phase's counts are fixed before it; by the concentration of Gaussian suprema all
differences are within B/2^(k+1) of the truth but for probability delta_k, so the best plan stays. B only
sets the first resolution: too small costs measurements in the first phases, too large costs phases. tau
is estimated from 2,000 draws of its own, a standard error of about 1%, and the bound (a+b)^2 <= 2a^2 +
2b^2 behind N has more room than that.

Deviations: without `max_gap`, B is ours, the paper assuming it known: every arm is measured once first,
and B is the largest estimated gap plus a bound on the standard deviation of the widest; those
measurements are used for nothing else. Noise scales per arm enter as scaled plans; d counts the arms on
which plans differ, and the others are not measured; costs of measurements are not used.

Cost of a phase: a design by 80 steps of stochastic mirror descent, some hundredths to tenths of a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.promise import GAUSSIAN
from surepick.design.rounding import round_allocation
from surepick.design.width import width_allocation
from surepick.errors import ParameterError
from surepick.peers.phased.run import Phase, PhasedRun
from surepick.policies.sound import SoundPolicy

EPS = 1 / 10


@dataclass(frozen=True)
class Peace(SoundPolicy):
    """Drop plans in phases of ever finer resolution, sized by how far a random world could spread the plans.

    `max_gap` is the largest difference in value between two plans, if it is known; otherwise one
    measurement of every arm sets it.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise_scale=1)
    >>> sp.simulate(problem, sp.Peace(delta=0.05, max_gap=2.0), sp.Gaussian([1.0, 0.0]), seed=1).plan
    0
    """

    max_gap: float | None = None

    name: ClassVar[str] = "Peace"
    randomized: ClassVar[bool] = True
    _assumption: ClassVar[str] = f"{GAUSSIAN}, up to the Monte-Carlo error of the widths"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_gap is not None and not (self.max_gap > 0 and math.isfinite(self.max_gap)):
            raise ParameterError(
                f"max_gap is the largest difference in value between plans, positive, got {self.max_gap!r}; "
                "leave it out if it is unknown"
            )

    def start(self, problem: Problem) -> PhasedRun:
        """A fresh run on this problem."""
        return _PeaceRun(self, problem)


class _PeaceRun(PhasedRun):
    """The phases of Peace; B is known from the start or after the pilot."""

    def __init__(self, policy: Peace, problem: Problem) -> None:
        self._policy = policy
        super().__init__(problem, self._counts, self._above_resolution, pilot=policy.max_gap is None)

    @property
    def max_gap(self) -> float:
        """B."""
        return self._policy.max_gap if self._policy.max_gap is not None else self.pilot_gap

    def _counts(self, phase: Phase, rng: np.random.Generator) -> IntArray:
        log_term = math.log(2 * phase.number**2 / self._policy.delta)
        design = width_allocation(phase.plans, log_term=log_term, rng=rng)
        n = phase_size(phase, tau=design.value, max_gap=self.max_gap)
        return round_allocation(design.weights, n)

    def _above_resolution(self, phase: Phase, counts: IntArray, means: FloatArray) -> BoolArray:
        values = phase.plans @ means
        return np.asarray(values.max() - values < resolution(phase, self.max_gap))


def resolution(phase: Phase, max_gap: float) -> float:
    """B / 2^(k+1), the lead that drops a plan in this phase."""
    return float(max_gap / 2.0 ** (phase.number + 1))


def phase_size(phase: Phase, *, tau: float, max_gap: float) -> int:
    """N, the measurements of this phase, for a design of this tau (noise scale included).

    >>> import numpy as np
    >>> phase_size(Phase(1, np.eye(2), n_plans=2), tau=30.0, max_gap=1.0)  # 2 * 1.1 * 30 * 4^2
    1056
    """
    n_arms = int(phase.plans.shape[1])
    n = float(2 * (1 + EPS) * tau / resolution(phase, max_gap) ** 2)
    return max(math.ceil(n - 1e-9 * n), math.ceil(n_arms / EPS**2 - 1e-9))  # less the rounding of 1.1 and .1
