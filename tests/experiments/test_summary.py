from __future__ import annotations

import math

import pytest
from scipy.stats import binomtest

from surepick.experiments import Case, Row
from surepick.experiments.summary import relative_measurements, spread, summarize
from surepick.limits.value import binary_kl
from tiny_cases import PUBLISHED, problem


def made_up(
    n: int, seed: int, *, cut_off: bool = False, correct: bool = True, limit: float = 10.0, gap: float = 1.0
) -> Row:
    """A row that nobody ran."""
    return Row(
        case=Case(problem(gap), PUBLISHED, seed),
        status="budget spent" if cut_off else "confident",
        plan=None if cut_off else 0,
        lead=0,
        best=0,
        correct=None if cut_off else correct,
        n_measurements=n,
        n_rounds=n,
        counts=(n, 0),
        n_plans=2,
        n_arms=2,
        n_relevant=2,
        characteristic_time=(limit / binary_kl(0.05),) * 2,
        instance="same",
        description="made up",
        parameters={"policy": "CombGapE", "delta": 0.05},
        guarantee="none",
        versions={},
        loss=0.0,
        second_gap=gap,
        seconds=0.5,
        cpu_seconds=0.5,
    )


def test_ratios_are_to_the_reference_on_the_same_instance() -> None:
    reference = [made_up(10, 0), made_up(100, 1)]
    rows = [made_up(300, 1), made_up(20, 0)]
    assert relative_measurements(rows, reference) == ([3.0, 2.0], [False, False])


def test_the_summary_of_tiny_rows_is_as_computed_by_hand() -> None:
    reference = [made_up(10, 0), made_up(20, 1), made_up(40, 2)]
    rows = [made_up(20, 0), made_up(80, 1, correct=False), made_up(360, 2)]
    found = summarize(rows, reference)  # ratios 2, 4, 9
    assert found.relative is not None
    assert found.relative.mean.number == pytest.approx(5.0)
    assert found.relative.deviation == pytest.approx(math.sqrt((9 + 1 + 16) / 2))
    assert found.relative.median.number == pytest.approx(4.0)
    assert found.multiple is not None
    assert found.multiple.mean.number == pytest.approx((2 + 8 + 36) / 3)
    assert (found.wrong, found.answers, found.cut_off, found.cpu_seconds) == (1, 3, 0, 0.5)


def test_instances_without_a_reference_answer_have_no_ratio_but_count_elsewhere() -> None:
    reference = [made_up(10, 0), made_up(50, 1, cut_off=True)]
    rows = [made_up(30, 0), made_up(500, 1)]
    found = summarize(rows, reference)
    assert found.relative is not None
    assert found.measurements is not None
    assert (found.relative.n, found.measurements.n) == (1, 2)


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
def test_a_median_is_a_lower_bound_when_a_cut_off_run_could_move_it(
    numbers: list[float], bounds: list[bool], is_bound: bool
) -> None:
    found = spread(numbers, bounds)
    assert found is not None
    assert found.median.at_least is is_bound


@pytest.mark.parametrize(("wrong", "answers"), [(0, 30), (1, 30), (30, 30), (7, 100), (0, 1)])
def test_error_intervals_are_those_of_scipy(wrong: int, answers: int) -> None:
    exact = binomtest(wrong, answers).proportion_ci(confidence_level=0.95, method="exact")
    rows = [made_up(10, seed, correct=seed >= wrong) for seed in range(answers)]
    assert summarize(rows).wrong_interval == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_without_answers_nothing_is_known_of_the_error_rate() -> None:
    assert summarize([made_up(10, 0, cut_off=True)]).wrong_interval == (0.0, 1.0)


def test_quantiles_of_a_heavy_tail_stand_beside_its_mean_and_groups_show_what_a_mean_settles() -> None:
    numbers = [1.0] * 89 + [1000.0]
    found = spread(numbers, [False] * 90)
    assert found is not None
    assert (found.median.number, found.high.number, found.largest.number) == (1.0, 1.0, 1000.0)
    assert found.group_means == (1.0, pytest.approx(1029 / 30))
    few = spread(numbers[:59], [False] * 59)
    assert few is not None
    assert few.group_means is None
