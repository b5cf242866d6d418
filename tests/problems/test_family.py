import networkx as nx
import numpy as np
import pytest

import surepick as sp
from surepick import problems
from surepick.policies import GenTSExplore
from surepick.problems.candidates import drawn_plans
from surepick.simulation import Gaussian, State


def small_families():
    diamond = [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("B", "C")]
    return {
        "paths": problems.path_family(diamond, "A", "D", directed=True),
        "trees": problems.tree_family([("A", "B"), ("B", "C"), ("A", "C")]),
        "matchings": problems.matching_family(["a", "b"], ["x", "y"], goal="smallest"),
        "top-k": problems.top_k_family(["a", "b", "c"], 1, goal="largest"),
        "knapsack": problems.knapsack_family([3, 4, 5], 9, copies=1),
        "transport": problems.transport_family([3, 2], [4, 1]),
        "program": problems.program_family(problems.as_program([[1, 2], [3, 1]], [8, 9])),
        "portfolio": problems.portfolio_family(["a", "b", "c"], upper=0.5),
        "edges of several arms": problems.path_family(diamond, "A", "D", directed=True).through(
            [[1, 0], [2, 1], [1, 2], [0.5, 0], [1, 1]], ["km", "toll"]
        ),
    }


@pytest.mark.parametrize("kind", small_families())
def test_an_oracle_problem_decides_as_the_listed_problem_does(kind):
    family = small_families()[kind]
    rng = np.random.default_rng(3)
    listed = family.problem(np.zeros(family.n_arms), spread=4.0, n_draws=200)
    assert listed.candidates.n_plans <= family.n_plans
    means = max((rng.normal(size=family.n_arms) * 3 for _ in range(20)), key=lambda m: gap(listed, m))
    oracle = family.oracle_problem(noise=0.05)
    known = sp.Problem(
        listed.plans,
        plan_names=listed.plan_names,
        goal="smallest" if listed.minimize else "largest",
        noise=0.05,
    )
    truth = Gaussian(means, 0.05)
    policy = GenTSExplore(delta=0.05)
    hidden = sp.simulate(oracle, truth, policy=policy, seed=1, budget=500)
    shown = sp.simulate(known, truth, policy=policy, seed=1, budget=500)
    assert hidden.state is shown.state is State.DONE
    assert shown.plan == known.best(means)
    assert hidden.plan == pytest.approx(known.vector(shown.plan), abs=1e-6)
    if oracle.name_plan is not None:
        assert hidden.plan_name == shown.plan_name


def gap(problem, means):
    values = np.sort(problem.values(means))
    return values[1] - values[0] if problem.minimize else values[-1] - values[-2]


def test_spanning_trees_beyond_counting_are_decided_under_a_budget():
    family = problems.tree_family(nx.complete_graph(12))
    assert family.n_plans > 10**9
    rng = np.random.default_rng(0)
    weights = rng.permutation(family.n_arms).astype(float)
    outcome = sp.simulate(
        family.oracle_problem(noise=0.02), Gaussian(weights, 0.02), policy=GenTSExplore(), budget=2000
    )
    assert outcome.state is State.DONE
    assert outcome.plan == tuple(family.best(weights))


def test_the_bound_on_missing_plans_holds_for_most_seeds():
    def oracle(weights):
        return np.eye(40)[int(40 * weights[0] ** 2)]

    family = problems.Family(oracle, tuple(map(str, range(40))), "largest", None)
    mass = np.sqrt(np.arange(1, 41) / 40) - np.sqrt(np.arange(40) / 40)
    broken = 0
    for seed in range(100):
        found = drawn_plans(family, (np.zeros(40), np.ones(40)), 60, seed)
        missing = 1 - mass[found.plans.sum(axis=0) > 0].sum()
        broken += missing > found.chance_of_new_at_most(0.05)
    assert broken <= 10  # binomial(100, .05) exceeds this with probability .01
