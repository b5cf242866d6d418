"""What finding the best plan takes where probes are measured, in multiples of the limit; peers beside it.

python benchmarks/probes.py > benchmarks/results/probes.md      # 100 runs each; about 20 CPU minutes
python benchmarks/probes.py --runs 10 --peers 3
python benchmarks/probes.py --only pairs

Gaussian noise of scale 1, delta .05; the unit is T* kl(delta, 1 - delta), lower end of its bracket. RAGE has
the authors' constants; LinGapE is given the true norm of the means, which no user knows. Seeds from 7,300,000
on were used for nothing else.
"""

import argparse
import time

import numpy as np

import surepick as sp
from surepick.experiments import probe_cases as cases
from surepick.simulation.probed import GaussianReadings

SEED, DELTA, MOST = 7_300_000, 0.05, 3_000_000
INSTANCES = {  # name: (problem and means, goal)
    "Soare d = 5, angle .05": (lambda: cases.soare(5, 0.05), 2.1),
    "Soare d = 10, angle .1": (lambda: cases.soare(10, 0.1), 2.1),
    "Soare d = 20, angle .1": (lambda: cases.soare(20, 0.1), 2.1),
    "sphere 100 x 10": (lambda: cases.sphere(100, 10, 0), 2.8),
    "sphere 300 x 20": (lambda: cases.sphere(300, 20, 1), 3.5),
    "transductive 2 x 20": (lambda: cases.transductive(20), 2.2),
    "top 3 of 10, full": (lambda: cases.top_k(10, 3, 0, "full"), 2.4),
    "top 3 of 10, semi": (lambda: cases.top_k(10, 3, 0, "semi"), 2.4),
    "paths 4 x 4, full": (lambda: cases.grid_paths(4, 0, "full"), 2.2),
    "paths 4 x 4, semi": (lambda: cases.grid_paths(4, 0, "semi"), 2.2),
}


def measured(problem, means, policy, runs):
    """Cost in units of the limit, wrong answers, runs cut off, CPU milliseconds a block."""
    unit = sp.limit(problem, means, delta=DELTA).cost_lower_bound
    right, times, wrong, cut, blocks, began = problem.best(means), [], 0, 0, 0, time.process_time()
    for run in range(runs):
        outcome = sp.simulate(problem, policy, sp.Gaussian(means), seed=SEED + run, budget=MOST)
        times.append(outcome.cost / unit)
        wrong += outcome.plan not in (None, right)
        cut += outcome.plan is None
        blocks += outcome.n_rounds
    return np.array(times), wrong, cut, 1e3 * (time.process_time() - began) / max(blocks, 1)


def cell(times, wrong, cut):
    error = times.std(ddof=1) / len(times) ** 0.5 if len(times) > 1 else float("nan")
    words = f"{times.mean():.2f} +- {error:.2f}"
    return words + (f", {wrong} wrong" if wrong else "") + (f", {cut} cut off" if cut else "")


def instances(runs, peers):
    print("| instance | limit | BetGapE | goal | ms a block | RAGE | LinGapE | Uniform |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (build, goal) in INSTANCES.items():
        problem, means = build()
        unit = sp.limit(problem, means, delta=DELTA).cost_lower_bound
        sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=SEED - 1, budget=500)  # compiles
        times, wrong, cut, pace = measured(problem, means, sp.BetGapE(DELTA), runs)
        others = []
        if peers:
            others = [sp.RAGE(DELTA, variant="authors")]
            others += [sp.LinGapE(DELTA, norm_bound=float(np.linalg.norm(means)))] if unit < 700 else [None]
            others += [sp.Uniform(DELTA)]
        found = ["-" if one is None else cell(*measured(problem, means, one, peers)[:3]) for one in others]
        found += ["-"] * (3 - len(found))
        own = [name, f"{unit:,.0f}", cell(times, wrong, cut), str(goal), f"{pace:.2f}"]
        print(f"| {' | '.join([*own, *found])} |", flush=True)


def together(correlation, *, pairs):
    """Ten arms; one use reads all of them, or two, with this correlation of their noise."""
    names = [f"arm {i}" for i in range(10)]
    sets = [[a, b] for i, a in enumerate(names) for b in names[:i]] if pairs else [names]
    probes = {
        " and ".join(some) if pairs else "all": sp.Probe(
            some, covariance=(1 - correlation) * np.eye(len(some)) + correlation * np.ones((len(some),) * 2)
        )
        for some in sets
    }
    return sp.Problem(np.eye(10), arm_names=names, probes=probes)


def unknown(problem):
    """The same probes, of whose noise nothing is known."""
    probes = problem.probes
    named = {name: list(own) for name, own in zip(probes.names, probes.reading_names, strict=True)}
    return sp.Problem(problem.plans, arm_names=problem.arm_names, probes=named, noise_scale=None)


def pairs(runs):
    means = np.array([0.3] + [0.0] * 9)
    print(
        "\n| ten arms, gap .3; a use reads | independent | correlation .8 | ratio | unknown | ratio | wrong |"
    )
    print("|---|---|---|---|---|---|---|")
    for words, by_pairs in (("all ten", False), ("two of them", True)):
        apart, shared = (together(correlation, pairs=by_pairs) for correlation in (0.0, 0.8))
        used, wrong = [], 0
        for problem, truth in ((apart, apart), (shared, shared), (unknown(shared), shared)):
            world = GaussianReadings(means, truth.probes, None)
            outcomes = [
                sp.simulate(problem, sp.BetGapE(DELTA), world, seed=SEED + run) for run in range(runs)
            ]
            used.append(np.mean([outcome.n_measurements for outcome in outcomes]))
            wrong += sum(outcome.plan != 0 for outcome in outcomes)
        ratios = used[1] / used[0], used[2] / used[1]
        cells = [
            f"{used[0]:,.0f}",
            f"{used[1]:,.0f}",
            f"{ratios[0]:.2f}",
            f"{used[2]:,.0f}",
            f"{ratios[1]:.2f}",
        ]
        print(f"| {words} | {' | '.join(cells)} | {wrong} of {3 * runs} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--peers", type=int, default=10, help="runs of each peer")
    parser.add_argument("--only", choices=["instances", "pairs"])
    given = parser.parse_args()
    print(f"# Probes\n\n`python benchmarks/probes.py --runs {given.runs} --peers {given.peers}`\n")
    if given.only != "pairs":
        instances(given.runs, given.peers)
    if given.only != "instances":
        pairs(given.runs)


if __name__ == "__main__":
    main()
