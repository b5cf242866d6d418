"""NaiveGapElim: know all gaps between the sets left twice as well each phase, and drop the worse ones.

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
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.plan_sets import check_zeros_and_ones
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.design.counts import refuse_too_many
from surepick.design.pairs import pair_allocation
from surepick.peers.linear import readings_of
from surepick.peers.phases import Phase, PhasedRun
from surepick.policies.sound import SoundPolicy


@dataclass(frozen=True)
class NaiveGapElim(SoundPolicy):
    """Know gaps twice as well each phase and drop the sets that are further behind, for sets of arms.

    >>> import surepick as sp
    >>> problem = sp.problems.top_k(["a", "b", "c"], 2, noise=1, goal="largest")
    >>> sp.simulate(problem, [2.0, 1.0, 0.0], policy=sp.policies.NaiveGapElim(), seed=1).plan_name
    'a + b'
    """

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
        del plans, rng  # in units of the noise scales; nothing is drawn
        design = pair_allocation(self.scaled_plans)
        n = 32.0 * self.log_term * design.value / 4.0**-self._number
        refuse_too_many(n)
        counts: IntArray = np.ceil(n * design.weights).astype(np.int64)
        return counts

    def survivors(self, phase: Phase) -> BoolArray:
        """Return the sets within eps/2 of the largest estimate."""
        return np.asarray(phase.values >= phase.values.max() - 2.0**-self._number / 2.0)
