"""The search for a proof that all plans are ruled out, against plans that are listed."""

import numpy as np
import pytest

import surepick as sp
from polytopes import question_about, transport
from surepick.core.average_proof import is_covered, log_wealth, system_of
from surepick.policies.betting import covering
from surepick.policies.betting.box_cuts import ALIVE, COVERED, UNKNOWN
from surepick.policies.betting.covering import Effort, cover
from surepick.policies.betting.edges import Vertices


def random_polytope(seed):
    rng = np.random.default_rng(seed)
    if seed % 2:
        return transport(seed, 3, 3)[0]
    return sp.Polytope(A_ub=rng.uniform(0.1, 1, (2, 4)), b_ub=[0.8, 0.9], upper=1.0, noise_scale=1)


def searched(problem, question, **settings):
    effort = Effort(Vertices(problem).first, 1e-3, settings.pop("most", 30_000))
    return cover(question, system_of(problem.form, question), effort, **settings)


@pytest.mark.parametrize("seed", range(60))  # a search may give up, which is sound: on these it does not
def test_finds_a_proof_if_and_only_if_there_is_none_against_it(seed):
    problem = random_polytope(seed)
    question, vertices = question_about(problem, seed)
    mixed = np.random.default_rng(seed).dirichlet(np.full(len(vertices), 0.2), size=300) @ vertices
    least = float(min(log_wealth(question, vertices).min(), log_wealth(question, mixed).min()))
    if least < 0.1:
        return
    below, above = question._replace(target=0.999 * least), question._replace(target=1.001 * least)
    found = searched(problem, below, keep=True)
    assert found.status in (COVERED, ALIVE)  # a plan in between may be worse than those looked at
    if found.status == COVERED:
        system = system_of(problem.form, below)
        assert is_covered(below, system, found.nodes)
        assert not is_covered(above, system, found.nodes)
        assert not is_covered(below, system, found.nodes[:-1])
    else:
        assert log_wealth(below, found.alive[None])[0] < below.target
    found = searched(problem, above)
    assert found.status == ALIVE
    assert log_wealth(above, found.alive[None])[0] < above.target + 1e-9


def test_gives_up_where_it_may_not_go_on():
    problem = random_polytope(1)
    asked = (question_about(problem, seed) for seed in range(100))
    least, question = next(
        (least, question)
        for question, vertices in asked
        if (least := float(log_wealth(question, vertices).min())) > 2.0
    )
    question = question._replace(target=0.99 * least)
    found = searched(problem, question)
    assert found.status == COVERED
    assert found.n_programs > 1
    assert searched(problem, question, most=-1).status == UNKNOWN


def test_a_proof_is_kept_whole_however_long_it_is(monkeypatch):
    problem = random_polytope(1)
    question, vertices = question_about(problem, 3)
    question = question._replace(target=0.9 * float(log_wealth(question, vertices).min()))
    whole = searched(problem, question, keep=True)
    n_cuts = sum(len(node.cuts) for node in whole.nodes)
    assert whole.status == COVERED
    monkeypatch.setattr(covering, "_ROOM", -29_999)  # there is room for one
    again = searched(problem, question, keep=True)
    assert n_cuts > 1
    assert sum(len(node.cuts) for node in again.nodes) == n_cuts
    assert is_covered(question, system_of(problem.form, question), again.nodes)


@pytest.mark.parametrize("seed", range(4))
def test_the_root_of_q_is_a_boundary_too(seed):
    """Without rates: L >= level sqrt(Q), as the limit needs it."""
    problem = random_polytope(seed)
    question, vertices = question_about(problem, seed)
    question = question._replace(rates=np.zeros(0), log_stakes=np.zeros(0))
    gain = question.gain + vertices @ question.gains
    square = question.square - 2 * vertices @ question.crosses + vertices**2 @ question.squares
    level = float((gain / np.sqrt(square)).min())
    found = searched(problem, question._replace(target=0.99 * level), keep=True)
    assert found.status == COVERED
    assert is_covered(question._replace(target=0.99 * level), system_of(problem.form, question), found.nodes)
    assert searched(problem, question._replace(target=1.01 * level)).status == ALIVE
