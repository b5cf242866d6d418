"""Loops are compiled where Numba is there, and run as they are where it is not."""

import subprocess
import sys

import pytest

RUN = """
import sys
if {hidden}:
    sys.modules["numba"] = None
import numpy as np
import surepick as sp
from surepick.simulation import Gaussian
problem, truth = sp.Problem(np.eye(3), noise=1, goal="largest"), Gaussian([2.0, 0.5, 0.0])
outcome = sp.simulate(problem, truth, policy=sp.{policy}(0.1), seed=4)
print(outcome.plan, outcome.counts.tolist())
"""


@pytest.mark.parametrize("policy", ["BetGapE", "CombGapE"])
def test_without_numba_runs_are_the_same(policy):
    found = [
        subprocess.run(
            [sys.executable, "-c", RUN.format(hidden=hidden, policy=policy)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hidden in (False, True)
    ]
    assert found[0] == found[1]
    assert found[0].startswith("0 ")
