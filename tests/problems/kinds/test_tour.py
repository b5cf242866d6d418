"""Round trips: no tour is shorter, by trying all; and decided behind the oracle."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from common import refuses
from surepick import problems
from surepick.errors import ProblemError
from surepick.problems.family import family_from


def lengths(weights, n):
    """The length of every tour from place 0, by its order."""
    table = np.zeros((n, n))
    table[np.triu_indices(n, 1)] = weights
    table += table.T
    orders = [(0, *rest) for rest in permutations(range(1, n)) if rest[0] < rest[-1]]
    return [sum(table[a, b] for a, b in zip(o, (*o[1:], 0), strict=True)) for o in orders]


@settings(deadline=None, max_examples=40)
@given(st.integers(4, 7), st.integers(0, 2**32), st.booleans())
def test_no_tour_is_shorter_and_all_are_listed(n, seed, minimize):
    weights = np.random.default_rng(seed).normal(size=n * (n - 1) // 2)
    family = problems.tour_family(list("abcdefg"[:n]), goal="smallest" if minimize else "largest")
    every, plan = lengths(weights, n), family.best(weights)
    assert weights @ plan == pytest.approx(min(every) if minimize else max(every))
    assert plan.sum() == n
    listed = [weights @ tour for tour in family.some(10**6)]
    assert sorted(listed) == pytest.approx(sorted(every))
    assert len(listed) == family.n_plans


def test_ten_places_are_decided_behind_the_oracle():
    rng = np.random.default_rng(3)
    places = rng.uniform(0, 100, (10, 2))
    first, second = np.triu_indices(10, 1)
    km = np.linalg.norm(places[first] - places[second], axis=1)
    problem = problems.tours([f"place {i}" for i in range(10)], noise=3.0)
    assert not problem.is_listed
    outcome = sp.simulate(problem, km, epsilon=10.0, seed=0)
    assert np.array(outcome.plan) @ km <= problem.best_plan(km) @ km + 10.0
    assert outcome.plan_name.startswith("place 0 - ")
    assert family_from(problem.recipe()).best(km).tolist() == problem.best_plan(km).tolist()


def test_a_guess_may_be_a_symmetric_table():
    table = np.array([[0, 1, 9, 1], [1, 0, 1, 9], [9, 1, 0, 1], [1, 9, 1, 0.0]])
    problem = problems.tours(list("ABCD"), table, spread=0.1)
    assert problem.guess.tolist() == [1, 9, 1, 1, 9, 1]
    for wrong in (table + np.triu(np.ones((4, 4)), 1), table[:3]):
        with refuses("guess", ProblemError):
            problems.tours(list("ABCD"), wrong)
    for places in (list("ABC"), [str(i) for i in range(15)]):
        with refuses("places", ProblemError):
            problems.tours(places)
