"""What OBet needs next to BetGapE with a list, to the limit and to GenTS-Explore; and how it grows.

python benchmarks/obet.py > benchmarks/results/obet.md     # about ten minutes on an idle core
python benchmarks/obet.py --scale 0.2

Instances and noise are drawn with seeds that were never used while OBet was developed: means N(0, 1), noise
N(0, 1), delta = .05; instances with a T* beyond `TOO_LONG` are drawn again. Multiples are of the limit
(`surepick.planning.limit`). Where plans cannot be listed, T* is the certified lower end of its bracket, so
multiples are at most too large. Seconds are of CPU.
"""

import argparse
import itertools
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np

import surepick as sp
from surepick import problems
from surepick.core.policy import start
from surepick.planning.comparison import binomial_interval

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

SEED = 9_700_000  # far from the seeds of development, and from those of the tables before it
NOISE_SEED = 9_800_000
LIMITS_SEED = 8_500_000  # the seeds of those tables: brackets of T* are compared with what they were then
TOO_LONG = 150_000
DRAWS_BUDGET = 1_000  # measurements after which GenTS-Explore is cut off: each is hundreds of oracle calls


def names(n):
    return [str(s) for s in range(n)]


def grid(n):
    graph = nx.DiGraph([((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)])
    graph.add_edges_from([((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)])
    return problems.path_family(graph, (0, 0), (n - 1, n - 1))


def trees(graph):
    return problems.tree_family(graph)


def matchings(n):
    return problems.matching_family(names(n), names(n))


SMALL = {
    "top 3 of 8": lambda: problems.top_k_family(names(8), 3),
    "top 5 of 10": lambda: problems.top_k_family(names(10), 5),
    "top 2 of 12": lambda: problems.top_k_family(names(12), 2),
    "grid paths, 4 x 4": lambda: grid(4),
    "grid paths, 5 x 5": lambda: grid(5),
    "spanning trees of K_4": lambda: trees(nx.complete_graph(4)),
    "spanning trees of K_5": lambda: trees(nx.complete_graph(5)),
    "spanning trees of a wheel": lambda: trees(nx.wheel_graph(6)),
    "assignments, 4 x 4": lambda: matchings(4),
    "assignments, 5 x 5": lambda: matchings(5),
}


def cables(noise=100.0):
    """The network of examples/cable_network.py with its own lengths, in units of this noise in km."""
    from cable_network import links

    pairs, lengths = links()
    return trees(pairs), lengths / noise


LARGE = {
    "top 20 of 40": (lambda: problems.top_k_family(names(40), 20), 16),
    "spanning trees of K_12": (lambda: trees(nx.complete_graph(12)), 10),
    "assignments, 13 x 13": (lambda: matchings(13), 6),
    "grid paths, 18 x 18": (lambda: grid(18), 4),
}


def listed(family):
    """The same plans in a list."""
    if family.within is not None:
        return family.problem(every=True)
    size = int(family.best(np.zeros(family.n_arms)).sum())
    return problems.top_k(list(family.arm_names), size)


def instance(problem, seed):
    """Means that are not too hard, and their limit."""
    drawn = (np.random.default_rng([seed, k]).normal(size=problem.n_arms) for k in itertools.count())
    found = ((means, sp.limit(problem, means, tolerance=1e-3)) for means in drawn)
    return next((means, limit) for means, limit in found if limit.lower < TOO_LONG)


def unit(found, delta=0.05):
    return found.measurements(delta)


@dataclass
class Clock:
    """CPU seconds and calls of a function."""

    function: object
    seconds: float = 0.0
    calls: int = 0

    def __call__(self, *arguments):
        began = time.process_time()
        try:
            return self.function(*arguments)
        finally:
            self.seconds += time.process_time() - began
            self.calls += 1


@dataclass(frozen=True)
class Timed:
    """A run of OBet behind an oracle that is watched."""

    right: bool
    n_measurements: int
    n_blocks: int
    seconds: float
    oracle: Clock


def timed_run(family, means, seed, noise=1.0, *, own=True):
    watched = family.oracle_problem(noise_scale=noise)
    clock = Clock(watched.best)
    object.__setattr__(watched, "best", clock)
    if not own:
        object.__setattr__(watched, "losses", None)  # as behind a function of the user's own
    truth, rng, n_blocks, n = sp.Gaussian(means, noise), np.random.default_rng(seed), 0, 0
    began = time.process_time()
    run = start(sp.OBet(), watched)
    while isinstance(decision := run.decide(rng), sp.Measure):
        run.absorb(decision.counts, truth.measure(decision.counts, rng))
        n_blocks, n = n_blocks + 1, n + int(decision.counts.sum())
    right = decision.plan == tuple(family.best(means))
    return Timed(right, n, n_blocks, time.process_time() - began, clock)


def spread(values):
    return f"{np.mean(values):.2f} +- {np.std(values, ddof=1) / math.sqrt(len(values)):.2f}"


def enumerable(scale):
    n = max(3, int(30 * scale))
    print(f"\n## Families that can be listed, {n} instances each\n")
    print(
        "| family | plans | OBet / limit | BetGapE, listed / limit | OBet / BetGapE | wrong (OBet, BetGapE) |"
    )
    print("|---|---|---|---|---|---|")
    means_of, wrongs, runs = [], np.zeros(2, dtype=int), 0
    for name, make in SMALL.items():
        family, multiples, wrong = make(), [], np.zeros(2, dtype=int)
        plans = listed(family)
        for k in range(n):
            means, found = instance(plans, SEED + k)
            truth, best = sp.Gaussian(means), tuple(family.best(means))
            asked = sp.simulate(family.oracle_problem(), sp.OBet(), truth, seed=SEED + k, budget=10**9)
            told = sp.simulate(plans, sp.BetGapE(), truth, seed=SEED + k, budget=10**9)
            multiples.append([asked.n_measurements / unit(found), told.n_measurements / unit(found)])
            wrong += [asked.plan != best, told.plan != plans.best(means)]
        ours, theirs = np.array(multiples).T
        means_of.append([ours.mean(), theirs.mean()])
        wrongs, runs = wrongs + wrong, runs + n
        ratio = ours.mean() / theirs.mean()
        print(
            f"| {name} | {plans.n_plans} | {spread(ours)} | {spread(theirs)} | {ratio:.2f} "
            f"| {wrong[0]}, {wrong[1]} |",
            flush=True,
        )
    ours, theirs = np.array(means_of).T
    low, high = binomial_interval(int(wrongs[0]), runs)
    print(
        f"\nOver the ten families: OBet {ours.mean():.2f} and BetGapE {theirs.mean():.2f} times the limit, "
        f"ratio of the means {ours.mean() / theirs.mean():.3f}, mean of the ratios "
        f"{(ours / theirs).mean():.3f} (goal 1.15). "
        f"OBet was wrong in {wrongs[0]} of {runs} runs (95% interval {low:.4f} to {high:.4f}).",
        flush=True,
    )


def large(scale):
    print("\n## Families that cannot be listed\n")
    print(
        "| family | plans | arms | T* (lower end; width of the bracket) | right | OBet / limit | CPU s a run "
        "| GenTS-Explore |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, (make, n) in LARGE.items():
        family = make()
        cases = [instance(family.oracle_problem(), SEED + k) for k in range(max(2, int(n * scale)))]
        row(name, family, cases)
    family, lengths = cables()
    found = sp.limit(family.oracle_problem(), lengths, tolerance=1e-3)
    row("cable network, 18 cities, noise 100 km", family, [(lengths, found)] * max(2, int(16 * scale)))


def noises(scale):
    """The cable network from the noise of its example upwards; T* grows with its square."""
    n = max(2, int(10 * scale))
    print(f"\n## The cable network by the noise of one survey, {n} runs each\n")
    print("| noise, km | T* | limit | right | OBet / limit | CPU s a run |\n|---|---|---|---|---|---|")
    for noise in (2.0, 20.0, 50.0, 100.0, 200.0, 400.0):
        family, lengths = cables(noise)
        found = sp.limit(family.oracle_problem(), lengths, tolerance=1e-3)
        runs = [timed_run(family, lengths, NOISE_SEED + k) for k in range(n)]
        multiples = [run.n_measurements / unit(found) for run in runs]
        right, seconds = sum(run.right for run in runs), np.mean([run.seconds for run in runs])
        print(
            f"| {noise:g} | {found.lower:.4g} | {unit(found):.0f} | {right} of {n} "
            f"| {spread(multiples)} (largest {max(multiples):.1f}) | {seconds:.1f} |",
            flush=True,
        )


def limits(scale):
    print("\n## The limit without a list: certified bracket of T*\n")
    print("| family | arms | T*, lower end | upper / lower - 1 | CPU s |\n|---|---|---|---|---|")
    for name, (make, _) in LARGE.items():
        family = make()
        problem = family.oracle_problem()
        for k in range(max(1, int(3 * scale))):
            means = np.random.default_rng([LIMITS_SEED + k, 0]).normal(size=family.n_arms)
            began = time.process_time()
            found = sp.limit(problem, means, tolerance=1e-3)
            seconds = time.process_time() - began
            print(
                f"| {name} | {family.n_arms} | {found.lower:.5g} | {found.upper / found.lower - 1:.2g} "
                f"| {seconds:.1f} |",
                flush=True,
            )


def row(name, family, cases):
    runs = [timed_run(family, means, SEED + k) for k, (means, _) in enumerate(cases)]
    multiples = [run.n_measurements / unit(found) for run, (_, found) in zip(runs, cases, strict=True)]
    times = ", ".join(
        f"{found.lower:.4g} ({found.upper / found.lower - 1:.1g})" for _, found in each_once(cases)
    )
    right = sum(run.right for run in runs)
    seconds = np.mean([run.seconds for run in runs])
    print(
        f"| {name} | {family.n_plans:.2g} | {family.n_arms} | {times} | {right} of {len(runs)} "
        f"| {spread(multiples)} (largest {max(multiples):.1f}) | {seconds:.1f} "
        f"| {by_draws(family, *cases[0])} |",
        flush=True,
    )


def each_once(cases):
    """Each instance once."""
    return list({id(found): (means, found) for means, found in cases}.values())


def by_draws(family, means, found):
    """What GenTS-Explore has done on the first instance when it is cut off."""
    began = time.process_time()
    budget = family.n_arms + DRAWS_BUDGET
    outcome = sp.simulate(
        family.oracle_problem(), sp.GenTSExplore(), sp.Gaussian(means), seed=SEED, budget=budget
    )
    seconds = time.process_time() - began
    multiple = f"{outcome.n_measurements / unit(found):.2g} x the limit"
    if outcome.plan is None:
        return f"cut off at {outcome.n_measurements} measurements ({multiple}), {seconds:.0f} s"
    return f"{outcome.n_measurements} measurements ({multiple}), {seconds:.0f} s"


def growth():
    print(
        "\n## How the work grows: grid paths, one run each, with losses that the family knows and without\n"
    )
    print(
        "| arms | plans | losses | measurements | blocks | oracle calls a block | CPU s a block "
        "| share in oracle |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for n, own in itertools.product((4, 6, 9, 12, 15, 18), (True, False)):
        family = grid(n)
        means = np.random.default_rng([SEED, n]).normal(size=family.n_arms)
        run = timed_run(family, means, SEED, own=own)
        print(
            f"| {family.n_arms} | {family.n_plans:.2g} | {'known' if own else 'asked for'} "
            f"| {run.n_measurements} | {run.n_blocks} | {run.oracle.calls / run.n_blocks:.0f} "
            f"| {run.seconds / run.n_blocks:.3f} | {run.oracle.seconds / run.seconds:.2f} |",
            flush=True,
        )


def errors(scale):
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "policies" / "betting"))
    from test_obet import Peeking

    from hard_families import FAMILIES, count_errors, is_refuted

    runs = max(50, int(200 * scale))
    print(f"\n## Error rates on families made to catch a policy, {runs} runs each\n")
    print("| family | bets | delta | wrong | 95% interval | promise |\n|---|---|---|---|---|---|")
    control = "two arms, gap .02, delta .05"
    for name, policy, label in [
        *((name, sp.OBet, "before the block") for name in FAMILIES),
        (control, Peeking, "after the block (control)"),
    ]:
        family = FAMILIES[name]
        wrong, _ = count_errors(family, policy, runs, SEED)
        low, high = binomial_interval(wrong, runs)
        verdict = "refuted" if is_refuted(wrong, runs, family.delta) else "holds"
        print(
            f"| {name} | {label} | {family.delta} | {wrong} | {low:.4f} to {high:.4f} | {verdict} |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the runs")
    names_of_parts = ["enumerable", "limits", "large", "noises", "growth", "errors"]
    parser.add_argument("--only", choices=names_of_parts, help="one part")
    options = parser.parse_args()
    sp.simulate(sp.Problem(np.eye(2)), sp.OBet(), sp.Gaussian([9.0, 0.0]))  # compile first
    parts = {
        "enumerable": lambda: enumerable(options.scale),
        "limits": lambda: limits(options.scale),
        "large": lambda: large(options.scale),
        "noises": lambda: noises(options.scale),
        "growth": growth,
        "errors": lambda: errors(options.scale),
    }
    print(
        f"# OBet\n\n`python benchmarks/obet.py --scale {options.scale:g}`, N(0, 1) noise, means +- standard "
        "errors."
    )
    for name, part in parts.items():
        if options.only in (None, name):
            part()


if __name__ == "__main__":
    main()
