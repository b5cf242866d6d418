"""Blends in a laboratory

Five additives; a recipe uses two of them. The laboratory can only assay mixtures: each assay is one number
for a blend of known shares. Which blends to assay, and how often, is part of the question.
"""

from drawing import effort, panels, values

import surepick as sp
from surepick.simulation import Gaussian

ADDITIVES = ["alum", "borax", "chalk", "dolomite", "epsomite"]
EFFECT = [1.0, 0.4, 0.9, 0.2, 0.5]
SHARES = {
    "A": [0.6, 0.4, 0.0, 0.0, 0.0],
    "B": [0.0, 0.6, 0.4, 0.0, 0.0],
    "C": [0.0, 0.0, 0.6, 0.4, 0.0],
    "D": [0.0, 0.0, 0.0, 0.6, 0.4],
    "E": [0.4, 0.0, 0.0, 0.0, 0.6],
    "all": [0.2, 0.2, 0.2, 0.2, 0.2],
}


def main():
    pairs = {
        f"{one} + {other}": f"{one} + {other}"
        for i, one in enumerate(ADDITIVES)
        for other in ADDITIVES[i + 1 :]
    }
    assays = {name: dict(zip(ADDITIVES, row, strict=True)) for name, row in SHARES.items()}
    problem = sp.Problem(pairs, measure=assays, arms=ADDITIVES, noise=0.1, goal="largest")
    outcome = sp.simulate(problem, Gaussian(EFFECT), policy=sp.BetGapE(delta=0.05), seed=2)
    print(f"{outcome.plan_name}: sure after {outcome.n_measured} assays")
    print("assays of each blend:", dict(zip(problem.probe_names, outcome.counts.tolist(), strict=True)))

    figure, left, right = panels(1, 1)
    values(left, problem, outcome, EFFECT)
    effort(right, problem, outcome, sp.limit(problem, EFFECT))
    return figure


if __name__ == "__main__":
    main().savefig("blends.png")
