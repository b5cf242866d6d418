import copy
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import surepick as sp
from common import largest, refuses
from surepick.core.problem import settled
from surepick.core.tables import read_table
from surepick.errors import ProblemError, SurepickError
from surepick.problems import NewArm, Past
from surepick.simulation import Gaussian

SMALL_TABLES = hnp.arrays(
    float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.integers(-2, 2)
)


def refusal(*args, **options):
    """Return the error with which a problem is refused."""
    with pytest.raises(ProblemError) as caught:
        sp.Problem(*args, **{"goal": "largest", **options})
    return caught.value


def write(path, text, *, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


# what is accepted


def test_noise_scale_and_costs_can_differ_between_arms():
    problem = sp.Problem([[1, 0], [0, 1]], noise=[1, 3], cost=np.array([5, 0.5]), goal="largest")
    assert problem.noise_scale.tolist() == [1.0, 3.0]
    assert problem.costs.tolist() == [5.0, 0.5]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_plans_stay_sparse(kind):
    problem = largest(kind(np.array([[1.0, 0, 2], [0, 1, 2]])))
    assert not isinstance(problem.plans, np.ndarray)
    assert isinstance(problem.plans, sparse.csr_array)
    assert problem.relevant.tolist() == [True, True, False]


# what is merged, and what matters


def test_equal_plans_are_merged_and_reported():
    problem = largest([[1, 0], [0, 1], [1, -0.0]], plan_names=["a", "b", "c"])
    assert problem.plan_names == ("a", "b")
    assert problem.duplicates == (("c", "a"),)
    assert problem.plan("c") == 0


def test_equal_sparse_plans_are_merged_whatever_their_stored_zeros():
    rows = sparse.csr_array(([1.0, 0.0, 1.0, 1.0], ([0, 0, 1, 2], [0, 1, 1, 0])), shape=(3, 2))
    problem = largest(rows)
    assert problem.plan_names == ("plan 0", "plan 1")
    assert problem.duplicates == (("plan 2", "plan 0"),)


@settings(deadline=None)
@given(SMALL_TABLES)
def test_the_distinct_rows_remain_in_their_order(table):
    distinct = list(dict.fromkeys(tuple(row) for row in table.tolist()))
    if len(distinct) < 2:
        assert refusal(table).field == "plans"
        return
    problem = largest(table)
    assert [tuple(row) for row in problem.plans.tolist()] == distinct
    assert problem.n_plans + len(problem.duplicates) == len(table)
    assert problem.relevant.tolist() == [len(set(column)) > 1 for column in table.T.tolist()]


@settings(deadline=None)
@given(SMALL_TABLES)
def test_sparse_and_dense_plans_make_the_same_problem(table):
    if len(np.unique(table, axis=0)) < 2:
        return
    dense, thin = (largest(table), largest(sparse.csr_array(table)))
    assert (dense.plans == thin.plans.toarray()).all()
    assert dense.duplicates == thin.duplicates
    assert (dense.relevant == thin.relevant).all()


# what is asked of it


def test_values_keep_the_callers_sign_and_best_obeys_minimize():
    plans, means = [[1, 0], [0, 2]], [3.0, 1.0]
    assert sp.Problem(plans, goal="smallest", noise=1).values(means).tolist() == [3.0, 2.0]
    assert largest(plans).best(means) == 0
    assert sp.Problem(plans, goal="smallest", noise=1).best(means) == 1


def test_an_unknown_name_suggests_the_closest():
    problem = largest([[1, 0], [0, 1]], arms=["road", "rail"])
    with refuses("arm", ProblemError):
        problem.arm("raill")


@pytest.mark.parametrize("means", [[1.0], [1.0, np.nan], ["x", 1]])
def test_means_that_do_not_fit_are_refused(means):
    problem = largest([[1, 0], [0, 1]], arms=["road", "rail"])
    with refuses("means", ProblemError):
        problem.values(means)


# it never changes


def test_changing_the_callers_arrays_changes_nothing():
    plans, noise = np.eye(2), np.ones(2)
    problem = sp.Problem(plans, noise=noise, goal="largest")
    plans[0, 0] = noise[0] = 7.0
    assert problem.plans.tolist() == [[1, 0], [0, 1]]
    assert problem.noise_scale.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["plans", "noise_scale", "costs", "relevant"])
