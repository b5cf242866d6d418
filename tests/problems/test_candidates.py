import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems
from surepick.errors import ProblemError
from surepick.problems.candidates import SAME_PLAN, _DistinctPlans


def top_one(weights):
    """The plan that takes the largest weight only."""
    return np.eye(len(weights))[int(np.argmax(weights))]


def answers(plans):
    """An oracle that gives these answers in turn."""
    rest = iter(plans)
    return lambda weights: next(rest)


def refusal(*args, **options):
    with pytest.raises(ProblemError) as caught:
        problems.plans_from_oracle(*args, **options)
    return str(caught.value)


def test_every_plan_that_can_win_is_found_and_counted():
    found = problems.plans_from_oracle(top_one, [0, 0, 0, 5], [1, 1, 1, 6], n_draws=10)
    assert found.plans.tolist() == [[0, 0, 0, 1]]
    found = problems.plans_from_oracle(top_one, [0, 0, 0], [1, 1, 1], n_draws=300)
    assert sorted(found.plans.tolist()) == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert found.counts.sum() == found.n_draws == 300
    assert found.counts.min() > 60


def test_plans_come_in_the_order_of_their_first_appearance():
    found = problems.plans_from_oracle(answers([[2, 0], [1, 0], [2, 0], [0, 3]]), [0, 0], [1, 1], n_draws=4)
    assert found.plans.tolist() == [[2, 0], [1, 0], [0, 3]]
    assert found.counts.tolist() == [2, 1, 1]


def test_the_chance_of_a_new_plan_is_the_share_of_plans_seen_once():
    plans = [[1, 0], [0, 1], [1, 0], [2, 1]]
    assert problems.plans_from_oracle(answers(plans), [0, 0], [1, 1], n_draws=4).chance_of_new == 0.5


def test_draws_lie_in_the_box_and_fill_it():
    seen = []
    lower, upper = np.array([0.0, -3.0, 7.0]), np.array([1.0, -1.0, 7.0])
    problems.plans_from_oracle(lambda w: seen.append(w) or w, lower, upper, n_draws=500)
    draws = np.array(seen)
    assert (draws >= lower).all()
    assert (draws <= upper).all()
    assert np.abs(draws.mean(axis=0) - [0.5, -2.0, 7.0]).max() < 0.1


def test_the_same_seed_gives_the_same_plans_and_another_seed_others():
    def draw(seed):
        return problems.plans_from_oracle(lambda w: w, [0, 0], [1, 1], n_draws=5, seed=seed).plans

    assert (draw(3) == draw(3)).all()
    assert (draw(3) != draw(4)).all()


def test_progress_is_told_after_every_draw():
    told = []
    problems.plans_from_oracle(top_one, [0, 0], [1, 1], n_draws=3, progress=lambda *at: told.append(at))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_plans_that_differ_by_rounding_are_one_plan():
    plans = [[0.3, 0.7], [0.1 + 0.2, 0.7], [0.3, 0.7 - 1e-12]]
    assert problems.plans_from_oracle(answers(plans), [0, 0], [1, 1], n_draws=3).n_plans == 1


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_the_tolerance_is_relative_to_the_largest_entry(scale):
    apart, together = 3 * SAME_PLAN, SAME_PLAN / 3
    plans = scale * np.array([[1, 0.5], [1, 0.5 + together], [1, 0.5 + apart]])
    assert problems.plans_from_oracle(answers(plans), [0, 0], [1, 1], n_draws=3).counts.tolist() == [2, 1]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=40), st.integers(0, 9)
)
def test_the_distinct_plans_are_those_of_a_pairwise_comparison(rows, noise_seed):
    noise = np.random.default_rng(noise_seed).uniform(-1, 1, (len(rows), 3)) * 1e-12
    found = _DistinctPlans(SAME_PLAN)
    fresh = [
        found.add(np.array(row, dtype=float) * (1 + shake)) for row, shake in zip(rows, noise, strict=True)
    ]
    expected = [row not in rows[:k] for k, row in enumerate(rows)]
    assert fresh == expected
    assert sum(found.counts) == len(rows)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ([1, 0, 0], "each of the 2 arms; at draw 0 it gave an array of shape (3,)"),
        ([1, np.nan], "finite numbers; at draw 0 it gave [1.0, nan]"),
        ("left", "one number per arm; at draw 0 it gave 'left'"),
    ],
)
def test_an_answer_that_is_no_plan_is_refused(answer, says):
    assert says in refusal(lambda w: answer, [0, 0], [1, 1], n_draws=2)


@pytest.mark.parametrize(
    ("lower", "upper", "says"),
    [
        ([0, 2], [1, 1], "lower must not exceed upper, got 2.0 and 1.0 for arm 1"),
        ([0], [1, 1], "got 1 and 2"),
        ([0, np.inf], [1, 1], "lower must be finite, got inf in entry 1"),
        ([[0, 0]], [[1, 1]], "lower must be a list of numbers, got shape (1, 2)"),
        ([], [], "lower must be a list of numbers, got shape (0,)"),
        (["a", 0], [1, 1], "lower must be a list of numbers, got ['a', 0]"),
    ],
)
def test_a_box_that_is_none_is_refused(lower, upper, says):
    assert says in refusal(top_one, lower, upper, n_draws=2)


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"n_draws": 0}, "n_draws must be at least 1, got 0"),
        ({"n_draws": 2.5}, "n_draws must be a whole number, got 2.5"),
        ({"n_draws": 2, "seed": -1}, "seed must be a whole number, 0 or more, got -1"),
        ({"n_draws": 2, "seed": "x"}, "seed must be a whole number, 0 or more, got 'x'"),
        ({"n_draws": 2, "tolerance": -1}, "tolerance is a small share of a plan's largest entry, got -1"),
        (
            {"n_draws": 2, "tolerance": np.nan},
            "tolerance is a small share of a plan's largest entry, got nan",
        ),
    ],
)
def test_options_outside_their_range_are_refused(option, says):
    assert says in refusal(top_one, [0, 0], [1, 1], **option)
