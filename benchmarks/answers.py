"""What is answered at any time, measured: guesses as a past, noise of bounded variance.

python benchmarks/answers.py > benchmarks/results/answers.md     # everything
python benchmarks/answers.py guesses variance --scale 0.1       # some of it, with small samples

Instances and noise have seeds that were never used to set anything. Measurements are in units of the limit,
T* kl(delta, 1 - delta) or (1 - 2 delta) relevant arms where that is larger; delta = .05 unless said.
"""

import argparse
import itertools
import math

import numpy as np

import surepick as sp
from surepick.planning.comparison import is_error
from surepick.planning.limit import fewest
from surepick.problems import knapsack_instance, transport_instance

SEED = 9_300_000
TOO_LONG = 30_000  # T* of instances that are left out and drawn again


def knapsacks(n_items):
    return lambda seed: knapsack_instance(n_items, seed)


class TenArms:
    """Ten arms as plans, means N(0, 1/4)."""

    def __init__(self, seed):
        self.problem, self.means = sp.Problem(np.eye(10)), np.random.default_rng(seed).normal(size=10) / 2


def drawn(draw, n):
    """The first n instances that are not too long, each with its limit at delta = .05."""

    def with_limits():
        for case in map(draw, itertools.count(SEED)):
            time = sp.limit(case.problem, case.means).characteristic_time
            if time < TOO_LONG:
                limit = fewest(time, int(case.problem.relevant.sum()), 0.05)
                yield case.problem, np.asarray(case.means), limit

    return list(itertools.islice(with_limits(), n))


def compared(with_it, without):
    """How many per cent more, with the standard error of the paired difference."""
    with_it, without = np.array(with_it), np.array(without)
    error = (with_it - without).std(ddof=1) / math.sqrt(len(without)) / without.mean()
    return f"{100 * (with_it.mean() / without.mean() - 1):+.0f}% +- {100 * error:.0f}"


def run(case, seed, problem=None, past=None):
    """Measurements in units of the limit, and whether the answer was wrong."""
    own, means, limit = case
    problem = own if problem is None else problem
    outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=seed, budget=10**8, past=past)
    return outcome.n_measurements / limit, is_error(own, sp.Gaussian(means), outcome)


def guesses(scale):
    """Guesses with errors as stated, and three times as large."""
    families = [(f"knapsack, {n} items", knapsacks(n), 200) for n in (5, 7, 9)]
    families += [("ten arms", TenArms, 200), ("transport", transport_instance, 30)]
    cases = [(1 / 4, 1), (1, 1), (4, 1), (16, 1), (1, 3), (4, 3)]
    named = [f"worth {w:g}" + (", errors x 3" if e == 3 else "") for w, e in cases]
    print("| relative to no guess | without | " + " | ".join(named) + " | wrong |")
    print("|---" * (len(cases) + 3) + "|")
    for name, draw, n in families:
        found = drawn(draw, max(3, int(n * scale)))
        plain = [run(case, SEED + k) for k, case in enumerate(found)]
        bare, wrong, cells = [ratio for ratio, _ in plain], 0, []
        for worth, errors in cases:
            guessed = [guess_run(case, k, worth, errors) for k, case in enumerate(found)]
            wrong += sum(is_wrong for _, is_wrong in guessed)
            cells.append(compared([ratio for ratio, _ in guessed], bare))
        print(f"| {name} ({len(found)}) | {np.mean(bare):.2f} | {' | '.join(cells)} | {wrong} |", flush=True)


def guess_run(case, k, worth, errors):
    problem, means, _ = case
    spread = problem.noise_scale / math.sqrt(worth)
    off = errors * spread * np.random.default_rng(SEED + k).standard_normal(len(means))
    return run(case, SEED + k, past=sp.Past.from_guess(problem, means + off, spread))


def variance(scale):
    """What the factor of bounded variance costs where the noise is Gaussian."""
    print("| Gaussian noise, multiples of the limit | usual factor | bounded variance | more | wrong |")
    print("|---|---|---|---|---|")
    families = [(f"knapsack, {n} items", knapsacks(n), 200) for n in (5, 7, 9)]
    families += [("ten arms", TenArms, 200), ("transport", transport_instance, 40)]
    for name, draw, n in families:
        found = drawn(draw, max(3, int(n * scale)))
        usual = [run(case, SEED + k) for k, case in enumerate(found)]
        other = [run(case, SEED + k, case[0].with_bounded_variance()) for k, case in enumerate(found)]
        first, second = ([ratio for ratio, _ in runs] for runs in (usual, other))
        wrong = sum(is_wrong for _, is_wrong in other)
        more = compared(second, first)
        print(f"| {name} ({len(found)}) | {np.mean(first):.2f} | {np.mean(second):.2f} | {more} | {wrong} |")


STUDIES = {"guesses": guesses, "variance": variance}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("studies", nargs="*", help=", ".join(STUDIES))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full samples")
    given = parser.parse_args()
    print("# Answers at any time, measured\n")
    for name in given.studies or STUDIES:
        print(f"## {STUDIES[name].__doc__}\n")
        STUDIES[name](given.scale)
        print(flush=True)
