"""Measurements to find the best plan that keeps a limit: Limited beside two stages, feasibility first.

    python benchmarks/limited.py --runs 100

The two-stage peer has the same bets. First it shows for every plan, at delta / (2 n) each, that it keeps the
limit up to the tolerance or breaks it; then BetGapE finds a plan within epsilon of the best of those that
keep it, at delta / 2.
"""

from __future__ import annotations

import argparse

import numpy as np

import surepick as sp
from surepick.policies import Limited
from surepick.simulation import Gaussian

DELTA, EPSILON, TOLERANCE = 0.05, 0.3, 0.3
CASES = {
    "5 plans, one over the limit": ([1.5, 1.0, 0.6, 0.3, 0.0], [1.0, 0.0, -0.5, -0.5, -1.0]),
    "10 plans, half over the limit": (np.linspace(2, 0, 10), np.tile([0.8, -0.8], 5)),
    "20 plans, clear losers near the limit": (
        np.append([2.0, 1.4], np.zeros(18)),
        np.append([0.9, -0.9], np.full(18, 0.1)),
    ),
    "4 plans, all over the limit": ([1.0, 0.8, 0.5, 0.0], [1.0, 1.0, 0.8, 0.6]),
}


def single(values: np.ndarray, loads: np.ndarray, seed: int) -> tuple[int, bool]:
    """Return the measurements of Limited, and whether its answer is wrong."""
    n = len(values)
    rows = np.hstack([np.zeros((n, n)), np.eye(n)])
    policy = Limited(DELTA, EPSILON, 0.0, TOLERANCE, tuple(map(tuple, rows.tolist())))
    problem = sp.Problem(np.hstack([np.eye(n), np.zeros((n, n))]), noise=1, goal="largest")
    truth = Gaussian(np.append(values, loads), 1)
    outcome = sp.simulate(problem, truth, policy=policy, seed=seed)
    return outcome.n_measured, is_wrong(values, loads, outcome.plan)


def two_stages(values: np.ndarray, loads: np.ndarray, seed: int) -> tuple[int, bool]:
    """Return the measurements of both stages, and whether the answer is wrong."""
    n, spent, kept = len(values), 0, list[int]()
    for plan in range(n):  # load against the middle of the tolerance, which is known exactly
        limit = sp.Problem(["load", "limit"], noise=1, goal="smallest", known={"limit": TOLERANCE / 2})
        policy = sp.BetGapE(DELTA / (2 * n), epsilon=TOLERANCE / 2)
        found = sp.simulate(
            limit,
            Gaussian([loads[plan], TOLERANCE / 2], 1),
            policy=policy,
            seed=seed * n + plan,
        )
        spent += found.n_measured
        kept += [plan] if found.plan == 0 else []
    if len(kept) < 2:
        return spent, is_wrong(values, loads, kept[0] if kept else None)
    problem = sp.Problem(np.eye(len(kept)), noise=1, goal="largest")
    truth = Gaussian(values[kept], 1)
    best = sp.simulate(problem, truth, policy=sp.BetGapE(DELTA / 2, epsilon=EPSILON), seed=seed)
    return spent + best.n_measured, is_wrong(values, loads, kept[int(str(best.plan))])


def is_wrong(values: np.ndarray, loads: np.ndarray, plan: object) -> bool:
    """Return whether this answer is wrong, None being "no plan keeps the limit"."""
    fine = loads <= 0
    if plan is None:
        return bool(fine.any())
    k = int(str(plan))
    return bool(loads[k] > TOLERANCE or (fine.any() and values[k] < values[fine].max() - EPSILON))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print("| case | Limited | wrong | two stages | wrong | ratio |\n|---|---|---|---|---|---|")
    for name, (values, loads) in CASES.items():
        given = np.array(values), np.array(loads)
        own, peer = (
            np.array([method(*given, seed) for seed in range(runs)]) for method in (single, two_stages)
        )
        numbers = f"{own[:, 0].mean():.0f} | {own[:, 1].sum()} | {peer[:, 0].mean():.0f} | {peer[:, 1].sum()}"
        print(f"| {name} | {numbers} | {own[:, 0].mean() / peer[:, 0].mean():.2f} |", flush=True)


if __name__ == "__main__":
    main()
