"""What is answered at any time, measured: guesses, skewed noise, last calls, challenges, estimates.

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
from surepick.limits.value import binary_kl, fewest
from surepick.problems import knapsack_instance, transport_instance

SEED = 9_300_000
TOO_LONG = 30_000  # T* of instances that are left out and drawn again


def knapsacks(n_items):
    return lambda seed: knapsack_instance(n_items, seed)


class TenArms:
    """Ten arms as plans, means N(0, 1/4)."""

    def __init__(self, seed):
        self.problem, self.means = (
            sp.Problem(np.eye(10), noise=1, goal="largest"),
            np.random.default_rng(seed).normal(size=10) / 2,
        )


def drawn(draw, n):
    """The first n instances that are not too long, each with its limit at delta = .05."""

    return list(itertools.islice(endless(draw), n))


def endless(draw, too_long=TOO_LONG):
    for case in map(draw, itertools.count(SEED)):
        time = sp.limit(case.problem, case.means).time.value
        if time < too_long:
            limit = fewest(time, int(case.problem.relevant.sum()), 0.05)
            yield case.problem, np.asarray(case.means), limit


def compared(with_it, without):
    """How many per cent more, with the standard error of the paired difference."""
    with_it, without = np.array(with_it), np.array(without)
    error = (with_it - without).std(ddof=1) / math.sqrt(len(without)) / without.mean()
    return f"{100 * (with_it.mean() / without.mean() - 1):+.0f}% +- {100 * error:.0f}"


def run(case, seed, problem=None, past=None):
    """Measurements in units of the limit, and whether the answer was wrong."""
    own, means, limit = case
    problem = own if problem is None else problem
    outcome = sp.simulate(
        problem, sp.Gaussian(means), policy=sp.BetGapE(), seed=seed, budget=10**8, past=past
    )
    return outcome.n_measured / limit, outcome.correct is False


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


def last_call(scale):
    """Last calls at hard instances: how often the lead is wrong although its risk is at most a."""
    n_runs, levels = max(50, int(2000 * scale)), (0.5, 0.2, 0.05)
    print("| instance | budget | " + " | ".join(f"risk <= {a:g} and wrong" for a in levels) + " |")
    print("|---" * (len(levels) + 2) + "|")
    instances = [
        ("two arms, 1e-9 apart", sp.Problem(np.eye(2), noise=1, goal="largest"), [0.0, 1e-9]),
        ("two arms, gap .02", sp.Problem(np.eye(2), noise=1, goal="largest"), [0.02, 0.0]),
        ("ten arms, one better by 1e-9", sp.Problem(np.eye(10), noise=1, goal="largest"), [1e-9] + [0.0] * 9),
        ("do nothing, or one of six that are a hair worse", NOTHING_OR_SIX, [-1e-9] * 6),
    ]
    for name, problem, means in instances:
        best = problem.best(means)
        for budget in (50, 150, 500):
            how = {"budget": budget, "last_call": 0.5, "gaussian": True}
            ends = [
                sp.simulate(problem, sp.Gaussian(means), policy=sp.BetGapE(), seed=SEED + k, **how)
                for k in range(n_runs)
            ]
            shares = [np.mean([o.leader != best and o.risk <= a for o in ends]) for a in levels]
            print(
                f"| {name} ({n_runs} runs) | {budget} | {' | '.join(f'{s:.4f}' for s in shares)} |",
                flush=True,
            )


NOTHING_OR_SIX = sp.Problem(np.vstack([np.zeros(6), np.eye(6)]), noise=1, goal="largest")


def challenge_nulls(scale):
    """Challenge where one of its answers is wrong: how often it is given, delta = .2."""
    n_runs = max(50, int(2000 * scale))
    print("| truth | wrong would be | epsilon | wrong answers | right | no answer within 600 |")
    print("|---|---|---|---|---|---|")
    cases = [
        ("25 plans, exact ties", [0.0] * 25, 0.0, "replace"),
        ("incumbent best by 1e-9", [1e-9] + [0.0] * 9, 0.0, "replace"),
        ("25 plans, exact ties", [0.0] * 25, 0.5, "replace"),
        ("one of ten better by 2 epsilon", [0.0] * 9 + [0.6], 0.3, "keep"),
        ("all others better by 1.05 epsilon", [0.0] + [0.315] * 9, 0.3, "keep"),
    ]
    for name, means, epsilon, wrong in cases:
        policy = sp.Challenge(0, delta=0.2, epsilon=epsilon)
        problem = sp.Problem(np.eye(len(means)), noise=1, goal="largest")
        plans = [
            sp.simulate(problem, sp.Gaussian(means), policy=policy, seed=SEED + k, budget=600).plan
            for k in range(n_runs)
        ]
        kept, replaced = plans.count(0), sum(plan not in (0, None) for plan in plans)
        n_wrong, n_right = (kept, replaced) if wrong == "keep" else (replaced, kept)
        print(
            f"| {name} ({n_runs} runs) | {wrong} | {epsilon:g} | {n_wrong} ({n_wrong / n_runs:.4f}) "
            f"| {n_right} | {plans.count(None)} |",
            flush=True,
        )


def last_call_risk(scale):
    """Last calls of half the budget, Gaussian noise: median risk, and how often it is at most .05."""
    multiples = (1, 2, 4, 8)
    print("| instances | " + " | ".join(f"{m} T*" for m in multiples) + " | wrong and risk <= .05 |")
    print("|---" * (len(multiples) + 2) + "|")
    families = [("knapsack, 9 items", knapsacks(9), 60, 8), ("three of ten", ThreeOfTen, 60, 8)]
    for name, draw, n, repeats in (*families, ("transport", transport_instance, 20, 4)):
        cells, n_wrong, n_runs = [], 0, 0
        cases = between(draw, max(3, int(n * scale)), 4, 150_000)
        for multiple in multiples:
            ends = [
                called(case, SEED + 1000 * k + r, multiple)
                for k, case in enumerate(cases)
                for r in range(repeats)
            ]
            risks = np.array([risk for risk, _ in ends])
            n_wrong += sum(risk <= 0.05 and wrong for risk, wrong in ends)
            n_runs += len(ends)
            cells.append(f"{median(risks.reshape(-1, repeats))}; {100 * np.mean(risks <= 0.05):.0f}%")
        print(f"| {name} ({len(ends)} runs each) | {' | '.join(cells)} | {n_wrong} of {n_runs} |", flush=True)


def median(runs):
    """Of all runs, with its standard error over instances, which are drawn again and again for it."""
    rng = np.random.default_rng(0)
    again = [np.median(runs[rng.integers(0, len(runs), len(runs))]) for _ in range(400)]
    return f"{np.median(runs):.3f} +- {np.std(again):.3f}"


def called(case, seed, multiple):
    """The risk after a budget of so many T*, half of it a last call, and whether the lead is wrong."""
    problem, means, limit = case
    n_arms = int(problem.relevant.sum())
    budget = max(int(multiple * limit / binary_kl(0.05)), 2 * n_arms)
    how = {"budget": budget, "last_call": 0.5, "gaussian": True}
    policy = sp.BetGapE(delta=1e-3)  # with .05 it would stop there, and no risk would be much less
    o = sp.simulate(problem, sp.Gaussian(means), policy=policy, seed=seed, **how)
    values = problem.sign * problem.values(means)
    return 1.0 if o.risk is None else o.risk, values[o.leader] < values.max() - 1e-9


def challenge(scale):
    """What a challenge costs relative to BetGapE, geometric means, delta = .05, epsilon = 0."""
    print("| incumbent | knapsack, 9 items | three of ten | wrong |\n|---|---|---|---|")
    rows = {"at the top quarter": 0.75, "the median plan": 0.5, "anywhere outside the top quarter": None}
    found = [
        between(draw, max(3, int(n * scale)), 4, 150_000)
        for draw, n in ((knapsacks(9), 60), (ThreeOfTen, 60))
    ]
    for name, share in rows.items():
        cells, n_wrong = [], 0
        for cases in found:
            ratios = []
            for k, case in enumerate(cases):
                ratio, is_wrong = challenged(case, SEED + k, share)
                ratios.append(ratio)
                n_wrong += is_wrong
            logs = np.log(ratios)
            error = math.exp(logs.std(ddof=1) / math.sqrt(len(logs)))
            cells.append(f"{math.exp(logs.mean()):.4f}, times or over {error:.2f} ({len(ratios)} runs)")
        print(f"| {name} | {' | '.join(cells)} | {n_wrong} |", flush=True)


class ThreeOfTen:
    """Three of ten arms, means N(0, 1/4)."""

    def __init__(self, seed):
        chosen = list(itertools.combinations(range(10), 3))
        plans = np.zeros((len(chosen), 10))
        for k, arms in enumerate(chosen):
            plans[k, list(arms)] = 1.0
        self.problem, self.means = (
            sp.Problem(plans, noise=1, goal="largest"),
            np.random.default_rng(seed).normal(size=10) / 2,
        )


def challenged(case, seed, share):
    """Measurements of Challenge over those of BetGapE, with an incumbent better than this share of plans.

    None: one of the plans that are better than less than three quarters, all alike.
    """
    problem, means, limit = case
    values = problem.values(means)
    share = np.random.default_rng(seed).uniform(0, 0.75) if share is None else share
    incumbent = int(np.argsort(values)[int(share * (len(values) - 1))])
    asked = sp.simulate(problem, sp.Gaussian(means), policy=sp.Challenge(incumbent), seed=seed, budget=10**6)
    wrong = asked.plan is None or values[asked.plan] <= values[incumbent]
    return asked.n_measured / (run(case, seed)[0] * limit), wrong


def moderate(draw, n):
    """The first n instances whose T* is 4 to 150 times the number of arms that matter."""
    arms = lambda problem: int(problem.relevant.sum())  # noqa: E731
    found = (case for case in endless(draw) if 8.5 * arms(case[0]) <= case[2] <= 300 * arms(case[0]))
    return list(itertools.islice(found, n))


def between(draw, n, least, most):
    """The first n instances with T* of at least this many measurements of each arm that matters, below most.

    As `surepick reproduce budget` takes them.
    """
    unit = least * binary_kl(0.05)
    found = (case for case in endless(draw, most) if case[2] >= unit * int(case[0].relevant.sum()))
    return list(itertools.islice(found, n))


def chance(scale):
    """Stated chance of the lead after Pick, and how often it was right; stated and real loss.

    Looks are after 2, 5, 12, 30, 80 measurements of each arm, on every instance that is drawn: a look at a
    multiple of T* would know something of the truth that no estimate can know.
    """
    each, bins = (2, 5, 12, 30, 80), (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.01)
    named = [f"{low:g} to {min(high, 1):g}" for low, high in itertools.pairwise(bins)]
    print("| stated chance | " + " | ".join(named) + " |\n" + "|---" * len(bins) + "|")
    losses = []
    families = [(f"knapsack, {n} items", knapsacks(n), 200) for n in (5, 9)]
    for name, draw, n in (
        *families,
        ("three of ten", ThreeOfTen, 200),
        ("transport", transport_instance, 20),
    ):
        looks = np.array(
            [look for k in range(max(5, int(n * scale))) for look in picked(draw, SEED + k, each)]
        )
        cells = []
        for low, high in itertools.pairwise(bins):
            here = looks[(looks[:, 1] >= low) & (looks[:, 1] < high)]
            cells.append(f"{here[:, 2].mean():.2f} of {len(here)}" if len(here) else "-")
        print(f"| {name}, {len(looks)} looks: right | {' | '.join(cells)} |", flush=True)
        losses.append((name, [stated_and_real(looks[looks[:, 0] == m]) for m in each]))
    print("\n| expected loss, stated / real | " + " | ".join(f"{m} of each arm" for m in each) + " |")
    print("|---" * (len(each) + 1) + "|")
    for name, cells in losses:
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def picked(draw, seed, each):
    """(measurements of each arm, stated chance, whether it was right, stated loss, real loss) after Pick."""
    case = draw(seed)
    problem, values = case.problem, case.problem.sign * case.problem.values(case.means)
    for m in each:
        budget = m * int(problem.relevant.sum())
        o = sp.simulate(problem, sp.Gaussian(case.means), policy=sp.Pick(), seed=seed, budget=budget)
        lost = values.max() - values[o.leader]
        yield m, o.chance, lost < 1e-9, o.expected_loss, lost


def stated_and_real(looks):
    """Both losses, with the standard error of the second."""
    error = looks[:, 4].std(ddof=1) / math.sqrt(len(looks))
    return f"{looks[:, 3].mean():.3f} / {looks[:, 4].mean():.3f} +- {error:.3f}"


def sure_within(scale):
    """The stated chance to be sure within n more measurements, and how often n were enough."""
    bins = (0.0, 0.02, 0.2, 0.4, 0.6, 0.8, 0.98, 1.01)
    named = [f"{low:g} to {min(high, 1):g}" for low, high in itertools.pairwise(bins)]
    print("| stated chance | " + " | ".join(named) + " |\n" + "|---" * len(bins) + "|")
    exact, within = sp.BetGapE(), sp.BetGapE(epsilon=0.05)
    for name, cases, n, policy in (
        ("knapsack, 9 items", lambda n: moderate(knapsacks(9), n), 60, exact),
        ("three of ten", lambda n: moderate(ThreeOfTen, n), 40, exact),
        ("transport", lambda n: between(transport_instance, n, 4, 10_000), 10, exact),
        ("transport by freeway, epsilon .05", freeways, 16, within),
    ):
        looks = []
        for k, case in enumerate(cases(max(4, int(n * scale)))):
            looks += watched(case, SEED + k, policy)
        looks = np.array(looks, dtype=float)
        cells = []
        for low, high in itertools.pairwise(bins):
            here = looks[(looks[:, 0] >= low) & (looks[:, 0] < high)]
            cells.append(f"{here[:, 1].mean():.2f} of {len(here)}" if len(here) else "-")
        print(f"| {name}, {len(looks)} looks: sure | {' | '.join(cells)} |", flush=True)


def freeways(n):
    """Transports whose plans tie: no limit is known, and none is needed."""
    drawn = (transport_instance(SEED + k, distances="freeway") for k in range(n))
    return [(case.problem, np.asarray(case.means), math.nan) for case in drawn]


def watched(case, seed, policy):
    """(stated chance, whether it was so) at 2, 5, 12, 30, 80, 200 measurements of each arm."""
    from surepick import views

    problem, means, _ = case
    rng, said = np.random.default_rng(seed), []
    session = sp.Session.create("memory://", "watched", problem, policy=policy)
    due = [k * int(problem.relevant.sum()) for k in (2, 5, 12, 30, 80, 200)]
    while requests := session.ask(4096):
        for request in requests:
            session.tell(request, means[problem.arm(request.arm)] + rng.standard_normal())
        n_used = session.state().n_measurements
        if due and n_used >= due[0] and session.status == "running":
            due = [n for n in due if n > n_used]
            coming = views.progress(views.look(session)).forecast
            said += [] if coming is None else [(chance, n_used + n) for n, chance in coming.chances]
    end = session.state().n_measurements
    return [(chance, end <= last) for chance, last in said]


STUDIES = {
    "chance": chance,
    "sure-within": sure_within,
    "guesses": guesses,
    "variance": variance,
    "last-call": last_call,
    "last-call-risk": last_call_risk,
    "challenge": challenge,
    "challenge-nulls": challenge_nulls,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("studies", nargs="*", help=", ".join(STUDIES))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full samples")
    parser.add_argument("--seed", type=int, default=SEED, help="of the first instance and its noise")
    given = parser.parse_args()
    SEED = given.seed
    print("# Answers at any time, measured\n")
    for name in given.studies or STUDIES:
        print(f"## {STUDIES[name].__doc__.splitlines()[0]}\n")
        STUDIES[name](given.scale)
        print(flush=True)
