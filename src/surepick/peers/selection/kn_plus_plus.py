"""KN++: KN with variances that are estimated anew in every round.

Paper: Kim & Nelson (2006), On the Asymptotic Validity of Fully Sequential Selection Procedures for
Steady-State Simulation; here measurements are independent, so that a batch is one of them. As KN (`kn`), but
after r rounds S_il^2 is the variance over all r of them, f = r - 1 degrees of freedom and

    h^2 = f ((2 beta)^(-2/f) - 1),     beta = 1 - (1 - delta)^(1/(k - 1)),

which is for arms measured independently; where one use reads several, beta = delta/(k - 1), as KN has it.

Assumption: Gaussian noise, independent from round to round, of unknown scales. Proof status: valid in the
limit of zones that shrink to 0, and no error of a run is bounded: variances that are looked at again and
again may stop a run when they happen to be small.

Pairs and deviations: those of KN. Cost of a round: all pairs of arms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.peers.selection.kn import h_squared, still_in, triangle
from surepick.peers.selection.zone import ZonePolicy, ZoneRun


@dataclass(frozen=True)
class KNPlusPlus(ZonePolicy):
    """Kim and Nelson's second procedure: as KN, with variances of all that was seen.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise_scale=1)
    >>> sp.simulate(problem, sp.policies.KNPlusPlus(zone=0.5), sp.Gaussian([1.0, 0.4, 0.0]), seed=1).plan
    0
    """

    name: ClassVar[str] = "KNPlusPlus"
    takes_probes: ClassVar[bool] = True

    @property
    def guarantee(self) -> str:
        """What is missing for a promise."""
        return Promise.none("KN++ is valid in the limit of small zones; no error of a run is bounded").text

    def start(self, problem: Problem) -> KNPlusPlusRun:
        """A fresh run on this problem, whose plans must be single arms."""
        return KNPlusPlusRun(problem, self)


class KNPlusPlusRun(ZoneRun):
    """A run of KN++."""

    def __init__(self, problem: Problem, policy: KNPlusPlus) -> None:
        super().__init__(problem, policy.name, by_probes=True)
        self._zone, self._first = policy.zone, policy.first
        n_rivals = self._candidates.n_plans - 1
        together = problem.probes is not None and problem.probes.share_uses
        self._share = policy.delta / n_rivals if together else 1.0 - (1.0 - policy.delta) ** (1.0 / n_rivals)

    def update(self, counts: IntArray, sums: FloatArray) -> None:
        """See the values of a round, and drop who fell out of the triangle of now."""
        del counts  # one of each
        self.see(sums)
        if self._n < self._first:
            return
        a: FloatArray = h_squared(self._share, self._n - 1) * self.difference_variances()
        self._active = still_in(self._active, self._means, triangle(self._n, a, self._zone))
        closed = a[self._active][:, self._active].max() / self._zone**2 < self._n
        if self._active.sum() == 1 or closed:
            self._answer = self._best_active()
