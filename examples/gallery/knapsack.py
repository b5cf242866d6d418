"""A knapsack: how many of each crate to load

The paper's synthetic experiment as a story: a van carries 100 kg, the profit of a crate is known to within
5 and found out by selling some. All loads that fit are plans; there are few enough to list them.
"""

from drawing import effort, panels, values

import surepick as sp
from surepick.simulation import Gaussian

WEIGHTS = [12, 17, 23, 31, 44]
CRATES = ["apples", "cheese", "fish", "honey", "olives"]
PROFIT = [13.1, 16.2, 26.4, 29.0, 45.5]


def main():
    problem = sp.problems.knapsack(WEIGHTS, WEIGHTS, 100, spread=5.0, item_names=CRATES, noise=1)
    print(problem.completeness)
    outcome = sp.simulate(problem, Gaussian(PROFIT), policy=sp.BetGapE(delta=0.05), seed=3)
    load = [f"{n:g} x {crate}" for n, crate in zip(problem.vector(outcome.plan), CRATES, strict=True) if n]
    print(f"load {', '.join(load)}: sure after {outcome.n_measured} sales")

    figure, left, right = panels(1, 1)
    values(left, problem, outcome, PROFIT, most=8)
    effort(right, problem, outcome, sp.limit(problem, PROFIT))
    return figure


if __name__ == "__main__":
    main().savefig("knapsack.png")
