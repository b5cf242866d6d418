"""How often the betting policies are wrong on families made to catch them, with cheats that must be caught.

python benchmarks/soundness.py > benchmarks/results/soundness.md     # 2,000 runs each: an hour
python benchmarks/soundness.py --runs 200 --only polytopes

A family is refuted when so many errors would have a probability below 1e-6 at error rate delta. Each cheat
chooses its bets, or its leader, after it has seen the batch that the bets are about. `matrix.py` has probes;
the tests of the policies repeat all of this with fewer runs.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import surepick as sp
from hard_families import FAMILIES, Family, Peeking, count_errors, is_refuted
from polytopes import PeekingPolicy, assignment, transport
from surepick.simulation import Gaussian
from surepick.simulation.comparison import binomial_interval

SEED = 8_200_000


def polytope(case, delta, epsilon=0.0, budget=20_000):
    problem, means = case
    return Family(problem, Gaussian(means), delta, epsilon, budget)


def simplex(n, gap):
    return sp.Polytope(A_eq=np.ones((1, n)), b_eq=[1.0], noise=1, goal="largest"), np.array(
        [gap] + [0.0] * (n - 1)
    )


def polytopes():
    """Families of polytopes, exactly and within epsilon; assignments are degenerate."""
    for delta in (0.2, 0.05):
        yield f"two arms, gap .1, delta {delta}", polytope(simplex(2, 0.1), delta, budget=4_000)
        yield f"five arms, gap .3, delta {delta}", polytope(simplex(5, 0.3), delta, budget=4_000)
        yield f"transport 3 x 3, delta {delta}", polytope(transport(2005, 3, 3), delta)
        yield f"transport 5 x 4, delta {delta}", polytope(transport(2001, 5, 4), delta)
        yield f"assignment 3 x 3, delta {delta}", polytope(assignment(3, 1), delta)
        yield f"two arms, gap 1.2 epsilon, delta {delta}", polytope(simplex(2, 0.12), delta, 0.1)
        yield f"five arms, tied, delta {delta}", polytope(simplex(5, 0.0), delta, 0.3, 4_000)
        yield f"transport 3 x 3, epsilon .1, delta {delta}", polytope(transport(2005, 3, 3), delta, 0.1)


STUDIES = {
    "BetGapE": [
        *((name, family, sp.BetGapE) for name, family in FAMILIES.items()),
        ("two arms, gap .02, delta .05", FAMILIES["two arms, gap .02, delta .05"], Peeking),
    ],
    "polytopes": [
        *((name, family, sp.BetGapE) for name, family in polytopes()),
        ("two arms, gap .1, delta .05", polytope(simplex(2, 0.1), 0.05, budget=1_000), PeekingPolicy),
        ("two arms, gap 6 epsilon, delta .05", polytope(simplex(2, 0.3), 0.05, 0.05, 400), PeekingPolicy),
    ],
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", choices=STUDIES, action="append")
    given = parser.parse_args()
    print("| policy | family | wrong | error rate (95% interval) | answered | guarantee |")
    print("|---|---|---|---|---|---|")
    for study in given.only or STUDIES:
        for name, family, policy in STUDIES[study]:
            wrong, answered = count_errors(family, policy, given.runs, SEED)
            low, high = binomial_interval(wrong, given.runs)
            label = study if policy is sp.BetGapE else f"{study}, cheating (control)"
            verdict = "refuted" if is_refuted(wrong, given.runs, family.delta) else "holds"
            rate = f"{wrong / given.runs:.4f} ({low:.4f} to {high:.4f})"
            print(
                f"| {label} | {name} | {wrong} of {given.runs} | {rate} | {answered} | {verdict} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
