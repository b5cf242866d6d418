"""The best two of six designs

Six designs of a page; a visitor buys or does not, which is 0 or 1: sub-Gaussian with scale 1/2, no
assumption needed. The answer is the pair with the most sales. With k = 1 this is best-arm identification.
"""

from drawing import effort, panels, values

import surepick as sp
from surepick.simulation import Bernoulli

DESIGNS = ["plain", "bold", "photo", "film", "quiz", "story"]
RATES = [0.21, 0.24, 0.43, 0.22, 0.31, 0.45]


def main():
    problem = sp.problems.top_k(DESIGNS, 2, noise=0.5, goal="largest")
    outcome = sp.simulate(problem, Bernoulli(RATES), policy=sp.BetGapE(delta=0.05), seed=5)
    print(f"{outcome.plan_name}: sure after {outcome.n_measured:,} visitors")
    print("visitors of each:", dict(zip(DESIGNS, outcome.counts.tolist(), strict=True)))

    figure, left, right = panels(1, 1)
    values(left, problem, outcome, RATES)
    effort(right, problem, outcome, sp.limit(problem, RATES))
    return figure


if __name__ == "__main__":
    main().savefig("best_two.png")
