"""The cache of machine code, tried with a copy of the package in processes of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba.extending import overload

import surepick
from surepick.kernels.compiled import is_compiling
from surepick.kernels.lean_compiler import Ours

CALLEE = """
from surepick.kernels.compiled import compiled
STEP = {step}

@compiled
def moved(x):
    return x + STEP
"""
CALLER = """
from surepick.kernels.callee import moved
from surepick.kernels.compiled import compiled

@compiled
def moved_twice(x):
    return moved(moved(x))
"""
ASK = """
from surepick.kernels.caller import moved_twice
print(moved_twice(0.0), sum(moved_twice.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    copy = tmp_path / "copy" / "surepick"
    shutil.copytree(Path(surepick.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "kernels" / "caller.py").write_text(CALLER)
    write_step(copy, 1.0)
    return copy


def write_step(package, step):
    (package / "kernels" / "callee.py").write_text(CALLEE.format(step=step))


def ask(package, **environment):
    """What the caller computes in a fresh process, and whether it came from the cache."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    clean |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    done = subprocess.run(
        [sys.executable, "-c", ASK], env=clean, cwd=package.parent, capture_output=True, text=True, check=True
    )
    result, hits = done.stdout.split()
    return float(result), bool(int(hits))


@pytest.mark.parametrize("place", ["package", "user", "given"])
def test_a_change_in_the_file_of_a_callee_is_seen(package, tmp_path, place):
    environment, folder = {}, package / "__pycache__"
    if place == "given":
        folder = tmp_path / "given"
        environment = {"NUMBA_CACHE_DIR": str(folder)}
    if place == "user":  # the package cannot be written: where its folder should be, there is a file
        folder.touch()
        folder = tmp_path / "cache" / "surepick"
        environment = {"XDG_CACHE_HOME": str(folder.parent)}
    assert ask(package, **environment) == (2.0, False)
    assert ask(package, **environment) == (2.0, True)
    write_step(package, 5.0)
    assert ask(package, **environment) == (10.0, False)
    assert len(list(folder.glob("surepick-*"))) == 2


def test_code_is_compiled_where_nothing_can_be_written(package, tmp_path):
    (package / "__pycache__").touch()
    (tmp_path / "cache").touch()
    assert ask(package, XDG_CACHE_HOME=str(tmp_path / "cache")) == (2.0, False)


def test_folders_of_long_gone_sources_are_removed(package):
    for age in range(9):
        old = package / "__pycache__" / f"surepick-{age}"
        old.mkdir(parents=True)
        os.utime(old, (10**9 - age, 10**9 - age))
    ask(package)
    left = {path.name for path in (package / "__pycache__").iterdir()}
    assert {name for name in left if len(name) < 12} == {
        "surepick-0",
        "surepick-1",
        "surepick-2",
        "surepick-3",
    }
    assert len(left) == 5


LINKED = """
import sys
from surepick.kernels.compiled import compiled, compiled_in_place, compiled_inner, is_compiling

@compiled_inner
def halved(x):
    if x < 0.0:
        raise ValueError("below zero")
    return x / 2.0

@compiled_in_place
def quartered(x):
    return halved(halved(x))

@compiled
def eighth(x):
    return halved(quartered(x))

before = is_compiling()
print(eighth(8.0), before, is_compiling())
try:
    eighth(-8.0)
except ValueError as error:
    print(error)
print([name for name in ("scipy.linalg", "scipy.sparse") if name in sys.modules])
"""


def test_inner_functions_are_linked_into_who_calls_them_and_read_with_it_from_the_cache(tmp_path):
    (tmp_path / "linked.py").write_text(LINKED)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, "linked.py"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for _ in range(2)
    ]
    compiled, read = said
    assert compiled == ["1.0 False True", "below zero", "[]"]
    assert read == ["1.0 False False", "below zero", "[]"]
    kept = {path.name.split("-")[0] for path in tmp_path.rglob("*.nbc")}
    assert kept == {"linked.eighth"}


def test_who_compiles_a_product_of_matrices_still_can():
    code = """
import numpy as np
import surepick.kernels.compiled
import numba
two = 2 * np.eye(2)
print(numba.njit(lambda a: a @ a)(two)[1, 1], numba.njit(lambda a: np.linalg.inv(a))(two)[0, 0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["4.0", "0.5"]


LEAN = """
import math
import numba
import numpy as np
from surepick.kernels.compiled import compiled, compiled_allocating

def total(values, rate):
    result, most = 0.0, -np.inf
    for i in range(len(values)):
        result += math.exp(rate * values[i]) * values[i] ** 2 / (1.0 + abs(values[i]))
        most = max(most, values[i] // 3)
    return result - most

def sorted_total(values, rate):
    return total_too(np.sort(values[values > rate]), rate)

values = np.random.default_rng(1).normal(size=1001)
total_too = compiled(total)
plain = numba.njit(total)  # after ours: what Numba has chosen once must do for others, too
print(total_too(values, 0.3) == plain(values, 0.3) == total(values, 0.3))
ours = compiled_allocating(sorted_total)(values, 0.3)
total_too = plain
print(ours == numba.njit(lambda v, r: total_too(np.sort(v[v > r]), r))(values, 0.3))
"""


def test_what_is_spared_changes_no_bit(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    (tmp_path / "lean.py").write_text(LEAN)
    done = subprocess.run(
        [sys.executable, "lean.py"], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True"]


QUIET = """
import sys
import numba
from numba.extending import overload
from surepick.kernels.compiled import compiled

def halved(x):
    return x / 2

@compiled
def moved(x):
    return max(x, 1.0) + 1.0

moved(1.0)

@overload(halved)  # declared when other functions were compiled already
def _halved(x):
    return lambda x: x / 2

@compiled
def moved_back(x):
    return halved(moved(x))

colorama = sys.modules.get("colorama.initialise")
print(moved_back(1.0), colorama is None or colorama.orig_stdout is None)
"""


def test_numba_sees_late_declarations_and_leaves_the_standard_output_alone(tmp_path):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    clean |= {"PYTHONPATH": str(Path(surepick.__file__).parent.parent), "NUMBA_CACHE_DIR": str(tmp_path)}
    (tmp_path / "quiet.py").write_text(QUIET)
    done = subprocess.run(
        [sys.executable, tmp_path / "quiet.py"], env=clean, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["1.0", "True"], done.stderr


def test_functions_of_others_get_what_numba_chooses():
    seen = []

    def halved(x):
        return x / 2

    @overload(halved)
    def _halved(x):
        seen.append(Ours.is_compiling)
        return lambda x: x / 2

    def theirs(x):
        return halved(x)

    def ours(x):
        return halved(x) + 1

    ours.__module__ = "surepick.kernels.ours"
    assert numba.njit(theirs)(2.0) == 1.0
    assert not any(seen)
    seen.clear()
    assert numba.njit(ours)(2) == 2.0
    assert seen
    assert all(seen)
    assert is_compiling()  # something was
    assert not Ours.is_compiling
