"""Test drives over a street grid

A van drives from one corner of a town to the other. No street can be timed by itself: a drive over a
whole route shows how long every street of it took. So the routes are what is measured (`measure="plan
arms"`), and each drive says something about all routes that share a street with it.
"""

from drawing import effort, network, panels

import surepick as sp
from surepick.simulation import Gaussian

SIDE = 3  # crossings on each side
PLACES = {f"{x}{y}": (x, y) for x in range(SIDE) for y in range(SIDE)}
STREETS = [
    (f"{x}{y}", f"{x + dx}{y + dy}")
    for x in range(SIDE)
    for y in range(SIDE)
    for dx, dy in ((1, 0), (0, 1))
    if x + dx < SIDE and y + dy < SIDE
]
MINUTES = [3.0, 4.0, 2.0, 3.5, 4.0, 3.0, 2.5, 3.0, 4.5, 2.0, 3.5, 3.0]


def main():
    routes = sp.problems.paths(STREETS, "00", "22", noise=0.5)
    drives = sp.Problem(
        routes.plans,
        measure="plan arms",
        goal="smallest",
        noise=0.5,
        arms=routes.arm_names,
        plan_names=[name.replace(" -> ", " ") for name in routes.plan_names],
    )
    truth = Gaussian(MINUTES)
    by_drive = sp.simulate(drives, truth, policy=sp.BetGapE(delta=0.05), seed=3)
    by_street = sp.simulate(routes, truth, policy=sp.BetGapE(delta=0.05), seed=3)
    print(f"best route: {by_drive.plan_name}")
    print(f"{by_drive.n_measured} drives, or {by_street.n_measured} streets timed one by one")

    figure, left, right = panels(1, 1)
    chosen = {e for e in range(len(STREETS)) if drives.plans[by_drive.plan][e]}
    network(left, PLACES, STREETS, chosen, [f"{minutes:g}" for minutes in MINUTES])
    effort(right, drives, by_drive)
    return figure


if __name__ == "__main__":
    main().savefig("street_grid.png")
