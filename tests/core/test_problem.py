"""A problem: what is accepted as plans, what is merged, what never changes, and what is refused and where."""

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
from common import refuses
from surepick.errors import ProblemError, SurepickError
from surepick.tables import read_table

SMALL_TABLES = hnp.arrays(
    float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.integers(-2, 2)
)


def problem(plans=((1, 0), (0, 1)), **given):
    return sp.Problem(plans, **{"noise": 1, "goal": "largest", **given})


def refusal(*args, **options):
    """Return the error with which a problem is refused."""
    with pytest.raises(ProblemError) as caught:
        problem(*args, **options)
    return caught.value


def write(path, text, *, encoding="utf-8"):
    path.write_text(text, encoding=encoding)
    return path


def test_plans_names_noise_and_costs_are_kept_as_given():
    found = problem([[1, 0, 2], [0, 1, 2]], noise=[1, 3, 2], cost=np.array([5, 0.5, 1]))
    assert (found.n_plans, found.n_arms) == (2, 3)
    assert found.plans.tolist() == [[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]]
    assert found.arm_names == ("arm 0", "arm 1", "arm 2")
    assert found.plan_names == ("plan 0", "plan 1")
    assert found.noise_scale.tolist() == [1.0, 3.0, 2.0]
    assert found.costs.tolist() == [5.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("text", "arms", "plans"),
    [
        ("plan,road,rail\nnorth,1,0\n\nsouth, 0 ,2.5\n", ("road", "rail"), [[1, 0], [0, 2.5]]),
        ("\ufeff,Köln,Graz\r\na,1,0\r\nb,0,1\r\n", ("Köln", "Graz"), [[1, 0], [0, 1]]),
        ('plan,"Paris, France",rail\na,1,0\nb,0,1\n', ("Paris, France", "rail"), [[1, 0], [0, 1]]),
        ("\ufeffplan;Café;b, c\r\nx;1;0,5\r\ny;-,25;2e1\r\n", ("Café", "b, c"), [[1, 0.5], [-0.25, 20]]),
        ("plan\tCafé\tb, c\nx\t1\t0,5\ny\t-0.25\t20\n", ("Café", "b, c"), [[1, 0.5], [-0.25, 20]]),
        ('plan,a,b\nx,1,"0,5"\ny,0,1\n', ("a", "b"), [[1, 0.5], [0, 1]]),  # a decimal comma
        ("plan,a,b,\nx,1,,\ny,,2,\n", ("a", "b"), [[1, 0], [0, 2]]),  # an empty cell is 0
    ],
)
def test_a_csv_file_is_read_as_any_spreadsheet_writes_it(tmp_path, text, arms, plans):
    table = read_table(write(tmp_path / "plans.csv", text), empty=0.0)
    assert table.column_names == arms
    assert table.numbers.tolist() == plans


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_plans_stay_sparse(kind):
    found = problem(kind(np.array([[1.0, 0, 2], [0, 1, 2]])))
    assert isinstance(found.plans, sparse.csr_array)
    assert found.relevant.tolist() == [True, True, False]


def test_equal_plans_are_merged_and_reported():
    found = problem([[1, 0], [0, 1], [1, -0.0]], plan_names=["a", "b", "c"])
    assert (found.plan_names, found.duplicates, found.plan("c")) == (("a", "b"), (("c", "a"),), 0)
    rows = sparse.csr_array(([1.0, 0.0, 1.0, 1.0], ([0, 0, 1, 2], [0, 1, 1, 0])), shape=(3, 2))
    assert problem(rows).duplicates == (("plan 2", "plan 0"),)  # whatever zeros are stored


@settings(deadline=None)
@given(SMALL_TABLES)
def test_the_distinct_rows_remain_in_their_order_dense_or_sparse(table):
    distinct = list(dict.fromkeys(tuple(row) for row in table.tolist()))
    if len(distinct) < 2:
        assert refusal(table).field == "plans"
        return
    dense, thin = problem(table), problem(sparse.csr_array(table))
    assert [tuple(row) for row in dense.plans.tolist()] == distinct
    assert dense.n_plans + len(dense.duplicates) == len(table)
    assert dense.relevant.tolist() == [len(set(column)) > 1 for column in table.T.tolist()]
    assert (dense.plans == thin.plans.toarray()).all()
    assert dense.duplicates == thin.duplicates
    assert (dense.relevant == thin.relevant).all()


