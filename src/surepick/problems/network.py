"""Networks: named nodes and edges, read from whatever a person has.

A list of pairs, a CSV file or data frame with the columns `from` and `to`, a graph of networkx.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import BoolArray, FloatArray, IntArray, read_only
from surepick.core.given.numbers import Numbers, aligned, index_of, names_for
from surepick.core.given.plans import frame_cells, is_frame
from surepick.errors import ParameterError, ProblemError, SurepickError, missing_extra, suggestion
from surepick.tables import csv_lines, numeral, refuse_endless

# a Network, a networkx graph, the path of a CSV file, a data frame, or a list of pairs
Graph: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Network:
    """Nodes and edges with names; `columns` are the numbers that came with the edges."""

    nodes: tuple[str, ...]
    tails: IntArray  # (n_edges,) node indices
    heads: IntArray
    directed: bool
    edge_names: tuple[str, ...]
    columns: Mapping[str, FloatArray]

    @property
    def n_edges(self) -> int:
        """The number of edges, parallel ones counted each."""
        return len(self.tails)

    def node(self, name: object, field: str) -> int:
        """Return the index of the node with this name, which the argument `field` gives."""
        return index_of("node", str(name), self.nodes, field=field)

    def across(self, edge: int, node: int) -> int:
        """Return the node at the other end of an edge."""
        return int(self.heads[edge] if self.tails[edge] == node else self.tails[edge])

    def guess(self, given: str | Numbers | None) -> npt.ArrayLike | None:
        """Return the guess of each edge: a column ("guess" unless named), in order, or by edge name."""
        if given is None:
            return self.columns.get("guess")
        if not isinstance(given, str):
            in_order: npt.ArrayLike = aligned("guess", given, self.edge_names, kind="edge")
            return in_order
        if given not in self.columns:
            known = f"; {suggestion(given, self.columns)}" if self.columns else "; the edges carry no numbers"
            raise ProblemError(f"guess names no column of the network, got {given!r}{known}", field="guess")
        return self.columns[given]

    def recipe(self) -> dict[str, Any]:
        """Return the nodes and edges as JSON values that `as_network` reads; their numbers are left out."""
        return {
            "nodes": list(self.nodes),
            "edges": [[a, b] for a, b in zip(self.tails.tolist(), self.heads.tolist(), strict=True)],
            "directed": self.directed,
            "edge_names": list(self.edge_names),
        }


def reached(tails: IntArray, heads: IntArray, usable: BoolArray, start: int) -> BoolArray:
    """Return which nodes can be reached over usable arcs."""
    seen = np.zeros(int(max(tails.max(), heads.max())) + 1, dtype=bool)
    seen[start] = True
    while True:
        new = heads[usable & seen[tails]]
        if seen[new].all():
            return seen
        seen[new] = True


def as_network(graph: Graph, *, directed: bool | None = None) -> Network:
    """Return the network in a list of pairs, a file, a data frame, or a graph of networkx.

    A list holds (from, to) or (from, to, guess); a CSV file and a data frame have the columns `from` and
    `to`, perhaps `name`, and numbers; a file may also be a list of edges (.edgelist) or GraphML (.graphml).
    Unless `directed` says it, they are directed where some edge is there in both directions; a graph and
    GraphML know for themselves. Nodes are called by their text.

    >>> network = as_network([("A", "B", 3.0), ("B", "C", 4.0)], directed=True)
    >>> network.edge_names, network.columns["guess"].tolist()
    (('A -> B', 'B -> C'), [3.0, 4.0])
    """
    if isinstance(graph, Network):
        return graph
    if isinstance(graph, Mapping) and "edge_names" in graph:
        tails, heads = (read_only(ends.copy()) for ends in np.array(graph["edges"], dtype=np.int64).T)
        return Network(tuple(graph["nodes"]), tails, heads, graph["directed"], tuple(graph["edge_names"]), {})
    if isinstance(graph, str | Path):
        try:
            return _from_file(Path(graph), directed)
        except SurepickError as error:
            error.field = error.field or "graph"
            raise
    if is_frame(graph):
        header, rows = frame_cells(graph)
        numbered = [(f"row {number}", row) for number, row in enumerate(rows)]
        return _network((), _in_rows("a data frame of edges", header, numbered), directed)
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        if directed is not None and directed != graph.is_directed():
            raise ProblemError(
                f"directed={directed} was asked for, but the graph says otherwise; convert it first",
                field="directed",
            )
        names = names_for("node", [str(node) for node in graph.nodes], len(graph.nodes))
        return _network(names, _in_graph(graph), graph.is_directed())
    try:
        pairs = [tuple(pair) for pair in graph]
    except TypeError:
        raise ProblemError(
            "a network is a list of pairs of nodes, the path of a CSV file, a data frame, or a graph of "
            f"networkx, got {graph!r}",
            field="graph",
        ) from None
    for e, pair in enumerate(pairs):
        if len(pair) not in (2, 3) or not all(map(_is_number, pair[2:])):
            raise ProblemError(
                f"an edge is (from, to) or (from, to, guess), got {pair!r} as edge {e}", field="graph"
            )
    edges = [
        _Edge(str(pair[0]), str(pair[1]), dict(zip(["guess"], pair[2:], strict=False))) for pair in pairs
    ]
    return _network((), edges, directed)


class _Edge(NamedTuple):
    tail: str
    head: str
    numbers: Mapping[str, Any]
    name: str = ""


def _network(nodes: Sequence[str], edges: Sequence[_Edge], directed: bool | None) -> Network:
    """Return the network of these edges, named as given, or "A -> B", or "A - B" where both ways are one."""
    if not edges:
        raise ProblemError("the network has no edges; there is nothing to choose", field="graph")
    for e, edge in enumerate(edges):
        if edge.tail == edge.head:
            raise ProblemError(f"edge {e} joins {edge.tail!r} to itself; leave it out", field="graph")
    if directed is None:
        there = {(edge.tail, edge.head) for edge in edges}
        directed = any((head, tail) in there for tail, head in there)
    at = {name: i for i, name in enumerate(dict.fromkeys([*nodes, *(end for e in edges for end in e[:2])]))}
    tails, heads = (
        read_only(np.array([at[end] for end in ends]))
        for ends in zip(*(edge[:2] for edge in edges), strict=True)
    )
    common = [key for key in edges[0].numbers if all(_is_number(edge.numbers.get(key)) for edge in edges)]
    columns = {key: read_only(np.array([float(edge.numbers[key]) for edge in edges])) for key in common}
    arrow = "->" if directed else "-"
    plain = [edge.name or f"{edge.tail} {arrow} {edge.head}" for edge in edges]
    total, seen, names = Counter(plain), Counter[str](), list[str]()
    for name in plain:  # parallel edges get numbers
        seen[name] += 1
        names.append(name if total[name] == 1 else f"{name} ({seen[name]})")
    return Network(tuple(at), tails, heads, directed, tuple(names), columns)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _in_graph(graph: Any) -> list[_Edge]:
    return [_Edge(str(a), str(b), numbers) for a, b, numbers in graph.edges(data=True)]


def _from_file(path: Path, directed: bool | None) -> Network:
    """Return the network of a CSV file; networkx reads GraphML, and edges `A B` or `A B {'minutes': 3.5}`."""
    kind = path.suffix.lower()
    if kind not in (".graphml", ".edgelist"):
        lines = csv_lines(path)
        header = [cell.strip() for cell in lines[0][1]] if lines else []
        rows = [(f"line {number} of {str(path)!r}", row) for number, row in lines[1:]]
        return _network((), _in_rows(repr(str(path)), header, rows), directed)
    try:
        import networkx as nx
    except ImportError:
        raise missing_extra("networkx", "problems") from None
    refuse_endless(path)
    try:
        if kind == ".graphml":
            graph = nx.read_graphml(path, force_multigraph=True)
            directed = graph.is_directed() if directed is None else directed
        else:
            has_tables = "{" in path.read_text(encoding="utf-8")
            data: Any = True if has_tables else (("guess", float),)
            graph = nx.read_edgelist(path, create_using=nx.MultiDiGraph, data=data)
    except OSError as error:
        raise ProblemError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except Exception as error:  # what another program wrote may be wrong in many ways
        raise ProblemError(f"{str(path)!r} is no {kind[1:]} file: {error}") from None
    return _network((), _in_graph(graph), directed)


def _in_rows(what: str, header: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]]) -> list[_Edge]:
    """Return the edges in the rows of a table, each with where it stands; cells are text, or numbers."""
    if "from" not in header or "to" not in header or len(set(header)) < len(header):
        raise ProblemError(
            f"{what} needs a header with different names, 'from' and 'to' among them, got {list(header)}",
            field="graph",
        )
    edges = list[_Edge]()
    for where, row in rows:
        if len(row) != len(header):
            raise ProblemError(
                f"{where} has {len(row)} cells, the header has {len(header)}; give a cell for each column",
                field="graph",
            )
        # data frames have None or nan where a cell is empty
        texts = ("" if cell is None or cell != cell else str(cell).strip() for cell in row)
        cells = dict(zip(header, texts, strict=True))
        tail, head, name = cells.pop("from"), cells.pop("to"), cells.pop("name", "")
        if not tail or not head:
            raise ProblemError(f"{where}: an edge needs both ends, got {list(row)}", field="graph")
        numbers = {}
        for column, cell in cells.items():
            try:
                numbers[column] = numeral(cell)
            except ParameterError as error:
                raise ProblemError(f"{where}, column {column!r}: {error}", field="graph") from None
        edges.append(_Edge(tail, head, numbers, name))
    return edges
