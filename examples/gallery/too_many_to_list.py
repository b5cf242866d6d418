"""A team of 20 out of 40: too many to list

There are 1.4e11 teams. None is listed: the policy asks a solver for the best team under given weights, which
for teams is a sort, and for other problems any exact solver of yours. BetGapE's guarantee is proved without a
union over teams.
"""

import numpy as np
from drawing import CHOSEN, OTHER, panels

import surepick as sp
from surepick.simulation import Gaussian

SCALE = 1.0


def main():
    problem = sp.problems.top_k([f"player {s}" for s in range(40)], 20, noise=SCALE, goal="largest")
    means = np.random.default_rng(0).permutation(np.linspace(0, 10, 40))
    outcome = sp.simulate(
        problem, Gaussian(means, SCALE), policy=sp.BetGapE(delta=0.05), seed=0, budget=50_000
    )
    team = np.array(outcome.plan) > 0
    print(f"{problem.n_plans:.2g} teams; {outcome.state} after {outcome.n_measured} trials")
    print(f"the right team: {set(np.flatnonzero(team)) == set(np.argsort(means)[20:])}")
    print(f"guarantee: {outcome.guarantee}")

    figure, axis = panels(1)
    order = np.argsort(means)
    colours = [CHOSEN if team[s] else OTHER for s in order]
    axis.bar(np.arange(40), outcome.counts[order], color=colours)
    axis.set_xlabel("players, from the weakest to the strongest; the team in colour")
    axis.set_ylabel("trials")
    return figure


if __name__ == "__main__":
    main().savefig("too_many_to_list.png")
