"""Two simulators on the same random numbers

Four layouts of a shop are simulated. Run with the same random numbers, they share most of their noise: one
use of the simulator gives four readings with a known covariance, and differences are far quieter than the
layouts themselves.
"""

import numpy as np
from drawing import CHOSEN, OTHER, panels, values

import surepick as sp
from surepick.simulation import Gaussian

LAYOUTS = ["today", "wide aisles", "two tills", "island"]
SERVED = [10.0, 10.1, 10.4, 10.2]
SHARED = 0.8  # the correlation of two layouts on the same numbers


def main():
    covariance = (1 - SHARED) * np.eye(4) + SHARED * np.ones((4, 4))
    plans = dict(zip(LAYOUTS, LAYOUTS, strict=True))
    ways = {
        "same numbers": {"all four": sp.Probe(LAYOUTS, covariance=covariance)},
        "fresh numbers": {"all four": LAYOUTS},
    }
    found = {}
    for way, probes in ways.items():
        problem = sp.Problem(plans, measure=probes, arms=LAYOUTS, noise=1, goal="largest")
        found[way] = [
            sp.simulate(problem, Gaussian(SERVED), policy=sp.BetGapE(delta=0.05), seed=seed)
            for seed in range(10)
        ]
        uses = np.mean([outcome.n_measured for outcome in found[way]])
        print(f"{way}: {uses:.0f} runs of all four on average; {found[way][0].plan_name}")

    figure, left, right = panels(1, 1)
    values(left, problem, found["same numbers"][0], SERVED)
    uses = [np.mean([outcome.n_measured for outcome in found[way]]) for way in ways]
    right.barh(list(ways), uses, color=[CHOSEN, OTHER], height=0.6)
    right.set_title("runs of all four until it was sure")
    return figure


if __name__ == "__main__":
    main().savefig("same_seed.png")
