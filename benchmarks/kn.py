"""KN beside the measurements that are printed of it: within ten per cent is the goal.

python benchmarks/kn.py > benchmarks/results/kn.md     # 400 runs of each configuration, ten CPU seconds

Two arms that differ by .3, ten arms of which one is better by .3, ten arms each worse by .3 than the one
before; zone .3, n0 = 20, delta = .05, noise N(0, 1). Seeds from 7,700,000 on were used for nothing else.
"""

import argparse

import numpy as np

import surepick as sp

SEED = 7_700_000
CONFIGURATIONS = (
    ("two arms that differ by .3", (0.3, 0.0), 81),
    ("ten arms, one better by .3", (0.3, *[0.0] * 9), 848),
    ("ten arms, each worse by .3", tuple(-0.3 * i for i in range(10)), 382),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    print(f"# KN beside what is printed\n\n`python benchmarks/kn.py --runs {runs}`\n")
    print("| configuration | printed | measurements | ratio | wrong |\n|---|---|---|---|---|")
    for name, means, printed in CONFIGURATIONS:
        problem, policy = sp.Problem(np.eye(len(means))), sp.policies.KN(0.05, zone=0.3, first=20)
        outcomes = [sp.simulate(problem, policy, sp.Gaussian(means), seed=SEED + run) for run in range(runs)]
        used = np.array([outcome.n_measurements for outcome in outcomes])
        wrong, error = sum(outcome.plan != 0 for outcome in outcomes), used.std(ddof=1) / runs**0.5
        found = f"{used.mean():,.0f} +- {error:,.0f} | {used.mean() / printed:.2f}"
        print(f"| {name} | {printed} | {found} | {wrong} of {runs} |")


if __name__ == "__main__":
    main()
