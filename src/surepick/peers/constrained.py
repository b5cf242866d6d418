"""CTnS and CGE: track-and-stop and a game of learners where plans are all amounts within linear limits.

Paper: Carlsson, Basu, Johansson & Dubhashi (2024), Pure Exploration in Bandits with Linear Constraints
(AISTATS, arXiv 2306.12774), the closest published work to BetGapE on polytopes. The best plan is a vertex;
it stays best until one of its edges improves. With n_s of t measurements at arm s, the vertex that is best
for the means, its edges e (larger is better) and D_e(w) = (e.means)^2 / (2 sum_s e_s^2 R_s^2 / w_s), which is
how far the closest world is in which e improves:

    stop when min over e of D_e(n) exceeds the threshold; otherwise measure an arm:
    CTnS: the least measured arm if it has fewer than sqrt(t) - d/2, else argmax of t w_s - n_s, where w
          are the shares with the largest min over e of D_e(w);
    CGE:  a learner (AdaHedge) plays shares w, the other player answers with the closest edge at w, whose
          world has means m; arm s gains the larger of log(t)/n_s and the largest (mu - m_s)^2 / (2 R_s^2)
          over mu within sqrt(2 R_s^2 log(t) / n_s) of its mean; measure argmax of (sum of all w)_s - n_s.

| radius | D_e(n) is compared with | guarantee |
|---|---|---|
| `heuristic` | log((1 + log t)/delta), by which the authors' program stops | none |
| `normal-mixture` | `normal-mixture-joint` of `policies/gap/radius`, for all edges at once | proved |

Assumption: independent sub-Gaussian measurements with the noise scale of the problem. Proof status: that of
the radius, whose event is joint over all arms and so holds for every edge of every vertex; if the leader is
not best, one of its edges improves. The paper shows that measurements come to the limit as delta goes to 0.

Deviations: of the paper only the abstract and the authors' program (constraint_explore.py of the repository
e-carlsson/constraint-pure-exploration) could be read; the boxes are reconstructed from the program. There the
learner of CGE is AdaGrad and tracks its last shares; here it is AdaHedge with the sum of its shares, as in
LinGame. CTnS finds w anew when the leader has changed or the measurements have grown by 2%. Edges are those
of one basis: at a vertex with several, some of these lead nowhere, and a run may then not stop. Costs are not
used. A round costs a pass over the edges of the leader, and a linear program when the leader has changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.polytopes.polytope import Polytope
from surepick.core.run import Answer, Standing
from surepick.design.allocation import optimal_allocation
from surepick.errors import ParameterError
from surepick.peers.linear import PROVED, AdaHedge, LinearPolicy, optimistic_gains
from surepick.peers.sequential import (
    CandidatesRun,
    d_tracking,
    heuristic_level,
    mixture_lam,
    relevant_arms,
)

GROWTH = 1.02  # of the measurements, before CTnS finds its shares anew
_LEAST_GAP = 1e-9  # of the largest: an edge that ties counts as this


@dataclass(frozen=True)
class ConstrainedPolicy(LinearPolicy):
    """The settings of both methods; `radius` is "normal-mixture" (proved) or "heuristic" (no proof)."""

    takes_probes: ClassVar[bool] = False
    takes_oracle: ClassVar[bool] = True


class EdgesRun(CandidatesRun):
    """One measurement a round of an arm that matters, and the stop; the leader is a vertex with its edges."""

    def __init__(self, problem: AnyProblem, policy: ConstrainedPolicy) -> None:
        if not isinstance(problem, Polytope):
            raise ParameterError(
                f"{policy.name} needs a Polytope, got {type(problem).__name__}; use TrackAndStop, LinGame or "
                "BetGapE where plans are listed",
                field="policy",
            )
        arms = relevant_arms(problem)
        super().__init__(arms)
        self._problem, self._policy = problem, policy
        self._variance = self._scale**2
        self._arms = arms.numbers
        self._basis: IntArray = np.zeros(0, dtype=np.int64)  # of the leader, as in `StandardForm`
        self._edges: FloatArray = np.zeros((0, len(self._arms)))  # larger is better
        self._vertex: tuple[float, ...] = ()

    def _judge(self) -> Answer | None:
        """Move to the best vertex unless no edge improves; answer if every edge loses by its radius."""
        if not len(self._edges) or (self._edges @ self._means > 0).any():
            form = self._problem.form
            means = np.zeros(self._problem.n_arms)
            means[self._arms] = self._means
            self._basis, at = form.basis_near(self._problem.best_plan(means))
            found = form.directions(self._basis, at)[:, self._arms]
            self._edges = self._problem.sign * found[found.any(axis=1)]
            self._vertex = tuple(form.plan(form.vertex(self._basis, at)).tolist())
        return super()._judge()

    def _gaps_and_radii(self) -> tuple[Answer, FloatArray, FloatArray]:
        """Return the leader, by how much each of its edges loses, and the radius of that."""
        n, delta = self._counts, self._policy.delta
        if self._policy.radius == PROVED:
            lam, log_weight = mixture_lam(n)
            level = 0.5 * float(np.log1p(n / lam).sum()) - log_weight - math.log(delta)
            inflation = (n + lam) / n**2.0
        else:
            level = heuristic_level(float(n.sum()), delta)
            inflation = 1.0 / n
        variances = self._edges**2 @ (self._variance * inflation)
        return self._vertex, -(self._edges @ self._means), np.sqrt(2.0 * level * variances)

    def _compare(self) -> Standing:
        """Return the leader, by how much its closest edge loses, and the radius of that."""
        return replace(super()._compare(), rival=None)  # an edge is no plan


class CTnSRun(EdgesRun):
    """A run of CTnS; `_shares` is w, found at `_found_at` measurements for the leader of that moment."""

    def __init__(self, problem: AnyProblem, policy: CTnS) -> None:
        super().__init__(problem, policy)
        self._shares: FloatArray = np.zeros(len(self._arms))
        self._found_at = 0

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Measure by D-tracking of w."""
        return self._once(d_tracking(self._counts, self._shares))

    def _judge(self) -> Answer | None:
        """Judge, and find the shares anew where they are out of date."""
        before = self._basis
        answer = super()._judge()
        total = int(self._counts.sum())
        if not np.array_equal(before, self._basis) or total >= GROWTH * self._found_at:
            gaps = -(self._edges @ self._means)
            gaps = np.maximum(gaps, _LEAST_GAP * float(np.abs(gaps).max()) or 1.0)
            squares = self._edges**2 * self._variance / (gaps**2)[:, None]
            self._shares, self._found_at = optimal_allocation(squares / squares.max()).weights, total
        return answer


