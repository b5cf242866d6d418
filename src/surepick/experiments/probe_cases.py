"""Instances of the literature in which probes or whole plans are measured, for benchmarks and tests.

Every builder gives a problem and its true means; noise has scale 1.
"""

from __future__ import annotations

import itertools
import json
from importlib.resources import files

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import OracleProblem
from surepick.core.problem import Problem
from surepick.problems.kinds.tree import tree_family

FEEDBACK = {"full": "plans", "semi": "plan arms", "arms": "arms"}  # what is seen, and the probes that see it


def soare(d: int, angle: float) -> tuple[Problem, FloatArray]:
    """Soare et al. 2014: d unit vectors and one at a small angle to the best of them.

    >>> soare(10, 0.1)[0].n_plans
    11
    """
    close = np.zeros(d)
    close[:2] = np.cos(angle), np.sin(angle)
    vectors = np.vstack([np.eye(d), close])
    return Problem(vectors, measure=vectors, noise=1, goal="largest"), 2.0 * np.eye(d)[0]


def sphere(n: int, d: int, seed: int) -> tuple[Problem, FloatArray]:
    """Random unit vectors, with the means near the closest two of them."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n, d))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    apart = 2 - 2 * vectors @ vectors.T + 9 * np.eye(n)
    i, j = np.unravel_index(apart.argmin(), apart.shape)
    return Problem(vectors, measure=vectors, noise=1, goal="largest"), vectors[i] + 0.01 * (
        vectors[j] - vectors[i]
    )


def transductive(d: int, angle: float = 0.1) -> tuple[Problem, FloatArray]:
    """Fiez et al. 2019: 2d unit vectors are measured, d of them and d turned ones are chosen from."""
    units = np.eye(2 * d)
    turned = np.cos(angle) * units[:d] + np.sin(angle) * units[d:]
    return Problem(np.vstack([units[:d], turned]), measure=units, noise=1, goal="largest"), units[0]


def top_k(d: int, k: int, seed: int, feedback: str) -> tuple[Problem, FloatArray]:
    """The k best of d arms; a play shows its total ("full"), its arms ("semi"), or arms are measured."""
    chosen = itertools.combinations(range(d), k)
    plans = np.array([[s in subset for s in range(d)] for subset in chosen], dtype=float)
    return Problem(plans, measure=FEEDBACK[feedback], noise=1, goal="largest"), np.random.default_rng(
        seed
    ).uniform(0, 1, d)


def grid_paths(n: int, seed: int, feedback: str) -> tuple[Problem, FloatArray]:
    """Monotone paths through n x n crossings, the quickest is best; feedback as in `top_k`."""
    edges: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}
    for i, j in itertools.product(range(n), repeat=2):
        for end in ((i + 1, j), (i, j + 1)):
            if max(end) < n:
                edges[(i, j), end] = len(edges)
    plans = []
    for downs in itertools.combinations(range(2 * n - 2), n - 1):
        here, plan = (0, 0), np.zeros(len(edges))
        for step in range(2 * n - 2):
            there = (here[0] + 1, here[1]) if step in downs else (here[0], here[1] + 1)
            plan[edges[here, there]] = 1.0
            here = there
        plans.append(plan)
    means = -np.random.default_rng(seed).uniform(0, 2, len(edges))
    return Problem(np.array(plans), measure=FEEDBACK[feedback], noise=1, goal="largest"), means


def published_tree(name: str, *, probes: str = "plan arms") -> tuple[OracleProblem, FloatArray]:
    """The spanning trees of E20 or E25 (`problems/data/README.md`), behind an oracle; whole trees are played.

    >>> problem, means = published_tree("E20")
    >>> problem.n_plans, problem.plays
    (20736, True)
    """
    data = json.loads((files("surepick.problems") / "data" / "semi_bandit_trees.json").read_text("utf-8"))
    family = tree_family([(str(a), str(b)) for a, b in data[name]["edges"]], goal="largest")
    return family.oracle_problem(measure=probes, noise=1), np.array(data[name]["means"])
