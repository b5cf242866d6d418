"""The limit where plans are played behind an oracle: check values, and against the list of the same plays."""

import numpy as np
import pytest

import surepick as sp
from surepick.experiments import probe_cases
from surepick.experiments.play_cases import published_tree

KL = 0.8 * np.log(9)  # kl(.1, .9)


@pytest.mark.parametrize(("name", "low", "high"), [("E20", 409.17, 409.18), ("E25", 400.65, 400.73)])
def test_published_trees_have_their_check_values(name, low, high):
    problem, means = published_tree(name)
    found = sp.limit(problem, means, delta=0.1)
    assert found.lower <= high
    assert found.upper >= low
    assert found.lower >= 0.999 * low
    assert found.upper <= 1.02 * high
    assert found.lower_bound == pytest.approx(found.lower * KL)
    assert found.allocation.shape == (problem.n_arms,)
    assert found.allocation.max() <= 1 + 1e-9


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize(
    "build", [lambda: probe_cases.top_k(8, 3, 1, "semi"), lambda: probe_cases.grid_paths(3, 0, "semi")]
)
def test_an_oracle_has_the_limit_of_the_list(build, minimize):
    listed, means = build()
    plans, sign = np.asarray(listed.plans), -1.0 if minimize else 1.0
    problem = sp.OracleProblem(
        lambda weights: plans[np.argmax(sign * (plans @ weights))],
        plans.shape[1],
        minimize=minimize,
        probes="plan arms",
        costs=3.0,
        noise_scale=1,
    )
    right, found = sp.limit(listed, means), sp.limit(problem, sign * means)
    assert found.lower <= right.upper * (1 + 1e-6)
    assert found.upper >= right.lower * (1 - 1e-6)
    assert found.lower >= 0.99 * right.lower
    assert found.cost_lower == pytest.approx(3 * found.lower)
    assert found.n_relevant == right.n_relevant


def test_ties_have_no_limit():
    problem = sp.problems.top_k_family(list("abcd"), 2).oracle_problem(probes="plan arms", noise_scale=1)
    found = sp.limit(problem, [1.0, 0.5, 0.5, 0.0])
    assert not found.is_finite
