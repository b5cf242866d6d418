"""BetGapE with epsilon and few plans: every plan is a possible lead, and the bets of all run at once.

Against plan j there is one *piece* for each other plan i: in every block it bets that j is not better than i
by more than epsilon. The proof is the paragraph on epsilon in docs/bet-gap-e.md: cash and the pieces (i, j)
of all i that are more than epsilon worse than a best plan j are a supermartingale from 1. A plan has no piece
against itself, so with two plans nothing is divided at all.

The sizes that are bet begin at epsilon, since no gap plus epsilon that matters is smaller, and nothing waits
for a lead to be clear. With many plans the pieces would be too thin: `bet_gap_e` has one for the lead alone.

Cost of a block: the square of the number of plans times the arms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.evidence import Evidence
from surepick.core.gaps import in_errors, mean_variance
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.past import Past
from surepick.core.policy import known_deviation
from surepick.core.problem import Problem
from surepick.core.run import Measure, Standing, Stop
from surepick.errors import ParameterError
from surepick.policies.betting.block_run import Block, BlockPolicy
from surepick.policies.betting.books import NOTHING
from surepick.policies.betting.by_variance import log_factors
from surepick.policies.betting.last_call import LastCall, LastCallRun, fitted, last_counts, tested
from surepick.policies.betting.tuning import TUNING, block_cost, first_uses

MOST_PLANS = 64


class Sizes(NamedTuple):
    """The constants of this form. None of them bears on the guarantee; all were set on other instances."""

    first_stake: float = 0.8  # of the cash, before the first block
    stake: float = 0.3  # of the cash at every restart
    plausible: float = (
        2.0  # a restart favours plan i by exp(-this z^2 / 2), z errors behind the best-looking one
    )
    step: float = 1.5  # from one size to the next, the first is epsilon
    most: int = 8  # sizes; the last is the noise of a gap with one measurement of each arm
    tilt: float = 0.5  # the r-th size has a share in proportion to r^-tilt
    steps: int = 40  # of a division, and how close it comes
    tolerance: float = 0.02
    least_deficit: float = 0.1  # nats: a rival about to be dropped still counts a little


SIZES = Sizes()


class AskingPolicy(BlockPolicy, Protocol):
    """What is asked, besides how many measurements at once."""

    @property
    def delta(self) -> float:
        """The allowed probability of a wrong answer."""
        ...

    @property
    def epsilon(self) -> float:
        """How much worse than the best plan an answer may be, above 0."""
        ...


class AllLeadsRun(LastCallRun[bool]):
    """A run that bets for every plan as the lead; owned and changed by whoever started it."""

    def __init__(self, problem: Problem, policy: AskingPolicy) -> None:
        super().__init__(policy, problem.relevant)
        self._problem, self._policy = problem, policy
        self._target, self._epsilon = -math.log(policy.delta), policy.epsilon
        self._plans = _dense(problem)
        self._variance = known_deviation(problem) ** 2
        n, n_arms = self._plans.shape
        unit = max(
            math.sqrt(float(((plan - self._plans) ** 2 @ self._variance).max())) for plan in self._plans
        )
        self._bet_sizes(_sizes(self._epsilon, unit))
        self._purse = np.full((n, n, len(self._size)), NOTHING)  # log wealth of piece (i, j), by size
        self._now, self._peak = np.zeros((n, n)), np.zeros((n, n))  # log of cash and piece; the largest
        self._cash, self._next_stake = 0.0, 0.0
        self._share = np.full(n_arms, 1.0 / n_arms)  # of cost, in the last block
        self._lead = -1

    def _bet_sizes(self, size: FloatArray) -> None:
        shares = np.arange(1, len(size) + 1) ** -SIZES.tilt
        self._size, self._log_share = size, np.log(shares / shares.sum())

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or a plan that is proved to be within epsilon of the best."""
        del rng  # nothing is drawn
        last = self._last
        if last is not None and last.evidence is not None:
            return Stop(self._lead if self._lead in self._good() else None)
        if self._block is None and self._good():
            return Stop(self._lead)
        if last is not None and self._block is None and last.left <= 0:
            return Stop(None)  # the block that was open has taken all that were left: there is no test
        if self._block is None:
            self._put_stakes()
            counts = self._divide() if self._is_started else self._first_counts()
            self._block = Block(counts, True)
        block = self._block
        if block.is_untouched and self._is_started:
            differs = np.flatnonzero(self._differs())
            test = functools.partial(last_counts, self._share, self._problem.costs, differs)
            counts = fitted(last, self._left, block.counts, self._lead, test)
            if counts is not block.counts:
                self._block = block = Block(counts, True)
        return Measure(block.next_request(self._policy.max_batch))

    def remember(self, past: Past) -> None:
        """Begin with this past: it informs lead, division and stakes from the start, and wins no bet."""
        self._put_past(past)

    def grow(self, problem: Problem) -> None:
        """Go on with more plans, the old ones first; between two blocks.

        A newcomer begins with the cash alone: no more than the wealth against any other plan, so that the
        proof of `arriving` holds.
        """
        if self._block is not None or self._last is not None:
            raise ParameterError("plans arrive between two blocks, and not after the last call")
        more = problem.n_plans - len(self._plans)
        self._problem, self._plans = problem, _dense(problem)
        self._lengthen(problem.relevant)
        new = np.zeros(problem.n_arms - len(self._share))
        self._share = np.append(self._share, new)
        self._variance = known_deviation(problem) ** 2
        wider = ((0, more), (0, more))
        self._purse = np.pad(self._purse, (*wider, (0, 0)), constant_values=NOTHING)
        self._now = np.pad(self._now, wider, constant_values=self._cash)
        self._peak = np.pad(self._peak, wider)
        self._next_stake = 0.0
        if self._is_started:
            self._choose_lead()

    def _first_counts(self) -> IntArray:
        """One of each arm that matters and of which nothing is known; of newcomers the unmeasured ones."""
        counts = super()._first_counts()
        counts = counts if self._lead < 0 else np.where(self._evidence.counts > 0, 0, counts)
        return counts * first_uses(float(counts @ self._problem.costs), self._problem.setup_cost)

    def standing(self) -> Standing:
        """The lead, the rival with the least wealth against it, and the risk of declaring the lead now."""
        lead = self._lead
        if lead < 0:
            return Standing()
        evidence = self._evidence_for(lead)
        remaining = tuple(
            np.flatnonzero((evidence < self._target) | (np.arange(len(evidence)) == lead)).tolist()
        )
        rival = int(np.argmin(evidence))
        gap, error = self._estimates(lead)
        radius = float(error[rival]) * math.sqrt(2 * self._target)
        risk = min(1.0, math.exp(-float(evidence[rival])))
        return Standing(lead, rival, float(gap[rival]), radius, risk, remaining, tuple(self._good()))

    def log_evidence(self) -> FloatArray:
        """The largest log wealth so far against each plan, as a rival of the lead."""
        evidence = self._evidence_for(self._lead) if self._lead >= 0 else np.zeros(len(self._plans))
        return np.where(np.isposinf(evidence), 0.0, evidence)

    def _evidence_for(self, lead: int) -> FloatArray:
        evidence = self._peak[lead].copy()
        last = self._last
        if last is not None and last.evidence is not None and lead == last.lead:
            np.maximum(evidence, last.evidence, out=evidence)
        evidence[lead] = np.inf
        return evidence

    def _good(self) -> list[int]:
        """The plans all of whose rivals are ruled out: within epsilon of the best."""
        return [i for i in range(len(self._plans)) if self._evidence_for(i).min() >= self._target]

    def _estimates(self, lead: int) -> tuple[FloatArray, FloatArray]:
        """How far each plan is behind this one by all that was measured, and the error of that."""
        known = self._known_counts()
        variance = np.divide(self._variance, known, out=np.full(len(known), np.inf), where=known > 0)
        gap, spread = _compare(self._plans, lead, self._known_means(), variance)
        return gap, np.sqrt(spread)

    def _put_stakes(self) -> None:
        """At the start, and whenever the measurements have grown enough, put some of the cash on the pieces.

        A plan's cash goes to the pieces of the other plans, in proportion to how plausible each is as a lead.
        """
        measured = float(self._known_counts().sum())
        if measured < self._next_stake:
            return
        share = SIZES.first_stake if self._cash == 0.0 else SIZES.stake
        weight = np.ones(len(self._plans))
        if self._is_started:
            behind = in_errors(*self._estimates(self._lead))
            weight = np.maximum(np.exp(-0.5 * SIZES.plausible * np.maximum(behind, 0.0) ** 2), 1e-12)
        others = np.maximum(weight.sum() - weight, 1e-12 * (len(weight) - 1))  # of each plan j
        part = np.log(weight)[:, None] - np.log(others)[None, :]
        stake = self._cash + math.log(share) + part[:, :, None] + self._log_share
        self._purse = np.logaddexp(self._purse, stake)
        self._purse[np.diag_indices(len(weight))] = NOTHING
        self._cash += math.log1p(-share)
        self._next_stake = max(1.0, TUNING.restart * measured)

    def _settle(self, bets: bool, seen: Evidence) -> None:
        """Multiply every piece by its bet's factor, a function of what this block alone has shown."""
        del bets  # all pieces bet in every block
        if self._last is not None and self._last.is_open:
            now = self._now[self._last.lead]
            self._last.evidence = tested(self._problem, self._last, seen, now, self._epsilon)
            return
        means = np.nan_to_num(seen.means)
        variance = mean_variance(self._problem, seen)
        for i in range(len(self._plans)):
            gap, spread = _compare(self._plans, i, means, variance)
            bet = np.isfinite(spread) & (spread > 0)
            self._purse[i, bet] += self._log_factors(gap[bet, None] + self._epsilon, spread[bet, None])
        self._now = np.logaddexp(self._cash, np.logaddexp.reduce(self._purse, axis=2))
        np.maximum(self._peak, self._now, out=self._peak)

    def _log_factors(self, gap: FloatArray, spread: FloatArray) -> FloatArray:
        """What a bet of each size brings."""
        g = self._size
        if self._problem.noise == BOUNDED_VARIANCE:
            return log_factors(gap, spread, g)
        return np.asarray((g * gap - g**2 / 2) / spread)

    def _choose_lead(self) -> None:
        """The plan that looks best, among those proved to be good if there are any."""
        value = self._plans @ self._known_means()
        good = self._good()
        self._lead = good[int(np.argmax(value[good]))] if good else int(np.argmax(value))

    def _rivals(self) -> IntArray:
        """The plans that may still be better than the lead by more than epsilon; all, where there is none."""
        rivals = np.flatnonzero(self._evidence_for(self._lead) < self._target)
        return rivals if len(rivals) else np.delete(np.arange(len(self._plans)), self._lead)

    def _differs(self) -> FloatArray:
        """Whether a rival differs from the lead in each arm."""
        return np.asarray((self._plans[self._rivals()] != self._plans[self._lead]).any(axis=0))

    def _divide(self) -> IntArray:
        """The counts of the next block: those that nearly minimise what the rival worst off still needs."""
        from surepick.policies.betting.division import divide

        rivals, costs = self._rivals(), self._problem.costs
        gap, error = self._estimates(self._lead)
        ahead, spread = np.maximum(gap[rivals] + self._epsilon, 0.0), error[rivals] ** 2
        missing = np.clip(self._target - self._now[self._lead, rivals], SIZES.least_deficit, 2 * self._target)
        squares = (self._plans[self._lead] - self._plans[rivals]) ** 2 * (self._variance * costs)
        priced = np.ptp(costs[self._relevant]) > 0
        smoothing = TUNING.smoothing_with_costs if priced else TUNING.smoothing
        urgent = squares * (missing / (ahead**2 + smoothing * spread))[:, None]
        dual, share = np.full(len(rivals), 1.0 / len(rivals)), np.empty(len(costs))
        divide(urgent, dual, share, np.empty(len(costs)), np.empty(len(rivals)), SIZES.steps, SIZES.tolerance)
        floor = np.maximum(share, 1e-3 / len(share))
        need = float((missing / (ahead**2 + TUNING.need_smoothing * spread) * (squares @ (1 / floor))).max())
        self._share = share
        return self._counted(share, need)

    def _counted(self, share: FloatArray, need: float) -> IntArray:
        """Whole counts in these shares of cost: a part of what was spent, or of the need if that is less."""
        costs, differs = self._problem.costs, self._differs()
        spent = float(self._evidence.counts @ costs)
        wished = min(TUNING.block_share * spent, TUNING.need_share * 2 * need)
        budget = max(costs[differs].sum(), block_cost(wished, 2 * need, self._problem.setup_cost))
        side = np.floor(TUNING.side_share * budget / (costs * np.count_nonzero(self._relevant)))
        counts = np.where(self._relevant, side, 0.0)
        counts[differs] = np.maximum(np.rint(share[differs] * budget / costs[differs]), 1.0)
        return np.asarray(counts, dtype=np.int64)

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one, as arrays and numbers."""
        called = {} if self._last is None else {"last_call": self._last.state()}
        wealth = {"purse": self._purse, "now": self._now, "peak": self._peak}
        numbers = {
            "cash": self._cash,
            "next_stake": self._next_stake,
            "lead": self._lead,
            "share": self._share,
            "size": self._size,
        }
        return self._measured_state() | wealth | numbers | called

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._purse, self._now, self._peak = state["purse"].copy(), state["now"].copy(), state["peak"].copy()
        self._cash, self._next_stake = float(state["cash"]), float(state["next_stake"])
        self._lead, self._share = int(state["lead"]), state["share"]
        if "size" in state:  # those of the plans that it began with; not in the first snapshots
            self._bet_sizes(state["size"])
        self._last = LastCall(*state["last_call"]) if "last_call" in state else None
        self._restore_measured(state, True)


def _dense(problem: Problem) -> FloatArray:
    """The plans as rows, larger values better."""
    return as_dense(problem.oriented)


def _sizes(epsilon: float, unit: float) -> FloatArray:
    """What is bet: from epsilon up to the noise of a gap with one measurement of each arm, in equal ratios.

    >>> _sizes(0.3, 2**0.5).round(2).tolist()
    [0.3, 0.45, 0.68, 1.01]
    >>> len(_sizes(1e-3, 1.0)), len(_sizes(5.0, 1.0))
    (8, 1)
    """
    octaves = max(math.log(unit / epsilon), 0.0)
    n = min(SIZES.most, 1 + int(octaves / math.log(SIZES.step)))
    step = SIZES.step if n < SIZES.most else math.exp(octaves / (SIZES.most - 1))
    return np.asarray(epsilon * step ** np.arange(n))


def _compare(
    plans: FloatArray, lead: int, means: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How far each plan is behind this one, and the variance of that; infinite where an arm is not known."""
    difference = plans[lead] - plans
    known = np.isfinite(variance)
    spread = difference**2 @ np.where(known, variance, 0.0)
    spread[(difference[:, ~known] != 0).any(axis=1)] = np.inf
    return difference @ means, spread
