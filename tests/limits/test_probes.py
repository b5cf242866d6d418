"""T* where probes are measured: published values, brackets by hand, and what is no bound."""

import numpy as np
import pytest

import probe_cases
import surepick as sp
from common import largest
from surepick.design.allocation import optimal_allocation
from surepick.design.information import information_of
from surepick.design.minimax import minimax
from surepick.limits.limit import least_cover

# The ends of certified brackets, found once by another program.
KNOWN = {
    "soare 10": (probe_cases.soare(10, 0.1), 224.34923, 224.34926),
    "soare 5": (probe_cases.soare(5, 0.05), 841.68, 841.70),
    "soare 20": (probe_cases.soare(20, 0.1), 229.5954, 229.5955),
    "sphere 100 x 10": (probe_cases.sphere(100, 10, 0), 142.3896, 142.3911),
    "transductive 20": (probe_cases.transductive(20), 928.39, 928.41),
    "transductive 40": (probe_cases.transductive(40), 978.64, 978.66),
    "top 3 of 10, full": (probe_cases.top_k(10, 3, 0, "full"), 1212.42, 1212.44),
    "top 3 of 10, semi": (probe_cases.top_k(10, 3, 0, "semi"), 569.95, 569.97),
    "paths 4 x 4, semi": (probe_cases.grid_paths(4, 0, "semi"), 5483.0, 5483.8),
    "paths 4 x 4, full": (probe_cases.grid_paths(4, 0, "full"), 2744.3, 2745.3),
}


def targets_of(problem, means):
    values = problem.oriented @ means
    best = int(np.argmax(values))
    rivals = np.arange(len(values)) != best
    away = problem.oriented[best] - problem.oriented[rivals]
    return away / (values[best] - values[rivals])[:, None]


def allocated(problem, means, tolerance):
    information = information_of(problem.probes)
    targets = information.coordinates(targets_of(problem, means))
    return minimax(information, targets, problem.costs, tolerance=tolerance)


@pytest.mark.parametrize("name", KNOWN)
def test_the_check_values(name):
    (problem, means), low, high = KNOWN[name]
    found = allocated(problem, means, tolerance=1e-6)
    assert low <= 2 * found.lower <= 2 * found.upper <= high


def test_the_limit_is_a_bracket_a_thousandth_wide_around_them():
    (problem, means), low, high = KNOWN["soare 10"]
    found = sp.limit(problem, means)
    assert found.time.lower <= low <= high <= found.time.upper <= 1.0011 * found.time.lower
    assert found.shares.shape == (11,)
    assert found.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(3))
def test_the_bracket_is_what_it_says_and_no_other_shares_do_better(seed):
    rng = np.random.default_rng(seed)
    probes = {
        f"p{o}": sp.Probe(
            {f"q{k}": dict(zip("abcd", rng.normal(size=4), strict=True)) for k in range(rng.integers(1, 3))},
            cost=float(rng.uniform(0.5, 3)),
        )
        for o in range(7)
    }
    problem = largest(rng.normal(size=(6, 4)), arms=list("abcd"), measure=probes)
    means = rng.normal(size=4)
    rows, owner, targets = problem.probes.whitened.toarray(), problem.probes.owner, targets_of(problem, means)

    def value(shares):
        information = rows.T @ ((shares / problem.costs)[owner, None] * rows)
        return np.einsum("jd,dj->j", targets, np.linalg.solve(information, targets.T)).max()

    found = allocated(problem, means, tolerance=1e-5)
    assert found.upper == pytest.approx(value(found.shares), rel=1e-6)
    assert found.upper <= 1.01 * found.lower
    others = [*rng.dirichlet(np.ones(7), 300), *rng.dirichlet(1 + 200 * found.shares, 300)]
    assert min(map(value, others)) >= found.lower


def test_single_arms_as_probes_are_divided_as_single_arms_are():
    rng = np.random.default_rng(2)
    plans, costs = rng.integers(0, 3, (30, 6)).astype(float), rng.uniform(0.5, 2, 6)
    problem = largest(plans, measure=np.eye(6), cost=costs)
    means = rng.normal(size=6)
    found = allocated(problem, means, tolerance=1e-8)
    wanted = optimal_allocation(targets_of(problem, means) ** 2, costs=costs, tolerance=1e-8)
    assert found.upper == pytest.approx(wanted.value, rel=1e-6)


def test_prices_change_what_is_measured():
    means = [1.0, 0.5, 0.0]
    cheap = largest(np.eye(3), measure="plans", cost=[1, 1, 10])
    found = sp.limit(cheap, means)
    assert found.cost.shares[2] < found.shares[2]
    assert found.price < 10 * found.measurements


def test_a_whole_cover_is_no_bound():
    """Two uses of three drives see every road once; by fractions one and a half are enough."""
    routes = largest([[1, 1, 0], [0, 1, 1], [1, 0, 1]], measure="plan arms")
    assert least_cover(routes.probes, np.ones(3, dtype=bool), np.ones(3)) == pytest.approx(1.5)
    assert sp.limit(routes, [9.0, 5.0, 0.0]).once.n == 1
    mixed = largest(np.eye(2), measure=np.array([[1, 0], [0, 1], [1, 1], [1, -1.0]]), cost=[3, 2, 4, 5])
    assert least_cover(mixed.probes, np.ones(2, dtype=bool), mixed.costs) == 2
