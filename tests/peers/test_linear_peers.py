"""LinGame, FWS and XYAdaptive against their formulas, computed from scratch; the radius that they stop by."""

import math

import numpy as np
import pytest

import probe_cases
import surepick as sp
from common import errs_more_often_than, largest
from surepick.peers.linear import LinearRun, best_of_game
from surepick.peers.sequential import pair_radius
from surepick.policies import FWS, RAGE, LinGame, LinGapE, XYAdaptive
from surepick.simulation import Gaussian

PROBES = np.array([[1.0, 0, 0], [0, 1, 0], [0.5, 0.5, 1], [0, 0, 2], [1, -1, 0.3]])
PLANS = np.array([[1.0, 0, 0], [0.9, 0.4, 0], [0, 1, 1], [0.2, 0.1, 1.2]])
MEANS = np.array([0.8, 0.1, 0.2])


class Truth:
    """Least squares from all uses so far, by the textbook."""

    def __init__(self):
        self.counts, self.vector = np.zeros(5), np.zeros(3)

    def see(self, counts, sums):
        self.counts, self.vector = self.counts + counts, self.vector + PROBES.T @ sums
        self.matrix = PROBES.T @ np.diag(self.counts) @ PROBES
        self.means = np.linalg.solve(self.matrix, self.vector)
        self.lead = int(np.argmax(PLANS @ self.means))

    def worlds(self, shares):
        """For each rival: how far its world is, and the means there."""
        found = {}
        inverse = np.linalg.inv(PROBES.T @ np.diag(shares) @ PROBES)
        for j in range(len(PLANS)):
            y = PLANS[self.lead] - PLANS[j]
            if j != self.lead:
                gap, length = y @ self.means, y @ inverse @ y
                found[j] = gap**2 / (2 * length), self.means - gap / length * inverse @ y
        return found


def lin_game(truth, memory):
    n, t = 5, truth.counts.sum()
    gains, mixability = memory.setdefault(truth.lead, (np.zeros(n), 0.01))
    rate = math.log(n) / mixability
    shares = np.exp(rate * (gains - gains.max()))
    shares /= shares.sum()
    _, world = min(truth.worlds(shares).values(), key=lambda pair: pair[0])
    inverse = np.linalg.inv(truth.matrix)
    told = np.array(
        [
            min(
                math.log(t),
                0.5 * (abs(x @ (truth.means - world)) + math.sqrt(2 * math.log(t) * x @ inverse @ x)) ** 2,
            )
            for x in PROBES
        ]
    )
    mixed = math.log(shares @ np.exp(rate * told)) / rate
    memory[truth.lead] = gains + told, mixability + mixed - shares @ told
    memory["played"] = memory.get("played", np.ones(n)) + shares
    return int(np.argmin(truth.counts - memory["played"]))