@pytest.mark.parametrize("again", [lambda p: p, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_its_arrays_refuse_to_be_written(name, again):
    with pytest.raises(ValueError, match="read-only"):
        getattr(again(largest(np.eye(2))), name)[0] = 5


# what is refused, and what the refusal says


@pytest.mark.parametrize(
    ("plans", "named"),
    [
        ([[1, 2]], "1 (of 1 rows)"),
        ([[1, 2], [1, 2]], "1 (of 2 rows)"),
        ([[0.0, 1], [-0.0, 1]], "1 (of 2 rows)"),
        *(
            (plans, str(np.shape(plans)))
            for plans in ([], [1, 2], 5, [[]], np.zeros((2, 2, 2)), np.zeros((0, 3)))
        ),
        (pd.DataFrame({"road": []}), "(0, 1)"),
        ([[1, 2], [3]], "[1, 2]"),
        (np.ma.masked_array([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]]), "row 'plan 0', column 'arm 1'"),
        (np.array([[1j, 0], [0, 1]]), "complex128"),
        ([[1, 2], [3, "four"]], "row 1, column 1"),
        ([[1, 2], "ab"], "row 1"),
        (
            pd.DataFrame({"road": [1, 0], "rail": [0, "fast"]}, index=["north", "south"]),
            "row 'south', column 'rail'",
        ),
    ],
)
def test_what_is_no_table_of_two_plans_is_refused_with_what_and_where_it_is(plans, named):
    refused = refusal(plans)
    assert refused.field == "plans"
    assert named in str(refused)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
def test_numbers_that_are_not_finite_are_refused_with_row_and_column(bad, kind):
    refused = refusal(kind([[1.0, 0.0], [0.0, 2.0], [1.0, bad]]), arms=["road", "rail"])
    assert refused.field == "plans"
    assert all(name in str(refused) for name in ("row 'plan 2', column 'rail'", str(bad)))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        *(
            (
                f"plan,road,rail\nnorth,1,0\nsouth,0,{cell}\n",
                ["row 'south', column 'rail'", "plans.csv'", repr(cell)],
            )
            for cell in ("fast", "1;5", "--", "1_000", "12.5 h")
        ),
        ("plan,road,rail\nnorth,1,0\nsouth,0,nan\n", ["row 'south', column 'rail'", "nan"]),
        ('plan,a,b\nx,1,"1,234"\ny,0,1\n', ["row 'x', column 'b'", "1.234 or 1234"]),
        ("plan,road,rail\n\nnorth,1,0\nsouth,0\n", ["line 4 of", "2 cells"]),
        ("", ["plans.csv'", "0 lines"]),
        ("plan,road\n", ["plans.csv'", "1 lines"]),
        ("plan\na\nb\n", ["plans.csv'", "1 cells"]),
    ],
)
def test_a_csv_file_that_is_no_table_is_refused_with_the_place(tmp_path, text, named):
    refused = refusal(write(tmp_path / "plans.csv", text))
    assert refused.field == "plans"
    assert all(name in str(refused) for name in named), refused


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffplan;Café;b, c\r\nx;1;0,5\r\ny;-,25;2e1\r\n",
        "plan\tCafé\tb, c\nx\t1\t0,5\ny\t-0.25\t20\n",
        'plan,Café,"b, c"\nx,1,0.5\ny,-.25,20\n',
    ],
    ids=["semicolons", "tabs", "commas"],
)
def test_a_csv_file_is_read_as_any_spreadsheet_writes_it(tmp_path, text):
    problem = largest(write(tmp_path / "plans.csv", text))
    assert (problem.arm_names, problem.plan_names) == (("Café", "b, c"), ("x", "y"))
    assert problem.plans.tolist() == [[1.0, 0.5], [-0.25, 20.0]]


def test_an_empty_cell_of_a_plan_is_0(tmp_path):
    problem = largest(write(tmp_path / "p.csv", "plan,a,b,\nx,1,,\ny,,2,\n"))
    assert problem.plans.tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_a_csv_file_that_is_not_there_or_not_utf8_is_refused(tmp_path):
    assert "absent.csv'" in str(refusal(tmp_path / "absent.csv"))
    path = write(tmp_path / "plans.csv", "plan,Köln,Graz\na,1,0\nb,0,1\n", encoding="latin-1")
    assert "UTF-8" in str(refusal(path))


@pytest.mark.parametrize("what", ["noise", "cost"])
@pytest.mark.parametrize(
    ("given", "named"),
    [
        *(([1, bad], f"{float(bad)}") for bad in (0, -1, np.nan, np.inf)),
        ([1, 2, 3], "(3,)"),
        ("much", "'much'"),
    ],
)
def test_noise_and_costs_are_positive_numbers_one_for_each_arm(what, given, named):
    refused = refusal([[1, 0], [0, 1]], **{what: given})
    assert refused.field == what
    assert named in str(refused)


@pytest.mark.parametrize("kind", ["arm", "plan"])
@pytest.mark.parametrize(
    ("names", "named"), [(["x", "x"], "'x'"), (["x", "y", "z"], "3"), ("xy", "'xy'"), (["x", ""], " 1 ")]
)
def test_names_are_a_list_of_different_ones_one_for_each(kind, names, named):
    word = {"arm": "arms", "plan": "plan_names"}[kind]
    refused = refusal([[1, 0], [0, 1]], **{word: names})
    assert refused.field == word
    assert named in str(refused)


# tables from files


HUGE = 10**400  # a whole number that no float is


@pytest.mark.parametrize(
    "build",
    [
        lambda: largest([[HUGE, 0], [0, 1]]),
        lambda: sp.Problem(np.eye(2), noise=HUGE, goal="largest"),
        lambda: largest(np.eye(2), cost=[1, HUGE]),
        lambda: sp.Problem(np.eye(2), low=0, high=HUGE, goal="largest"),
        lambda: largest(np.eye(2)).with_plan("third", [HUGE, 1]),
        lambda: Past.from_history(largest(np.eye(2)), [HUGE, 1], [0.0, 0.0]),
        lambda: Past.from_guess(largest(np.eye(2)), [HUGE, 1], [1.0, 1.0]),
        lambda: settled(largest(np.eye(2)), [NewArm("third", cost=HUGE)]),
        lambda: settled(largest(np.eye(2)), [NewArm("third", noise=HUGE)]),
        lambda: sp.Session.create("memory://", "s", largest(np.eye(2)), policy=sp.BetGapE(), lease=HUGE),
        lambda: sp.Session.create("memory://", "s", largest(np.eye(2)), policy=sp.BetGapE(), budget=HUGE),
        lambda: Gaussian([HUGE, 0]),
    ],
)
def test_whole_numbers_that_no_float_is_are_refused_in_words(build):
    with pytest.raises(SurepickError):
        build()


def test_a_workbook_that_unpacks_to_more_than_a_table_can_be_is_refused(tmp_path):
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", b" " * (2**26 + 1))
    assert path.stat().st_size < 2**17
    with pytest.raises(ProblemError):
        read_table(path)
