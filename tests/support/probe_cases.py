"""Problems of the literature in which probes or whole plans are measured, and more like them, for tests.

Every builder gives a problem and its true means; noise has scale 1.
"""

import itertools

import numpy as np

from surepick import Problem
from surepick.experiments.instances import published_tree, soare, sphere, transductive

__all__ = ["grid_paths", "published_tree", "soare", "sphere", "top_k", "transductive"]

FEEDBACK = {"full": "plans", "semi": "plan arms", "arms": "arms"}  # what is seen, and the probes that see it


def top_k(d, k, seed, feedback):
    """The k best of d arms; a play shows its total ("full"), its arms ("semi"), or arms are measured."""
    chosen = itertools.combinations(range(d), k)
    plans = np.array([[s in subset for s in range(d)] for subset in chosen], dtype=float)
    return Problem(plans, measure=FEEDBACK[feedback], noise=1, goal="largest"), np.random.default_rng(
        seed
    ).uniform(0, 1, d)


def grid_paths(n, seed, feedback):
    """Monotone paths through n x n crossings, the quickest is best; feedback as in `top_k`."""
    edges = {}
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
