"""A spanning tree: which cables connect everything

Six sites, ten possible trenches. A survey measures the length of a trench, with noise. The answer is the
set of trenches that connects all sites with the least cable.
"""

from drawing import effort, network, panels

import surepick as sp
from surepick.simulation import Gaussian

PLACES = {"A": (0, 0), "B": (1.2, 1.1), "C": (1.4, -0.9), "D": (2.6, 0.2), "E": (3.8, 1.2), "F": (4.0, -0.8)}
TRENCHES = ["AB", "AC", "BC", "BD", "CD", "DE", "DF", "EF", "BE", "CF"]
METRES = [163, 166, 201, 166, 163, 152, 172, 200, 262, 270]


def main():
    edges = [(a, b, guess) for (a, b), guess in zip(TRENCHES, METRES, strict=True)]
    problem = sp.problems.trees(edges, spread=30.0, noise=8.0)
    print(problem.completeness)
    truth = [m + (7 if e % 3 else -9) for e, m in enumerate(METRES)]
    outcome = sp.simulate(problem, Gaussian(truth, 8.0), policy=sp.BetGapE(delta=0.05), seed=0)
    print(f"dig {outcome.plan_name}")
    print(f"{outcome.n_measured} surveys; {sp.limit(problem, truth).explanation}")

    figure, left, right = panels(1.2, 1)
    chosen = set(problem.vector(outcome.plan).nonzero()[0])
    network(left, PLACES, TRENCHES, chosen, [f"{x:.0f} m" if x == x else "?" for x in outcome.means])
    left.set_title("the least cable; ? was never measured", fontsize=11)
    effort(right, problem, outcome, sp.limit(problem, truth))
    return figure


if __name__ == "__main__":
    main().savefig("spanning_tree.png")
