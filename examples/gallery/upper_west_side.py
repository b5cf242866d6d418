"""A taxi through the Upper West Side: streets from OpenStreetMap, with their one-way signs

42 corners and 79 one-way links of Manhattan between West 85th and 93rd Street. The streets are those of
`nyc_graph`, a data set of the package momepy 0.11 (drawn from OpenStreetMap by OSMnx in September 2022), as
corners, directions and lengths alone: `data/upper_west_side.csv`. (c) OpenStreetMap contributors, available
under the Open Database Licence, openstreetmap.org/copyright. The guess is 12 km/h everywhere; how slow each
link really is was drawn at random for this page, and a drive along a link measures it to within 0.2 minutes.
The plans are the 60 quickest ways by the guess; 0.3 minutes more or less do not matter.
"""

import csv
from pathlib import Path

import numpy as np
from drawing import CHOSEN, OTHER, effort, panels

import surepick as sp

DATA = Path(__file__).parent / "data"
START, END = "West End / W 92", "Central Park West / W 87"
METRES_PER_MINUTE = 200.0


def main():
    streets = sp.problems.as_network(DATA / "upper_west_side.csv", directed=True)
    guess = streets.columns["metres"] / METRES_PER_MINUTE
    problem = sp.problems.paths(streets, START, END, guess, n_best=60, noise=0.2)
    minutes = guess * np.random.default_rng(2).uniform(0.6, 1.8, len(guess))
    outcome = sp.simulate(problem, minutes, policy=sp.BetGapE(delta=0.05, epsilon=0.3), seed=0)
    by_guess = problem.best(guess)
    values = problem.values(minutes)
    print(f"{len(streets.nodes)} corners, {streets.n_edges} one-way links; {problem.completeness}")
    print(
        f"minutes: {values[by_guess]:.2f} by the shortest way, {values[outcome.plan]:.2f} by the answer, ",
        end="",
    )
    print(f"{values.min():.2f} by the quickest; {outcome.n_measured} drives along single links")

    figure, left, right = panels(1.3, 1, height=4.8)
    rows = csv.DictReader((DATA / "upper_west_side_corners.csv").read_text().splitlines())
    at = {row["corner"]: (float(row["x"]), float(row["y"])) for row in rows}
    on_way = problem.vector(outcome.plan) > 0
    for e, (tail, head) in enumerate(zip(streets.tails, streets.heads, strict=True)):
        ends = np.array([at[streets.nodes[tail]], at[streets.nodes[head]]]).T
        left.plot(*ends, color=CHOSEN if on_way[e] else OTHER, lw=4 if on_way[e] else 1.5, zorder=on_way[e])
    for corner in (START, END):
        left.annotate(corner, at[corner], fontsize=8, ha="center", va="bottom")
    left.set_aspect("equal")
    left.set_axis_off()
    effort(right, problem, outcome)
    return figure


if __name__ == "__main__":
    main().savefig("upper_west_side.png")