@dataclass(frozen=True)
class CTnS(ConstrainedPolicy, run=CTnSRun):
    """Track-and-stop under linear constraints: all plans of a `Polytope`."""


class CGERun(EdgesRun):
    """A run of CGE: its AdaHedge learner, and the sum of the allocations that it played."""

    def __init__(self, problem: AnyProblem, policy: CGE) -> None:
        super().__init__(problem, policy)
        self._learner = AdaHedge(np.zeros(len(self._arms)))
        self._played = np.ones(len(self._arms))  # the first round measured every arm

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Play a round of the game; measure the arm furthest behind the sum of the allocations played."""
        shares = self._learner.shares
        self._played = self._played + shares
        self._learner = self._learner.gain(self._optimistic_gains(shares))
        return self._once(int(np.argmax(self._played - self._counts)))

    def _optimistic_gains(self, shares: FloatArray) -> FloatArray:
        """Return upper bounds of each arm's information against the closest alternative."""
        price = self._variance / np.maximum(shares, 1e-12)
        gaps, variances = self._edges @ self._means, self._edges**2 @ price
        closest = int(np.argmin(gaps**2 / variances))
        moved = np.abs(gaps[closest] / variances[closest] * self._edges[closest] * price)
        return optimistic_gains(moved, self._variance, self._counts, math.log(float(self._counts.sum())))


@dataclass(frozen=True)
class CGE(ConstrainedPolicy, run=CGERun):
    """The constrained game explorer: a learner of shares against the edge that is hardest to rule out."""
