"""FWS and LinGame on Soare's vectors, in the settings of their authors' public programs and in the arena's.

OPENBLAS_NUM_THREADS=1 python benchmarks/soare.py > benchmarks/results/soare.md     # 20 runs, two CPU minutes

d unit vectors and one at a small angle to the first of them, which is the best; noise N(0, 1). FWS and
LinGame stop by the heuristic threshold, as those programs do, and promise nothing; the others have a proof.
Seeds from 5,100,000 on were used for nothing else.
"""

import argparse
import math

import numpy as np

import surepick as sp
from surepick.policies import FWS, LinGame, XYAdaptive

SEED = 5_100_000
SETTINGS = (  # whose, d, angle, mean of the first vector, delta
    ("FWS, `linear/experiment_bai.jl`", 6, 0.1, 2.0, 0.01),
    ("LinGame, `linear/experiment_bai1.jl`, first version", 2, math.pi / 6, 1.0, 0.1),
    ("the same, last version", 2, 0.1, 2.0, 0.1),
    ("the arena", 10, 0.1, 2.0, 0.05),
)


def vectors(d, angle, mean):
    close = np.zeros(d)
    close[:2] = math.cos(angle), math.sin(angle)
    rows = np.vstack([np.eye(d), close])
    return sp.Problem(rows, probes=rows), mean * np.eye(d)[0]


def methods(delta):
    return (
        FWS(delta=delta, radius="heuristic"),
        LinGame(delta=delta, radius="heuristic"),
        sp.BetGapE(delta=delta),
        sp.RAGE(delta=delta, variant="authors"),
        XYAdaptive(delta=delta),
    )


def cell(problem, means, policy, runs):
    found = [sp.simulate(problem, policy, sp.Gaussian(means), seed=SEED + run) for run in range(runs)]
    used, wrong = np.array([one.n_measurements for one in found]), sum(one.plan != 0 for one in found)
    shown = f"{used.mean():,.0f} +- {used.std(ddof=1) / runs**0.5:,.0f}"
    return shown + (f", {wrong} wrong" if wrong else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    names = [policy.name for policy in methods(0.05)]
    print(f"# FWS and LinGame on Soare's vectors\n\n`python benchmarks/soare.py --runs {runs}`; none wrong")
    print("unless a cell says so. FWS and LinGame stop by the heuristic threshold and promise nothing.\n")
    print("| setting of | d | angle | mean | delta | limit | " + " | ".join(names) + " |")
    print("|" + "---|" * (6 + len(names)))
    for whose, d, angle, mean, delta in SETTINGS:
        problem, means = vectors(d, angle, mean)
        limit = sp.limit(problem, means, delta=delta).measurements(delta)
        cells = [cell(problem, means, policy, runs) for policy in methods(delta)]
        row = [whose, d, f"{angle:.2g}", f"{mean:g}", f"{delta:g}", f"{limit:,.0f}", *cells]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
