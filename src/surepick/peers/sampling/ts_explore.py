"""TS-Explore: GenTS-Explore's elder, for plans that are sets of arms.

Paper: Wang & Zhu (2022), Thompson Sampling for (Combinatorial) Pure Exploration. Draws and stop as in
GenTS-Explore with C = L / phi(q)^2 for measurements in [0, 1], which is 4 R^2 L / phi(q)^2 at their scale
R = 1/2; the arm is the least measured one that lead and rival do not share.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem; with noise_scale = 1/2,
the paper's measurements in [0, 1].

Proof status: none that we vouch for, as for GenTS-Explore: the tail bound is for fixed counts.

Deviations: arms on which all plans agree are not measured; other noise scales than 1/2 widen the draws in
proportion; `draws="winner"` draws the winner of the M draws with its exact law in place of the M draws.

Cost of a round: that of GenTS-Explore.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.oracle_problem import OracleProblem
from surepick.core.problem import Problem
from surepick.core.run import Run
from surepick.core.zeros_and_ones import check_zeros_and_ones
from surepick.peers.sampling.run import DrawPolicy


@dataclass(frozen=True)
class TSExplore(DrawPolicy):
    """For plans of zeros and ones: measure the least known arm on which the lead and a drawn rival differ.

    On an `OracleProblem` the plans are taken to be zeros and ones, as nobody can look at all of them.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 1, 0], [0, 1, 1]], noise_scale=0.5)
    >>> sp.simulate(problem, sp.TSExplore(delta=0.05), sp.Bernoulli([0.9, 0.5, 0.1]), seed=1).plan
    0
    """

    name: ClassVar[str] = "TSExplore"
    _arm_rule: ClassVar[str] = "naive"

    def start(self, problem: Problem | OracleProblem) -> Run:
        """A fresh run on this problem."""
        if problem.is_listed:
            check_zeros_and_ones(problem, self.name, "use GenTSExplore, which takes any numbers")
        return super().start(problem)
