"""Cases and the numbers that their rows give."""

import dataclasses
import math

import numpy as np
import pytest

from common import refuses
from surepick.errors import ParameterError
from surepick.experiments import Case, Row, run_case
from surepick.experiments.cases import LARGEST_GAP, policy_of
from surepick.experiments.instances import instance_from_spec
from surepick.experiments.summary import distribution_of, summarize
from tiny_cases import PUBLISHED, problem

KNAPSACK = {"kind": "knapsack", "n_items": 5, "seed": 2}


def test_the_key_of_a_case_is_the_same_on_every_machine():
    assert Case(KNAPSACK, "CombGapE", 7, 1000).key == "970c1b8552c2d4d5"


def test_a_run_cut_off_by_its_budget_is_neither_right_nor_wrong():
    row = run_case(Case(problem(gap=0.01), PUBLISHED, budget=50, delta=1e-9))
    assert (row.cut_off, row.correct, row.plan) == (True, None, None)
    assert row.n_measured == 50 == sum(row.counts)


def test_a_wrong_answer_is_seen():
    rows = [run_case(Case(problem(gap=0.05), PUBLISHED, seed, delta=0.9)) for seed in range(30)]
    wrong = [row for row in rows if row.plan != 0]
    assert wrong
    assert all(row.correct is False and row.wrong_lead for row in wrong)


def test_a_plan_that_ties_with_the_best_is_right_and_there_is_no_limit():
    spec = {"kind": "given", "plans": np.eye(3).tolist(), "means": [1.0, 1.0, -9.0]}
    rows = [run_case(Case(spec, PUBLISHED, seed, epsilon=0.5)) for seed in range(8)]
    assert {row.plan for row in rows} == {0, 1}
    assert all(row.correct and row.limit is None for row in rows)


def test_the_limit_of_a_row_is_the_limit():
    row = run_case(Case(problem(gap=0.1), PUBLISHED))
    assert row.limit == pytest.approx(2 * 2**2 / 0.1**2 * 0.9 * np.log(19))


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (Case({"kind": "parcels"}, PUBLISHED), "problem"),
        (Case({"kind": "knapsack", "items": 5}, PUBLISHED), "problem"),
        (Case(problem(), "radius"), "policy"),
        (Case(problem(), "CombGapE:radios=1"), "policy"),
        (Case(problem(), "Peace", epsilon=0.1), "epsilon"),
        (Case(problem(), PUBLISHED, seed=-1), "seed"),
        (Case(problem(), PUBLISHED, budget=0), "budget"),
    ],
)
def test_a_case_that_cannot_run_is_refused(case, field):
    with refuses(field, ParameterError):
        run_case(case)


def test_a_parameter_may_be_the_largest_gap_of_the_instance():
    found = instance_from_spec(KNAPSACK)
    values = found.problem.values(found.means)
    text = f"CombGapE:epsilon={LARGEST_GAP}"
    assert policy_of(text, found, delta=0.1, epsilon=0.0).epsilon == values.max() - values.min()
    with refuses("policy", ParameterError):
        policy_of(text, instance_from_spec({"kind": "mix", "seed": 1}), delta=0.1, epsilon=0.0)


def made_up(n, seed, *, cut_off=False, correct=True):
    return Row(
        case=Case(problem(), PUBLISHED, seed),
        state="budget spent" if cut_off else "confident",
        plan=None if cut_off else 0,
        leader=0,
        correct=None if cut_off else correct,
        n_measured=n,
        counts=(n, 0),
        limit=10.0,
        instance="same",
        proved=False,
        loss=0.0 if correct else 0.5,
        second_gap=0.25,
        versions={},
        seconds=0.5,
        cpu_seconds=0.5,
    )


def test_the_summary_of_tiny_rows_is_as_computed_by_hand():
    reference = [made_up(10, 0), made_up(20, 1), made_up(40, 2), made_up(50, 3, cut_off=True)]
    rows = [made_up(20, 0), made_up(80, 1, correct=False), made_up(360, 2), made_up(500, 3)]
    found = summarize(rows, reference)  # ratios 2, 4, 9; the last trial has none
    assert (found.relative.n, found.relative.mean.number) == (3, pytest.approx(5.0))
    assert found.relative.deviation == pytest.approx(math.sqrt((9 + 1 + 16) / 2))
    assert found.relative.median.number == pytest.approx(4.0)
    assert found.multiple.mean.number == pytest.approx((2 + 8 + 36 + 50) / 4)
    assert (found.wrong, found.answers, found.cut_off, found.cpu_seconds) == (1, 4, 0, 0.5)
    assert (found.wrong_leads, found.loss) == (1, 0.5)


def test_a_run_without_a_leader_is_wrong_and_has_no_loss():
    without = dataclasses.replace(made_up(10, 1), leader=None, loss=None)
    found = summarize([made_up(10, 0, correct=False), without])
    assert (found.wrong_leads, found.loss) == (2, 2.0)


def test_trials_without_a_row_or_an_answer_say_nothing():
    found = summarize([None, made_up(30, 1)], [made_up(10, 0), None])
    assert (found.runs, found.relative) == (1, None)
    assert summarize([made_up(10, 0, cut_off=True)]).wrong_interval == (0.0, 1.0)  # no answer, no rate


@pytest.mark.parametrize(
    ("numbers", "bounds", "is_bound"),
    [
        ([1, 2, 3], [False, False, True], False),  # beyond the middle: whatever it is, the middle stays
        ([1, 2, 3], [True, False, False], True),  # it may belong above the middle
        ([1, 2, 3], [False, True, False], True),
        ([1, 2, 3, 4], [False, False, True, False], True),  # half of an even middle
        ([1, 2, 3, 4], [False, False, False, True], False),
        ([1, 2, 2], [False, True, False], False),  # the exact 2 is in the middle
    ],
)
def test_a_median_is_a_lower_bound_when_a_cut_off_run_could_move_it(numbers, bounds, is_bound):
    assert distribution_of(numbers, bounds).median.at_least is is_bound


def test_quantiles_of_a_heavy_tail_stand_beside_its_mean_and_groups_show_what_a_mean_settles():
    numbers = [1.0] * 89 + [1000.0]
    found = distribution_of(numbers, [False] * 90)
    assert (found.median.number, found.high.number, found.largest.number) == (1.0, 1.0, 1000.0)
    assert found.group_means == (1.0, pytest.approx(1029 / 30))
    assert distribution_of(numbers[:59], [False] * 59).group_means is None
