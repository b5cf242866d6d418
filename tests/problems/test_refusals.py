"""Data that make no choice are refused, and the error names the argument that is to blame."""

import networkx as nx
import numpy as np
import pytest

from common import refuses
from surepick import problems
from surepick.errors import ProblemError

TRIANGLE = [("A", "B"), ("B", "C"), ("A", "C")]
PAIR = [[1, 1], [1, 1]]
PRICES = {"mail": {"small": 1, "large": 3}, "chat": {"small": 1, "large": 3}}
CASES = {
    "knapsack": [
        ("weights", ([4, 0], [4, 5], 10)),
        ("weights", ([], [], 3)),
        ("guess", ([4, 5], [4, 5, 6], 10)),
        ("capacity", ([4, 5], [4, 5], 10.5)),
        ("capacity", ([4, 5], [4, 5], 3)),
        ("capacity", ([4, 5], [4, 5], 10**10)),
        *(("copies", ([4, 5], [4, 5], 10), {"copies": copies}) for copies in (-1, 1.5, [1, 2, 3], "x", 0)),
        ("n_draws", ([4, 5], [4, 5], 10), {"n_draws": 0}),
        ("seed", ([4, 5], [4, 5], 10), {"seed": -1}),
        ("spread", ([4, 5], [4, 5], 10), {"spread": -1}),
    ],
    "transport": [
        ("supply", ([3, 2], [4, 2], PAIR)),
        ("supply", ([3, -2], [1], [[1], [1]])),
        ("supply", ([0, 0], [0], [[1], [1]])),
        ("supply", ([], [], [[]])),
        ("demand", ([1], [2, -1], [[1, 1]])),
        ("guess", ([1, 1], [2], [[1, 1]])),
        ("guess", ([1, 1], [2], [1, 1])),
        (None, ([1], [1], [[1]])),
        ("guess", ([3, 2], [4, 1]), {"list_plans": True}),
        ("spread", ([3, 2], [4, 1], PAIR), {"spread": [[1, 2], [3]]}),
    ],
    "portfolio": [
        ("budget", ([1, 2],), {"upper": 0.2}),
        ("budget", ([1, 2],), {"budget": 0}),
        ("budget", ([1, 2],), {"budget": "much"}),
        ("lower", ([1, 2],), {"lower": [-0.1, 0]}),
        ("groups", ([1, 2],), {"groups": {"g": (["gold"], 1)}}),
        (None, ([1, 2],), {"groups": {"g": (["asset 0", "asset 1"], 0.5)}}),
    ],
    "production": [
        (None, ([[1, 1]], [-1], [1, 1])),  # infeasible
        (None, ([[1, -1]], [1], [1, 1])),  # unbounded
        ("lower", ([[1, 1]], [1], [1, 1]), {"upper": [2, -1]}),
        ("limits", ([[1, 1]], [1, 2], [1, 1])),
        ("guess", ([[1, 1]], [1], [1, 1, 1])),
        ("senses", ([[1, 1]], [1], [1, 1]), {"senses": "<"}),
        ("guess", ([[1, 1]], [1])),
        (None, ([[1, 1]], [1], [5, 1]), {"n_draws": 50}),  # one plan only
    ],
    "matchings": [
        ("possible", ([[np.nan, np.nan], [1, 2]],), {"goal": "smallest"}),
        ("guess", ([1, 2],), {"goal": "smallest"}),
        ("guess", (), {"goal": "smallest"}),
        ("guess", ([[1, np.inf], [1, 2]],), {"goal": "smallest"}),
        ("row_names", ([[1, 2], [3, 4]],), {"goal": "smallest", "row_names": ["a"]}),
        ("spread", (PAIR,), {"goal": "smallest", "spread": [[1, 2], [3]]}),
        ("row_names", (PAIR,), {"goal": "smallest", "spread": [[1, 2]]}),
        (None, ([[1.0]],), {"goal": "smallest"}),
        (None, ([[1, 9], [9, 1]],), {"goal": "smallest", "spread": 0.1, "list_plans": True}),
    ],
    "choice": [
        ("sets", (["tea", "coffee"], [["tea", "cofee"], ["tea"]]), {"goal": "largest"}),
        ("sets", (["tea", "coffee"], [["tea"], ["tea", "tea"]]), {"goal": "largest"}),
        ("plans", (["tea", "coffee"], [["tea"], ["tea"]]), {"goal": "largest"}),
        ("plans", (["tea", "coffee"], []), {"goal": "largest"}),
    ],
    "top_k": [("k", (["a", "b"], k), {"goal": "largest"}) for k in (0, 2, 3)],
    "trees": [
        ("graph", ([("A", "B"), ("C", "D")],)),
        (None, ([("A", "B"), ("B", "C")],)),
        ("directed", (nx.DiGraph(TRIANGLE),)),
        ("guess", (TRIANGLE, [1.0])),
        (None, (TRIANGLE, [1, 2, 3]), {"n_best": 1}),
        ("n_best", (TRIANGLE, [1, 2, 3]), {"n_best": 0}),
    ],
    "paths": [
        ("graph", ([("A", "B"), ("C", "D")], "A", "D")),
        ("target", ([("A", "B"), ("B", "C")], "A", "Cc")),
        ("target", ([("A", "B")], "A", "A")),
        ("graph", ([], "A", "B")),
        ("graph", (7, "A", "B")),
        ("guess", (TRIANGLE, "A", "C", "hours")),
        ("guess", (TRIANGLE, "A", "C", [1, 2])),
    ],
    "assign": [
        ("budget", (PRICES, 1), {"goal": "largest"}),
        ("budget", (PRICES, np.nan), {"goal": "largest"}),
        ("budget", (PRICES, "much"), {"goal": "largest"}),
        ("prices", ([[np.nan], [1]], 4), {"goal": "largest"}),
        ("prices", ([[-1, 1]], 4), {"goal": "largest"}),
        ("prices", ([1, 2], 4), {"goal": "largest"}),
        (None, (PRICES, 2), {"goal": "largest"}),  # one plan only
    ],
    "tours": [
        ("places", (list("ABC"),)),
        ("places", ([str(i) for i in range(15)],)),
        ("guess", (list("ABCD"), np.arange(16.0).reshape(4, 4))),
        ("guess", (list("ABCD"), np.ones((3, 4)))),
        ("guess", (list("ABCD"), [[1, 2], [3]])),
    ],
    "city_hours": [("distances", ("freway",))],
}


@pytest.mark.parametrize(
    ("name", "field", "arguments", "options"),
    [(name, *case, *([{}] if len(case) == 2 else [])) for name, cases in CASES.items() for case in cases],
)
def test_the_argument_to_blame_is_named(name, field, arguments, options):
    with refuses(field, ProblemError):
        getattr(problems, name)(*arguments, **options)
