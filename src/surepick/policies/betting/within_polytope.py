"""A plan of a polytope within epsilon of the best: the average of the leaders of a series of batches.

Before a batch a leader x and a weight h are fixed, the cost of the batch. With the batch's own means m and
their variances v, the bets of a series against any plan b have brought

    sum_j stake_j exp(g_j L(b) - g_j^2 Q(b) / 2),  L = sum h ((x - b).m + epsilon),  Q = sum h^2 v.(x - b)^2.

If b is a best plan and the average of the leaders, weighted by h, is not within epsilon of it, this is at
most a supermartingale that starts at the stake (docs/theory.md): Bad(theta) are the series whose average is
wrong, the rows are the plans, and the selector is a best plan. The answer is the average of a series whose
wealth, with the cash, has reached 1/delta against every plan of the polytope at one time. A search over boxes
of plans finds that, and `core/polytopes/proofs.py` checks it by arithmetic alone.

Measurements are sub-Gaussian with known scales: the search needs Q, a sum over arms of known numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, golden_multiples
from surepick.core.polytopes.polytope import Polytope
from surepick.core.polytopes.proofs import Inequality, errors_ahead, shown, tight_bounds
from surepick.core.polytopes.standard_form import ROUNDING, priced_ends
from surepick.core.run import Answer, Decision, Standing
from surepick.design.grid import SHARE_BITS
from surepick.inference.contrasts import Contrasts
from surepick.inference.factors import SubGaussian
from surepick.inference.steps import is_share
from surepick.policies.betting.estimates import BatchResult, Estimates
from surepick.policies.betting.question import Check, Pace, PlannedBatch, Question, Targets, is_clear
from surepick.policies.polytopes.covering import ALIVE, COVERED, Prover
from surepick.policies.polytopes.edges import basis_of, basis_text
from surepick.policies.polytopes.rivals import Rivals

_ROUNDS, _DRAWS = 4, 6  # of looking for rivals, and plans of draws around the means, before a batch
_LOCAL = 5  # rivals from which others are looked for
_LEAST_LEVEL = 0.5  # standard errors that a rival may be behind, at least, to be looked for
_BELOW = (0.05, 0.5, 1.5)  # nats below what known rivals allow, at which a proof is tried
_NEAR = 1.0  # nats below the threshold at which a proof is tried
_BINDING = 0.01  # of the dual: rivals that bet sizes are chosen for
_LOWEST, _HIGHEST, _RATIO = 0.25, 2.0, 1.5  # of bet sizes, around those that suit these rivals
_CAUTION = 4.0  # sizes are this much smaller where the scale is learned: bets count more than is estimated
_MOST_RATES = 1000  # bet sizes of a series that a recorded decision may name
_ROOM = 1e-9  # nats above the threshold that a proof asks for


@dataclass(eq=False)
class Series:
    """A stake that bets in all batches since it began: its rate g has grown by exp(g L(b) - g^2 Q(b) / 2)."""

    log_stakes: FloatArray  # (n_rates,)
    rates: FloatArray  # (n_rates,)
    begun: int  # the first of its batches


@dataclass(eq=False)
class Batches:
    """Every batch with bets: leader x and weight h, fixed before it, and its own means; changed by `add`."""

    leaders: FloatArray  # (n, n_arms)
    weights: FloatArray  # (n,)
    means: FloatArray  # (n, n_arms)
    variances: FloatArray  # (n, n_arms)

    def add(self, leader: FloatArray, weight: float, means: FloatArray, variance: FloatArray) -> None:
        """Add a batch with this leader and weight, by its own means."""
        self.leaders = np.vstack([self.leaders, leader])
        self.weights = np.append(self.weights, weight)
        self.means = np.vstack([self.means, means])
        self.variances = np.vstack([self.variances, variance])

    def __len__(self) -> int:
        return len(self.weights)

    def average(self, series: Series) -> FloatArray:
        """Return the average of the leaders of a series: the answer, once every plan is ruled out."""
        weights = self.weights[series.begun :]
        return np.asarray(weights @ self.leaders[series.begun :] / weights.sum())

    def inequality(self, series: Series, epsilon: float, target: float, log_cash: float) -> Inequality:
        """Return the claim about every plan that makes the average of this series the answer.

        It has L / H and Q / H^2 in place of L and Q, where H = sum h.

        L / H = sum h/H ((x - b).m + epsilon), rounded down, and Q / H^2 = sum (h/H)^2 v.(x - b)^2.
        """
        x, m, v = (part[series.begun :] for part in (self.leaders, self.means, self.variances))
        total = float(self.weights[series.begun :].sum())
        share = self.weights[series.begun :] / total
        rounding = ROUNDING * float(share @ np.abs(x * m).sum(axis=1))
        squares = share[:, None] ** 2 * v
        return Inequality(
            gain=float(share @ (x * m).sum(axis=1)) - rounding + epsilon,
            gains=-share @ m,
            square=float((squares * x**2).sum()),
            crosses=(squares * x).sum(axis=0),
            squares=squares.sum(axis=0),
            target=target,
            log_cash=log_cash,
            log_stakes=series.log_stakes,
            rates=series.rates * total,
        )


@dataclass(eq=False)
class LeaderBet:
    """The leader of a batch, which every series adds to its average."""

    leader: FloatArray  # (n_arms,) in units of the form


@dataclass(eq=False)
class PlanTest:
    """The test of a final batch. The plan and the least wealth against all plans are fixed before it."""

    plan: FloatArray  # (n_arms,) in units of the form
    log_wealth: float
    series: int  # whose wealth it is; -1: of the cash alone
    means: FloatArray | None = None
    variance: FloatArray | None = None
    gaussian: bool = False
    evidence: float = 0.0  # log


class WithinPolytope(Question):
    """Which plan is within epsilon of the best of all? The leader is a basis, by its text."""

    STATE: ClassVar[tuple[str, ...]] = (
        *Question.STATE,
        "series",
        "batches",
        "next_stake",
        "n_measured",
        "n_choices",
        "proved",
        "tested",
        "rivals",
    )
    KINDS: ClassVar[tuple[type, ...]] = (Batches, PlanTest, Series)
    learns_variance = False
    pace = Pace(smoothing=8.0, batch_share=0.15, need_share=1.0, renewal=0.15, uses_all=True)
    first_stake = 0.5  # of the cash
    stake_share = 0.4  # of the cash, for every later series
    restake = 1.5  # growth of the number of measurements between stakes
    ready = 1.8  # standard errors that the leader is ahead of all rivals, with epsilon, before a stake

    def __init__(self, problem: Polytope, delta: float, epsilon: float) -> None:
        self._delta = delta
        self.rivals = Rivals(problem)
        super().__init__(delta, epsilon)
        self._problem = problem
        self._form = problem.form
        self._relevant = problem.relevant
        self._scale = problem.sign * self._form.unit * self._form.moves  # of a mean, where amounts are near 1
        self._prover = Prover(self._form, self.rivals.first, epsilon)
        self._point = golden_multiples(self._form.n_arms) / self._form.unit  # amounts like those of no plan
        low, high = tight_bounds(self._form)
        # the most that a mean can weigh in the difference of two plans, in units of the form
        self._reach = np.where(self._relevant, np.abs(self._scale) * (high - low)[: self._form.n_arms], 0.0)
        self.series: list[Series] = []
        nothing = np.zeros((0, self._form.n_arms))
        self.batches = Batches(nothing, np.zeros(0), nothing, nothing)
        self.next_stake = 0.0
        self.n_measured = 0.0  # when the leader was chosen
        self.n_choices = 0  # of leaders: rivals are drawn by it
        self.proved: int | None = None  # the series whose average is proved
        self.tested: PlanTest | None = None
        self._risk: float | None = None  # cached by `standing`; None when it has to be computed

    # contrasts

    @property
    def n_plans(self) -> int:
        """How many rivals are known; the bets are against all plans."""
        return len(self.rivals.plans)

    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return some vertices less their mean, and every arm that differs between plans."""
        plans = self.rivals.plans[:most]
        dense = np.where(self._relevant, (plans - plans.mean(axis=0)) * self._scale, 0.0)
        return dense[np.abs(dense).max(axis=1) > 0], Contrasts(np.eye(self._form.n_arms)[self._relevant])

    def _turned(self, means: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of arms in units of the form, larger is better; 0 where none differ."""
        means = np.where(self._relevant, means, self._problem.known_means)
        return self._scale * means, np.asarray(self._scale**2 * np.where(self._relevant, variance, 0.0))

    def choose(self, estimates: Estimates) -> None:
        """Make the vertex that looks best the leader, and find rivals, which only guide the measurements."""
        if self.is_answered or (self.tested is not None and self.tested.means is not None):
            return
        self._risk = None
        self.n_measured = estimates.n_measured
        means, variance = self._turned(estimates.means, estimates.arm_variance())
        self.rivals.choose_lead(means)
        self.leader = basis_text(self.rivals.at)
        self.rivals.draw(means, np.sqrt(variance), self.n_choices, _DRAWS)
        self.n_choices += 1
        ahead = errors_ahead(self.rivals.lead, means, variance, self.epsilon)
        for _ in range(_ROUNDS):
            behind, clear = self._closest(means, variance)
            level = max(float(clear.min()), _LEAST_LEVEL)
            if not self.rivals.find(ahead._replace(target=level), behind[:_LOCAL]):
                break
        self.rivals.forget(self._closest(means, variance)[0])

    def _closest(self, means: FloatArray, variance: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the rivals, the closest first, and by how many standard errors each is behind."""
        contrasts = self.rivals.lead - self.rivals.plans
        error = np.sqrt(np.maximum(contrasts**2 @ variance, 1e-300))
        clear = (contrasts @ means + self.epsilon) / error
        return np.argsort(clear, kind="stable"), clear

    def unresolved(self) -> IntArray:
        """Return nothing: bets are against all plans at once."""
        return np.zeros(0, dtype=np.int64)

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return the contrasts of the leader with the known rivals that differ from it."""
        del rivals
        rows = (self._plan(self.leader) - self.rivals.plans) * self._scale
        known = np.flatnonzero(np.abs(rows[:, self._relevant]).max(axis=1) > 0)
        constant = rows[known] @ self._problem.known_means
        contrasts = Contrasts(np.where(self._relevant, rows[known], 0.0), constant=constant)
        furthest = self._furthest()
        wealth = np.full(len(known), self.wealth.log_cash)
        if furthest is not None:
            wealth = self._inequality(furthest).log_wealth(self.rivals.plans[known])
        return self.aim(estimates, known, contrasts, wealth, self.epsilon)

    # bets

    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Return the bet sizes of a series that begins with the next batch, and its share of the cash.

        There are no sizes, and no share, if none begins. Of a final batch it is the series whose average is
        tested, -1 for the leader.
        """
        if batch.targets is not None and not batch.has_bets:
            furthest = self._furthest()
            return {"series": -1 if furthest is None else furthest}
        rates, targets, counts = np.zeros(0), batch.targets, batch.counts
        is_whole = bool((counts[self._relevant] > 0).all())  # a batch that is cut too short is no bet
        if targets is not None and is_whole and self.n_measured >= self.next_stake:
            gap = targets.gap + self.epsilon
            if is_clear(gap, self.ready * targets.error):
                binding = batch.dual > _BINDING
                readings = estimates.readings
                variance = readings.gap_variance(readings.matrix(counts), targets.contrasts)
                per_cost = variance[binding] * float(counts @ readings.costs)
                suits = np.maximum(gap[binding], 0.5 * self.epsilon) / per_cost
                rates = self._rates(suits / (_CAUTION if self._problem.noise_scale is None else 1.0))
        stake = {"stake": self.stake_share if self.series else self.first_stake}
        return {"rates": rates.tolist()} | (stake if len(rates) else {})

    def _rates(self, best: FloatArray) -> FloatArray:
        """Return bet sizes from below the least of the best ones to above the largest."""
        low, high = float(best.min()) * _LOWEST, float(best.max()) * _HIGHEST
        return np.geomspace(low, high, max(2, math.ceil(math.log(high / low) / math.log(_RATIO)) + 1))

    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return that a series has bet sizes above 0, and the arms have shares of the batch."""

        def are_rates(rates: Any) -> bool:
            is_list = isinstance(rates, list) and len(rates) <= _MOST_RATES
            return is_list and all(isinstance(rate, float) and 0 < rate < math.inf for rate in rates)

        def are_shares(shares: Any) -> bool:
            is_list = isinstance(shares, list) and len(shares) == len(decision.uses) and any(shares)
            return is_list and all(type(share) is int and 0 <= share <= 2**SHARE_BITS for share in shares)

        def is_series(k: Any) -> bool:
            return type(k) is int and (k == -1 or k in self._begun())

        if decision.is_final:
            return {"series": is_series, "shares": are_shares}
        checks: dict[str, Check] = {"rates": are_rates, "shares": are_shares}
        return checks | ({"stake": is_share} if decision.more.get("rates") else {})

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the leader; begin the series that the decision names with some of the cash."""
        self.leader = decision.leader
        rates = np.array(decision.more.get("rates", ()), dtype=float)
        if len(rates):
            amount = self.wealth.withdraw(decision.more["stake"])
            stakes = np.full(len(rates), amount - math.log(len(rates)))
            self.series.append(Series(stakes, rates, len(self.batches)))
            self.next_stake = self.restake * estimates.n_measured

    def bets(self, decision: Decision, estimates: Estimates) -> list[Any]:
        """Return the bet on the leader; for a final batch, the test of the average closest to a proof."""
        del estimates
        if not decision.is_final:
            return [LeaderBet(self._plan(self.leader))]
        k, cash = decision.more["series"], self.wealth.log_cash
        if k < 0:
            return [PlanTest(self._plan(self.leader), cash, -1)]
        level = self._level(k, cash)
        return [PlanTest(self.batches.average(self.series[k]), level, k if level > cash else -1)]

    def settle(self, bets: list[Any], result: BatchResult) -> None:
        """Add the batch to every series, by its own means; then look whether one of them is proved."""
        self._risk = None
        uses, (bet,) = result.uses, bets
        if isinstance(bet, PlanTest):
            self.tested = bet
        if not (uses[self._relevant] > 0).all():
            return  # a batch cut so short, which its counts say beforehand, is no bet
        weight = float(uses @ result.readings.costs)
        variance = self._variance_of(result, weight)
        if not np.isfinite(variance).all():
            return  # there is no bet without a bound on the noise, as is known beforehand
        means, variance = self._turned(result.arm_means, variance)
        if isinstance(bet, PlanTest):
            bet.means, bet.variance = means, variance
            bet.gaussian = result.gaussian
            bet.evidence = self._evidence_of(bet)
            return
        self.batches.add(bet.leader, weight, means, variance)
        self._look_for_proof()

    def _variance_of(self, result: BatchResult, weight: float) -> FloatArray:
        """Return the variance of each arm's average in a batch, or what takes its place if it is learned.

        A series bets rate * weight * (x - b) on the averages, where x - b is at most `self._reach`. A final
        batch makes no bets; its test takes the bound on the noise.
        """
        scatter = result.scatter
        if scatter is None:
            return np.asarray(1.0 / np.where(self._relevant, result.arm_information, 1.0))
        if result.is_final:
            return scatter.bound_variance(result.uses)
        rate = max((float(series.rates.max()) for series in self.series), default=0.0)
        return scatter.variance(result.uses, rate * weight * self._reach)

    # proofs

    def _inequality(self, k: int) -> Inequality:
        """Return the claim about every plan that makes the average of this series the answer."""
        target = self.wealth.threshold + _ROOM
        return self.batches.inequality(self.series[k], self.epsilon, target, self.wealth.log_cash)

    def _begun(self) -> list[int]:
        """Return the series that have had a batch."""
        return [k for k, series in enumerate(self.series) if series.begun < len(self.batches)]

    def _look_for_proof(self) -> None:
        """Set `proved` to the first series whose average is proved; None if there is none."""
        self.proved = next((k for k in self._begun() if self._is_proved(k)), None)

    def _furthest(self) -> int | None:
        """Return the series whose least wealth against a known rival is largest; None before any batch."""
        if self.proved is not None:
            return self.proved
        least = {k: float(self._inequality(k).log_wealth(self.rivals.plans).min()) for k in self._begun()}
        return max(least, key=lambda k: least[k]) if least else None

    def _is_proved(self, k: int) -> bool:
        """Return whether this series rules out every plan; one that it does not becomes a rival."""
        inequality = self._inequality(k)
        wealth = inequality.log_wealth(self.rivals.plans)
        if wealth.min() < self.wealth.threshold - _NEAR:
            return False
        if self.rivals.find(inequality, np.argsort(wealth, kind="stable")[: _LOCAL + 1]):
            return False
        found = self._prover.prove(inequality)
        if found.status == ALIVE:
            self.rivals.add_near(inequality, found.alive)
        return found.status == COVERED

    def _level(self, k: int, least: float) -> float:
        """Return the log wealth of a series that a quick search proves against all plans, or the least."""
        inequality = self._inequality(k)
        most = float(inequality.log_wealth(self.rivals.plans).min())
        levels = (most - below for below in _BELOW)
        return self._prover.first_level(levels, least, lambda x: inequality._replace(target=x), quick=True)

    def _test(self, test: PlanTest) -> Inequality:
        """Return the claim that the final batch puts the tested plan ahead of every plan; sets no target."""
        assert test.means is not None
        assert test.variance is not None
        return errors_ahead(test.plan, test.means, test.variance, self.epsilon, rounded=True)

    def _evidence_of(self, test: PlanTest) -> float:
        """Return the log evidence of a test against all plans, with the wealth before it.

        The known rivals bound it from above. The prover tries the threshold if that bound allows it, then
        levels a little below the bound.
        """
        inequality = self._test(test)
        before = test.log_wealth
        threshold = self.wealth.threshold
        gap = inequality.gain + self.rivals.plans @ inequality.gains
        variance = (test.plan - self.rivals.plans) ** 2 @ inequality.squares
        differs = variance > 0
        log_p = SubGaussian().log_p(gap[differs], variance[differs], gaussian=test.gaussian)
        most = before - float(log_p.max(initial=-np.inf))
        levels = [threshold] * (most >= threshold) + [most - below for below in _BELOW]

        def asked(level: float) -> Inequality:
            errors = SubGaussian.errors_for(level - before, gaussian=test.gaussian)
            return inequality._replace(target=errors)

        return self._prover.first_level(levels, before, asked)

    @property
    def is_answered(self) -> bool:
        """Whether a plan is proved to be within epsilon: a series' average of leaders, or the tested plan."""
        return self._proved_plan() is not None

    def _proved_plan(self) -> FloatArray | None:
        """Return the plan that is proved, in units of the form."""
        if self.proved is not None:
            return self.batches.average(self.series[self.proved])
        tested = self.tested
        return tested.plan if tested is not None and tested.evidence >= self.wealth.threshold else None

    def answer(self) -> tuple[float, ...]:
        """Return the plan that is proved."""
        plan = self._proved_plan()
        assert plan is not None
        return self._amounts(plan)

    def _amounts(self, values: FloatArray) -> tuple[float, ...]:
        form = self._form
        inside = np.clip(values, form.lower[: form.n_arms], form.upper[: form.n_arms])
        return tuple(form.plan(inside).tolist())

    def _plan(self, basis: str) -> FloatArray:
        return self.rivals.vertices.plan_at(basis_of(basis))

    def proof(self) -> Mapping[str, Any] | None:
        """Return boxes that together hold all plans, each ruled out, as JSON values.

        Their numbers are in the units and rows of the standard form, which are named for readers without it.
        """
        plan, tested = self._proved_plan(), self.tested
        if plan is None:
            return None
        form = self._form
        found = {
            "average": (plan * form.unit).tolist(),
            "unit": form.unit,
            "rows": form.kept.tolist(),
            "ends": priced_ends(self._problem.rows),
        }
        if self.proved is not None:
            return {**found, "series": self._shown(self._inequality(self.proved))}
        assert tested is not None
        before = None
        if tested.series >= 0:
            before = self._inequality(tested.series)._replace(target=tested.log_wealth)
        errors = SubGaussian.errors_for(self.wealth.threshold - tested.log_wealth, gaussian=tested.gaussian)
        return {
            **found,
            "series": None if before is None else self._shown(before, quick=True),
            "log_wealth": tested.log_wealth,
            "gaussian": tested.gaussian,
            "test": self._shown(self._test(tested)._replace(target=errors)),
        }

    def _shown(self, inequality: Inequality, *, quick: bool = False) -> dict[str, Any]:
        """Return an inequality with the boxes that prove it."""
        return shown(inequality, self._prover.prove(inequality, quick=quick).nodes)

    def standing(self, estimates: Estimates) -> Standing:
        """Return the average closest to a proof, its rival with the least evidence, and the risk."""
        k = self._furthest()
        tested = self.tested
        plans = self.rivals.plans
        means, variance = self._turned(estimates.means, estimates.arm_variance())
        if tested is not None or k is None:
            plan = self._plan(self.leader) if tested is None else tested.plan
            differs = (plan - plans) ** 2 @ variance > 0
            rival = plans[int(np.argmin(np.where(differs, (plan - plans) @ means, np.inf)))]
        else:
            plan = self.batches.average(self.series[k])
            rival = plans[int(np.argmin(self._inequality(k).log_wealth(plans)))]
        contrast = plan - rival
        radius = math.sqrt(2.0 * float(contrast**2 @ variance) * self.wealth.threshold)
        if self._risk is None:
            evidence = self.least_evidence()
            self._risk = self._delta if evidence >= self.wealth.threshold else min(1.0, math.exp(-evidence))
        return Standing(
            self._amounts(plan), self._amounts(rival), float(contrast @ means), radius, self._risk
        )

    def least_evidence(self) -> float:
        """Return the log evidence that is proved against all plans at once, at most the threshold."""
        k, threshold = self._furthest(), self.wealth.threshold
        if self.tested is not None:
            return min(self.tested.evidence, threshold)
        if k is None:
            return 0.0
        return threshold if self.proved == k else min(self._level(k, 0.0), threshold)

    def recorded_wealth(self, leader: Any) -> float:
        """Return the log wealth of the last series that has begun, at a point that is like no plan."""
        del leader
        begun = self._begun()
        if not begun:
            return self.wealth.log_cash
        return float(self._inequality(begun[-1]).log_wealth(self._point[None])[0])

    def leader_objection(self, leader: Any) -> str | None:
        """Return why this cannot lead: it is no basis whose vertex is a plan."""
        return None if self.rivals.vertices.is_vertex(leader) else "its leader is no basis of a plan"

    def rival_objection(self, decision: Decision) -> str | None:
        """Return why there can be no rivals: the bets are against all plans."""
        return "it has rivals, where the bets are against all plans" if len(decision.rivals) else None

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this plan is the average of a series that is proved, or the tested one."""
        if plan is None or not self.is_answered or np.shape(plan) != (self._form.n_arms,):
            return False
        return np.allclose(self.answer(), plan, rtol=1e-9, atol=1e-9)

    def set_delta(self, delta: float) -> None:
        """Continue with a smaller delta: raise the threshold of wealth and check the proofs again.

        Stakes and batches stay. A series that was proved may be unproved now and continues to bet.
        """
        super().set_delta(delta)
        self._delta = delta
        self._risk = None
        self._look_for_proof()
