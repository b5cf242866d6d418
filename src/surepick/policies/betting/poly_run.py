"""A run of PolyBet for the exact best plan: accounts of the bases that have led, and a block at a time.

`poly_bet` says what is promised and why; the proof is in docs/theory.md, with the names of this file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.past import Past
from surepick.core.policy import known_noise_scale
from surepick.core.polytope import Polytope
from surepick.core.run import Measure, Standing, Stop
from surepick.core.standard_form import BASIC
from surepick.core.vertex_proof import proof_of, variable_names
from surepick.policies.betting.block_run import Block
from surepick.policies.betting.edge_bets import NOTHING, EdgeBets, Purses, compare_edges, settle_edges
from surepick.policies.betting.edges import Edges, Vertices
from surepick.policies.betting.last_call import (
    GAUSSIAN_NOISE,
    LastCall,
    LastCallRun,
    fitted,
    last_counts,
    log_p,
)
from surepick.policies.betting.poly_bet import PolyBet


class Tuning(NamedTuple):
    """The constants of PolyBet. None of them bears on the guarantee; all were set on other instances."""

    stake: float = 0.5  # of the cash, whenever a lead is staked
    restart: float = 1.4  # growth of the measurements between stakes on one lead
    ripe: float = 1.0  # standard errors that every open edge must be clear before a lead is staked
    distrust: float = 0.3  # times log(edges): how much the gaps of a lead that won by luck are distrusted
    caution: float = 0.15  # standard errors below the estimated gap that bets are centred
    smoothing: float = 8.0  # squared standard errors added to squared gaps: calm allocations
    need_smoothing: float = 4.0  # the same, where the length of a block is planned
    block_share: float = 0.1  # a block is at most this share of what was measured
    need_share: float = 0.1  # and about this share of what seems to be needed still
    side_share: float = 0.02  # of a block for arms of no open edge
    accounts: int = 24  # that are kept; forgetting one only loses wealth


TUNING = Tuning()
_LEAST_DEFICIT = 0.1  # nats: an edge about to be out still counts a little
_STEPS, _TOLERANCE = 40, 0.02  # of the allocation; a rough one costs measurements, never correctness
_WARMTH = 0.9  # of the start of an allocation from the last one
_WORKING_SET = 256  # edges that an allocation looks at
_LEAST_SHARE = 1e-3  # of an equal share: keeps prices finite


@dataclass(eq=False)
class Account:
    """The bets on the edges of one basis; changed by the run that owns it."""

    edges: Edges
    born: IntArray  # (n_arms,) counts when it was nominated first
    purses: Purses
    next_stake: float = 0.0  # measurements at which it may be staked again
    dual: FloatArray = field(default_factory=lambda: np.zeros(0))  # (n_edges,) how much each edge bound last

    def is_open(self, target: float) -> BoolArray:
        """The edges that are not out yet."""
        return np.asarray(self.edges.is_edge & (self.purses.peak < target))


class PolyRun(LastCallRun[EdgeBets]):
    """A run of PolyBet: a block at a time; owned and changed by whoever started it."""

    def __init__(self, problem: Polytope, policy: PolyBet) -> None:
        super().__init__(policy, problem.relevant)
        self._problem, self._policy = problem, policy
        self._variance = known_noise_scale(problem) ** 2
        self._costs, self._price = problem.costs, self._variance * problem.costs
        self._target = -math.log(policy.delta)
        self._vertices = Vertices(problem)
        self._log_cash = 0.0
        self._accounts: dict[bytes, Account] = {}  # in the order of their last use
        self._account: Account | None = None  # of the lead
        self._is_sure = False  # whether the lead is proved

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or the lead when none of its edges is open."""
        del rng  # nothing is drawn
        if self._block is None and self._is_sure:
            return Stop(self._answer(self._plan))
        if self._block is None and self._last is not None and (self._last.left <= 0 or self._is_tested):
            return Stop(None)
        if self._block is None:
            self._block = self._open_block()
        if self._block.is_untouched and self._block.bets is not None:
            self._block = self._fitted(self._block)
        return Measure(self._block.next_request(self._policy.max_batch))

    def _fitted(self, block: Block[EdgeBets]) -> Block[EdgeBets]:
        """An untouched block, cut to what is left of a budget, or the test that it becomes with a last call.

        Its bets stay, and depend on the past alone, as its counts do; a test does not settle them.
        """
        counts = fitted(self._last, self._left, block.counts, -1, self._test_counts)
        return block if counts is block.counts else Block(counts, block.bets)

    def _test_counts(self, n: int) -> IntArray:
        """How the last n measurements are divided over the arms of the lead's open edges."""
        account = self._account
        assert account is not None
        is_open = account.is_open(self._target)
        gap, spread = self._estimates(account, self._known_counts())
        share, _ = self._shares(account, is_open, gap, spread)
        differs = np.flatnonzero(account.edges.squares[is_open].any(axis=0))
        return last_counts(share, self._costs, differs, n)

    @property
    def _is_tested(self) -> bool:
        return self._last is not None and self._last.evidence is not None

    def remember(self, past: Past) -> None:
        """Begin with this past: it informs lead, division and bets from the first block on, and wins none."""
        self._put_past(past)

    @property
    def _plan(self) -> FloatArray:
        assert self._account is not None
        return self._vertices.form.plan(self._account.edges.values)

    def _answer(self, plan: FloatArray) -> tuple[float, ...]:
        return tuple(plan.tolist())

    def standing(self) -> Standing:
        """The lead, its neighbour along the edge with the least evidence, and the risk of declaring it."""
        if self._account is None:
            return Standing()
        account = self._account
        peak = np.where(account.edges.is_edge, self._log_evidence(account), np.inf)
        k = int(np.argmin(peak))
        gap, spread = self._estimates(account, self._known_counts())
        step = self._vertices.length(account.edges, k) * self._vertices.form.unit
        radius = step * math.sqrt(2 * float(spread[k]) * self._target)
        return Standing(
            self._answer(self._plan),
            self._answer(self._vertices.neighbour(account.edges, k)),
            step * float(gap[k]),
            radius,
            min(1.0, math.exp(-float(peak[k]))),
            unless=self._unless(account, peak),
        )

    def _unless(self, account: Account, log_evidence: FloatArray) -> tuple[str, ...]:
        """The variables that leave their bounds along edges that are not out: arms, and slacks of rows."""
        is_open = account.edges.is_edge & (log_evidence < self._target)
        moving = np.flatnonzero(account.edges.at != BASIC)[is_open]
        names = variable_names(self._problem)
        return tuple(names[j] for j in moving.tolist())

    def _log_evidence(self, account: Account) -> FloatArray:
        """Of each edge of the lead, that it does not improve: by bets, or by the test of the last block."""
        tested = None if self._last is None else self._last.evidence
        return account.purses.peak if tested is None else np.maximum(account.purses.peak, tested)

    def proof(self) -> Mapping[str, Any] | None:
        """The edges of the answer's basis with the evidence on each; `core/vertex_proof.py` checks it."""
        account = self._account
        if account is None or not self._is_sure:
            return None
        return proof_of(self._problem, account.edges.at, account.edges.full, self._log_evidence(account))

    def _open_block(self) -> Block[EdgeBets]:
        """Counts and bets of the next block, from the past alone."""
        if self._account is None:
            return Block(self._first_counts(), None)
        account = self._account
        is_open = account.is_open(self._target)
        gap, spread = self._estimates(account, self._known_counts())
        self._put_stake(account, gap[is_open], spread[is_open])
        return Block(self._divide(account, is_open, gap, spread), self._bets(account, is_open, gap, spread))

    def _put_stake(self, account: Account, gap: FloatArray, spread: FloatArray) -> None:
        """Put some of the cash on every edge of the lead alike, once all open ones are clear of a tie."""
        measured = self._evidence.n_measurements + float(self._worth.sum())
        if measured < account.next_stake or not bool((gap >= TUNING.ripe * np.sqrt(spread)).all()):
            return
        account.next_stake = TUNING.restart * measured
        stake = self._log_cash + math.log(TUNING.stake)
        self._log_cash += math.log1p(-TUNING.stake)
        purse = account.purses.purse
        purse[:] = np.logaddexp(purse, stake)

    def _bets(self, account: Account, is_open: BoolArray, gap: FloatArray, spread: FloatArray) -> EdgeBets:
        """What is bet on each open edge.

        The estimated gaps of a lead are biased upwards by its selection, all of it before its nomination; so
        centres are lowered in proportion to the share of the information that is older than that.
        """
        _, since = self._estimates(account, self._evidence.counts - account.born)
        old = 1.0 - np.minimum(spread / since, 1.0)
        distrust = TUNING.distrust * math.log(max(int(account.edges.is_edge.sum()), 1))
        centre = gap - (distrust * np.sqrt(old) + TUNING.caution) * np.sqrt(spread)
        return EdgeBets(is_open, centre, spread)

    def _divide(self, account: Account, is_open: BoolArray, gap: FloatArray, spread: FloatArray) -> IntArray:
        """Whole counts in proportion to shares of cost; every arm of an open edge gets one at least."""
        share, deficit = self._shares(account, is_open, gap, spread)
        squares = account.edges.squares
        calm = deficit / (np.maximum(gap, 0.0) ** 2 + TUNING.need_smoothing * spread)
        per_cost = self._price / np.maximum(share, _LEAST_SHARE / len(share))
        need = 2 * float((calm * (squares @ per_cost))[is_open].max())
        return self._counts(share, need, np.asarray(squares[is_open].any(axis=0)))

    def _shares(
        self, account: Account, is_open: BoolArray, gap: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Shares of cost that nearly minimise the largest need of an open edge, and what each edge lacks."""
        from surepick.policies.betting.division import divide

        now = np.logaddexp(self._log_cash, account.purses.purse)
        deficit = np.clip(self._target - now, _LEAST_DEFICIT, 2 * self._target)
        ahead = np.maximum(gap, 0.0) ** 2
        urgency = np.where(is_open, deficit / (ahead + TUNING.smoothing * spread), 0.0)
        squares = account.edges.squares
        chosen = np.flatnonzero(is_open)
        if len(chosen) > _WORKING_SET:
            worst = urgency[chosen] * (squares[chosen] @ self._price)
            chosen = np.sort(chosen[np.argsort(-worst, kind="stable")[:_WORKING_SET]])
        rows = squares[chosen] * urgency[chosen, None] * self._price
        warm = account.dual[chosen] / max(float(account.dual[chosen].sum()), _LEAST_SHARE)
        dual = _WARMTH * warm + (1 - _WARMTH) / len(chosen)
        n_arms = squares.shape[1]
        share = np.zeros(n_arms)
        divide(rows, dual, share, np.zeros(n_arms), np.zeros(len(chosen)), _STEPS, _TOLERANCE)
        account.dual = np.zeros(len(squares))
        account.dual[chosen] = dual
        return share, deficit

    def _counts(self, share: FloatArray, need: float, differs: BoolArray) -> IntArray:
        """The block costs a share of what was spent, or of the need; arms of no open edge get a little."""
        costs, relevant = self._costs, self._relevant
        spent = float(self._evidence.counts @ costs)
        budget = min(TUNING.block_share * spent, TUNING.need_share * need)
        budget = max(float(costs[differs].sum()), budget)
        counts = np.maximum(np.rint(share * budget / costs), 1)
        side = np.floor(TUNING.side_share * budget / (costs * np.count_nonzero(relevant)))
        return np.where(differs, counts, np.where(relevant, side, 0)).astype(np.int64)

    def _settle(self, bets: EdgeBets, seen: Evidence) -> None:
        """Multiply what is staked for the lead by its bets' factors, of this block's own means."""
        account = self._account
        assert account is not None
        gap, spread = np.empty(len(bets.centre)), np.empty(len(bets.centre))
        average, weight = _means(seen), _weights(self._variance, seen.counts)
        compare_edges(account.edges.rows, average, weight, gap, spread)
        if self._last is not None and self._last.is_open:
            tails = GAUSSIAN_NOISE if self._last.gaussian else self._problem.noise
            now = np.logaddexp(self._log_cash, account.purses.purse)
            self._last.evidence = now - log_p(gap, np.sqrt(spread), tails)
        else:
            # no bet on an edge with an arm that a cut block has left out, which its counts say beforehand
            centre = np.where(np.isfinite(spread), bets.centre, -1.0)
            settle_edges(bets._replace(centre=centre), account.purses, gap, spread, self._log_cash)
        known = self._log_evidence(account)[account.edges.is_edge]
        self._is_sure = bool((known >= self._target).all())

    def _choose_lead(self) -> None:
        """The vertex that looks best, unless one is proved; at a degenerate one the clearest basis."""
        if self._is_sure or self._is_tested:
            return
        means, weight = self._known_means(), _weights(self._variance, self._known_counts())
        edges, start = None, self._vertices.first
        if self._account is not None:
            start, is_edge = self._account.edges.at, self._account.edges.is_edge
            gap = self._estimates(self._account, self._known_counts())[0][is_edge]
            if (gap >= 0).all():
                edges = self._account.edges
        if edges is None:
            edges = self._vertices.best(means, start)
        edges = self._vertices.clearest(edges, means, np.where(np.isfinite(weight), weight, 0.0))
        self._account = self._account_of(edges)

    def _account_of(self, edges: Edges) -> Account:
        """The account of this basis, which is the last used now; a new one where there is none."""
        account = self._accounts.pop(edges.key, None)
        if account is None:
            n = len(edges.gains)
            purses = Purses(np.full(n, NOTHING), np.zeros(n))
            account = Account(edges, self._evidence.counts, purses, dual=np.zeros(n))
            if len(self._accounts) >= TUNING.accounts:
                del self._accounts[next(iter(self._accounts))]
        self._accounts[edges.key] = account
        return account

    def _estimates(self, account: Account, counts: IntArray | FloatArray) -> tuple[FloatArray, FloatArray]:
        """The estimated gap of each edge of an account, and what its variance is with these counts.

        The variance is 1 of what is no edge, so that it can be divided by.
        """
        n = len(account.edges.gains)
        gap, spread = np.empty(n), np.empty(n)
        weight = _weights(self._variance, counts)
        compare_edges(account.edges.rows, self._known_means(), weight, gap, spread)
        spread[~account.edges.is_edge] = 1.0
        return gap, spread

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one; a basis is where its variables are."""
        bets = None if self._block is None else self._block.bets
        return {
            **self._measured_state(),
            "log_cash": self._log_cash,
            "accounts": [
                [a.edges.at, a.born, a.purses.purse, a.purses.peak, a.next_stake, a.dual]
                for a in self._accounts.values()
            ],
            "bets": [] if bets is None else list(bets),
            "is_sure": self._is_sure,
            **({} if self._last is None else {"last_call": self._last.state()}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is; the lead is the account that was used last."""
        self._restore_measured(state, EdgeBets(*state["bets"]) if state["bets"] else None)
        self._log_cash, self._is_sure = state["log_cash"], state["is_sure"]
        self._last = LastCall(*state["last_call"]) if "last_call" in state else None
        self._accounts, self._account = {}, None
        for at, born, purse, peak, next_stake, dual in state["accounts"]:
            edges = self._vertices.edges(at)
            self._account = Account(edges, born, Purses(purse, peak), next_stake, dual)
            self._accounts[edges.key] = self._account


def _means(evidence: Evidence) -> FloatArray:
    """The means, and 0 where nothing was measured: on such arms no plans differ."""
    zeros = np.zeros(len(evidence.sums))
    return np.divide(evidence.sums, evidence.counts, out=zeros, where=evidence.counts > 0)


def _weights(variance: FloatArray, counts: IntArray | FloatArray) -> FloatArray:
    """The variance of each arm's mean of so many measurements; infinite for none."""
    nothing = np.full(len(counts), np.inf)
    return np.asarray(np.divide(variance, counts, out=nothing, where=counts > 0))
