"""Challenge: is anything better than the plan we use today? Keep it, or replace it by a named better one.

Ours; the proof is in docs/challenge.md, with the names of this file.

Assumption: measurements are independent and sub-Gaussian with the noise scale of the problem.

Proof status: wrong with probability at most delta, at any time, without a union over plans. *Keep* says that
no plan is better than the incumbent by more than epsilon, *replace* names one that is better; each has half
of delta. Against every plan j a wealth bets that it is not better by more than epsilon: keep when all of them
have reached 2/delta. Against "plan i is no better" a piece bets while i is the challenger; all pieces are
staked from one common cash: replace by i when cash and its piece have reached 2/delta.

Cost of a block: some passes over the plans that are left, as dense rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.evidence import Evidence
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.past import Past
from surepick.core.policy import check_delta, check_epsilon, known_deviation
from surepick.core.problem import Problem
from surepick.core.promise import SUB_GAUSSIAN, Promise
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError, suggestion
from surepick.policies.betting.block_run import Block, BlockRun, check_max_batch
from surepick.policies.betting.by_variance import log_factors, log_mixtures
from surepick.policies.betting.last_call import cut
from surepick.policies.betting.tuning import TUNING
from surepick.policies.betting.wealth import log_sum

_NOTHING = -1e300  # log of an empty purse
_LADDER = 0.5  # of a first stake, on fixed bets
_FIRST_PIECE = 0.5  # of the common cash, on a challenger's first bets
_PIECE_CAUTION = 0.5  # standard errors below its estimated advantage that a challenger's bets are centred
_BETTER = 1.25  # times the advantage, for its noise, of the challenger that another needs to take its place
_HOPELESS = 4.0  # times what keeping seems to need, while a plan looks better by more than epsilon
_FOR_KEEPING = 0.1  # of the measurements, while a challenger is pursued
_WORKING_SET = 256  # rivals a division looks at
_STEPS, _TOLERANCE = 40, 0.02


@dataclass(frozen=True)
class Challenge:
    """Keep the plan of today, or replace it by a better one: wrong with probability at most `delta`.

    `incumbent` is the plan of today, by its name or its place in the list. The answer is the incumbent if no
    plan is better by more than `epsilon`, and otherwise *a* better plan, which need not be the best. With an
    epsilon of 0 a run ends only if the incumbent is the best plan by itself, or something is better.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], plan_names=["today", "other"], noise_scale=1)
    >>> policy = sp.Challenge("today", epsilon=0.5)
    >>> sp.simulate(problem, policy, sp.Gaussian([0.0, 2.0]), seed=1).plan_name
    'other'
    >>> sp.simulate(problem, policy, sp.Gaussian([2.0, 1.9]), seed=1).plan_name
    'today'
    """

    incumbent: str | int = 0
    delta: float = 0.05
    epsilon: float = 0.0
    max_batch: int | None = None

    name: ClassVar[str] = "Challenge"
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False
    takes_past: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_epsilon(self.epsilon)
        check_max_batch(self.max_batch)

    @property
    def guarantee(self) -> str:
        """The promise and its assumption."""
        than = "any plan" if self.epsilon == 0 else f"any plan by more than {self.epsilon:g}"
        goal = (
            f"no worse than {than} if it is the incumbent, and better than the incumbent if it is another, "
            f"wrong with probability at most {self.delta:g}"
        )
        return Promise(True, goal, SUB_GAUSSIAN).text

    def start(self, problem: Problem) -> ChallengeRun:
        """A fresh run on this problem."""
        return ChallengeRun(problem, self)

    def place(self, problem: Problem) -> int:
        """The place of the incumbent in the problem's list of plans."""
        names, wanted = list(problem.plan_names), self.incumbent
        if isinstance(wanted, str) and wanted in names:
            return names.index(wanted)
        if isinstance(wanted, int) and 0 <= wanted < len(names):
            return wanted
        if isinstance(wanted, str):
            hint = suggestion(wanted, names)
            raise ParameterError(f"there is no plan named {wanted!r}; {hint}", field="incumbent")
        raise ParameterError(
            f"the incumbent is a plan by its name or its place, 0 to {len(names) - 1}, got {wanted!r}",
            field="incumbent",
        )


