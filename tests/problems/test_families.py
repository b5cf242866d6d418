"""Families of plans: listed where they are few, behind an oracle where they are many, drawn where asked."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from common import refuses
from surepick import problems
from surepick.errors import FileError, ProblemError
from surepick.inputs.load import read_problem
from surepick.problems import candidates
from surepick.problems.candidates import SAME_PLAN, drawn_plans
from surepick.problems.family import COMPLETE
from surepick.problems.truth import Truth

SLOW = ("numba", "ot", "pandas")


def test_neither_the_builders_nor_a_table_file_load_anything_slow(tmp_path):
    (tmp_path / "case.toml").write_text('kind = "table"\ngoal = "largest"\nplans = [[1, 0], [0, 1]]')
    code = f"import surepick.problems; surepick.load({str(tmp_path / 'case.toml')!r})"
    report = f"import sys; {code}; print(*[name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_means_that_are_needed_and_not_known_are_refused():
    problem, means = sp.Problem([[1, 0], [0, 1]], goal="largest"), np.array([1.0, 2.0])
    assert Truth(problem, means).true_means is means
    with refuses("truth.means", FileError):
        _ = Truth(problem).true_means


def ladder(n, **options):
    """Paths through a directed network of 2**n."""
    edges = [(f"{k}", f"{k}{side}") for k in range(n) for side in "ab"]
    edges += [(f"{k}{side}", f"{k + 1}") for k in range(n) for side in "ab"]
    guess = np.linspace(4.0, 9.0, len(edges))
    return problems.paths(edges, "0", str(n), guess, directed=True, **options)


def complete_graph(n):
    return [(f"s{i}", f"s{j}", 4.0 + (7 * i + 3 * j) % 5) for i in range(n) for j in range(i)]


def square(n, **options):
    return problems.matchings(1 + np.arange(float(n * n)).reshape(n, n), goal="smallest", **options)


def half(n, **options):
    names = [f"p{s}" for s in range(n)]
    return problems.top_k(names, n // 2, 1 + np.arange(float(n)), goal="largest", **options)


FEW = {
    "knapsack": (partial(problems.knapsack, [4, 5, 7], [4, 5, 7], 20), 27),
    "matchings": (partial(square, 4), 24),
    "paths": (partial(ladder, 4), 16),
    "paths both ways": (partial(problems.paths, complete_graph(5), "s0", "s1"), 16),
    "top_k": (partial(half, 6), 20),
    "trees": (partial(problems.trees, complete_graph(5)), 125),
}
MANY = {
    "knapsack": partial(problems.knapsack, range(4, 16), range(4, 16), 60),
    "matchings": partial(square, 7),
    "paths": partial(ladder, 10),
    "top_k": partial(half, 20),
    "trees": partial(problems.trees, complete_graph(7)),
}
AMOUNTS = {
    "portfolio": partial(problems.portfolio, [5, 4, 3], upper=0.5),
    "production": partial(problems.production, [[1, 2], [3, 1]], [8, 9], [3.0, 4.0]),
    "transport": partial(problems.transport, [3, 2], [4, 1], [[2, 3], [2, 2]]),
}


@pytest.mark.parametrize("name", FEW)
def test_few_plans_are_listed_completely(name):
    build, n_plans = FEW[name]
    problem = build()
    assert problem.about.listing.is_complete
    assert problem.n_plans == n_plans
    assert problem.about.listing.warning(0.001) is None
    assert not build(list_plans=False).is_listed


@pytest.mark.parametrize("name", MANY)
def test_many_plans_are_all_there_behind_an_oracle(name):
    problem = MANY[name]()
    assert not problem.is_listed
    assert problem.n_plans > COMPLETE
    assert problem.about.listing is None
    with refuses("n_draws", ProblemError):
        MANY[name](list_plans=False, n_draws=30)
    for asked in ({"n_draws": 30}, {"seed": 0}, {"list_plans": True}):
        drawn = MANY[name](spread=3.0, **asked)
        assert drawn.about.listing.how == "draws"
        assert not drawn.about.listing.is_complete


@pytest.mark.parametrize("name", [*MANY, *AMOUNTS])
def test_every_builder_takes_the_options_of_a_search_and_of_measurements(name, monkeypatch):
    seen, boxes = [], []
    monkeypatch.setattr(candidates, "drawn_plans", lambda *given: boxes.append(given) or drawn_plans(*given))
    build = {**MANY, **AMOUNTS}[name]
    known = build().arm_names[0]
    options = {
        "spread": 3.0,
        "n_draws": 40,
        "seed": 7,
        "cost": 2.0,
        "low": -9,
        "high": 9,
        "known": {known: 1},
    }
    problem = build(**options, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (40, 40)
    ((_, (low, high), *_, seed, _),) = boxes
    assert seed == 7
    assert high - low == pytest.approx(6)
    assert (problem.noise_scale == 9).all()
    assert (problem.costs == 2).all()
    assert problem.is_known.tolist() == [arm == known for arm in problem.arm_names]
    assert build(noise="10%", spread="5%").noise_scale == pytest.approx(0.105 * problem.guess)
    with pytest.raises(TypeError, match="n_draws"):
        build(n_drawz=3)


def test_whole_plans_are_measured_by_builders_too():
    assert MANY["trees"](measure="plan arms").plays
    assert FEW["trees"][0](measure="plans").n_probes == 125
    with refuses("measure", ProblemError):
        AMOUNTS["transport"](measure="plan arms")
    with refuses("measure", ProblemError):
        MANY["trees"](measure="plans")


def search(oracle, lower, upper, **options):
    """The candidates of the family that this function solves."""
    family = problems.Family(oracle, tuple(map(str, range(len(lower)))), "smallest", None)
    return drawn_plans(family, (np.array(lower, float), np.array(upper, float)), **options)


def test_the_bound_on_missing_plans_holds_for_most_seeds():
    def oracle(weights):
        return np.eye(40)[int(40 * weights[0] ** 2)]

    mass = np.sqrt(np.arange(1, 41) / 40) - np.sqrt(np.arange(40) / 40)
    broken = 0
    for seed in range(100):
        found = search(oracle, np.zeros(40), np.ones(40), n_draws=60, seed=seed)
        missing = 1 - mass[found.plans.sum(axis=0) > 0].sum()
        broken += missing > found.listing.chance_missing_at_most
    assert broken <= 10  # binomial(100, .05) exceeds this with probability .01


def test_every_plan_that_can_win_is_found_and_counted():
    def least(costs):
        return np.eye(len(costs))[int(np.argmin(costs))]

    assert search(least, [1, 1, 1, 0], [2, 2, 2, 1], n_draws=10).plans.tolist() == [[0, 0, 0, 1]]
    found = search(least, [0, 0, 0], [1, 1, 1], n_draws=300)
    assert sorted(found.plans.tolist()) == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert found.listing.chance_missing == 0  # no plan was found once only


def answers(plans):
    """An oracle that gives these answers in turn."""
    rest = iter(plans)
    return lambda costs: next(rest)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_tolerance_is_relative_to_the_largest_entry(scale):
    apart, together = 3 * SAME_PLAN, SAME_PLAN / 3
    plans = scale * np.array([[1, 0.5], [1, 0.5 + together], [1, 0.5 + apart]])
    assert search(answers(plans), [0, 0], [1, 1], n_draws=3).listing.chance_missing == 1 / 3


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=40), st.integers(0, 9)
)
def test_the_distinct_plans_are_those_of_a_pairwise_comparison(rows, noise_seed):
    noise = np.random.default_rng(noise_seed).uniform(-1, 1, (len(rows), 3)) * 1e-12
    shaken = [(np.array(row) + 0.1) * (1 + shake) for row, shake in zip(rows, noise, strict=True)]
    found = search(answers(shaken), [0, 0, 0], [1, 1, 1], n_draws=len(rows))
    distinct = [row for k, row in enumerate(rows) if row not in rows[:k]]
    assert found.plans == pytest.approx(np.array(distinct) + 0.1)
    assert found.listing.chance_missing == sum(rows.count(row) == 1 for row in rows) / len(rows)


SITES = f'kind = "trees"\nspread = 2.0\nnoise = 0.1\nedges = {[list(edge) for edge in complete_graph(8)]}\n'


def loaded(tmp_path, text):
    (tmp_path / "sites.toml").write_text(text)
    return read_problem(tmp_path / "sites.toml").problem


def test_a_file_takes_all_plans_unless_it_asks_for_a_list(tmp_path):
    assert not loaded(tmp_path, SITES).is_listed
    assert loaded(tmp_path, "list_plans = true\n" + SITES).n_plans > 20
    assert loaded(tmp_path, "n_draws = 20\n" + SITES).n_plans <= 20
    assert loaded(tmp_path, "n_best = 7\n" + SITES).n_plans == 7
    with refuses("seed", FileError):
        loaded(tmp_path, "list_plans = false\nseed = 0\n" + SITES)


def test_a_builder_knows_what_is_plausible_where_the_guess_has_a_spread():
    trees = MANY["trees"]
    assert trees(noise=1).about.plausible is None
    for problem in (trees(spread=2.0, noise=0.5), trees(spread=2.0, n_draws=9, noise=0.5)):
        assert problem.spread.tolist() == [2.0] * problem.n_arms
        assert problem.guess.tolist() == [edge[2] for edge in complete_graph(7)]
        low, high = np.array(problem.about.plausible).T
        assert high - low == pytest.approx(2 * (2 * 2.0 + 4 * 0.5))
