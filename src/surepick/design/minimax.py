"""Minimax design: shares of cost that nearly minimise the largest variance of some contrasts, with a bracket.

For targets z_j (contrasts, scaled by what each needs) and shares of cost u,

    value(u) = max_j z_j' M(u)^-1 z_j,   M(u) = sum_o (u_o / c_o) sum_k x_ok x_ok'.

Any u gives an upper end of the least value, and any u with weights on the targets (the dual) a lower one, by
weak duality: with phi = sum_j dual_j z_j' M^-1 z_j and use_o = (1/c_o) sum_k sum_j dual_j (x_ok' M^-1 z_j)^2,

    min over u of value(u)  >=  phi^2 / max_o use_o.

(z'M^-1z = max_v 2 z.v - v'Mv; exchange minimum and maximum, and scale v.) The steps are multiplicative, on
shares and dual. From the shares of the last batch a few of them suffice. Where every arm has a probe of its
own, the best shares for a dual are known, and only the dual takes steps; where every rival has an arm of its
own beside the leader's, the solution is known (`own_arm_shares`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, divided
from surepick.design.information import TRACE, Dense, Diagonal

_WARMTH = 0.9  # of the start from a given solution, the rest is uniform: new targets need new probes
_FOCUS = 8  # power of values in the first weights of targets
_REVIEW = 10  # steps between looks at all probes and all targets; in between those in play are enough
_IN_PLAY, _USEFUL = 1e-5, 0.9  # of the largest share, and of the largest use: probes that stay in play
_BINDING, _CLOSE = 1e-7, 0.8  # of the largest weight, and of the largest value: targets that stay in play
_HALVINGS = 100  # of the interval of the common arm's share: to the last bit
_SPARSE_REVIEW, _LIGHT, _NEAR = 8, 1e-4, 0.7  # the same on single arms, where a step costs less


@dataclass(frozen=True, eq=False)
class Design:
    """Shares of cost, weights of the targets, and the certified bracket of the least largest value."""

    shares: FloatArray  # (n_probes,) sum 1
    dual: FloatArray  # (n_targets,) sum 1
    upper: float
    lower: float


def minimax(
    information: Diagonal | Dense,
    targets: FloatArray,  # (n, rank) in the information's coordinates
    costs: FloatArray,  # (n_probes,)
    *,
    tolerance: float,
    most_steps: int = 3000,
    start: FloatArray | None = None,
    dual: FloatArray | None = None,
) -> Design:
    """Return the best design that was found within the steps, or until the bracket is narrow.

    `start` has the shares of a similar design, and `dual` weights of the targets.

    >>> each = np.arange(2)
    >>> arms = Diagonal(each, np.ones(2), each, 2, 2)
    >>> found = minimax(arms, np.array([[1.0, -2.0]]), np.ones(2), tolerance=1e-9)
    >>> round(found.upper, 6), found.shares.round(3).tolist()
    (9.0, [0.333, 0.667])
    """
    n = information.n_probes
    shares = np.full(n, 1.0 / n) if start is None else _WARMTH * start + (1 - _WARMTH) / n
    dual = None if dual is None else _WARMTH * dual / dual.sum() + (1 - _WARMTH) / len(dual)
    if isinstance(information, Diagonal) and information.is_single:
        return _single_arms(information, targets, costs, shares, dual, most_steps, tolerance)
    return _any_probes(information, targets, costs, shares, dual, most_steps, tolerance)


def _first_dual(value: FloatArray) -> FloatArray:
    """Return weights of targets with these values: nearly all for those that are close to the largest."""
    weights = (value / value.max()) ** _FOCUS
    return np.asarray(_WARMTH * weights / weights.sum() + (1 - _WARMTH) / len(value))


def _single_arms(
    information: Diagonal,
    targets: FloatArray,
    costs: FloatArray,
    shares: FloatArray,
    dual: FloatArray | None,
    most_steps: int,
    tolerance: float,
) -> Design:
    """Return the solution where every arm has its own probe.

    With a_js = z_js^2 c_s / precision_s the variance of target j is sum_s a_js / u_s. For weights lam on the
    targets the best shares are u_s = root_s / sum(root), root_s = sqrt(sum_j lam_j a_js), and sum(root)^2 is
    the lower end. A step multiplies lam_j by (variance_j / mean variance)^1.5 and normalises.
    """
    price, by_arm = np.zeros(targets.shape[1]), np.zeros(targets.shape[1])
    price[information.arm], by_arm[information.arm] = costs / information.precision, shares
    everything = squares = targets * targets * price
    if dual is None:
        dual = _first_dual(squares @ divided(1.0, by_arm))
    rows = np.arange(len(targets))
    for step in range(most_steps):
        root = np.sqrt(dual @ squares)
        total = root.sum()
        inverse = total * divided(1.0, root)  # 0 on arms in which no target differs
        value = squares @ inverse
        worst = value.max()
        is_last = step == most_steps - 1
        if is_last or worst <= (1 + tolerance) * total * total:
            worst = worst if len(rows) == len(targets) else (everything @ inverse).max()
            if is_last or worst <= (1 + tolerance) * total * total:
                break
            value, dual = everything @ inverse, _scattered(dual, rows, len(targets))
            dual = _WARMTH * dual + (1 - _WARMTH) / len(dual)  # all targets are looked at again
            rows, squares = np.arange(len(targets)), everything
        dual = dual * (value / (dual @ value)) ** 1.5
        dual = dual / dual.sum()
        if step % _SPARSE_REVIEW == 2:  # targets that neither bind nor come close are left out from here on
            keep = (dual >= _LIGHT / len(dual)) | (value >= _NEAR * worst)
            if keep.sum() < _NEAR * len(keep):
                rows, squares, dual = rows[keep], squares[keep], dual[keep] / dual[keep].sum()
    found = (root / total)[information.arm]
    return Design(found, _scattered(dual, rows, len(targets)), float(worst), float(total * total))


def _scattered(weights: FloatArray, rows: IntArray, n: int) -> FloatArray:
    """Return n weights, of which these rows have some and the others none."""
    found = np.zeros(n)
    found[rows] = weights
    return found


def _any_probes(
    information: Diagonal | Dense,
    targets: FloatArray,
    costs: FloatArray,
    shares: FloatArray,
    dual: FloatArray | None,
    most_steps: int,
    tolerance: float,
) -> Design:
    """Return the best shares that the steps have seen.

    A step multiplies, with phi = sum_j dual_j value_j,

        shares_o by (use_o / phi)^a,      dual_j by (value_j / phi)^b,

    and normalises both. At the optimum value_j = phi where dual_j > 0, and use_o = phi where shares_o > 0.
    Every `_REVIEW` steps all probes and targets are looked at, which gives the bracket; in between only the
    probes in play and the targets that bind, or nearly do.
    """
    # on single readings these powers are nearly the exact minimiser; elsewhere bolder shares take fewer steps
    of_shares, of_dual = (0.5, 1.5) if isinstance(information, Diagonal) else (0.8, 1.0)
    if dual is None:
        dual = _first_dual(information.prices(shares, costs, targets)[0])
    upper, lower, best = np.inf, 0.0, (shares, dual)
    every = np.arange(len(targets))
    for step in range(most_steps):
        is_review = step % _REVIEW == 0 or step == most_steps - 1
        if is_review:
            looked_at, in_play = every, None
        value, uses_for = information.prices(shares, costs, targets[looked_at], in_play)
        lam = dual[looked_at]
        use, phi = uses_for(lam), max(float(lam @ value), 1e-300)
        if is_review:
            lower = max(lower, phi * phi / max(float(use.max()), 1e-300))
            if value.max() < upper:
                upper, best = float(value.max()), (shares, dual)
            if upper <= (1 + tolerance) * lower:
                break
            looked_at = np.flatnonzero((dual > _BINDING * dual.max()) | (value > _CLOSE * value.max()))
            lam, value = np.maximum(dual[looked_at], _BINDING * dual.max()), value[looked_at]
            in_play = (shares > _IN_PLAY * shares.max()) | (use > _USEFUL * use.max())
            shares = np.where(in_play, np.maximum(shares, _IN_PLAY * shares.max()), 0.0)
        lam = lam * (value / phi) ** of_dual
        dual = _scattered(lam / lam.sum(), looked_at, len(targets))
        shares = shares * (use / phi) ** of_shares
        shares = shares / shares.sum()
    # prices count a trace of the uniform design, and so does the upper end
    return Design((1 - TRACE) * best[0] + TRACE / len(shares), best[1], upper, lower)


def own_arm_shares(
    squares: Any, priority: FloatArray, price: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return shares by arm, and the dual, where contrasts share one arm and have one of their own, else None.

    `squares` are those of the contrasts, (n, n_arms), `priority` weighs the contrasts and `price` is the
    variance of a measurement of each arm times its cost. With a_j and b_j the weighted parts of both arms,
    the shares x and x_j minimise max_j a_j / x + b_j / x_j. All contrasts are equally well off at the
    optimum. At the level 1, x_j = b_j x / (x - a_j), and the sum of all is least where
    sum_j a_j b_j / (x - a_j)^2 = 1, which falls in x. The dual is in proportion to x_j^2 / b_j, which makes
    the last measurement of each arm worth the same.

    >>> squares = np.column_stack([np.ones(4), np.eye(4)])
    >>> shares, dual = own_arm_shares(squares, np.ones(4), np.ones(5))
    >>> (shares / shares[1]).round(9).tolist()  # the square root of the number of rivals
    [2.0, 1.0, 1.0, 1.0, 1.0]
    >>> dual.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    from scipy import sparse

    if isinstance(squares, np.ndarray) and np.count_nonzero(squares[:1]) != 2:
        return None
    rows = sparse.csr_array(squares)
    rows.eliminate_zeros()
    n_used = np.bincount(rows.indices, minlength=rows.shape[1])
    common = int(np.argmax(n_used))
    has_own_arms = n_used[common] == rows.shape[0] > 1 and np.delete(n_used, common).max() == 1
    if not has_own_arms or (np.diff(rows.indptr) != 2).any():
        return None
    is_common = rows.indices == common  # once in each row
    own = rows.indices[~is_common]
    a, b = priority * rows.data[is_common] * price[common], priority * rows.data[~is_common] * price[own]
    low = float(a.max())
    high = low + float(np.sqrt((a * b).sum()))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            low, high = (middle, high) if (a * b / (middle - a) ** 2).sum() > 1 else (low, middle)
    shares = np.zeros(rows.shape[1])
    shares[common], shares[own] = high, b * high / (high - a)
    dual = b / (high - a) ** 2
    return shares / shares.sum(), dual / dual.sum()
