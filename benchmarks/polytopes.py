"""PolyBet on all plans of polytopes, in units of the limit, and how often it is wrong.

python benchmarks/polytopes.py all                 # every study below but the error rates, one after another
python benchmarks/polytopes.py costs               # multiples of the limit, beside BetGapE on a drawn list
python benchmarks/polytopes.py costs --delta 1e-6
python benchmarks/polytopes.py lists               # how often a drawn list lacks the best plan
python benchmarks/polytopes.py epsilon             # within epsilon of the best; ties, certificates
python benchmarks/polytopes.py sizes               # 20 x 20, 50 x 50
python benchmarks/polytopes.py errors --runs 2000  # error rates, with the cheat that must be caught
python benchmarks/polytopes.py epsilon-errors      # the same within epsilon
python benchmarks/polytopes.py 9x9-errors --runs 400
python benchmarks/polytopes.py past                # guesses as past: what they save or cost
python benchmarks/polytopes.py last-call           # how often a budget is enough, with one
python benchmarks/polytopes.py limit               # the bracket within epsilon, and PolyBet in its units

Instances and noise are fresh: nothing was set with these seeds.
"""

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import surepick as sp
from hard_families import is_refuted
from polytopes import KINDS, Peeking, PeekingAverage, assignment, transport
from surepick.core.average_proof import objections
from surepick.core.run import Measure
from surepick.planning.comparison import binomial_interval, is_error
from surepick.planning.limit_value import binary_kl
from surepick.policies.betting.edges import Vertices
from surepick.problems.cities import city_hours

FIRST, NOISE = 401, 2_000
HARDEST = 3e5  # T* kl above which vertices nearly tie; such instances are reported, too
STUDIES = {"3x3": (30, 5), "5x4": (30, 5), "9x9": (52, 3), "mix": (30, 3), "program": (12, 3)}
SPREAD = {"mix": 0.2, "program": 0.2}  # of the means; hours: within 1 h


def run(problem, policy, means, seed, budget=10**15):
    began = time.process_time()
    outcome = sp.simulate(problem, policy, sp.Gaussian(means), seed=seed, budget=budget)
    return outcome, time.process_time() - began


def drawn_list(problem, means, kind, seed, n_draws=1000):
    """The distinct best plans of draws around the truth, as the paper draws them."""
    if kind not in SPREAD:  # a network simplex is faster
        m = int(kind[0])
        family = sp.problems.transport_family(problem.rows.b_eq[:m], problem.rows.b_eq[m:])
        try:
            return family.problem(means, spread=1.0, n_draws=n_draws, seed=seed + 10**6).plans
        except sp.SurepickError:  # all draws lead to one plan
            return problem.best_plan(means)[None]
    rng = np.random.default_rng([seed, 77])
    width = SPREAD[kind] * np.abs(means)
    found, vertices = {}, Vertices(problem)
    start = vertices.first
    for _ in range(n_draws):
        best = vertices.best(means + width * rng.uniform(-1, 1, len(means)), start)
        plan, start = problem.form.plan(best.values), best.at
        found.setdefault(np.round(plan, 9).tobytes(), plan)
    return np.array(list(found.values()))


def costs(kind, instances, runs, delta, *, with_list):
    """One row: means over instances of multiples of the limit, easy ones and all; then the lists."""
    rows, cpu, wrong, n_runs, beside = [], 0.0, 0, 0, []
    for seed in range(FIRST, FIRST + instances):
        problem, means = KINDS[kind](seed)
        found = sp.limit(problem, means, delta=delta)
        counts = []
        for r in range(runs):
            outcome, seconds = run(problem, sp.PolyBet(delta), means, NOISE + r)
            counts.append(outcome.n_measurements)
            cpu, n_runs = cpu + seconds, n_runs + 1
            wrong += is_error(problem, sp.Gaussian(means), outcome)
        rows.append((found.lower * binary_kl(delta), np.mean(counts) / found.measurements()))
        is_easy = rows[-1][0] <= HARDEST or kind == "program"  # of which none is easy
        if with_list and is_easy:
            beside.append(beside_list(problem, means, (kind, seed, delta), counts, found.measurements()))
    easy = np.array([times for need, times in rows if need <= HARDEST])
    every = np.array([times for _, times in rows])
    print(
        f"| {kind} | {len(easy)} of {instances} x {runs} | {_mean(easy)} | {_mean(every)} | "
        f"{wrong} of {n_runs} | {1000 * cpu / n_runs:.0f} |" + (_of_lists(beside) if beside else ""),
        flush=True,
    )


