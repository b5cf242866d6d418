"""A portfolio: where to put a research budget

A budget of 1 over five fields, at most 0.4 in each and at most 0.5 in the two risky ones. What a unit
returns is estimated by small grants. A guarantee about *means*: nothing here speaks of risk.
"""

from drawing import CHOSEN, effort, panels

import surepick as sp
from surepick.simulation import Gaussian

FIELDS = ["solar", "wind", "tidal", "fusion", "storage"]
RETURNS = [0.62, 0.55, 0.31, 0.70, 0.66]


def main():
    problem = sp.problems.portfolio(
        [0.5, 0.5, 0.4, 0.6, 0.6],
        upper=0.4,
        groups={"risky": (["tidal", "fusion"], 0.5)},
        spread=0.3,
        n_draws=1000,
        asset_names=FIELDS,
        noise=0.5,
    )
    print(problem.completeness)
    policy = sp.BetGapE(delta=0.05, epsilon=0.005)
    outcome = sp.simulate(problem, Gaussian(RETURNS, 0.5), policy=policy, seed=0)
    shares = problem.vector(outcome.plan)
    print(", ".join(f"{x:.0%} {f}" for x, f in zip(shares, FIELDS, strict=True) if x > 0))
    print(f"{outcome.n_measured:,} small grants; {outcome.guarantee}")

    figure, left, right = panels(1, 1)
    left.bar(FIELDS, shares, color=CHOSEN, width=0.6)
    left.set_title("the answer: shares of the budget")
    effort(right, problem, outcome, sp.limit(problem, RETURNS))
    return figure


if __name__ == "__main__":
    main().savefig("portfolio.png")
