"""The allocation for a leader against many rivals each of which has an arm of its own, in closed form."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surepick.core.arrays import FloatArray, IntArray

_HALVINGS = 100  # of the interval of the leader's share: to the last bit


class OwnArms(NamedTuple):
    """Contrasts that share the leader's arm and have one arm each besides."""

    leader: int
    own: IntArray  # (n,)
    of_leader: FloatArray  # (n,) squared amounts
    of_own: FloatArray  # (n,)


def own_arms(squares: Any) -> OwnArms | None:
    """Return the arms of contrasts, by their squares; None if they are not like that.

    >>> found = own_arms(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 4.0]]))
    >>> found.leader, found.own.tolist(), found.of_own.tolist()
    (0, [1, 2], [1.0, 4.0])
    """
    from scipy import sparse

    if isinstance(squares, np.ndarray) and np.count_nonzero(squares[:1]) != 2:
        return None
    rows = sparse.csr_array(squares)
    rows.eliminate_zeros()
    n = rows.shape[0]
    used = np.bincount(rows.indices, minlength=rows.shape[1])
    leader = int(np.argmax(used))
    if (
        n < 2
        or used[leader] != n
        or bool((np.diff(rows.indptr) != 2).any())
        or np.delete(used, leader).max() > 1
    ):
        return None
    of_leader = rows.indices == leader  # once in each row
    own = rows.indices[~of_leader].astype(np.int64)
    return OwnArms(leader, own, rows.data[of_leader], rows.data[~of_leader])


def arm_of_each(plans: Any) -> IntArray | None:
    """Return the arm of each plan, if every plan has one arm, of its own; else None.

    >>> arm_of_each(np.array([[0.0, 2.0], [1.0, 0.0]])).tolist()
    [1, 0]
    """
    from scipy import sparse

    rows = sparse.csr_array(plans, copy=True)
    rows.eliminate_zeros()
    if bool((np.diff(rows.indptr) != 1).any()) or len(np.unique(rows.indices)) != rows.shape[0]:
        return None
    return rows.indices.astype(np.int64)


def own_arm_shares(leader_part: FloatArray, own_part: FloatArray) -> tuple[float, FloatArray]:
    """Return the shares x of the leader's arm and x_j of the own arms that minimise max_j a_j/x + b_j/x_j.

    All rivals are equally well off at the optimum. At the level 1, x_j = b_j x / (x - a_j), and the sum of
    all is least where sum_j a_j b_j / (x - a_j)^2 = 1, which falls in x.

    >>> leader, own = own_arm_shares(np.ones(4), np.ones(4))
    >>> round(float(leader / own[0]), 9)  # the square root of the number of rivals
    2.0
    """
    a, b = leader_part, own_part
    low = float(a.max())
    high = low + float(np.sqrt((a * b).sum()))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            low, high = (middle, high) if (a * b / (middle - a) ** 2).sum() > 1 else (low, middle)
    own = b * high / (high - a)
    total = high + float(own.sum())
    return high / total, own / total
