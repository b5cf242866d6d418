"""The check of a proof that all plans are ruled out: what it accepts is true, whatever the prices are."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from polytopes import all_vertices, inequality_about, transport
from surepick.core.polytopes.proofs import Cut, Node, is_covered, system_of, tight_bounds

SMALL = sp.Polytope(
    A_ub=[[0.4, 0.8, 0.3, 0.6], [0.7, 0.2, 0.5, 0.9]], b_ub=[0.8, 0.9], upper=1.0, noise=1, goal="largest"
)


def test_bounds_that_follow_from_rows_hold_for_all_vertices_and_leave_no_more_than_a_supply():
    problem, _ = transport(3, 3, 3)
    low, high = tight_bounds(problem.form)
    supply = np.repeat(problem.rows.b_eq[:3], 3) / problem.form.unit
    assert (high <= supply + 1e-9).all()
    assert (problem.form.upper > 1.5 * supply).any()
    for polytope in (problem, SMALL):
        low, high = tight_bounds(polytope.form)
        vertices = all_vertices(polytope) / polytope.form.unit
        assert (vertices >= low[: polytope.n_arms] - 1e-8).all()
        assert (vertices <= high[: polytope.n_arms] + 1e-8).all()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6))
def test_no_prices_rule_out_a_plan_that_is_not(seed):
    """Arbitrary tangents, prices and splits: the box of a plan that is not ruled out never goes."""
    rng = np.random.default_rng(seed)
    inequality, vertices = inequality_about(SMALL, seed)
    inequality = inequality._replace(target=float(inequality.log_wealth(vertices).min()) + 1e-6)
    system = system_of(SMALL.form, inequality)
    m, n = system.matrix.shape
    nodes = []
    for _ in range(15):  # a chain of splits; seven or eight boxes are left to be ruled out
        cuts = []
        for _ in range(rng.integers(0, 5)):
            at = None if rng.random() < 0.3 else (rng.uniform(0, 3), 10 ** rng.uniform(-5, 0))
            cuts.append(Cut(at, 10 ** rng.uniform(-6, 1), np.rint(rng.normal(0, 50, m))))
        variable = int(rng.integers(0, n))
        split = variable, rng.uniform(system.lower[variable], system.upper[variable])
        nodes.append(Node(cuts, split if len(nodes) < 7 else None))
    assert not is_covered(inequality, system, nodes)


ONES = np.ones(len(SMALL.form.right) + 1)
USELESS = [
    [Cut(None, 1.0, 0 * ONES)],  # neither prices nor a tangent
    # beyond what numbers can hold
    [Cut(None, 1e300, 1e300 * ONES)],
    [Cut(None, 1.0, math.nan * ONES)],
    [Cut((1e308, 1e-3), 1e-3, ONES)],
    [Cut((1.0, 1.0), 1e300, 1e300 * ONES)],
]


@pytest.mark.parametrize("nodes", [[], *([Node(cuts, None)] for cuts in ([], *USELESS))])
def test_nothing_is_shown_by_no_cut_or_by_a_useless_one(nodes):
    inequality, vertices = inequality_about(SMALL, 1)
    inequality = inequality._replace(target=float(inequality.log_wealth(vertices).min()) + 0.1)
    with np.errstate(all="ignore"):
        assert not is_covered(inequality, system_of(SMALL.form, inequality), nodes)
