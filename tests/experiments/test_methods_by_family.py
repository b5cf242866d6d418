"""Rows by family of problems and by method."""

from __future__ import annotations

from dataclasses import replace

import pytest

from surepick.experiments import Case, Row, run_case
from surepick.experiments.families import families

PROMISES = {"policy": "CombGapE", "delta": 0.1}
PROMISES_NOTHING = {"policy": "CombGapE", "radius": "published", "delta": 0.1}


@pytest.fixture(scope="module")
def row() -> Row:
    return run_case(Case({"kind": "knapsack", "n_items": 4, "seed": 0}, PROMISES, seed=0, budget=10**4))


def of(row: Row, policy: dict[str, object], seed: int, **changes: object) -> Row:
    case = replace(row.case, problem={**row.case.problem, "seed": seed}, policy=policy)
    return replace(row, case=case, instance=f"instance {seed}", **changes)


def test_rows_are_put_side_by_side_by_family_and_method(row: Row) -> None:
    cheap = of(row, PROMISES_NOTHING, 0, n_measurements=row.n_measurements // 2, guarantee="none: unsound")
    other = replace(row, case=replace(row.case, problem={"kind": "knapsack", "n_items": 9, "seed": 0}))
    small, large = families([of(row, PROMISES, 0), of(row, PROMISES, 1), cheap, other])
    assert (small.name, small.n_instances) == ("knapsack, n_items 4", 2)
    assert large.name == "knapsack, n_items 9"
    first, second = small.methods
    assert (first.summary.label, second.summary.label) == ("CombGapE", "CombGapE (radius published)")
    assert (first.promises, first.least) == (True, True)
    assert (second.promises, second.least) == (False, False)  # cheaper, but it promises nothing
    assert 0 < second.bar < first.bar == 1.0


def test_a_given_problem_is_known_by_its_fingerprint(row: Row) -> None:
    given = replace(row, case=replace(row.case, problem={"kind": "given", "plans": [[1, 0], [0, 1]]}))
    (family,) = families([given])
    assert family.name.startswith("given ")
