"""Plans that are the bases of a matroid: sets of arms of one size, between which arms can be exchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.plan_sets import check_zeros_and_ones
from surepick.core.problem import Problem
from surepick.errors import ProblemError

_BLOCK = 4096  # sets whose exchanges are looked at together


@dataclass(frozen=True, eq=False)
class Matroid:
    """All bases, a row of zeros and ones each, on the arms in which they differ."""

    bases: FloatArray  # (n_plans, n_used)
    arms: IntArray  # (n_used,) which arms of the problem these are

    def rank(self, sets: BoolArray) -> IntArray:
        """For each column of (n_used, m) the size of its largest independent part.

        >>> two_of_three = Matroid(np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]]), np.arange(3))
        >>> two_of_three.rank(np.array([[True, True], [True, False], [True, False]])).tolist()
        [2, 1]
        """
        return np.asarray((self.bases @ sets.astype(float)).max(axis=0)).astype(np.int64)

    def blocked(self, sets: BoolArray, arms: IntArray) -> BoolArray:
        """Return whether arm `arms[j]` adds nothing to the set in column j: the set spans it."""
        more = sets.copy()
        more[arms, np.arange(len(arms))] = True
        return np.asarray(self.rank(more) == self.rank(sets))

    def within(self, having: BoolArray, left: BoolArray) -> IntArray:
        """The bases that have all of the one and otherwise only some of the other."""
        other = self.bases @ (~having & ~left).astype(float)
        return np.flatnonzero((self.bases @ having.astype(float) == having.sum()) & (other == 0))


def matroid_of(problem: Problem, policy: str) -> Matroid:
    """The matroid whose bases the plans are, or a clear error that names two plans that fit no matroid."""
    check_zeros_and_ones(
        problem,
        policy,
        "it is for matroids, whose plans exchange one arm for one, and plans of real amounts need not be "
        "one; use CombGapE or BetGapE, which take any numbers",
    )
    plans = problem.plans
    dense = plans if isinstance(plans, np.ndarray) else plans.toarray()
    arms = np.flatnonzero(problem.relevant)
    found = Matroid(np.ascontiguousarray(dense[:, arms], dtype=float), arms)
    _check_exchange(found.bases, problem, policy)
    return found


def _check_exchange(bases: FloatArray, problem: Problem, policy: str) -> None:
    """Bases of a matroid: where an arm is taken from one, some arm of each other one completes it again."""
    sizes = bases.sum(axis=1)
    if np.ptp(sizes):
        _refuse(problem, policy, int(np.argmin(sizes)), int(np.argmax(sizes)), "they differ in size")
    owner, arm = np.nonzero(bases)
    reduced = bases[owner]
    reduced[np.arange(len(owner)), arm] = 0.0
    sets, group = np.unique(reduced, axis=0, return_inverse=True)  # bases less one arm
    fits = np.zeros(sets.shape)
    fits[np.ravel(group), arm] = 1.0  # the arms that complete each of them
    for start in range(0, len(sets), _BLOCK):
        stuck = np.argwhere(fits[start : start + _BLOCK] @ bases.T == 0)
        if len(stuck):
            lacking, other = stuck[0]
            first = int(owner[np.flatnonzero(np.ravel(group) == start + lacking)[0]])
            _refuse(problem, policy, first, int(other), "an arm of the first can be exchanged for none")


def _refuse(problem: Problem, policy: str, first: int, second: int, why: str) -> None:
    one, other = problem.plan_names[first], problem.plan_names[second]
    raise ProblemError(
        f"{policy} is for the bases of a matroid (the best k arms, spanning trees), and plans {one!r} and "
        f"{other!r} are not two of one: {why}; use BetGapE, or GenLUCB, which takes any sets",
        field="policy",
    )
