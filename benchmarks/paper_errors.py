"""The errors in the CombGapE paper, each shown by a number: the table of docs/benchmarks.md.

python benchmarks/paper_errors.py             # all of them; the example takes some minutes
python benchmarks/paper_errors.py factor-4    # one of them
"""

import math
import sys

import numpy as np

import surepick as sp
from surepick.simulation import Gaussian
from surepick.simulation.comparison import summary

DELTA = 0.05


def factor_4():
    """K = 2, round 3, one measurement of each arm: the chance that beta fails, and what the proof says."""
    log_term = math.log(2 * 2**2 * 3**2 / DELTA)
    return math.erfc(math.sqrt(log_term / 2) / math.sqrt(2)), DELTA / (2**2 * 3**2)


def sum_of_squares():
    """The sum of 1/t^2 over a million rounds, and what the proof says of it."""
    return sum(1 / t**2 for t in range(1, 10**6)), 1.0


def random_counts():
    """The chance that a 95% bound for a fixed count fails at the worst count up to 1,000, and 5%."""
    sums = np.random.default_rng(0).normal(size=(4000, 1000)).cumsum(axis=1)
    z = np.abs(sums) / np.sqrt(np.arange(1, 1001))
    return float((z.max(axis=1) > 1.959964).mean()), DELTA


def arm_gaps(means):
    """Delta_(s) of single arms, the first the best: the least gap of plans that differ from it in arm s."""
    gaps = means[0] - means
    return np.r_[gaps[1:].min(), gaps[1:]]


def argmax():
    """Delta_(s) of three arms with means 1, .9, 0 as the minimum that the proofs use, and as printed."""
    plans, means = np.eye(3), np.array([1.0, 0.9, 0.0])
    with np.errstate(divide="ignore"):
        printed = ((1.0 - means[1:]) / np.abs(plans[0] - plans[1:]).T).max(axis=1)
    return arm_gaps(means).tolist(), printed.tolist()


def reversed_inequalities():
    """The share of wrong answers where arms are 3 apart, and the least that the proof's last line allows."""
    problem, policy = sp.Problem(np.eye(2), noise=1, goal="largest"), sp.CombGapE(DELTA, radius="published")
    runs = [sp.simulate(problem, Gaussian([3.0, 0.0]), policy=policy, seed=seed) for seed in range(100)]
    return sum(run.plan != 0 for run in runs) / len(runs), 1 - DELTA


def best_arm():
    """The sum of 1/Delta_(s)^2 of three arms with means 1, .9, 0, and with the smallest gap for every arm."""
    gaps = arm_gaps(np.array([1.0, 0.9, 0.0]))
    return float((gaps**-2.0).sum()), float(3 * gaps.min() ** -2.0)


def plus_d():
    """Whether 17 is below X + A = 17.9, so that the arm may be measured, and whether 18 is at most that."""
    x, a, count = 16.9, 1, 17
    return count < x + a, count + 1 <= x + a


def example(runs=4000, budget=20_000):
    """The wrong answers on the paper's own example, means .9, and the most that delta = .05 allows."""
    problem, truth = (
        sp.Problem([[100, 0, 0.1], [0, 100, 0.2]], noise=1, goal="largest"),
        Gaussian([0.9, 0.9, 0.9]),
    )
    policy = sp.CombGapE(DELTA, radius="published")
    outcomes = [sp.simulate(problem, truth, policy=policy, seed=r, budget=budget) for r in range(runs)]
    row = summary(policy, outcomes)
    return row.errors, DELTA * runs


SHOWN = {
    "factor-4": factor_4,
    "sum": sum_of_squares,
    "counts": random_counts,
    "argmax": argmax,
    "reversed": reversed_inequalities,
    "best-arm": best_arm,
    "plus-d": plus_d,
    "example": example,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or SHOWN:
        found, stated = SHOWN[name]()
        print(f"{name}: {SHOWN[name].__doc__}\n    {found}    {stated}", flush=True)