def beside_list(problem, means, case, counts, least):
    """Whether the list lacks the best plan; log ratios to BetGapE on it: of measurements, of the limits."""
    kind, seed, delta = case
    plans = drawn_list(problem, means, kind, seed)
    lacks = not (np.abs(plans - problem.best_plan(means)).max(axis=1) < 1e-8).any()
    if len(plans) < 2:
        return lacks, np.nan, np.nan, np.nan
    listed = sp.Problem(plans, minimize=problem.minimize)
    seeds = range(NOISE, NOISE + len(counts))
    n = np.mean([run(listed, sp.BetGapE(delta), means, r)[0].n_measurements for r in seeds])
    its_own = sp.limit(listed, means, delta=delta, tolerance=1e-3).measurements()
    return lacks, math.log(np.mean(counts) / n), math.log(least / its_own), n / its_own


def _of_lists(beside):
    """Columns: all lists, those that have the best plan, how many lack it; limits; BetGapE in own units."""
    lacks, ratio, limits, times = np.array(beside, dtype=float).T
    known, has = np.isfinite(ratio), lacks == 0
    return (
        f" {_ratio(ratio[known])} | {_ratio(ratio[known & has])} | {lacks.sum():.0f} of {len(beside)} | "
        f"{_ratio(limits[known])} | {_mean(times[known])} |"
    )


def _mean(values):
    if not len(values):
        return "-"
    return f"{values.mean():.2f} ± {values.std(ddof=1) / math.sqrt(len(values)):.2f}"


def all_costs(delta, only, *, with_list):
    columns = ["easy x runs", "x the limit, easy", "all", "wrong", "CPU ms"]
    if with_list:
        columns += [
            "measurements / BetGapE's on the list",
            "where it has the best plan",
            "lists that lack it",
        ]
        columns += ["limit / the list's", "BetGapE x the list's"]
    _heads(f"case, delta = {delta:g}", *columns)
    for kind, (instances, runs) in STUDIES.items():
        if only in (None, kind):
            costs(kind, instances, runs, delta, with_list=with_list)


def _heads(*columns):
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)


