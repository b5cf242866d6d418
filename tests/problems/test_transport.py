"""The cheapest transport is that of the textbook's linear program, whatever the units."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from surepick import problems
from surepick.problems.kinds.transport import all_transports


def least_cost(supply, demand, costs):
    """The optimum of the textbook linear program, which sends no more than the supply."""
    m, n = costs.shape
    sent, received = np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))
    answer = linprog(costs.ravel(), A_ub=sent, b_ub=supply, A_eq=received, b_eq=demand)
    assert answer.status == 0
    return answer.fun


def cheapest(supply, demand, costs):
    names = [str(s) for s in range(costs.size)]
    return all_transports(supply, demand, names, goal="smallest").best(costs.ravel()).reshape(costs.shape)


def random_case(seed, *, whole=False):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 7, size=2)
    if whole:  # many ties and degenerate vertices
        return np.full(m, float(n)), np.full(n, float(m)), rng.integers(-2, 3, (m, n)).astype(float)
    supply, demand = rng.random(m), rng.random(n)
    return supply, demand * supply.sum() / demand.sum(), rng.normal(size=(m, n))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([1.0, 1.5]))
def test_the_cheapest_transport_costs_what_the_linear_program_says(seed, whole, above):
    supply, demand, costs = random_case(seed, whole=whole)
    supply *= above
    amounts = cheapest(supply, demand, costs)
    assert amounts.min() >= 0
    assert (amounts.sum(axis=1) <= supply * (1 + 1e-9)).all()
    assert amounts.sum(axis=0) == pytest.approx(demand)
    least = least_cost(supply * (1 + 1e-12), demand, costs)
    assert (amounts * costs).sum() == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e12])
def test_the_units_and_the_origin_do_not_matter(scale):
    supply, demand, costs = random_case(5)
    expected = cheapest(supply, demand, costs)
    for shift in (0.0, 1e3):
        assert cheapest(supply, demand, (costs + shift) * scale) == pytest.approx(expected)
    assert cheapest(supply * scale, demand * scale, costs) / scale == pytest.approx(expected)


@pytest.mark.parametrize("huge", [1e6, 1e9, 1e15, 1e18])
@pytest.mark.parametrize("seed", range(5))
def test_huge_costs_on_pairs_that_need_not_be_used_do_not_spoil_the_rest(huge, seed):
    rng = np.random.default_rng(seed)
    shares, costs = np.full(6, 1 / 6), rng.random((6, 6))
    forbidden = (rng.random((6, 6)) < 0.3) & ~np.eye(6, dtype=bool)
    amounts = cheapest(shares, shares, np.where(forbidden, huge, costs))
    allowed = np.where(forbidden, 1e3, costs)  # dear enough never to be used, and well scaled
    assert (amounts * allowed).sum() == pytest.approx(least_cost(shares, shares, allowed), rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_costs_of_all_sizes_are_solved_to_the_size_that_is_paid(seed):
    rng = np.random.default_rng(seed)
    supply, demand, costs = random_case(seed)
    costs = np.abs(costs) * 10.0 ** rng.uniform(-4, 4, costs.shape)
    amounts = cheapest(supply, demand, costs)
    paid = costs[amounts > 0].max()
    least = least_cost(supply * (1 + 1e-12), demand, costs / paid)
    assert (amounts * costs / paid).sum() <= least + 1e-7


def test_all_transports_are_a_polytope_that_other_processes_get_too():
    rng = np.random.default_rng(3)
    supply, demand, costs = rng.random(3) + 0.5, rng.random(4) / 4, rng.normal(size=(3, 4))
    problem = problems.transport(supply, demand, costs)
    best = problem.best_plan(costs.ravel())
    assert best == pytest.approx(cheapest(supply, demand, costs).ravel())
    assert pickle.loads(pickle.dumps(problem)).best_plan(costs.ravel()).tolist() == best.tolist()
    dearest = problems.transport(supply, demand, costs, goal="largest").best_plan(costs.ravel())
    assert dearest == pytest.approx(cheapest(supply, demand, -costs).ravel())


def test_the_papers_transport_has_nine_by_nine_cities_and_about_nine_hundred_plans():
    problem = problems.transport_instance(0).problem
    assert problem.n_arms == 81
    assert 850 < problem.n_plans < 1000


@pytest.mark.parametrize(
    ("kind", "supplier", "demander", "hours"),
    [
        # Portland is 1.2990 degrees north and .8021 degrees east of Boston, at a latitude of about 43.01;
        # over so short a way the earth is flat, with 111.19 km a degree, and a detour of a quarter at 95 km/h
        (
            "great-circle",
            "Boston",
            "Portland",
            111.19 * np.hypot(1.2990, 0.8021 * np.cos(np.radians(43.01))) * 1.25 / 95,
        ),
        ("freeway", "New York", "Charlotte", 612.0 / 61.1),  # miles over the median speed
    ],
)
def test_hours_between_cities(kind, supplier, demander, hours):
    found = problems.city_hours(kind)
    row, column = found.row_names.index(supplier), found.column_names.index(demander)
    assert found.numbers[row, column] == pytest.approx(hours, rel=1e-3)
