"""Microseconds of a round of CombGapE, with Numba and without it.

python benchmarks/rounds.py > benchmarks/results/rounds.md
python benchmarks/rounds.py --rounds 2000 --repeats 1

A round measures an arm, moves all plans by it and decides again. Plans are those of a transport between 9 and
9 cities (81 arms), at a delta that lets no run stop. CPU time, the best of the repeats.
"""

import argparse
import subprocess
import sys
import time

if "--without" in sys.argv:
    sys.modules["numba"] = None  # as if it were not installed

import surepick as sp
from surepick.problems import transport_instance

SIZES = (963, 100, 10)


def microseconds(n_plans, rounds, repeats):
    case = transport_instance(0)
    problem = sp.Problem(case.problem.plans[:n_plans], noise=1, goal="smallest")
    found = []
    for seed in range(repeats + 1):  # the first one compiles
        began = time.process_time()
        outcome = sp.simulate(problem, case.means, policy=sp.CombGapE(1e-200), seed=seed, budget=rounds)
        found.append((time.process_time() - began) / outcome.n_measured)
    return 1e6 * min(found[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="measure here, print numbers alone")
    parser.add_argument("--without", action="store_true", help="with --here: without Numba")
    given = parser.parse_args()
    if given.here:
        print(*(microseconds(n, given.rounds, given.repeats) for n in SIZES))
        return
    print("| CombGapE, 81 arms, microseconds of a round | " + " | ".join(f"{n} plans" for n in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    size = ["--rounds", str(given.rounds), "--repeats", str(given.repeats)]
    for name, more in (("with Numba", []), ("without", ["--without"])):
        done = subprocess.run(
            [sys.executable, __file__, "--here", *size, *more], capture_output=True, text=True, check=True
        )
        print(f"| {name} | " + " | ".join(f"{float(x):.2g}" for x in done.stdout.split()) + " |", flush=True)


if __name__ == "__main__":
    main()
