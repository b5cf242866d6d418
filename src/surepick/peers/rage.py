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

Where vectors are measured apart from the plans, its own setting, y' M^-1 y takes the place of sums over arms.
That is proved for the authors' constants, whose radius is that of the rounded design itself. The published
constants rest on a rounding within 1/5 of the optimal design for every pair, which is known for single arms
only; so they are refused on probes. In the authors' code the radius has the number of measurement vectors in
the logarithm where the union is over plans; here it has plans.

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
from surepick.design.counts import round_allocation
from surepick.design.information import information_of
from surepick.design.minimax import minimax
from surepick.design.pairs import pair_allocation
from surepick.errors import ParameterError
from surepick.peers.linear import readings_of
from surepick.peers.phases import Phase, PhasedRun
from surepick.policies.sound import SoundPolicy

PAPER_EPS, AUTHORS_EPS = 1 / 5, 1 / 10
AUTHORS_FLOOR = 20  # measurements per arm or vector of the design's support
_MOST_PAIRS = 4000  # that a design over probes looks at; beyond, plans and their mean, which costs a factor
_SUPPORT = 1e-5  # least share of a vector in the design


@dataclass(frozen=True)
class RAGE(SoundPolicy):
    """Drop plans in phases of ever finer resolution, each phase with its optimal design.

    `variant="paper"` has the published constants, `"authors"` those of the authors' code, which needs far
    fewer measurements.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, sp.Gaussian([1.0, 0.0]), policy=sp.RAGE(delta=0.05), seed=1).plan
    0
    """

    variant: str = "paper"

    name: ClassVar[str] = "RAGE"
    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("paper", "authors"):
            raise ParameterError(
                f"variant must be 'paper' or 'authors', got {self.variant!r}", field="variant"
            )

    def start(self, problem: Problem) -> RAGERun:
        """Return a fresh run on this problem."""
        if problem.probes is None:
            return RAGERun(problem, self)
        if self.variant == "paper":
            raise ParameterError(
                "RAGE on probes has the authors' constants, whose radii are those of the rounded design; "
                "use RAGE(variant='authors')",
                field="variant",
            )
        return RAGEOnProbes(problem, self)


class RAGERun(PhasedRun):
    """A run of RAGE on single arms."""

    def __init__(self, problem: Problem, policy: RAGE) -> None:
        super().__init__(readings_of(problem, policy.name))
        self._delta, self._as_authors = policy.delta, policy.variant == "authors"

    @property
    def log_term(self) -> float:
        """log(K^2 / delta_t), in the authors' code log(2 K^2 / delta_t)."""
        return math.log((1 + self._as_authors) * self.n_plans**2 * self._number**2 / self._delta)

    def size(self, rho: float, n_support: int, n_arms: int) -> int:
        """Return N, the measurements of this phase, for a design of value rho (noise scale included).

        >>> run = RAGE(0.1).start(Problem([[1, 0], [0, 1]], noise=1, goal="largest"))
        >>> run.size(4.0, 2, 2)  # 8 * 16 * 1.2 * 4 * log(40)
        2267
        """
        eps = AUTHORS_EPS if self._as_authors else PAPER_EPS
        finest = 2.0 ** (self._number - 1 if self._as_authors else self._number + 1)
        floor = AUTHORS_FLOOR * n_support if self._as_authors else (n_arms * (n_arms + 1) / 2 + 1) / eps
        return max(math.ceil(8 * finest**2 * (1 + eps) * rho * self.log_term), math.ceil(floor))

    def design(self, plans: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the phase's optimal design, rounded to N measurements."""
        del plans, rng  # in units of the noise scales; nothing is drawn
        design = pair_allocation(self.scaled_plans)
        support = int(np.count_nonzero(design.weights))
        return round_allocation(design.weights, self.size(design.value, support, len(design.weights)))

    def survivors(self, phase: Phase) -> BoolArray:
        """Return the plans within the resolution of the best; authors: those that none beats by a radius."""
        if self._as_authors:
            return super().survivors(phase)
        return np.asarray(phase.values.max() - phase.values < 2.0 ** -(self._number + 2))


class RAGEOnProbes(RAGERun):
    """A run of RAGE where vectors are measured, with the authors' constants."""

    def __init__(self, problem: Problem, policy: RAGE) -> None:
        super().__init__(problem, policy)
        assert problem.probes is not None
        self._information = information_of(problem.probes)

    def design(self, plans: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the optimal design for all pairs, rounded up."""
        del rng  # nothing is drawn
        first, second = np.triu_indices(len(plans), 1)
        targets, factor = plans[first] - plans[second], 1.0
        if len(first) > _MOST_PAIRS:
            targets, factor = plans - plans.mean(axis=0), 4.0  # |a - b|^2 <= 4 max |a - mean|^2
        design = minimax(
            self._information, targets, np.ones(self._readings.n_ways), tolerance=0.05, most_steps=400
        )
        shares = np.where(design.shares > _SUPPORT, design.shares, 0.0)
        shares, support = shares / shares.sum(), int(np.count_nonzero(shares))
        n = self.size(factor * design.upper, support, 0)
        counts: IntArray = np.ceil((n - 0.5 * support) * shares).astype(np.int64)
        return counts