def test_values_keep_the_callers_sign_and_ties_go_to_the_lowest_index():
    plans, means = [[1, 0], [0, 2]], [3.0, 1.0]
    least = problem(plans, goal="smallest")
    assert least.values(means).tolist() == [3.0, 2.0]
    assert (problem(plans).best(means), least.best(means)) == (0, 1)
    assert (problem().best([2, 2]), problem(goal="smallest").best([2, 2])) == (0, 0)
    assert problem(plans).oriented.tolist() == [[1, 0], [0, 2]]
    assert least.oriented.tolist() == [[-1, 0], [0, -2]]


def test_names_find_their_index_and_others_are_refused():
    found = problem(arms=["road", "rail"], plan_names=["north", "south"])
    assert (found.arm("rail"), found.plan("south")) == (1, 1)
    for find, field in ((found.arm, "arm"), (found.plan, "plan")):
        with refuses(field, ProblemError):
            find("raill")


@pytest.mark.parametrize("means", [[1.0], [1.0, np.nan], ["x", 1]])
def test_means_that_do_not_fit_are_refused(means):
    with refuses("means", ProblemError):
        problem().values(means)


def test_changing_the_callers_arrays_changes_nothing():
    plans, noise, thin = np.eye(2), np.ones(2), sparse.csr_array(np.eye(2))
    found, other = problem(plans, noise=noise), problem(thin)
    plans[0, 0] = noise[0] = thin.data[0] = 7.0
    assert found.plans.tolist() == other.plans.toarray().tolist() == [[1, 0], [0, 1]]
    assert found.noise_scale.tolist() == [1, 1]


@pytest.mark.parametrize("again", [lambda p: p, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_its_arrays_and_fields_refuse_to_be_written(again):
    found = again(problem())
    for name in ("plans", "noise_scale", "costs", "relevant"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(found, name)[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        again(problem(sparse.csr_array(np.eye(2)))).plans[0, 0] = 5
    with pytest.raises(AttributeError):
        found.minimize = True


@pytest.mark.parametrize(
    ("plans", "where"),
    [
        ([[1, 2]], "1 (of 1 rows)"),
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
        *(
            (kind([[1.0, 0.0], [0.0, 2.0], [1.0, bad]]), "row 'plan 2', column 'arm 1'")
            for bad in (np.nan, np.inf, -np.inf, 1e31)
            for kind in (np.array, sparse.csr_array)
        ),
    ],
)
def test_what_is_no_table_of_two_plans_is_refused_with_the_place(plans, where):
    refused = refusal(plans)
    assert refused.field == "plans"
    assert where in str(refused)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        *(
            (f"plan,road,rail\nnorth,1,0\nsouth,0,{cell}\n", "row 'south', column 'rail'")
            for cell in ("fast", "1;5", "--", "1_000", "12.5 h")
        ),
        ('plan,a,b\nx,1,"1,234"\ny,0,1\n', "row 'x', column 'b'"),
        ("plan,road,rail\n\nnorth,1,0\nsouth,0\n", "line 4 of"),
        *((text, "plans.csv'") for text in ("", "plan,road\n", "plan\na\nb\n")),
    ],
)
def test_a_csv_file_that_is_no_table_is_refused_with_the_place(tmp_path, text, where):
    with pytest.raises(SurepickError) as refused:
        read_table(write(tmp_path / "plans.csv", text), empty=0.0)
    assert where in str(refused.value)


def test_a_file_that_is_not_there_not_utf8_or_too_large_is_refused(tmp_path):
    assert refusal(tmp_path / "absent.csv").field == "plans"  # files are read by sp.load
    latin = write(tmp_path / "plans.csv", "plan,Köln,Graz\na,1,0\nb,0,1\n", encoding="latin-1")
    path = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", b" " * (2**26 + 1))
    assert path.stat().st_size < 2**17
    for file in (tmp_path / "absent.csv", latin, path):
        with pytest.raises(ProblemError):
            read_table(file)
