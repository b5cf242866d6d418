from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick import problems
from surepick.errors import FileError, ProblemError
from surepick.problems.program import solve_program

MPS = """* A joiner's year
NAME          JOINER
OBJSENSE
    MAX
ROWS
 N  PROFIT
 L  WOOD
 G  HOURS
 E  PAINT
COLUMNS
    MARKER    'MARKER'   'INTORG'
    CHAIR     PROFIT     20.0    WOOD    2.0
    CHAIR     HOURS      1.0
    MARKER    'MARKER'   'INTEND'
    TABLE     PROFIT     45.0    WOOD    6.0
    TABLE     PAINT      1.0
RHS
    B         WOOD       40.0    PAINT   3.0
RANGES
    R         WOOD       30.0
BOUNDS
 UP LIMIT     CHAIR      9.0
ENDATA
"""
LP = """\\ the same
Maximize
 profit: 20 CHAIR
   + 45 TABLE
Subject To
 wood: 2 CHAIR + 6 TABLE <= 40
 low: 2 CHAIR + 6 TABLE >= 10
 hours: CHAIR >= 0
 paint: TABLE = 3
Bounds
 CHAIR <= 9
General
 CHAIR
End
"""


@st.composite
def programs(draw):
    n_rows, n = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    entries = st.integers(0, 5)
    use = np.array(draw(st.lists(entries, min_size=n_rows * n, max_size=n_rows * n))).reshape(n_rows, n)
    limits = np.array(draw(st.lists(st.integers(0, 12), min_size=n_rows, max_size=n_rows)))
    upper = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    weights = np.array(draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)))
    return use.astype(float), limits.astype(float), upper.astype(float), weights.astype(float)


def best_whole(use, limits, upper, weights):
    points = (np.array(x) for x in product(*(range(int(u) + 1) for u in upper)))
    return max(weights @ x for x in points if (use @ x <= limits).all())


def best_vertex(use, limits, upper, weights):
    """The best vertex, by solving every system of n tight constraints."""
    n = len(upper)
    rows, right = np.vstack([use, np.eye(n), np.eye(n)]), np.concatenate([limits, upper, np.zeros(n)])
    values = []
    for tight in combinations(range(len(rows)), n):
        matrix = rows[list(tight)]
        if abs(np.linalg.det(matrix)) > 1e-9:
            x = np.linalg.solve(matrix, right[list(tight)])
            if (use @ x <= limits + 1e-9).all() and (x >= -1e-9).all() and (x <= upper + 1e-9).all():
                values.append(weights @ x)
    return max(values)


@settings(deadline=None, max_examples=60)
@given(programs(), st.booleans())
def test_no_plan_within_the_limits_brings_more(case, whole):
    use, limits, upper, weights = case
    plan = solve_program(problems.as_program(use, limits, upper=upper, whole=whole), weights)
    assert (use @ plan <= limits + 1e-9).all()
    best = best_whole(*case) if whole else best_vertex(*case)
    assert weights @ plan == pytest.approx(best, abs=1e-7)
    if whole:
        assert (plan == np.round(plan)).all()


def test_the_problem_keeps_names_and_whole_numbers_to_the_answer():
    problem = problems.production(
        [[2, 6], [3, 5]],
        [20, 25],
        [20, 45],
        whole=True,
        spread=15,
        n_draws=40,
        variable_names=["chair", "table"],
    )
    assert problem.arm_names == ("chair", "table")
    assert (problem.plans == np.round(problem.plans)).all()
    assert any("chair" in name for name in problem.plan_names)


def test_programs_may_minimise_and_compare_in_all_ways():
    program = problems.as_program(
        [[1, 1], [1, 0], [0, 1]], [4, 1, 3], senses=[">=", "=", "<="], minimize=True
    )
    assert solve_program(program, np.array([1.0, 2.0])).tolist() == [1, 3]


