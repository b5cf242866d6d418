"""All plans of a transport: no list, and what would have to change

Three mills supply three shops. Every way to send the goods is a plan; none is listed. BetGapE shows that no
edge at one corner improves, which proves it best of all. Beside the answer: how far the hours of each lane
may move, alone, before another plan is best. That is about the estimates, and no part of the guarantee.
"""

import numpy as np
from drawing import CHOSEN, OTHER, panels

import surepick as sp
from surepick.simulation import Gaussian

MILLS, SHOPS = ["north", "east", "south"], ["harbour", "market", "station"]
HOURS = np.array([[2.1, 3.4, 4.0], [2.9, 2.2, 3.6], [4.2, 3.1, 2.0]])


def main():
    problem = sp.problems.transport(
        [40, 35, 25],
        [30, 42, 28],
        HOURS.round(),
        noise=0.5,
        supplier_names=MILLS,
        demander_names=SHOPS,
    )
    outcome = sp.simulate(problem, Gaussian(HOURS.ravel(), 0.5), policy=sp.BetGapE(delta=0.05), seed=0)
    print(f"{problem.completeness}; sure after {outcome.n_measured} trips: {outcome.plan_name}")

    figure, axis = panels(1)
    amounts = np.array(outcome.plan)
    for row, (low, high) in enumerate(outcome.ranging.values()):
        colour = CHOSEN if amounts[row] else OTHER
        axis.plot([max(low, 0), min(high, 6)], [row, row], color=colour, linewidth=5, alpha=0.35)
        axis.plot(outcome.means[row], row, "o", color=colour)
        axis.annotate(f"{amounts[row]:g}" if amounts[row] else "", (6.1, row), va="center", color=colour)
    axis.set_yticks(range(9), problem.arm_names)
    axis.set_xlabel("hours per load: the estimate, and where the plan stays best; right, the loads sent")
    axis.invert_yaxis()
    return figure


if __name__ == "__main__":
    main().savefig("all_plans.png")
