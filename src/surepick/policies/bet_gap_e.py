"""BetGapE: every plan but the best one can be bet against until the bets have made a fortune.

Ours; the proof is in docs/bet-gap-e.md, line by line with the names of this file.

Assumption: measurements are independent and sub-Gaussian with the noise scale of the problem (Gaussian, or
bounded with half the width of the range as the scale).

Proof status: wrong with probability at most delta, at any time and under any stop, without a union over
plans, arms or time. For every plan j a wealth is kept that bets against "j is best". Under that hypothesis
it is a non-negative supermartingale started at 1, so it ever reaches 1/delta with probability at most delta
(Ville's inequality). j is dropped when it does; the answer is the lead when no rival of it is left.

Cost of a block: a few passes over the non-zeros of the plans that are left. A block is a batch: its
measurements can be taken in any order and by many workers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from surepick.evidence import Evidence
from surepick.policies.block_run import Block, BlockRun, check_max_batch, filled_means
from surepick.policy import (
    SUB_GAUSSIAN,
    Measure,
    Standing,
    Stop,
    check_delta,
    check_epsilon,
    known_noise_scale,
    promise,
)
from surepick.problem import BoolArray, FloatArray, IntArray, Problem

if TYPE_CHECKING:
    from surepick.bet_kernels import Rows


@dataclass(frozen=True)
class Tuning:
    """Every constant of BetGapE. None of them bears on the guarantee; all were set on other instances.

    The caution is in standard errors of the estimated gap, times log(n_plans) for `selection`.
    """

    first_stake: float = 0.73  # of the cash at the first chance
    first_ladder_share: float = 0.48  # of the first stake on fixed bets; the others are adaptive
    stake: float = 0.3  # of the cash at every restart
    stake_with_epsilon: float = 0.2  # the same with epsilon, where every new lead is a restart too
    restart: float = 1.4  # growth of the measurements between restarts
    selection: float = 0.35  # how much the gap of a lead that won by luck is distrusted
    caution: float = 0.15  # how far below the estimated gap adaptive bets are centred
    top_rung: float = 2.0  # largest ladder bet, in units of the noise of one measurement of each arm
    rungs: int = 17  # each a factor sqrt(2) below the last
    smoothing: float = 32.0  # squared standard errors added to squared gaps: calm allocations
    smoothing_with_costs: float = 4.0  # less where prices differ: calm divisions stay near one of each arm
    need_smoothing: float = 4.0  # the same, where the length of a block is planned
    block_share: float = 0.1  # a block is at most this share of what was measured
    need_share: float = 0.15  # and about this share of what seems to be needed still
    side_share: float = 0.02  # of a block for arms on which no rival is left
    piece_share: float = 0.9  # of a stake on "better than the lead by more than epsilon"


TUNING = Tuning()
_LEAST_DEFICIT = 0.1  # nats: a rival about to be dropped still counts a little
_WORKING_SET = 256  # rivals an allocation looks at
_STEPS, _TOLERANCE = 40, 0.02  # of the allocation; a rough one costs measurements, never correctness
_WARMTH = 0.9  # of the start of an allocation from the last one
_LEAST_SHARE = 1e-3  # of an equal share: keeps prices finite
_OLD_LEADS = 8  # leads whose pieces are kept; forgetting one only loses wealth
_KEEP_GAP, _KEEP_EPSILON = 0.5, 0.6  # with epsilon: a lead stays unless beaten by standard errors, or epsilon


@dataclass(frozen=True)
class BetGapE:
    """The best plan with few measurements, and wrong with probability at most `delta`.

    With `epsilon` above 0 the answer may be up to that much worse than the best plan, and ties end.
    `max_batch` limits how many measurements are asked for at once. Larger blocks are asked for in parts.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]])
    >>> sp.simulate(problem, sp.BetGapE(delta=0.05), sp.Gaussian([1.0, 0.0]), seed=1).plan
    0
    """

    delta: float = 0.05
    epsilon: float = 0.0
    max_batch: int | None = None

    name: ClassVar[str] = "BetGapE"
    version: ClassVar[int] = 1
    randomized: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_epsilon(self.epsilon)
        check_max_batch(self.max_batch)

    @property
    def guarantee(self) -> str:
        """The promise and its assumption."""
        return promise(self.delta, self.epsilon, SUB_GAUSSIAN)

    def start(self, problem: Problem) -> BetRun:
        """A fresh run on this problem."""
        _warm_up()
        return BetRun(problem, self)


@dataclass(frozen=True, eq=False)
class Bets:
    """What is bet in a block against each of `ids`, fixed before the block is measured."""

    ids: IntArray  # the rivals that are bet against
    centre: FloatArray  # of the mixture over gaps; no bet where it is not positive
    prior: FloatArray  # variance of the mixture
    unit: FloatArray  # of the ladder's rungs

    def parts(self) -> list[Any]:
        """What it holds, for other bets to be made of."""
        return [self.ids, self.centre, self.prior, self.unit]

    def shifted(self, epsilon: float) -> Bets:
        """The bets on "the lead is more than epsilon worse": every gap is larger by epsilon."""
        return replace(self, centre=self.centre + epsilon)


@dataclass(eq=False)
class Purse:
    """Log wealth of every plan in one kind of bets; changed by `receive` and `settle` alone."""

    mixture: FloatArray  # (n_plans,)
    ladder: FloatArray  # (n_plans, n_rungs)

    @classmethod
    def empty(cls, n_plans: int) -> Purse:
        """No stake on anything yet."""
        from surepick.bet_kernels import NOTHING

        return cls(np.full(n_plans, NOTHING), np.full((n_plans, TUNING.rungs), NOTHING))

    def parts(self) -> list[FloatArray]:
        """What it holds, for another purse to be made of."""
        return [self.mixture, self.ladder]

    def receive(self, log_stake: float, ladder_share: float) -> None:
        """Put this stake on every plan: a share in equal parts on the ladder, the rest on the mixture."""
        if ladder_share < 1:
            np.logaddexp(self.mixture, log_stake + math.log1p(-ladder_share), out=self.mixture)
        if ladder_share > 0:
            rung = log_stake + math.log(ladder_share / self.ladder.shape[1])
            np.logaddexp(self.ladder, rung, out=self.ladder)

    def settle(self, bets: Bets, gap: FloatArray, spread: FloatArray, rung: FloatArray) -> None:
        """Multiply the stakes by what the bets on this block brought."""
        from surepick import bet_kernels as kernels

        kernels.settle_mixture(bets.ids, gap, spread, bets.centre, bets.prior, self.mixture)
        kernels.settle_ladder(bets.ids, gap, spread, rung, bets.unit, self.ladder)

    def log_total(self, ids: IntArray, log_cash: float) -> FloatArray:
        """log of these stakes and the cash together, for each of `ids`."""
        from surepick import bet_kernels as kernels

        wealth = np.empty(len(ids))
        kernels.add_up(ids, log_cash, self.mixture, self.ladder, wealth)
        return wealth


@dataclass(eq=False)
class Piece:
    """Bets against the rivals of one lead that are fair only if that lead is more than epsilon worse."""

    purse: Purse
    peak: FloatArray  # (n_plans,) largest log wealth, general bets and cash included, while it led


@dataclass(eq=False)
class Leadership:
    """What is known of the current lead: its vector, and what comparing plans with it needs."""

    plan: int
    vector: FloatArray  # (n_arms,)
    support: IntArray  # its non-zero arms
    unit: FloatArray  # (n_plans,) noise of the gap to each plan, with one measurement of each arm


class BetRun(BlockRun[Bets]):
    """A run of BetGapE: wealth per plan, a block at a time; owned and changed by whoever started it."""

    def __init__(self, problem: Problem, policy: BetGapE) -> None:
        from surepick import bet_kernels as kernels

        super().__init__(policy, problem.relevant)
        self._kernels = kernels
        self._problem, self._policy = problem, policy
        self._rows: Rows = kernels.make_rows(problem)
        self._variance = known_noise_scale(problem) ** 2
        self._target = -math.log(policy.delta)
        self._rung = TUNING.top_rung * 0.5 ** (np.arange(TUNING.rungs) / 2)
        priced = np.ptp(problem.costs[problem.relevant]) > 0
        self._smoothing = TUNING.smoothing_with_costs if priced else TUNING.smoothing
        self._distrust = TUNING.selection * math.log(problem.n_plans)
        self._log_cash = 0.0
        self._general = Purse.empty(problem.n_plans)
        self._peak = np.zeros(problem.n_plans)  # largest log wealth so far: what Ville's inequality bounds
        self._wealth = np.zeros(problem.n_plans)  # log wealth now, with the lead's piece
        self._pieces: dict[int, Piece] = {}
        self._nominated: dict[int, IntArray] = {}  # counts at each lead's first nomination
        self._lead: Leadership | None = None
        self._next_stake = 0.0
        self._share = np.full(problem.n_arms, 1.0 / problem.n_arms)  # the last allocation, of cost
        self._dual = np.zeros(problem.n_plans)

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or the lead when no rival is left."""
        if self._block is None:
            rivals = self._rivals()
            if self._lead is not None and not len(rivals):
                return Stop(self._lead.plan)
            self._block = self._open_block(rivals)
        return Measure(self._block.next_request(self._policy.max_batch))

    def standing(self) -> Standing:
        """The lead, the rival with the least wealth against it, and the risk of declaring the lead now."""
        if self._lead is None:
            return Standing()
        others = np.flatnonzero(np.arange(self._problem.n_plans) != self._lead.plan)
        peak = self._peaks()[others]
        rival = others[[np.argmin(peak)]]
        gap, spread = self._compare(rival, self._pooled_weight(), self._means)
        radius = math.sqrt(2 * spread[0] * self._target)
        risk = min(1.0, math.exp(-float(peak.min())))
        return Standing(self._lead.plan, int(rival[0]), float(gap[0]), radius, risk)

    def log_evidence(self) -> FloatArray:
        """The largest log wealth so far in bets against each plan, as a rival of the current lead."""
        return self._peaks().copy()

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one, as arrays and numbers."""
        block = self._block
        return {
            **self._measured_state(),
            "log_cash": self._log_cash,
            "general": self._general.parts(),
            "peak": self._peak,
            "wealth": self._wealth,
            "pieces": [[plan, *piece.purse.parts(), piece.peak] for plan, piece in self._pieces.items()],
            "nominated": [[plan, counts] for plan, counts in self._nominated.items()],
            "lead": None if self._lead is None else self._lead.plan,
            "next_stake": self._next_stake,
            "share": self._share,
            "dual": self._dual,
            "bets": [] if block is None or block.bets is None else block.bets.parts(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._restore_measured(state, Bets(*state["bets"]) if state["bets"] else None)
        self._log_cash, self._next_stake = state["log_cash"], state["next_stake"]
        self._general = Purse(*state["general"])
        self._peak, self._wealth = state["peak"], state["wealth"]
        self._pieces = {
            plan: Piece(Purse(mixture, ladder), peak) for plan, mixture, ladder, peak in state["pieces"]
        }
        self._nominated = dict(state["nominated"])
        self._share, self._dual = state["share"], state["dual"]
        self._lead = None
        if state["lead"] is not None:
            self._follow(state["lead"])

    def _open_block(self, rivals: IntArray) -> Block[Bets]:
        """Counts and bets of the next block, from the past alone."""
        if self._lead is None:
            return Block(self._problem.relevant.astype(np.int64), None)
        self._put_stakes()
        gap, spread = self._compare(rivals, self._pooled_weight(), self._means)
        bets = self._place_bets(rivals, gap, spread)
        return Block(self._allocate(rivals, gap + self._policy.epsilon, spread), bets)

    def _settle(self, bets: Bets, seen: Evidence) -> None:
        """Multiply every stake by its bet's factor, a function of what this block alone has shown."""
        gap, spread = self._compare(bets.ids, self._weight(seen.counts), filled_means(seen))
        self._general.settle(bets, gap, spread, self._rung)
        if self._policy.epsilon:
            shifted = bets.shifted(self._policy.epsilon)
            self._piece().purse.settle(shifted, gap + self._policy.epsilon, spread, self._rung)
        self._count_wealth(bets.ids)

    def _count_wealth(self, ids: IntArray) -> None:
        """Bring log wealth and its peaks up to date; a plan whose peak reaches log(1/delta) is ruled out."""
        wealth = self._general.log_total(ids, self._log_cash)
        self._peak[ids] = np.maximum(self._peak[ids], wealth)
        piece = self._pieces.get(self._lead.plan) if self._lead is not None else None
        if piece is not None:
            wealth = np.logaddexp(wealth, piece.purse.log_total(ids, self._kernels.NOTHING))
            piece.peak[ids] = np.maximum(piece.peak[ids], wealth)
        self._wealth[ids] = wealth

    def _peaks(self) -> FloatArray:
        """The largest log wealth so far against each plan, as a rival of the current lead."""
        piece = self._pieces.get(self._lead.plan) if self._lead is not None else None
        return self._peak if piece is None else np.maximum(self._peak, piece.peak)

    def _rivals(self) -> IntArray:
        """The plans that may still be better than the lead, by more than epsilon."""
        left = self._peaks() < self._target
        if self._lead is not None:
            left[self._lead.plan] = False
        return left.nonzero()[0]

    def _choose_lead(self) -> None:
        """The plan that looks best now, ruled out or not: a lead that was dropped by bad luck must lead."""
        values = np.empty(self._problem.n_plans)
        self._kernels.evaluate(self._rows, self._means, values)
        best = int(np.argmax(values))
        if self._lead is not None and (best == self._lead.plan or self._keeps_lead(best)):
            return
        self._follow(best)
        self._nominated.setdefault(best, self._evidence.counts)
        if self._policy.epsilon:
            self._next_stake = 0.0  # the piece of a new lead is empty: put something on it at once
        self._count_wealth(np.arange(self._problem.n_plans))

    def _follow(self, plan: int) -> None:
        """Make this plan the lead: all others are compared with it."""
        vector = self._problem.vector(plan) * (-1.0 if self._problem.minimize else 1.0)
        everyone, unit = np.arange(self._problem.n_plans), np.zeros(self._problem.n_plans)
        self._lead = Leadership(plan, vector, np.flatnonzero(vector), unit)
        _, squares = self._compare(everyone, self._variance, self._means)
        unit[:] = np.sqrt(squares)

    def _keeps_lead(self, best: int) -> bool:
        """With epsilon, whether the lead is too close to the best to be worth changing."""
        if not self._policy.epsilon:
            return False
        gap, spread = self._compare(np.array([best]), self._pooled_weight(), self._means)
        margin = max(_KEEP_GAP * math.sqrt(spread[0]), _KEEP_EPSILON * self._policy.epsilon)
        return bool(-gap[0] <= margin)

    def _put_stakes(self) -> None:
        """At the start, and whenever the measurements have grown enough, put some of the cash on bets.

        All plans alike, and cash is never used up: a bad start cannot ruin a wealth.
        """
        measured = self._evidence.n_measurements
        if measured < self._next_stake:
            return
        first = self._next_stake == 0.0
        self._next_stake = TUNING.restart * measured
        if self._policy.epsilon:
            self._stake(TUNING.stake_with_epsilon, 0.0)
        elif first:
            self._stake(TUNING.first_stake, TUNING.first_ladder_share)
        else:
            self._stake(TUNING.stake, 0.0)

    def _stake(self, share: float, ladder_share: float) -> None:
        """Put a share of the cash on general bets; with epsilon most of it on the lead's piece."""
        stake = self._log_cash + math.log(share)
        self._log_cash += math.log1p(-share)
        if self._policy.epsilon:
            self._piece().purse.receive(stake + math.log(TUNING.piece_share), ladder_share)
            stake += math.log1p(-TUNING.piece_share)
        self._general.receive(stake, ladder_share)

    def _piece(self) -> Piece:
        """The piece of the current lead; an old one may be forgotten for it, which only loses wealth."""
        assert self._lead is not None
        piece = self._pieces.pop(self._lead.plan, None)
        if piece is None:
            n_plans = self._problem.n_plans
            piece = Piece(Purse.empty(n_plans), np.zeros(n_plans))
        if len(self._pieces) >= _OLD_LEADS:
            del self._pieces[next(iter(self._pieces))]
        self._pieces[self._lead.plan] = piece  # last in the order of use
        return piece

    def _place_bets(self, rivals: IntArray, gap: FloatArray, spread: FloatArray) -> Bets:
        """What is bet against each rival, from the past alone.

        The estimated gap of a lead is biased upwards by its selection, all of it before its nomination; so
        the centre is lowered in proportion to the share of the information that is older than that.
        """
        assert self._lead is not None
        since = self._evidence.counts - self._nominated[self._lead.plan]
        _, fresh = self._compare(rivals, self._weight(since), self._means)
        centre = np.empty(len(rivals))
        self._kernels.centre_bets(gap, spread, fresh, self._distrust, TUNING.caution, centre)
        return Bets(rivals, centre, spread, self._lead.unit[rivals])

    def _allocate(self, rivals: IntArray, gap: FloatArray, spread: FloatArray) -> IntArray:
        """Counts of the next block, for the rivals that are farthest from being ruled out."""
        price = self._variance * self._problem.costs
        self._divide(rivals, self._urgency(rivals, gap, spread, self._smoothing), price)
        _, per_cost = self._compare(rivals, self._price_per_share(price), self._means)
        urgency = self._urgency(rivals, gap, spread, TUNING.need_smoothing)
        need = 2 * self._kernels.largest_product(urgency, per_cost)
        return self._counts(self._differing(rivals), need)

    def _urgency(self, rivals: IntArray, gap: FloatArray, spread: FloatArray, smoothing: float) -> FloatArray:
        """How much of a measurement's worth each rival still needs, with gaps smoothed by their errors."""
        urgency = np.empty(len(rivals))
        self._kernels.judge_urgency(
            rivals, self._wealth, gap, spread, self._target, _LEAST_DEFICIT, smoothing, urgency
        )
        return urgency

    def _divide(self, rivals: IntArray, urgency: FloatArray, price: FloatArray) -> None:
        """New shares of cost, for the rivals that are worst off under the last shares."""
        assert self._lead is not None
        if len(rivals) > _WORKING_SET:
            _, per_cost = self._compare(rivals, self._price_per_share(price), self._means)
            worst = np.argpartition(-urgency * per_cost, _WORKING_SET)[:_WORKING_SET]
            worst.sort()
            rivals, urgency = rivals[worst], urgency[worst]
        lead, n, n_arms = self._lead, len(rivals), self._problem.n_arms
        squares = np.zeros((n, n_arms))
        self._kernels.fill_squares(self._rows, rivals, lead.vector, lead.support, price, urgency, squares)
        last = self._dual[rivals]
        dual = _WARMTH * last / max(float(last.sum()), _LEAST_SHARE) + (1 - _WARMTH) / n
        self._kernels.divide(squares, dual, self._share, np.empty(n_arms), np.empty(n), _STEPS, _TOLERANCE)
        self._dual[:] = 0
        self._dual[rivals] = dual

    def _counts(self, differing: BoolArray, need: float) -> IntArray:
        """Whole counts in proportion to the shares of cost; no arm of a rival is left out."""
        costs, relevant = self._problem.costs, self._problem.relevant
        spent = float(self._evidence.counts @ costs)
        budget = min(TUNING.block_share * spent, TUNING.need_share * need)
        budget = max(float(costs[differing].sum()), budget)
        side, n_relevant = TUNING.side_share * budget, int(np.count_nonzero(relevant))
        counts = np.empty(len(costs), dtype=np.int64)
        self._kernels.round_shares(self._share, costs, differing, relevant, budget, side, n_relevant, counts)
        return counts

    def _price_per_share(self, price: FloatArray) -> FloatArray:
        floor = _LEAST_SHARE / len(price)
        return np.asarray(price / np.maximum(self._share, floor))

    def _differing(self, rivals: IntArray) -> BoolArray:
        assert self._lead is not None
        differing = np.zeros(self._problem.n_arms, dtype=bool)
        lead = self._lead
        self._kernels.mark_differing(self._rows, rivals, lead.vector, lead.support, differing)
        return differing

    def _compare(self, ids: IntArray, weight: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gap of the lead to each plan under these means, and its variance under these weights."""
        assert self._lead is not None
        gap, spread = np.empty(len(ids)), np.empty(len(ids))
        lead = self._lead
        self._kernels.compare(self._rows, ids, lead.vector, lead.support, weight, mean, spread, gap)
        return gap, spread

    def _weight(self, counts: IntArray) -> FloatArray:
        """The variance of each arm's mean of so many measurements; inf for none."""
        weight = np.empty(len(counts))
        self._kernels.weigh(self._variance, counts, weight)
        return weight

    def _pooled_weight(self) -> FloatArray:
        return self._weight(self._evidence.counts)


@functools.cache
def _warm_up() -> None:
    """Compile the passes, or load them from the cache, so that no run has to wait for it half-way."""
    run = BetRun(Problem([[1.0, 0.0], [0.0, 1.0]]), BetGapE())
    for _ in range(2):
        decision = run.decide()
        assert isinstance(decision, Measure)
        run.absorb(decision.counts, np.zeros(2))
