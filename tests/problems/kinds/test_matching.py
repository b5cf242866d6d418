from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems
from surepick.errors import ProblemError


def all_assignments(possible):
    """Every assignment of the shorter side, as sorted (row, column) pairs."""
    m, n = possible.shape
    if m > n:
        return [tuple(sorted((i, j) for j, i in pairs)) for pairs in all_assignments(possible.T)]
    rows = (tuple(enumerate(columns)) for columns in permutations(range(n), m))
    return [pairs for pairs in rows if all(possible[i, j] for i, j in pairs)]


@st.composite
def tables(draw):
    m, n = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    guess = np.array(draw(st.lists(st.floats(-5, 5, width=32), min_size=m * n, max_size=m * n))).reshape(m, n)
    gone = draw(st.lists(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)), max_size=3))
    for i, j in gone:
        guess[i, j] = np.nan
    return guess


@settings(deadline=None, max_examples=80)
@given(tables(), st.booleans())
def test_no_assignment_is_better_and_all_are_listed(guess, minimize):
    expected = all_assignments(~np.isnan(guess))
    options = {"goal": "smallest" if minimize else "largest", "every": True}
    if len(expected) < 2:
        with pytest.raises(ProblemError):
            problems.matchings(guess, **options)
        return
    problem = problems.matchings(guess, **options)
    assert problem.n_plans == len(expected) <= problem.family.n_plans
    totals = [sum(guess[i, j] for i, j in pairs) for pairs in expected]
    weights = guess[~np.isnan(guess)]
    assert sorted(problem.values(weights)) == pytest.approx(sorted(totals))
    best = (min if minimize else max)(totals)
    assert weights @ problem.family.best(weights) == pytest.approx(best)
    some = problems.matchings(guess, goal="smallest" if minimize else "largest", n_best=2, noise=1)
    assert some.values(weights)[0] == pytest.approx(best)


def test_names_lead_from_the_table_to_the_answer():
    problem = problems.matchings(
        [[1, 5], [np.nan, 2], [3, 3]],
        row_names=["Ann", "Bob", "Cleo"],
        column_names=["x", "y"],
        spread=3,
        noise=1,
        goal="smallest",
    )
    assert problem.arm_names == ("Ann: x", "Ann: y", "Bob: y", "Cleo: x", "Cleo: y")
    assert "Ann: x, Bob: y" in problem.plan_names


def test_the_family_may_be_made_without_a_guess():
    family = problems.matching_family(
        ["a", "b"], ["x", "y"], possible=[[True, True], [True, False]], goal="smallest"
    )
    assert family.arm_names == ("a: x", "a: y", "b: x")
    assert family.best([0.0, 9.0, 9.0]).tolist() == [0, 1, 1]
