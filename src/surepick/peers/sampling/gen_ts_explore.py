"""GenTS-Explore: draw many plausible worlds, measure what the strangest disputes, stop when none does.

Paper: Nakamura & Sugiyama (2023), Thompson Sampling for Real-Valued Combinatorial Pure Exploration of
Multi-Armed Bandit. Each round, with t = measurements so far + 1 and L = log(12 K^2 t^2 / delta), makes M
= ceil(L/q) draws theta_s ~ N(mean_s, C/T_s), C = 4 R^2 L / phi(q)^2, phi(q) the upper q-quantile of N(0,
1). It stops with the lead when the lead is best in every draw; otherwise the rival is the best plan of a
draw that beats the lead there by most, and the arm is CombGapE's for that pair.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem.

Proof status: none that we vouch for. The published proof bounds each pair's estimate by a tail for fixed
counts and sums over the rounds, while the counts T_s are chosen by the data: the gap that CombGapE's
published radius has too. The draws are about ten times as wide as the estimates, and no excess of errors
has been seen.

Deviations: arms on which all plans agree are not measured; noise scales and costs per arm enter the draws and
the choice of the arm. The papers draw M whole vectors; by default (`draws="winner"`) what is drawn is the
winner of the M draws, with exactly the law it has in the paper (`winner` has the proof), at a hundredth
of the work. `draws="all"` makes every draw.

Cost of a round: `winner`: a few passes over the plans, a hundred cheap proposals, and products of the plans
with a few vectors (12 to 70 microseconds for 990 plans of 51 arms that matter, less as
the run goes on); `all`: M n_arms normal numbers and M oracle calls, in one matrix product for listed plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.peers.sampling.run import DrawPolicy


@dataclass(frozen=True)
class GenTSExplore(DrawPolicy):
    """Measure what tells the lead from the plan that beats it by most in many random worlds.

    `q` trades draws for their width, between `delta` and .1 in the paper. On an `OracleProblem` every draw is
    one call of the oracle, and answers are plan vectors; there, and with `draws="all"`, all draws are made.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise_scale=1)
    >>> sp.simulate(problem, sp.GenTSExplore(delta=0.05), sp.Gaussian([1.0, 0.0]), seed=1).plan
    0
    """

    name: ClassVar[str] = "GenTSExplore"
    _arm_rule: ClassVar[str] = "gap"
