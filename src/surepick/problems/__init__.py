"""Builders of problems by kind: knapsacks, transports, paths, trees, matchings, choices, programs.

A builder (`kinds`) makes a `Family` of plans (`family`), which finds its candidates (`candidates`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surepick.core.past import Past as Past
    from surepick.core.problem import NewArm as NewArm
    from surepick.problems.candidates import Candidates as Candidates
    from surepick.problems.candidates import FoundProblem as FoundProblem
    from surepick.problems.cities import city_hours as city_hours
    from surepick.problems.family import Family as Family
    from surepick.problems.kinds.assignment import assign as assign
    from surepick.problems.kinds.assignment import assign_family as assign_family
    from surepick.problems.kinds.choice import choice as choice
    from surepick.problems.kinds.choice import top_k as top_k
    from surepick.problems.kinds.choice import top_k_family as top_k_family
    from surepick.problems.kinds.knapsack import knapsack as knapsack
    from surepick.problems.kinds.knapsack import knapsack_family as knapsack_family
    from surepick.problems.kinds.knapsack import knapsack_instance as knapsack_instance
    from surepick.problems.kinds.matching import matching_family as matching_family
    from surepick.problems.kinds.matching import matchings as matchings
    from surepick.problems.kinds.path import path_family as path_family
    from surepick.problems.kinds.path import paths as paths
    from surepick.problems.kinds.program import Program as Program
    from surepick.problems.kinds.program import as_program as as_program
    from surepick.problems.kinds.program import portfolio as portfolio
    from surepick.problems.kinds.program import portfolio_family as portfolio_family
    from surepick.problems.kinds.program import production as production
    from surepick.problems.kinds.program import program_family as program_family
    from surepick.problems.kinds.tour import tour_family as tour_family
    from surepick.problems.kinds.tour import tours as tours
    from surepick.problems.kinds.transport import transport as transport
    from surepick.problems.kinds.transport import transport_family as transport_family
    from surepick.problems.kinds.transport import transport_instance as transport_instance
    from surepick.problems.kinds.transport import whole_transport as whole_transport
    from surepick.problems.kinds.tree import tree_family as tree_family
    from surepick.problems.kinds.tree import trees as trees
    from surepick.problems.network import Network as Network
    from surepick.problems.network import as_network as as_network
    from surepick.problems.program_files import read_program as read_program
    from surepick.problems.truth import Truth as Truth

# By module, loaded on first use: POT, SciPy and Numba are slow to import. No module may be called like a name
# here, since importing it would put the module in the function's place.
_NAMES = {
    "candidates": "Candidates FoundProblem",
    "cities": "city_hours",
    "family": "Family",
    "kinds.assignment": "assign assign_family",
    "kinds.choice": "choice top_k top_k_family",
    "kinds.knapsack": "knapsack knapsack_family knapsack_instance",
    "kinds.matching": "matching_family matchings",
    "kinds.path": "path_family paths",
    "kinds.program": "Program as_program portfolio portfolio_family production program_family",
    "kinds.transport": "transport transport_family transport_instance whole_transport",
    "kinds.tour": "tour_family tours",
    "kinds.tree": "tree_family trees",
    "network": "Network as_network",
    "program_files": "read_program",
    "truth": "Truth",
}
_HOME = {name: f"problems.{module}" for module, names in _NAMES.items() for name in names.split()}
_HOME |= {"NewArm": "core.problem", "Past": "core.past"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surepick.problems' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"surepick.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
