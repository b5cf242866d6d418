"""Minimax design: shares of cost that nearly minimise the largest variance of some contrasts.

For targets z_j (contrasts times the square root of their priority) and shares of cost u,

    value(u) = max_j z_j' M(u)^-1 z_j,   M(u) = sum_o (u_o / c_o) sum_k x_ok x_ok'.

The steps are multiplicative, on the shares and on the weights of the targets (the dual), from given shares; a
few of them suffice from those of the last batch. Nothing here bears on a guarantee.
`probe_allocation` solves the same problem to a certified tolerance.
"""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.design.information import Dense, Diagonal

_WARMTH = (
    0.9  # of the start from the given solution, the rest from the uniform one: new targets need new arms
)
_FOCUS = 8  # power of values in the first weights of targets
_REVIEW = 10  # steps between looks at all probes and all targets; in between those in play are enough
_IN_PLAY, _USEFUL = 1e-5, 0.9  # of the largest share, and of the largest use: probes that stay in play
_BINDING, _CLOSE = 1e-7, 0.8  # of the largest weight, and of the largest value: targets that stay in play
_RIDGE = 1e-9  # of the uniform design


def minimax(
    information: Diagonal | Dense,
    targets: FloatArray,  # (n, d)
    costs: FloatArray,  # (n_probes,)
    shares: FloatArray,
    *,
    steps: int = 40,
    tolerance: float = 0.02,
) -> tuple[FloatArray, FloatArray]:
    """Return shares of cost, improved from these, and weights of the targets.

    >>> each = np.arange(2)
    >>> arms = Diagonal(each, np.ones(2), each, 2, 2)
    >>> minimax(arms, np.array([[1.0, -2.0]]), np.ones(2), np.full(2, 0.5))[0].round(3).tolist()
    [0.333, 0.667]
    """
    shares = _WARMTH * shares + (1 - _WARMTH) / len(shares)
    if isinstance(information, Diagonal) and information.is_single:
        return _single_arms(information, targets, costs, shares, steps, tolerance)
    return _any_probes(information, targets, costs, shares, steps, tolerance)


def _first_dual(value: FloatArray) -> FloatArray:
    """Return weights of targets with these values: nearly all for those that are close to the largest."""
    weights = (value / value.max()) ** _FOCUS
    return np.asarray(_WARMTH * weights / weights.sum() + (1 - _WARMTH) / len(value))


def _single_arms(
    information: Diagonal,
    targets: FloatArray,
    costs: FloatArray,
    shares: FloatArray,
    steps: int,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the solution where every arm has its own probe.

    For weights lam on the targets the best shares are u_s ~ sqrt(sum_j lam_j z_js^2 c_s / precision_s), so
    that only the weights need steps.
    """
    price = np.zeros(targets.shape[1])
    price[information.arm] = costs / information.precision
    squares = targets * targets * price
    rows = np.arange(len(targets))
    start = np.zeros(targets.shape[1])
    start[information.arm] = shares
    dual = _first_dual(squares @ np.divide(1.0, start, out=np.zeros(len(start)), where=start > 0))
    for step in range(steps):
        root = np.sqrt(dual @ squares)
        total = root.sum()
        value = squares @ np.divide(total, root, out=np.zeros(len(root)), where=root > 0)
        worst = value.max()
        if worst <= (1 + tolerance) * total * total or step == steps - 1:
            break
        dual = dual * (value / (dual @ value)) ** 1.5
        dual = dual / dual.sum()
        if step % 8 == 2:  # targets that neither bind nor come close are left out from here on
            keep = (dual >= 1e-4 / len(dual)) | (value >= 0.7 * worst)
            if keep.sum() < 0.7 * len(keep):
                rows, squares, dual = rows[keep], squares[keep], dual[keep] / dual[keep].sum()
    weights = np.zeros(len(targets))
    weights[rows] = dual
    return (root / total)[information.arm], weights


def _any_probes(
    information: Diagonal | Dense,
    targets: FloatArray,
    costs: FloatArray,
    shares: FloatArray,
    steps: int,
    tolerance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the best shares that the steps have seen.

    With phi = sum_j lam_j z_j' M^-1 z_j and use_o = (1/c_o) sum_k sum_j lam_j (x_ok' M^-1 z_j)^2, phi^2 / max
    use bounds every value(u) from below (weak duality), which ends the search.
    """
    from scipy.linalg.lapack import dposv  # scipy.linalg's wrappers would take half of the time

    n, owner = len(shares), information.owner
    rows = information.rows if isinstance(information, Dense) else _as_rows(information)
    ridge = rows.T @ rows * (_RIDGE / (n * costs.mean()))
    dual = np.zeros(len(targets))
    best, best_shares, best_dual, lower = np.inf, shares, dual, 0.0
    in_play, readings = np.arange(len(targets)), np.arange(len(owner))
    for step in range(steps):
        is_review = step % _REVIEW == 0 or step == steps - 1
        if is_review:
            in_play, readings = np.arange(len(targets)), np.arange(len(owner))
        X, own, Z, lam = rows[readings], owner[readings], targets[in_play], dual[in_play]
        matrix = X.T @ ((shares / costs)[own, None] * X) + ridge
        solved = dposv(matrix, Z.T, lower=1)[1]  # M^-1 z, (d, n)
        value = np.einsum("jd,dj->j", Z, solved)
        if step == 0:
            dual = lam = _first_dual(value)
        if len(Z) >= X.shape[1]:  # the cheaper of two ways to sum over targets
            use = np.einsum("rd,rd->r", X @ ((solved * lam) @ solved.T), X)
        else:
            use = ((X @ (solved * np.sqrt(lam))) ** 2).sum(axis=1)
        use = np.maximum(np.bincount(own, use, minlength=n) / costs, 0.0)
        phi = float(lam @ value)
        if is_review:
            lower = max(lower, phi * phi / use.max())
            if value.max() < best:
                best, best_shares, best_dual = value.max(), shares, dual
            if best <= (1 + tolerance) * lower:
                break
            in_play = np.flatnonzero((dual > _BINDING * dual.max()) | (value > _CLOSE * value.max()))
            lam, value = np.maximum(dual[in_play], _BINDING * dual.max()), value[in_play]
            stays = (shares > _IN_PLAY * shares.max()) | (use > _USEFUL * use.max())
            shares = np.where(stays, np.maximum(shares, _IN_PLAY * shares.max()), 0.0)
            readings = np.flatnonzero(stays[owner])
        lam = lam * (value / phi)
        dual = np.zeros(len(targets))
        dual[in_play] = lam / lam.sum()
        shares = shares * (use / phi) ** 0.8
        shares = shares / shares.sum()
    return best_shares, best_dual


def _as_rows(information: Diagonal) -> FloatArray:
    """Return readings of one arm each as rows."""
    rows = np.zeros((len(information.owner), information.n_arms))
    rows[np.arange(len(rows)), information.arm] = np.sqrt(information.precision)
    return rows
