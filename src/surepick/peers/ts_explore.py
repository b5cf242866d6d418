"""GenTS-Explore and TS-Explore: draw many plausible worlds, and measure what the strangest one disputes.

Papers: Nakamura & Sugiyama (2023), Thompson Sampling for Real-Valued Combinatorial Pure Exploration of
Multi-Armed Bandit (GenTSExplore); Wang & Zhu (2022), Thompson Sampling for (Combinatorial) Pure Exploration
(TSExplore, for plans that are sets of arms). Each round, with t = measurements so far + 1 and
L = log(12 K^2 t^2 / delta):

    1. make M = ceil(L/q) draws theta_s ~ N(mean_s, C/T_s), C = 4 R^2 L / phi(q)^2, where phi(q) is the upper
       q-quantile of N(0, 1); for measurements in [0, 1], R = 1/2, that is the L / phi(q)^2 of TS-Explore;
    2. stop with the leader if it is the best plan in every draw;
    3. the rival is the best plan of a draw that beats the leader there by most. Measure CombGapE's arm for
       this pair (TSExplore: the least measured arm on which they differ).

Assumption: independent sub-Gaussian measurements with the noise scale of the problem. Proof status: none that
we vouch for. The published proofs bound each pair's estimate by a tail for fixed counts, while the counts T_s
are chosen by the data: CombGapE's published radius has the same flaw. The draws are about ten times as wide
as the estimates, and no excess of errors has been seen. Deviations: arms on which all plans agree are not
measured; noise scales and costs per arm enter the draws and the choice of the arm. A round costs M n_arms
normal numbers and M oracle calls: ten milliseconds for 1,000 listed plans of 80 arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.guarantee import Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set
from surepick.core.policy import check_delta, known_noise_scale
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ProblemError
from surepick.peers.sequential import RoundRun
from surepick.policies.sound import Starting, check_setting


class DrawRun(RoundRun):
    """A run of either policy, by the box of the papers."""

    def __init__(self, problem: AnyProblem, policy: GenTSExplore) -> None:
        if problem.n_plans is None:
            raise ProblemError(
                f"{policy.name} needs a bound on the number of plans; pass n_plans to OracleProblem, such as "
                "n_plans=2**n_arms for plans of zeros and ones"
            )
        self._policy = policy
        self._costs = problem.costs
        self._plans = plan_set(problem)
        self._arms = np.flatnonzero(problem.relevant)
        self._scale = known_noise_scale(problem)
        self._log_plans = math.log(problem.n_plans)
        self._quantile = -NormalDist().inv_cdf(policy.q)
        self._counts: IntArray = np.zeros(problem.n_arms, dtype=np.int64)
        self._sums = np.zeros(problem.n_arms)
        self._standing = Standing()

    def _decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Ask for every arm once at first, then for the arm that the draws dispute, or stop."""
        request = np.zeros(len(self._counts), dtype=np.int64)
        if not self._counts.any():
            request[self._arms] = 1
            return Measure(request)
        means = self._sums / np.maximum(self._counts, 1)
        leader = self._plans.best_of_all(means)
        rival = self._rival(means, leader, rng)
        answer = self._plans.answer(leader)
        if rival is None:
            self._standing = Standing(answer)
            return Stop(answer)
        self._standing = Standing(answer, self._plans.answer(rival), float(means @ (leader - rival)))
        request[self._arm(leader - rival)] = 1
        return Measure(request)

    def _rival(self, means: FloatArray, leader: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """Return the plan with the largest margin over the leader in M draws; None if the leader wins all."""
        arms, policy = self._arms, self._policy
        t = self._counts.sum() + 1
        log_term = math.log(12 / policy.delta) + 2 * self._log_plans + 2 * math.log(t)  # L
        width = self._scale[arms] * np.sqrt(4 * log_term / self._quantile**2 / self._counts[arms])
        draws = np.tile(means, (math.ceil(log_term / policy.q), 1))  # (M, n_arms)
        draws[:, arms] += width * rng.standard_normal((len(draws), len(arms)))
        plans = self._plans.best_of_each(draws)
        others = np.flatnonzero((plans != leader).any(axis=1))
        if not others.size:
            return None
        margins = np.einsum("ms,ms->m", draws[others], plans[others] - leader)
        return np.asarray(plans[others[np.argmax(margins)]])

    def _arm(self, difference: FloatArray) -> int:
        """Return CombGapE's arm for this difference, or the least measured of its arms."""
        counts = np.maximum(self._counts, 1)
        if isinstance(self._policy, TSExplore):
            return int(np.argmin(np.where(difference != 0, counts, np.inf)))
        return int(np.argmax((difference * self._scale) ** 2 / (counts * (counts + 1.0) * self._costs)))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Add what was measured."""
        super().absorb(counts, sums)
        self._counts = self._counts + counts
        self._sums = self._sums + sums

    def standing(self) -> Standing:
        """Return the leader, the rival of the last draws and the estimated gap."""
        return self._standing


@dataclass(frozen=True)
class GenTSExplore(Starting, run=DrawRun):
    """Measure what tells the leader from the plan that beats it by most in many random worlds.

    `q` trades the number of draws for their width; the paper takes it between `delta` and .1. On an
    `OracleProblem` every draw is one call of the oracle, and answers are plan vectors.
    """

    delta: float = 0.05
    q: float = 0.1

    version: ClassVar[int] = 3
    randomized: ClassVar[bool] = True
    takes_oracle: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        meaning = "between 0 and 0.5, in the paper from delta to 0.1"
        check_setting("q", self.q, right=0 < self.q < 0.5, meaning=meaning)

    @property
    def guarantee(self) -> Guarantee:
        """What is missing for a guarantee."""
        return Guarantee.none(
            "the published proof treats counts that the data chose as fixed; no excess of errors was seen"
        )


@dataclass(frozen=True)
class TSExplore(GenTSExplore):
    """For plans of zeros and ones: measure the least known arm on which the leader and a drawn rival differ.

    On an `OracleProblem` the plans are taken to be zeros and ones, since they cannot all be checked.
    """

    _sets_only: ClassVar[str] = "use GenTSExplore, which takes any numbers"
