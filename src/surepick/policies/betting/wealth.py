"""The wealth that bets against "this plan is the best", for any plan that is asked about; none is listed.

Two kinds of bets make up the wealth. Both are fixed before a block, so both are fair (docs/theory.md).

*Rows* bet the same on all plans. With x the lead, m the block's means, v_s = R_s^2 / n_s and one number eta
for all plans, the log factor eta (x - pi).m - eta^2/2 sum_s v_s (x_s - pi_s)^2 is a function of pi that is
affine up to the squares pi_s^2, so its sum over blocks is kept as three arrays. On a branch, where pi_s lies
between l_s and u_s, pi_s^2 <= (l_s + u_s) pi_s - l_s u_s, with equality for zeros and ones: an affine
function below the log wealth of every plan of the branch, which one oracle call bounds.

*Single bets* are those of BetGapE, mixture and ladder. They depend on the plan and the past alone, so that
they can be settled later for any plan that turns up, from what was kept of each block.

Rounding: every gap is lowered by more than its rounding error before it is settled (`ROUNDING`), and every
wealth by `FLAT`, so that what is computed is below the wealth that the proof is about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.branches import Branch
from surepick.core.plan_sets import ROUNDING

FLAT = 1e-9  # nats: more than the rounding of logs and of their sums
_NOTHING = -1e300  # log of an empty purse


class Single(NamedTuple):
    """Constants of the single bets. None of them bears on the guarantee."""

    ladder_share: float = 0.48  # of the first stake on fixed bets
    selection: float = (
        0.35  # standard errors, times log of the plans chosen from, that a leader is distrusted
    )
    caution: float = 0.15  # standard errors below the estimated gap that adaptive bets are centred
    top_rung: float = 2.0  # the largest fixed bet, in noise of one measurement of each arm
    rungs: int = 17  # each a factor sqrt(2) below the last
    smoothing: float = 32.0  # squared standard errors added to squared gaps in the design
    smoothing_with_costs: float = 4.0  # the same where costs differ
    need_smoothing: float = 4.0  # the same in the cost that still seems to be needed
    side_share: float = 0.02  # of a batch for arms that no rival needs


SINGLE = Single()
_STATE = ("kinds", "_constant", "_slope", "_curve", "_stakes", "_begun")


@dataclass(frozen=True, eq=False)
class Bet:
    """All that is fixed before a block: what rows bet, and what the single bets need of the past."""

    lead: FloatArray  # (n_arms,)
    eta: FloatArray  # (n_rows,) what each row bets
    means: FloatArray  # (n_arms,) of all measurements before the block
    spread: FloatArray  # (n_arms,) R_s^2 / T_s of these
    fresh: FloatArray  # (n_arms,) the same for the measurements since the lead's nomination
    is_fresh: bool  # whether there are any
    second: FloatArray | None = None  # (n_arms,) what single bets compare the lead itself with, where they do

    @property
    def parts(self) -> list[Any]:
        """As arrays and numbers."""
        parts = [self.lead, self.eta, self.means, self.spread, self.fresh, self.is_fresh]
        return parts if self.second is None else [*parts, self.second]


class Gaps(NamedTuple):
    """Gaps of the lead to some plans: what a block showed, and what the past said. One entry per plan."""

    shown: FloatArray  # by the block
    spread: FloatArray  # its variance
    estimate: FloatArray  # of the past
    prior: FloatArray  # its variance
    old: FloatArray  # the share of the past from before the lead's nomination, when it was chosen by luck too
    unit: FloatArray  # the noise of one measurement of each arm


class Singles(Protocol):
    """Bets against one plan by itself, fixed before a block: which purses there are, what each brings."""

    n_first: int  # purses that get a part of the first stake alone; one more gets a part of every stake

    def first_stakes(self, share: float) -> FloatArray | float:
        """Logs of the parts of this share that the purses of the first stake get."""
        ...

    def factors(self, gaps: Gaps) -> FloatArray:
        """Log factors, (n, n_first + 1); 0 is no bet."""
        ...


class Ladder:
    """The single bets of BetGapE: a ladder of fixed gaps, and a mixture around what the past says."""

    n_first = SINGLE.rungs

    def __init__(self, distrust: float) -> None:
        self._distrust = distrust
        self._rung = SINGLE.top_rung * 0.5 ** (np.arange(SINGLE.rungs) / 2)

    def first_stakes(self, share: float) -> float:
        """Equal parts."""
        return math.log(share / SINGLE.rungs)

    def factors(self, gaps: Gaps) -> FloatArray:
        """Of the rungs and, last, of the mixture."""
        from surepick.policies.betting.bets import settle_singles

        caution = self._distrust * np.sqrt(gaps.old) + SINGLE.caution
        centre = gaps.estimate - caution * np.sqrt(gaps.prior)
        factors = np.zeros((len(centre), SINGLE.rungs + 1))
        settle_singles(gaps.shown, gaps.spread, centre, gaps.prior, gaps.unit, self._rung, factors)
        return factors


class Wealth:
    """Stakes and what has become of them; changed by `receive` and `settle` alone.

    A *purse* is a stake on single bets: first those of the first stake, such as the rungs of the ladder, then
    one for every stake, such as a mixture.
    """

    def __init__(self, variance: FloatArray, reach: FloatArray, *, epsilon: float, singles: Singles) -> None:
        n_arms = len(variance)
        self._variance, self._reach = variance, reach
        self._epsilon, self._singles = epsilon, singles
        self.kinds = np.zeros(0)  # (n_rows,) see `receive`
        self._constant = np.zeros(0)  # (n_rows,)
        self._slope = np.zeros((0, n_arms))  # log wealth of row r: constant + slope.pi - curve.pi^2
        self._curve = np.zeros((0, n_arms))
        self._steepness = np.zeros((0, n_arms))  # |slope|
        self._stakes = np.full(singles.n_first, _NOTHING)  # (n_purses,) log stakes
        self._begun = np.zeros(singles.n_first, dtype=np.int64)  # (n_purses,) the first block of each
        self._blocks = np.zeros((0, 6, n_arms))  # lead, mean, variance, and means, spread, fresh of the past
        self._is_fresh = np.zeros(0, dtype=bool)
        self._seconds = np.zeros((0, n_arms))  # of each block, see `Bet`; none where there never is one
        self._n_blocks = 0

    def state(self) -> dict[str, Any]:
        """All that an empty wealth needs to become this one."""
        return {name: getattr(self, name) for name in _STATE} | {
            "blocks": self._blocks[: self._n_blocks],
            "is_fresh": self._is_fresh[: self._n_blocks],
            **({"seconds": self._seconds} if len(self._seconds) else {}),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the wealth whose state this is."""
        for name in _STATE:
            setattr(self, name, state[name])
        self._steepness = np.abs(self._slope)
        self._blocks, self._is_fresh = state["blocks"], state["is_fresh"]
        self._n_blocks = len(self._blocks)
        self._seconds = state.get("seconds", self._seconds)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self._constant)

    def receive(self, log_stake: float, *, rows_share: float, kinds: FloatArray, ladder_share: float) -> None:
        """Put a stake on the same bets against every plan: new rows in equal parts, and single bets.

        A kind above 0 multiplies the eta that is chosen for each block; one below 0 bets on gaps of a fixed
        size, in units of their noise.
        """
        n = len(kinds)
        row = log_stake + math.log(rows_share / n)
        self.kinds = np.append(self.kinds, kinds)
        self._constant = np.append(self._constant, np.full(n, row))
        more = np.zeros((n, self._slope.shape[1]))
        self._slope, self._curve = np.vstack([self._slope, more]), np.vstack([self._curve, more])
        self._steepness = np.abs(self._slope)
        rest = log_stake + math.log1p(-rows_share)
        if ladder_share > 0:
            n_first = self._singles.n_first
            self._stakes[:n_first] = rest + self._singles.first_stakes(ladder_share)
            self._begun[:n_first] = self._n_blocks
        self._stakes = np.append(self._stakes, rest + math.log1p(-ladder_share))
        self._begun = np.append(self._begun, self._n_blocks)

    def settle(self, bet: Bet, mean: FloatArray, variance: FloatArray) -> None:
        """Multiply every stake by what it brought: `mean` and its `variance` are the block's own, per arm."""
        x, eta, half = bet.lead, bet.eta, bet.eta**2 / 2
        reach = np.abs(x) + self._reach
        gap = float(x @ mean) + self._epsilon - ROUNDING * float(np.abs(mean) @ reach + self._epsilon)
        square = float(variance @ (x * x) + ROUNDING * (variance @ reach**2))
        self._constant = self._constant + eta * gap - half * square
        self._slope = self._slope + np.outer(half, 2 * variance * x) - np.outer(eta, mean)
        self._curve = self._curve + np.outer(half, variance)
        self._steepness = np.abs(self._slope)
        self._keep(np.array([x, mean, variance, bet.means, bet.spread, bet.fresh]), bet.is_fresh)
        if bet.second is not None:
            self._seconds = np.vstack([self._seconds, bet.second])

    def _keep(self, block: FloatArray, is_fresh: bool) -> None:
        if self._n_blocks == len(self._blocks):
            room = max(16, self._n_blocks)
            self._blocks = np.concatenate([self._blocks, np.zeros((room, *block.shape))])
            self._is_fresh = np.concatenate([self._is_fresh, np.zeros(room, dtype=bool)])
        self._blocks[self._n_blocks], self._is_fresh[self._n_blocks] = block, is_fresh
        self._n_blocks += 1

    def rows(self, plans: FloatArray) -> FloatArray:
        """Log wealth of every row against each of these plans, (n_plans, n_rows)."""
        return np.asarray(self._constant + plans @ self._slope.T - (plans * plans) @ self._curve.T)

    def rows_on(self, branch: Branch, plan: FloatArray) -> FloatArray:
        """What the affine functions of the branch say of one of its plans, (n_rows,)."""
        bent = (branch.lower + branch.upper) * plan - branch.lower * branch.upper
        return np.asarray(self._constant + self._slope @ plan - self._curve @ bent)

    def affine(self, tilt: FloatArray, branch: Branch) -> tuple[float, FloatArray, float]:
        """Constant and slope of sum_r tilt_r (log wealth of row r), from below, on this branch.

        The third number is more than the rounding error of the two, and of their value at any plan.
        """
        curve, corner, middle = tilt @ self._curve, branch.lower * branch.upper, branch.lower + branch.upper
        constant = float(tilt @ self._constant + curve @ corner)
        slope = np.asarray(tilt @ self._slope - curve * middle)
        sizes = float(tilt @ np.abs(self._constant) + curve @ np.abs(corner))
        sizes += float((tilt @ self._steepness + curve * np.abs(middle)) @ self._reach)
        return constant, slope, ROUNDING * sizes

    def purses(self, plan: FloatArray) -> FloatArray:
        """Log wealth of every purse against this plan, by settling all blocks once more, (n_purses,)."""
        n = self._n_blocks
        if n == 0:
            return self._stakes.copy()
        blocks = self._blocks[:n]
        away = self._away(slice(0, n), plan)
        factors = self._factors(away, blocks[:, 1:].transpose(1, 0, 2), self._is_fresh[:n])
        since = np.cumsum(factors[::-1], axis=0)[::-1]  # (n_blocks, n_rungs + 1) from each block to the last
        since = np.vstack([since, np.zeros(factors.shape[1])])
        kind = np.minimum(np.arange(len(self._stakes)), self._singles.n_first)
        return np.asarray(self._stakes + since[self._begun, kind])

    def last_factors(self, plans: FloatArray) -> FloatArray:
        """Log factors of the last block, for each of these plans and each purse, (n_plans, n_purses)."""
        block, is_fresh = self._blocks[self._n_blocks - 1], self._is_fresh[self._n_blocks - 1]
        away = self._away(self._n_blocks - 1, plans)
        factors = self._factors(away, block[1:, None, :], np.full(len(plans), is_fresh))
        kind = np.minimum(np.arange(len(self._stakes)), self._singles.n_first)
        return np.asarray(factors[:, kind])

    def _away(self, which: slice | int, plan: FloatArray) -> FloatArray:
        """What a plan was compared with in these blocks, less the plan: the lead; of the lead, the second."""
        away = np.asarray(self._blocks[which, 0] - plan)
        if not len(self._seconds):
            return away
        return np.where(away.any(axis=-1, keepdims=True), away, self._seconds[which] - plan)

    def _factors(self, y: FloatArray, block: FloatArray, is_fresh: FloatArray) -> FloatArray:
        """Log factors of the single bets; one line per row of y = lead - plan."""
        mean, variance, past_mean, past_spread, fresh = block
        squares = y * y
        gap = (y * mean).sum(axis=1) + self._epsilon
        gap -= ROUNDING * (np.abs(y * mean).sum(axis=1) + self._epsilon)
        spread = (squares * variance).sum(axis=1)
        prior = (squares * past_spread).sum(axis=1)
        since = (squares * fresh).sum(axis=1)
        new = np.divide(prior, since, out=np.zeros(len(y)), where=is_fresh & (since > 0))
        estimate = (y * past_mean).sum(axis=1) + self._epsilon
        unit = np.sqrt(squares @ self._variance)
        return self._singles.factors(Gaps(gap, spread, estimate, prior, 1 - np.clip(new, 0, 1), unit))


def log_sum(parts: FloatArray) -> FloatArray:
    """log of the sum of exp along the last axis.

    >>> round(float(log_sum(np.log([1.0, 2.0, 3.0]))), 6) == round(math.log(6), 6)
    True
    """
    top = parts.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(parts - top).sum(axis=-1)))
