"""Elimination in phases: design a phase, measure it whole, drop plans, repeat; RAGE, Peace, NaiveGapElim.

A phase is estimated by least squares from its own measurements, whose counts are fixed before any of them is
seen, so that fixed-count tails hold: a plan may be dropped when another is ahead of it by sqrt(2 y' M^+ y
log_term), y their difference and M the information of the phase. A difference that the phase did not read
drops no plan. Noise scales per arm enter as scaled plans; d counts the arms on which plans differ, and the
others are not measured; costs are not used. Assumption: independent sub-Gaussian measurements with the noise
scale of the problem (Peace: Gaussian). A phase costs one design, milliseconds to tenths of a second.

**RAGE**: Fiez, Jain, Jamieson & Ratliff (2019), Sequential Experimental Design for Transductive Linear
Bandits. Phase t, delta_t = delta/t^2, Z the plans left of K, rho = min over designs lambda of the max over
pairs of Z of sum_s y_s^2/lambda_s (`design.pair_allocation`, optimal to 1 part in 1,000), rounded by
Pukelsheim's rule:

| | paper | authors' code |
|---|---|---|
| measurements N, or r if larger | 8 (2^(t+1))^2 (1+eps) rho R^2 log(K^2/delta_t) | 2^(t-1), 2K^2 instead |
| eps, floor r | 1/5, (d(d+1)/2 + 1)/eps | 1/10, 20 |support of lambda| |
| drop z when some z' has | (z'-z).mean >= 2^-(t+2) | (z'-z).mean >= sqrt(2 R^2 sum y^2/n log(2K^2/delta_t)) |

Proved, both. Paper: the rounded design has sum y^2/n <= (1+eps) rho/N for every pair, so that z' beats the
best plan by 2^-(t+2) with probability at most delta_t/K^2; over K plans and all phases 1.65 delta/K in all.
Authors: the same with delta_t/(2K^2), whatever the design. Where vectors are measured apart from the plans,
y' M^-1 y takes the place of sums over arms. That is proved for the authors' constants, whose radius is that
of the rounded design itself; the published ones rest on a rounding that is known for single arms only, so
they are refused on probes. The authors' code has the number of measurement vectors in the logarithm where the
union is over plans; here it has plans.

**Peace**: Katz-Samuels, Jain, Karnin & Jamieson (2020), An Empirical Process Approach to the Union Bound:
RAGE with the Gaussian width of the plans left in place of a union. Phase k, delta_k = delta/(2k^2), B =
`max_gap`: tau(lambda) = (E max_{z,z' in Z} (z-z').diag(lambda)^(-1/2) eta)^2 + 2 log(1/delta_k) max sum_s
(z-z')_s^2/lambda_s; lambda makes tau small (`design.width_allocation`), N = max(ceil(2 (1+eps) tau R^2
(2^(k+1)/B)^2), d/eps^2), eps = 1/10; a plan is dropped when some other leads it by B/2^(k+1) or more. Proved
up to the Monte-Carlo error of tau (2,000 draws, about 1%; the bound (a+b)^2 <= 2a^2 + 2b^2 behind N has more
room than that), for any B > 0 that does not depend on the phases' measurements: by the concentration of
Gaussian suprema all differences are within B/2^(k+1) of the truth but for probability delta_k. B only sets
the first resolution. Deviation: the paper assumes it known; without `max_gap` every arm is measured once
first, and B is the largest estimated gap plus a bound on the standard deviation of the widest.

**NaiveGapElim**: Chen, Gupta, Li, Qiao & Wang (2017), Nearly Optimal Sampling Algorithms for Combinatorial
Pure Exploration. Phase r, eps = 2^-r, delta_r = delta / (10 r^3 K^2): m = the fewest measurements with sum of
1/m_s over the symmetric difference of any two sets left at most eps^2 / (32 log(2/delta_r)); keep the sets
whose estimate is within eps/2 of the largest. Proved: every gap is within eps/4 except with probability
delta_r, over K^2 pairs and all phases. Deviations: m is the design of RAGE, rounded up; constants are
reconstructed from the paper's text. Plans must be sets of arms, for which alone symmetric differences are
defined.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, divided
from surepick.core.guarantee import GAUSSIAN
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.design.allocation import pair_allocation, width_allocation
from surepick.design.counts import refuse_too_many, round_allocation
from surepick.design.information import Dense, Diagonal, information_of
from surepick.design.minimax import minimax
from surepick.errors import ParameterError
from surepick.peers.linear import Readings, readings_of
from surepick.peers.sequential import RoundRun, among, best_two
from surepick.policies.sound import SoundPolicy, check_choice, check_setting

_RANK = 1e-9  # of the largest eigenvalue: information below it is none
_HIDDEN = 1e-6  # of the largest plan: a difference of which more was not read is not compared
PAPER_EPS, AUTHORS_EPS, PEACE_EPS = 1 / 5, 1 / 10, 1 / 10
AUTHORS_FLOOR = 20  # measurements per arm or vector of the design's support
_MOST_PAIRS = 4000  # that a design over probes looks at; beyond, plans and their mean, which costs a factor
_SUPPORT = 1e-5  # least share of a vector in the design


class PhasedRun(RoundRun):
    """A run in phases. Plans are in lexicographic order, so that no decision depends on their listing."""

    def __init__(self, readings: Readings, policy: SoundPolicy) -> None:
        self._readings = readings
        self._delta = policy.delta
        self._n_plans = len(readings.plans)  # all of them: the K of the papers
        self._active: IntArray = np.lexsort(readings.plans.T[::-1])  # plans left, by number
        self._number = 1  # of the phase
        self._standing = Standing()

    @abstractmethod
    def _design(self, rng: np.random.Generator) -> IntArray:
        """Return how often to use each option in this phase; called once a phase."""

    @property
    @abstractmethod
    def _log_term(self) -> float:
        """L in the radius sqrt(2 V L) of a gap between two plans, with V its variance in this phase."""

    @property
    def _plans(self) -> FloatArray:
        """The plans left, (n_left, rank)."""
        return self._readings.plans[self._active]

    @property
    def _scaled_plans(self) -> FloatArray:
        """The plans left, on single arms in units of their noise scales."""
        return np.asarray(self._plans / np.diag(self._readings.rows))

    def _decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return all counts of the next phase at once, or the only plan left."""
        if len(self._active) == 1:
            return Stop(int(self._active[0]))
        return Measure(self._readings.counts(self._design(rng)))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Estimate from a whole phase, and drop plans by it."""
        super().absorb(counts, sums)
        matrix = self._readings.information(counts[self._readings.numbers].astype(float))
        inverse = _inverse(matrix)
        values = self._plans @ (inverse @ self._readings.cross_product(sums))
        self._standing = best_two(values, self._active)
        self._active = self._active[self._survivors(values, matrix, inverse)]
        self._number += 1

    def _survivors(self, values: FloatArray, matrix: FloatArray, inverse: FloatArray) -> BoolArray:
        """Return which plans stay: here those that no other is ahead of by its radius.

        - values: (n_left,) estimates of the plans left.
        - matrix, inverse: (rank, rank) the information M of the phase, and its pseudo-inverse.
        """
        plans = self._plans
        solved = plans @ inverse
        unread = plans - solved @ matrix  # the part of each plan that the phase did not read
        norms = np.einsum("kd,kd->k", solved, plans)
        # variances of all gaps at once: (a - b)'M^+ (a - b) = a'M^+ a + b'M^+ b - 2 a'M^+ b
        variances = np.maximum(norms[:, None] + norms - 2 * solved @ plans.T, 0)
        for k in range(len(plans)):
            hidden = np.linalg.norm(unread - unread[k], axis=1) > _HIDDEN * np.abs(plans).max()
            variances[k, hidden] = np.inf
        ahead = values[:, None] - values  # of the row's plan over the column's
        dropped = (ahead >= np.sqrt(2 * variances * self._log_term)) & (ahead > 0)
        return np.asarray(~dropped.any(axis=0))

    def standing(self) -> Standing:
        """Return the leader and rival of the last phase, and the plans left, which hold the best one."""
        return among(self._standing, self._active)


def _inverse(matrix: FloatArray) -> FloatArray:
    """Return the pseudo-inverse; of single arms without the work of an eigenvalue problem.

    >>> _inverse(np.diag([4.0, 0.0])).tolist()
    [[0.25, 0.0], [0.0, 0.0]]
    """
    diagonal = np.diag(matrix)
    if np.count_nonzero(matrix) == np.count_nonzero(diagonal):
        return np.diag(divided(1.0, diagonal))
    return np.asarray(np.linalg.pinv(matrix, rcond=_RANK, hermitian=True))


class RAGERun(PhasedRun):
    """A run of RAGE, on single arms or where vectors are measured."""

    def __init__(self, problem: Problem, policy: RAGE) -> None:
        super().__init__(readings_of(problem, policy.name), policy)
        self._as_authors = policy.variant == "authors"
        self._information = None if problem.probes is None else information_of(problem.probes)
        if self._information and not self._as_authors:
            raise ParameterError(
                "RAGE on probes has the authors' constants, whose radii are those of the rounded design; "
                "use RAGE(variant='authors')",
                field="variant",
            )

    @property
    def _log_term(self) -> float:
        return math.log((1 + self._as_authors) * self._n_plans**2 * self._number**2 / self._delta)

    def size(self, rho: float, n_support: int, n_arms: int) -> int:
        """Return N, the measurements of this phase, for a design of value rho (noise scale included).

        >>> run = RAGE(0.1).start(Problem([[1, 0], [0, 1]], noise=1, goal="largest"))
        >>> run.size(4.0, 2, 2)  # 8 * 16 * 1.2 * 4 * log(40)
        2267
        """
        eps = AUTHORS_EPS if self._as_authors else PAPER_EPS
        finest = 2.0 ** (self._number - 1 if self._as_authors else self._number + 1)
        floor = AUTHORS_FLOOR * n_support if self._as_authors else (n_arms * (n_arms + 1) / 2 + 1) / eps
        return max(math.ceil(8 * finest**2 * (1 + eps) * rho * self._log_term), math.ceil(floor))

    def _design(self, rng: np.random.Generator) -> IntArray:
        """Return the phase's optimal design, rounded to N measurements."""
        if self._information is not None:
            return self._design_of_probes(self._information)
        found = pair_allocation(self._scaled_plans)
        n_support = int(np.count_nonzero(found.weights))
        return round_allocation(found.weights, self.size(found.value, n_support, len(found.weights)))

    def _design_of_probes(self, information: Diagonal | Dense) -> IntArray:
        """Return the optimal design over probes, rounded up as Pukelsheim's rule begins."""
        plans = self._plans
        first, second = np.triu_indices(len(plans), 1)
        targets, factor = plans[first] - plans[second], 1.0
        if len(first) > _MOST_PAIRS:  # |a - b|^2 <= 4 max |a - mean|^2, in any norm
            targets, factor = plans - plans.mean(axis=0), 4.0
        every = np.ones(len(self._readings))
        design = minimax(information, targets, every, tolerance=0.05, most_steps=400)
        shares = np.where(design.shares > _SUPPORT, design.shares, 0.0)
        shares = shares / shares.sum()
        n_support = int(np.count_nonzero(shares))
        n = self.size(factor * design.upper, n_support, 0)
        return np.asarray(np.ceil((n - 0.5 * n_support) * shares), dtype=np.int64)

    def _survivors(self, values: FloatArray, matrix: FloatArray, inverse: FloatArray) -> BoolArray:
        """Return the plans within the resolution of the best; authors: those that none beats by a radius."""
        if self._as_authors:
            return super()._survivors(values, matrix, inverse)
        return np.asarray(values.max() - values < 2.0 ** -(self._number + 2))


