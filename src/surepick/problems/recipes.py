"""Families from their recipes: what is kept in a file of a set of plans that cannot be listed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from surepick.errors import FileError, suggestion
from surepick.problems.family import Family

# by the kind in the recipe: the function that takes the rest of it as arguments
_MAKERS = {
    "knapsack": "kinds.knapsack.knapsack_family",
    "matchings": "kinds.matching.matching_family",
    "paths": "kinds.path.path_family",
    "program": "program.program_family",
    "top k": "kinds.choice.top_k_family",
    "transport": "kinds.transport.transport_family",
    "trees": "kinds.tree.tree_family",
}


def family_from(recipe: Mapping[str, Any]) -> Family:
    """The family that this recipe makes, equal to the one that it came from.

    >>> from surepick.problems import top_k_family
    >>> family_from(top_k_family(["tea", "coffee", "cocoa"], 2).recipe()).best([1.0, 3.0, 2.0]).tolist()
    [0.0, 1.0, 1.0]
    """
    arguments = dict(recipe)
    kind, through = arguments.pop("kind"), arguments.pop("through", None)
    if kind not in _MAKERS:
        raise FileError(
            f"this surepick knows no family of plans of kind {kind!r} ({suggestion(kind, _MAKERS)}); upgrade "
            "surepick to read it"
        )
    module, _, name = _MAKERS[kind].rpartition(".")
    family: Family = getattr(importlib.import_module(f"surepick.problems.{module}"), name)(**arguments)
    return family if through is None else family.through(**through)
