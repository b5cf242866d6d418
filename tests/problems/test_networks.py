"""Networks from all that holds one, and paths over those with cycles."""

import re

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

from common import refuses
from surepick import problems
from surepick.errors import ProblemError

PAIRS = [("A", "B", 2.0), ("B", "D", 2.0), ("A", "C", 1.0), ("C", "D", 4.0)]


def graph_of(pairs):
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(pairs, weight="guess")
    return graph


def csv_of(pairs, folder):
    (folder / "edges.csv").write_text("from,to,guess\n" + "".join(f"{a},{b},{w}\n" for a, b, w in pairs))
    return folder / "edges.csv"


def test_networkx_csv_frames_and_pairs_say_the_same(tmp_path):
    frame = pd.DataFrame(PAIRS, columns=["from", "to", "guess"])
    forms = [PAIRS, graph_of(PAIRS), csv_of(PAIRS, tmp_path), frame, pl.DataFrame(frame.to_dict("list"))]
    for form in forms:
        problem = problems.paths(form, "A", "D", directed=True)
        assert dict(zip(problem.arm_names, problem.guess.tolist(), strict=True)) == {
            f"{a} -> {b}": guess for a, b, guess in PAIRS
        }
        assert set(problem.plan_names) == {"A -> B -> D", "A -> C -> D"}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("from,to,guess\nA,B,1\nB,C,x\n", "line 3 of"),
        ("start,end\nA,B\n", "from"),
        ("from,to\nA,B,3\n", "line 2 of"),
    ],
)
def test_edges_in_a_csv_file_say_where_they_are_wrong(tmp_path, text, place):
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises(ProblemError) as caught:
        problems.as_network(tmp_path / "edges.csv")
    assert caught.value.field == "graph"
    assert place in str(caught.value)


def test_edges_in_a_data_frame_say_where_they_are_wrong():
    frame = pd.DataFrame({"from": ["A", "B"], "to": ["B", None], "minutes": [3.0, 4.0]})
    with pytest.raises(ProblemError, match="row 1"):
        problems.as_network(frame)
    with refuses("graph", ProblemError):
        problems.as_network(frame.rename(columns={"to": "end"}))


GRAPHML = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="m" for="edge" attr.name="minutes" attr.type="double"/>
<graph edgedefault="directed">
<edge source="A" target="B"><data key="m">4</data></edge>
<edge source="B" target="A"><data key="m">5</data></edge>
<edge source="B" target="C"><data key="m">2</data></edge>
<edge source="A" target="C"><data key="m">7</data></edge>
</graph></graphml>"""
FILES = {
    "g.graphml": GRAPHML,
    "plain.edgelist": "A B\nB A\nB C\nA C\n",
    "numbers.edgelist": "# from to minutes\nA B 4\nB A 5\nB C 2\nA C 7\n",
    "tables.edgelist": "A B {'minutes': 4}\nB A {'minutes': 5}\nB C {'minutes': 2}\nA C {'minutes': 7}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_networks_come_from_graphml_and_edge_lists(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    network = problems.as_network(tmp_path / name)
    assert network.directed  # both A -> B and B -> A are there
    assert sorted(network.edge_names) == ["A -> B", "A -> C", "B -> A", "B -> C"]
    numbers = network.columns.get("minutes", network.columns.get("guess"))
    if name != "plain.edgelist":
        assert dict(zip(network.edge_names, numbers.tolist(), strict=True))["B -> A"] == 5
    assert sorted(problems.paths(tmp_path / name, "A", "C").plan_names) == ["A -> B -> C", "A -> C"]


def test_a_graphml_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "g.graphml").write_text("<graphml><graph>")
    for path in (tmp_path / "g.graphml", tmp_path / "absent.graphml"):
        with refuses("graph", ProblemError):
            problems.as_network(path)


# Sioux Falls, 24 nodes and 38 roads of two links each with their free-flow minutes: a fact of the public
# Transportation Networks test problems (LeBlanc et al., 1975).
SIOUX_FALLS = """1-2:6 1-3:4 2-6:5 3-4:4 3-12:4 4-5:2 4-11:6 5-6:4 5-9:5 6-8:2 7-8:3 7-18:2 8-9:10 8-16:5
9-10:3 10-11:5 10-15:6 10-16:4 10-17:8 11-12:6 11-14:4 12-13:3 13-24:4 14-15:5 14-23:4 15-19:3 15-22:3 16-17:2
16-18:3 17-19:2 18-20:4 19-20:4 20-21:6 20-22:5 21-22:2 21-24:3 22-23:4 23-24:2"""


def test_sioux_falls_is_solved_whatever_the_signs():
    roads = [re.split("[-:]", road) for road in SIOUX_FALLS.split()]
    links = [link for a, b, t in roads for link in ((a, b, float(t)), (b, a, float(t)))]
    problem = problems.paths(links, "1", "20", list_plans=False)
    assert problem.arm_names[0] == "1 -> 2"
    assert problem.best_plan(problem.guess) @ problem.guess == 22.0
    negative = np.where(np.arange(76) % 7 == 0, -problem.guess, problem.guess)
    graph = graph_of([(a, b, minutes) for (a, b, _), minutes in zip(links, negative, strict=True)])
    lengths = (nx.path_weight(graph, way, "guess") for way in nx.all_simple_paths(graph, "1", "20"))
    assert problem.best_plan(negative) @ negative == min(lengths)


def test_beyond_a_list_a_network_with_cycles_is_refused_before_it_is_measured():
    grid = [(str(a), str(b)) for a, b in nx.grid_2d_graph(7, 7).edges]
    with refuses("list_plans", ProblemError):
        problems.paths(grid, "(0, 0)", "(6, 6)", list_plans=False)
    ends = ("(0, 0)", "(6, 6)")
    assert set(problems.paths(grid, *ends, np.ones(len(grid)), n_draws=9).plans.sum(axis=1)) == {12}
    with refuses("graph", ProblemError):
        problems.paths(grid, *ends, -np.ones(len(grid)), n_draws=9)


def test_a_network_with_cycles_and_many_paths_keeps_its_list_and_says_what_may_be_missing():
    grid = [(str(a), str(b)) for a, b in nx.grid_2d_graph(5, 5).edges]
    ways = (grid, "(0, 0)", "(4, 4)", np.full(len(grid), 5.0))
    problem = problems.paths(*ways, spread=3.0)
    assert problem.about.listing.how == "draws"
    assert not problem.about.listing.is_complete
    assert not problems.paths(*ways, list_plans=False).is_listed
