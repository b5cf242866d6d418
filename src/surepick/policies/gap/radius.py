"""Every confidence radius, tied to its equation and to the status of its proof.

A radius has one form for all choices, so that one compiled loop serves them all. For a pair with difference
y and support supp(y), with T_s measurements of arm s of noise scale R_s,

    radius(y)^2 = 2 * sum_s y_s^2 R_s^2 inflation(T_s) * threshold(y)
    threshold(y) = level + base(|supp y|) + sum_{s in supp y} term(T_s)

| name                 | inflation     | term               | base     | level                               |
|----------------------|---------------|--------------------|----------|-------------------------------------|
| published            | 1/T           | 0                  | 0        | 1/4 log(2 K^2 t^2 / delta)          |
| normal-mixture       | (T + lam)/T^2 | 1/2 log(1 + T/lam) | 0        | log((K-1)/(p delta))                |
| normal-mixture-joint | (T + lam)/T^2 | 0                  | 0        | log(1/(p delta)) + sum of the terms |
| kaufmann-koolen      | 1/T           | 2 log(4 + log T)   | m C(x/m) | 0                                   |
| heuristic            | 1/T           | 0                  | 0        | log((1 + log t)/delta)              |

*rectangle* (CLUCB) has another form: radius(y) = sqrt(2 level) sum_s |y_s| R_s / sqrt(T_s), with
level = log(4 d t^3 / delta).

*published*: eq. (1) of Nakamura & Sugiyama. Its proof has three holes (docs/benchmarks.md): it is for
reproducing the paper and has no guarantee.

*heuristic*: the threshold of most published experiments with likelihood-ratio stops (Garivier & Kaufmann
2016 and after), t the measurements so far. It has no proof, neither over time nor over plans: it is for
comparing with published tables and has no guarantee.

*normal-mixture*: for each arm, exp(theta S - R^2 theta^2 T/2) is a supermartingale for every theta when the
noise is R-sub-Gaussian; mixing theta over N(0, 1/(R^2 lam)) and multiplying over the arms of supp(y) gives
one started at 1, whatever rule chooses the arms. Ville and Cauchy-Schwarz give the radius for one pair; a
wrong stop needs it to fail for one of the K-1 pairs that contain the best plan. *joint* multiplies over all
relevant arms and needs no union. lam runs over the fixed grid 4^i with weights p_i = 1/((i+1)(i+2)), which
sum to 1: all of the grid holds at once, so each round may use whichever lam it likes.

*kaufmann-koolen*: Kaufmann & Koolen (2021), Mixture Martingales Revisited, for Gaussian noise, with
x = log((K-1)/delta) for the same union over pairs.

*rectangle*: a fixed-count tail for every arm, every count up to t and every round t, which adds up to .83
delta; any pair is then within the sum of its arms' radii. It belongs to CLUCB and is not offered to others.

The scalar functions here are plain Python; `rounds` compiles these very functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.guarantee import GAUSSIAN, SUB_GAUSSIAN, Guarantee
from surepick.errors import ParameterError, suggestion

PUBLISHED, NORMAL_MIXTURE, NORMAL_MIXTURE_JOINT, KAUFMANN_KOOLEN, RECTANGLE, HEURISTIC = range(6)

# The mixture is tightest for a pair whose arms have about this many times lam measurements.
COUNTS_PER_LAM = 8.0


@dataclass(frozen=True)
class Radius:
    """One way to bound how far an estimated gap can be from the true one."""

    name: str
    code: int
    sound: bool
    assumption: str


RADII = {
    radius.name: radius
    for radius in (
        Radius("published", PUBLISHED, False, "its proof has holes; measured error rates exceed delta"),
        Radius("normal-mixture", NORMAL_MIXTURE, True, SUB_GAUSSIAN),
        Radius("normal-mixture-joint", NORMAL_MIXTURE_JOINT, True, SUB_GAUSSIAN),
        Radius("kaufmann-koolen", KAUFMANN_KOOLEN, True, GAUSSIAN),
        Radius("heuristic", HEURISTIC, False, "it has no proof"),
    )
}

RECTANGLE_RADIUS = Radius("rectangle", RECTANGLE, True, SUB_GAUSSIAN)  # of CLUCB only


def radius_named(name: str) -> Radius:
    """Return the radius with this name.

    >>> radius_named("normal-mixture").sound
    True
    """
    if name not in RADII:
        raise ParameterError(f"there is no radius named {name!r}; {suggestion(name, RADII)}", field="radius")
    return RADII[name]


def inflation(code: int, count: float, lam: float) -> float:
    """Return the factor of y_s^2 R_s^2 (rectangle: of |y_s| R_s) in a radius after `count` measurements."""
    if code == NORMAL_MIXTURE or code == NORMAL_MIXTURE_JOINT:
        return (count + lam) / (count * count)
    if code == RECTANGLE:
        return 1.0 / math.sqrt(count)
    return 1.0 / count


def term(code: int, count: float, lam: float) -> float:
    """Return what one arm of the support adds to a pair's threshold (for `joint`: to all thresholds)."""
    if code == NORMAL_MIXTURE or code == NORMAL_MIXTURE_JOINT:
        return 0.5 * math.log1p(count / lam)
    if code == KAUFMANN_KOOLEN:
        return 2.0 * math.log(4.0 + math.log(count))
    return 0.0


