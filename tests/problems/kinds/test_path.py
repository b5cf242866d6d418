import re

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import refuses
from surepick import problems
from surepick.errors import ProblemError
from surepick.problems.candidates import OneCandidateError
from surepick.problems.kinds import path as path_kind

WEIGHTS = st.floats(-3, 9, allow_nan=False, width=32)


@st.composite
def networks(draw):
    """A small graph, directed or not, with parallel edges perhaps, and a way from node 0 to node 1."""
    n_nodes = draw(st.integers(3, 5))
    pairs = st.tuples(st.integers(0, n_nodes - 1), st.integers(0, n_nodes - 1)).filter(lambda p: p[0] != p[1])
    edges = [(0, 2), (2, 1), *draw(st.lists(pairs, max_size=7))]
    weights = draw(st.lists(WEIGHTS, min_size=len(edges), max_size=len(edges)))
    return edges, np.array(weights), draw(st.booleans())


def all_paths(edges, directed):
    """The edges of every simple path from node 0 to node 1, by trying all sequences."""
    found = []

    def walk(node, seen, used):
        if node == 1:
            found.append(tuple(sorted(used)))
            return
        for e, (a, b) in enumerate(edges):
            for tail, head in ((a, b),) if directed else ((a, b), (b, a)):
                if tail == node and head not in seen:
                    walk(head, seen | {head}, [*used, e])

    walk(0, {0}, [])
    return found


def refusal(*args, **options):
    with pytest.raises(ProblemError) as caught:
        problems.paths(*args, **options)
    return caught.value


@settings(deadline=None, max_examples=60)
@given(networks())
def test_no_simple_path_is_shorter_than_the_best_whatever_the_signs(case):
    edges, weights, directed = case
    family = problems.path_family(edges, 0, 1, directed=directed)
    plan = family.best(weights)
    assert tuple(np.flatnonzero(plan)) in all_paths(edges, directed)
    assert weights @ plan == pytest.approx(
        min(weights[list(path)].sum() for path in all_paths(edges, directed))
    )


@settings(deadline=None, max_examples=40)
@given(networks())
def test_all_simple_paths_are_listed_once_and_never_more_than_the_bound(case):
    edges, _, directed = case
    expected = all_paths(edges, directed)
    family = problems.path_family(edges, 0, 1, directed=directed)
    assert family.n_plans >= len(expected)
    if len(expected) == 1:
        assert isinstance(refusal(edges, 0, 1, directed=directed), OneCandidateError)
        return
    problem = problems.paths(edges, 0, 1, directed=directed, noise=1)
    assert sorted(tuple(np.flatnonzero(plan)) for plan in problem.plans) == sorted(expected)
    assert problem.about.listing.is_complete


@settings(deadline=None, max_examples=30)
@given(networks(), st.integers(2, 5))
def test_the_n_best_are_the_n_shortest_in_order(case, n):
    edges, weights, directed = case
    lengths = np.abs(weights) + 0.5
    totals = sorted(lengths[list(path)].sum() for path in all_paths(edges, directed))
    if len(totals) < 2:
        return
    problem = problems.paths(edges, 0, 1, guess=lengths, directed=directed, n_best=n, noise=1)
    assert problem.values(lengths) == pytest.approx(totals[:n])
    if len(totals) > n:
        assert problem.candidates.margin == pytest.approx(totals[n] - totals[0])


def test_networkx_csv_and_pairs_say_the_same(tmp_path):
    pairs = [("A", "B", 2.0), ("B", "D", 2.0), ("A", "C", 1.0), ("C", "D", 4.0)]
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(pairs, weight="guess")
    (tmp_path / "edges.csv").write_text("from,to,guess\n" + "".join(f"{a},{b},{w}\n" for a, b, w in pairs))
    frame = pd.DataFrame(pairs, columns=["from", "to", "guess"])
    forms = [pairs, graph, tmp_path / "edges.csv", frame, pl.DataFrame(frame.to_dict("list"))]
    found = [problems.paths(form, "A", "D", directed=True, n_draws=50, noise=1) for form in forms]
    for problem in found:
        plans = {(name, *plan) for name, plan in zip(problem.plan_names, problem.plans.tolist(), strict=True)}
        assert set(problem.arm_names) == {"A -> B", "B -> D", "A -> C", "C -> D"}
        assert {plan[0] for plan in plans} == {"A -> B -> D", "A -> C -> D"}


@pytest.mark.parametrize(
    ("args", "field"),
    [
        (([("A", "B"), ("C", "D")], "A", "D"), "graph"),
        (([("A", "B"), ("B", "C")], "A", "Cc"), "target"),
        (([("A", "B")], "A", "A"), "target"),
        (([], "A", "B"), "graph"),
        ((7, "A", "B"), "graph"),
        (([("A", "B"), ("A", "C"), ("C", "B")], "A", "B", "hours"), "guess"),
        (([("A", "B"), ("A", "C"), ("C", "B")], "A", "B", [1, 2]), "guess"),
    ],
)
def test_a_network_that_makes_no_problem_is_refused(args, field):
    assert refusal(*args).field == field


