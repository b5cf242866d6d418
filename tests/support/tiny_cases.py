"""Small cases for the tests of experiments, and case runners that misbehave."""

import os
import signal
from dataclasses import replace

from surepick.experiments import Case, run_case

PUBLISHED = "CombGapE:radius=published"


def problem(gap=1.0, n_arms=2):
    """Plans that take one arm each, of which the first is better by the gap."""
    plans = [[float(i == j) for j in range(n_arms)] for i in range(n_arms)]
    return {"kind": "given", "plans": plans, "means": [gap] + [0.0] * (n_arms - 1)}


def quick_cases(n):
    return [Case(problem(), PUBLISHED, seed) for seed in range(n)]


def slow_cases(n, budget=30_000):
    """Cases that never answer, since their plans tie: each lasts as long as its budget."""
    return [Case(problem(gap=0.0, n_arms=40), PUBLISHED, seed, budget) for seed in range(n)]


def untimed(rows):
    """The rows without what may differ between two runs."""
    return [replace(row, seconds=0.0, cpu_seconds=0.0) for row in rows]


def die_at_seed_3(case):
    if case.seed == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_case(case)


def raise_at_seed_3(case):
    if case.seed == 3:
        raise ValueError("seed 3 is not for me")
    return run_case(case)


def always_die(case):
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError(case)