def level(code: int, n_measured: float, log_delta: float, log_union: float, log_weight: float) -> float:
    """Return the part of the threshold that is the same for all pairs (`joint`: without the arms' terms).

    `log_union` is log K for `published`, log d for `rectangle` and log(K-1) otherwise; `log_weight` is log p
    of the lam in use. The papers' round number t is one more than the measurements so far.
    """
    if code == PUBLISHED:
        return 0.25 * (math.log(2.0) + 2.0 * log_union + 2.0 * math.log(n_measured + 1.0) - log_delta)
    if code == NORMAL_MIXTURE:
        return log_union - log_weight - log_delta
    if code == NORMAL_MIXTURE_JOINT:
        return -log_weight - log_delta
    if code == RECTANGLE:
        return math.log(4.0) + log_union + 3.0 * math.log(n_measured + 1.0) - log_delta
    if code == HEURISTIC:
        return math.log(1.0 + math.log(n_measured)) - log_delta
    return 0.0


def lam_index(mean_count: float) -> int:
    """Return which lam of the grid suits arms with this many measurements on average."""
    if mean_count <= COUNTS_PER_LAM:
        return 0
    return round(math.log(mean_count / COUNTS_PER_LAM) / math.log(4.0))


def lam_value(index: int) -> float:
    """Return the lam of the grid with this index, 4^index."""
    return math.ldexp(1.0, int(2 * index))  # exact: 2^(2 index)


def lam_log_weight(index: int) -> float:
    """Return log p of the lam with index i, its part of delta: p = 1/((i+1)(i+2)) sums to 1 over the grid."""
    return -math.log((index + 1.0) * (index + 2.0))


@lru_cache(maxsize=4096)
def kaufmann_koolen_c(x: float) -> float:
    """Return C(x) = min over 1/2 < lam < 1 of (g(lam) + x) / lam, the Gaussian threshold function.

    Kaufmann & Koolen (2021), g(lam) = 2 lam - 2 lam log(4 lam) + log zeta(2 lam) - 1/2 log(1 - lam). An
    inexact minimiser is safe: it returns a value of the objective, which is never below C(x).

    >>> round(kaufmann_koolen_c(5.0), 3)
    6.757
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import zeta

    def threshold(lam: float) -> float:
        g = 2 * lam - 2 * lam * math.log(4 * lam) + math.log(zeta(2 * lam)) - 0.5 * math.log1p(-lam)
        return float((g + x) / lam)

    found = minimize_scalar(
        threshold, bounds=(0.5 + 1e-9, 1 - 1e-12), method="bounded", options={"xatol": 1e-12}
    )
    return float(found.fun)


def support_base(radius: Radius, n_plans: int, n_arms: int, delta: float) -> FloatArray:
    """Return base(m), the part of a threshold that depends on the support's size m, for m = 0 to n_arms."""
    base = np.zeros(n_arms + 1)
    if radius.code == KAUFMANN_KOOLEN:
        x = math.log(max(n_plans - 1, 1) / delta)
        base[1:] = [m * kaufmann_koolen_c(x / m) for m in range(1, n_arms + 1)]
    return base


def guarantee(name: str, delta: float, epsilon: float) -> Guarantee:
    """Return the guarantee of stopping by this radius.

    >>> guarantee("published", 0.05, 0.0).text
    'none: the published radius has been seen to err more often than delta'
    """
    radius = radius_named(name)
    if radius.code == HEURISTIC:
        return Guarantee.none("the heuristic threshold log((1 + log t)/delta) has no proof")
    if not radius.sound:
        return Guarantee.none("the published radius has been seen to err more often than delta")
    return Guarantee.best(delta, radius.assumption, epsilon=epsilon)
