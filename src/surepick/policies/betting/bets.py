"""What a bet is about and what it brings: gaps to the lead, and the two kinds of fair bets on them; compiled.

Every bet is fair by the proof in docs/bet-gap-e.md: *the mixture* over gaps around a centre, and *the ladder*
of gaps of fixed size; each with two factors, for sub-Gaussian noise and for any noise of bounded variance.
A pass over the plans costs their non-zeros, however the problem keeps them, so that dense and sparse problems
take the same decisions.
"""

from __future__ import annotations

import math

from surepick.core.arrays import FloatArray, IntArray
from surepick.kernels.compiled import compiled, compiled_inner
from surepick.kernels.plan_rows import NonZeros
from surepick.kernels.records import RecordArray

_HALF_LOG_TWO_PI = 0.9189385332046727
_ROOT_HALF = 0.7071067811865476
# the middles of twelve equally likely parts of N(0, 1)
_TWELFTHS = (-1.732, -1.15, -0.812, -0.549, -0.319, -0.105, 0.105, 0.319, 0.549, 0.812, 1.15, 1.732)
_FAR_TAIL = -8.0  # below it the normal distribution function is taken from its asymptotic series


@compiled_inner
def compare(rows: NonZeros, arms: RecordArray, support: IntArray, bets: RecordArray) -> None:
    """gap = sum_s y_s average_s and spread = sum_s y_s^2 weight_s of every bet, y = lead - rival.

    Averages and weights are those of the arms; `support` are the lead's non-zero arms.
    """
    for bet in bets:
        j = bet.rival
        gap, spread = 0.0, 0.0
        for t in range(rows.start[j], rows.start[j + 1]):
            arm = arms[rows.where[t]]
            arm.seen = j
            y = arm.lead - rows.value[t]
            if y != 0.0:
                spread += y * y * arm.weight
                gap += y * arm.average
        for s in support:
            arm = arms[s]
            if arm.seen != j:
                spread += arm.lead * arm.lead * arm.weight
                gap += arm.lead * arm.average
        bet.gap, bet.spread = gap, spread


@compiled_inner
def log_normal_cdf(x: float) -> float:
    """log Phi(x), also far in the tail."""
    if x > _FAR_TAIL:
        return math.log(0.5 * math.erfc(-x * _ROOT_HALF))
    inverse = 1.0 / (x * x)
    return -0.5 * x * x - math.log(-x) - _HALF_LOG_TWO_PI + math.log1p(-inverse + 3.0 * inverse * inverse)


@compiled_inner
def log_add(first: float, second: float) -> float:
    """log(exp(first) + exp(second))."""
    top = max(first, second)
    return top + math.log1p(math.exp(min(first, second) - top))


@compiled_inner
def log_mixture(gap: float, spread: float, centre: float, prior: float) -> float:
    """log of the mean of exp((g gap - g^2/2) / spread) over g ~ N(centre, prior) given g > 0."""
    posterior = 1.0 / (1.0 / prior + 1.0 / spread)
    mode = posterior * (centre / prior + gap / spread)
    return (
        0.5 * math.log(posterior / prior)
        + mode * mode / (2.0 * posterior)
        - centre * centre / (2.0 * prior)
        + log_normal_cdf(mode / math.sqrt(posterior))
        - log_normal_cdf(centre / math.sqrt(prior))
    )


@compiled_inner
def settle_ladder(gap: float, spread: float, unit: float, rung: FloatArray, purse: FloatArray) -> None:
    """Multiply the purse of each rung by exp((g gap - g^2/2) / spread) for its own fixed g = rung unit."""
    for r in range(len(rung)):
        g = rung[r] * unit
        purse[r] += (g * gap - 0.5 * g * g) / spread


@compiled_inner
def factor_by_variance(gap: float, spread: float, g: float) -> float:
    """[1 + (1 + x)_+^2] / 2 / (1 + g^2 / (2 spread)), x = g gap / spread: fair whatever the tails are.

    Its log agrees with (g gap - g^2/2) / spread to second order. A gap that is not known at all is no bet.
    """
    if spread == math.inf:
        return 1.0
    up = max(0.0, 1.0 + g * gap / spread)
    return (0.5 + 0.5 * up * up) / (1.0 + 0.5 * g * g / spread)


@compiled_inner
def log_mixture_by_variance(gap: float, spread: float, centre: float, prior: float) -> float:
    """log of the mean of such factors over g ~ N(centre, prior) in twelve parts, those above 0."""
    total, n = 0.0, 0
    for k in range(len(_TWELFTHS)):
        g = centre + math.sqrt(prior) * _TWELFTHS[k]
        if g > 0.0:
            total += factor_by_variance(gap, spread, g)
            n += 1
    return math.log(total / n)


@compiled_inner
def settle_ladder_by_variance(
    gap: float, spread: float, unit: float, rung: FloatArray, purse: FloatArray
) -> None:
    """Multiply the purse of each rung by the factor that needs no more than a bounded variance."""
    for r in range(len(rung)):
        purse[r] += math.log(factor_by_variance(gap, spread, rung[r] * unit))


@compiled
def settle_mixtures(
    gap: FloatArray,
    spread: FloatArray,
    centre: FloatArray,  # (n_mixtures, n)
    prior: FloatArray,  # (n_mixtures, n)
    purse: FloatArray,  # (n, n_mixtures), changed
) -> None:
    """Settle several mixtures on each of these gaps, wherever they are centred; none without noise."""
    for q in range(len(gap)):
        if spread[q] > 0.0:
            for k in range(len(centre)):
                purse[q, k] += log_mixture(gap[q], spread[q], centre[k, q], prior[k, q])


@compiled
def settle_singles(
    gap: FloatArray,
    spread: FloatArray,
    centre: FloatArray,
    prior: FloatArray,
    unit: FloatArray,
    rung: FloatArray,  # (n_rungs,)
    purse: FloatArray,  # (n, n_rungs + 1), changed: the rungs and, last, the mixture
) -> None:
    """Settle both kinds of bets on each of these gaps, for plans that are not listed; none without noise."""
    for q in range(len(gap)):
        if spread[q] > 0.0:
            settle_ladder(gap[q], spread[q], unit[q], rung, purse[q])
            if centre[q] >= 0.0:
                purse[q, len(rung)] += log_mixture(gap[q], spread[q], centre[q], prior[q])