def test_edges_in_a_csv_or_a_data_frame_say_where_they_are_wrong(tmp_path):
    file = tmp_path / "edges.csv"
    for text, place in (
        ("from,to,guess\nA,B,1\nB,C,x\n", "line 3 of"),
        ("start,end\nA,B\n", "from"),
        ("from,to\nA,B,3\n", "line 2 of"),
    ):
        file.write_text(text)
        refused = refusal(file, "A", "B")
        assert refused.field == "graph"
        assert place in str(refused)
    frame = pd.DataFrame({"from": ["A", "B"], "to": ["B", None], "minutes": [3.0, 4.0]})
    assert "row 1" in str(refusal(frame, "A", "B"))
    assert refusal(frame.rename(columns={"to": "end"}), "A", "B").field == "graph"
    assert refusal(frame.fillna("C"), "A", "C", "hours").field == "guess"


# Sioux Falls, 24 nodes and 38 roads of two links each with their free-flow minutes: a fact of the public
# Transportation Networks test problems (LeBlanc et al., 1975).
SIOUX_FALLS = """1-2:6 1-3:4 2-6:5 3-4:4 3-12:4 4-5:2 4-11:6 5-6:4 5-9:5 6-8:2 7-8:3 7-18:2 8-9:10 8-16:5
9-10:3 10-11:5 10-15:6 10-16:4 10-17:8 11-12:6 11-14:4 12-13:3 13-24:4 14-15:5 14-23:4 15-19:3 15-22:3 16-17:2
16-18:3 17-19:2 18-20:4 19-20:4 20-21:6 20-22:5 21-22:2 21-24:3 22-23:4 23-24:2"""


def sioux_falls():
    roads = [re.split("[-:]", road) for road in SIOUX_FALLS.split()]
    return [link for a, b, t in roads for link in ((a, b, float(t)), (b, a, float(t)))]


def test_sioux_falls_is_solved_whatever_the_signs():
    links = sioux_falls()
    assert len(links) == 76
    problem = problems.paths(links, "1", "20", spread=3.0, n_draws=200)
    assert "1 -> 2" in problem.arm_names
    weights = np.array([minutes for *_, minutes in links])
    family = problems.path_family(links, "1", "20")
    assert weights @ family.best(weights) == 22.0
    negative = np.where(np.arange(76) % 7 == 0, -weights, weights)
    network = problems.as_network(links)
    every = path_kind._ways(network, 0, network.node("20", "target")).every
    assert negative @ family.best(negative) == min(negative[edges].sum() for edges in every)


def test_beyond_a_list_a_network_with_cycles_is_refused_before_it_is_measured():
    grid = [(str(a), str(b)) for a, b in nx.grid_2d_graph(7, 7).edges]
    with refuses("list_plans", ProblemError):
        problems.paths(grid, "(0, 0)", "(6, 6)", list_plans=False)
    family = problems.path_family(grid, "(0, 0)", "(6, 6)")
    assert family.best(np.ones(family.n_arms)).sum() == 12
    with refuses("graph", ProblemError):
        family.best(-np.ones(family.n_arms))


GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="m" for="edge" attr.name="minutes" attr.type="double"/>
<graph edgedefault="directed">
<edge source="A" target="B"><data key="m">4</data></edge>
<edge source="B" target="A"><data key="m">5</data></edge>
<edge source="B" target="C"><data key="m">2</data></edge>
<edge source="A" target="C"><data key="m">7</data></edge>
</graph></graphml>"""
EDGELISTS = {
    "plain": "A B\nB A\nB C\nA C\n",
    "numbers": "# from to minutes\nA B 4\nB A 5\nB C 2\nA C 7\n",
    "tables": "A B {'minutes': 4}\nB A {'minutes': 5}\nB C {'minutes': 2}\nA C {'minutes': 7}\n",
}


@pytest.mark.parametrize(
    ("name", "text"), [("g.graphml", GRAPHML), *((f"{k}.edgelist", t) for k, t in EDGELISTS.items())]
)
def test_networks_come_from_graphml_and_edge_lists(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    network = problems.as_network(tmp_path / name)
    assert network.directed  # both A -> B and B -> A are there
    assert sorted(network.edge_names) == ["A -> B", "A -> C", "B -> A", "B -> C"]
    column = network.columns.get("minutes", network.columns.get("guess"))
    if name != "plain.edgelist":
        assert dict(zip(network.edge_names, column.tolist(), strict=True))["B -> A"] == 5
    assert sorted(problems.paths(tmp_path / name, "A", "C").plan_names) == ["A -> B -> C", "A -> C"]


def test_a_graphml_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "g.graphml").write_text("<graphml><graph>")
    for path in (tmp_path / "g.graphml", tmp_path / "absent.graphml"):
        with refuses("graph", ProblemError):
            problems.as_network(path)
