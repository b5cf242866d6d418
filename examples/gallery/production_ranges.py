"""Production: all mixes at once, and what would have to change

A workshop makes chairs, tables and shelves from limited wood, hours and varnish; parts of a piece are carried
over to the next week, so every mix within the limits is a plan. What a piece brings is found out by selling
some. BetGapE decides between all mixes. Beside the answer stands what would have to change: the profit of a
piece may move that far, alone, before another mix is best. A piece that is not made has one end only: so much
more it would have to bring.
"""

import numpy as np
from drawing import CHOSEN, IDEAL, OTHER, effort, panels

import surepick as sp
from surepick.simulation import Gaussian

PIECES = ["chair", "table", "shelf", "stool"]
USE = [[3, 8, 4, 2], [2, 4, 1, 2], [1, 2, 2, 1]]  # wood, hours, varnish of one piece
LIMITS = [240, 130, 100]
PROFIT = np.array([26.0, 58.0, 27.0, 15.0])
WIDE = 25.0  # what is shown on either side


def main():
    problem = sp.Polytope(A_ub=USE, b_ub=LIMITS, arms=PIECES, noise=6.0, goal="largest")
    outcome = sp.simulate(problem, Gaussian(PROFIT, 6.0), policy=sp.BetGapE(delta=0.05), seed=0)
    print(f"make {outcome.plan_name}: sure after {outcome.n_measured:,} sales")

    figure, left, right = panels(1.3, 1)
    for row, (low, high) in enumerate(outcome.ranging.values()):
        made, mean = outcome.plan[row] > 0, outcome.means[row]
        ends = max(low, mean - WIDE), min(high, mean + WIDE)
        left.plot(ends, [row, row], color=CHOSEN if made else OTHER, lw=9, alpha=0.45, solid_capstyle="butt")
        for end in (low, high):
            if abs(end - mean) < WIDE:
                left.annotate(f"{end:.3g}", (end, row - 0.3), ha="center", fontsize=8, color=IDEAL)
        left.plot(mean, row, "o", color=CHOSEN if made else OTHER)
    made = [f"{n}, {x:.3g} made" if x else f"{n}, none" for n, x in zip(PIECES, outcome.plan, strict=True)]
    left.set_yticks(range(len(PIECES)), made)
    left.set_ylim(len(PIECES) - 0.5, -0.7)
    left.set_xlabel("profit of one: the estimate, and where this mix stays best")
    effort(right, problem, outcome, sp.limit(problem, PROFIT))
    return figure


if __name__ == "__main__":
    main().savefig("production_ranges.png")
