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

from surepick.core.oracle_problem import OracleProblem
from surepick.core.policy import check_delta
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.core.run import Run
from surepick.errors import ParameterError
from surepick.policies.sampling.run import DrawRule, OracleRun, WinnerRun

NO_PROOF = Promise.none(
    "the published proof treats counts that the data chose as fixed; no excess of errors was seen"
).text


@dataclass(frozen=True)
class GenTSExplore:
    """Measure what tells the lead from the plan that beats it by most in many random worlds.

    `q` trades draws for their width, between `delta` and .1 in the paper. On an `OracleProblem` every draw is
    one call of the oracle, and answers are plan vectors; there, and with `draws="all"`, all draws are made.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]])
    >>> sp.simulate(problem, sp.GenTSExplore(delta=0.05), sp.Gaussian([1.0, 0.0]), seed=1).plan
    0
    """

    delta: float = 0.05
    q: float = 0.1
    draws: str = "winner"

    name: ClassVar[str] = "GenTSExplore"
    version: ClassVar[int] = 2
    randomized: ClassVar[bool] = True
    takes_oracle: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_draws(self.q, self.draws)

    @property
    def guarantee(self) -> str:
        """What is missing for a promise."""
        return NO_PROOF

    def start(self, problem: Problem | OracleProblem) -> Run:
        """A fresh run on this problem."""
        return start_draws(problem, DrawRule(self.delta, self.q, "gap"), self.draws)


def check_draws(q: float, draws: str) -> None:
    """Refuse a q outside (0, 1/2) and an unknown way of drawing.

    >>> check_draws(0.1, "winner")
    """
    if not 0 < q < 0.5:
        raise ParameterError(f"q must be between 0 and 0.5 (in the paper from delta to 0.1), got {q!r}")
    if draws not in ("winner", "all"):
        raise ParameterError(f"draws must be 'winner' or 'all', got {draws!r}")


def start_draws(problem: Problem | OracleProblem, rule: DrawRule, draws: str) -> Run:
    """The run that suits the problem: compiled for listed plans, one oracle call a draw otherwise."""
    if problem.is_listed and draws == "winner":
        return WinnerRun(problem, rule)
    return OracleRun(problem, rule)
