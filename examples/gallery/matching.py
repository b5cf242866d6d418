"""A matching: who does which job

Four people, four jobs; how long a person takes for a job is found out by letting them do it once. The
answer is the assignment with the least total time.
"""

import numpy as np
from drawing import CHOSEN, INK, effort, panels

import surepick as sp
from surepick.simulation import Gaussian

PEOPLE, JOBS = ["Ada", "Ben", "Cleo", "Dan"], ["weld", "paint", "wire", "test"]
HOURS = np.array([[3.1, 4.0, 5.2, 2.9], [2.8, 4.4, 4.1, 3.6], [4.5, 3.2, 4.9, 3.3], [3.4, 3.9, 4.6, 2.2]])


def main():
    guess = HOURS.round()
    problem = sp.problems.matchings(
        guess, row_names=PEOPLE, column_names=JOBS, spread=1.0, noise=0.5, goal="smallest"
    )
    print(problem.completeness)
    outcome = sp.simulate(problem, Gaussian(HOURS.ravel(), 0.5), policy=sp.BetGapE(delta=0.05), seed=1)
    print(f"{outcome.plan_name}: sure after {outcome.n_measured} trials")

    figure, left, right = panels(1, 1.1, height=3.8)
    chosen = problem.vector(outcome.plan).reshape(4, 4) > 0
    left.imshow(np.where(chosen, 1.0, 0.0), cmap="Greens", vmax=2.5)
    for i, j in np.ndindex(4, 4):
        mean = outcome.means.reshape(4, 4)[i, j]
        text = "-" if np.isnan(mean) else f"{mean:.1f} h"
        left.annotate(text, (j, i), ha="center", va="center", color=CHOSEN if chosen[i, j] else INK)
    left.set_xticks(range(4), JOBS)
    left.set_yticks(range(4), PEOPLE)
    left.set_title("measured hours, the answer in colour")
    effort(right, problem, outcome, sp.limit(problem, HOURS.ravel()))
    return figure


if __name__ == "__main__":
    main().savefig("matching.png")
