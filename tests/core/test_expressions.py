"""Plans as sums of arms, and plans from data frames of any library."""

import pandas as pd
import polars as pl
import pytest

import surepick as sp
from common import largest, refuses
from surepick.core.given.plans import amounts_in
from surepick.errors import FileError, ProblemError
from surepick.inputs.load import read_problem


def test_plans_are_sums_in_a_list_or_by_name():
    problem = largest(["2*tea + coffee", "coffee + 0.5 cocoa"])
    assert problem.arm_names == ("tea", "coffee", "cocoa")
    assert problem.plan_names == ("2*tea + coffee", "coffee + 0.5 cocoa")
    assert problem.plans.tolist() == [[2, 1, 0], [0, 1, 0.5]]
    named = largest({"morning": "2*tea + coffee", "evening": {"coffee": 1, "cocoa": 0.5}})
    assert named.plan_names == ("morning", "evening")
    assert named.plans.tolist() == problem.plans.tolist()


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("tea", {"tea": 1}),
        ("-tea", {"tea": -1}),
        ("tea+coffee", {"tea": 1, "coffee": 1}),
        ("2 x tea - 1.5e1*coffee", {"tea": 2, "coffee": -15}),
        ("3 tea + tea", {"tea": 4}),
        ("2*'A -> B' + `c*d`", {"A -> B": 2, "c*d": 1}),
        ("New York + 2 New York", {"New York": 3}),
        ("arm 0 + arm 1", {"arm 0": 1, "arm 1": 1}),
    ],
)
def test_what_a_sum_means(text, amounts):
    assert amounts_in("p", text) == amounts


def test_names_of_known_arms_need_no_quotes():
    legs = ["A -> B", "B -> C", "2nd road", "road-north"]
    problem = largest(["2*A -> B + B -> C", "3*2nd road - road-north"], arms=legs)
    assert problem.plans.tolist() == [[2, 1, 0, 0], [0, 0, 3, -1]]


def test_a_problem_file_may_have_sums(tmp_path):
    path = tmp_path / "drinks.toml"
    path.write_text('kind = "table"\ngoal = "largest"\nplans = ["2*tea + coffee", "cocoa"]\n')
    assert read_problem(path).problem.plans.tolist() == [[2, 1, 0], [0, 0, 1]]
    path.write_text(
        'kind = "table"\ngoal = "largest"\n[plans]\nmorning = "2*tea + coffee"\nevening = "cocoa"\n'
    )
    assert read_problem(path).problem.plan_names == ("morning", "evening")
    path.write_text('kind = "table"\ngoal = "largest"\nplans = ["2*tea +", "cocoa"]\n')
    with refuses("plans", FileError):
        read_problem(path)


# data frames

COLUMNS = {"plan": ["north", "south"], "road": [1.0, 0.0], "rail": [0, 2]}
FRAMES = [
    pd.DataFrame(COLUMNS),
    pd.DataFrame(COLUMNS).set_index("plan"),
    pl.DataFrame(COLUMNS),
]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "pandas index", "polars"])
def test_plans_come_from_any_data_frame(frame):
    problem = largest(frame)
    assert (problem.arm_names, problem.plan_names) == (("road", "rail"), ("north", "south"))
    assert largest(frame, arms=["a", "b"]).arm_names == ("a", "b")
    assert problem.plans.tolist() == [[1, 0], [0, 2]]


def test_an_empty_cell_is_0_and_one_that_is_no_number_is_named():
    empty = {"plan": ["north", "south"], "road": [1.0, None], "rail": [None, 1.0]}
    frames = pl.DataFrame(empty), pd.DataFrame(empty), pd.DataFrame(empty).convert_dtypes()
    for frame in frames:
        assert sp.Problem(frame, goal="largest").plans.tolist() == [[1, 0], [0, 1]]
    with refuses("plans", ProblemError):
        sp.Problem(pl.DataFrame({"plan": ["north", "south"], "road": ["1", "x"]}), goal="largest")
