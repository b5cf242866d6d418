"""The best vertex of a polytope: an account for each basis that has led, with a row for each of its edges.

At a basis every plan is vertex + sum_k lambda_k e_k with lambda_k >= 0, so that a vertex that is not best has
an edge that improves. Row k of a basis's account bets against "edge k improves". In the words of the theorem
(`surepick.inference`) Bad(theta) are the bases whose vertex is not best, and the selector names for each of
them one edge that improves. Every stake goes to all rows of an account alike, so that whichever edge the
selector names the sum of what it holds is at most the stake. The answer is a vertex all of whose edges are
ruled out, on one basis. `core/polytopes/proofs.py` checks it by arithmetic alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.polytopes.polytope import Polytope
from surepick.core.polytopes.proofs import variable_names, vertex_proof
from surepick.core.polytopes.standard_form import ROUNDING
from surepick.core.run import TOLERANCE, Answer, Decision, Standing
from surepick.inference.contrasts import Contrasts
from surepick.inference.steps import are_mixtures, is_share, mixture_of, mixture_steps
from surepick.inference.wealth import Account
from surepick.policies.betting.best import SELECTION_BIAS, SHRINKAGE
from surepick.policies.betting.estimates import Estimates
from surepick.policies.betting.question import (
    CERTAIN,
    NO_LEADER,
    RESTAKE,
    Bet,
    Check,
    Pace,
    PlannedBatch,
    Question,
    Targets,
    is_clear,
)
from surepick.policies.polytopes.edges import Edges, Vertices, basis_of, basis_text

_MOST_BASES = 24  # accounts that are kept; forgetting one only loses wealth


class BestVertex(Question):
    """Which vertex is best? The leader is a basis, by its text; rivals are the variables that leave it."""

    STATE: ClassVar[tuple[str, ...]] = (*Question.STATE, "led", "first_led_at")
    pace = Pace(smoothing=8.0)
    stake_share = 0.5  # of the cash
    ready = 1.0  # standard errors that every edge must be away from a tie before a basis is staked

    def __init__(self, problem: Polytope, delta: float) -> None:
        self._problem, self._form = problem, problem.form
        super().__init__(delta, 0.0, accounts=_MOST_BASES)
        self._vertices = Vertices(problem)
        self._edges: dict[str, Edges] = {}  # of the last bases; derived, and so no state
        self.led: Any = NO_LEADER  # the basis of the last batch
        self.first_led_at: dict[str, IntArray] = {}  # counts when each basis with an account first led
        if not problem.relevant.any():  # nothing has to be measured
            self.leader = basis_text(self._vertices.best(problem.known_means, self._vertices.first).at)

    @property
    def n_plans(self) -> int:
        """The number of variables: each may be the one that leaves its bound along an edge."""
        return len(self._form.lower)

    def edges(self, basis: str) -> Edges:
        """Return the edges of a basis; those of the last few are kept."""
        if basis not in self._edges:
            if len(self._edges) >= _MOST_BASES:
                del self._edges[next(iter(self._edges))]
            self._edges[basis] = self._vertices.edges(basis_of(basis))
        return self._edges[basis]

    @property
    def _led_edges(self) -> Edges:
        return self.edges(self.leader)

    def first_contrasts(self, most: int) -> tuple[FloatArray, Contrasts]:
        """Return the edges of a first basis, and every arm that differs between plans."""
        edges = self._losses(self._vertices.edges(self._vertices.first)).dense()
        return edges[edges.any(axis=1)][:most], Contrasts(np.eye(self._form.n_arms)[self._problem.relevant])

    def _losses(self, edges: Edges) -> Contrasts:
        """Return the losses along the edges; known means enter as constants."""
        losses, is_known = -edges.gains[edges.is_edge], self._problem.is_known
        constant = losses @ self._problem.known_means  # 0 for arms whose mean is not known
        return Contrasts(np.where(is_known, 0.0, losses), constant=constant, rounding=ROUNDING)

    def choose(self, estimates: Estimates) -> None:
        """Set the leader to a basis of the vertex that is optimal under the estimated means.

        A degenerate vertex has several bases. All prove the same answer, so the one whose edges are furthest
        from a tie leads: it should take the fewest measurements. A leader that is proved stays.
        """
        if self.has_leader and self.is_answered:
            return
        means = estimates.means
        if not self.has_leader:
            edges = self._vertices.best(means, self._vertices.first)
        elif (estimates.gap(self._losses(self._led_edges)) >= 0).all():  # no edge improves: still optimal
            edges = self._led_edges
        else:
            edges = self._vertices.best(means, self._led_edges.at)  # a few pivots from the last leader
        variance = estimates.arm_variance()
        # the variance is infinite for arms that are not measured, since no comparison needs them
        variance = np.where(np.isfinite(variance), variance, 0.0)
        self.leader = basis_text(self._vertices.clearest(edges, means, variance).at)

    @property
    def _account(self) -> Account | None:
        return self.wealth.accounts.get(self.leader)

    def evidence(self, leader: Any) -> FloatArray:
        """Return the largest log wealth so far against each edge of this basis."""
        account, losses = self.wealth.accounts.get(leader), self._losses(self.edges(leader))
        evidence = np.zeros(len(losses)) if account is None else account.peak.copy()
        is_certain = ~losses.rows.any(axis=1) & (losses.constant >= 0)  # no arm of unknown mean moves
        return np.where(is_certain, CERTAIN, evidence)

    def recorded_wealth(self, leader: Any) -> float:
        """Return one number for the wealth against this basis: the mean log wealth over its edges.

        Each decision records it and a replay compares it. It proves nothing: evidence is counted edge by
        edge. The mean moves with a bet on any edge, so a replay that differs in one bet shows.
        """
        if leader == NO_LEADER:
            return 0.0
        wealth = self.log_wealth(leader)
        return float(wealth.mean()) if len(wealth) else CERTAIN  # a vertex without edges is the only plan

    def log_wealth(self, leader: Any) -> FloatArray:
        """Return the log wealth against each edge of this basis, now."""
        account, n = self.wealth.accounts.get(leader), len(self.edges(leader).leaves)
        if account is None:
            return np.full(n, self.wealth.log_cash)
        return self.wealth.total(np.arange(n), account)

    def leader_objection(self, leader: Any) -> str | None:
        """Return why this cannot lead: it is no basis whose vertex is a plan."""
        return None if self._vertices.is_vertex(leader) else "its leader is no basis of a plan"

    def rival_objection(self, decision: Decision) -> str | None:
        """Return why these cannot be the rivals: they are the variables whose edges are not ruled out."""
        leaves = self.edges(decision.leader).leaves
        is_rival = np.isin(leaves, decision.rivals)
        if is_rival.sum() != len(decision.rivals) or not is_rival.any():
            return "its rivals are no edges of the leader"
        wrong = self.misplaced(is_rival, self.evidence(decision.leader))
        if wrong.any():
            return f"edge {int(leaves[np.argmax(wrong)])} is on the wrong side of its rivals"
        return None

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this vertex is proved, by one of its bases, up to rounding."""
        if plan is None or np.shape(plan) != (self._form.n_arms,):
            return False
        least, bases = self.wealth.threshold * (1.0 - TOLERANCE), {*self.wealth.accounts, self.leader}
        same = (
            b for b in bases if isinstance(b, str) and np.allclose(self._plan(b), plan, rtol=1e-9, atol=1e-9)
        )
        return any(self.evidence(basis).min(initial=math.inf) >= least for basis in same)

    def unresolved(self) -> IntArray:
        """Return the variables whose edges are not ruled out."""
        return self._led_edges.leaves[self.evidence(self.leader) < self.wealth.threshold]

    def _rows(self, rivals: IntArray) -> tuple[IntArray, Contrasts]:
        """Return the rows of these variables in the leader's account, and the losses along their edges."""
        edges = self._led_edges
        rows = np.searchsorted(edges.leaves, rivals)
        return rows, self._losses(edges).take(rows)

    def targets(self, estimates: Estimates, rivals: IntArray) -> Targets:
        """Return targets: to show that value is lost along the edges on which these variables leave."""
        rows, losses = self._rows(rivals)
        log_wealth = self.log_wealth(self.leader)[rows]
        return self.aim(estimates, rivals, losses, log_wealth, shift=0.0)

    def terms(self, estimates: Estimates, batch: PlannedBatch) -> dict[str, Any]:
        """Bet against every unresolved edge of the leader, and stake on all of its edges alike.

        A stake waits until each unresolved edge is clear of a tie. Estimated gaps of a leader are biased by
        its selection, all of it before it first led: centres are lowered in proportion to the older part of
        the estimate.
        """
        targets = batch.targets
        if targets is None or not batch.has_bets:
            return {}
        first = self.first_led_at.get(self.leader, estimates.counts)
        old_part = estimates.old_part(first, targets.contrasts, targets.gap_variance)
        bias = SELECTION_BIAS * math.log(max(len(self._led_edges.leaves), 1))
        centre = targets.lowered(SHRINKAGE + bias * np.sqrt(old_part))
        found: dict[str, Any] = {"bets": mixture_steps(centre, targets.gap_variance)}
        is_due = self._account is None or estimates.n_measured >= self._account.next_stake
        if is_due and is_clear(targets.gap, self.ready * targets.error):
            found["stake"] = self.stake_share
        return found

    def checks(self, decision: Decision) -> Mapping[str, Check]:
        """Return that there are bets on the rivals, and perhaps a stake; a final batch has neither."""
        if decision.is_final:
            return {}
        return {
            "bets": lambda bets: are_mixtures(bets, len(decision.rivals)) and len(bets) == 2,
            "stake": lambda share: share is None or is_share(share),
        }

    def follow(self, decision: Decision, estimates: Estimates) -> None:
        """Take on the basis of this decision, whose account is the most recently used one now, and stake."""
        self.leader = decision.leader
        if self.leader != self.led:
            self.led = self.leader
            rows = np.arange(len(self._led_edges.leaves))
            account = self.wealth.account(self.leader, len(rows), 1)
            self.wealth.count(rows, account)  # other bases may have taken cash since it led
            kept = self.first_led_at.items()
            self.first_led_at = {basis: first for basis, first in kept if basis in self.wealth.accounts}
            self.first_led_at.setdefault(self.leader, estimates.counts)
        if (share := decision.more.get("stake")) is not None:
            account = self.wealth.accounts[self.leader]
            account.stake(self.wealth.withdraw(share))
            account.next_stake = RESTAKE * estimates.n_measured

    def bets(self, decision: Decision, estimates: Estimates) -> list[Bet]:
        """Bet against every unresolved edge of the leader."""
        bet = Bet(self.leader, *self._rows(decision.rivals))
        if not decision.is_final:
            bet.centre, bet.prior_variance = mixture_of(decision.more["bets"])
        return [bet]

    @property
    def is_answered(self) -> bool:
        """Whether all edges of the leader are ruled out."""
        return self.has_leader and not len(self.unresolved())

    def answer(self) -> tuple[float, ...]:
        """Return the leader's plan, once it is proved."""
        return self._plan(self.leader)

    def _plan(self, basis: Any) -> tuple[float, ...]:
        return tuple(self._form.plan(self.edges(basis).values).tolist())

    def proof(self) -> Mapping[str, Any] | None:
        """Return the edges of the answer's basis with the evidence against each, as JSON values."""
        if not (self.has_leader and self.is_answered):
            return None
        edges = self._led_edges
        evidence = np.zeros(len(edges.full))
        evidence[edges.is_edge] = self.evidence(self.leader)
        return vertex_proof(self._problem, edges.at, edges.full, evidence)

    def standing(self, estimates: Estimates) -> Standing:
        """Return the leader, its neighbour along the edge with the least evidence, and the risk."""
        edges, evidence, threshold = self._led_edges, self.evidence(self.leader), self.wealth.threshold
        k = int(np.argmin(evidence))
        edge, row = self._losses(edges).take([k]), int(np.flatnonzero(edges.is_edge)[k])
        step = self._vertices.length(edges, row) * self._form.unit
        names = variable_names(self._problem)
        return Standing(
            self.answer(),
            tuple(self._vertices.neighbour(edges, row).tolist()),
            step * float(estimates.gap(edge)[0]),
            step * math.sqrt(2.0 * float(estimates.gap_variance(edge)[0]) * threshold),
            min(1.0, math.exp(-float(evidence[k]))),
            unless=tuple(names[j] for j in edges.leaves[evidence < threshold].tolist()),
        )
