"""ExactExpGap: whose problems it takes, what it samples, drops and accepts, and that it keeps its promise."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

import surepick as sp
from common import largest
from surepick.errors import ProblemError
from surepick.peers.matroid import matroid_of
from surepick.policies import ExactExpGap
from surepick.problems import tree_family
from surepick.simulation import Gaussian

EDGES = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "D"), ("D", "A"), ("D", "B")]
IDLE = np.random.default_rng(0)


def test_ranks_are_those_of_the_graph():
    found = matroid_of(tree_family(EDGES).problem(every=True, noise=1), "ExactExpGap")
    sets = np.array(list(itertools.product([False, True], repeat=6))).T
    for ours, chosen in zip(found.rank(sets), sets.T, strict=True):
        graph = nx.Graph([edge for edge, is_in in zip(EDGES, chosen, strict=True) if is_in])
        graph.add_nodes_from("ABCD")
        assert ours == 4 - nx.number_connected_components(graph)


@pytest.mark.parametrize(
    "plans", [[[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 1, 0], [0, 0, 1]], [[0.5, 1], [1, 0.5]]]
)
def test_plans_that_are_no_matroid_are_refused(plans):
    with pytest.raises(ProblemError):
        ExactExpGap().start(largest(plans))


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
def test_keeps_its_promise_where_arms_nearly_tie(claimed, holds):
    problem = sp.Problem(np.eye(3), noise=claimed, goal="largest")
    truth = Gaussian([0.1, 0.0, 0.0], 1.0)
    wrong = sum(
        sp.simulate(problem, truth, policy=ExactExpGap(0.1), seed=s, budget=10**9, allow_noisier=True).plan
        != 0
        for s in range(40)
    )
    assert (wrong <= 10) == holds
