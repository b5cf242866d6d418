"""Production: a linear program whose profits are not known

A workshop makes chairs, tables and shelves from limited wood, hours and varnish. What a piece brings is
found out by selling some. The candidates are the corners of the feasible set that are best somewhere within
the spread.
"""

from drawing import effort, panels, values

import surepick as sp
from surepick.simulation import Gaussian

PIECES = ["chairs", "tables", "shelves"]
USE = [[3, 8, 4], [2, 4, 1], [1, 2, 2]]  # wood, hours, varnish of one piece
LIMITS = [240, 130, 100]
PROFIT = [26.0, 58.0, 27.0]


def main():
    problem = sp.problems.production(
        USE, LIMITS, [22.0, 58.0, 30.0], spread=10.0, n_draws=500, variable_names=PIECES, noise=6.0
    )
    print(problem.completeness)
    outcome = sp.simulate(problem, Gaussian(PROFIT, 6.0), policy=sp.BetGapE(delta=0.05), seed=0)
    names = [
        ", ".join(f"{x:.3g} {p}" for x, p in zip(row, PIECES, strict=True) if x > 0) for row in problem.plans
    ]
    print(f"make {names[outcome.plan]}: sure after {outcome.n_measured} sales")

    figure, left, right = panels(1, 1)
    values(left, problem, outcome, PROFIT, names=names)
    effort(right, problem, outcome, sp.limit(problem, PROFIT))
    return figure


if __name__ == "__main__":
    main().savefig("production.png")
