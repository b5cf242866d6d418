"""Networks: named nodes and edges, read from whatever a person has.

A list of pairs, a CSV file or data frame with the columns `from` and `to`, a graph of networkx or rustworkx.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    Numbers,
    aligned,
    index_of,
    names_for,
    read_only,
)
from surepick.core.frames import frame_cells, is_frame
from surepick.errors import ParameterError, ProblemError, blaming, missing_extra, suggestion
from surepick.tables import csv_lines, numeral, refuse_endless

# a Network, a networkx or rustworkx graph, the path of a CSV file, a data frame, or a list of pairs
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
        """The index of the node with this name, which the argument `field` gives."""
        return index_of("node", str(name), self.nodes, field=field)

    def numbers(self, what: str, given: str | Numbers) -> npt.ArrayLike:
        """Return one number per edge, given as the name of a column, in order, or by edge name."""
        if not isinstance(given, str):
            in_order: npt.ArrayLike = aligned(what, given, self.edge_names, kind="edge")
            return in_order
        if given not in self.columns:
            known = f"; {suggestion(given, self.columns)}" if self.columns else "; the edges carry no numbers"
            raise ProblemError(f"{what} names no column of the network, got {given!r}{known}", field=what)
        return self.columns[given]

    def guess(self, given: str | Numbers | None) -> npt.ArrayLike | None:
        """The guess of each edge; where none is given, the column "guess" if there is one."""
        if given is None:
            return self.columns.get("guess")
        return self.numbers("guess", given)

    def recipe(self) -> dict[str, Any]:
        """The nodes and edges as JSON values that `as_network` reads; their numbers are left out."""
        return {
            "nodes": list(self.nodes),
            "edges": [[a, b] for a, b in zip(self.tails.tolist(), self.heads.tolist(), strict=True)],
            "directed": self.directed,
            "edge_names": list(self.edge_names),
        }


def other_end(network: Network, edge: int, node: int) -> int:
    """Return the node at the other end of an edge."""
    return int(network.heads[edge] if network.tails[edge] == node else network.tails[edge])


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
    """The network in a list of pairs, a file, a data frame, or a graph of networkx or rustworkx.

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
        return _from_recipe(graph)
    if isinstance(graph, str | Path):
        return _from_file(Path(graph), directed)
    if is_frame(graph):
        header, rows = frame_cells(graph)
        numbered = [(f"row {number}", row) for number, row in enumerate(rows)]
        return _from_rows("a data frame of edges", header, numbered, directed)
    if hasattr(graph, "edge_index_map") or (hasattr(graph, "is_directed") and hasattr(graph, "edges")):
        return _from_graph(graph, directed)
    return _from_pairs(graph, directed)


@dataclass(frozen=True)
class _Edge:
    tail: str
    head: str
    numbers: Mapping[str, Any]
    name: str | None = None


def _network(nodes: Iterable[str], edges: Sequence[_Edge], directed: bool | None) -> Network:
    if directed is None:
        there = {(edge.tail, edge.head) for edge in edges}
        directed = any((head, tail) in there for tail, head in there)
    ends = (end for edge in edges for end in (edge.tail, edge.head))
    names = tuple(dict.fromkeys([*nodes, *ends]))
    if not edges:
        raise ProblemError("the network has no edges; there is nothing to choose", field="graph")
    for e, edge in enumerate(edges):
        if edge.tail == edge.head:
            raise ProblemError(f"edge {e} joins {edge.tail!r} to itself; leave it out", field="graph")
    at = {name: i for i, name in enumerate(names)}
    tails, heads = (np.array([at[getattr(e, end)] for e in edges]) for end in ("tail", "head"))
    common = [key for key in edges[0].numbers if all(_is_number(edge.numbers.get(key)) for edge in edges)]
    columns = {key: read_only(np.array([float(edge.numbers[key]) for edge in edges])) for key in common}
    return Network(names, read_only(tails), read_only(heads), directed, _edge_names(edges, directed), columns)


def _edge_names(edges: Sequence[_Edge], directed: bool) -> tuple[str, ...]:
    """The given names, or "A -> B" ("A - B" where both ways are one); parallel edges get numbers."""
    arrow = "->" if directed else "-"
    plain = [edge.name or f"{edge.tail} {arrow} {edge.head}" for edge in edges]
    total, seen = Counter(plain), Counter[str]()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(name if total[name] == 1 else f"{name} ({seen[name]})")
    return tuple(names)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _from_pairs(pairs: Any, directed: bool | None) -> Network:
    try:
        rows = [tuple(pair) for pair in pairs]
    except TypeError:
        raise ProblemError(
            "a network is a list of pairs of nodes, the path of a CSV file, a data frame, or a graph of "
            f"networkx or rustworkx, got {pairs!r}",
            field="graph",
        ) from None
    for e, row in enumerate(rows):
        if len(row) not in (2, 3) or not all(map(_is_number, row[2:])):
            raise ProblemError(
                f"an edge is (from, to) or (from, to, guess), got {row!r} as edge {e}", field="graph"
            )
    edges = [_Edge(str(row[0]), str(row[1]), dict(zip(["guess"], row[2:], strict=False))) for row in rows]
    return _network((), edges, directed)


