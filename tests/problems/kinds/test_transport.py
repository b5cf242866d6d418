import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from surepick import problems


def least_cost(supply, demand, costs):
    """The optimum of the textbook linear programme."""
    m, n = costs.shape
    sums = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    answer = linprog(costs.ravel(), A_eq=sums, b_eq=np.concatenate([supply, demand]))
    assert answer.status == 0
    return answer.fun


def cheapest(supply, demand, costs):
    family = problems.transport_family(supply, demand)
    return family.best(np.ravel(costs)).reshape(np.shape(costs))


def random_case(seed, *, whole=False):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 7, size=2)
    if whole:  # many ties and degenerate vertices
        return np.full(m, float(n)), np.full(n, float(m)), rng.integers(-2, 3, (m, n)).astype(float)
    supply, demand = rng.random(m), rng.random(n)
    return supply, demand * supply.sum() / demand.sum(), rng.normal(size=(m, n))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.booleans())
def test_the_cheapest_transport_costs_what_the_linear_programme_says(seed, whole):
    supply, demand, costs = random_case(seed, whole=whole)
    amounts = cheapest(supply, demand, costs)
    assert amounts.min() >= 0
    assert amounts.sum(axis=1) == pytest.approx(supply)
    assert amounts.sum(axis=0) == pytest.approx(demand)
    assert (amounts * costs).sum() == pytest.approx(least_cost(supply, demand, costs), abs=1e-9)


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
    supply, demand = np.full(6, 1 / 6), np.full(6, 1 / 6)
    costs = rng.random((6, 6))
    forbidden = (rng.random((6, 6)) < 0.3) & ~np.eye(6, dtype=bool)
    amounts = cheapest(supply, demand, np.where(forbidden, huge, costs))
    allowed = np.where(forbidden, 1e3, costs)  # dear enough never to be used, and well scaled
    assert (amounts * allowed).sum() == pytest.approx(least_cost(supply, demand, allowed), rel=1e-9)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_costs_of_all_sizes_are_solved_to_the_size_that_is_paid(seed):
    rng = np.random.default_rng(seed)
    supply, demand, costs = random_case(seed)
    costs = np.abs(costs) * 10.0 ** rng.uniform(-4, 4, costs.shape)
    amounts = cheapest(supply, demand, costs)
    paid = costs[amounts > 0].max()
    assert (amounts * costs / paid).sum() <= least_cost(supply, demand, costs / paid) + 1e-7


def test_the_papers_transport_has_nine_by_nine_cities_and_about_nine_hundred_plans():
    sizes = [problems.transport_instance(seed).problem.n_plans for seed in range(6)]
    assert min(sizes) > 700
    assert 850 < np.mean(sizes) < 1000


def test_supply_above_demand_stays_and_the_plan_is_cheapest():
    rng = np.random.default_rng(3)
    for _ in range(20):
        supply, demand, costs = rng.random(3) + 0.5, rng.random(4) / 4, rng.normal(size=(3, 4))
        plan = cheapest(supply, demand, costs)
        assert plan.sum(axis=0) == pytest.approx(demand)
        assert (plan.sum(axis=1) <= supply + 1e-9).all()
        sent, received = np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4))
        found = linprog(costs.ravel(), A_ub=sent, b_ub=supply, A_eq=received, b_eq=demand)
        assert (plan * costs).sum() == pytest.approx(found.fun)
        problem = problems.transport(supply, demand, costs)
        assert problem.best_plan(costs.ravel()) == pytest.approx(plan.ravel())
        again = pickle.loads(pickle.dumps(problem))
        assert again.best_plan(costs.ravel()).tolist() == problem.best_plan(costs.ravel()).tolist()


def test_the_dearest_transport_is_the_cheapest_of_the_opposite_costs():
    supply, demand, costs = random_case(11)
    dearest = problems.transport_family(supply, demand, goal="largest").best(costs.ravel())
    assert dearest == pytest.approx(cheapest(supply, demand, -costs).ravel())