def fws(truth, memory):
    n, t = 5, truth.counts.sum()
    x = memory.get("x", np.full(n, 1 / n))
    root = math.isqrt(int(t // n))
    z = np.full(n, 1 / n)
    if root**2 != t // n:
        worlds = truth.worlds(x)
        least = min(far for far, _ in worlds.values())
        close = [world for far, world in worlds.values() if far < least + t**-0.9 / n]
        gradient = np.array([(PROBES @ (truth.means - world)) ** 2 / 2 for world in close])
        z = np.eye(n)[np.argmax(gradient[0])]
        if len(close) > 1:
            z = best_of_game(gradient - (gradient @ x)[:, None])
    memory["x"] = (t - 1) / t * x + z / t
    return int(np.argmax(memory["x"] / truth.counts))


@pytest.mark.parametrize(("policy", "rule"), [(LinGame(), lin_game), (FWS(), fws)], ids=["LinGame", "FWS"])
def test_decides_as_its_formulas(policy, rule):
    problem, truth, memory = largest(PLANS, measure=PROBES), Truth(), {}
    run, rng = policy.start(problem), np.random.default_rng(3)
    idle = np.random.default_rng()
    assert run.decide(idle).counts.tolist() == [1] * 5
    for n_round in range(120):
        counts = run.decide(idle).counts
        if n_round:
            assert np.flatnonzero(counts).tolist() == [rule(truth, memory)]
        sums = counts * (PROBES @ MEANS) + np.sqrt(counts) * rng.normal(size=5)
        run.absorb(counts, sums)
        truth.see(counts, sums)
        assert run.standing().leader == truth.lead


def test_the_radius_is_that_of_gap_policies_on_single_arms():
    """Where nothing is mixed, it is `normal-mixture-joint`."""
    counts, scale = np.array([40, 90, 25]), np.array([1.0, 2.0, 0.5])
    run = LinGame().start(sp.Problem(np.eye(3), noise=scale, goal="largest"))
    run.absorb(counts, counts * np.array([0.1, 0.5, 0.0]))
    _, gaps, found = run._gaps_and_radii()
    expected = pair_radius("normal-mixture-joint", 0.05, 1, counts, scale)
    assert np.delete(found, 1) == pytest.approx(np.delete(expected, 1))
    assert gaps.tolist() == pytest.approx([0.4, np.inf, 0.5])


class EvenRun(LinearRun):
    """Every way equally often, so that a test may absorb many uses at once."""

    narrower = 1.0

    def _choose(self, rng):
        return self._once(0)

    def _gaps_and_radii(self):
        lead, gaps, radius = super()._gaps_and_radii()
        return lead, gaps, radius / self.narrower


@pytest.mark.parametrize(("narrower", "holds"), [(1.0, True), (4.0, False)], ids=["proved", "too narrow"])
def test_plans_that_tie_are_hardly_ever_told_apart(narrower, holds):
    problem = largest([[1, 0], [0, 1]], measure=np.array([[1, 0], [1, 1], [0.2, 0.5]]))
    rows = problem.probes.rows.toarray()

    def is_wrong(seed):
        run, rng = EvenRun(problem, LinGame(0.3)), np.random.default_rng([11, seed])
        run.narrower = narrower
        for n in (1, 2, 4, 8, 15, 30, 60, 120, 250):
            counts = np.full(3, n)
            run.absorb(counts, counts * (rows @ [0.4, 0.4]) + math.sqrt(n) * rng.normal(size=3))
            if run._answer is not None:
                return True
        return False

    assert errs_more_often_than(0.3, is_wrong, 120) != holds


CASES = {
    "soare": lambda: probe_cases.soare(3, 0.6),
    "transductive": lambda: probe_cases.transductive(2, 0.6),
    "full": lambda: probe_cases.top_k(4, 2, 5, "full"),
    "semi": lambda: probe_cases.top_k(5, 2, 3, "semi"),
}
FINDERS = [LinGame(radius="heuristic"), FWS(radius="heuristic"), XYAdaptive(), RAGE(variant="authors")]


# XYAdaptive takes one number a use
FOUND = [(case, p) for case in CASES for p in FINDERS if (case, p.name) != ("semi", "XYAdaptive")]


@pytest.mark.parametrize(("case", "policy"), FOUND, ids=lambda value: getattr(value, "name", value))
def test_finds_the_best_plan_where_vectors_are_measured(case, policy):
    problem, means = CASES[case]()
    outcome = sp.simulate(problem, Gaussian(2 * means), policy=policy, seed=1)
    assert outcome.plan == problem.best(means)
    assert outcome.counts.shape == (problem.n_probes,)


def test_lin_gap_e_measures_the_vectors_that_the_closest_pair_needs():
    problem, means = probe_cases.soare(4, 0.4)
    outcome = sp.simulate(problem, Gaussian(means), policy=LinGapE(norm_bound=2.0), seed=1)
    assert outcome.plan == problem.best(means)
    assert outcome.counts[1] > outcome.counts[2]  # across the best, where its neighbour differs
    assert outcome.standing.radius <= outcome.standing.gap
