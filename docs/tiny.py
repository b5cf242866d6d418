"""CombGapE and its loop in one sitting: the whole idea, with numpy and nothing else.

    python docs/tiny.py

The library does the same, compiled, checked and with more choices; a test shows that both take the same
decisions. Read from the bottom up: `find_best` is the loop, `closest_rival` finds whom to compare, `radius`
says how wrong the comparison can be, `most_useful_arm` chooses what to measure.

Words: an *arm* is what can be measured, with noise; a *plan* is a row of numbers, one per arm, and its value
is their product with the arms' unknown means. We look for the plan with the largest value.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Evidence(NamedTuple):
    """All that is known: how often each arm was measured, and the sum of what was seen."""

    counts: np.ndarray  # (n_arms,)
    sums: np.ndarray  # (n_arms,)

    @property
    def means(self) -> np.ndarray:
        """The estimate of every arm's mean; arms that nobody measures stay at 0."""
        return self.sums / np.maximum(self.counts, 1)


def mixture_scale(n_measured: int, n_arms: int) -> tuple[float, float]:
    """The mixture's lam for this much evidence, and the logarithm of its share of delta.

    lam is 1, 4, 16, ..., about an eighth of the measurements per arm. Any rule would be sound: the shares
    1/2, 1/6, 1/12, ... add up to 1, so the radius holds for all lam at once.
    """
    per_arm = n_measured / n_arms
    index = max(0, math.ceil(math.log(per_arm / 8, 4) - 0.5))
    return 4.0**index, -math.log((index + 1) * (index + 2))


def radius(
    difference: np.ndarray, counts: np.ndarray, n_plans: int, scale: np.ndarray, delta: float
) -> float:
    """How far the estimated value of this difference of two plans can be from the truth.

    Seen from the best plan, all of its n_plans - 1 comparisons stay within their radii, at all times, with
    probability at least 1 - delta: that is the whole guarantee.
    """
    arms = counts > 0
    lam, log_share = mixture_scale(int(counts.sum()), int(arms.sum()))
    used = np.flatnonzero(difference)
    y, t, r = difference[used], counts[used], scale[used]
    spread = np.sum(y**2 * r**2 * (t + lam) / t**2)
    threshold = math.log((n_plans - 1) / delta) - log_share + 0.5 * np.sum(np.log1p(t / lam))
    return math.sqrt(2 * spread * threshold)


def published_radius(
    difference: np.ndarray, counts: np.ndarray, n_plans: int, scale: np.ndarray, delta: float
) -> float:
    """The radius that the paper prints, its equation (1). It is too small: see docs/benchmarks.md."""
    used = np.flatnonzero(difference)
    spread = np.sum((difference[used] * scale[used]) ** 2 / counts[used])
    t = counts.sum() + 1
    return math.sqrt(0.5 * spread * math.log(2 * n_plans**2 * t**2 / delta))


Radius = Callable[[np.ndarray, np.ndarray, int, np.ndarray, float], float]


def closest_rival(
    plans: np.ndarray, evidence: Evidence, scale: np.ndarray, delta: float, how_far: Radius
) -> tuple[int, int, float]:
    """The lead, the plan that may still beat it by most, and by how much it may (Algorithm 2)."""
    values = plans @ evidence.means
    lead = int(np.argmax(values))
    ahead = np.full(len(plans), -np.inf)  # the most by which each plan may be better than the leader
    for k in range(len(plans)):
        if k != lead:
            doubt = how_far(plans[k] - plans[lead], evidence.counts, len(plans), scale, delta)
            ahead[k] = values[k] - values[lead] + doubt
    rival = int(np.argmax(ahead))
    return lead, rival, float(ahead[rival])


def most_useful_arm(difference: np.ndarray, counts: np.ndarray, scale: np.ndarray) -> int:
    """The arm whose next measurement shrinks the uncertainty of this difference most (equation 5)."""
    return int(np.argmax((difference * scale) ** 2 / np.maximum(counts * (counts + 1), 1)))


def find_best(
    plans: np.ndarray,
    measure: Callable[[int], float],
    *,
    noise_scale: float | np.ndarray = 1.0,
    delta: float = 0.05,
    budget: int = 10**6,
    how_far: Radius = radius,
) -> tuple[int | None, Evidence]:
    """The best plan, wrong with probability at most delta, or None when the budget is spent (Algorithm 1)."""
    plans = np.asarray(plans, dtype=float)
    scale = np.broadcast_to(np.asarray(noise_scale, dtype=float), plans.shape[1:])
    evidence = Evidence(np.zeros(plans.shape[1], dtype=int), np.zeros(plans.shape[1]))

    def look_at(arm: int) -> None:
        evidence.sums[arm] += measure(arm)
        evidence.counts[arm] += 1

    for arm in np.flatnonzero((plans != plans[0]).any(axis=0)):  # where all plans agree, there is no choice
        look_at(int(arm))
    while True:
        lead, rival, most_ahead = closest_rival(plans, evidence, scale, delta, how_far)
        if most_ahead <= 0:
            return lead, evidence
        if evidence.counts.sum() >= budget:
            return None, evidence
        look_at(most_useful_arm(plans[lead] - plans[rival], evidence.counts, scale))


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    routes = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    minutes = np.array([12.0, 11.0, 15.0, 30.0])  # the truth, which only `measure` knows
    best, seen = find_best(
        -routes, lambda arm: rng.normal(minutes[arm], 4.0), noise_scale=4.0
    )  # least is best
    print(f"route {best} after {seen.counts.sum()} test drives, {seen.counts} of each road")
