"""What it costs not to know the noise: measurements with it stated and unknown, on the same tapes.

python benchmarks/unknown_noise.py            # 40 tapes of every family, as a table
python benchmarks/unknown_noise.py --tapes 2  # a first look
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "nets"))

from sample_sizes import FAMILIES, cost_on_tape, unknown

SEED = 7801
NAMES = (
    *("two arms", "five arms", "sets of arms"),
    *("oracle: top 3 of 10", "oracle: top 20 of 40", "oracle: paths", "oracle: assignments"),
    *("oracle: whole numbers", "oracle: within epsilon", "oracle: whole plans read"),
    *("polytope within epsilon, 3 x 3", "polytope within epsilon, 5 x 4"),
)


def main() -> None:
    """Print a row for each family as it is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tapes", type=int, default=40)
    given = parser.parse_args()
    print("| family | noise stated | unknown | ratio |\n|---|---|---|---|")
    for name in NAMES:
        build, policy, _ = FAMILIES[name]
        costs = np.array(
            [
                [cost_on_tape(*problem, policy, [SEED, tape]) for problem in (build(), unknown(build()))]
                for tape in range(given.tapes)
            ]
        )
        stated, learned = costs.mean(axis=0)
        ratio = learned / stated
        # of a ratio of means, by the scatter of learned - ratio * stated
        error = (costs[:, 1] - ratio * costs[:, 0]).std() / stated / np.sqrt(given.tapes)
        print(f"| {name} | {stated:,.0f} | {learned:,.0f} | {ratio:.2f} ± {error:.2f} |", flush=True)


if __name__ == "__main__":
    main()
