"""RAGE: halve the resolution each phase, measure by the best design for the plans left, drop the worse ones.

Paper: Fiez, Jain, Jamieson & Ratliff (2019), Sequential Experimental Design for Transductive Linear Bandits;
here measurements are of single arms. Phase t, delta_t = delta/t^2, Z the plans left, rho = min over designs
lambda of the max over pairs of Z of sum_s y_s^2/lambda_s (`design.pair_allocation`, certified):

| | paper | authors' code |
|---|---|---|
| measurements N, or r if larger | 8 (2^(t+1))^2 (1+eps) rho R^2 log(K^2/delta_t) | 2^(t-1), 2K^2 instead |
| eps, floor r | 1/5, (d(d+1)/2 + 1)/eps | 1/10, 20 |support of lambda| |
| drop z when some z' has | (z'-z).mean >= 2^-(t+2) | (z'-z).mean >= sqrt(2 R^2 sum y^2/n log(2K^2/delta_t)) |

lambda is rounded to N by Pukelsheim's rule, and means are those of the phase alone.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem.

Proof status: proved, both variants. A phase's counts are fixed before it, so fixed-count tails hold.
Paper: the rounded design has sum y^2/n <= (1+eps) rho/N for every pair, so that z' beats the best plan by
2^-(t+2) with probability at most delta_t/K^2; over K plans and all phases 1.65 delta/K in all. Authors:
the same with delta_t/(2K^2), whatever the design.

Deviations: noise scales per arm enter as scaled plans; d counts the arms on which plans differ, and the
others are not measured; costs of measurements are not used. The design is optimal to 1 part in 1,000, and
N uses its own value, not the optimum.

Vectors apart from the plans, its own setting, are measured by `probe_phases`.

Cost of a phase: one design, some milliseconds to tenths of a second; dropping costs K values (authors: K^2
pairs).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.design.pairs import pair_allocation
from surepick.design.rounding import round_allocation
from surepick.errors import ParameterError
from surepick.peers.phased.probe_phases import RAGEPhases
from surepick.peers.phased.run import Phase, PhasedRun
from surepick.policies.sound import SoundPolicy

PAPER_EPS, AUTHORS_EPS = 1 / 5, 1 / 10
AUTHORS_FLOOR = 20  # measurements per arm of the design's support


@dataclass(frozen=True)
class RAGE(SoundPolicy):
    """Drop plans in phases of ever finer resolution, each phase optimally divided between the arms.

    `variant="paper"` has the published constants, `"authors"` those of the authors' code, which needs far
    fewer measurements.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise_scale=1)
    >>> sp.simulate(problem, sp.RAGE(delta=0.05), sp.Gaussian([1.0, 0.0]), seed=1).plan
    0
    """

    variant: str = "paper"

    name: ClassVar[str] = "RAGE"
    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("paper", "authors"):
            raise ParameterError(f"variant must be 'paper' or 'authors', got {self.variant!r}")

    def start(self, problem: Problem) -> PhasedRun | RAGEPhases:
        """A fresh run on this problem."""
        if problem.probes is not None:
            if self.variant == "paper":
                raise ParameterError(
                    "RAGE on probes has the authors' constants, whose radii are those of the rounded design; "
                    "use RAGE(variant='authors')"
                )
            return RAGEPhases(problem, self.delta)
        survivors = self._above_resolution if self.variant == "paper" else self._above_radius
        return PhasedRun(problem, self._counts, survivors)

    def _counts(self, phase: Phase, rng: np.random.Generator) -> IntArray:
        """The phase's optimal design, rounded to N measurements."""
        design = pair_allocation(phase.plans)
        n_support = int(np.count_nonzero(design.weights))
        n = phase_size(self, phase, rho=design.value, n_support=n_support)
        return round_allocation(design.weights, n)

    def _above_resolution(self, phase: Phase, counts: IntArray, means: FloatArray) -> BoolArray:
        values = phase.plans @ means
        return np.asarray(values.max() - values < 2.0 ** -(phase.number + 2))

    def _above_radius(self, phase: Phase, counts: IntArray, means: FloatArray) -> BoolArray:
        values = phase.plans @ means
        points = np.divide(phase.plans, np.sqrt(counts), where=counts > 0, out=np.zeros(phase.plans.shape))
        points -= points.mean(axis=0)
        norms = np.einsum("ks,ks->k", points, points)
        variances = np.maximum(norms[:, None] + norms - 2 * points @ points.T, 0)  # (K, K) sum y^2/n
        radii = np.sqrt(2 * variances * _log_term(self, phase))
        lead = values[:, None] - values  # row z' over column z
        dropped = (lead >= radii) & (lead > 0)
        return np.asarray(~dropped.any(axis=0))


def phase_size(policy: RAGE, phase: Phase, *, rho: float, n_support: int) -> int:
    """N, the measurements of this phase, for a design of value rho (noise scale included).

    >>> import numpy as np
    >>> phase = Phase(1, np.eye(2), n_plans=2)
    >>> phase_size(RAGE(0.1), phase, rho=4.0, n_support=2)  # 8 * 16 * 1.2 * 4 * log(40)
    2267
    """
    paper = policy.variant == "paper"
    n_arms = phase.plans.shape[1]
    eps = PAPER_EPS if paper else AUTHORS_EPS
    finest = 2.0 ** (phase.number + 1 if paper else phase.number - 1)
    floor = (n_arms * (n_arms + 1) / 2 + 1) / eps if paper else AUTHORS_FLOOR * n_support
    return max(math.ceil(8 * finest**2 * (1 + eps) * rho * _log_term(policy, phase)), math.ceil(floor))


def _log_term(policy: RAGE, phase: Phase) -> float:
    """log(K^2 / delta_t), in the authors' code log(2 K^2 / delta_t)."""
    two = 1 if policy.variant == "paper" else 2
    return math.log(two * phase.n_plans**2 * phase.number**2 / policy.delta)
