"""Whole counts of a batch: a cover that shows every contrast, and shares of cost rounded to uses.

A *cover* is a set of probes whose readings span all contrasts in question; on single arms it is the set of
arms in which they differ. Nothing here bears on a guarantee.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.design.grid import GAIN_BITS, rounded
from surepick.design.information import Dense, Diagonal
from surepick.errors import ParameterError

_SPANNED = 1e-7  # of its length: what is left of a row or a contrast that counts as spanned
_NEEDED = 1e-7  # of the largest weight: a probe with less is left out of a cover
_IDEAL = 0.05  # weight of the unrounded design in M: keeps it regular, and stands for uses yet to be chosen
_LEAST_SHARE = 1e-3  # of the largest share: probes that are looked at first
_ROUNDING = 1e-9
MOST = 2**50  # measurements that are dealt out: beyond it whole numbers are not exact in a double
_SMALLEST_SHARE = 1e-280  # below it a weight is 0, so that counts / weight cannot overflow


def cover(
    information: Diagonal | Dense,
    shares: FloatArray,
    costs: FloatArray,
    contrasts: FloatArray | None,
    support: BoolArray,
) -> BoolArray:
    """Return probes whose readings show all contrasts, those with large shares first.

    `support` says in which coordinates the contrasts differ from 0; the contrasts themselves are needed where
    readings mix arms.

    >>> each = np.arange(3)
    >>> arms = Diagonal(each, np.ones(3), each, 3, 3)
    >>> cover(arms, np.full(3, 1 / 3), np.ones(3), None, np.array([True, True, False])).tolist()
    [True, True, False]
    """
    if isinstance(information, Dense):
        assert contrasts is not None
        return _spanning_cover(information, shares, costs, contrasts)
    arm, owner, n = information.arm, information.owner, information.n_probes
    if information.is_single:
        return np.asarray(support[arm])
    # greedily the probe that shows most of the missing arms for its cost, by share among equals
    missing, chosen = support.copy(), np.zeros(n, dtype=bool)
    merit = rounded((shares + _ROUNDING) / costs, GAIN_BITS)
    while missing.any():
        n_new = np.bincount(owner, missing[arm], minlength=n)
        best = int(np.argmax(n_new * merit))
        if not n_new[best]:
            break
        chosen[best] = True
        missing[arm[owner == best]] = False
    return chosen


def _spanning_cover(
    information: Dense, shares: FloatArray, costs: FloatArray, contrasts: FloatArray
) -> BoolArray:
    """Return probes whose readings span the contrasts, those with large shares first."""
    owner, chosen = information.owner, np.zeros(information.n_probes, dtype=bool)
    for least in (_LEAST_SHARE * shares.max(), -1.0):  # all probes, where those with shares do not span
        some = np.flatnonzero((shares > least)[owner])
        preference = np.sqrt((shares + 1e-12) / costs)[owner[some], None]
        found = _pivots(information.rows[some] * preference, contrasts)
        if found is not None:
            chosen[owner[some[found]]] = True
            return chosen
    return ~chosen


def _pivots(rows: FloatArray, contrasts: FloatArray) -> IntArray | None:
    """Return rows that span the contrasts, by QR with column pivoting; None if all of them do not.

    With rows[pivots] = R'Q' the contrasts are spanned by the first k pivots if Q'y is 0 from entry k on, and
    R^-1 Q'y are their weights. A row without weight is not needed.
    """
    from scipy.linalg.lapack import dgeqp3, dorgqr, dtrtrs  # the wrappers take longer than the solution

    factor, pivots, reflectors, _, _ = dgeqp3(rows.T)
    rank = min(rows.shape)
    basis = dorgqr(factor[:, :rank], reflectors[:rank])[0]
    scaled = contrasts / max(float(np.abs(contrasts).max()), 1e-300)
    parts = basis.T @ scaled.T  # (rank, n)
    outside = (scaled * scaled).sum(axis=1) - (parts * parts).sum(axis=0)
    later = np.vstack([np.cumsum((parts * parts)[::-1], axis=0)[::-1], np.zeros(len(scaled))])
    left = (later + np.maximum(outside, 0.0)).max(axis=1)  # of any contrast, after the first k pivots
    diagonal = np.abs(np.diag(factor)[:rank])
    n_usable = int((diagonal > _SPANNED * diagonal[0]).sum())
    spanned = np.flatnonzero(left[: n_usable + 1] <= _SPANNED**2)
    if not len(spanned):
        return None
    k = int(spanned[0])
    weights = np.abs(dtrtrs(factor[:k, :k], parts[:k])[0]).max(axis=1)
    return np.asarray(pivots[:k][weights > _NEEDED * weights.max()] - 1)


def mixed_counts(
    information: Dense, shares: FloatArray, costs: FloatArray, targets: FloatArray, budget: float
) -> FloatArray:
    """Round a design to whole counts within a budget: round down, then add the most useful uses greedily.

    `targets`, (n, rank), are weighted by the square roots of their duals. One more use of probe o lowers the
    sum of z' M^-1 z by about sum_k |x_k' M^-1 Z|^2 / (1 + x_k' M^-1 x_k) (Sherman and Morrison).
    """
    owner = information.owner
    counts = np.floor(shares * budget / costs + _ROUNDING)
    some = np.flatnonzero((shares > _LEAST_SHARE * shares.max())[owner])
    known = information.matrix(counts) + _IDEAL * budget * information.matrix(shares / costs)
    known = known + _ROUNDING * np.trace(known) * np.eye(len(known))
    X, own = information.rows[some], owner[some]
    XM = X @ np.linalg.inv(known)  # (n, rank) rows x_k' M^-1
    XMZ = XM @ targets.T  # (n, n_targets)
    denominator = 1.0 + np.einsum("rd,rd->r", XM, X)  # (n,) 1 + x_k' M^-1 x_k
    spent = float(counts @ costs)
    while spent < budget * (1 - _ROUNDING):
        gain = np.einsum("rj,rj->r", XMZ, XMZ) / denominator
        gain = rounded(np.bincount(own, gain, minlength=len(costs)) / costs, GAIN_BITS)
        best = int(np.argmax(gain))
        if gain[best] <= 0:
            break
        counts[best] += 1
        spent += costs[best]
        # M^-1 after one more reading r is M^-1 - (M^-1 x_r)(M^-1 x_r)' / (1 + x_r' M^-1 x_r)
        for r in np.flatnonzero(own == best):
            d = denominator[r]
            step = X @ XM[r] / d  # (n,) x_k' M^-1 x_r / d
            denominator = denominator - step * step * d
            XM -= np.multiply.outer(step, XM[r])
            XMZ -= np.multiply.outer(step, XMZ[r])
    return counts


def cut(counts: IntArray, most: int) -> IntArray:
    """Return counts that sum to at most `most`, in proportion; each probe keeps one use if that is possible.

    >>> cut(np.array([6, 0, 3, 1]), 5).tolist(), cut(np.array([6, 0, 3, 1]), 2).tolist()
    ([2, 0, 2, 1], [1, 0, 1, 0])
    """
    if most >= int(counts.sum()):
        return counts
    if most >= np.count_nonzero(counts):
        return round_allocation(counts, most)
    fewer = np.zeros_like(counts)
    fewer[np.argsort(-counts, kind="stable")[:most]] = 1
    return fewer


def refuse_too_many(n: float) -> None:
    """Refuse a number of measurements that is out of reach and overflows an integer."""
    if n > MOST:
        raise ParameterError(
            f"{n:.3g} measurements are too many to make; noise scales and plans may be in units in "
            "which the gaps between plans are tiny: use another unit, or a policy without phases (BetGapE)"
        )


def round_allocation(weights: npt.ArrayLike, n: int) -> IntArray:
    """Whole numbers of measurements in proportion to `weights` that sum to n (Pukelsheim's rounding).

    Start from ceil((n - p/2) w_s) with p the number of positive weights, then remove from the largest
    (n_s - 1) / w_s or add to the smallest n_s / w_s; ties go to the lowest index. Every arm of positive
    weight gets at least one measurement, so n must be at least p.

    >>> round_allocation([0.5, 0.3, 0.2, 0.0], 7).tolist()
    [3, 2, 2, 0]
    """
    shares = np.asarray(weights, dtype=float)
    shares = shares / shares.sum()
    support = np.flatnonzero(shares > _SMALLEST_SHARE)
    if n < len(support):
        raise ParameterError(
            f"n must be at least the {len(support)} arms of positive weight, got {n}; "
            "drop arms of small weight or measure more",
            field="n",
        )
    refuse_too_many(n)
    w = shares[support]
    counts = np.maximum(np.ceil((n - len(w) / 2) * w).astype(np.int64), 1)
    while int(counts.sum()) > n:
        counts[np.argmax((counts - 1) / w)] -= 1
    while int(counts.sum()) < n:
        counts[np.argmin(counts / w)] += 1
    result = np.zeros(len(shares), dtype=np.int64)
    result[support] = counts
    return result


def largest_remainders(shares: FloatArray, n: int) -> IntArray:
    """Return whole numbers in proportion to the shares, n in all, some of them perhaps 0.

    >>> largest_remainders(np.array([0.5, 0.3, 0.2]), 4).tolist()
    [2, 1, 1]
    """
    exact = shares / shares.sum() * n
    whole: IntArray = np.floor(exact + _ROUNDING).astype(np.int64)
    order = np.argsort(-(exact - whole), kind="stable")
    whole[order[: max(0, n - int(whole.sum()))]] += 1
    return whole
