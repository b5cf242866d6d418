"""How often BetGapE rules out the best plan where readings mix arms or share noise; controls to be caught.

python benchmarks/probe_soundness.py > benchmarks/results/probe_soundness.md     # 2,000 runs each
python benchmarks/probe_soundness.py --runs 200 --only controls

One thread of the linear algebra is enough for matrices this small, and several wait for each other where the
machine is busy: with OPENBLAS_NUM_THREADS=1 it is many times faster there.

One run gives the errors at every delta: it goes on to its budget at a tiny delta, and the best plan is ruled
out at delta if the wealth of the bets against it ever reached 1/delta. In brackets is the lower end of an
exact interval (Clopper and Pearson, 99.9%): a family is refuted at delta if that is above delta. Ties are the
hardest, since every bet is fair there. Each control breaks one thing that the proof needs; it is refuted, and
with a wrong A no bet is made at all.
"""

import argparse
import itertools
import time

import numpy as np
from scipy.stats import beta

import surepick as sp
from surepick.inference import contrasts
from surepick.simulation.probed import GaussianReadings, UniformReadings

SEED, DELTAS, TINY = 9_100_000, (0.2, 0.1, 0.05), 1e-9


def pair(correlation, scale=1.0):
    return scale**2 * np.array([[1.0, correlation], [correlation, 1.0]])


def blends(gap):
    """Three recipes of three parts, seen through blends of unequal noise."""
    probes = {
        "first": sp.Probe({"a": 0.5, "b": 0.5}, noise=0.7),
        "second": sp.Probe({"b": 0.3, "c": 0.7}, noise=1.5),
        "survey": sp.Probe({"q1": {"a": 1}, "q2": {"b": 1, "c": -1}}, noise=[1.0, 2.0]),
        "third": {"a": 1, "b": 1, "c": 1},
    }
    problem = sp.Problem(np.eye(3), arms=list("abc"), noise=1.0, measure=probes, goal="largest")
    return problem, np.array([0.5, 0.5 - gap, 0.0])


def drives(gap):
    """Two ways round, each drive times its roads, and one compares two roads."""
    plans = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])
    probes = {"north": list("ab"), "south": list("cd"), "ends": sp.Probe({"a": 1, "c": -1}, noise=0.5)}
    return sp.Problem(plans, arms=list("abcd"), noise=1.0, measure=probes, goal="largest"), np.array(
        [1.0, 1, 1, 1 - gap]
    )


def paired(gap, correlation=0.9, cost=1.0):
    """Two designs on the same random numbers, or each by itself."""
    both = sp.Probe({"x": {"a": 1}, "y": {"b": 1}}, covariance=pair(correlation), cost=cost)
    probes = {"both": both, "a": sp.Probe(["a"], noise=1.0), "b": sp.Probe(["b"], noise=1.0)}
    return sp.Problem(np.eye(2), arms=["a", "b"], measure=probes, noise=1, goal="largest"), np.array(
        [0.0, -gap]
    )


def together(gap, n=4, correlation=0.8):
    """All arms in one use, with shared noise."""
    names = [f"arm {i}" for i in range(n)]
    shared = (1 - correlation) * np.eye(n) + correlation * np.ones((n, n))
    means = np.zeros(n)
    means[1:] = -gap
    return sp.Problem(
        np.eye(n), arms=names, measure={"all": sp.Probe(names, covariance=shared)}, noise=1, goal="largest"
    ), means


def two_of_four():
    return np.array([[float(i in some) for i in range(4)] for some in itertools.combinations(range(4), 2)])


def full(gap):
    """Two of four, only totals are seen."""
    return sp.Problem(two_of_four(), measure="plans", noise=1, goal="largest"), np.array(
        [1.0, 1.0, 1.0 - gap, 0.0]
    )


def semi(gap):
    """Two of four, every arm of a play is seen."""
    return sp.Problem(two_of_four(), measure="plan arms", noise=1, goal="largest"), np.array(
        [1.0, 1.0, 1.0 - gap, 0.0]
    )


