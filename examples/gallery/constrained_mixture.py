"""Shares within limits: the instance of the closest published method

Carlsson, Basu, Johansson and Dubhashi (AISTATS 2024, arXiv 2306.12774) look for the best mixture of arms
under linear limits. This is the instance of their larger experiment: five arms with means 1, 0.5, 0.4, 0.95
and 0.8 and Gaussian noise of scale 1; the shares of the first two arms together, and those of the next two,
are at most one half. The authors' program stops by a threshold without a proof; `CTnS` and `CGE` are our
versions of the two methods, with that threshold and with a proved one.
"""

import numpy as np
from drawing import CHOSEN, effort, panels

import surepick as sp
from surepick.policies import CGE, CTnS

MEANS = [1.0, 0.5, 0.4, 0.95, 0.8]
RUNS = 5


def main():
    problem = sp.Polytope(
        A_ub=[[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]],
        b_ub=[0.5, 0.5],
        A_eq=[[1, 1, 1, 1, 1]],
        b_eq=[1.0],
        noise=1,
        goal="largest",
    )
    methods = {
        "BetGapE": sp.BetGapE(delta=0.1),
        "CTnS": CTnS(delta=0.1),
        "CGE": CGE(delta=0.1),
        "CTnS, their threshold": CTnS(delta=0.1, radius="heuristic"),
        "CGE, their threshold": CGE(delta=0.1, radius="heuristic"),
    }
    found = {
        name: [sp.simulate(problem, MEANS, policy=policy, seed=seed) for seed in range(RUNS)]
        for name, policy in methods.items()
    }
    means = {name: float(np.mean([one.n_measured for one in own])) for name, own in found.items()}
    for name, own in found.items():
        (plan,) = {one.plan_name for one in own}
        print(f"{name}: {plan}, {own[0].state} after {means[name]:,.0f}, the mean of {RUNS} runs")

    figure, left, right = panels(1, 1.4)
    left.barh(list(means)[::-1], list(means.values())[::-1], color=CHOSEN, height=0.6)
    left.set_title(f"measurements, mean of {RUNS} runs", fontsize=10)
    effort(right, problem, found["BetGapE"][0], sp.limit(problem, MEANS, delta=0.1))
    return figure


if __name__ == "__main__":
    main().savefig("constrained_mixture.png")
