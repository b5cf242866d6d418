"""Networks: named nodes and edges, read from whatever a person has.

A list of pairs, a CSV file with the columns `from` and `to`, or a graph of networkx or rustworkx.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, IntArray, read_only
from surepick.core.layout import Layout
from surepick.core.tables import csv_lines
from surepick.errors import ProblemError, suggestion

Graph: TypeAlias = Any  # a Network, a networkx or rustworkx graph, the path of a CSV file, or a list of pairs


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

    def node(self, name: object) -> int:
        """The index of the node with this name."""
        try:
            return self.nodes.index(str(name))
        except ValueError:
            hint = suggestion(str(name), self.nodes)
            raise ProblemError(f"there is no node named {str(name)!r} in the network; {hint}") from None

    def numbers(self, what: str, given: str | npt.ArrayLike) -> npt.ArrayLike:
        """These numbers, one per edge: a column by its name, or the numbers themselves."""
        if not isinstance(given, str):
            return given
        if given not in self.columns:
            known = f"; {suggestion(given, self.columns)}" if self.columns else "; the edges carry no numbers"
            raise ProblemError(f"{what} names no column of the network, got {given!r}{known}")
        return self.columns[given]

    def layout(self, kind: str, ends: Sequence[int] = ()) -> Layout:
        """Nodes and edges, for pictures of a plan."""
        links = tuple(zip(self.tails.tolist(), self.heads.tolist(), strict=True))
        return Layout(kind, places=self.nodes, links=links, directed=self.directed, ends=tuple(ends))

    def guess(self, given: str | npt.ArrayLike | None) -> npt.ArrayLike | None:
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


def as_network(graph: Graph, *, directed: bool | None = None) -> Network:
    """The network in a list of pairs, a CSV file, or a graph of networkx or rustworkx.

    A list holds (from, to) or (from, to, guess); a CSV file has the columns `from` and `to`, perhaps `name`,
    and numbers. Both are undirected unless `directed=True`; a graph knows for itself. Nodes are called by
    their text.

    >>> network = as_network([("A", "B", 3.0), ("B", "C", 4.0)], directed=True)
    >>> network.edge_names, network.columns["guess"].tolist()
    (('A -> B', 'B -> C'), [3.0, 4.0])
    """
    if isinstance(graph, Network):
        return graph
    if isinstance(graph, Mapping) and "edge_names" in graph:
        return _from_recipe(graph)
    if isinstance(graph, str | Path):
        return _from_csv(Path(graph), bool(directed))
    if hasattr(graph, "edge_index_map"):
        return _from_rustworkx(graph, directed)
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return _from_networkx(graph, directed)
    return _from_pairs(graph, bool(directed))


@dataclass(frozen=True)
class _Edge:
    tail: str
    head: str
    numbers: Mapping[str, object]
    name: str | None = None


def _network(nodes: Iterable[str], edges: Sequence[_Edge], directed: bool) -> Network:
    ends = (end for edge in edges for end in (edge.tail, edge.head))
    names = tuple(dict.fromkeys([*nodes, *ends]))
    if not edges:
        raise ProblemError("the network has no edges; there is nothing to choose")
    for e, edge in enumerate(edges):
        if edge.tail == edge.head:
            raise ProblemError(f"edge {e} joins {edge.tail!r} to itself; leave it out")
    at = {name: i for i, name in enumerate(names)}
    tails, heads = (np.array([at[getattr(e, end)] for e in edges]) for end in ("tail", "head"))
    columns = {key: read_only(_column(edges, key)) for key in _common_numbers(edges)}
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


def _common_numbers(edges: Sequence[_Edge]) -> list[str]:
    return [key for key in edges[0].numbers if all(_is_number(edge.numbers.get(key)) for edge in edges)]


def _column(edges: Sequence[_Edge], key: str) -> FloatArray:
    return np.array([float(edge.numbers[key]) for edge in edges])  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _from_pairs(pairs: Any, directed: bool) -> Network:
    try:
        rows = [tuple(pair) for pair in pairs]
    except TypeError:
        raise ProblemError(
            "a network is a list of pairs of nodes, the path of a CSV file, or a graph of networkx or "
            "rustworkx, "
            f"got {pairs!r}"
        ) from None
    edges = []
    for e, row in enumerate(rows):
        if len(row) not in (2, 3) or (len(row) == 3 and not _is_number(row[2])):
            raise ProblemError(f"an edge is (from, to) or (from, to, guess), got {row!r} as edge {e}")
        edges.append(_Edge(str(row[0]), str(row[1]), {"guess": row[2]} if len(row) == 3 else {}))
    return _network((), edges, directed)


def _from_recipe(data: Mapping[str, Any]) -> Network:
    ends = np.array(data["edges"], dtype=np.int64)
    tails, heads = read_only(ends[:, 0].copy()), read_only(ends[:, 1].copy())
    return Network(tuple(data["nodes"]), tails, heads, data["directed"], tuple(data["edge_names"]), {})


def _from_networkx(graph: Any, directed: bool | None) -> Network:
    ways = _ways(graph.is_directed(), directed)
    edges = [_Edge(str(a), str(b), data) for a, b, data in graph.edges(data=True)]
    return _network(_unique([str(node) for node in graph.nodes]), edges, ways)


def _from_rustworkx(graph: Any, directed: bool | None) -> Network:
    ways = _ways("Di" in type(graph).__name__, directed)
    nodes = {i: str(graph[i]) for i in graph.node_indices()}
    edges = []
    for a, b, load in graph.edge_index_map().values():
        numbers = load if isinstance(load, Mapping) else {"guess": load}
        edges.append(_Edge(nodes[a], nodes[b], numbers))
    return _network(_unique(list(nodes.values())), edges, ways)


def _ways(actual: bool, asked: bool | None) -> bool:
    if asked is not None and asked != actual:
        kind = "directed" if actual else "undirected"
        raise ProblemError(f"directed={asked} was asked for, but the graph is {kind}; convert it first")
    return actual


def _unique(nodes: list[str]) -> list[str]:
    if len(set(nodes)) < len(nodes):
        twice = Counter(nodes).most_common(1)[0][0]
        raise ProblemError(
            f"node names must differ as text, got {twice!r} more than once; rename one of them"
        )
    return nodes


def _from_csv(path: Path, directed: bool) -> Network:
    lines = csv_lines(path)
    header = [cell.strip() for cell in lines[0][1]] if lines else []
    if "from" not in header or "to" not in header or len(set(header)) < len(header):
        raise ProblemError(
            f"{str(path)!r} needs a header with the columns 'from' and 'to', and names that differ, got "
            f"{header}"
        )
    edges = [_csv_edge(path, number, header, row) for number, row in lines[1:]]
    return _network((), edges, directed)


def _csv_edge(path: Path, number: int, header: list[str], row: list[str]) -> _Edge:
    if len(row) != len(header):
        raise ProblemError(
            f"line {number} of {str(path)!r} has {len(row)} cells, the header has {len(header)}; "
            "every edge needs a cell for each"
        )
    cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
    tail, head, name = cells.pop("from"), cells.pop("to"), cells.pop("name", None)
    if not tail or not head:
        raise ProblemError(f"line {number} of {str(path)!r}: an edge needs both ends, got {row}")
    numbers = {}
    for column, cell in cells.items():
        try:
            numbers[column] = float(cell)
        except ValueError:
            raise ProblemError(
                f"line {number}, column {column!r} of {str(path)!r}: expected a number, got {cell!r}"
            ) from None
    return _Edge(tail, head, numbers, name or None)