@dataclass(frozen=True)
class RAGE(SoundPolicy, run=RAGERun):
    """Drop plans in phases of ever finer resolution, each phase with its optimal design.

    `variant="paper"` has the published constants, `"authors"` those of the authors' code, which needs far
    fewer measurements.
    """

    variant: str = "paper"

    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, "paper", "authors")


class PeaceRun(PhasedRun):
    """A run of Peace; B is known from the start, or after phase 0, which measures every arm once."""

    def __init__(self, problem: Problem, policy: Peace) -> None:
        refuse_probes(problem, policy.name)
        super().__init__(readings_of(problem, policy.name), policy)
        self._max_gap = policy.max_gap or 0.0
        self._number = 1 if policy.max_gap else 0

    @property
    def _log_term(self) -> float:
        return math.log(2 * self._number**2 / self._delta)

    @property
    def _resolution(self) -> float:
        """B / 2^(k+1), the lead that drops a plan in this phase."""
        return float(self._max_gap / 2.0 ** (self._number + 1))

    def size(self, tau: float, n_arms: int) -> int:
        """Return N, the measurements of this phase, for a design of this tau (noise scale included).

        >>> run = Peace(max_gap=1.0).start(Problem([[1, 0], [0, 1]], noise=1, goal="largest"))
        >>> run.size(30.0, 2)  # 2 * 1.1 * 30 * 4^2
        1056
        """
        n = float(2 * (1 + PEACE_EPS) * tau / self._resolution**2)
        least = n_arms / PEACE_EPS**2
        return max(math.ceil(n - 1e-9 * n), math.ceil(least - 1e-9))  # less the rounding of 1.1 and .1

    def _design(self, rng: np.random.Generator) -> IntArray:
        """Return the design of least tau, rounded to N; every arm once in phase 0."""
        if not self._number:
            return np.ones(len(self._readings), dtype=np.int64)
        design = width_allocation(self._scaled_plans, log_term=self._log_term, rng=rng)
        return round_allocation(design.weights, self.size(design.value, len(design.weights)))

    def _survivors(self, values: FloatArray, matrix: FloatArray, inverse: FloatArray) -> BoolArray:
        """Return the plans within the resolution of the best; in phase 0 set B and keep all."""
        if self._number:
            return np.asarray(values.max() - values < self._resolution)
        # sqrt(o'M^-1 o) is the standard error of o, a plan less the first one; the standard error of the gap
        # between any two plans is at most twice the largest of these
        offsets = self._plans - self._plans[0]
        variances = np.einsum("kd,de,ke->k", offsets, inverse, offsets)
        self._max_gap = float(np.ptp(values)) + 2 * math.sqrt(float(variances.max()))
        return np.ones(len(values), dtype=bool)


