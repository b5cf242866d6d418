"""The 5 x 4 transport of the paper's Figure 2

Five suppliers with 2, 3, 3, 1 and 4 goods, four demanders who want 3, 4, 4 and 2: the sums of the plan that
the paper's caption shows. What one good costs on each of the twenty ways is to be found out by sending
some.

The candidates are the transports that are cheapest somewhere within the spread of the guess. Plans are
amounts, not sets: how much a way matters for telling two plans apart depends on how much they send over it.
"""

import numpy as np
from drawing import CHOSEN, effort, panels

import surepick as sp
from surepick.simulation import Gaussian

SUPPLY, DEMAND = [2, 3, 3, 1, 4], [3, 4, 4, 2]
PAPERS_PLAN = [[2, 0, 0, 0], [1, 2, 0, 0], [0, 2, 1, 0], [0, 0, 1, 0], [0, 0, 2, 2]]


def main():
    rng = np.random.default_rng(4)
    guess = rng.uniform(2, 6, (5, 4)).round(1)
    truth = (guess + rng.uniform(-1, 1, guess.shape)).ravel()
    problem = sp.problems.transport(
        SUPPLY,
        DEMAND,
        guess,
        spread=1.0,
        n_draws=500,
        supplier_names=[f"supplier {i}" for i in range(1, 6)],
        demander_names=[f"demander {j}" for j in range(1, 5)],
        noise=1,
    )
    print(problem.completeness)
    print("the paper's plan is feasible:", np.sum(PAPERS_PLAN, axis=1), np.sum(PAPERS_PLAN, axis=0))

    outcome = sp.simulate(problem, Gaussian(truth), policy=sp.BetGapE(delta=0.05), seed=0, budget=10**6)
    print(f"{outcome.state}: {outcome.n_measured:,} goods sent to find out")
    plan = problem.vector(outcome.plan).reshape(5, 4)
    print(plan.astype(int))

    figure, left, right = panels(1, 1.1, height=3.8)
    left.imshow(plan, cmap="Greens", vmax=plan.max() * 1.6)
    for i, j in np.ndindex(plan.shape):
        left.annotate(f"{plan[i, j]:g}", (j, i), ha="center", va="center", color=CHOSEN, fontsize=12)
    left.set_xticks(range(4), [f"{d}" for d in DEMAND])
    left.set_yticks(range(5), [f"{s}" for s in SUPPLY])
    left.set_xlabel("demand")
    left.set_ylabel("supply")
    left.set_title("the answer: goods on each way")
    effort(right, problem, outcome, sp.limit(problem, truth))
    return figure


if __name__ == "__main__":
    main().savefig("optimal_transport.png")
