"""A cable network between eighteen real cities: which links to dig, when every link has to be surveyed.

    python examples/cable_network.py [--noise KM] [--seed N]

The cities and their coordinates are those of the paper (`src/surepick/problems/data/cities.csv`: public
facts). A link may join each city to its seven nearest; its length in the ground is what surveys measure, with
noise. The least spanning tree connects all cities. There are more than 10^9 spanning trees: they are not
listed, BetGapE rules them out together. As the true lengths we take a quarter more than the straight line.

The noise scale is an assumption here. Were it stated at half its true size, the run would end after about a
quarter of the surveys, with an unknown chance of error; stated at twice its size, it costs four times the
surveys and the answer is as safe as before. When in doubt, state it large.
"""

import argparse
import csv
from importlib.resources import files

import numpy as np

import surepick as sp
from surepick.simulation import Gaussian

NEIGHBOURS = 7
DETOUR = 1.25
EARTH_RADIUS_KM = 6371.0


def cities():
    text = (files("surepick.problems") / "data" / "cities.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    return [row["city"] for row in rows], np.radians(
        [[float(row["latitude"]), float(row["longitude"])] for row in rows]
    )


def links():
    """The possible links as pairs of cities, and their lengths in km."""
    names, at = cities()
    half = np.sin((at[:, None] - at[None]) / 2) ** 2
    chord = half[..., 0] + np.cos(at[:, None, 0]) * np.cos(at[None, :, 0]) * half[..., 1]
    km = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(chord)) * DETOUR
    pairs = {
        tuple(sorted((i, int(j)))) for i in range(len(names)) for j in np.argsort(km[i])[1 : NEIGHBOURS + 1]
    }
    return [(names[i], names[j]) for i, j in sorted(pairs)], np.array([km[pair] for pair in sorted(pairs)])


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--noise", type=float, default=2.0, help="standard deviation of one survey, in km")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=20_000)
    options = parser.parse_args(arguments)

    pairs, lengths = links()
    problem = sp.problems.trees(pairs, noise=options.noise)
    print(f"{len(pairs)} possible links, {problem.n_plans:.3g} spanning trees.")
    surveys = Gaussian(lengths, options.noise)
    outcome = sp.simulate(problem, surveys, policy=sp.BetGapE(), seed=options.seed, budget=options.budget)
    print(f"{outcome.state}: {outcome.n_measured:,} surveys in {outcome.seconds:.1f} s.")
    if outcome.plan is not None:
        best = problem.best_plan(lengths)
        print(f"{np.array(outcome.plan) @ lengths:,.0f} km of cable; the least is {best @ lengths:,.0f} km:")
        print("  " + "\n  ".join(np.array(problem.arm_names)[np.array(outcome.plan) > 0]))
    return problem, lengths, outcome


if __name__ == "__main__":
    main()