class Bets(NamedTuple):
    """What is bet in a block, fixed before it: centres and variances of the mixtures, and the challenger."""

    rivals: IntArray  # plans that may still be better by more than epsilon
    centre: FloatArray  # of the gap of the incumbent to each, with epsilon
    prior: FloatArray
    challenger: int  # -1: none
    piece_centre: float
    piece_prior: float


class Purses:
    """Stakes against each plan: the rungs of a ladder and, last, the mixture; logs."""

    def __init__(self, n: int, *, variance_alone: bool) -> None:
        self._variance_alone = variance_alone  # whether no more than the variance of the noise is bounded
        self.rung = TUNING.top_rung * 0.5 ** (np.arange(TUNING.rungs) / 2)
        self.purse = np.full((n, TUNING.rungs + 1), _NOTHING)

    def receive(self, plans: IntArray, stake: float, *, ladder: bool) -> None:
        """Put this stake, a log, on bets against each of these plans."""
        share = _LADDER if ladder else 0.0
        mixture = stake + math.log1p(-share)
        self.purse[plans, -1] = np.logaddexp(self.purse[plans, -1], mixture)
        if ladder:
            rung = stake + math.log(share / len(self.rung))
            self.purse[plans, :-1] = np.logaddexp(self.purse[plans, :-1], rung)

    def settle(self, plans: IntArray, gap: FloatArray, spread: FloatArray, bet: FloatArray) -> None:
        """Multiply them by what they brought; `bet` has centre, prior and unit of each plan."""
        from surepick.policies.betting.bets import settle_singles

        measured = np.isfinite(spread) & (spread > 0)
        some, purse = plans[measured], self.purse[plans[measured]]
        centre, prior, unit = (row[measured] for row in bet)
        gap, spread = gap[measured], spread[measured]
        if self._variance_alone:
            purse[:, :-1] += log_factors(gap[:, None], spread[:, None], unit[:, None] * self.rung)
            on = centre >= 0
            purse[on, -1] += log_mixtures(gap[on], spread[on], centre[on], prior[on])
        else:
            settle_singles(gap, spread, centre, prior, unit, self.rung, purse)
        self.purse[some] = purse

    def total(self) -> FloatArray:
        """The log of what is staked against each plan, without cash."""
        return log_sum(self.purse)


