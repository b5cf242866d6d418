"""The search for a proof that all plans are ruled out, against plans that are listed."""

import numpy as np
import pytest

import surepick as sp
from polytopes import inequality_about, transport
from surepick.core.polytopes.proofs import is_covered, system_of
from surepick.policies.polytopes.covering import ALIVE, COVERED, UNKNOWN, cover
from surepick.policies.polytopes.edges import Vertices


def random_polytope(seed):
    rng = np.random.default_rng(seed)
    if seed % 2:
        return transport(seed, 3, 3)[0]
    return sp.Polytope(A_ub=rng.uniform(0.1, 1, (2, 4)), b_ub=[0.8, 0.9], upper=1.0, noise=1, goal="largest")


def searched(problem, inequality, most=30_000):
    return cover(inequality, system_of(problem.form, inequality), Vertices(problem).first, 1e-3, most)


@pytest.mark.parametrize("seed", range(60))  # a search may give up, which is sound: on these it does not
def test_finds_a_proof_if_and_only_if_there_is_none_against_it(seed):
    problem = random_polytope(seed)
    inequality, vertices = inequality_about(problem, seed)
    mixed = np.random.default_rng(seed).dirichlet(np.full(len(vertices), 0.2), size=300) @ vertices
    least = float(min(inequality.log_wealth(vertices).min(), inequality.log_wealth(mixed).min()))
    if least < 0.1:
        return
    below, above = inequality._replace(target=0.999 * least), inequality._replace(target=1.001 * least)
    found = searched(problem, below)
    assert found.status in (COVERED, ALIVE)  # a plan in between may be worse than those looked at
    if found.status == COVERED:
        system = system_of(problem.form, below)
        assert is_covered(below, system, found.nodes)
        assert not is_covered(above, system, found.nodes)
        assert not is_covered(below, system, found.nodes[:-1])
    else:
        assert below.log_wealth(found.alive[None])[0] < below.target
    found = searched(problem, above)
    assert found.status == ALIVE
    assert above.log_wealth(found.alive[None])[0] < above.target + 1e-9


def test_gives_up_where_it_may_not_go_on():
    problem = random_polytope(1)
    asked = (inequality_about(problem, seed) for seed in range(100))
    least, inequality = next(
        (least, inequality)
        for inequality, vertices in asked
        if (least := float(inequality.log_wealth(vertices).min())) > 2.0
    )
    inequality = inequality._replace(target=0.99 * least)
    found = searched(problem, inequality)
    assert found.status == COVERED
    assert found.n_programs > 1
    assert searched(problem, inequality, most=-1).status == UNKNOWN


@pytest.mark.parametrize("seed", range(4))
def test_the_root_of_q_is_a_boundary_too(seed):
    """Without rates: L >= level sqrt(Q), as the limit needs it."""
    problem = random_polytope(seed)
    inequality, vertices = inequality_about(problem, seed)
    inequality = inequality._replace(rates=np.zeros(0), log_stakes=np.zeros(0))
    gain = inequality.gain + vertices @ inequality.gains
    square = inequality.square - 2 * vertices @ inequality.crosses + vertices**2 @ inequality.squares
    level = float((gain / np.sqrt(square)).min())
    found = searched(problem, inequality._replace(target=0.99 * level))
    assert found.status == COVERED
    assert is_covered(
        inequality._replace(target=0.99 * level), system_of(problem.form, inequality), found.nodes
    )
    assert searched(problem, inequality._replace(target=1.01 * level)).status == ALIVE
