"""ExactExpGap, TSExplore and GenTSExplore against their papers' boxes."""

import itertools
import math
from statistics import NormalDist

import networkx as nx
import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.peers.matroid import matroid_of
from surepick.policies import ExactExpGap, GenTSExplore, TSExplore
from surepick.policy import Stop
from surepick.problems import trees
from surepick.simulation import Gaussian
from surepick.simulation.seeds import round_rng

EDGES = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "D"), ("D", "A"), ("D", "B")]
IDLE = np.random.default_rng(0)


def test_ranks_are_those_of_the_graph():
    found = matroid_of(trees(EDGES, noise=1), "ExactExpGap")
    sets = np.array(list(itertools.product([False, True], repeat=6))).T
    for ours, chosen in zip(found.rank(sets), sets.T, strict=True):
        graph = nx.Graph([edge for edge, is_in in zip(EDGES, chosen, strict=True) if is_in])
        graph.add_nodes_from("ABCD")
        assert ours == 4 - nx.number_connected_components(graph)


def test_the_first_round_of_eliminating_is_that_of_the_box():
    """Three of seven: I by a first sampling, then finer for I, and what I spans from far above is dropped."""
    means = np.array([1.0, 0.9, 0.8, 0.75, 0.3, 0.2, 0.1])
    problem = sp.problems.top_k([f"arm {s}" for s in range(7)], 3, noise=1, goal="largest")
    problem = sp.Problem(problem.plans, noise=0.5, goal="largest")
    run = ExactExpGap(delta=0.1).start(problem)
    eps, share = 1 / 8, 0.1 / 100
    first = run.decide(IDLE).counts
    assert set(first) == {math.ceil(2 * 0.25 * math.log(2 * 7 / share) / (eps / 2) ** 2)}
    run.absorb(first, first * means)
    second = run.decide(IDLE).counts
    fine, coarse = (math.ceil(2 * 0.25 * math.log(2 * 3 / share) / e**2) for e in (eps / 2, eps))
    assert second.tolist() == [fine] * 3 + [coarse] * 4
    run.absorb(second, second * means)
    # arms whose mean is 3/2 eps = .1875 below the third best are spanned by the three above them
    assert run._left.tolist() == [True] * 4 + [False] * 3


def test_selecting_accepts_what_nothing_near_can_replace():
    """Three of four: one is bad, so arms are accepted; two that are close stay open."""
    means = np.array([2.0, 1.5, 0.6, 0.5])
    run = ExactExpGap(delta=0.1).start(sp.problems.top_k(["a", "b", "c", "d"], 3, noise=1, goal="largest"))
    counts = run.decide(IDLE).counts
    assert set(counts) == {math.ceil(2 * math.log(2 * 4 / (0.1 / 100)) * 64)}
    run.absorb(counts, counts * means)
    assert run._accepted.tolist() == [True, True, False, False]
    assert run._left.tolist() == [False, False, True, True]
    assert len(run.standing().remaining) == 2


@pytest.mark.parametrize(
    ("claimed", "holds"), [(1.0, True), (0.02, False)], ids=["true", "noise understated"]
)
def test_keeps_its_guarantee_where_arms_nearly_tie(claimed, holds):
    problem = sp.Problem(np.eye(3), noise=claimed, goal="largest")
    truth = Gaussian([0.1, 0.0, 0.0], 1.0)
    wrong = sum(
        sp.simulate(problem, truth, policy=ExactExpGap(0.1), seed=s, budget=10**9, allow_noisier=True).plan
        != 0
        for s in range(40)
    )
    assert (wrong <= 10) == holds


RNG = np.random.default_rng


def some_problem(seed, n_plans=10, n_arms=4):
    rng = RNG([3, seed])
    return largest(rng.integers(0, 4, (n_plans, n_arms)).astype(float)), rng.normal(size=n_arms)


def box(plans, counts, sums, delta, q, rng, scale=1.0):
    """One round as the paper's box has it, from scratch: the arm, or None and the lead to stop with."""
    t = counts.sum() + 1
    log_factor = math.log(12 * len(plans) ** 2 * t**2 / delta)
    means = sums / counts
    sd = np.sqrt(4 * scale**2 * log_factor / NormalDist().inv_cdf(1 - q) ** 2 / counts)
    lead = plans[np.argmax(plans @ means)]
    draws = means + sd * rng.standard_normal((math.ceil(log_factor / q), len(means)))
    best, rival = -np.inf, None
    for theta in draws:
        winner = plans[np.argmax(plans @ theta)]
        if (winner != lead).any() and theta @ (winner - lead) > best:
            best, rival = theta @ (winner - lead), winner
    return None if rival is None else int(np.argmax((lead - rival) ** 2 / (counts * (counts + 1))))


@pytest.mark.parametrize("seed", range(4))
def test_all_draws_decide_as_the_papers_box(seed):
    problem, means = some_problem(seed)
    run, noise = GenTSExplore(delta=0.1).start(problem), RNG(seed)
    counts, sums = np.zeros(4, dtype=np.int64), np.zeros(4)
    for n_round in range(40):
        decision = run.decide(round_rng(seed, n_round))
        if n_round > 0:
            arm = box(problem.plans, counts, sums, 0.1, 0.1, round_rng(seed, n_round))
            assert isinstance(decision, Stop) == (arm is None)
            if arm is None:
                return
            assert np.flatnonzero(decision.counts).tolist() == [arm]
        seen = decision.counts * means + np.sqrt(decision.counts) * noise.normal(size=4)
        run.absorb(decision.counts, seen)
        counts, sums = counts + decision.counts, sums + seen


def test_an_oracle_decides_exactly_as_the_list_behind_it():
    for seed in range(3):
        problem, means = some_problem(seed)
        listed = problem.plans

        def best(weights, listed=listed):
            return listed[np.argmax(listed @ weights)]

        hidden = sp.OracleProblem(best, n_arms=4, n_plans=problem.n_plans, noise=1, goal="largest")
        outcomes = [
            sp.simulate(p, Gaussian(means), policy=GenTSExplore(), seed=seed, budget=40)
            for p in (problem, hidden)
        ]
        assert outcomes[0].counts.tolist() == outcomes[1].counts.tolist()
        assert outcomes[0].state == outcomes[1].state
        assert tuple(listed[outcomes[0].leader].tolist()) == outcomes[1].leader


def test_ts_explore_measures_the_least_measured_arm_of_the_symmetric_difference():
    plans = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]], dtype=float)
    run = TSExplore().start(sp.Problem(plans, noise=0.5, goal="largest"))
    counts = np.array([9, 5, 7, 6])
    run.absorb(counts, counts * np.array([0.9, 0.8, 0.3, 0.2]))
    decision = run.decide(round_rng(0, 1))
    differ = plans[0] != plans[run.standing().rival]
    assert np.flatnonzero(decision.counts).tolist() == [int(np.argmin(np.where(differ, counts, 99)))]
