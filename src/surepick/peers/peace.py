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
from surepick.core.guarantee import GAUSSIAN
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.design.counts import round_allocation
from surepick.design.pairs import width_allocation
from surepick.errors import ParameterError
from surepick.peers.linear import readings_of
from surepick.peers.phases import Phase, PhasedRun
from surepick.policies.sound import SoundPolicy

EPS = 1 / 10


@dataclass(frozen=True)
class Peace(SoundPolicy):
    """Drop plans in phases of ever finer resolution, sized by how far a random world could spread the plans.

    `max_gap` is the largest difference in value between two plans, if it is known; otherwise one
    measurement of every arm sets it.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.0]), policy=sp.Peace(delta=0.05, max_gap=2.0), seed=1).plan
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
                "leave it out if it is unknown",
                field="max_gap",
            )

    def start(self, problem: Problem) -> PeaceRun:
        """Return a fresh run on this problem."""
        return PeaceRun(problem, self)


class PeaceRun(PhasedRun):
    """A run of Peace; B is known from the start, or after phase 0, which measures every arm once."""

    def __init__(self, problem: Problem, policy: Peace) -> None:
        refuse_probes(problem, policy.name)
        super().__init__(readings_of(problem, policy.name))
        self._delta, self.max_gap = policy.delta, policy.max_gap or 0.0
        self._number = 1 if policy.max_gap else 0

    @property
    def log_term(self) -> float:
        """log(1 / delta_k)."""
        return math.log(2 * self._number**2 / self._delta)

    @property
    def resolution(self) -> float:
        """B / 2^(k+1), the lead that drops a plan in this phase."""
        return float(self.max_gap / 2.0 ** (self._number + 1))

    def size(self, tau: float, n_arms: int) -> int:
        """Return N, the measurements of this phase, for a design of this tau (noise scale included).

        >>> run = Peace(max_gap=1.0).start(Problem([[1, 0], [0, 1]], noise=1, goal="largest"))
        >>> run.size(30.0, 2)  # 2 * 1.1 * 30 * 4^2
        1056
        """
        n = float(2 * (1 + EPS) * tau / self.resolution**2)
        return max(math.ceil(n - 1e-9 * n), math.ceil(n_arms / EPS**2 - 1e-9))  # less rounding of 1.1 and .1

    def design(self, plans: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the design of least tau, rounded to N; every arm once in phase 0."""
        if not self._number:
            return np.ones(plans.shape[1], dtype=np.int64)
        design = width_allocation(self.scaled_plans, log_term=self.log_term, rng=rng)
        return round_allocation(design.weights, self.size(design.value, len(design.weights)))

    def survivors(self, phase: Phase) -> BoolArray:
        """Return the plans within the resolution of the best; in phase 0 set B and keep all."""
        if self._number:
            return np.asarray(phase.values.max() - phase.values < self.resolution)
        offsets = phase.plans - phase.plans[0]  # two plans differ by at most twice the largest
        widest = 2 * math.sqrt(float(np.einsum("kd,de,ke->k", offsets, phase.inverse, offsets).max()))
        self.max_gap = float(np.ptp(phase.values)) + widest
        return np.ones(len(phase.values), dtype=bool)
