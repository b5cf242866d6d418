"""What BetGapE needs, next to its goals, to the limit of `limits` and to CombGapE's published radius.

python benchmarks/bet_gap_e.py > benchmarks/results/bet_gap_e.md     # about twenty minutes
python benchmarks/bet_gap_e.py --scale 0.1

Instances and noise are drawn with seeds that were never used while BetGapE was developed. Figures are means
over instances of measurements divided by the limit, T* log(1/(2.4 delta)) or the number of relevant arms
where that is larger. CombGapE's published radius does not keep its promise (docs/guarantees.md); it is here
because it is the method to beat. Its runs are cut off at `CUT_OFF` times the limit and counted as they are.
"""

import argparse
import itertools
import math
from dataclasses import dataclass

import numpy as np

import surepick as sp
from surepick.comparison import is_error
from surepick.problems import knapsack_instance, transport_instance

SEED = 6_300_000  # far from the seeds of development
CUT_OFF = 40
TOO_LONG = 150_000  # T* of instances left out and drawn again: CombGapE would need minutes each
PUBLISHED = "published"


@dataclass(frozen=True)
class Case:
    """A problem, its truth and the number of measurements below which no correct method stays on average."""

    problem: sp.Problem
    means: np.ndarray
    time: float  # T*

    def limit(self, delta):
        return max(self.time * math.log(1 / (2.4 * delta)), int(self.problem.relevant.sum()))


def case(problem, means):
    return Case(problem, np.asarray(means), sp.limit(problem, means).characteristic_time)


def drawn(draw, n):
    """The first n cases of a family that are not too long."""
    cases = (case(*draw(seed)) for seed in itertools.count(SEED))
    return list(itertools.islice((one for one in cases if one.time < TOO_LONG), n))


def transports(n):
    return drawn(lambda seed: parts(transport_instance(seed)), n)


def knapsacks(n_items):
    return lambda n: drawn(lambda seed: parts(knapsack_instance(n_items, seed)), n)


def ten_arms(n):
    return drawn(lambda seed: (sp.Problem(np.eye(10)), np.random.default_rng(seed).normal(size=10) / 2), n)


def parts(instance):
    return instance.problem, instance.means


def two_arms(gap):
    return lambda n: [case(sp.Problem(np.eye(2)), [gap, 0.0])] * n


# family, how to draw it, instances, goals at delta .05 and 1e-6
FAMILIES = [
    ("transport, great circle", transports, 50, 2.7, 1.5),
    ("knapsack, 5 items", knapsacks(5), 200, 3.0, 1.8),
    ("knapsack, 7 items", knapsacks(7), 200, 3.0, 1.8),
    ("knapsack, 9 items", knapsacks(9), 200, 3.0, 1.8),
    ("ten arms", ten_arms, 200, 3.0, 1.8),
    ("two arms, gap .05", two_arms(0.05), 200, 2.2, 1.8),
    ("two arms, gap .1", two_arms(0.1), 200, 2.2, 1.8),
    ("two arms, gap .3", two_arms(0.3), 200, 2.2, 1.8),
]


def run(one, policy, seed, cut_off=None):
    budget = 10**9 if cut_off is None else max(1000, int(cut_off * one.limit(policy.delta)))
    return sp.simulate(one.problem, policy, sp.Gaussian(one.means), seed=seed, budget=budget)


def multiples(cases, policy, cut_off=None):
    """Measurements over the limit, and how many answers were wrong."""
    outcomes = [run(one, policy, SEED + k, cut_off) for k, one in enumerate(cases)]
    ratios = [o.n_measurements / one.limit(policy.delta) for o, one in zip(outcomes, cases, strict=True)]
    wrong = sum(is_error(c.problem, sp.Gaussian(c.means), o) for o, c in zip(outcomes, cases, strict=True))
    seconds = [outcome.seconds for outcome in outcomes]
    return np.array(ratios), wrong, float(np.mean(seconds))


def spread(values):
    return f"{values.mean():.2f} +- {values.std(ddof=1) / math.sqrt(len(values)):.2f}"


