"""Is the answer the best tree of all? Thirty sites, 435 links, 20 worlds: lists of draws against none.

    python benchmarks/thirty_sites.py [--worlds 20] [--first 0] [--noise 0.05]

Sites lie in a square of 30 km by 30 km. What a link costs is thought to be its length; the truth is within a
quarter of it, and so are the draws of the list.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import surepick as sp

N_SITES, SIDE, OFF = 30, 30.0, 0.25


def world(seed: int) -> tuple[list[tuple[str, str]], np.ndarray, np.ndarray]:
    """Links, what they are thought to cost, and what they cost."""
    rng = np.random.default_rng([seed, 30])
    places = rng.uniform(0.0, SIDE, (N_SITES, 2))
    first, second = np.triu_indices(N_SITES, 1)
    lengths = np.linalg.norm(places[first] - places[second], axis=1)
    links = [(f"site {i}", f"site {j}") for i, j in zip(first, second, strict=True)]
    return links, lengths, lengths * rng.uniform(1 - OFF, 1 + OFF, len(links))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first world")
    parser.add_argument("--noise", type=float, default=0.05, help="km, of one measurement")
    options = parser.parse_args()
    found = lacking = listed_wrong = 0
    for seed in range(options.first, options.first + options.worlds):
        links, guess, means = world(seed)
        begun = time.process_time()
        problem = sp.problems.trees(links, guess, spread=OFF * guess, noise_scale=options.noise)
        truth = sp.Gaussian(means, options.noise)
        outcome = sp.simulate(problem, sp.OBet(delta=0.05), truth, seed=seed, budget=1_000_000)
        seconds = time.process_time() - begun
        best = problem.best_plan(means)
        found += outcome.plan == tuple(best.tolist())
        listed = sp.problems.trees(links, guess, spread=OFF * guess, noise_scale=options.noise, n_draws=1000)
        lacks = not (listed.plans == best).all(axis=1).any()
        lacking += lacks
        behind = float(np.min(listed.values(means)) - best @ means)
        listed_wrong += behind > 0
        print(
            f"world {seed}: {outcome.status} after {outcome.n_measurements:,} measurements, "
            f"{seconds:.1f} CPU s; right {outcome.plan == tuple(best.tolist())}; "
            f"the list lacks the best tree {lacks}, its best is {behind:.2f} km longer"
        )
    print(f"without a list: the best tree of all in {found} of {options.worlds} worlds")
    print(f"lists of 1,000 draws: lacked it in {lacking} of {options.worlds}")


if __name__ == "__main__":
    main()
