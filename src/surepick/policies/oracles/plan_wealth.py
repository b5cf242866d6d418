"""Wealth against any plan of a set that is never listed: corollary 6 in docs/theory.md.

All bets are functions of a plan and of what is fixed before a batch (`OracleBet`), so that the wealth against
a plan can be computed when the plan turns up. With x the leader, m the batch's own averages, v_s the variance
of m_s and y = x - plan there are two kinds of bets.

*Common bets* have one size eta for all plans. Their log factor

    eta (y.m + epsilon) - eta^2 / 2 sum_s v_s y_s^2

is affine in the plan up to the squares plan_s^2, so that its sum over batches is kept as three arrays. On a
branch, l_s <= plan_s <= u_s, plan_s^2 <= (l_s + u_s) plan_s - l_s u_s, with equality for zeros and ones: an
affine function below the log wealth of every plan of the branch, which one call of the oracle bounds.

*Plan bets* are those of `Best`: fixed sizes and a mixture around the gap that was estimated before the batch.

Where readings have bounds (`BoundedPlanWealth`) the log factor is a sum over arms of f_s(y_s), by power sums
of the readings. Entries of a plan are one of two values, between which f_s is taken to be affine.

Rounding: every gap is lowered by more than its rounding error (`ROUNDING`) and every wealth by `FLAT`, so
that what is computed is below the wealth that the theorem is about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, divided
from surepick.core.plan_sets import Branch
from surepick.core.polytopes.standard_form import ROUNDING
from surepick.inference.bounded import (
    CAP,
    POWERS,
    SERIES,
    YOUNG_CAP,
    BoundedReadings,
    PowerSums,
    power_sums,
)
from surepick.inference.factors import Factor, SubGaussian, log_sum_exp
from surepick.inference.learned_scale import MOST_BET, LearnedVariance, ScatterSums, kappa
from surepick.inference.wealth import EMPTY
from surepick.policies.betting.best import GRID, SHRINKAGE
from surepick.policies.betting.estimates import BatchResult

SELECTION_BIAS = 0.35 * math.log(300.0)  # as if a leader were the luckiest of 300 plans
FLAT = 1e-9  # nats: more than the rounding of logs and of their sums


@dataclass(eq=False)
class OracleBet:
    """All that is fixed before a batch, from which the bets against any plan follow."""

    leader: FloatArray  # (n_arms,)
    free: BoolArray  # (n_arms,) where plans that are left may differ: no bet unless all of these are measured
    sizes: FloatArray  # (n_common,) of the common bets
    means: FloatArray  # (n_arms,) estimated before the batch
    variance: FloatArray  # (n_arms,) of these
    fresh: FloatArray  # (n_arms,) the same, by what was measured since the leader first led; 0 if nothing was


@dataclass(eq=False)
class FinalTest:
    """What a final batch has shown: a test against every plan takes the place of bets."""

    leader: FloatArray
    averages: FloatArray
    variance: FloatArray
    gaussian: bool


@dataclass(frozen=True, eq=False)
class CommonWealth:
    """Log wealth of common bets by plan, l_r(plan) = constant_r + slope_r.plan - curve_r.plan^2.

    Row r is one bet, and plan^2 has the squares of the entries.
    """

    constant: FloatArray  # (n,)
    slope: FloatArray  # (n, n_arms)
    curve: FloatArray  # (n, n_arms) not negative

    @classmethod
    def of_stakes(cls, log_stakes: FloatArray, n_arms: int) -> CommonWealth:
        """Return bets that have not won anything yet: the same against every plan."""
        nothing = np.zeros((len(log_stakes), n_arms))
        return cls(log_stakes, nothing, nothing)

    def plus(self, factors: CommonWealth) -> CommonWealth:
        """Return these bets after log factors, one for each row or one for all."""
        return CommonWealth(
            self.constant + factors.constant, self.slope + factors.slope, self.curve + factors.curve
        )

    def followed_by(self, others: CommonWealth) -> CommonWealth:
        """Return these bets and then others."""
        return CommonWealth(
            np.append(self.constant, others.constant),
            np.vstack([self.slope, others.slope]),
            np.vstack([self.curve, others.curve]),
        )

    def at(self, plans: FloatArray) -> FloatArray:
        """Return the logs against each of these plans, (n_plans, n)."""
        return np.asarray(self.constant + plans @ self.slope.T - (plans * plans) @ self.curve.T)

    def on(self, branch: Branch, plan: FloatArray) -> FloatArray:
        """Return the values at a plan of the affine functions that bound the rows on a branch, (n,)."""
        secants = (branch.lower + branch.upper) * plan - branch.lower * branch.upper
        return np.asarray(self.constant + self.slope @ plan - self.curve @ secants)

    def below(self, p: FloatArray, branch: Branch, reach: FloatArray) -> tuple[float, FloatArray, float]:
        """Return constant and slope of a function below the log wealth of every plan of the branch.

        For weights p that sum to 1 the log of the summed wealth is at least H(p) + sum_r p_r l_r (Jensen),
        H(p) = -sum_r p_r log p_r, and on the branch plan_s^2 is at most its secant. The third number is more
        than the rounding error of the two, and of their value at any plan whose entries are at most `reach`
        in size.
        """
        curve = p @ self.curve
        corner, middle = branch.lower * branch.upper, branch.lower + branch.upper
        used = p[p > 0]
        constant = float(p @ self.constant + curve @ corner) - float(used @ np.log(used))
        slope = np.asarray(p @ self.slope - curve * middle)
        sizes = float(p @ np.abs(self.constant) + curve @ np.abs(corner))
        sizes += float((p @ np.abs(self.slope) + curve * np.abs(middle)) @ reach)
        return constant, slope, ROUNDING * sizes


@dataclass(eq=False)
class PlanAccount:
    """An account whose rows are all plans: its bets, and the plans that it has ruled out.

    Every plan outside the branch, and every plan of `out`, has had wealth 1/delta. Rivals are plans that are
    not ruled out; a *proxy* is, but stands for others near it that are not.
    """

    branch: Branch  # holds all plans that are not ruled out
    kinds: FloatArray  # (n_common, 2) sizes are multiples of the two that a decision records
    common: CommonWealth
    stakes: FloatArray  # (n_components,) logs, of plan bets
    factors: IntArray  # (n_components,) which factor each is multiplied by: a fixed size, or last the mixture
    begun: IntArray  # (n_components,) the first batch of each
    batches: FloatArray  # (n, 5 + n_shown, n_arms) leader; means, variance, fresh of before; variance, shown
    out: FloatArray  # (n, n_arms) plans
    rivals: FloatArray  # (n, n_arms) plans
    components: FloatArray  # (n, n_components) log wealth of plan bets against each rival
    is_proxy: BoolArray  # (n,)
    jensen: FloatArray  # weights on cash and common bets that have ruled out a branch last
    final: FinalTest | None = None
    log_cash: float = EMPTY  # uninvested wealth of this account alone, beside the cash of all

    def __post_init__(self) -> None:
        self.out_keys = {plan.tobytes() for plan in self.out}
        self.rival_keys = {plan.tobytes() for plan in self.rivals}

    def pin(self, arm: int, value: float) -> None:
        """Leave the plans with this value on this arm in the branch."""
        self.branch = self.branch.pinned(arm, value)

    def add_rival(self, plan: FloatArray, components: FloatArray, *, is_proxy: bool) -> None:
        """Remember a plan that is in the way."""
        self.rivals = np.vstack([self.rivals, plan])
        self.components = np.vstack([self.components, components])
        self.is_proxy = np.append(self.is_proxy, is_proxy)
        self.rival_keys.add(plan.tobytes())

    def keep_rivals(self, mask: BoolArray) -> None:
        """Forget the other rivals, which only loses what was known of them."""
        self.rivals, self.components = self.rivals[mask], self.components[mask]
        self.is_proxy = self.is_proxy[mask]
        self.rival_keys = {plan.tobytes() for plan in self.rivals}

    def rule_out(self, plans: FloatArray) -> None:
        """Remember that these plans have had wealth 1/delta."""
        self.out = np.vstack([self.out, plans])
        self.out_keys.update(plan.tobytes() for plan in plans)


class PlanWealth:
    """How accounts are staked, settled and read. It has settings and no state."""

    factor: ClassVar[Factor] = SubGaussian()
    n_shown: ClassVar[int] = 1  # rows of an account's batches that say what was shown of the arms

    def __init__(
        self,
        variance: FloatArray,  # (n_arms,) of one measurement
        known: FloatArray,  # (n_arms,) means that are known exactly; nan for the others
        everything: Branch,  # which holds all plans
        epsilon: float,
    ) -> None:
        self._variance, self._known, self._everything = variance, known, everything
        self._epsilon = epsilon
        self.reach = np.maximum(np.abs(everything.lower), np.abs(everything.upper))  # of a plan's entries

    def open(self) -> PlanAccount:
        """Return an account in which nothing is staked and no plan is ruled out."""
        n_arms = len(self.reach)
        no_logs, no_numbers, no_plans = np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros((0, n_arms))
        return PlanAccount(
            branch=self._everything,
            kinds=np.zeros((0, 2)),
            common=CommonWealth.of_stakes(no_logs, n_arms),
            stakes=no_logs,
            factors=no_numbers,
            begun=no_numbers,
            batches=np.zeros((0, 5 + self.n_shown, n_arms)),
            out=no_plans,
            rivals=no_plans,
            components=np.zeros((0, 0)),
            is_proxy=np.zeros(0, dtype=bool),
            jensen=np.ones(1),
        )

    def stake(
        self,
        account: PlanAccount,
        log_amount: float,
        *,
        common_share: float,
        kinds: FloatArray,
        first_share: float,
    ) -> None:
        """Stake the same against every plan: new common bets of these kinds in equal parts, and plan bets.

        `first_share` of the part of the plan bets goes to fixed sizes, the rest to the mixture.
        """
        n = len(kinds)
        account.kinds = np.vstack([account.kinds, kinds])
        stakes = np.full(n, log_amount + math.log(common_share / n))
        account.common = account.common.followed_by(CommonWealth.of_stakes(stakes, len(self.reach)))
        log_rest = log_amount + math.log1p(-common_share)
        stakes = np.array([log_rest + math.log1p(-first_share)])
        factors = np.array([len(GRID)])
        if first_share > 0:
            each = log_rest + math.log(first_share / len(GRID))
            stakes = np.append(np.full(len(GRID), each), stakes)
            factors = np.arange(len(GRID) + 1)
        account.stakes = np.append(account.stakes, stakes)
        account.factors = np.append(account.factors, factors)
        account.begun = np.append(account.begun, np.full(len(stakes), len(account.batches)))
        components = [self.components(account, plan) for plan in account.rivals]
        account.components = np.array(components).reshape(len(components), len(account.stakes))

    def shown(self, result: BatchResult) -> FloatArray:
        """Return what a batch shows of the arms, (n_shown, n_arms): averages, or means that are known."""
        return np.where(np.isnan(self._known), result.arm_means, self._known)[None]

    def settle(self, account: PlanAccount, bet: OracleBet, shown: FloatArray, variance: FloatArray) -> None:
        """Multiply everything that is staked by its factors; what is shown and variances are the batch's own.

        - shown: (n_shown, n_arms)
        - variance: (n_arms,) of the averages
        """
        account.common = account.common.plus(self._common_factors(bet.leader, bet.sizes, shown, variance))
        batch = np.array([bet.leader, bet.means, bet.variance, bet.fresh, variance, *shown])
        account.batches = np.concatenate([account.batches, batch[None]])
        last = np.full(len(account.rivals), len(account.batches) - 1)
        factors = self._plan_factors(account, last, account.rivals)
        account.components = account.components + factors[:, account.factors]

    def _common_factors(
        self, leader: FloatArray, sizes: FloatArray, shown: FloatArray, variance: FloatArray
    ) -> CommonWealth:
        """Return the log factors eta (y.m + epsilon) - eta^2 / 2 sum_s v_s y_s^2, a row for each size eta.

        With y = leader - plan, multiplied out in powers of the plan's entries:

            constant = eta (leader.m + epsilon) - eta^2 / 2 v.leader^2
            slope    = eta^2 v leader - eta m
            curve    = eta^2 / 2 v

        - shown: what `shown` returns of the batch; here the averages m.
        - variance: (n_arms,) of the averages, v; or by size, (n_sizes, n_arms).
        """
        averages = shown[0]
        largest_y, half = np.abs(leader) + self.reach, sizes**2 / 2
        gap = float(leader @ averages) + self._epsilon
        gap -= ROUNDING * (float(np.abs(averages) @ largest_y) + self._epsilon)
        square = variance @ (leader * leader) + ROUNDING * (variance @ largest_y**2)
        curve = half[:, None] * variance
        return CommonWealth(
            sizes * gap - half * square, 2 * curve * leader - np.outer(sizes, averages), curve
        )

    def common(self, account: PlanAccount, log_cash: float, test_size: float = 0.0) -> CommonWealth:
        """Return the part of the wealth that all plans share: first the cash, then the common bets.

        After a final batch evidence is wealth / p. Chernoff's bound p = exp(-D^2 / 2v) for D > 0 is at most
        exp(-(g D - g^2 v / 2)) for every g >= 0, so that the test is a factor whose size `test_size` may be
        chosen after the batch.
        """
        cash = CommonWealth.of_stakes(np.array([log_cash]), len(self.reach))
        found = cash.followed_by(account.common)
        test = account.final
        if test is None or not test_size:
            return found
        size = np.array([test_size])
        return found.plus(self._common_factors(test.leader, size, test.averages[None], test.variance))

    def log_wealth(
        self, account: PlanAccount, common: CommonWealth, plans: FloatArray, components: FloatArray
    ) -> FloatArray:
        """Return the log evidence against each of these plans now, from below; `common` without a test."""
        found = log_sum_exp(np.hstack([common.at(plans), components])) - FLAT
        test = account.final
        if test is not None:
            gap, variance = self._tested(test, plans)
            on = variance > 0
            found[on] -= self.factor.log_p(gap[on], variance[on], gaussian=test.gaussian)
        return found

    def test_sizes(self, test: FinalTest, plans: FloatArray) -> FloatArray:
        """Return the sizes at which Chernoff's bound against these plans is tight, (n,)."""
        gap, variance = self._tested(test, plans)
        return divided(np.maximum(gap, 0.0), variance)

    def _tested(self, test: FinalTest, plans: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what a final batch shows of the gaps to these plans, and its variance."""
        y = test.leader - plans
        return self._gap(y, test.averages), (y * y * test.variance).sum(axis=1)

    def is_worse(self, plan: FloatArray, leader: FloatArray) -> bool:
        """Return whether the plan is worse for sure: it differs from the leader where means are known."""
        on = np.flatnonzero(plan != leader)
        losses = (leader[on] - plan[on]) * self._known[on]
        return bool(losses.sum() > ROUNDING * np.abs(losses).sum())  # false for a nan

    def components(self, account: PlanAccount, plan: FloatArray) -> FloatArray:
        """Return the log wealth of the plan bets against this plan, (n_components,), by all batches."""
        n = len(account.batches)
        factors = self._plan_factors(account, np.arange(n), np.broadcast_to(plan, (n, len(plan))))
        since = np.zeros((n + 1, factors.shape[1]))
        since[:n] = np.cumsum(factors[::-1], axis=0)[::-1]  # from each batch to the last
        return np.asarray(account.stakes + since[account.begun, account.factors])

    def _plan_factors(self, account: PlanAccount, batches: IntArray, plans: FloatArray) -> FloatArray:
        """Return the log factors of the plan bets in these batches against these plans, one each.

        They are those of the fixed sizes and, last, of the mixture around the estimate, less a correction for
        the selection bias of what was measured before the leader first led, (n, n_sizes + 1).
        """
        leader, means, prior, fresh, variance, *shown = account.batches[batches].transpose(1, 0, 2)
        y = leader - plans
        squares = y * y
        gap, gap_variance = self._shown(y, *shown), (squares * variance).sum(axis=1)
        prior_variance, since = (squares * prior).sum(axis=1), (squares * fresh).sum(axis=1)
        new_part = divided(prior_variance, since)
        correction = SELECTION_BIAS * np.sqrt(1 - np.clip(new_part, 0, 1)) + SHRINKAGE
        centre = (y * means).sum(axis=1) + self._epsilon - correction * np.sqrt(prior_variance)
        found = np.zeros((len(y), len(GRID) + 1))
        on = np.flatnonzero(gap_variance > 0)
        sizes = self._unit(squares, *shown)[on, None] * GRID
        found[on, :-1] = self.factor.log_factors(gap[on], gap_variance[on], sizes)
        on = np.flatnonzero((gap_variance > 0) & (centre >= 0) & (prior_variance > 0))
        found[on, -1] = self.factor.log_mixture(gap[on], gap_variance[on], centre[on], prior_variance[on])
        return found

    def _unit(self, squares: FloatArray, *shown: FloatArray) -> FloatArray:
        """Return the unit of fixed sizes: the deviation of a gap after one measurement of each arm."""
        del shown
        return np.asarray(np.sqrt(squares @ self._variance))

    def _gap(self, y: FloatArray, averages: FloatArray) -> FloatArray:
        """Return y.averages + epsilon, lowered by rounding."""
        products = y * averages
        gap = products.sum(axis=1) + self._epsilon
        return np.asarray(gap - ROUNDING * (np.abs(products).sum(axis=1) + self._epsilon))

    def _shown(self, y: FloatArray, *shown: FloatArray) -> Any:
        """Return what a batch shows of y.mu + epsilon, lowered by rounding."""
        return self._gap(y, shown[0])


class BoundedPlanWealth(PlanWealth):
    """The same where readings of arms lie between bounds, and plans have two values on each arm.

    With n_s uses of arm s, power sums S_sp of its readings about the centre c_s, and y = leader - plan, a bet
    of size lam has the log factor

        lam epsilon + sum_s f_s(y_s),  f_s(y) = lam y c_s + sum_p a_p (lam y / n_s)^p S_sp,

    with the series a of `inference.bounded`. A plan has one of two values on each arm, so that f_s is affine.
    """

    factor: ClassVar[Factor] = BoundedReadings()
    n_shown: ClassVar[int] = 3 + POWERS  # centres, uses, the furthest reading from the centre, power sums

    def shown(self, result: BatchResult) -> FloatArray:
        """Return centres, uses, furthest readings from the centre and power sums by arm."""
        readings, is_known = result.bounded, ~np.isnan(self._known)
        assert readings is not None
        powers = np.zeros((POWERS, len(result.uses)))
        for arm, values in readings.values.items():
            powers[:, arm] = power_sums(values[:, 0] - readings.centres[arm])
        furthest = np.maximum(readings.centres - readings.noise.low, readings.noise.high - readings.centres)
        is_used = (result.uses > 0) & ~is_known
        centres = np.where(is_used, readings.centres, np.where(is_known, self._known, 0.0))
        by_use = np.where(is_used, [furthest, *powers], 0.0)
        return np.vstack([centres, np.maximum(result.uses, 1), by_use])

    def _common_factors(
        self, leader: FloatArray, sizes: FloatArray, shown: FloatArray, variance: FloatArray
    ) -> CommonWealth:
        """Return the log factors: affine functions through f_s at both values of each arm, without a curve.

        Sizes are cut so that no use can lose more than `CAP` of a bet, whatever the plan.
        """
        low = 0.0 if self._everything.lower.min() >= 0 else -1.0  # plans that are minimised are negated
        high = low + 1.0
        uses, furthest = shown[1], shown[2]
        furthest = np.maximum(np.abs(leader - low), np.abs(leader - high)) * furthest / uses
        lam = np.minimum(sizes, CAP / max(float(furthest.max()), 1e-300))
        at_low = self._by_arm(lam, leader - low, shown)
        slope = self._by_arm(lam, leader - high, shown) - at_low
        constant = at_low.sum(axis=1) - slope.sum(axis=1) * low + lam * self._epsilon
        size = np.abs(at_low).sum(axis=1) + np.abs(slope).sum(axis=1) * abs(low) + lam * self._epsilon
        return CommonWealth(constant - ROUNDING * size, slope, np.zeros_like(slope))

    def _by_arm(self, lam: FloatArray, y: FloatArray, shown: FloatArray) -> FloatArray:
        """Return f_s(y_s), (n_sizes, n_arms)."""
        centres, uses, _, *powers = shown
        found, each = np.outer(lam, y * centres), np.outer(lam, y / uses)
        for p, sums in enumerate(powers):
            found += SERIES[p] * each ** (p + 1) * sums
        return found

    def _shown(self, y: FloatArray, *shown: FloatArray) -> PowerSums:
        """Return what a batch shows of y.mu + epsilon, lowered by rounding."""
        centres, uses, furthest, *powers = shown
        base, weights = self._gap(y, centres), y / uses
        sums = np.column_stack([(weights ** (p + 1) * own).sum(axis=1) for p, own in enumerate(powers)])
        reach = np.maximum((np.abs(weights) * furthest).max(axis=1), 1e-300)
        return PowerSums(base, reach, sums, YOUNG_CAP)


class LearnedPlanWealth(PlanWealth):
    """The same where the noise is Gaussian and its scale is learned, by Lemma 3 of `inference.learned_scale`.

    A bet of size eta weighs a reading of arm s by eta y_s / n_s, n_s the uses of s. With Q_s the sum of
    squares of its readings about their centre, and U_s the bound on their scale, the variance of the average
    is replaced by kappa((eta y_s U_s / n_s)^2) Q_s / n_s^2: of the largest y_s of any plan for common bets.
    """

    factor: ClassVar[Factor] = LearnedVariance()
    n_shown: ClassVar[int] = 4  # averages, squares, bounds, and the estimated variance of one measurement

    def shown(self, result: BatchResult) -> FloatArray:
        """Return averages, squares over n^2, bounds over n, and the estimated variance, by arm."""
        assert result.scatter is not None
        n = np.maximum(result.uses, 1)
        is_used = (result.uses > 0) & np.isnan(self._known)
        squares = np.where(is_used, result.scatter.about_centre / n**2, 0.0)
        bounds = np.where(is_used, result.scatter.bound / n, 0.0)
        return np.vstack([super().shown(result), squares, bounds, result.scatter.scale**2])

    def _common_factors(
        self, leader: FloatArray, sizes: FloatArray, shown: FloatArray, variance: FloatArray
    ) -> CommonWealth:
        """Return the log factors of common bets, whose squares are those that the batch has shown."""
        if len(shown) == 1:  # of a final test, whose variance is that of the bounds
            return super()._common_factors(leader, sizes, shown, variance)
        averages, squares, bounds, _ = shown
        low, high = self._everything.lower, self._everything.upper
        reach = np.maximum(np.abs(leader - low), np.abs(leader - high)) * bounds
        sizes = np.minimum(sizes, MOST_BET / max(float(reach.max()), 1e-300))
        learned = kappa(np.outer(sizes, reach) ** 2) * squares
        return super()._common_factors(leader, sizes, averages[None], learned)

    def _unit(self, squares: FloatArray, *shown: FloatArray) -> FloatArray:
        """Return the unit of fixed sizes, by the noise as it was estimated before the batch."""
        return np.asarray(np.sqrt((squares * shown[3]).sum(axis=1)))

    def _shown(self, y: FloatArray, *shown: FloatArray) -> ScatterSums:
        """Return what a batch shows of y.mu + epsilon, lowered by rounding."""
        averages, squares, bounds, _ = shown
        reach = np.maximum((np.abs(y) * bounds).max(axis=1), 1e-300)
        return ScatterSums(self._gap(y, averages), (y * y * squares).sum(axis=1), reach)
