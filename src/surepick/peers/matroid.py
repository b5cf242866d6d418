"""ExactExpGap: drop arms that better ones can replace, accept arms that none can, on the bases of a matroid.

Paper: Chen, Gupta & Li (2016), Pure Exploration of Multi-armed Bandit Under Matroid Constraints (Exact-ExpGap
for Best-Basis). S are the arms left, n_opt the rank of S once accepted arms are contracted, n_bad = |S| -
n_opt; eps = 2^-r / 4 and delta_r = delta / (100 r^3), where r counts the rounds of each case. "Sample(A, e,
q)" measures each arm of A anew, 2 R^2 log(2/q) / e^2 times; a set blocks an arm that it spans.

    n_opt <= n_bad, eliminate:
        1. Sample(S, eps/2, delta_r/|S|); I = the best basis of S by these estimates;
        2. Sample(I, eps/2, delta_r/n_opt) and Sample(S - I, eps, delta_r/n_opt);
        3. of S keep I and the arms e that {i in I: mean_i >= mean_e + 3/2 eps} does not block;
    else, select:
        1. Sample(S, eps, delta_r/|S|);
        2. accept the arms e that {i in S - e: mean_i >= mean_e - 2 eps} does not block, and contract them.

The answer: the accepted arms when n_opt = 0, these and all of S when n_bad = 0.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem (paper: within [0, 1]).
Proof status: proved. An arm of the best basis is one that the arms at least as good as it do not block. In 3
the estimates of I and of the best basis, 2 n_opt arms, hold except with probability 2 delta_r, and then every
i that counts is at least as good as e; in the other case all of S hold, and every arm at least as good as e
counts. Over all rounds that is less than delta/20: the constants are those of an analysis.

Deviations: step 1 of eliminating is the paper's PAC-SamplePrune, which up to 20,000 arms is what stands here.
Arms that the accepted ones block are dropped at once. Measurements of earlier rounds are not used again.
Reconstructed: the box was read from a public program. Plans must be the bases of a matroid, which is checked;
real plans need not be one. Costs are not used. A round costs a pass over all plans for each arm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, as_dense, divided
from surepick.core.policy import known_noise_scale
from surepick.core.problem import Problem
from surepick.core.run import Measure, Run, Standing, Stop
from surepick.design.counts import refuse_too_many
from surepick.errors import ProblemError
from surepick.peers.sequential import among, best_two
from surepick.policies.sound import SoundPolicy

_CHUNK = 4096  # sets whose exchanges are looked at together


@dataclass(frozen=True, eq=False)
class Matroid:
    """All bases, a row of zeros and ones each, on the arms in which they differ."""

    bases: FloatArray  # (n_plans, n_used)
    arms: IntArray  # (n_used,) which arms of the problem these are

    def rank(self, sets: BoolArray) -> IntArray:
        """Return the rank of each set, a column of (n_used, m): the size of its largest independent subset.

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
        """Return the bases that contain every arm of `having`, and besides them only arms of `left`."""
        have_all = self.bases @ having.astype(float) == having.sum()
        have_no_other = self.bases @ (~having & ~left).astype(float) == 0
        return np.flatnonzero(have_all & have_no_other)


def matroid_of(problem: Problem, policy: str) -> Matroid:
    """Return the matroid whose bases the plans are; raise an error that names two plans if there is none.

    Sets of equal size are the bases of a matroid if they have the exchange property: remove any arm from a
    basis, and every other basis has an arm that makes it a basis again.
    """
    arms = np.flatnonzero(problem.relevant)
    bases = np.ascontiguousarray(as_dense(problem.plans)[:, arms], dtype=float)

    def refuse(first: int, second: int, why: str) -> None:
        one, other = problem.plan_names[first], problem.plan_names[second]
        raise ProblemError(
            f"{policy} is for the bases of a matroid (the best k arms, spanning trees), and plans {one!r} "
            f"and {other!r} are not two of one: {why}; use BetGapE, or GenLUCB, which takes any sets",
            field="policy",
        )

    sizes = bases.sum(axis=1)
    if np.ptp(sizes):
        refuse(int(np.argmin(sizes)), int(np.argmax(sizes)), "they differ in size")
    owner, arm = np.nonzero(bases)
    reduced = bases[owner]
    reduced[np.arange(len(owner)), arm] = 0.0
    sets, group = np.unique(reduced, axis=0, return_inverse=True)  # bases less one arm
    fits = np.zeros(sets.shape)
    fits[np.ravel(group), arm] = 1.0  # the arms that complete each of them
    for start in range(0, len(sets), _CHUNK):
        stuck = np.argwhere(fits[start : start + _CHUNK] @ bases.T == 0)
        if len(stuck):
            first = int(owner[np.flatnonzero(np.ravel(group) == start + stuck[0, 0])[0]])
            refuse(first, int(stuck[0, 1]), "an arm of the first can be exchanged for none")
    return Matroid(bases, arms)


