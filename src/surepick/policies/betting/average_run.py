"""A run of PolyBet within epsilon: the answer is the average of the leads, a block at a time.

`poly_bet` says what is promised and why; the proof is in docs/theory.md, with the names of this file.
Amounts are in units of the standard form, where they are near 1; means are turned so that larger is better.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.average_proof import Question, errors_ahead, log_wealth, proof_of
from surepick.core.evidence import Evidence
from surepick.core.past import Past
from surepick.core.policy import known_noise_scale
from surepick.core.polytope import Polytope
from surepick.core.run import Measure, Standing, Stop
from surepick.policies.betting.average_blocks import TUNING, View, whole_counts
from surepick.policies.betting.average_test import Claim, Rule, evidence_of, proof_of_claim
from surepick.policies.betting.block_run import Block
from surepick.policies.betting.box_cuts import ALIVE, COVERED
from surepick.policies.betting.division import divide
from surepick.policies.betting.last_call import GAUSSIAN_NOISE, LastCall, LastCallRun, fitted, last_counts
from surepick.policies.betting.poly_bet import PolyBet
from surepick.policies.betting.prover import BELOW, Prover
from surepick.policies.betting.rivals import Rivals
from surepick.policies.betting.series import Series

_LEAST_DEFICIT = 0.3  # nats
_LEAST_LEVEL = 0.5  # standard errors
_STEPS, _TOLERANCE = 60, 0.005  # of the allocation
_WARMTH = 0.9  # of its start from the last one
_LOCAL = 5  # rivals from which others are looked for
_NEAR = 1.0  # nats below the target at which a proof is tried


class Bets(NamedTuple):
    """What is fixed before a block: the lead, and the weight of the block in every series."""

    lead: FloatArray  # (n_arms,)
    weight: float


class AverageRun(LastCallRun[Bets]):
    """A run of PolyBet within epsilon; owned and changed by whoever started it."""

    def __init__(self, problem: Polytope, policy: PolyBet) -> None:
        super().__init__(policy, problem.relevant)
        self._problem, self._policy, self._form = problem, policy, problem.form
        self._sign = problem.sign * self._form.unit  # of a mean, in units of the form
        self._variance = np.where(self._relevant, (known_noise_scale(problem) * self._form.unit) ** 2, 0.0)
        self._costs, self._price = problem.costs, self._variance * problem.costs
        self._target = -math.log(policy.delta)
        self._rivals = Rivals(problem)
        self._prover = Prover(self._form, self._rivals.first, policy.epsilon)
        self._log_cash = 0.0
        self._series: list[Series] = []
        self._next_stake = 0.0
        self._share: FloatArray | None = None  # of cost, calmed
        self._n_blocks = 0
        self._proved: int | None = None  # the series whose average is proved
        self._risk_now: float | None = None  # of declaring the average; None until somebody asks
        self._tested: Claim | None = None
        self._asked: Question | None = None  # by the test, once it is made; its target is 0

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """The next part of the block, or the average of the leads once it is proved."""
        del rng  # nothing is drawn
        last = self._last
        if self._block is None and self._proved is not None:
            return Stop(self._answer(self._series[self._proved].average))
        if self._block is None and last is not None and last.evidence is not None:
            assert self._tested is not None
            return Stop(self._answer(self._tested.plan) if self._is_shown else None)
        if self._block is None and last is not None and last.left <= 0:
            return Stop(None)  # the block that was open has taken all that were left: there is no test
        if self._block is None:
            self._block = self._open_block()
        if self._block.is_untouched and self._block.bets is not None:
            self._block = self._fitted(self._block, self._block.bets)
        return Measure(self._block.next_request(self._policy.max_batch))

    def _fitted(self, block: Block[Bets], bets: Bets) -> Block[Bets]:
        """An untouched block, cut to what is left of a budget, or the test that it becomes with a last call.

        The lead stays, and the weight falls with the counts: both are fixed before the block, as ever.
        """
        counts = fitted(self._last, self._left, block.counts, -1, self._test_counts)
        if counts is block.counts:
            return block
        if self._last is not None:
            self._tested = self._claim(bets.lead)
            return Block(counts, bets)
        share = float(counts.sum()) / float(block.counts.sum())
        return Block(counts, bets._replace(weight=share * bets.weight))

    def _test_counts(self, n: int) -> IntArray:
        """How the last n measurements are divided."""
        assert self._share is not None
        return last_counts(self._share, self._costs, np.flatnonzero(self._relevant), n)

    def _claim(self, lead: FloatArray) -> Claim:
        """What the last block tests: the average that is closest to a proof, or the lead."""
        k = self._furthest()
        if k is None:
            return Claim(lead, self._log_cash)
        return Claim(self._series[k].average, self._level(k, self._log_cash), k)

    def remember(self, past: Past) -> None:
        """Begin with this past: it informs leads, division and bets from the start, and wins none."""
        self._put_past(past)

    def _answer(self, values: FloatArray) -> tuple[float, ...]:
        form = self._form
        inside = np.clip(values, form.lower[: form.n_arms], form.upper[: form.n_arms])
        return tuple(form.plan(inside).tolist())

    def standing(self) -> Standing:
        """The average closest to a proof, the rival that it has the least evidence against, and the risk."""
        if not self._is_started:
            return Standing()
        k, plans = self._furthest(), self._rivals.plans
        is_tested = self._last is not None and self._last.evidence is not None
        if k is None or is_tested:
            average = self._rivals.lead if self._tested is None else self._tested.plan
            means, spread = self._estimates()
            differs = (average - plans) ** 2 @ spread > 0
            rival = plans[int(np.argmin(np.where(differs, (average - plans) @ means, np.inf)))]
        else:
            average = self._series[k].average
            rival = plans[int(np.argmin(log_wealth(self._question(k), plans)))]
        if self._risk_now is None:
            self._risk_now = self._risk(k)
        means, spread = self._estimates()
        away = average - rival
        radius = math.sqrt(2 * float(away**2 @ spread) * self._target)
        return Standing(
            self._answer(average), self._answer(rival), float(away @ means), radius, self._risk_now
        )

    def _risk(self, k: int | None) -> float:
        """1 over the least evidence against all plans: of the last block's test, or of the series."""
        if self._last is not None and self._last.evidence is not None:
            known = float(self._last.evidence[0])
        elif k is None:
            return 1.0
        else:
            known = self._target if self._proved == k else self._level(k, 0.0)
        return self._policy.delta if known >= self._target else min(1.0, math.exp(-known))

    def _level(self, k: int, least: float) -> float:
        """What the log wealth of a series is proved to be against all plans, at a glance, or the least."""
        question = self._question(k)
        most = float(log_wealth(question, self._rivals.plans).min())
        levels = (most - below for below in BELOW)
        return self._prover.first_level(levels, least, lambda x: question._replace(target=x), glance=True)

    def proof(self) -> Mapping[str, Any] | None:
        """Boxes that together hold all plans, each ruled out; `core/average_proof.py` checks it."""
        if self._proved is None:
            return self._proof_of_test()
        question = self._question(self._proved)
        found = self._prover.prove(question, keep=True)
        average = self._series[self._proved].average * self._form.unit
        return proof_of(self._problem, average, question, found.nodes)

    def _proof_of_test(self) -> Mapping[str, Any] | None:
        """The same of the plan that was tested: boxes for the wealth before the test, and for the test."""
        last, claim, asked = self._last, self._tested, self._asked
        if last is None or claim is None or asked is None or not self._is_shown:
            return None
        before = None if claim.log_wealth <= self._log_cash else self._question(claim.series)
        return proof_of_claim(self._problem, claim, (before, asked), self._prover, self._test_of(last))

    def _test_of(self, last: LastCall) -> Rule:
        return Rule(self._target, GAUSSIAN_NOISE if last.gaussian else self._problem.noise)

    @property
    def _is_shown(self) -> bool:
        """Whether the last block has shown enough of the plan that it tested."""
        evidence = None if self._last is None else self._last.evidence
        return evidence is not None and bool(evidence[0] >= self._target)

    def _question(self, k: int) -> Question:
        return self._series[k].question(self._policy.epsilon, self._target + 1e-9, self._log_cash)

    def _furthest(self) -> int | None:
        """The series whose least evidence against a known rival is largest; None before any block of one."""
        if self._proved is not None:
            return self._proved
        least = [
            float(log_wealth(self._question(k), self._rivals.plans).min()) if series.weight else -math.inf
            for k, series in enumerate(self._series)
        ]
        best = int(np.argmax(least)) if least else -1
        return None if best < 0 or not self._series[best].weight else best

    def _estimates(self) -> tuple[FloatArray, FloatArray]:
        """The means, turned so that larger is better, and their variances; 0 of arms that do not matter."""
        known = self._known_counts()
        counts = np.where(known > 0, known, 1.0)
        means = np.where(self._relevant, self._sign * (self._evidence.sums + self._thought) / counts, 0.0)
        return means, self._variance / counts

    def _choose_lead(self) -> None:
        """The vertex that looks best."""
        self._risk_now = None
        if self._proved is None:
            self._rivals.choose_lead(self._estimates()[0])

    def _open_block(self) -> Block[Bets]:
        """Lead, counts, weight and stakes of the next block, from the past alone."""
        if not self._is_started:
            return Block(self._first_counts(), None)
        self._risk_now = None
        means, spread = self._estimates()
        self._rivals.draw(means, np.sqrt(spread), self._n_blocks, TUNING.draws)
        view = self._find_rivals()
        self._put_stake(view)
        calm = (
            view.share if self._share is None else (1 - TUNING.calm) * self._share + TUNING.calm * view.share
        )
        self._share = calm
        counts = self._counts(calm, view.worst)
        self._n_blocks += 1
        weight = view.weight(self._variance, self._rivals.dual, counts)
        return Block(counts, Bets(view.lead, weight))

    def _find_rivals(self) -> View:
        """Compare the lead with its rivals, and look for harder ones until none is found."""
        epsilon = self._policy.epsilon
        for _ in range(TUNING.rounds):
            view = self._view(self._rivals.lead)
            means, spread = self._estimates()
            error = np.sqrt(np.maximum(view.spread, 1e-300))
            level = max(view.clear, _LEAST_LEVEL)
            found = self._rivals.find(
                errors_ahead(view.lead, means, spread, epsilon)._replace(target=level),
                np.argsort(view.gap / error, kind="stable")[:_LOCAL],
            )
            price = self._price / np.maximum(view.share, 1e-300)
            need = view.urgency * (view.squares @ price)
            level = math.sqrt(max(1.0 / max(view.worst, 1e-300), 1e-12))
            found += self._rivals.find(
                errors_ahead(view.lead, means, price, epsilon)._replace(target=level),
                np.argsort(-need, kind="stable")[:_LOCAL],
            )
            if not found:
                break
        return self._view(self._rivals.lead) if found else view

    def _view(self, lead: FloatArray) -> View:
        """Compare the lead with its rivals, for an allocation whose dual the next one starts from."""
        plans, (means, spread) = self._rivals.plans, self._estimates()
        gap, squares = (lead - plans) @ means + self._policy.epsilon, (lead - plans) ** 2
        variance = squares @ spread
        urgency = 1.0 / (np.maximum(gap, 0.0) ** 2 + TUNING.smoothing * variance + 1e-300)
        k = self._furthest()
        if k is not None:
            missing = self._target - log_wealth(self._question(k), plans)
            urgency *= np.clip(missing, _LEAST_DEFICIT, 2 * self._target)
        share, worst = self._allocate(squares * urgency[:, None] * self._price)
        return View(lead, gap, squares, variance, urgency, share, worst)

    def _allocate(self, rows: FloatArray) -> tuple[FloatArray, float]:
        """Shares of cost that nearly minimise the largest need of a rival, and that need."""
        n_rivals, n_arms = rows.shape
        dual = _WARMTH * self._rivals.dual + (1 - _WARMTH) / n_rivals
        dual /= dual.sum()
        share = np.zeros(n_arms)
        worst = divide(rows, dual, share, np.zeros(n_arms), np.zeros(n_rivals), _STEPS, _TOLERANCE)
        self._rivals.dual = dual
        share = 0.999 * share + 0.001 * self._relevant / np.count_nonzero(self._relevant)
        return share, float(worst)

    def _put_stake(self, view: View) -> None:
        """Begin a series with some of the cash where the lead is clear of all rivals, now and then again."""
        measured = self._evidence.n_measurements + float(self._worth.sum())
        if measured < self._next_stake or view.clear < TUNING.ripe:
            return
        rates = view.rates(self._price, self._rivals.dual, self._policy.epsilon)
        if rates is None:
            return
        share = TUNING.stake if self._series else TUNING.first_stake
        stakes = np.full(len(rates), self._log_cash + math.log(share / len(rates)))
        self._series.append(Series.begin(stakes, rates, len(self._price)))
        self._log_cash += math.log1p(-share)
        self._next_stake = TUNING.restart * measured

    def _counts(self, share: FloatArray, worst: float) -> IntArray:
        """What a share of the past, and of what seems to be needed still, buys."""
        spent = float(self._evidence.counts @ self._costs)
        need = 2 * (self._target + TUNING.slack) * worst
        budget = min(TUNING.block_share * spent, TUNING.need_share * need)
        return whole_counts(share, self._costs, self._relevant, budget)

    def _settle(self, bets: Bets, seen: Evidence) -> None:
        """Add the block to every series, by its own means; then look whether one of them is proved."""
        self._risk_now = None
        counts = np.maximum(seen.counts, 1)
        means = np.where(self._relevant, self._sign * seen.sums / counts, 0.0)
        if self._last is not None and self._last.is_open:
            self._last.evidence = np.array([self._test(self._last, seen, means)])
            return
        if not (seen.counts[self._relevant] > 0).all():
            return  # a block cut so short, which its counts say beforehand, is no bet
        for series in self._series:
            series.add(bets.lead, bets.weight, means, self._variance / counts)
        for k in range(len(self._series)):
            if self._try_to_prove(k):
                self._proved = k
                break
        self._rivals.forget()

    def _test(self, last: LastCall, seen: Evidence, means: FloatArray) -> float:
        """The log of the evidence against all plans: the block's own means, and the wealth before it."""
        claim = self._tested
        assert claim is not None
        if not (seen.counts[self._relevant] > 0).all():
            return claim.log_wealth
        spread = self._variance / np.maximum(seen.counts, 1)
        self._asked = errors_ahead(claim.plan, means, spread, self._policy.epsilon, rounded=True)
        return evidence_of(claim, self._asked, self._rivals.plans, self._prover, self._test_of(last))

    def _try_to_prove(self, k: int) -> bool:
        """Rule out every plan by this series, if it can be; what is found not to be becomes a rival."""
        question = self._question(k)
        wealth = log_wealth(question, self._rivals.plans)
        if wealth.min() < self._target - _NEAR:
            return False
        if self._rivals.find(question, np.argsort(wealth, kind="stable")[: _LOCAL + 1]):
            return False
        found = self._prover.prove(question)
        if found.status == ALIVE:
            self._rivals.add_near(question, found.alive)
        return found.status == COVERED

    def state(self) -> dict[str, Any]:
        """All that a fresh run needs to become this one."""
        bets = None if self._block is None else self._block.bets
        return {
            **self._measured_state(),
            "log_cash": self._log_cash,
            "series": [series.state() for series in self._series],
            "next_stake": self._next_stake,
            "share": self._share,
            "n_blocks": self._n_blocks,
            "proved": self._proved,
            "rivals": self._rivals.state(),
            "bets": [] if bets is None else list(bets),
            **({} if self._last is None else {"last_call": self._last.state()}),
            **({} if self._tested is None else {"tested": list(self._tested)}),
            **({} if self._asked is None else {"asked": list(self._asked)}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._restore_measured(state, Bets(*state["bets"]) if state["bets"] else None)
        self._log_cash, self._next_stake = state["log_cash"], state["next_stake"]
        self._share, self._n_blocks, self._proved = state["share"], state["n_blocks"], state["proved"]
        self._series = [Series(*parts) for parts in state["series"]]
        self._rivals.restore(state["rivals"])
        self._last = LastCall(*state["last_call"]) if "last_call" in state else None
        self._tested = Claim(*state["tested"]) if "tested" in state else None
        self._asked = Question(*state["asked"]) if "asked" in state else None
        self._risk_now = None
