"""A tie between cities: the exact question does not end, within three minutes it does

Nine depots supply nine towns over real freeways. Roads share segments, so some plans take exactly the same
time: no number of trips can tell them apart, and the limit says which change makes no difference. Asked for a
plan within three minutes of the best of all, BetGapE ends after some thousands of trips. The answer is an
average of the plans that led on the way, and a search over boxes of plans proves it.
"""

import numpy as np
from drawing import CHOSEN, OTHER, panels

import surepick as sp
from surepick.problems.cities import city_hours
from surepick.simulation import Gaussian

SUPPLY = [14, 9, 12, 7, 10, 13, 8, 16, 11]
DEMAND = [10, 13, 9, 15, 8, 12, 11, 14, 8]
THREE_MINUTES = 0.05  # hours per unit


def main():
    hours = city_hours("freeway")
    shares = np.array(SUPPLY) / 100, np.array(DEMAND) / 100
    names = {"supplier_names": hours.row_names, "demander_names": hours.column_names}
    problem = sp.problems.transport(*shares, hours.numbers, **names, noise=1)
    truth = Gaussian(hours.numbers.ravel())
    print(sp.limit(problem, truth.means).explanation)
    least = problem.best_plan(truth.means) @ truth.means

    figure, left, right = panels(1, 1)
    for epsilon, colour in ((0.1, OTHER), (THREE_MINUTES, CHOSEN)):
        outcomes = [
            sp.simulate(problem, truth, policy=sp.BetGapE(0.05, epsilon), seed=seed) for seed in range(8)
        ]
        trips = [outcome.n_measured for outcome in outcomes]
        late = [60 * (np.array(outcome.plan) @ truth.means - least) for outcome in outcomes]
        label = f"within {60 * epsilon:g} minutes"
        left.plot(trips, late, "o", color=colour, label=f"{label}: {np.mean(trips):,.0f} trips on average")
        left.axhline(60 * epsilon, color=colour, lw=1, ls="--")
    print(f"{label}: {trips[0]:,} trips, in truth {late[0]:.2g} minutes from the best")
    left.set_xlabel("trips measured, eight runs each")
    left.set_ylabel("minutes from the best plan, in truth")
    left.set_ylim(-0.1, 6.6)
    left.legend(frameon=False, fontsize=8, loc="upper right", bbox_to_anchor=(1.0, 0.85))
    _draw_plan(right, outcomes[0], hours)
    return figure


def _draw_plan(axis, outcome, hours):
    plan = np.array(outcome.plan).reshape(9, 9)
    axis.imshow(plan, cmap="Greens", vmax=1.4 * plan.max())
    n_lanes = int((plan > 1e-9).sum())
    axis.set_xticks(range(9), hours.column_names, rotation=90, fontsize=7)
    axis.set_yticks(range(9), hours.row_names, fontsize=7)
    axis.set_title(f"the answer: {n_lanes} lanes (a vertex has 17)")


if __name__ == "__main__":
    main().savefig("freeway_tie.png")
