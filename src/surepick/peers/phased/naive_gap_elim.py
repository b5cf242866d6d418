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
from surepick.core.problem import Problem
from surepick.core.zeros_and_ones import check_zeros_and_ones
from surepick.design.pairs import pair_allocation
from surepick.design.rounding import refuse_too_many
from surepick.peers.phased.run import Phase, PhasedRun
from surepick.policies.sound import SoundPolicy


@dataclass(frozen=True)
class NaiveGapElim(SoundPolicy):
    """Know gaps twice as well each phase and drop the sets that are further behind, for sets of arms.

    >>> import surepick as sp
    >>> problem = sp.problems.top_k(["a", "b", "c"], 2, noise_scale=1)
    >>> sp.simulate(problem, sp.policies.NaiveGapElim(), sp.Gaussian([2.0, 1.0, 0.0]), seed=1).plan_name
    'a + b'
    """

    name: ClassVar[str] = "NaiveGapElim"

    def start(self, problem: Problem) -> PhasedRun:
        """A fresh run on this problem, whose plans must be sets of arms."""
        check_zeros_and_ones(
            problem,
            self.name,
            "it goes by symmetric differences, which real amounts do not have; use RAGE, which takes any "
            "numbers",
        )
        return PhasedRun(problem, self._counts, survivors)

    def _counts(self, phase: Phase, rng: np.random.Generator) -> IntArray:
        """m: the design times what makes every gap precise enough."""
        del rng  # nothing is drawn
        design = pair_allocation(phase.plans)
        log_term = math.log(20.0 * phase.number**3 * phase.n_plans**2 / self.delta)
        n = 32.0 * log_term * design.value / 4.0**-phase.number
        refuse_too_many(n)
        counts: IntArray = np.ceil(n * design.weights).astype(np.int64)
        return counts


def survivors(phase: Phase, counts: IntArray, means: FloatArray) -> BoolArray:
    """Who is within eps/2 of the largest estimate.

    >>> phase = Phase(1, np.eye(3), n_plans=3)
    >>> survivors(phase, np.ones(3, dtype=np.int64), np.array([0.5, 0.3, 0.2])).tolist()
    [True, True, False]
    """
    del counts
    values = phase.plans @ means
    return np.asarray(values >= values.max() - 2.0**-phase.number / 2.0)