def _from_recipe(data: Mapping[str, Any]) -> Network:
    tails, heads = (read_only(ends.copy()) for ends in np.array(data["edges"], dtype=np.int64).T)
    return Network(tuple(data["nodes"]), tails, heads, data["directed"], tuple(data["edge_names"]), {})


def _from_graph(graph: Any, directed: bool | None) -> Network:
    """A graph of networkx, whose edges carry dictionaries, or of rustworkx, whose edges carry anything."""
    if hasattr(graph, "edge_index_map"):
        actual, nodes = "Di" in type(graph).__name__, {i: str(graph[i]) for i in graph.node_indices()}
        loads = graph.edge_index_map().values()
        edges = [
            (nodes[a], nodes[b], load if isinstance(load, Mapping) else {"guess": load})
            for a, b, load in loads
        ]
    else:
        actual, nodes = graph.is_directed(), {node: str(node) for node in graph.nodes}
        edges = [(nodes[a], nodes[b], numbers) for a, b, numbers in graph.edges(data=True)]
    if directed is not None and directed != actual:
        kind = "directed" if actual else "undirected"
        raise ProblemError(
            f"directed={directed} was asked for, but the graph is {kind}; convert it first", field="directed"
        )
    names = names_for("node", list(nodes.values()), len(nodes))
    return _network(names, [_Edge(*edge) for edge in edges], actual)


@blaming("graph")
def _from_file(path: Path, directed: bool | None) -> Network:
    """A CSV file; or GraphML (.graphml) or a list of edges (.edgelist), which networkx reads."""
    if path.suffix.lower() in (".graphml", ".edgelist"):
        return _from_networkx_file(path, directed)
    lines = csv_lines(path)
    header = [cell.strip() for cell in lines[0][1]] if lines else []
    rows = [(f"line {number} of {str(path)!r}", row) for number, row in lines[1:]]
    return _from_rows(repr(str(path)), header, rows, directed)


def _from_networkx_file(path: Path, directed: bool | None) -> Network:
    """Edges with their numbers; a line of an edge list is `A B`, `A B 3.5` or `A B {'minutes': 3.5}`."""
    try:
        import networkx as nx
    except ImportError:
        raise missing_extra("networkx", "problems") from None
    refuse_endless(path)
    try:
        if path.suffix.lower() == ".graphml":
            graph = nx.read_graphml(path, force_multigraph=True)
            directed = graph.is_directed() if directed is None else directed
        else:
            has_tables = "{" in path.read_text(encoding="utf-8")
            data: Any = True if has_tables else (("guess", float),)
            graph = nx.read_edgelist(path, create_using=nx.MultiDiGraph, data=data)
    except OSError as error:
        raise ProblemError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except Exception as error:  # what another program wrote may be wrong in many ways
        raise ProblemError(f"{str(path)!r} is no {path.suffix[1:]} file: {error}") from None
    edges = [_Edge(str(a), str(b), numbers) for a, b, numbers in graph.edges(data=True)]
    return _network((), edges, directed)


def _from_rows(
    what: str, header: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]], directed: bool | None
) -> Network:
    """Edges in the rows of a table, each with where it stands; cells are text, or numbers."""
    if "from" not in header or "to" not in header or len(set(header)) < len(header):
        raise ProblemError(
            f"{what} needs a header with the columns 'from' and 'to', and names that differ, got "
            f"{list(header)}",
            field="graph",
        )
    return _network((), [_edge(where, header, row) for where, row in rows], directed)


def _text(cell: Any) -> str:
    """A cell as text; one that is missing is empty, as data frames have None or nan there."""
    return "" if cell is None or cell != cell else str(cell).strip()


def _edge(where: str, header: Sequence[str], row: Sequence[Any]) -> _Edge:
    if len(row) != len(header):
        raise ProblemError(
            f"{where} has {len(row)} cells, the header has {len(header)}; every edge needs a cell for each",
            field="graph",
        )
    cells = dict(zip(header, map(_text, row), strict=True))
    tail, head, name = cells.pop("from"), cells.pop("to"), cells.pop("name", None)
    if not tail or not head:
        raise ProblemError(f"{where}: an edge needs both ends, got {list(row)}", field="graph")
    numbers = {}
    for column, cell in cells.items():
        try:
            numbers[column] = numeral(cell)
        except ParameterError as error:
            raise ProblemError(f"{where}, column {column!r}: {error}", field="graph") from None
    return _Edge(tail, head, numbers, name or None)
