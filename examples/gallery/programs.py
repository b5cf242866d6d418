"""Which program is fastest? Recorded timings of gzip and sort, replayed

2,000 rounds of five real commands on one machine with two cores, each round in a fresh random order
(`benchmarks/results/timings.npy`, recorded by `benchmarks/timing.py --record`). Timings have long tails: here
a skewness of 10 to 16. `surepick time` bets on signs, so that tails and drift that all commands share do not
matter: the answer beats each other command, slowed down by 2%, in at least half of all rounds. The two ways
to sort nearly tie, and within 2% either will do. Beside it the usual rule: ten runs of each command in a row,
and the least mean wins.
"""

from pathlib import Path

import numpy as np
from drawing import CHOSEN, OTHER, panels

import surepick as sp
from surepick.policies import SignRace

KEPT = np.load(Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "timings.npy").astype(float)
COMMANDS = ["gzip -5", "gzip -6", "gzip -4", "sort", "sort --parallel=1 -S 1M"]
CASES = {"gzip": [0, 1, 2], "sort": [3, 4]}
MARGIN, RUNS = 0.02, 100


class Rounds:
    """Rounds drawn with replacement: the commands of one request are timed in the same round."""

    def __init__(self, table):
        self.table, self.means = table, table.mean(axis=0)

    def measure(self, counts, rng):
        return counts * self.table[rng.integers(len(self.table))]


def least_mean_is_wrong(table, best, rng):
    """Return whether ten runs of each command, one command after the other, have another least mean."""
    return np.argmin([rng.choice(column, 10).mean() for column in table.T]) != best


def main():
    figure, *axes = panels(3, 2)
    for (title, columns), axis in zip(CASES.items(), axes, strict=True):
        table, names = KEPT[:, columns], [COMMANDS[c] for c in columns]
        wins = [(table[:, [k]] <= table).mean(axis=0).min() for k in range(len(names))]
        near = [(table[:, [k]] <= (1 + MARGIN) * table).mean(axis=0).min() for k in range(len(names))]
        best = int(np.argmax(wins))  # the truth: which beats each other one most often
        problem = sp.problems.choice(names, goal="smallest")
        outcomes = [
            sp.simulate(problem, Rounds(table), policy=SignRace(0.05, MARGIN), seed=s) for s in range(RUNS)
        ]
        rng = np.random.default_rng(0)
        slower = sum(near[outcome.plan] < 0.5 for outcome in outcomes)
        wrong = sum(least_mean_is_wrong(table, best, rng) for _ in range(RUNS))
        runs = np.median([outcome.n_measured for outcome in outcomes])
        print(f"{title}: {names[best]} is fastest, median {1000 * np.median(table[:, best]):.2f} ms")
        print(f"  sign bets: {runs:.0f} runs (median), more than 2% slower in {slower} of {RUNS} replays")
        print(f"  least mean of ten: {10 * len(names)} runs, another answer in {wrong} of {RUNS}")
        colours = [CHOSEN if k == best else OTHER for k in range(len(names))]
        axis.barh(names[::-1], 1000 * np.median(table, axis=0)[::-1], color=colours[::-1], height=0.6)
        axis.set_title(f"{title}: median, ms", fontsize=10)
    return figure


if __name__ == "__main__":
    main().savefig("programs.png")
