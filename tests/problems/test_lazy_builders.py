import importlib
import subprocess
import sys

from surepick import problems

SLOW = ("numba", "ot", "pandas")


def loaded_after(code):
    """Which of the slow packages a fresh interpreter has loaded after running this."""
    report = f"import sys; {code}; print(*[name for name in {SLOW} if name in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True
    ).stdout.split()


def test_importing_the_builders_loads_nothing_slow():
    assert loaded_after("import surepick.problems; surepick.problems.knapsack") == []


def test_a_table_file_loads_nothing_slow(tmp_path):
    (tmp_path / "case.toml").write_text('kind = "table"\ngoal = "largest"\nplans = [[1, 0], [0, 1]]')
    assert loaded_after(f"import surepick; surepick.load({str(tmp_path / 'case.toml')!r})") == []


def test_builders_stay_functions_after_their_modules_are_imported():
    importlib.import_module("surepick.problems.kinds.knapsack")
    importlib.import_module("surepick.problems.kinds.transport")
    assert callable(problems.knapsack)
    assert callable(problems.transport)


def test_every_public_name_is_there():
    assert all(hasattr(problems, name) for name in problems.__all__)
    assert set(problems.__all__) == set(dir(problems))
