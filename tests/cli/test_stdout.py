"""Standard output holds the answer and nothing else, and says so when it cannot be written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """kind = "production"
use = [[1, 2], [3, 1]]
limits = [8, 9]
whole = true
guess = [3.0, 4.0]
spread = 3.0
n_draws = 20
noise = 1.0
"""
# As HiGHS does on some hard integer programs: C code that writes to file descriptor 1 by itself.
NOISY = """
import ctypes, sys
import scipy.optimize as optimize
solve, c = optimize.milp, ctypes.CDLL(None)
def milp(*given, **options):
    c.puts(b"HighsMipSolverData: a line that nobody asked for")
    c.fflush(None)
    return solve(*given, **options)
optimize.milp = milp
from surepick.cli import main
sys.argv = ["surepick", *sys.argv[1:]]
main()
"""


def check(*python, output=subprocess.PIPE):
    """Check a program, with this way to begin Python."""
    Path("program.toml").write_text(PROGRAM)
    words = [sys.executable, *python, "check", "program.toml", "--rehearsals", "1", "--json"]
    return subprocess.run(words, stdout=output, stderr=subprocess.PIPE, text=True, timeout=120)


@pytest.mark.skipif(os.name != "posix", reason="the noise is made by the C library of a POSIX system")
def test_a_solver_that_prints_does_not_spoil_the_json():
    answer = check("-c", NOISY)
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["n_arms"] == 2
    assert "a line that nobody asked for" in answer.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_that_cannot_be_written_is_one_clear_line():
    with Path("/dev/full").open("w") as full:
        answer = check("-m", "surepick", output=full)
    assert answer.returncode == 2
    assert "No space left" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_reader_who_has_enough_is_no_traceback():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        answer = check("-m", "surepick", output=writer)
    finally:
        os.close(writer)
    assert answer.returncode == 1
    assert answer.stderr == ""