def against_the_limit(scale):
    print(
        "| family | delta | BetGapE | goal | wrong | s/run | CombGapE published | wrong | BetGapE/CombGapE |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, draw, n, goal, small_goal in FAMILIES:
        cases = draw(max(3, int(n * scale)))
        for delta, aim in ((0.05, goal), (1e-6, small_goal)):
            bets, wrong, seconds = multiples(cases, sp.BetGapE(delta=delta))
            combs, combs_wrong, _ = multiples(cases, sp.CombGapE(delta=delta, radius=PUBLISHED), CUT_OFF)
            print(
                f"| {name} ({len(cases)} runs) | {delta:g} | {spread(bets)} | {aim} | {wrong} "
                f"| {seconds:.3f} | {spread(combs)} | {combs_wrong} | {bets.mean() / combs.mean():.2f} |",
                flush=True,
            )


def of_one_instance(scale):
    print("\n| one instance, many runs | median / limit | 98% quantile / median | goal |\n|---|---|---|---|")
    fixed = [
        ("transport", transports(1)[0], 200, 3.0),
        ("knapsack, 9 items", max(knapsacks(9)(8), key=lambda one: one.time), 400, 3.0),
        ("ten arms", ten_arms(1)[0], 400, 3.0),
        ("two arms, gap .1", two_arms(0.1)(1)[0], 400, 3.5),
    ]
    for name, one, n, goal in fixed:
        ratios, _, _ = multiples([one] * max(20, int(n * scale)), sp.BetGapE())
        median = np.median(ratios)
        print(f"| {name} | {median:.2f} | {np.quantile(ratios, 0.98) / median:.2f} | {goal} |", flush=True)


def with_ties(scale):
    instances = [transport_instance(SEED + k, distances="freeway") for k in range(10)]
    measured, losses = [], []
    for k, instance in enumerate(instances):
        for r in range(max(1, int(5 * scale))):
            truth = sp.Gaussian(instance.means)
            outcome = sp.simulate(instance.problem, sp.BetGapE(epsilon=0.05), truth, seed=SEED + 100 * k + r)
            values = instance.problem.values(instance.means)
            measured.append(outcome.n_measurements)
            losses.append(values[outcome.plan] - values.min())
    print(
        f"\nFreeway hours, epsilon .05, ten supply/demand draws: {np.mean(measured):.0f} measurements "
        f"on average (goal 7000), worst answer {60 * max(losses):.1f} minutes from the best (allowed 3).",
        flush=True,
    )


def with_costs(scale):
    print(
        "\n| prices 1 and 100, half the arms each | cost, relative to ignoring prices | goal |\n|---|---|---|"
    )
    for name, draw, n in (("transport", transports, 12), ("knapsack, 9 items", knapsacks(9), 40)):
        totals = []
        for k, one in enumerate(draw(max(4, int(n * scale)))):
            costs = np.where(np.random.default_rng([SEED, k]).random(one.problem.n_arms) < 0.5, 1.0, 100.0)
            priced = sp.Problem(one.problem.plans, costs=costs, minimize=one.problem.minimize)
            totals.append([spent(problem, one.means, costs) for problem in (priced, one.problem)])
        aware, blind = np.array(totals).T
        ratio = f"{aware.sum() / blind.sum():.2f} in all, {np.median(aware / blind):.2f} in the median"
        print(f"| {name} ({len(aware)} instances) | {ratio} | 0.6 |", flush=True)


def spent(problem, means, costs):
    """What three runs cost on average, at these prices whatever the problem says."""
    outcomes = [
        sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=SEED + s, budget=10**9) for s in range(3)
    ]
    return np.mean([outcome.counts @ costs for outcome in outcomes])


def large():
    print("\n| 10,000 plans, 200 arms | measurements | seconds |\n|---|---|---|")
    rng = np.random.default_rng(SEED)
    means = rng.normal(size=200)
    dense = rng.normal(size=(10_000, 200))
    thin = dense * (rng.random(dense.shape) < 0.05)
    from scipy import sparse

    for name, plans in (("all entries", dense), ("5% of the entries", sparse.csr_array(thin))):
        outcome = sp.simulate(sp.Problem(plans), sp.BetGapE(), sp.Gaussian(means), seed=SEED)
        print(f"| {name} | {outcome.n_measurements} | {outcome.seconds:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the runs")
    scale = parser.parse_args().scale
    sp.simulate(sp.Problem(np.eye(2)), sp.BetGapE(), sp.Gaussian([9.0, 0.0]))  # compile first
    print(
        f"# BetGapE against its goals\n\n`python benchmarks/bet_gap_e.py --scale {scale:g}`, N(0, 1) noise, "
        "means +- standard errors.\n"
    )
    against_the_limit(scale)
    of_one_instance(scale)
    with_ties(scale)
    with_costs(scale)
    large()


if __name__ == "__main__":
    main()