def panel(gap):
    """Six readings of two arms in one use: far more than it takes, so that many weights show the gap."""
    readings = {
        "a": {"a": 1},
        "a again": {"a": 1},
        "b": {"b": 1},
        "b again": {"b": 1},
        "both": {"a": 1, "b": 1},
        "difference": {"a": 1, "b": -1},
    }
    return sp.Problem(
        np.eye(2), arms=["a", "b"], measure={"panel": sp.Probe(readings)}, noise=1, goal="largest"
    ), np.array([0.0, -gap])


def soare(gap):
    """Unit vectors and one close to the best."""
    angle = np.arccos(1 - gap) if gap else 0.0
    rows = np.vstack([np.eye(3), [np.cos(max(angle, 0.3)), np.sin(max(angle, 0.3)), 0.0]])
    best = np.array([1.0, 0.0, 0.0])
    if not gap:  # the bisector: both are as good
        best = (rows[0] + rows[3]) / np.linalg.norm(rows[0] + rows[3])
    return sp.Problem(rows, measure=rows, noise=1, goal="largest"), best


def at_once(gap):
    """Three readings of one use that are one and the same noise; nothing is assumed of it."""
    plans = np.array([[1.0, 1, 0], [0, 1, 1]])
    problem = sp.Problem(
        plans, measure={"day": ["arm 0", "arm 1", "arm 2"]}, readings="dependent", noise=1, goal="largest"
    )
    return problem, np.array([0.0, 0.0, -gap])


class OneNoise:
    """Readings of a use that all have the same noise."""

    def __init__(self, means, probes):
        self.means, self.probes, self.n_readings = means, probes, probes.n_readings
        self.noise_scale = probes.noise_scale

    def measure(self, counts, rng):
        n = counts[self.probes.owner]
        shared = np.sqrt(counts) * rng.standard_normal(len(counts))
        return n * (self.probes.rows @ self.means) + self.probes.noise_scale * shared[self.probes.owner]


def untold(build):
    """The same, where nothing is known of the noise; the world's is that of the problem that knew it."""

    def made():
        problem, means = build()
        known = problem.probes
        named = {o: list(names) for o, names in zip(known.names, known.reading_names, strict=True)}
        return sp.Problem(
            problem.plans, arms=problem.arm_names, measure=named, noise=None, goal="largest"
        ), means

    return made, lambda means, probes: GaussianReadings(means, build()[0].probes, None)


def gaussian(means, probes):
    return GaussianReadings(means, probes, None)


def uniform(means, probes):
    return UniformReadings(means, probes, np.sqrt(3.0) * probes.noise_scale)


FAMILIES = {  # name: (problem and means, environment)
    "blends, tie": (lambda: blends(0.0), gaussian),
    "blends, near tie": (lambda: blends(0.05), gaussian),
    "blends, tie, uniform noise": (lambda: blends(0.0), uniform),
    "drives, tie": (lambda: drives(0.0), gaussian),
    "paired at .9, tie": (lambda: paired(0.0), gaussian),
    "paired at .9, near tie, a pair costs 3": (lambda: paired(0.02, cost=3.0), gaussian),
    "four arms at once, tie of all": (lambda: together(0.0), gaussian),
    "two of four, totals, tie": (lambda: full(0.0), gaussian),
    "two of four, plays, tie": (lambda: semi(0.0), gaussian),
    "close vectors, tie": (lambda: soare(0.0), gaussian),
    "six readings of two arms, tie": (lambda: panel(0.0), gaussian),
    "dependent readings, one noise, tie": (lambda: at_once(0.0), OneNoise),
    "four arms at once, noise unknown, tie": untold(lambda: together(0.0)),
    "four arms at once, noise unknown, near tie": untold(lambda: together(0.03)),
}


def peak(problem, environment, best, seed, budget):
    """The largest log wealth against the best plan within the budget."""
    run, rng = sp.BetGapE(TINY).start(problem), np.random.default_rng(seed)
    used = 0
    while used < budget:
        decision = run.decide(rng)
        if not hasattr(decision, "counts"):
            break
        run.absorb(decision.counts, environment.measure(decision.counts, rng))
        used += int(decision.counts.sum())
    evidence = run.log_evidence()
    return max(float(evidence[k]) for k in best) if run.standing().leader is not None else 0.0


