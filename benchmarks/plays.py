"""What finding the best tree takes where whole trees are played: the published instances.

python benchmarks/plays.py > benchmarks/results/plays.md     # 100 runs of OBet on each; about 2 CPU minutes
python benchmarks/plays.py --runs 1 --peers 20               # also P-FWS and CombGame on E20, seconds a run

delta = .1, Gaussian noise of scale 1; the limit is T* kl(delta, 1 - delta), lower end of its bracket. Seeds
from 7,600,000 on were used for nothing else; nor were those from 500 on, which peers had.
"""

import argparse
import time

import numpy as np

import surepick as sp
from surepick.experiments.play_cases import PUBLISHED_DELTA, published_results, published_tree

PEERS = [
    kind(PUBLISHED_DELTA, variant)
    for kind in (sp.policies.PFWS, sp.policies.CombGame)
    for variant in ("authors", "paper")
]
SEED, PEER_SEED, MOST = 7_600_000, 500, 50_000


def measured(problem, means, policy, runs, seed):
    """Plays, wrong answers, runs cut off, CPU seconds of each run."""
    right, plays, wrong, cut, seconds = tuple(problem.best_plan(means)), [], 0, 0, []
    for run in range(runs):
        began = time.process_time()
        outcome = sp.simulate(problem, policy, sp.Gaussian(means), seed=seed + run, budget=MOST)
        seconds.append(time.process_time() - began)
        plays.append(outcome.n_measurements)
        wrong += outcome.plan not in (None, right)
        cut += outcome.plan is None
    return np.array(plays), wrong, cut, np.array(seconds)


def line(name, problem, means, policy, runs, seed=SEED):
    unit = sp.limit(problem, means, delta=PUBLISHED_DELTA).lower_bound
    plays, wrong, cut, seconds = measured(problem, means, policy, runs, seed)
    error = plays.std(ddof=1) / runs**0.5 if runs > 1 else float("nan")
    own = f"{plays.mean():,.0f} +- {error:,.0f} | {plays.mean() / unit:.2f} | {wrong} of {runs}"
    label = sp.policies.describe(policy)
    return f"| {name} | {label} | {unit:,.0f} | {own} | {cut} | {seconds.mean():.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--peers", type=int, default=0, help="runs of each peer on E20")
    given = parser.parse_args()
    print(f"# Plays\n\n`python benchmarks/plays.py --runs {given.runs} --peers {given.peers}`\n")
    print("| instance | method | limit | plays | x limit | wrong | cut off | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for name in ("E20", "E25"):
        problem, means = published_tree(name)
        sp.simulate(problem, sp.OBet(PUBLISHED_DELTA), sp.Gaussian(means), seed=1, budget=60)  # compiles
        print(line(name, problem, means, sp.OBet(PUBLISHED_DELTA), given.runs), flush=True)
        for peer in PEERS if given.peers and name == "E20" else ():
            print(line(name, problem, means, peer, given.peers, PEER_SEED), flush=True)
        for method, found in published_results(name).items():
            print(
                f"| {name} | {method}, as printed | | {found['plays']:,} | | {found['errors']:.2f} | | "
                f"{found['seconds_a_run']:,} |"
            )


if __name__ == "__main__":
    main()
