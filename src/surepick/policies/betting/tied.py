"""Tied: which plans are within epsilon of the best? All of them, and both halves proved.

Ours; the corollary is in docs/theory.md, the theorem in `surepick.inference`.

Assumption: that of BetGapE.

Proof status: with probability at least 1 - delta, at any time and for all plans at once, a plan that is named
is within epsilon of the best, and one that is left out is worse than the best by more than epsilon - grey.
Plans in the grey zone between may be either. Each half has half of delta. *In* is corollary 3 (few plans),
where every plan is a possible answer. *Out*: row i bets that i is worse than the leader by more than
epsilon - grey; that is fair if i is that near to the best, whichever plan leads. i is out when the mean
wealth of every set of plans with i in it has reached 2/delta (closed testing): the set of all plans that are
so near is one of them.

Cost of a batch: a pass over all pairs of plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import OwnQuestion
from surepick.core.problem import Problem
from surepick.core.run import Decision, Standing
from surepick.core.wording import how_many
from surepick.errors import ParameterError
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.estimates import Estimates
from surepick.policies.betting.question import Bet, Targets
from surepick.policies.betting.within import WithinFew
from surepick.policies.sound import BettingPolicy

MOST_PLANS = 200  # all pairs of them bet
LARGEST_LOG = 600.0  # of a wealth, so that sums of some are numbers
OUT = "out"


@dataclass(frozen=True)
class Tied(BettingPolicy, OwnQuestion):
    """All plans within `epsilon` of the best, and no other that is worse by more than `epsilon - grey`.

    A plan whose distance to the best lies in the grey zone may be named or not. A smaller `grey` costs more;
    half of epsilon unless given. The answer is the plan that leads; `good` has all of them.

    >>> import surepick as sp
    >>> problem = sp.Problem(["a", "b", "c"], noise=1, goal="largest")
    >>> policy = sp.policies.Tied(epsilon=1.0)
    >>> sp.simulate(problem, sp.simulation.Gaussian([3.0, 2.9, 0.0]), policy=policy, seed=1).good
    (0, 1)
    """

    delta: float = 0.05
    epsilon: float = 0.0
    grey: float | None = None
    max_batch: int | None = None

    name: ClassVar[str] = "Tied"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.grey is not None and not 0 < self.grey <= self.epsilon:
            raise ParameterError(
                "grey, the width of the zone in which plans may be named or not, must be above 0 and at most "
                f"epsilon, {self.epsilon:g}; got {self.grey!r}",
                field="grey",
            )

    @property
    def near(self) -> float:
        """How much worse than the best every plan is that is left out."""
        return self.epsilon - (self.epsilon / 2 if self.grey is None else self.grey)

    @property
    def goal(self) -> str:
        """What an answer is, unless it is wrong."""
        return f"all plans within {self.near:g} of the best, and none that is not within {self.epsilon:g}"

    def question(self, problem: AnyProblem) -> str:
        """Return what is to be found out."""
        return f"Which of {problem.n_plans} plans are within {self.epsilon:g} of the best?"

    def claim(self, problem: AnyProblem, standing: Standing) -> str:
        """Return what an answer says."""
        unit = f" {problem.about.unit}".rstrip()
        named = f"{how_many(len(standing.good), 'plan is', 'plans are')} within {self.epsilon:g}{unit}"
        others = f"each other of {problem.n_plans} plans is more than {self.near:g}{unit} worse"
        return f"{named} of the best; {others}."

    def start(self, problem: Problem) -> BatchRun:
        """Return a fresh run on this problem."""
        refuse_odd(self, problem)
        return BatchRun(problem, self, AllWithin(problem.oriented, self.delta, self.epsilon, self.near))


def refuse_odd(policy: BettingPolicy, problem: Problem) -> None:
    """Refuse what all pairs of plans cannot be asked: too many plans, or no epsilon."""
    if policy.epsilon == 0 or problem.n_plans > MOST_PLANS:
        raise ParameterError(
            f"{policy.name} compares all pairs of at most {MOST_PLANS} plans, up to an epsilon above 0; got "
            f"{problem.n_plans:,} plans and epsilon {policy.epsilon:g}",
            field="epsilon" if policy.epsilon == 0 else "plans",
        )


class AllWithin(WithinFew):
    """Which plans are within epsilon of the best, and which are worse by more than `near`?

    Rows of the common account, as in `WithinFew`, prove that plans are in; rows of the account `OUT` of the
    second claim, that they are out.
    """

    STATE: ClassVar[tuple[str, ...]] = (*WithinFew.STATE, "out_peak")
    is_fixed = True
    staked = 0.9  # of the cash of the second claim

    def __init__(self, plans: Any, delta: float, epsilon: float, near: float) -> None:
        super().__init__(plans, delta, epsilon, claims=2)
        self.near, self.smallest, self.ignored_gap = near, (epsilon - near) / 2, epsilon
        self.out_peak = np.zeros(self.n_plans)  # log of the largest least mean so far

    def evidence(self, leader: Any) -> FloatArray:
        """Return the log of the evidence that each plan is out."""
        del leader
        return self.out_peak.copy()

    def rival_evidence(self, leader: Any) -> FloatArray:
        """Return the log of the evidence that each plan is in or out, and the leader in."""
        is_in = self.in_evidence()
        evidence = np.maximum(is_in, self.out_peak)
        evidence[leader] = is_in[leader]
        return evidence

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best of those that are not out."""
        value = self.values(estimates)
        is_out = self.out_peak >= self.wealth.threshold
        self.leader = int(np.argmax(value if is_out.all() else np.where(is_out, -np.inf, value)))

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return what the open plans need: that they are in or out, whichever looks nearer."""
        n, is_open = self.n_plans, np.zeros(self.n_plans, dtype=bool)
        is_open[rivals] = True
        looks_in = estimates.gap(self.from_leader()) <= (self.near + self.epsilon) / 2
        is_left = (self._by_pair("peak") < self.wealth.threshold) & ~np.eye(n, dtype=bool)
        ins, of = np.nonzero((is_open & looks_in)[:, None] & is_left)
        outs = np.flatnonzero(is_open & ~looks_in)
        ahead, behind = np.append(ins, np.full(len(outs), self.leader)), np.append(of, outs)
        wealth = np.append(self._by_pair("current")[ins, of], self._least_means()[outs])
        shift = np.repeat([self.epsilon, -self.near], [len(ins), len(outs)])
        return self.aim(estimates, behind, self.contrasts(ahead, behind), wealth, shift)

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the leader, and stake on all pairs and, once, that plans are out."""
        super().follow(decision, estimates)
        if not decision.is_first and OUT not in self.second.accounts:
            amount = self.second.withdraw(self.staked) - math.log(len(self.sizes))
            self.second.account(OUT, self.n_plans, len(self.sizes)).stake(amount)

    def bets(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet on all pairs, and that each plan is worse than the leader by more than `near`."""
        bets = super().bets(decision, estimates)
        if decision.is_first:
            return bets
        others = np.flatnonzero(np.arange(self.n_plans) != self.leader)
        sizes = np.tile(self.sizes, (len(others), 1))
        return [*bets, Bet(OUT, others, self.from_leader(others), -self.near, sizes)]

    def count(self, bets: list[Any]) -> None:
        """Update both accounts, and which plans are out."""
        super().count(bets)
        self.out_peak = np.maximum(self.out_peak, self._least_means())

    def _least_means(self) -> FloatArray:
        found = self.second.accounts.get(OUT)
        return np.zeros(self.n_plans) if found is None else least_means(found.current)


def least_means(log_wealth: FloatArray) -> FloatArray:
    """Return for each plan the log of the least mean wealth of a set of plans with it.

    With the k least wealths of others, for every k: the least mean has the least others.

    >>> np.exp(least_means(np.log([1.0, 4.0, 10.0]))).round(9).tolist()
    [1.0, 2.5, 5.0]
    """
    wealth = np.exp(np.minimum(log_wealth, LARGEST_LOG))
    order = np.sort(wealth)
    n_others = np.arange(len(wealth))
    least = np.concatenate([[0.0], np.cumsum(order)])  # sums of the k least
    is_among: BoolArray = wealth[:, None] <= order  # whether the plan is one of the k + 1 least
    sums = np.where(is_among, least[1:], wealth[:, None] + least[:-1])
    return np.asarray(np.log((sums / (n_others + 1)).min(axis=1)))
