"""The shortest path of the paper's Figure 1

Seven roads, three ways from home to work. How long a road takes is not known exactly; a test drive tells,
with noise. The plans are (1, 0, 1, 0, 0, 1, 0), (0, 1, 0, 1, 0, 1, 0) and (0, 1, 0, 0, 1, 0, 1), as the
paper lists them.

Roads that all remaining ways share are hardly driven: what matters is the *difference* of two ways. The
width of a road in the figure is its share of the test drives.
"""

import sys

from drawing import effort, network, panels

import surepick as sp
from surepick.simulation import Gaussian

ROADS = [("home", "a"), ("home", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "work"), ("d", "work")]
MINUTES = [9.0, 7.0, 8.0, 11.0, 6.0, 5.0, 11.0]  # the truth, known to the simulation alone
PLACES = {"home": (0, 0), "a": (1, 1), "b": (1, -1), "c": (2, 0.6), "d": (2, -1), "work": (3, 0)}


def main():
    problem = sp.problems.paths(ROADS, "home", "work", directed=True, noise=3.0)
    for plan, name in zip(problem.plans.astype(int).tolist(), problem.plan_names, strict=True):
        print(plan, name)

    outcome = sp.simulate(problem, Gaussian(MINUTES, 3.0), policy=sp.BetGapE(delta=0.05), seed=2)
    print("answer:", outcome.plan_name)
    print("guarantee:", outcome.guarantee)
    limit = sp.limit(problem, MINUTES)
    print(f"{outcome.n_measured} test drives; {limit.explanation}")

    figure, left, right = panels(1.2, 1)
    chosen = set(problem.vector(outcome.plan).nonzero()[0])
    shares = outcome.counts / outcome.counts.max()
    network(left, PLACES, ROADS, chosen, "1234567", shares)
    left.set_title(outcome.plan_name, fontsize=11)
    effort(right, problem, outcome, limit)
    return figure


if __name__ == "__main__":
    main().savefig(sys.argv[1] if len(sys.argv) > 1 else "shortest_path.png", dpi=110)
