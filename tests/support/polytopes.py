"""Polytopes of the studies and of the tests, all their vertices, and questions that cheat.

Shared by the tests and by benchmarks/soundness.py.
"""

import itertools

import numpy as np

import surepick as sp
from surepick.core.polytopes.proofs import Inequality
from surepick.experiments.instances import product_mix, rectangle
from surepick.policies.betting.batch_run import BatchRun
from surepick.policies.betting.best_vertex import BestVertex
from surepick.policies.betting.within_polytope import LeaderBet, WithinPolytope


def transport_rows(supply, demand):
    m, n = len(supply), len(demand)
    rows = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    return {"A_eq": rows, "b_eq": np.concatenate([supply, demand]), "goal": "smallest"}


def transport(seed, m=9, n=9):
    """Supplies and demands uniform, normalised; the means are hours between the paper's cities."""
    if (m, n) != (9, 9):
        return rectangle(m=m, n=n, seed=seed)
    found = sp.problems.whole_transport(seed)
    return found.problem, found.means


def random_program(seed, d=40, k=12):
    rng = np.random.default_rng(seed)
    use = rng.uniform(0, 1, (k, d)) * (rng.uniform(0, 1, (k, d)) < 0.4)
    use += (use.sum(0) == 0) * 0.5
    limits = use.sum(1) * rng.uniform(0.15, 0.35, k)
    return sp.Polytope(A_ub=use, b_ub=limits, upper=1.0, noise=1, goal="largest"), use.mean(
        0
    ) / 0.2 * rng.uniform(0.8, 1.2, d)


def assignment(n, seed):
    """A degenerate transport: every vertex is a permutation."""
    means = np.random.default_rng(seed).uniform(0, 5, n * n)
    return sp.Polytope(noise=1, **transport_rows(np.ones(n), np.ones(n))), means


KINDS = {
    "3x3": lambda seed: transport(seed, 3, 3),
    "5x4": lambda seed: transport(seed, 5, 4),
    "9x9": transport,
    "mix": product_mix,
    "program": random_program,
}


def all_vertices(problem, *, loose=1.5):
    """Every vertex of a small polytope, by trying all sets of basic variables at all bounds.

    The upper one of bounds that are further apart than `loose` is left out: no vertex is at it.
    """
    form = problem.form
    m, n = form.matrix.shape
    found = []
    for basis in itertools.combinations(range(n), m):
        inside = form.matrix[:, basis]
        if m and abs(np.linalg.det(inside)) < 1e-9:
            continue
        others = [j for j in range(n) if j not in basis]
        sides = [
            {form.lower[j]} if form.upper[j] - form.lower[j] > loose else {form.lower[j], form.upper[j]}
            for j in others
        ]
        for values in itertools.product(*sides):
            full = np.zeros(n)
            full[others] = values
            full[list(basis)] = np.linalg.solve(inside, form.right - form.matrix @ full)
            if (full >= form.lower - 1e-9).all() and (full <= form.upper + 1e-9).all():
                found.append(form.plan(full))
    places = np.unique(np.round(found, 9), axis=0, return_index=True)[1]
    return np.array(found)[places]  # as they are: rounded ones miss the rows by up to 1e-9


class Peeking(BestVertex):
    """Centres its bets on the gaps of the very batch they are about: what the proof forbids."""

    def settle(self, bets, result):
        for bet in bets:
            gap, variance, _ = result.show(bet.contrasts)
            bet.centre, bet.prior_variance = np.maximum(gap, 0.0), variance / 10
        super().settle(bets, result)


class PeekingAverage(WithinPolytope):
    """Takes the plan that the batch itself likes best as its leader: what the proof forbids."""

    def settle(self, bets, result):
        plans = self.rivals.plans
        best = plans[int(np.argmax(plans @ (self._scale * result.averages)))]
        super().settle([LeaderBet(best)], result)


def run_of(question, problem, delta, epsilon=0.0):
    """A run of BetGapE that asks this question, cheating or not."""
    given = (epsilon,) if epsilon else ()
    return BatchRun(problem, sp.BetGapE(delta, epsilon), question(problem, delta, *given))


class PeekingPolicy(sp.BetGapE):
    """BetGapE with bets, or leaders, chosen after seeing the batch: the negative control."""

    def start(self, problem):
        return run_of(PeekingAverage if self.epsilon else Peeking, problem, self.delta, self.epsilon)


def inequality_about(problem, seed):
    """An inequality as a run might ask it, and the vertices that it is about, in the form's units."""
    rng, unit, n = np.random.default_rng(seed), problem.form.unit, problem.n_arms
    vertices = all_vertices(problem) / unit
    lead = rng.dirichlet(np.full(len(vertices), 0.1)) @ vertices
    means, variance = rng.normal(size=n), rng.uniform(0.2, 2, n) * 10 ** rng.uniform(-4, -1)
    gain = float((vertices @ means).max()) + 10 ** rng.uniform(-2, 0)  # above 0 for every plan
    rates, stakes = np.geomspace(1, 300, 9) * rng.uniform(0.2, 3), np.full(9, np.log(0.5 / 9))
    square, crosses = float(variance @ lead**2), variance * lead
    return Inequality(gain, -means, square, crosses, variance, 1.0, np.log(0.5), stakes, rates), vertices