def lists(n=60):
    """Truths anywhere in the box that the list was drawn from."""
    print("| case | lists that lack the best plan | mean loss, h | largest loss, h |\n|---|---|---|---|")
    for kind in ("3x3", "5x4", "9x9"):
        missing, losses = 0, []
        for seed in range(FIRST, FIRST + 6):
            problem, hours = KINDS[kind](seed)
            plans = drawn_list(problem, hours, kind, seed)
            rng = np.random.default_rng([seed, 78])
            for _ in range(n // 6):
                truth = hours + rng.uniform(-1, 1, len(hours))
                best = problem.best_plan(truth)
                losses.append(float((plans @ truth).min() - best @ truth))
                missing += losses[-1] > 1e-9
        print(f"| {kind} | {missing} of {n} | {np.mean(losses):.4f} | {np.max(losses):.4f} |", flush=True)


def freeway(seed):
    """Hours by freeway: roads share segments, many plans tie, and the exact question does not end."""
    problem, _ = transport(seed)
    return problem, city_hours("freeway").numbers.ravel()


WITHIN = {  # instances, runs of each, epsilons
    "3x3": (KINDS["3x3"], 20, 3, (0.1, 0.05)),
    "5x4": (KINDS["5x4"], 20, 3, (0.1, 0.05, 0.02)),
    "9x9": (KINDS["9x9"], 20, 3, (0.1, 0.05, 0.02)),
    "9x9 by freeway": (freeway, 20, 2, (0.1, 0.05, 0.02)),
    "mix": (KINDS["mix"], 10, 3, (0.1,)),
    "program": (KINDS["program"], 6, 2, (0.3,)),
}


def within_epsilon(only):
    """Measurements, errors, CPU, and the certificates: their size and whether they hold."""
    print(
        "| case | instances x runs | epsilon | measurements, mean | most | wrong | loss, share of epsilon | "
        "CPU s (max) | proof, kB (max) | proofs that hold |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for kind, (make, instances, runs, epsilons) in WITHIN.items():
        for epsilon in epsilons if only in (None, kind) else ():
            found = [
                _within(*make(seed), epsilon, NOISE + r)
                for seed in range(FIRST, FIRST + instances)
                for r in range(runs)
            ]
            counts, losses, cpu, size, holds = (np.array(x) for x in zip(*found, strict=True))
            each = counts.reshape(instances, runs).mean(axis=1)
            print(
                f"| {kind} | {instances} x {runs} | {epsilon} | {each.mean():,.0f} ± "
                f"{each.std(ddof=1) / math.sqrt(instances):,.0f} | {each.max():,.0f} | "
                f"{(losses > 1).sum()} of {len(found)} | {losses.mean():.2f} | {cpu.mean():.2f} "
                f"({cpu.max():.2f}) | {size.mean():.0f} ({size.max():.0f}) | {holds.sum()} of {len(found)} |",
                flush=True,
            )


def _within(problem, means, epsilon, seed):
    """Measurements, loss as a share of epsilon, CPU seconds, size of the proof, and whether it holds."""
    began = time.process_time()
    run, rng, n = sp.PolyBet(0.05, epsilon).start(problem), np.random.default_rng(seed), 0
    while isinstance(decision := run.decide(), Measure):
        counts = decision.counts
        n += int(counts.sum())
        run.absorb(counts, counts * means + np.sqrt(counts) * rng.normal(size=len(means)))
    seconds = time.process_time() - began
    loss = problem.sign * (problem.best_plan(means) - np.array(decision.plan)) @ means
    proof = json.dumps(run.proof())
    holds = not objections(problem, decision.plan, json.loads(proof), 0.05)
    return n, float(loss) / epsilon, seconds, len(proof) / 1000, holds


PAST = {"3x3": (30, 4, 0.05), "5x4": (30, 4, 0.05), "9x9": (20, 2, 0.05), "mix": (20, 3, 0.1)}


def past(only):
    """Measurements with guesses as past, relative to those without, exactly and within epsilon."""
    print("| case | epsilon | guesses off by 1, worth 1 | off by 3, worth 1 | wrong |\n|---|---|---|---|---|")
    for kind, (instances, runs, near) in PAST.items():
        for epsilon in (0.0, near) if only in (None, kind) else ():
            ratios, wrong = {1.0: [], 3.0: []}, 0
            for seed in range(FIRST, FIRST + instances):
                problem, means = KINDS[kind](seed)
                for r in range(runs):
                    counts = []
                    off = np.random.default_rng([seed, r, 5]).normal(size=len(means))
                    for much in (None, *ratios):
                        known = None if much is None else sp.Past.from_guess(problem, means + much * off, 1.0)
                        outcome = sp.simulate(
                            problem, sp.PolyBet(0.05, epsilon), sp.Gaussian(means), seed=NOISE + r, past=known
                        )
                        counts.append(outcome.n_measurements)
                        wrong += is_error(problem, sp.Gaussian(means), outcome)
                    for much, n in zip(ratios, counts[1:], strict=True):
                        ratios[much].append(math.log(n / counts[0]))
            print(
                f"| {kind} | {epsilon:g} | {_ratio(ratios[1.0])} | {_ratio(ratios[3.0])} | "
                f"{wrong} of {3 * instances * runs} |",
                flush=True,
            )


def _ratio(logs):
    """The geometric mean of ratios, and two standard errors of its log; of one, or none, what there is."""
    if len(logs) < 2:
        return "-" if not len(logs) else f"{math.exp(logs[0]):.2f} (one)"
    middle, error = np.mean(logs), 2 * np.std(logs, ddof=1) / math.sqrt(len(logs))
    return f"{math.exp(middle):.2f} ({math.exp(middle - error):.2f} to {math.exp(middle + error):.2f})"


CALLS = {"3x3": (20, 5, 0.05), "5x4": (20, 5, 0.05), "9x9": (10, 3, 0.05)}


def last_calls(only):
    """Answers within a budget of 1.5 times the limit, or of half of what PolyBet takes within epsilon."""
    print(
        "| case | epsilon | budget, median | sure by bets alone | last call, Gaussian | last call | wrong |\n"
        "|---|---|---|---|---|---|---|"
    )
    ways = ({}, {"last_call": 0.5, "gaussian": True}, {"last_call": 0.5})
    for kind, (instances, runs, near) in CALLS.items():
        for epsilon in (0.0, near) if only in (None, kind) else ():
            sure, wrong, budgets = np.zeros(3), 0, []
            for seed in range(FIRST, FIRST + instances):
                problem, means = KINDS[kind](seed)
                policy = sp.PolyBet(0.05, epsilon)
                budget = run(problem, policy, means, NOISE - 1)[0].n_measurements // 2
                if not epsilon:
                    budget = math.ceil(1.5 * sp.limit(problem, means).measurements())
                budgets.append(budget)
                for k, r in ((k, r) for k in range(3) for r in range(runs)):
                    outcome = sp.simulate(
                        problem, policy, sp.Gaussian(means), seed=NOISE + r, budget=budget, **ways[k]
                    )
                    sure[k] += outcome.plan is not None
                    wrong += is_error(problem, sp.Gaussian(means), outcome)
            n = instances * runs
            print(
                f"| {kind} | {epsilon:g} | {np.median(budgets):,.0f} | "
                + " | ".join(f"{x / n:.0%}" for x in sure)
                + f" | {wrong} of {3 * n} |",
                flush=True,
            )


def brackets(only):
    """The bracket of the limit within epsilon, and PolyBet in units of its upper end."""
    print(
        "| case | instances | epsilon | lower end | upper end | lower / upper | PolyBet, x upper | CPU s |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for kind, (make, instances, _, epsilons) in WITHIN.items():
        for epsilon in epsilons if only in (None, kind) else ():
            found, cpu = [], 0.0
            for seed in range(FIRST, FIRST + min(instances, 6)):
                problem, means = make(seed)
                began = time.process_time()
                ends = sp.limit(problem, means, epsilon=epsilon)
                cpu += time.process_time() - began
                n = run(problem, sp.PolyBet(0.05, epsilon), means, NOISE)[0].n_measurements
                found.append((ends.lower_bound, ends.upper_bound, n))
            low, high, n = np.array(found).T
            print(
                f"| {kind} | {len(found)} | {epsilon} | {low.mean():,.0f} | {high.mean():,.0f} | "
                f"{(low / high).mean():.2f} | {(n / high).mean():.1f} | {cpu / len(found):.1f} |",
                flush=True,
            )


def sizes():
    _heads(
        *("transport", "arms", "edges", "limit", "measurements", "x", "CPU s"),
        *("epsilon: 1% of the best", "measurements", "CPU s"),
    )
    for m in (6, 9, 12, 15, 20, 50):
        rng = np.random.default_rng(m)
        here, there = rng.uniform(0, 10, (2, m, 2))
        supply, demand = rng.uniform(0, 1, m), rng.uniform(0, 1, m)
        family = sp.problems.transport_family(supply / supply.sum(), demand / demand.sum())
        problem, means = family.all_plans(), np.linalg.norm(here[:, None] - there, axis=2).ravel()
        least = sp.limit(problem, means, tolerance=1e-2).lower_bound
        outcome, seconds = run(problem, sp.PolyBet(), means, NOISE)
        n, edges = outcome.n_measurements, problem.form.n_edges
        near = float(0.01 * problem.best_plan(means) @ means)
        within, cpu = run(problem, sp.PolyBet(0.05, near), means, NOISE) if m <= 20 else (None, 0.0)
        print(
            f"| {m} x {m} | {m * m} | {edges} | {least:,.0f} | {n:,} | {n / least:.1f} | {seconds:.2f} | "
            + ("- | - | - |" if within is None else f"{near:.3f} | {within.n_measurements:,} | {cpu:.2f} |"),
            flush=True,
        )


def simplex(n, gap):
    return sp.Polytope(A_eq=np.ones((1, n)), b_eq=[1.0]), np.array([gap] + [0.0] * (n - 1))


FAMILIES = {
    "two arms, gap .1": (lambda: simplex(2, 0.1), 4_000),
    "five arms, gap .3": (lambda: simplex(5, 0.3), 4_000),
    "transport 3 x 3": (lambda: transport(2005, 3, 3), 20_000),
    "transport 5 x 4": (lambda: transport(2001, 5, 4), 20_000),
    "assignment 3 x 3 (degenerate)": (lambda: scaled(assignment(3, 1), 0.3), 4_000),
    "assignment 4 x 4 (degenerate)": (lambda: scaled(assignment(4, 7), 0.3), 20_000),
}


WITHIN_FAMILIES = {  # with the epsilon that is asked for
    "two arms, gap 1.2 epsilon": (lambda: simplex(2, 0.12), 0.1, 20_000),
    "two arms, gap 3 epsilon": (lambda: simplex(2, 0.3), 0.1, 4_000),
    "five arms, gap 1.5 epsilon": (lambda: simplex(5, 0.3), 0.2, 10_000),
    "five arms, tied": (lambda: simplex(5, 0.0), 0.3, 4_000),
    "transport 3 x 3, epsilon .1": (lambda: transport(2005, 3, 3), 0.1, 10_000),
    "assignment 3 x 3 (degenerate), epsilon .3": (lambda: assignment(3, 1), 0.3, 10_000),
}


def within_errors(runs):
    """The same within epsilon; the control takes the plan that the block likes best as its lead."""
    print("| case | bets | delta | wrong | error rate (95% interval) | answered | promise |")
    print("|---|---|---|---|---|---|---|")
    for name, (make, epsilon, budget) in WITHIN_FAMILIES.items():
        for delta in (0.2, 0.05):
            _errors(name, sp.PolyBet(delta, epsilon), make(), budget, runs)
    _errors("two arms, gap 6 epsilon", PeekingAverage(0.05, 0.05), simplex(2, 0.3), 400, min(runs, 300))


def many_errors(runs):
    """9 x 9, exactly and within .05 h, a few runs of many instances."""
    for name, policy in (("exactly", sp.PolyBet(0.05)), ("within .05 h", sp.PolyBet(0.05, 0.05))):
        wrong = 0
        for r in range(runs):
            problem, means = transport(5_000 + r // 10)
            wrong += is_error(problem, sp.Gaussian(means), run(problem, policy, means, 9_000_000 + r)[0])
        low, high = binomial_interval(wrong, runs)
        print(f"9 x 9, {name}, delta = .05: {wrong} of {runs} wrong ({low:.4f} to {high:.4f})", flush=True)


def scaled(case, factor):
    return case[0], case[1] * factor


def errors(runs):
    print("| case | bets | delta | wrong | error rate (95% interval) | answered | promise |")
    print("|---|---|---|---|---|---|---|")
    for name, (make, budget) in FAMILIES.items():
        for delta in (0.2, 0.05):
            _errors(name, sp.PolyBet(delta), make(), budget, runs)
    _errors("two arms, gap .1", Peeking(0.05), simplex(2, 0.1), 1_000, min(runs, 500))


def _errors(name, policy, case, budget, runs):
    problem, means = case
    truth = sp.Gaussian(means)
    outcomes = [run(problem, policy, means, 8_000_000 + r, budget)[0] for r in range(runs)]
    wrong = sum(is_error(problem, truth, outcome) for outcome in outcomes)
    low, high = binomial_interval(wrong, runs)
    verdict = "refuted" if is_refuted(wrong, runs, policy.delta) else "holds"
    bets = "after the block (control)" if isinstance(policy, Peeking | PeekingAverage) else "before the block"
    sure = sum(outcome.plan is not None for outcome in outcomes)
    rate = f"{wrong / runs:.4f} ({low:.4f} to {high:.4f})"
    print(
        f"| {name} | {bets} | {policy.delta} | {wrong} of {runs} | {rate} | {sure} | {verdict} |", flush=True
    )


ERRORS = {"errors": errors, "epsilon-errors": within_errors, "9x9-errors": many_errors}
SHORT = {"past": past, "last-call": last_calls, "limit": brackets}


def everything():
    """All tables but those of error rates, each under the command that makes it alone."""
    studies = {
        "costs": lambda: all_costs(0.05, None, with_list=True),
        "costs --no-lists --delta 1e-6": lambda: all_costs(1e-6, None, with_list=False),
        "lists": lists,
        "sizes": sizes,
        "epsilon": lambda: within_epsilon(None),
        **{name: lambda study=study: study(None) for name, study in SHORT.items()},
    }
    for name, study in studies.items():
        print(f"\n`python benchmarks/polytopes.py {name}`\n", flush=True)
        study()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "study",
        choices=["all", "costs", "lists", "epsilon", "sizes", *ERRORS, *SHORT],
    )
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--no-lists", action="store_true")
    parser.add_argument("--kind", choices=list({**STUDIES, **WITHIN}))
    given = parser.parse_args()
    if given.study == "costs":
        all_costs(given.delta, given.kind, with_list=not given.no_lists)
    elif given.study in ERRORS:
        ERRORS[given.study](given.runs)
    elif given.study == "epsilon":
        within_epsilon(given.kind)
    elif given.study in SHORT:
        SHORT[given.study](given.kind)
    else:
        {"all": everything, "lists": lists, "sizes": sizes}[given.study]()


if __name__ == "__main__":
    main()
