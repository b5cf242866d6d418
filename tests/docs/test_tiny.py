"""docs/tiny.py, the teaching copy, takes the library's decisions."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import surepick as sp
from surepick.testing import Tape

FILE = Path(__file__).parent.parent.parent / "docs" / "tiny.py"
TINY = runpy.run_path(str(FILE))
RADII = {"normal-mixture": TINY["radius"], "published": TINY["published_radius"]}


def subsets(rng):
    rows = np.array([list(np.binary_repr(k, 5)) for k in range(32)], dtype=float)
    return rng.permutation(rows)[:12]


FAMILIES = {
    "real-valued": lambda rng: rng.uniform(-2, 3, (7, 5)),
    "zeros and ones": subsets,
    "the plans of the paper's Section 3": lambda rng: np.array([[100, 0, 0.1], [0, 100, 0.2]]),
    "best arm": lambda rng: np.eye(4),
    "whole amounts, one arm that all share": lambda rng: np.column_stack(
        [rng.integers(0, 4, (9, 4)), np.full(9, 3)]
    ),
}


def single(tape):
    """The tape, one measurement of one arm at a time."""
    counts = np.eye(len(tape.means), dtype=np.int64)
    return lambda arm: float(tape.measure(counts[arm], None)[arm])


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_tiny_and_the_library_measure_the_same_arms_and_answer_the_same(family, radius, seed):
    if radius == "published" and "all share" in family:
        pytest.skip("with this radius the library measures every arm once first, as the paper does")
    rng = np.random.default_rng([3, seed])
    plans = np.unique(FAMILIES[family](rng), axis=0)
    means = 0.4 * rng.normal(size=plans.shape[1])
    scale = rng.uniform(1.0, 3.0, plans.shape[1])
    keys = list(range(100 * seed, 100 * seed + len(means)))

    problem = sp.Problem(plans, noise=scale, goal="largest")
    expected = sp.simulate(
        problem, Tape(means, keys, scale), policy=sp.CombGapE(delta=0.1, radius=radius), budget=2000
    )
    settings = {"noise_scale": scale, "delta": 0.1, "how_far": RADII[radius], "budget": 2000}
    plan, evidence = TINY["find_best"](plans, single(Tape(means, keys, scale)), **settings)
    assert expected.n_measured > 2 * len(means), "an instance that is decided at once shows nothing"
    assert plan == expected.plan
    assert evidence.counts.tolist() == expected.counts.tolist()
