"""Our allocation solver against Clarabel on the same instances in the same run.

    python benchmarks/design.py [--repeats 5] [--largest 10000]

Prints Markdown tables. The first has the CPU time of a batch of BetGapE: deciding, absorbing, settling;
`--batches` prints it alone. The second compares the allocation solvers: milliseconds, the time ratio, the
certified relative gap, and whether Clarabel's optimum lies inside our bracket. Instances are those of the
check values: normal means, integer plans in 0..4, rows y^2 / gap^2.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np  # noqa: E402

import surepick as sp  # noqa: E402
from clarabel_oracle import clarabel_allocation  # noqa: E402
from surepick.core.run import Measure  # noqa: E402
from surepick.design.allocation import (  # noqa: E402
    optimal_allocation,
    pair_allocation,
    width_allocation,
)

SIZES = [(100, 20), (1000, 50), (1000, 81), (10_000, 200)]
TOLERANCES = [1e-2, 1e-3, 1e-8]
AGREES = 1e-5  # how far above the optimum Clarabel's weights are at its tolerance of 1e-8


def instance(n_plans, n_arms):
    rng = np.random.default_rng(0)
    means = rng.normal(size=n_arms)
    plans = rng.integers(0, 5, (n_plans, n_arms)).astype(float)
    best = int(np.argmax(plans @ means))
    y = np.delete(plans[best] - plans, best, axis=0)
    return (y / (y @ means)[:, None]) ** 2


def timed(function, repeats):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return 1e3 * float(np.median(seconds)), result


def allocation_rows(repeats, largest):
    optimal_allocation(instance(20, 5))
    for n_plans, n_arms in (size for size in SIZES if size[0] <= largest):
        squares = instance(n_plans, n_arms)
        slow = 1 if n_plans > 1000 else min(repeats, 3)
        reference, (optimum, _) = timed(lambda s=squares: clarabel_allocation(s), slow)
        for tolerance in TOLERANCES:
            ours, found = timed(lambda s=squares, t=tolerance: optimal_allocation(s, tolerance=t), repeats)
            inside = found.lower <= optimum <= found.value * (1 + AGREES)
            yield (
                f"| {n_plans} | {n_arms} | {tolerance:g} | {ours:.2f} | {reference:.0f} "
                f"| {reference / ours:.0f} | {found.gap:.1e} | {'yes' if inside else 'NO'} |"
            )


def pair_rows(repeats):
    for n_plans, n_arms in [(100, 20), (1000, 81)]:
        plans = np.random.default_rng(0).integers(0, 5, (n_plans, n_arms)).astype(float)
        pairs, found = timed(lambda p=plans: pair_allocation(p), repeats)
        width, tau = timed(
            lambda p=plans: width_allocation(p, log_term=3.0, rng=np.random.default_rng(1)), repeats
        )
        error = tau.standard_error / tau.value
        yield f"| {n_plans} | {n_arms} | {pairs:.1f} | {found.gap:.1e} | {width:.0f} | {error:.1e} |"


def batch_problems():
    """Problems of which a batch should take .7, .3, 2.5 and 15 ms at most, with their means."""
    rng = np.random.default_rng(0)
    plans, dense = rng.integers(0, 5, (1000, 81)).astype(float), rng.normal(size=(300, 20))
    top = sp.problems.top_k([str(s) for s in range(40)], 20, goal="largest", noise=1)
    given = {"noise": 1.0, "goal": "largest"}
    yield "1,000 plans x 81 arms", sp.Problem(plans, **given), rng.normal(size=81)
    yield "ten arms", sp.Problem(np.eye(10), **given), np.linspace(0.5, 0.0, 10)
    yield (
        "300 plans x 20 arms, plans measured",
        sp.Problem(dense, measure="plans", **given),
        rng.normal(size=20),
    )
    yield "top 20 of 40, oracle", top, rng.normal(size=40)


def batch_rows(repeats):
    for name, problem, means in batch_problems():
        rows = problem.probes.rows if problem.probes is not None else np.eye(problem.n_arms)
        times = []
        for seed in range(1 + repeats):
            run, rng, n = sp.BetGapE(1e-3).start(problem), np.random.default_rng(seed), 0
            start = time.process_time()
            while n < 60 and isinstance(decision := run.decide(), Measure):
                counts = decision.counts
                run.absorb(
                    counts, counts * (rows @ means) + np.sqrt(counts) * rng.standard_normal(len(counts))
                )
                n += 1
            times.append(1e3 * (time.process_time() - start) / n)
        yield f"| {name} | {n} | {np.median(times[1:]):.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--largest", type=int, default=10_000, help="plans; Clarabel takes minutes for 10,000"
    )
    parser.add_argument("--batches", action="store_true", help="the CPU time of batches alone")
    given = parser.parse_args()
    print("| problem | batches of the last run | CPU ms a batch |")
    print("|---|---|---|")
    for row in batch_rows(given.repeats):
        print(row, flush=True)
    if given.batches:
        return
    print("\n| plans | arms | tolerance | ours, ms | Clarabel, ms | ratio | gap | optimum inside |")
    print("|---|---|---|---|---|---|---|---|")
    for row in allocation_rows(given.repeats, given.largest):
        print(row, flush=True)
    print("\n| plans | arms | all pairs (RAGE), ms | gap | width (Peace), ms | relative error |")
    print("|---|---|---|---|---|---|")
    for row in pair_rows(given.repeats):
        print(row, flush=True)


if __name__ == "__main__":
    main()
