import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import refuses
from surepick import problems
from surepick.errors import ProblemError


@given(st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=7), st.integers(1, 2), st.booleans())
def test_the_best_k_are_the_k_largest(means, k, minimize):
    names = [f"a{s}" for s in range(len(means))]
    family = problems.top_k_family(names, k, goal="smallest" if minimize else "largest")
    problem = problems.top_k(names, k, goal="smallest" if minimize else "largest", noise=1)
    assert problem.n_plans == family.n_plans
    chosen = np.sort(means)[:k] if minimize else np.sort(means)[-k:]
    values = problem.values(means)
    assert np.array(means) @ family.best(means) == pytest.approx(chosen.sum())
    assert (values.min() if minimize else values.max()) == pytest.approx(chosen.sum())


def test_a_guess_narrows_many_choices_down():
    names = [f"a{s}" for s in range(40)]
    with refuses("guess", ProblemError):
        problems.top_k(names, 20, list_plans=True, goal="largest")
    problem = problems.top_k(
        names, 20, guess=np.arange(40.0), spread=1.0, list_plans=True, noise=1, goal="largest"
    )
    assert 2 <= problem.n_plans < 10
