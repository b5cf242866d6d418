"""CTnS and CGE of Carlsson et al. (2024) on the instance of their larger experiment."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.peers.linear import PROVED
from surepick.policies import CGE, CTnS
from surepick.policies.gap import radius as radii

MEANS = np.array([1.0, 0.5, 0.4, 0.95, 0.8])
BOTH = [CTnS, CGE]


def mixtures(**settings):
    """Shares of five arms, at most half of each of two groups."""
    rows = [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    return sp.Polytope(
        A_ub=rows, b_ub=[0.5, 0.5], A_eq=[[1] * 5], b_eq=[1.0], **{"noise": 1, **settings}, goal="largest"
    )


def absorbed(policy, counts, means=MEANS, **settings):
    run = policy.start(mixtures(**settings))
    run.absorb(counts, counts * means)
    return run


def neighbours(problem, best):
    """Every vertex that shares all but one of the tight rows of the best, found by trying all bases."""
    from itertools import combinations

    rows = np.vstack([problem.rows.a_ub, -np.eye(5), problem.rows.a_eq])
    right = np.concatenate([problem.rows.b_ub, np.zeros(5), problem.rows.b_eq])
    found = []
    for four in combinations(range(7), 4):
        chosen = [*four, 7]
        if abs(np.linalg.det(rows[chosen])) < 1e-9:
            continue
        vertex = np.linalg.solve(rows[chosen], right[chosen])
        tight = np.isclose(rows[:7] @ vertex, right[:7]) & np.isclose(rows[:7] @ best, right[:7])
        is_plan = (rows[:7] @ vertex <= right[:7] + 1e-7).all()
        if is_plan and tight.sum() >= 3 and not np.allclose(vertex, best):
            found.append(vertex)
    return found


def threshold(radius, counts, delta):
    """The level and the variance of each arm that the stop has, from the formulas."""
    if radius == "heuristic":
        return math.log((1 + math.log(counts.sum())) / delta), 1 / counts
    index = radii.lam_index(counts.mean())
    lam, share = 4.0**index, 1 / ((index + 1) * (index + 2))
    return math.log(1 / (share * delta)) + 0.5 * np.log(1 + counts / lam).sum(), (counts + lam) / counts**2


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize("radius", [PROVED, "heuristic"])
def test_stops_by_the_neighbour_that_is_hardest_to_rule_out(policy, radius):
    """Gap over radius of every neighbouring vertex, from scratch; along an edge it does not change."""
    counts, best = np.array([40, 90, 25, 60, 33]), np.array([0.5, 0, 0, 0.5, 0])
    run = absorbed(policy(0.1, radius), counts)
    level, variances = threshold(radius, counts, 0.1)
    contrasts = [best - other for other in neighbours(mixtures(), best)]
    wanted = [(y @ MEANS) / math.sqrt(2 * level * (y**2 @ variances)) for y in contrasts]
    _, gaps, found = run._gaps_and_radii()
    assert run.standing().leader == pytest.approx(best)
    assert (gaps / found).min() == pytest.approx(min(wanted))


def test_track_and_stop_aims_at_the_shares_of_the_limit():
    problem = mixtures()
    run = absorbed(CTnS(), np.full(5, 100))
    assert run._shares == pytest.approx(sp.limit(problem, MEANS).shares, abs=5e-3)


def test_track_and_stop_explores_an_arm_that_has_too_few():
    counts = np.array([400, 400, 400, 400, 15])  # sqrt(1615) - 5/2 = 37.7
    assert absorbed(CTnS(), counts).decide(None).counts.tolist() == [0, 0, 0, 0, 1]


def test_the_gains_of_the_game_are_the_largest_within_the_intervals():
    counts, shares = np.array([40, 90, 25, 60, 33]), np.array([0.3, 0.2, 0.1, 0.15, 0.25])
    run = absorbed(CGE(), counts)
    edges, means = run._edges, MEANS
    distances = [(e @ means) ** 2 / (e**2 / shares).sum() for e in edges]
    e = edges[int(np.argmin(distances))]
    world = means - (e @ means) / (e**2 / shares).sum() * e / shares
    assert e @ world == pytest.approx(0)
    log_t = math.log(counts.sum())
    for s, gain in enumerate(run._optimistic_gains(shares)):
        half = math.sqrt(2 * log_t / counts[s])
        reached = max((means[s] - half - world[s]) ** 2, (means[s] + half - world[s]) ** 2) / 2
        assert gain == pytest.approx(max(reached, log_t / counts[s]))
