"""Sub-Gaussian betting factors, compiled: for OBet and PolyBet, which settle many bets one by one.

`surepick.inference.factors` has the same factors as arrays: *the mixture* over gaps around a centre, and *the
ladder* of gaps of fixed size.
"""

from __future__ import annotations

import math

from surepick.core.arrays import FloatArray
from surepick.kernels.compiled import compiled, compiled_inner

_HALF_LOG_TWO_PI = 0.9189385332046727
_ROOT_HALF = 0.7071067811865476
_FAR_TAIL = -8.0  # below it the normal distribution function is taken from its asymptotic series


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
