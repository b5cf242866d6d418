"""SignRace: measure all plans in rounds and bet on who wins each; right whatever the noise and its drift.

Ours; the corollary is in docs/theory.md, the theorem in `surepick.inference`. It suits timings: skewed values
on a machine that gets slower and faster.

Assumption: one plan, the winner, is at least as likely as not to beat each other plan in a round, given all
rounds before it. Values of a round may depend on each other and on the past, and have any distribution.

Proof status: wrong with probability at most delta, at any time, without a union over plans. Row j bets
against "j is the winner": a factor 1 + lam for each round that j loses to an opponent chosen before the
round, 1 - lam for each that it wins, mixed over lam. Under that hypothesis its wealth is a supermartingale
from 1. With a `margin` every plan i has rows of its own, which count a round as won by i if j is not better
by more than the margin; their stakes sum to at most 1 over all plans that would be wrong answers.

Cost of a round: one measurement of each arm of the plans that are left, and a pass over their pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense
from surepick.core.guarantee import Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import OwnQuestion
from surepick.core.probes import refuse_probes
from surepick.core.problem import Problem
from surepick.core.run import Measure, Run, Standing, Stop
from surepick.errors import ParameterError
from surepick.inference.factors import log_sum_exp
from surepick.policies.sound import SoundPolicy

SIZES = np.array([0.02, 0.04, 0.08, 0.16, 0.3, 0.5, 0.8])  # of bets, mixed in equal parts
WINNER = "one plan that beats each other one in at least half of the rounds"


@dataclass(frozen=True)
class SignRace(SoundPolicy, OwnQuestion):
    """The plan that beats each other one in at least half of the rounds, if there is one.

    `margin` is a difference that does not matter, as a share: with 0.02 the answer may be up to 2% worse than
    the winner in most rounds, and ties end. It needs totals above 0.

    >>> import surepick as sp
    >>> problem = sp.Problem(["a", "b"], noise=1, goal="smallest")
    >>> sp.simulate(problem, sp.simulation.Gaussian([1.0, 2.0]), policy=sp.policies.SignRace(), seed=1).plan
    0
    """

    margin: float = 0.0

    assumes_noise: ClassVar[bool] = False
    one_at_a_time: ClassVar[bool] = True  # measurements of a round that overlap disturb each other

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.margin <= 1:
            raise ParameterError(
                f"margin is a share from 0 to 1, such as 0.02 for 2%, got {self.margin!r}", field="margin"
            )

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee and its assumption."""
        near = f"a plan at most {self.margin:.3g} worse than the best, as a share"
        goal = near if self.margin else "the best plan"
        return Guarantee(goal, self.delta, WINNER)

    def question(self, problem: AnyProblem) -> str:
        """Return what is to be found out."""
        near = f", or one at most {self.margin:.3g} worse as a share" if self.margin else ""
        return f"Which of {problem.n_plans} plans beats each other one in at least half of the rounds{near}?"

    def claim(self, problem: AnyProblem, standing: Standing) -> str:
        """Return what an answer says."""
        del standing
        if not self.margin:
            return f"It is the one of {problem.n_plans} plans that wins most rounds against each other."
        return f"No other of {problem.n_plans} plans is better by more than {self.margin:.3g} of its total."

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return whether the noise may be unknown: nothing is assumed of it."""
        del problem
        return True

    def start(self, problem: Problem) -> SignRaceRun:
        """Return a fresh run on this problem."""
        refuse_probes(problem, self.name)
        return SignRaceRun(problem, self)


class SignRaceRun(Run):
    """Rounds in which the plans that are left are measured once each.

    `wealth` is by account, row and bet size. Without a margin there is one account, whose bets any answer may
    use; with one, account i is for the answer i.
    """

    def __init__(self, problem: Problem, policy: SignRace) -> None:
        self._plans = as_dense(problem.oriented)  # larger is better
        self._margin, n = policy.margin, problem.n_plans
        self._threshold = -math.log(policy.delta)
        # account i bets that i, eased by the first factor, beats j, eased by the second
        self._ease = (1.0, 1.0 + policy.margin)[:: 1 if problem.sign < 0 else -1]
        stake = 1.0 / max(n - 1, 1) if policy.margin else 1.0
        self.wealth = np.full((n if policy.margin else 1, n, len(SIZES)), math.log(stake / len(SIZES)))
        self.peak = np.full(self.wealth.shape[:2], math.log(stake))  # log of the largest wealth so far
        self.wins = np.zeros((n, n), dtype=np.int64)  # rounds that i beat j, less those that j beat i
        self.leader = 0

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return a round of the plans that are left, or the leader when all others are ruled out."""
        del rng
        left = self._left()
        return Stop(self.leader) if left.sum() == 1 else Measure(self._arms(left).astype(np.int64))

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Settle the bets of a round; plans with an arm whose value was lost sit it out."""
        left = self._left()
        lost = self._arms(left) & (counts == 0)
        shown = left & ~(self._plans[:, lost] != 0).any(axis=1)
        totals, both = self._plans @ sums, shown[:, None] & shown
        beats = np.sign(totals[:, None] - totals) * both
        if self._margin:
            signs = np.sign(self._ease[0] * totals[:, None] - self._ease[1] * totals) * both
            np.fill_diagonal(signs, 0.0)
        else:
            opponents = np.full(len(totals), self.leader)
            rivals = np.flatnonzero(left & (np.arange(len(left)) != self.leader))
            opponents[self.leader] = rivals[np.argmax(self.wins[rivals, self.leader])]
            signs = beats[opponents, np.arange(len(totals))][None]
        self.wealth += np.log1p(SIZES * signs[..., None])
        self.peak = np.maximum(self.peak, log_sum_exp(self.wealth))
        self.wins += beats.astype(np.int64)
        self._choose_leader(left)

    def _arms(self, left: BoolArray) -> BoolArray:
        """Return the arms to measure: in which these plans differ, or with a margin all that they use."""
        plans = self._plans[left]
        return np.asarray((plans != (0.0 if self._margin else plans[0])).any(axis=0))

    def _left(self) -> BoolArray:
        """Return the leader and the plans that are not ruled out as its rivals."""
        left = np.asarray(self.log_evidence() < self._threshold)
        left[self.leader] = True
        return left

    def _choose_leader(self, left: BoolArray) -> None:
        """Let the plan lead that has won most of its comparisons with those that are left."""
        if not self._margin:
            left = np.asarray(self.peak[0] < self._threshold)
        if not left.any():  # no plan is the winner that was assumed
            self.leader = int(np.argmin(self.peak[0]))
            return
        candidates = np.flatnonzero(left)
        self.leader = int(candidates[np.argmax(self.wins[np.ix_(candidates, candidates)].sum(axis=1))])

    def log_evidence(self) -> FloatArray:
        """Return the log evidence against each plan, as a rival of the leader: it is ruled out at 1/delta."""
        return np.asarray(self.peak[self.leader if self._margin else 0])

    def standing(self) -> Standing:
        """Return the leader, its strongest rival, the risk of naming it now, and the plans that are left."""
        rivals = np.flatnonzero(np.arange(len(self._plans)) != self.leader)
        if not len(rivals):
            return Standing(self.leader, risk=0.0, remaining=(0,), good=(0,))
        evidence = self.log_evidence()
        rival = int(rivals[np.argmin(evidence[rivals])])
        left = tuple(np.flatnonzero(self._left()).tolist())
        risk = min(1.0, math.exp(-float(evidence[rival])))
        good = (self.leader,) if len(left) == 1 else ()
        # with a margin the winner may be another, to which the leader is near
        return Standing(self.leader, rival, None, None, risk, None if self._margin else left, good)

    def state(self) -> dict[str, Any]:
        """Return what another run of the same policy on the same problem needs to become this one."""
        return {name: getattr(self, name) for name in STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run with this state."""
        for name in STATE:
            setattr(self, name, state[name])


STATE = ("wealth", "peak", "wins", "leader")
