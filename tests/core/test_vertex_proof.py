"""The edges of a certificate against all vertices, listed: what they span, and what is noticed if spoilt."""

import copy

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from polytopes import all_vertices
from surepick.core.polytopes.proofs import objections, vertex_proof


def small_polytope(seed):
    """Whole numbers: vertices are often degenerate; now and then a row too many, or a fixed amount."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    rows, inside = rng.integers(-1, 3, (k, d)).astype(float), rng.integers(0, 2, d) + 0.5 * rng.random()
    upper = np.maximum(rng.integers(1, 3, d), inside)
    options = {"A_ub": rows, "b_ub": np.ceil(rows @ inside), "upper": upper, "lower": np.zeros(d)}
    if rng.random() < 0.4:
        options["lower"][0] = options["upper"][0] = inside[0]
    if rng.random() < 0.4:
        row = rng.integers(1, 3, (1, d)).astype(float)
        options |= {"A_eq": np.vstack([row, 2 * row]), "b_eq": np.append(row @ inside, 2 * row @ inside)}
    try:
        return sp.Polytope(**{"noise": 1, **options}, goal="largest"), rng
    except sp.SurepickError:  # one plan
        return sp.Polytope(A_ub=[[1, 1], [1, 0]], b_ub=[1, 1], noise=1, goal="largest"), rng


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_a_vertex_with_a_valid_proof_is_best_wherever_no_edge_of_it_improves(seed):
    problem, rng = small_polytope(seed)
    form, vertices = problem.form, all_vertices(problem, loose=np.inf)
    vertex = vertices[rng.integers(len(vertices))]
    basis, at = form.basis_near(vertex)
    directions = form.directions(basis, at)
    proof = vertex_proof(problem, at, directions, np.full(len(directions), 3.0))
    assert objections(problem, tuple(vertex), proof, 0.05) == []
    edges = np.array([[e["moves"].get(name, 0.0) for name in problem.arm_names] for e in proof["edges"]])
    for _ in range(20):
        means = rng.normal(size=problem.n_arms)
        if (edges @ means <= 1e-9).all():
            assert (vertices @ means).max() <= vertex @ means + 1e-7
        is_best = (vertices @ means).max() <= vertex @ means + 1e-9
        assert is_best or (edges @ means > 0).any()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_a_proof_that_was_spoilt_is_noticed(seed):
    problem, rng = small_polytope(seed)
    form, vertices = problem.form, all_vertices(problem, loose=np.inf)
    here = int(rng.integers(len(vertices)))
    basis, at = form.basis_near(vertices[here])
    directions = form.directions(basis, at)
    proof = vertex_proof(problem, at, directions, np.full(len(directions), 3.0))
    k = int(rng.integers(len(proof["edges"])))
    fewer, moved, weak, turned = (copy.deepcopy(proof) for _ in range(4))
    del fewer["edges"][k]
    name = next(iter(moved["edges"][k]["moves"]))
    moved["edges"][k]["moves"][name] += 0.25
    weak["edges"][k]["log_evidence"] = 2.9
    side = turned["edges"][k]["bound"]
    turned["edges"][k]["bound"] = "upper" if side == "lower" else "lower"
    plan = tuple(vertices[here])
    moves = [problem.arm(arm) for arm in proof["edges"][k]["moves"]]
    has_room = bool((form.upper[moves] > form.lower[moves]).all())  # an edge without room is not needed
    for spoilt in (*[fewer][:has_room], moved, weak, turned):
        assert objections(problem, plan, spoilt, 0.05)
    for other in np.delete(vertices, here, axis=0):
        assert objections(problem, tuple(other), proof, 0.05) or np.abs(other - vertices[here]).max() < 1e-7
