"""Phases that halve the resolution and drop plans: RAGE, Peace, NaiveGapElim.

RAGE: halve the resolution each phase, measure by the best design for the plans left, drop the worse ones.

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

Peace: RAGE with the Gaussian width of the plans left in place of a union over them.

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

NaiveGapElim: know all gaps between the sets left twice as well each phase, and drop the worse ones.

Paper: Chen, Gupta, Li, Qiao & Wang (2017), Nearly Optimal Sampling Algorithms for Combinatorial Pure
Exploration. In phase r = 1, 2, ..., with eps = 2^-r, delta_r = delta / (10 r^3 K^2) and F the sets left of K:

    1. m = the fewest measurements with sum of 1/m_s over the symmetric difference of A and B at most
       eps^2 / (32 log(2/delta_r)), for all A and B in F;
    2. measure arm s m_s times;
    3. keep the sets whose estimate is within eps/2 of the largest.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem.

Proof status: proved: the counts of a phase are fixed before it, so that every gap is within eps/4 except with
probability delta_r; over K^2 pairs and all phases that is less than delta.

Deviations: m is the design of RAGE (`design.pair_allocation`, optimal to 1 part in 1,000), rounded up; noise
scales enter as scaled sets. Reconstructed in its constants from the paper's text. Plans must be sets of arms:
symmetric differences are defined for them alone, as Nakamura & Sugiyama say. Costs are not used.

Cost of a phase: one design, some milliseconds to tenths of a second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.guarantee import GAUSSIAN
from surepick.core.plan_sets import check_zeros_and_ones
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.design.counts import refuse_too_many, round_allocation
from surepick.design.information import information_of
from surepick.design.minimax import minimax
from surepick.design.pairs import pair_allocation, width_allocation
from surepick.errors import ParameterError
from surepick.peers.linear import readings_of
from surepick.peers.phases import Phase, PhasedRun
from surepick.policies.sound import SoundPolicy, check_choice

PAPER_EPS, AUTHORS_EPS = 1 / 5, 1 / 10
AUTHORS_FLOOR = 20  # measurements per arm or vector of the design's support
_MOST_PAIRS = 4000  # that a design over probes looks at; beyond, plans and their mean, which costs a factor
_SUPPORT = 1e-5  # least share of a vector in the design


@dataclass(frozen=True)
class RAGE(SoundPolicy):
    """Drop plans in phases of ever finer resolution, each phase with its optimal design.

    `variant="paper"` has the published constants, `"authors"` those of the authors' code, which needs far
    fewer measurements.
    """

    variant: str = "paper"

    name: ClassVar[str] = "RAGE"
    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, "paper", "authors")

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
        del plans, rng  # `scaled_plans` are these plans in units of the noise; nothing is drawn
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


EPS = 1 / 10


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


@dataclass(frozen=True)
class Peace(SoundPolicy):
    """Drop plans in phases of ever finer resolution, sized by how far a random world could spread the plans.

    `max_gap` is the largest difference in value between two plans, if it is known; otherwise one
    measurement of every arm sets it.
    """

    max_gap: float | None = None

    name: ClassVar[str] = "Peace"
    _run: ClassVar[type[Any]] = PeaceRun
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


@dataclass(frozen=True)
class NaiveGapElim(SoundPolicy):
    """Know gaps twice as well each phase and drop the sets that are further behind, for sets of arms."""

    name: ClassVar[str] = "NaiveGapElim"

    def start(self, problem: Problem) -> NaiveGapElimRun:
        """Return a fresh run on this problem, whose plans must be sets of arms."""
        check_zeros_and_ones(
            problem,
            self.name,
            "it goes by symmetric differences, which real amounts do not have; use RAGE, which takes any "
            "numbers",
        )
        return NaiveGapElimRun(problem, self)


class NaiveGapElimRun(PhasedRun):
    """A run of NaiveGapElim."""

    def __init__(self, problem: Problem, policy: NaiveGapElim) -> None:
        refuse_probes(problem, policy.name)
        super().__init__(readings_of(problem, policy.name))
        self._delta = policy.delta

    @property
    def log_term(self) -> float:
        """log(2 / delta_r)."""
        return math.log(20.0 * self._number**3 * self.n_plans**2 / self._delta)

    def design(self, plans: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return m: the design times what makes every gap precise enough."""
        del plans, rng  # `scaled_plans` are these plans in units of the noise; nothing is drawn
        design = pair_allocation(self.scaled_plans)
        n = 32.0 * self.log_term * design.value / 4.0**-self._number
        refuse_too_many(n)
        counts: IntArray = np.ceil(n * design.weights).astype(np.int64)
        return counts

    def survivors(self, phase: Phase) -> BoolArray:
        """Return the sets within eps/2 of the largest estimate."""
        return np.asarray(phase.values >= phase.values.max() - 2.0**-self._number / 2.0)
