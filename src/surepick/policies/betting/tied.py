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
from surepick.core.guarantee import SUB_GAUSSIAN, Promise
from surepick.core.oracle_problem import AnyProblem
from surepick.core.problem import Problem
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.core.wording import how_many
from surepick.errors import ParameterError
from surepick.inference.wealth import COMMON, Account, Wealth
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.question import Bet, Estimates, Targets
from surepick.policies.betting.within import WithinFew
from surepick.policies.sound import WithinPolicy, check_max_batch

MOST_PLANS = 200  # all pairs of them bet
LARGEST_LOG = 600.0  # of a wealth, so that sums of some are numbers
OUT = "out"


@dataclass(frozen=True)
class Tied(WithinPolicy):
    """All plans within `epsilon` of the best, and no other that is worse by more than `epsilon - grey`.

    A plan whose distance to the best lies in the grey zone may be named or not. A smaller `grey` costs more;
    half of epsilon unless given. The answer is the plan that leads; `good` has all of them.

    >>> import surepick as sp
    >>> problem = sp.Problem(["a", "b", "c"], noise=1, goal="largest")
    >>> policy = sp.policies.Tied(epsilon=1.0)
    >>> sp.simulate(problem, sp.simulation.Gaussian([3.0, 2.9, 0.0]), policy=policy, seed=1).good
    (0, 1)
    """

    grey: float | None = None
    max_batch: int | None = None

    name: ClassVar[str] = "Tied"
    assumes_noise: ClassVar[bool] = True
    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_max_batch(self.max_batch)
        if self.grey is not None and not 0 < self.grey <= self.epsilon:
            raise ParameterError(
                f"grey is above 0 and at most epsilon, {self.epsilon:g}, got {self.grey!r}", field="grey"
            )

    @property
    def near(self) -> float:
        """How much worse than the best every plan is that is left out."""
        return self.epsilon - (self.epsilon / 2 if self.grey is None else self.grey)

    @property
    def guarantee(self) -> str:
        """The guarantee and its assumption."""
        goal = f"all plans within {self.near:g} of the best, and none that is not within {self.epsilon:g}"
        return Promise(True, f"{goal}, wrong with probability at most {self.delta:g}", SUB_GAUSSIAN).text

    def question(self, problem: AnyProblem) -> str:
        """Return what is to be found out."""
        return f"Which of {problem.n_plans} plans are within {self.epsilon:g} of the best?"

    def claim(self, problem: AnyProblem, standing: Standing) -> str:
        """Return what an answer says."""
        named = f"{how_many(len(standing.good), 'plan is', 'plans are')} within {self.epsilon:g} of the best"
        return f"{named}; each other of {problem.n_plans} plans is more than {self.near:g} worse."

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return whether a run learns unknown noise while it measures."""
        return problem.is_listed

    def learns_variance(self, problem: AnyProblem) -> bool:
        """Return whether bounds on readings are all that the guarantee needs, neither scale nor shape."""
        return problem.bounds is not None

    def start(self, problem: Problem) -> BatchRun:
        """Return a fresh run on this problem."""
        if self.epsilon == 0:
            raise ParameterError("Tied needs an epsilon: the distance that counts as tied", field="epsilon")
        if problem.n_plans > MOST_PLANS:
            raise ParameterError(
                f"Tied compares all pairs, of at most {MOST_PLANS} plans; got {problem.n_plans:,}",
                field="plans",
            )
        return BatchRun(problem, self, AllWithin(problem.oriented, self.delta, self.epsilon, self.near))


class AllWithin(WithinFew):
    """Which plans are within epsilon of the best, and which are worse by more than `near`?

    Rows of the common account, as in `WithinFew`, prove that plans are in; rows of the account `OUT`, which
    has a cash of its own, that they are out.
    """

    STATE: ClassVar[tuple[str, ...]] = (*WithinFew.STATE, "outs", "out_peak")
    is_fixed, n_books = True, 2
    staked = 0.9  # of the cash of the second half

    def __init__(self, plans: Any, delta: float, epsilon: float, near: float) -> None:
        super().__init__(plans, delta / 2, epsilon)
        self.near, self.smallest = near, (epsilon - near) / 2
        self.outs = Wealth(self.wealth.threshold)
        self.out_peak = np.zeros(self.n_plans)  # log of the largest least mean so far

    def evidence(self, leader: Any) -> FloatArray:
        """Return the log of the evidence that each plan is out."""
        del leader
        return self.out_peak.copy()

    def in_evidence(self) -> FloatArray:
        """Return the log of the evidence that each plan is within epsilon of all others."""
        peak = self._by_pair("peak").copy()
        np.fill_diagonal(peak, np.inf)
        return np.asarray(peak.min(axis=1))

    def verdicts(self) -> FloatArray:
        """Return the log of the evidence that each plan is in, or out."""
        return np.maximum(self.in_evidence(), self.out_peak)

    def unresolved(self) -> IntArray:
        """Return the plans that are neither in nor out."""
        return np.flatnonzero(self.verdicts() < self.wealth.threshold)

    def choose(self, estimates: Estimates) -> None:
        """Let the plan lead that looks best of those that are not out."""
        value = self.values(estimates)
        is_out = self.out_peak >= self.wealth.threshold
        self.leader = int(np.argmax(value if is_out.all() else np.where(is_out, -np.inf, value)))

    @property
    def is_answered(self) -> bool:
        """Whether every plan is in or out, and the leader in."""
        return self.has_leader and self.proves(self.leader)

    def proves(self, plan: Answer | None) -> bool:
        """Return whether every plan is in or out, and this one in, up to rounding."""
        enough = self.wealth.threshold * (1.0 - TOLERANCE)
        if not isinstance(plan, int) or self.leader_objection(plan):
            return False
        return bool(self.in_evidence()[plan] >= enough and self.verdicts().min() >= enough)

    def objection(self, decision: Decision) -> str | None:
        """Return why no run decides so here, or None: rivals are the plans that are neither in nor out."""
        is_open, threshold = np.zeros(self.n_plans, dtype=bool), self.wealth.threshold
        is_open[decision.rivals] = True
        verdicts = self.verdicts()
        wrong = np.where(is_open, verdicts - threshold, threshold - verdicts) > TOLERANCE * threshold
        if wrong.any() or not is_open.any():
            return f"plan {int(np.argmax(wrong))} is on the wrong side of those that are open"
        return self.wager_objection(decision)

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return what the open plans need: that they are in or out, whichever looks nearer."""
        n, every = self.n_plans, np.arange(self.n_plans)
        behind = estimates.gap(self._contrasts(np.full(n, self.leader), every))
        is_open = np.zeros(n, dtype=bool)
        is_open[rivals] = True
        looks_in = behind <= (self.near + self.epsilon) / 2
        peak, threshold = self._by_pair("peak"), self.wealth.threshold
        pairs = (is_open & looks_in)[:, None] & (peak < threshold) & ~np.eye(n, dtype=bool)
        ins, of = np.nonzero(pairs)
        outs = np.flatnonzero(is_open & ~looks_in)
        ahead, worse = np.append(ins, np.full(len(outs), self.leader)), np.append(of, outs)
        wealth = np.append(self._by_pair("current")[ins, of], self._least_means()[outs])
        contrasts = self.contrasts(ahead, worse)
        return Targets(
            account=COMMON,
            rows=np.append(ins * n + of, outs),
            ahead=ahead,
            behind=worse,
            contrasts=contrasts,
            gap=estimates.gap(contrasts),
            gap_variance=estimates.gap_variance(contrasts),
            log_wealth=wealth,
            evidence_needed=self.evidence_needed(wealth),
            shift=np.append(np.full(len(ins), self.epsilon), np.full(len(outs), -self.near)),
        )

    def _plausibility(self, estimates: Estimates) -> FloatArray:
        """Return how likely each plan is in: the parts of a stake go by it."""
        n = self.n_plans
        contrasts = self._contrasts(np.full(n, self.leader), np.arange(n))
        error = np.sqrt(estimates.gap_variance(contrasts))
        beyond = np.maximum(estimates.gap(contrasts) - self.epsilon, 0.0)
        errors = np.divide(beyond, error, out=np.zeros(n), where=error > 0)
        return np.maximum(np.exp(-0.5 * self.plausible * errors**2), 1e-12)

    def place(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Stake and bet on all pairs, and that each plan is worse than the leader by more than `near`."""
        bets = super().place(decision, estimates)
        if decision.is_first:
            return bets
        if OUT not in self.outs.accounts:
            amount = self.outs.withdraw(self.staked)
            self.outs.account(OUT, self.n_plans, len(self.sizes)).stake(amount - math.log(len(self.sizes)))
        others = np.flatnonzero(np.arange(self.n_plans) != self.leader)
        ahead, unit = np.full(len(others), self.leader), np.ones(len(others))
        return [*bets, Bet(OUT, others, ahead, others, -self.near, unit=unit, grid=self.sizes)]

    def account(self, key: str | int) -> Account:
        """Return the account of the pairs, or that of the plans that are to be shown out."""
        return self.outs.accounts[key] if key == OUT else super().account(key)

    def count(self, bets: list[Any]) -> None:
        """Update both accounts, and which plans are out."""
        for bet in bets:
            wealth = self.outs if bet.account == OUT else self.wealth
            wealth.count(bet.rows, self.account(bet.account))
        self.out_peak = np.maximum(self.out_peak, self._least_means())

    def _least_means(self) -> FloatArray:
        found = self.outs.accounts.get(OUT)
        return np.zeros(self.n_plans) if found is None else least_means(found.current)

    def set_delta(self, delta: float) -> None:
        """Continue with a smaller delta, half of it for each half of the answer."""
        super().set_delta(delta / 2)
        self.outs.threshold = self.wealth.threshold

    def standing(self, estimates: Estimates) -> Standing:
        """Return the leader, the plan that is hardest to place, the risk, and the plans that are in."""
        verdicts, threshold = self.verdicts(), self.wealth.threshold
        rival = int(np.argmin(np.where(np.arange(self.n_plans) == self.leader, np.inf, verdicts)))
        gap = float(estimates.gap(self._contrasts(np.array([self.leader]), np.array([rival])))[0])
        risk = min(1.0, 2.0 * math.exp(-float(verdicts.min())))
        left = tuple(np.flatnonzero(self.out_peak < threshold).tolist())
        return Standing(self.leader, rival, gap, None, risk, left, tuple(self.within_epsilon()))


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