class MatroidRun(Run):
    """A run of ExactExpGap, one sampling at a time. It changes by `absorb` alone."""

    def __init__(self, problem: Problem, policy: ExactExpGap) -> None:
        scale = known_noise_scale(problem)
        self._matroid = matroid_of(problem, policy.name)
        arms = self._matroid.arms
        self._n_arms = problem.n_arms
        self._sign = problem.sign
        self._delta = policy.delta
        self._scale = scale[arms]
        # S, I and r are the symbols of the paper (see the module)
        self._left: BoolArray = np.ones(len(arms), dtype=bool)  # S, the arms that are undecided
        self._accepted: BoolArray = np.zeros(len(arms), dtype=bool)
        self._basis: BoolArray | None = None  # I, known between the two samplings of an elimination
        self._elimination_round = 1  # r of the next elimination
        self._selection_round = 1  # r of the next selection
        self._standing = Standing()

    @property
    def _sizes(self) -> tuple[int, int]:
        """n_opt, the undecided arms that the best basis has, and n_bad, those that it does not have."""
        sets = np.column_stack([self._accepted, self._accepted | self._left])
        accepted_rank, full_rank = self._matroid.rank(sets)
        n_opt = int(full_rank - accepted_rank)
        return n_opt, int(self._left.sum()) - n_opt

    @property
    def _resolution(self) -> tuple[float, float]:
        """The precision eps and the error probability delta_r of this round."""
        n_opt, n_bad = self._sizes
        r = self._elimination_round if n_opt <= n_bad else self._selection_round
        return 2.0**-r / 4.0, self._delta / (100.0 * r**3)

    def decide(self, rng: np.random.Generator) -> Measure | Stop:
        """Return the next sampling, or the basis that is left."""
        n_opt, n_bad = self._sizes
        if n_opt == 0 or n_bad == 0:
            left = self._left if n_opt else np.zeros_like(self._left)
            return Stop(int(self._matroid.within(self._accepted | left, left)[0]))
        eps, delta_r = self._resolution
        n_left = int(self._left.sum())
        if n_opt > n_bad:  # select
            error = np.full(len(self._left), eps)
            q = delta_r / n_left
        elif self._basis is None:  # the first sampling of an elimination
            error = np.full(len(self._left), eps / 2.0)
            q = delta_r / n_left
        else:  # the second one
            error = np.where(self._basis, eps / 2.0, eps)
            q = delta_r / n_opt
        n = np.where(self._left, 2.0 * math.log(2.0 / q) * (self._scale / error) ** 2, 0.0)
        refuse_too_many(float(n.sum()))
        counts = np.zeros(self._n_arms, dtype=np.int64)
        counts[self._matroid.arms] = np.ceil(n).astype(np.int64)
        return Measure(counts)

    def absorb(self, counts: IntArray, sums: FloatArray) -> None:
        """Apply one sampling: choose the basis I, drop arms, or accept some."""
        arms = self._matroid.arms
        means = divided(self._sign * sums[arms], counts[arms])
        n_opt, n_bad = self._sizes
        eps, _ = self._resolution
        if n_opt > n_bad:
            self._select(means, eps)
        elif self._basis is None:
            leader = self._stand(means)
            self._basis = (self._matroid.bases[leader] > 0) & self._left
        else:
            self._eliminate(means, eps, self._basis)
        if self._basis is None:
            self._stand(means)

    def _eliminate(self, means: FloatArray, eps: float, basis: BoolArray) -> None:
        """Drop each arm that is spanned by accepted arms and arms of the basis that are better by 1.5 eps."""
        others = np.flatnonzero(self._left & ~basis)
        better = basis[:, None] & (means[:, None] >= means[others] + 1.5 * eps)
        blocked = self._matroid.blocked(better | self._accepted[:, None], others)
        self._left = self._left.copy()
        self._left[others[blocked]] = False
        self._basis = None
        self._elimination_round += 1

    def _select(self, means: FloatArray, eps: float) -> None:
        """Accept each arm that is in the best basis by these estimates, even if they err by eps.

        The best basis has an arm unless better arms span it. So an arm is accepted if it is not spanned by
        the accepted arms together with those that may be better, whose estimates are at least its own less
        2 eps. Then the arms that the accepted ones span are decided, and leave.
        """
        arms = np.flatnonzero(self._left)
        may_be_better = self._left[:, None] & (means[:, None] >= means[arms] - 2.0 * eps)
        may_be_better[arms, np.arange(len(arms))] = False  # an arm is not compared with itself
        chosen = arms[~self._matroid.blocked(may_be_better | self._accepted[:, None], arms)]
        self._accepted = self._accepted.copy()
        self._accepted[chosen] = True
        every = np.arange(len(means))
        spanned = self._matroid.blocked(np.tile(self._accepted[:, None], len(means)), every)
        self._left = self._left & ~spanned  # the accepted arms are among these
        self._selection_round += 1

    def _stand(self, means: FloatArray) -> int:
        """Return the remaining basis that is best by these estimates, and make it the leader."""
        left = self._matroid.within(self._accepted, self._left)
        values = self._matroid.bases[left] @ means
        self._standing = best_two(values, left)
        return int(left[np.argmax(values)])

    def standing(self) -> Standing:
        """Return the best basis by the last sampling, the next one, and the bases that are left."""
        return among(self._standing, self._matroid.within(self._accepted, self._left))


@dataclass(frozen=True)
class ExactExpGap(SoundPolicy, run=MatroidRun):
    """Drop arms that better ones can replace and accept those that none can; for bases of a matroid."""

    _sets_only: ClassVar[str] = (
        "it is for matroids, whose plans exchange one arm for one, and plans of real amounts need not be "
        "one; use CombGapE or BetGapE, which take any numbers"
    )
