"""How often each radius is wrong, on instances made to catch it: the table of docs/guarantees.md.

python benchmarks/guarantees.py            # about fifteen minutes
python benchmarks/guarantees.py --runs 200
"""

import argparse

import numpy as np

import surepick as sp
from surepick.planning.comparison import compare
from surepick.policies.gap.radius import RADII

ROWS = [
    ("identity(2), means (.02, 0)", np.eye(2), [0.02, 0.0], 0.05),
    ("identity(2), means (.02, 0)", np.eye(2), [0.02, 0.0], 0.01),
    ("identity(3), means (.05, 0, 0)", np.eye(3), [0.05, 0.0, 0.0], 0.01),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--budget", type=int, default=200_000)
    parser.add_argument("--radii", default=",".join(RADII))
    options = parser.parse_args()
    print("| instance | delta | radius | wrong | error rate (95% interval) | cut off |")
    print("|---|---|---|---|---|---|")
    for name, plans, means, delta in ROWS:
        for radius in options.radii.split(","):
            policy = sp.CombGapE(delta=delta, radius=radius)
            (row,) = compare(
                sp.Problem(plans), [policy], sp.Gaussian(means), runs=options.runs, budget=options.budget
            )
            low, high = row.error_interval
            rate = f"{row.errors / row.runs:.4f} ({low:.4f} to {high:.4f})"
            print(
                f"| {name} | {delta} | {radius} | {row.errors} of {row.runs} | {rate} | {row.cut_off} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
