"""Linear and integer programs: no plan brings more, and MPS files are read to the letter."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from surepick import problems
from surepick.errors import FileError, ProblemError
from surepick.problems.kinds.program import as_program, least_plan, solving_within
from surepick.simulation import Gaussian


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
    plan = least_plan(as_program(use, limits, upper=upper, whole=whole), -weights)
    assert (use @ plan <= limits + 1e-9).all()
    best = best_whole(*case) if whole else best_vertex(*case)
    assert weights @ plan == pytest.approx(best, abs=1e-7)
    if whole:
        assert (plan == np.round(plan)).all()


def market_split(n_rows=4, n_variables=40, seed=0):
    """An integer program that no branch and bound likes: equal shares of many random numbers."""
    use = np.random.default_rng(seed).integers(0, 100, (n_rows, n_variables)).astype(float)
    return as_program(use, use.sum(axis=1) // 2, senses="=", upper=1, whole=True)


def test_all_programs_of_a_problem_together_have_their_time():
    with solving_within(0.3), pytest.raises(ProblemError):
        problems.production(market_split(seed=1))
    with solving_within(-1.0), pytest.raises(ProblemError):
        problems.production(as_program([[1, 2], [3, 1]], [8, 9]))
    problems.production(as_program([[1, 2], [3, 1]], [8, 9]))  # the limit is over


@pytest.mark.parametrize("more", [{"upper": 4.0}, {"lower": [1, 0]}, {"whole": True}, {"goal": "smallest"}])
def test_what_a_program_says_is_not_said_again(more):
    program = as_program([[1, 2], [3, 1]], [8, 9], [3.0, 4.0])
    with pytest.raises(ProblemError) as caught:
        problems.production(program, **more)
    assert [caught.value.field] == list(more)


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


def test_an_mps_file_says_all_of_a_program(tmp_path):
    (tmp_path / "joiner.mps").write_text(MPS)
    program = problems.read_program(tmp_path / "joiner.mps")
    assert program.variable_names == ("CHAIR", "TABLE")
    assert program.objective.tolist() == [20, 45]
    assert program.whole.tolist() == [True, False]
    assert program.upper.tolist() == [9, np.inf]
    assert program.goal == "largest"
    assert least_plan(program, -program.objective).tolist() == [9, 3]
    assert least_plan(program, np.array([1.0, 1.0])).tolist() == [0, 3]
    problem = problems.production(tmp_path / "joiner.mps", spread=[30, 1], n_draws=100, noise=1)
    assert problem.arm_names == ("CHAIR", "TABLE")


def test_every_kind_of_bound_and_range_of_an_mps_file_is_read(tmp_path):
    bounds = {
        "UP BND a 4": (0, 4),
        "UP BND a 1e30": (0, np.inf),
        "UP a 6": (0, 6),
        "LO BND a -2": (-2, np.inf),
        "LO BND a -5\n UP BND a -3": (-5, -3),
        "FX BND a 3": (3, 3),
        "FR BND a": (-np.inf, np.inf),
        "MI BND a": (-np.inf, np.inf),
        "PL BND a": (0, np.inf),
        "BV BND a": (0, 1),
        "LI BND a 2": (2, np.inf),
        "UI BND a 7": (0, 7),
    }
    for line, limits in bounds.items():
        program = read_mps(tmp_path, f"BOUNDS\n {line}\n")
        assert (program.lower[0], program.upper[0]) == limits, line
        assert program.whole[0] == (line[:2] in ("BV", "LI", "UI")), line
    assert read_mps(tmp_path, "RANGES\n R less 3 more 2\n R even -1\n").row_lower.tolist() == [5, 4, 1]
    assert read_mps(tmp_path, "RANGES\n R less 3 more 2\n R even -1\n").row_upper.tolist() == [8, 6, 2]
    assert read_mps(tmp_path, "RANGES\n R even 1\n").row_upper.tolist() == [8, np.inf, 3]


def read_mps(folder, end):
    rows = "ROWS\n N worth\n N other\n L less\n G more\n E even\n"
    columns = "COLUMNS\n a worth 1 less 2\n a more 3 even 1\n b worth -.5e1 other 9\n b less 1\n"
    (folder / "case.mps").write_text(f"{rows}{columns}RHS\n less 8 more 4\n even 2\n{end}ENDATA\n")
    program = problems.read_program(folder / "case.mps")
    assert program.variable_names == ("a", "b")
    assert program.matrix.tolist() == [[2, 1], [3, 0], [1, 0]]
    assert program.objective.tolist() == [1, -5]
    assert program.goal == "smallest"
    return program


BOUND = " UP LIMIT     CHAIR      9.0"
MARKER = "    MARKER    'MARKER'   'INTORG'\n"
CHAIR = "    CHAIR     PROFIT     20.0    WOOD    2.0\n"


@pytest.mark.parametrize(
    "change",
    [
        ("ENDATA", ""),
        ("ROWS", "ENDATA"),
        ("RANGES", "QUADOBJ"),
        ("ENDATA", "SOS\n S1 SOS s1 1\nENDATA"),
        (BOUND, " SC LIMIT     CHAIR      9.0"),
        ("    CHAIR     HOURS      1.0", "    CHAIR     HOUR      1.0"),
        ("6.0", "six"),
        ("6.0", "6,5"),
        ("6.0", "1e999"),
        ("MAX\n", "LARGE\n"),
        ("CHAIR      9.0", "CHAIR      9.0\n UP LIMIT SOFA 2"),
        (BOUND, " UP TABLE TABLE 3\n" + BOUND),
        ("RHS\n", "RHS\n    A         HOURS      1.0\n"),
        ("RHS\n", "RHS\n    B         PROFIT     -5\n"),
        (BOUND, BOUND + "\n UP LIMIT CHAIR 8"),
        (BOUND, " UP LIMIT CHAIR -9"),
        (BOUND, ""),
        (" N  PROFIT", " L  PROFIT"),
        (BOUND, " UP"),
        ("COLUMNS\n", "COLUMNS\n    CHAIR\n"),
        ("COLUMNS\n", "COLUMNS\n    WOOD 3.0\n"),
        (MARKER, ""),
        (f"{MARKER}{CHAIR}", f"{CHAIR}{MARKER}"),
        ("RHS", "RANGES"),
    ],
)
def test_what_an_mps_file_says_beyond_the_subset_is_refused(tmp_path, change):
    (tmp_path / "case.mps").write_text(MPS.replace(*change))
    with pytest.raises(FileError) as caught:
        problems.read_program(tmp_path / "case.mps")
    assert "case.mps" in str(caught.value)


def test_variables_that_the_objective_does_not_have_are_known_and_never_measured(tmp_path):
    file = tmp_path / "mix.mps"
    columns = " x p 3 a 1\n x b 1\n y p 2 a 1\n y b 3\n s a 1 b -1\n"
    head = f"OBJSENSE\n MAX\nROWS\n N p\n L a\n L b\nCOLUMNS\n{columns}"
    file.write_text(f"{head}RHS\n a 4 b 6\nENDATA\n")
    problem = sp.problems.production(file, noise=1)
    assert problem.is_known.tolist() == [False, False, True]
    outcome = sp.simulate(problem, Gaussian([3.0, 2.0, 0.0]), policy=sp.BetGapE(), seed=1)
    assert outcome.counts[2] == 0
    assert outcome.plan == (4.0, 0.0, 0.0)