def errors(build, environment, runs, budget, first=SEED):
    """How many runs rule out a best plan at each delta."""
    problem, means = build()
    values = problem.sign * problem.values(means)
    best = np.flatnonzero(values >= values.max() - 1e-12).tolist()
    # of tied plans one is looked at, chosen in advance: each has its own bound
    world = environment(means, problem.probes)
    peaks = np.array([peak(problem, world, best[-1:], first + run, budget) for run in range(runs)])
    return [int((peaks >= -np.log(delta)).sum()) for delta in DELTAS], float(peaks.max())


def at_least(k, n):
    return beta.ppf(0.001, k, n - k + 1) if k else 0.0


def print_row(name, counts, runs, seconds, note=""):
    cells = [f"{k / runs:.4f} (>= {at_least(k, runs):.4f})" for k in counts]
    refuted = any(at_least(k, runs) > delta for k, delta in zip(counts, DELTAS, strict=True))
    print(
        f"| {name} | {' | '.join(cells)} | {'REFUTED' if refuted else 'holds'}{note} | {seconds:.0f} |",
        flush=True,
    )


# Controls: each takes away one thing that the proof needs.


def too_small(means, probes):
    """Noise with a smaller correlation than the problem says."""
    world = GaussianReadings(means, probes, None)
    factor = np.linalg.cholesky(pair(0.5))

    class Wider:
        n_readings, noise_scale = probes.n_readings, probes.noise_scale

        def measure(self, counts, rng):
            sums = world.measure(counts, rng)
            here = probes.readings_of(0)
            sums[here] = counts[0] * (probes.rows @ means)[here] + np.sqrt(
                counts[0]
            ) * factor @ rng.standard_normal(2)
            return sums

    return Wider()


def fitted_show(show):
    """Weights that still show the gap (A X = I), and lean to where the batch's own values have gone.

    The part of the averages that no means explain is added to the weights of a rival, by as much as makes its
    gap stand out most. Rows, counts and the residual of A are as they should be: no guard can see it.
    """

    def cheating(self, rows, uses, averages, largest):
        gap, variance = show(self, rows, uses, averages, largest)
        used = np.flatnonzero(uses[self.owner])
        n, design = uses[self.owner[used]].astype(float), self.information.rows[used]
        means = self.probes.whiten(averages)[used]
        left = means - design @ (contrasts._least_squares(design, n) @ means)
        square = float(left @ (n * left))
        lean = variance / np.maximum(gap, np.sqrt(variance))
        return gap + lean * square, variance + lean**2 * square

    return cheating


def controls(runs, budget):
    began = time.process_time()
    found, _ = errors(lambda: paired(0.0), too_small, runs, budget)
    print_row("control: a covariance that is too small", found, runs, time.process_time() - began)
    began, dense, show = time.process_time(), contrasts.DenseReadings, contrasts.DenseReadings.show
    dense.show = fitted_show(show)
    try:
        found, _ = errors(lambda: panel(0.0), gaussian, runs, budget)
    finally:
        dense.show = show
    print_row("control: weights fitted on the batch's values", found, runs, time.process_time() - began)
    began, weights = time.process_time(), contrasts._least_squares
    contrasts._least_squares = lambda rows, n: 1.01 * weights(rows, n)
    try:
        found, most = errors(lambda: blends(0.0), gaussian, min(runs, 200), budget)
    finally:
        contrasts._least_squares = weights
    bets = "; no bet was made" if most == 0.0 else f"; BETS WERE MADE, up to {most:.3g}"
    print_row("control: a wrong A (1% off)", found, min(runs, 200), time.process_time() - began, bets)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--budget", type=int, default=1500, help="uses in a run")
    parser.add_argument("--only", choices=["families", "controls"])
    given = parser.parse_args()
    print("# Probes: how often the best plan is ruled out\n")
    print(f"`python benchmarks/probe_soundness.py --runs {given.runs} --budget {given.budget}`; in brackets")
    print("the lower end of an exact 99.9% interval, which is above delta where a family is refuted.\n")
    print(f"| family | {' | '.join(f'delta {delta:g}' for delta in DELTAS)} | | CPU s |")
    print("|---|---|---|---|---|---|")
    if given.only != "controls":
        for name, (build, environment) in FAMILIES.items():
            began = time.process_time()
            found, _ = errors(build, environment, given.runs, given.budget)
            print_row(name, found, given.runs, time.process_time() - began)
    if given.only != "families":
        controls(given.runs, given.budget)


if __name__ == "__main__":
    main()
