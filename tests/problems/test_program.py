import importlib
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from surepick import problems
from surepick.errors import ProblemError
from surepick.problems import integer
from surepick.problems.integer import solving_within
from surepick.problems.kinds.program import as_program, program_family, solve_program


@st.composite
def programs(draw):
    n_rows, n = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    entries = st.integers(0, 5)
    use = np.array(draw(st.lists(entries, min_size=n_rows * n, max_size=n_rows * n))).reshape(n_rows, n)
    limits = np.array(draw(st.lists(st.integers(0, 12), min_size=n_rows, max_size=n_rows)))
    upper = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    weights = np.array(draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)))
    return use.astype(float), limits.astype(float), upper.astype(float), weights.astype(float)


def best_whole(use, limits, upper, weights):
    points = (np.array(x) for x in product(*(range(int(u) + 1) for u in upper)))
    return max(weights @ x for x in points if (use @ x <= limits).all())


def best_vertex(use, limits, upper, weights):
    """The best vertex, by solving every system of n tight constraints."""
    n = len(upper)
    rows, right = np.vstack([use, np.eye(n), np.eye(n)]), np.concatenate([limits, upper, np.zeros(n)])
    values = []
    for tight in combinations(range(len(rows)), n):
        matrix = rows[list(tight)]
        if abs(np.linalg.det(matrix)) > 1e-9:
            x = np.linalg.solve(matrix, right[list(tight)])
            if (use @ x <= limits + 1e-9).all() and (x >= -1e-9).all() and (x <= upper + 1e-9).all():
                values.append(weights @ x)
    return max(values)


@settings(deadline=None, max_examples=60)
@given(programs(), st.booleans())
def test_no_plan_within_the_limits_brings_more(case, whole):
    use, limits, upper, weights = case
    plan = solve_program(problems.as_program(use, limits, upper=upper, whole=whole), weights)
    assert (use @ plan <= limits + 1e-9).all()
    best = best_whole(*case) if whole else best_vertex(*case)
    assert weights @ plan == pytest.approx(best, abs=1e-7)
    if whole:
        assert (plan == np.round(plan)).all()


def test_programs_may_minimise_and_compare_in_all_ways():
    program = problems.as_program(
        [[1, 1], [1, 0], [0, 1]], [4, 1, 3], senses=[">=", "=", "<="], goal="smallest"
    )
    assert solve_program(program, np.array([1.0, 2.0])).tolist() == [1, 3]


def market_split(n_rows=4, n_variables=40, seed=0):
    """An integer program that no branch and bound likes: equal shares of many random numbers."""
    use = np.random.default_rng(seed).integers(0, 100, (n_rows, n_variables)).astype(float)
    return as_program(use, use.sum(axis=1) // 2, senses="=", upper=1, whole=True)


def test_an_integer_program_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(integer, "SECONDS", 0.2)
    with pytest.raises(ProblemError):
        program_family(market_split())


def test_all_programs_of_a_problem_together_have_their_time():
    with solving_within(0.3), pytest.raises(ProblemError):
        program_family(market_split(seed=1))
    with solving_within(-1.0), pytest.raises(ProblemError):
        program_family(as_program([[1, 2], [3, 1]], [8, 9]))
    program_family(as_program([[1, 2], [3, 1]], [8, 9]))  # the limit is over


@pytest.mark.parametrize("more", [{"upper": 4.0}, {"lower": [1, 0]}, {"whole": True}, {"goal": "smallest"}])
def test_what_a_program_says_is_not_said_again(more):
    program = as_program([[1, 2], [3, 1]], [8, 9], [3.0, 4.0])
    with pytest.raises(ProblemError) as caught:
        problems.production(program, **more)
    assert [caught.value.field] == list(more)


def test_afiro_of_the_gallery_is_that_of_netlib_and_is_solved_within_twenty_measurements(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples" / "gallery")
    problem, costs = importlib.import_module("afiro").afiro()
    assert (len(problem.rows.b_ub) + len(problem.rows.b_eq), problem.n_arms) == (27, 32)
    means = np.array(list(costs.values()))
    assert problem.best_plan(means) @ means == pytest.approx(-464.75314286, abs=1e-7)
    for seed in range(3):
        outcome = sp.simulate(problem, costs, policy=sp.BetGapE(delta=0.05), seed=seed)
        assert (outcome.state, outcome.correct) == ("confident", True)
        assert outcome.n_measured <= 20
        assert not outcome.counts[means == 0].any()