@pytest.mark.parametrize(("name", "text"), [("joiner.mps", MPS), ("joiner.lp", LP)])
def test_mps_and_lp_files_say_the_same(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    program = problems.read_program(tmp_path / name)
    assert program.variable_names == ("CHAIR", "TABLE")
    assert program.objective.tolist() == [20, 45]
    assert program.whole.tolist() == [True, False]
    assert program.upper.tolist() == [9, np.inf]
    assert not program.minimize
    assert solve_program(program, program.objective).tolist() == [9, 3]
    assert solve_program(program, np.array([-1.0, -1.0])).tolist() == [0, 3]
    problem = problems.production(tmp_path / name, spread=[30, 1], n_draws=100)
    assert problem.arm_names == ("CHAIR", "TABLE")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("ENDATA", ""), "ends without ENDATA"),
        (("RANGES", "QUADOBJ"), "section 'QUADOBJ' is not read"),
        (("UP LIMIT     CHAIR      9.0", "SC LIMIT     CHAIR      9.0"), "bounds of kind 'SC'"),
        (("    CHAIR     HOURS      1.0", "    CHAIR     HOUR      1.0"), "no row named 'HOUR'"),
        (("6.0", "six"), "line 15"),
        (("MAX\n", "LARGE\n"), "OBJSENSE is MAX or MIN"),
        (("CHAIR      9.0", "CHAIRS     9.0"), "no column named 'CHAIRS'"),
        ((" N  PROFIT", " L  PROFIT"), "needs an N row"),
    ],
)
def test_what_an_mps_file_says_beyond_the_subset_is_refused(tmp_path, change, says):
    (tmp_path / "case.mps").write_text(MPS.replace(*change))
    with pytest.raises(FileError) as caught:
        problems.read_program(tmp_path / "case.mps")
    assert says in str(caught.value)
    assert "case.mps" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("End", ""), "ends without End"),
        (("Maximize", "Optimise"), "instead of Maximize or Minimize"),
        (("20 CHAIR", "20 CHAIR ^ 2"), "expected a sum"),
        (("<= 40", "<= forty"), "expected a number"),
        ((" CHAIR <= 9", " SOFA <= 9"), "'SOFA' has a bound or a kind but is in no sum"),
    ],
)
def test_what_an_lp_file_says_beyond_the_subset_is_refused(tmp_path, change, says):
    (tmp_path / "case.lp").write_text(LP.replace(*change, 1))
    with pytest.raises(FileError) as caught:
        problems.read_program(tmp_path / "case.lp")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("args", "options", "says"),
    [
        (([[1, 1]], [-1], [1, 1]), {}, "infeasible: no plan keeps all constraints"),
        (([[1, -1]], [1], [1, 1]), {}, "unbounded: it grows for ever along some variables such as"),
        (([[1, 1]], [1], [1, 1]), {"upper": [2, -1]}, "lower must not exceed upper, got 0 and -1"),
        (([[1, 1]], [1, 2], [1, 1]), {}, "one number for each of the 1 rows, got 2"),
        (([[1, 1]], [1], [1, 1, 1]), {}, "one number for each of the 2 variables, got 3"),
        (([[1, 1]], [1], [1, 1]), {"senses": "<"}, "senses must be"),
        (([[1, 1]], [1], [5, 1]), {"n_draws": 50}, "all 50 draws lead to the same plan"),
    ],
)
def test_programs_without_a_choice_are_refused(args, options, says):
    with pytest.raises(ProblemError) as caught:
        problems.production(*args, **options)
    assert says in str(caught.value)


def test_other_program_files_are_refused():
    with pytest.raises(ProblemError, match=r"ends in \.mps or \.lp"):
        problems.read_program("case.xls")


# portfolios


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=5), st.floats(0.3, 1.0))
def test_the_best_portfolio_fills_the_best_assets_first(returns, most):
    if most * len(returns) < 1:
        return
    family = problems.portfolio_family([f"a{s}" for s in range(len(returns))], upper=most)
    plan, left, value = family.best(returns), 1.0, 0.0
    for r in sorted(returns, reverse=True):
        value += r * min(most, left)
        left -= min(most, left)
    assert plan.sum() == pytest.approx(1)
    assert np.array(returns) @ plan == pytest.approx(value, abs=1e-6)


def test_groups_limit_sums_of_assets():
    family = problems.portfolio_family(["a", "b", "c"], budget=100, groups={"risky": (["a", "b"], 30)})
    assert family.best([3.0, 2.0, 1.0]).tolist() == [30, 0, 70]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"upper": 0.2}, "cannot hold the budget of 1"),
        ({"lower": 0.6}, "cannot hold the budget of 1"),
        ({"lower": [-0.1, 0]}, "lower must be 0 or more, got -0.1 for 'asset 0'"),
        ({"budget": 0}, "budget must be positive"),
        ({"groups": {"g": (["gold"], 1)}}, "group 'g' names an unknown asset 'gold'"),
        ({"groups": {"g": (["asset 0", "asset 1"], 0.5)}}, "infeasible"),
    ],
)
def test_portfolios_that_cannot_be_are_refused(options, says):
    with pytest.raises(ProblemError) as caught:
        problems.portfolio([1, 2], **options)
    assert says in str(caught.value)
