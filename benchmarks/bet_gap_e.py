"""What BetGapE needs, next to its goals, to the limit of `limits` and to CombGapE's published radius.

python benchmarks/bet_gap_e.py > benchmarks/results/bet_gap_e.md     # about twenty minutes
python benchmarks/bet_gap_e.py --scale 0.1 --only limit time

Instances and noise are drawn with seeds that were never used while BetGapE was developed. Figures are means
over instances of measurements divided by the limit, T* kl(delta, 1 - delta) or (1 - 2 delta) relevant arms
where that is larger. CombGapE's published radius does not keep its promise (docs/guarantees.md); it is here
because it is the method to beat. Its runs are cut off at `CUT_OFF` times the limit and counted as they are.
"""

import argparse
import itertools
import math
import time
from dataclasses import dataclass

import numpy as np

import surepick as sp
from surepick.planning.comparison import is_error
from surepick.planning.limit_value import fewest
from surepick.problems import knapsack_instance, transport_instance

SEED = 8_100_000  # far from the seeds of development
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
        return fewest(self.time, int(self.problem.relevant.sum()), delta)


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


# family, how to draw it, instances, goals at delta .05 and 1e-6. The goals were set when the limit was
# T* log(1/(2.4 delta)); in units of today's limit they are .80 and .94 of what they were.
FAMILIES = [
    ("transport, great circle", transports, 50, 2.16, 1.40),
    ("knapsack, 5 items", knapsacks(5), 200, 2.40, 1.69),
    ("knapsack, 7 items", knapsacks(7), 200, 2.40, 1.69),
    ("knapsack, 9 items", knapsacks(9), 200, 2.40, 1.69),
    ("ten arms", ten_arms, 200, 2.40, 1.69),
    ("two arms, gap .05", two_arms(0.05), 200, 1.76, 1.69),
    ("two arms, gap .1", two_arms(0.1), 200, 1.76, 1.69),
    ("two arms, gap .3", two_arms(0.3), 200, 1.76, 1.69),
]


def run(one, policy, seed, cut_off=None):
    budget = 10**9 if cut_off is None else max(1000, int(cut_off * one.limit(policy.delta)))
    return sp.simulate(one.problem, policy, sp.Gaussian(one.means), seed=seed, budget=budget)


def multiples(cases, policy, cut_off=None):
    """Measurements over the limit, and how many answers were wrong."""
    outcomes = [run(one, policy, SEED + k, cut_off) for k, one in enumerate(cases)]
    ratios = [o.n_measurements / one.limit(policy.delta) for o, one in zip(outcomes, cases, strict=True)]
    wrong = sum(is_error(c.problem, sp.Gaussian(c.means), o) for o, c in zip(outcomes, cases, strict=True))
    return np.array(ratios), wrong


def spread(values, digits=2):
    return f"{values.mean():.{digits}f} +- {values.std(ddof=1) / math.sqrt(len(values)):.{digits}f}"