class ChallengeRun(BlockRun[Bets]):
    """A run of Challenge: a block at a time; owned and changed by whoever started it."""

    def __init__(self, problem: Problem, policy: Challenge) -> None:
        super().__init__(policy, problem.relevant)
        self._policy, self._costs = policy, problem.costs
        self._variance = known_deviation(problem) ** 2
        self._price = self._variance * problem.costs
        self._target = math.log(2.0 / policy.delta)
        self._incumbent = policy.place(problem)
        dense = as_dense(problem.oriented)
        self._away = dense[self._incumbent] - dense  # (n_plans, n_arms)
        self._squares = self._away**2
        self._unit = np.sqrt(self._squares @ self._variance)
        self._width = np.abs(self._away) @ np.sqrt(self._price)
        n = len(dense)
        self._others = np.flatnonzero(np.arange(n) != self._incumbent)
        wide = problem.noise == BOUNDED_VARIANCE
        self._keep, self._keep_cash, self._peak = Purses(n, variance_alone=wide), 0.0, np.zeros(n)
        self._pieces, self._common = Purses(n, variance_alone=wide), 0.0
        self._next_stake, self._next_piece = 0.0, np.zeros(n)
        self._challenger = -1
        self._share = np.full(problem.n_arms, 1.0 / problem.n_arms)

    def remember(self, past: Past) -> None:
        """Begin with this past: it informs challenger, division and bets, and wins none."""
        self._put_past(past)

    def _known(self) -> tuple[FloatArray, FloatArray]:
        """The mean of each arm and its variance, the past included; a mean of 0 where nothing is known."""
        known = self._known_counts()
        return self._known_means(), self._variance / np.where(known > 0, known, 1.0)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block; or the incumbent, or a plan that is better."""
        del rng  # nothing is drawn
        if self._block is None and not self._is_started:
            self._block = Block(self._first_counts(), None)
        if self._block is None:
            against = self._against_no_better()
            if against.max() >= self._target:
                return Stop(int(np.argmax(against)))
            if not len(self._rivals()):
                return Stop(self._incumbent)
            self._block = self._open_block()
        return Measure(self._block.next_request(self._policy.max_batch))

    def _against_no_better(self) -> FloatArray:
        """For each plan the log wealth against "it is no better": common cash and its piece."""
        found = np.logaddexp(self._common, self._pieces.total())
        found[self._incumbent] = -np.inf
        return np.asarray(found)

    def _rivals(self) -> IntArray:
        return self._others[self._peak[self._others] < self._target]

    def _open_block(self) -> Block[Bets]:
        """Counts and bets of the next block, from the past alone."""
        means, spread_per_arm = self._known()
        gap, spread = self._away @ means, self._squares @ spread_per_arm
        rivals = self._rivals()
        self._choose_challenger(-gap)
        share, need, least = self._divide(rivals, gap, spread)
        self._put_stakes()
        spent = float(self._evidence.counts @ self._costs)
        once = float(self._costs[least].sum())
        size = max(once, min(TUNING.block_share * spent, TUNING.need_share * need))
        counts = np.maximum(np.rint(share * size / self._costs), least).astype(np.int64)
        if self._left is not None and self._left > 0:
            counts = cut(counts, self._left)
        errors, k = np.sqrt(spread), self._challenger
        centre = gap[rivals] + self._policy.epsilon - TUNING.caution * errors[rivals]
        ahead = (-gap[k] - _PIECE_CAUTION * errors[k], spread[k]) if k >= 0 else (-1.0, 1.0)
        return Block(counts, Bets(rivals, centre, spread[rivals], k, float(ahead[0]), float(ahead[1])))

    def _choose_challenger(self, ahead: FloatArray) -> None:
        """The plan with the largest estimated advantage for its noise; it stays unless one is far ahead."""
        score = np.divide(ahead, self._width, out=np.zeros(len(ahead)), where=self._width > 0)
        score[self._incumbent] = 0.0
        best, now = int(np.argmax(score)), self._challenger
        if now < 0 or score[now] <= 0 or score[best] > _BETTER * score[now]:
            self._challenger = best if score[best] > 0 else -1

    def _divide(
        self, rivals: IntArray, gap: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, float, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Shares of cost, what still seems to be needed, and the arms that must be measured."""
        from surepick.policies.betting.division import divide

        epsilon, k = self._policy.epsilon, self._challenger
        deficit = np.clip(self._target - self._peak[rivals], 0.1, 2 * self._target)
        ahead = np.maximum(gap[rivals] + epsilon, 0.0)
        urgency = deficit / (ahead**2 + TUNING.need_smoothing * spread[rivals])
        needs = urgency * (self._squares[rivals] @ self._price)
        worst = np.argsort(-needs, kind="stable")[:_WORKING_SET]
        squares = self._squares[rivals[worst]] * self._price * urgency[worst][:, None]
        n, n_arms = squares.shape
        for_keeping = np.empty(n_arms)
        most = divide(
            squares, np.full(n, 1.0 / n), for_keeping, np.empty(n_arms), np.empty(n), _STEPS, _TOLERANCE
        )
        need = 2.0 * most * (_HOPELESS if float((gap[rivals] + epsilon).min()) <= 0 else 1.0)
        if k >= 0:
            to_replace = 2 * self._target * self._width[k] ** 2 / (gap[k] ** 2 + spread[k])
            if to_replace < need:
                weights = np.abs(self._away[k]) * np.sqrt(self._price)
                share = (1 - _FOR_KEEPING) * weights / weights.sum() + _FOR_KEEPING * for_keeping
                return share, float(to_replace), self._away[k] != 0
        return for_keeping, need, (self._away[rivals] != 0).any(axis=0)

    def _put_stakes(self) -> None:
        """Stakes against all plans alike at first and at every restart; a challenger gets its own."""
        measured, k = float(self._known_counts().sum()), self._challenger
        if measured >= self._next_stake:
            first = self._next_stake == 0.0
            self._next_stake = TUNING.restart * measured
            share = TUNING.first_stake if first else TUNING.stake
            self._keep.receive(self._others, self._keep_cash + math.log(share), ladder=first)
            self._keep_cash += math.log1p(-share)
        if k >= 0 and measured >= self._next_piece[k]:
            first = bool(self._next_piece[k] == 0.0)
            self._next_piece[k] = TUNING.restart * measured
            share = _FIRST_PIECE if first else TUNING.stake
            self._pieces.receive(np.array([k]), self._common + math.log(share), ladder=first)
            self._common += math.log1p(-share)

    def _settle(self, bets: Bets, seen: Evidence) -> None:
        """Multiply every stake by its bet's factor, a function of what this block alone has shown."""
        means = self._filled_means(seen)
        missing = seen.counts == 0
        variance = self._variance / np.maximum(seen.counts, 1)
        plans = np.append(bets.rivals, bets.challenger) if bets.challenger >= 0 else bets.rivals
        gap, spread = self._away[plans] @ means, self._squares[plans] @ variance
        spread[(self._squares[plans][:, missing] > 0).any(axis=1)] = np.inf
        n, rivals, unit = len(bets.rivals), bets.rivals, self._unit
        bet = np.array([bets.centre, bets.prior, unit[rivals]])
        self._keep.settle(rivals, gap[:n] + self._policy.epsilon, spread[:n], bet)
        now = np.logaddexp(self._keep_cash, self._keep.total())
        self._peak = np.maximum(self._peak, now)
        if bets.challenger >= 0:
            k = plans[n:]
            own = np.array([[bets.piece_centre], [bets.piece_prior], unit[k]])
            self._pieces.settle(k, -gap[n:], spread[n:], own)

    def _choose_lead(self) -> None:
        """Nothing to choose: the incumbent leads until something is better."""

    def standing(self) -> Standing:
        """The answer that is nearer, the plan in its way, their gap, and the risk of giving it now."""
        if not self._is_started:
            return Standing()
        means, _ = self._known()
        gap, against = self._away @ means, self._against_no_better()
        i, peak = int(np.argmax(against)), self._peak[self._others]
        hardest = int(self._others[np.argmin(peak)])
        if against[i] > peak.min() or (against[i] == peak.min() and gap[i] < 0):
            return Standing(i, self._incumbent, float(-gap[i]), None, _risk(float(against[i])))
        return Standing(self._incumbent, hardest, float(gap[hardest]), None, _risk(float(peak.min())))

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one."""
        bets = None if self._block is None else self._block.bets
        return {
            **self._measured_state(),
            "bets": [] if bets is None else list(bets),
            "keep": [self._keep.purse, self._keep_cash, self._peak, self._next_stake],
            "pieces": [self._pieces.purse, self._common, self._next_piece, self._challenger],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._restore_measured(state, Bets(*state["bets"]) if state["bets"] else None)
        self._keep.purse, self._keep_cash, self._peak, self._next_stake = state["keep"]
        self._pieces.purse, self._common, self._next_piece, self._challenger = state["pieces"]

    @staticmethod
    def _filled_means(evidence: Evidence) -> FloatArray:
        zeros = np.zeros(len(evidence.sums))
        return np.divide(evidence.sums, evidence.counts, out=zeros, where=evidence.counts > 0)


def _risk(log_evidence: float) -> float:
    """Half of it is for each of the two answers."""
    return min(1.0, 2.0 * math.exp(-max(log_evidence, 0.0)))
