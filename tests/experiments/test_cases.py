from __future__ import annotations

import numpy as np
import pytest

from surepick.errors import ParameterError
from surepick.experiments import Case, instance_from_spec, policy_from_spec, policy_spec, run_case
from surepick.experiments.specs import LARGEST_GAP
from surepick.policies import POLICIES, CombGapE
from tiny_cases import NAIVE, PUBLISHED, problem


def test_the_key_of_a_case_is_the_same_on_every_machine() -> None:
    case = Case({"kind": "knapsack", "n_items": 5, "seed": 3}, {"policy": "CombGapE", "delta": 0.05}, 7, 1000)
    assert case.key == "a38b43075b8463a9"


def test_all_policies_see_the_same_instance() -> None:
    spec = {"kind": "knapsack", "n_items": 5, "seed": 2}
    first, second = run_case(Case(spec, PUBLISHED)), run_case(Case(spec, NAIVE))
    assert first.instance == second.instance
    assert first.instance != run_case(Case({**spec, "seed": 3}, PUBLISHED)).instance


def test_a_run_cut_off_by_its_budget_is_neither_right_nor_wrong() -> None:
    row = run_case(Case(problem(gap=0.01), {**PUBLISHED, "delta": 1e-9}, budget=50))
    assert (row.cut_off, row.correct, row.plan) == (True, None, None)
    assert row.n_measurements == 50 == sum(row.counts)


def test_a_wrong_answer_is_seen() -> None:
    rows = [run_case(Case(problem(gap=0.05), {**PUBLISHED, "delta": 0.9}, seed)) for seed in range(30)]
    wrong = [row for row in rows if row.plan != row.best]
    assert wrong
    assert all(row.correct is False for row in wrong)


def test_a_plan_that_ties_with_the_best_is_right() -> None:
    spec = {"kind": "given", "plans": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "means": [1.0, 1.0, -9.0]}
    rows = [run_case(Case(spec, {**PUBLISHED, "epsilon": 0.5}, seed)) for seed in range(8)]
    assert {row.plan for row in rows} == {0, 1}
    assert all(row.correct for row in rows)
    assert rows[0].limit == float("inf")


def test_the_limit_of_a_row_is_the_limit() -> None:
    row = run_case(Case(problem(gap=0.1), {**PUBLISHED, "delta": 0.05}))
    assert row.limit == pytest.approx(2 * 2**2 / 0.1**2 * 0.9 * np.log(19))
    assert row.multiple == row.n_measurements / row.limit


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (Case({"kind": "parcels"}, PUBLISHED), "problem"),
        (Case({"kind": "knapsack", "items": 5}, PUBLISHED), "problem"),
        (Case(problem(), {"radius": "published"}), "policy"),
        (Case(problem(), {"policy": "CombGapE", "radios": 1}), "policy"),
        (Case(problem(), PUBLISHED, seed=-1), "seed"),
        (Case(problem(), PUBLISHED, budget=0), "budget"),
    ],
)
def test_a_case_that_cannot_run_is_refused(case: Case, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        run_case(case)
    assert caught.value.field == field


def test_policy_specs_round_trip() -> None:
    policy = CombGapE(delta=0.2, radius="published", arm_rule="naive")
    assert policy_from_spec(policy_spec(policy)) == policy
    for other in POLICIES.values():
        assert policy_from_spec(policy_spec(other())) == other()


def test_a_parameter_may_be_the_largest_gap_of_the_instance() -> None:
    instance = instance_from_spec({"kind": "knapsack", "n_items": 5, "seed": 1})
    values = instance.problem.values(instance.means)
    policy = policy_from_spec({"policy": "CombGapE", "epsilon": LARGEST_GAP}, instance)
    assert getattr(policy, "epsilon") == pytest.approx(values.max() - values.min())  # noqa: B009
    with pytest.raises(ParameterError) as caught:
        policy_from_spec({"policy": "CombGapE", "epsilon": LARGEST_GAP})
    assert caught.value.field == "epsilon"