@dataclass(frozen=True)
class Peace(SoundPolicy, run=PeaceRun):
    """Drop plans in phases of ever finer resolution, sized by how far a random world could spread the plans.

    `max_gap` is the largest difference in value between two plans, if it is known; otherwise one
    measurement of every arm sets it.
    """

    max_gap: float | None = None

    randomized: ClassVar[bool] = True
    _assumption: ClassVar[str] = GAUSSIAN
    _besides: ClassVar[str] = ", up to the Monte-Carlo error of the widths"

    def __post_init__(self) -> None:
        super().__post_init__()
        right = self.max_gap is None or 0 < self.max_gap < math.inf
        meaning = "the largest difference in value between plans, above 0, or left out"
        check_setting("max_gap", self.max_gap, right=right, meaning=meaning)


class NaiveGapElimRun(PhasedRun):
    """A run of NaiveGapElim."""

    def __init__(self, problem: Problem, policy: NaiveGapElim) -> None:
        refuse_probes(problem, policy.name)
        super().__init__(readings_of(problem, policy.name), policy)

    @property
    def _log_term(self) -> float:
        return math.log(20.0 * self._number**3 * self._n_plans**2 / self._delta)

    def _design(self, rng: np.random.Generator) -> IntArray:
        """Return m: the design times what makes every gap precise enough."""
        design = pair_allocation(self._scaled_plans)
        n = 32.0 * self._log_term * design.value / 4.0**-self._number
        refuse_too_many(n)
        return np.asarray(np.ceil(n * design.weights), dtype=np.int64)

    def _survivors(self, values: FloatArray, matrix: FloatArray, inverse: FloatArray) -> BoolArray:
        return np.asarray(values >= values.max() - 2.0**-self._number / 2.0)


@dataclass(frozen=True)
class NaiveGapElim(SoundPolicy, run=NaiveGapElimRun):
    """Know gaps twice as well each phase and drop the sets that are further behind, for sets of arms."""

    _sets_only: ClassVar[str] = (
        "it goes by symmetric differences, which real amounts do not have; use RAGE, which takes any numbers"
    )