def against_the_limit(scale):
    print("| family | delta | BetGapE | goal | wrong | CombGapE published | wrong | BetGapE/CombGapE |")
    print("|---|---|---|---|---|---|---|---|")
    for name, draw, n, goal, small_goal in FAMILIES:
        cases = draw(max(3, int(n * scale)))
        for delta, aim in ((0.05, goal), (1e-6, small_goal)):
            bets, wrong = multiples(cases, sp.BetGapE(delta=delta))
            combs, combs_wrong = multiples(cases, sp.CombGapE(delta=delta, radius=PUBLISHED), CUT_OFF)
            print(
                f"| {name} ({len(cases)} runs) | {delta:g} | {spread(bets)} | {aim} | {wrong} "
                f"| {spread(combs)} | {combs_wrong} | {bets.mean() / combs.mean():.2f} |",
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
        ratios, _ = multiples([one] * max(20, int(n * scale)), sp.BetGapE())
        median = np.median(ratios)
        print(f"| {name} | {median:.2f} | {np.quantile(ratios, 0.98) / median:.2f} | {goal} |", flush=True)


def with_ties(scale):
    measured, losses = [], []
    for k in range(max(10, int(30 * scale))):
        instance = transport_instance(SEED + k, distances="freeway")
        values = instance.problem.values(instance.means)
        runs = [
            sp.simulate(
                instance.problem,
                sp.BetGapE(epsilon=0.05),
                sp.Gaussian(instance.means),
                seed=SEED + 100 * k + r,
            )
            for r in range(max(2, int(5 * scale)))
        ]
        measured.append(np.mean([outcome.n_measurements for outcome in runs]))
        losses += [values[outcome.plan] - values.min() for outcome in runs]
    measured = np.array(measured)
    print(
        f"\nFreeway hours, epsilon .05: {spread(measured, 0)} measurements on average over {len(measured)} "
        f"supply/demand draws, between {measured.min():.0f} and {measured.max():.0f}; the first ten "
        f"{measured[:10].mean():.0f} (goal 7000). "
        f"The worst answer is {60 * max(losses):.1f} minutes from the best (allowed 3).",
        flush=True,
    )


TEXTBOOK = {  # means, and what KN (Kim and Nelson 2001) needs with a zone of .3
    "two arms, gap .3": ([0.3, 0.0], 81),
    "ten arms, one better by .3": ([0.3] + [0.0] * 9, 848),
    "ten arms, 0, -.3, -.6, ...": ([-0.3 * i for i in range(10)], 382),
}


def against_the_textbook(scale):
    print("\n| epsilon .3 | measurements | KN | more than epsilon worse |\n|---|---|---|---|")
    for name, (means, textbook) in TEXTBOOK.items():
        problem, n = sp.Problem(np.eye(len(means))), max(20, int(400 * scale))
        outcomes = [
            sp.simulate(problem, sp.BetGapE(epsilon=0.3), sp.Gaussian(means), seed=SEED + s) for s in range(n)
        ]
        wrong = sum(means[outcome.plan] < max(means) - 0.3 - 1e-9 for outcome in outcomes)
        measured = np.array([outcome.n_measurements for outcome in outcomes])
        print(f"| {name} | {spread(measured, 0)} | {textbook} | {wrong} of {n} |", flush=True)


PRICES = {
    "half the arms 1, half 100": lambda u: np.where(u < 0.5, 1.0, 100.0),
    "four of five arms 1, one 100": lambda u: np.where(u < 0.8, 1.0, 100.0),
    "1 to 100, log-uniform": lambda u: 100.0**u,
}


def with_costs(scale):
    """Cost relative to ignoring prices; `limits` is that ratio for a method at the limit in both cases."""
    print(
        "\n| prices | instances | all together | each in units of its limit | median | limits | goal |"
        "\n|---|---|---|---|---|---|---|"
    )
    families = (("transport", transports(max(6, int(60 * scale))), 2), ("knapsack, 9 items", None, 8))
    for name, cases, n_runs in families:
        cases = cases or knapsacks(9)(max(12, int(100 * scale)))
        blind = [[run(one, sp.BetGapE(), SEED + s).counts for s in range(n_runs)] for one in cases]
        for label, price in PRICES.items():
            rows = []
            for k, (one, counts) in enumerate(zip(cases, blind, strict=True)):
                costs = price(np.random.default_rng([SEED, k]).random(one.problem.n_arms))
                rows.append(priced(one, costs, counts))
            print(f"| {label} | {name} ({len(rows)}) | {price_ratios(np.array(rows))} | 0.6 |", flush=True)


def priced(one, costs, blind):
    """What knowing and ignoring these prices costs on average, and what each must cost at the limit."""
    problem = sp.Problem(one.problem.plans, costs=costs, minimize=one.problem.minimize)
    aware = [
        run(Case(problem, one.means, one.time), sp.BetGapE(), SEED + s).counts for s in range(len(blind))
    ]
    limit = sp.limit(problem, one.means)
    blind_time = limit.characteristic_time * float(limit.allocation @ costs)
    least, least_blind = limit.cost_lower_bound, fewest(blind_time, limit.relevant_cost, limit.delta)
    return np.mean(aware, axis=0) @ costs, np.mean(blind, axis=0) @ costs, least, least_blind


def price_ratios(rows):
    aware, blind, least, least_blind = rows.T
    scaled = (aware / least_blind).mean() / (blind / least_blind).mean()
    return (
        f"{aware.sum() / blind.sum():.2f} | {scaled:.2f} | {np.median(aware / blind):.2f} "
        f"| {(least / least_blind).mean():.2f}"
    )


def in_time(scale):
    """CPU time per decided instance, all policies on the same instances in one run."""
    policies = {
        "BetGapE": sp.BetGapE(),
        "CombGapE published": sp.CombGapE(radius=PUBLISHED),
        "CombGapE normal-mixture": sp.CombGapE(),
    }
    print(f"\n| CPU milliseconds per decided instance | {' | '.join(policies)} |\n|---|---|---|---|")
    families = [("transport", transports, 12), ("ten arms", ten_arms, 30)]
    families += [("knapsack, 9 items", knapsacks(9), 60), ("two arms, gap .1", two_arms(0.1), 30)]
    for name, draw, n in families:
        cases = draw(max(4, int(n * scale)))
        taken = np.mean([in_turn(one, policies.values()) for one in cases], axis=0)
        print(f"| {name} ({len(cases)}) | {' | '.join(f'{cell:.2f}' for cell in taken)} |", flush=True)


def in_turn(one, policies):
    """CPU milliseconds of each policy: the least of five runs, all alike and in turn, as machines vary."""
    taken = []
    for _ in range(5):
        row = []
        for policy in policies:
            began = time.process_time()
            run(one, policy, SEED)
            row.append(1e3 * (time.process_time() - began))
        taken.append(row)
    return np.min(taken, axis=0)


def large(_scale):
    print("\n| 10,000 plans, 200 arms | measurements | CPU seconds |\n|---|---|---|")
    rng = np.random.default_rng(SEED)
    means = rng.normal(size=200)
    dense = rng.normal(size=(10_000, 200))
    thin = dense * (rng.random(dense.shape) < 0.05)
    from scipy import sparse

    for name, plans in (("all entries", dense), ("5% of the entries", sparse.csr_array(thin))):
        problem, began = sp.Problem(plans), time.process_time()
        outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=SEED)
        print(f"| {name} | {outcome.n_measurements} | {time.process_time() - began:.1f} |", flush=True)


PARTS = {
    "limit": against_the_limit,
    "instance": of_one_instance,
    "epsilon": with_ties,
    "textbook": against_the_textbook,
    "costs": with_costs,
    "time": in_time,
    "large": large,
}


def main():
    global SEED
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the runs")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS), help="these parts alone")
    parser.add_argument("--seed", type=int, default=SEED, help="of the first instance and its noise")
    given = parser.parse_args()
    scale, SEED = given.scale, given.seed
    for policy in (sp.BetGapE(), sp.CombGapE()):  # compile first
        sp.simulate(sp.Problem(np.eye(2)), policy, sp.Gaussian([9.0, 0.0]))
    print(
        f"# BetGapE against its goals\n\n`python benchmarks/bet_gap_e.py --scale {scale:g} --seed {SEED}`, "
        "N(0, 1) noise, means +- standard errors.\n"
    )
    for part in given.only:
        PARTS[part](scale)


if __name__ == "__main__":
    main()
