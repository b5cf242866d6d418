"""What builders and files give where nobody asks for a list: all plans, listed only where they are few."""

import pickle
from functools import partial

import networkx as nx
import numpy as np
import pytest

from common import refuses
from surepick import problems
from surepick.errors import FileError, ProblemError
from surepick.inputs.load import read_problem
from surepick.problems.family import COMPLETE, FamilyProblem

CROSS = [(str(a), str(b)) for a, b in nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5)).edges]


def ladder(n):
    """A directed network with 2**n paths."""
    return [(f"{k}", f"{k}{side}") for k in range(n) for side in "ab"] + [
        (f"{k}{side}", f"{k + 1}") for k in range(n) for side in "ab"
    ]


def complete_graph(n):
    return [(f"s{i}", f"s{j}") for i in range(n) for j in range(i)]


def guess_for(edges):
    return np.linspace(4.0, 9.0, len(edges))


def trees(n, **options):
    edges = complete_graph(n)
    return problems.trees(edges, guess_for(edges), **{"noise": 1, **options})


def matchings(n, **options):
    guess = np.arange(float(n * n)).reshape(n, n)
    return problems.matchings(guess, goal="smallest", **{"noise": 1, **options})


def paths(n, **options):
    edges = ladder(n)
    return problems.paths(edges, "0", str(n), guess_for(edges), directed=True, **{"noise": 1, **options})


def both_ways(n, **options):
    return problems.paths(complete_graph(n), "s0", "s1", [1.0] * 10, **{"noise": 1, **options})


def top_k(n, **options):
    names = [f"p{s}" for s in range(n)]
    return problems.top_k(names, n // 2, np.arange(float(n)), goal="largest", **{"noise": 1, **options})


def knapsack(n, **options):
    weights = [4, 5, 7] if n == 3 else range(4, 4 + n)
    return problems.knapsack(weights, weights, 20 if n == 3 else 60, **{"noise": 1, **options})


MANY = {"trees": 125, "matchings": 24, "paths": 16, "paths both ways": 16, "top_k": 20, "knapsack": 27}
MANY = {
    "trees": partial(trees, 7),
    "matchings": partial(matchings, 7),
    "paths": partial(paths, 10),
    "top_k": partial(top_k, 20),
    "knapsack": partial(knapsack, 12),
}


@pytest.mark.parametrize(
    ("build", "n_plans"),
    [
        (partial(trees, 5), 125),
        (partial(matchings, 4), 24),
        (partial(paths, 4), 16),
        (partial(both_ways, 5), 16),
        (partial(top_k, 6), 20),
        (partial(knapsack, 3), 27),
    ],
)
def test_few_plans_are_listed_completely(build, n_plans):
    problem = build()
    assert problem.about.listing.is_complete
    assert problem.n_plans == n_plans
    assert problem.about.listing.warning(0.001) is None
    assert isinstance(build(list_plans=False), FamilyProblem)


@pytest.mark.parametrize("name", MANY)
def test_many_plans_are_all_there_behind_an_oracle(name):
    problem = MANY[name]()
    assert isinstance(problem, FamilyProblem)
    assert problem.n_plans > COMPLETE
    assert problem.about.listing is None
    with refuses("n_draws", ProblemError):
        MANY[name](list_plans=False, n_draws=30)


@pytest.mark.parametrize("name", [*MANY])
@pytest.mark.parametrize("option", [{"n_draws": 30}, {"seed": 0}, {"list_plans": True}])
def test_a_list_is_drawn_where_one_is_asked_for(name, option):
    problem = MANY[name](spread=3.0, **option)
    assert problem.candidates.how == "draws"
    assert not problem.about.listing.is_complete


def test_bounds_that_leave_no_packing_leave_none():
    knapsack = MANY["knapsack"]()
    for copies, is_plan in ((15, True), (16, False), (-1, False)):
        plan = np.array([copies, *[0] * 11])
        assert (knapsack.best_plan_within(np.zeros(12), plan, plan) is not None) == is_plan


def test_a_network_with_cycles_and_many_paths_keeps_its_list_and_says_what_may_be_missing():
    problem = problems.paths(CROSS, "0", "24", np.full(len(CROSS), 5.0), spread=3.0, noise=1)
    assert problem.candidates.how == "draws"
    assert not problem.about.listing.is_complete
    whole = problems.paths(CROSS, "0", "24", np.full(len(CROSS), 5.0), list_plans=False, noise=1)
    assert isinstance(whole, FamilyProblem)


@pytest.mark.parametrize("name", MANY)
def test_other_processes_get_the_same_problem(name):
    problem = MANY[name](noise=2.0, cost=3.0).with_about(title="Where to")
    problem = problem.with_settings(noise_kind="bounded variance")
    again = pickle.loads(pickle.dumps(problem))
    assert (again.about, again.noise_kind) == (problem.about, problem.noise_kind)
    assert (again.noise_scale == 2.0).all()
    assert (again.costs == 3.0).all()
    weights = np.random.default_rng(1).normal(size=problem.n_arms)
    assert again.best_plan(weights).tolist() == problem.best_plan(weights).tolist()


# Files

SITES = "\n".join(
    ['kind = "trees"', "spread = 2.0", "noise = 0.1", "edges = ["]
    + [f'  ["s{i}", "s{j}", {5 + (7 * i + 3 * j) % 5}],' for i in range(8) for j in range(i)]
    + ["]"]
)


def loaded(tmp_path, text):
    (tmp_path / "sites.toml").write_text(text)
    return read_problem(tmp_path / "sites.toml").problem


def test_a_file_takes_all_plans_unless_it_asks_for_a_list(tmp_path):
    assert isinstance(loaded(tmp_path, SITES), FamilyProblem)
    assert loaded(tmp_path, "list_plans = true\n" + SITES).candidates.n_draws == 1000
    assert loaded(tmp_path, "n_draws = 20\n" + SITES).candidates.n_draws == 20
    assert loaded(tmp_path, "n_best = 7\n" + SITES).n_plans == 7
    with refuses("seed", FileError):
        loaded(tmp_path, "list_plans = false\nseed = 0\n" + SITES)


def test_a_builder_knows_what_is_plausible_where_the_guess_has_a_spread():
    assert trees(7).about.plausible is None
    for problem in (trees(7, spread=2.0, noise=0.5), trees(7, spread=2.0, n_draws=9, noise=0.5)):
        low, high = np.array(problem.about.plausible).T
        assert high - low == pytest.approx(2 * (2 * 2.0 + 4 * 0.5))
