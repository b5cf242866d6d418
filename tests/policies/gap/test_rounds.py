"""The compiled loop against an independent implementation that computes everything from scratch."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import surepick as sp
from common import largest
from surepick.kernels import compiled
from surepick.policies import CLUCB, LinGapE
from surepick.policies.gap import radius as radii
from surepick.policies.gap import rounds
from surepick.policies.gap.radius import kaufmann_koolen_c
from surepick.policy import Stop
from surepick.simulation import Gaussian

NORM_BOUND = 2.0


class FromScratch:
    """The boxes of CombGapE, CLUCB and LinGapE: no incremental update, no bound, no compiled code."""

    def __init__(self, plans, scale, costs, delta, epsilon, radius, arm_rule):
        self.plans, self.scale, self.costs = plans, scale, costs
        self.delta, self.epsilon, self.radius, self.arm_rule = delta, epsilon, radius, arm_rule
        relevant = (plans != plans[0]).any(axis=0)
        self.arms = np.flatnonzero(relevant | (radius == "published"))
        self.ridge = 1.0 if radius == "LinGapE" else 0.0
        self.counts, self.sums = np.zeros(plans.shape[1]), np.zeros(plans.shape[1])

    def beta(self, k, i):
        y = self.plans[k] - self.plans[i]
        used = y != 0
        T, R = self.counts[used], self.scale[used]
        K, total = len(self.plans), self.counts.sum()
        if self.radius == "CLUCB":
            log = math.log(4 * len(self.arms) * (total + 1) ** 3 / self.delta)
            return (np.abs(y[used]) * R * np.sqrt(2 * log / T)).sum()
        if self.radius == "LinGapE":
            log = math.log(K**2 / self.delta) + 0.5 * np.log1p(self.counts[self.arms]).sum()
            width = math.sqrt(2 * log) + NORM_BOUND / self.scale.min()
            return math.sqrt((y[used] ** 2 * R**2 / (T + 1)).sum()) * width
        if self.radius == "published":
            log = math.log(2 * K**2 * (total + 1) ** 2 / self.delta)
            return math.sqrt(0.5 * (y[used] ** 2 * R**2 / T).sum() * log)
        if self.radius == "kaufmann-koolen":
            m = used.sum()
            terms = (2 * np.log(4 + np.log(T))).sum() + m * kaufmann_koolen_c(
                math.log((K - 1) / self.delta) / m
            )
            return math.sqrt(2 * (y[used] ** 2 * R**2 / T).sum() * terms)
        mean = total / len(self.arms)
        index = max(0, round(math.log(mean / 8, 4)))
        lam = 4.0**index
        level = math.log((index + 1) * (index + 2) / self.delta)
        if self.radius == "normal-mixture":
            level += math.log(K - 1) + 0.5 * np.log1p(T / lam).sum()
        else:
            level += 0.5 * np.log1p(self.counts[self.arms] / lam).sum()
        return math.sqrt(2 * (y[used] ** 2 * R**2 * (T + lam) / T**2).sum() * level)

    def decide(self):
        """(lead, rival, arm or None to stop, how close the choices were to a tie)."""
        known = self.counts + self.ridge
        means = np.divide(self.sums, known, out=np.zeros_like(self.sums), where=self.counts > 0)
        values = self.plans @ means
        lead = int(np.argmax(values))
        scores = np.array([values[k] - values[lead] + self.beta(k, lead) if k != lead else -np.inf
                           for k in range(len(values))])  # fmt: skip
        rival = int(np.argmax(scores))
        y = self.plans[lead] - self.plans[rival]
        ordered, top = np.sort(scores), np.sort(values)
        closeness = min(abs(ordered[-1] - self.epsilon), top[-1] - top[-2])
        if len(values) > 2:
            closeness = min(closeness, ordered[-1] - ordered[-2])
        if scores[rival] <= self.epsilon:
            return lead, rival, None, closeness
        if self.arm_rule == "naive":
            differing = np.flatnonzero(y)
            return lead, rival, int(differing[np.argmin(self.counts[differing])]), closeness
        with np.errstate(divide="ignore", invalid="ignore"):
            more = 1.0 if self.radius == "CLUCB" else known + 1
            merit = np.where(y != 0, y**2 * self.scale**2 / (known * more * self.costs), 0)
        two = np.sort(merit)[-2:]
        return lead, rival, int(np.argmax(merit)), min(closeness, two[1] - two[0] if two[0] else 1.0)


RADII = ["published", "normal-mixture", "normal-mixture-joint", "kaufmann-koolen"]


@pytest.mark.parametrize(("arm_rule", "storage"), [("gap", "dense"), ("naive", "sparse")])
@pytest.mark.parametrize("radius", [*RADII, "CLUCB", "LinGapE"])
@given(seed=st.integers(0, 10**6), integer=st.booleans(), epsilon=st.sampled_from([0.0, 0.3]))
@settings(max_examples=4, deadline=None)
def test_takes_the_decisions_of_an_independent_implementation(
    radius, arm_rule, storage, seed, integer, epsilon
):
    rng = np.random.default_rng(seed)
    n_plans, n_arms = int(rng.integers(2, 40)), int(rng.integers(2, 9))
    plans = (
        rng.integers(0, 3, (n_plans, n_arms)).astype(float) if integer else rng.normal(size=(n_plans, n_arms))
    )
    plans = np.unique(plans * (rng.random(plans.shape) < 0.7), axis=0)
    if len(plans) < 2:
        return
    scale, costs = rng.uniform(0.5, 2, n_arms), rng.uniform(0.5, 2, n_arms)
    given_plans = plans if storage == "dense" else sparse.csr_array(plans)
    problem = sp.Problem(given_plans, noise=scale, cost=costs, goal="largest")
    arm_rule = "gap" if radius in ("CLUCB", "LinGapE") else arm_rule
    policy = {
        "CLUCB": lambda: CLUCB(0.1, epsilon),
        "LinGapE": lambda: LinGapE(0.1, epsilon, NORM_BOUND),
    }.get(radius, lambda: sp.CombGapE(0.1, epsilon, radius, arm_rule))()
    run, reference = policy.start(problem), FromScratch(plans, scale, costs, 0.1, epsilon, radius, arm_rule)
    means = rng.normal(size=n_arms)
    for _ in range(120):
        decision = run.decide(None)
        if isinstance(decision, Stop):
            _, _, arm, closeness = reference.decide()
            assert arm is None or closeness < 1e-9
            return
        arms = np.flatnonzero(decision.counts)
        if reference.counts.any():
            lead, rival, arm, closeness = reference.decide()
            if closeness < 1e-9:  # a tie up to rounding: either choice is right, and here the two part
                return
            standing = run.standing()
            assert (standing.leader, standing.rival) == (lead, rival)
            assert standing.radius == pytest.approx(reference.beta(rival, lead), rel=1e-9)
            assert arms.tolist() == [arm]
        else:
            assert arms.tolist() == reference.arms.tolist()
        seen = decision.counts * (means + scale * rng.standard_normal(n_arms))
        run.absorb(decision.counts, seen)
        reference.counts += decision.counts
        reference.sums += seen


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_long_runs_do_not_drift(radius, storage):
    """What the incremental updates keep equals what is computed from the counts and sums."""
    rng = np.random.default_rng(3)
    plans = rng.uniform(size=(300, 12)) * (rng.random((300, 12)) < 0.4)
    problem, means = largest(storage(plans)), rng.normal(size=12) * 1e-3
    run = sp.CombGapE(radius=radius).start(problem)
    first = run.decide()
    run.absorb(first.counts, first.counts * means)
    feed = Gaussian(means).feed()
    for _ in range(5):
        run.drive(feed, rng.standard_normal(3333))
        kept = run.standing()
        evidence = run.evidence
        fresh = sp.CombGapE(radius=radius).start(problem)
        fresh.absorb(evidence.counts, evidence.sums)
        again = fresh.standing()
        assert (kept.leader, kept.rival) == (again.leader, again.rival)
        assert kept.gap == pytest.approx(again.gap, rel=1e-9, abs=1e-12)
        assert kept.radius == pytest.approx(again.radius, rel=1e-9)


@pytest.mark.parametrize("code", range(6))
def test_loops_and_array_operations_round_alike(code):
    """So that a run is the same with and without Numba."""
    rng, n = np.random.default_rng(code), 53
    column = rng.normal(size=n) * (rng.random(n) < 0.5)
    rule = rounds.Rule(code, rounds.GAP, False, code in (1, 3), 0.0, -3.0, 2.0)
    given = rounds.Rivals(rng.normal(size=n), rng.random(n), rng.random(n))
    found = []
    for move, score in (
        (compiled(rounds._move_by_loop), compiled(rounds._score_by_loop)),
        (rounds._move_by_arrays, rounds._score_by_arrays),
    ):
        rivals = rounds.Rivals(*(array.copy() for array in given))
        move(column, column[3], (0.1, -0.02, 0.3), rivals, rule)
        answers = [tuple(map(int, score(4.2, rivals, leader, rule))) for leader in range(n)]
        found.append((answers, [array.tolist() for array in rivals]))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("x", "expected"), [(0.1, 1.527), (0.5, 1.964), (1, 2.507), (2, 3.583), (5, 6.757), (10, 11.955)]
)
def test_kaufmann_koolen_threshold_has_its_known_values(x, expected):
    assert kaufmann_koolen_c(x) == pytest.approx(expected, abs=5e-4)


def test_shares_of_delta_over_the_lam_grid_sum_to_one():
    shares = [math.exp(radii.lam_log_weight(i)) for i in range(10_000)]
    assert sum(shares) == pytest.approx(1.0, abs=2e-4)
    assert sum(shares) < 1.0


def test_the_risk_is_the_delta_at_which_the_run_would_stop_now():
    problem, means = largest(np.eye(3)), np.array([0.5, 0.0, -0.2])
    counts = np.array([300, 350, 200])
    run = sp.CombGapE(delta=1e-9).start(problem)
    run.absorb(counts, counts * means)
    risk = run.standing().risk
    assert 1e-9 < risk < 1
    for delta, stops in ((risk * 1.01, True), (risk * 0.99, False)):
        other = sp.CombGapE(delta=delta).start(problem)
        other.absorb(counts, counts * means)
        assert (other.decide() == Stop(0)) is stops
