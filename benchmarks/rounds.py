"""Microseconds per round of CombGapE, beside plain vectorised NumPy in the same run.

    python benchmarks/rounds.py

CPU time of this process is what counts, so that other work on the machine disturbs less; each figure is the
best of several repeats.
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy import sparse

import surepick as sp
from surepick.problems import transport_instance

REPEATS = 5


@dataclass
class Case:
    name: str
    problem: sp.Problem
    means: np.ndarray
    rounds: int  # compiled rounds a repeat
    numpy_rounds: int


def cases():
    rng = np.random.default_rng(0)
    plans = rng.integers(0, 4, (40, 9)).astype(float)
    small = sp.Problem(np.unique(plans, axis=0)[:20], noise=1, goal="largest")
    yield Case("(20, 9)", small, 1e-3 * rng.normal(size=9), 50_000, 2_000)
    transport = transport_instance(2)
    name = f"({transport.problem.n_plans}, 81) transport"
    yield Case(name, transport.problem, transport.means, 20_000, 500)
    plans = rng.uniform(size=(950, 81)) * (rng.random((950, 81)) < 0.21)
    yield Case(
        "(950, 81)", sp.Problem(plans, noise=1, goal="largest"), 1e-2 * rng.normal(size=81), 20_000, 500
    )
    large = sp.Problem(rng.uniform(size=(10_000, 200)), noise=1, goal="largest")
    yield Case("(10^4, 200)", large, 1e-2 * rng.normal(size=200), 3_000, 20)
    columns = rng.integers(0, 2_000, (100_000, 10))
    rows = np.repeat(np.arange(100_000), 10)
    thin = sparse.csr_array((np.ones(10**6), (rows, columns.ravel())), shape=(100_000, 2_000))
    yield Case(
        "(10^5, 2,000), 10 each",
        sp.Problem(thin, noise=1, goal="largest"),
        0.1 * rng.normal(size=2_000),
        500,
        10,
    )


class PlainNumpy:
    """The paper's two boxes, vectorised: everything recomputed every round, as one would write it first."""

    def __init__(self, problem, delta=0.05):
        self.plans, self.delta = problem.oriented, delta
        n_plans, n_arms = self.plans.shape
        self.counts, self.sums, self.n_plans = np.ones(n_arms), np.zeros(n_arms), n_plans

    def spread(self, lead):
        if isinstance(self.plans, np.ndarray):
            return (self.plans - self.plans[lead]) ** 2 @ (1 / self.counts)
        weight, own = 1 / self.counts, self.plans[[lead]].toarray().ravel()
        return self.plans.power(2) @ weight - 2 * (self.plans @ (own * weight)) + (own**2 @ weight)

    def arm(self):
        values = self.plans @ (self.sums / self.counts)
        lead = np.argmax(values)
        log = np.log(2 * self.n_plans**2 * (self.counts.sum() + 1) ** 2 / self.delta)
        scores = values - values[lead] + np.sqrt(np.maximum(0.5 * self.spread(lead) * log, 0))
        scores[lead] = -np.inf
        rival = np.argmax(scores)
        y = self.plans[[lead]] - self.plans[[rival]]
        y = y.ravel() if isinstance(y, np.ndarray) else y.toarray().ravel()
        return np.argmax(y**2 / (self.counts * (self.counts + 1)))

    def run(self, means, rounds, rng):
        self.sums += means + rng.standard_normal(len(means))
        for _ in range(rounds):
            arm = self.arm()
            self.counts[arm] += 1
            self.sums[arm] += means[arm] + rng.standard_normal()


def cpu_microseconds(call, rounds):
    began = time.process_time()
    call()
    return (time.process_time() - began) / rounds * 1e6


def compiled(case, policy):
    run, rng = policy.start(case.problem), np.random.default_rng(1)
    first, truth = run.decide(), sp.Gaussian(case.means)
    run.absorb(first.counts, truth.measure(first.counts, rng))
    feed = truth.feed()
    run.drive(feed, truth.draw(case.rounds // 5, rng))  # past the first restless rounds
    times = []
    for _ in range(REPEATS):
        times.append(cpu_microseconds(lambda: run.drive(feed, truth.draw(case.rounds, rng)), case.rounds))
        assert not isinstance(run.decide(), sp.Stop), "the instance was decided too early to time it"
    return min(times)


def plain(case):
    times = []
    for repeat in range(2):
        state, rng = PlainNumpy(case.problem), np.random.default_rng(repeat)
        times.append(
            cpu_microseconds(
                lambda s=state, r=rng: s.run(case.means, case.numpy_rounds, r), case.numpy_rounds
            )
        )
    return min(times)


def main():
    print("| (plans, arms) | NumPy, us | published, us | normal-mixture, us | NumPy / published |")
    print("|---|---|---|---|---|")
    for case in cases():
        slow = plain(case)
        published = compiled(case, sp.CombGapE(delta=1e-9, radius="published"))
        mixture = compiled(case, sp.CombGapE(delta=1e-9))
        print(
            f"| {case.name} | {slow:,.1f} | {published:.2f} | {mixture:.2f} | {slow / published:,.0f} x |",
            flush=True,
        )


if __name__ == "__main__":
    main()
