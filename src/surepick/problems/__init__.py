"""Builders: from a person's data to a `Problem`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surepick.problems.assignments import matching_family as matching_family
    from surepick.problems.assignments import matchings as matchings
    from surepick.problems.candidates import Candidates as Candidates
    from surepick.problems.candidates import Instance as Instance
    from surepick.problems.candidates import plans_from_oracle as plans_from_oracle
    from surepick.problems.choices import best_arm as best_arm
    from surepick.problems.choices import subsets as subsets
    from surepick.problems.choices import top_k as top_k
    from surepick.problems.choices import top_k_family as top_k_family
    from surepick.problems.cities import city_hours as city_hours
    from surepick.problems.families import Family as Family
    from surepick.problems.families import FoundProblem as FoundProblem
    from surepick.problems.file_kinds import Built as Built
    from surepick.problems.file_kinds import Kind as Kind
    from surepick.problems.file_kinds import measuring as measuring
    from surepick.problems.file_sections import Section as Section
    from surepick.problems.files import Loaded as Loaded
    from surepick.problems.files import load as load
    from surepick.problems.knapsacks import best_packing as best_packing
    from surepick.problems.knapsacks import knapsack as knapsack
    from surepick.problems.knapsacks import knapsack_family as knapsack_family
    from surepick.problems.knapsacks import knapsack_instance as knapsack_instance
    from surepick.problems.networks import Network as Network
    from surepick.problems.networks import as_network as as_network
    from surepick.problems.portfolios import portfolio as portfolio
    from surepick.problems.portfolios import portfolio_family as portfolio_family
    from surepick.problems.programs import Program as Program
    from surepick.problems.programs import as_program as as_program
    from surepick.problems.programs import production as production
    from surepick.problems.programs import program_family as program_family
    from surepick.problems.programs import read_program as read_program
    from surepick.problems.shortest_paths import path_family as path_family
    from surepick.problems.shortest_paths import paths as paths
    from surepick.problems.spanning_trees import cable_instance as cable_instance
    from surepick.problems.spanning_trees import tree_family as tree_family
    from surepick.problems.spanning_trees import trees as trees
    from surepick.problems.transports import cheapest_transport as cheapest_transport
    from surepick.problems.transports import transport as transport
    from surepick.problems.transports import transport_family as transport_family
    from surepick.problems.transports import transport_instance as transport_instance

# Loaded on first use: POT, SciPy and Numba are slow to import. No module may be called like a name here,
# since importing it would put the module in the function's place.
_HOME = {
    "Built": "file_kinds",
    "Candidates": "candidates",
    "Family": "families",
    "FoundProblem": "families",
    "Instance": "candidates",
    "Kind": "file_kinds",
    "Loaded": "files",
    "Network": "networks",
    "Program": "programs",
    "Section": "file_sections",
    "as_network": "networks",
    "as_program": "programs",
    "best_arm": "choices",
    "best_packing": "knapsacks",
    "cable_instance": "spanning_trees",
    "cheapest_transport": "transports",
    "city_hours": "cities",
    "knapsack": "knapsacks",
    "knapsack_family": "knapsacks",
    "knapsack_instance": "knapsacks",
    "load": "files",
    "matching_family": "assignments",
    "matchings": "assignments",
    "measuring": "file_kinds",
    "path_family": "shortest_paths",
    "paths": "shortest_paths",
    "plans_from_oracle": "candidates",
    "portfolio": "portfolios",
    "portfolio_family": "portfolios",
    "production": "programs",
    "program_family": "programs",
    "read_program": "programs",
    "subsets": "choices",
    "top_k": "choices",
    "top_k_family": "choices",
    "transport": "transports",
    "transport_family": "transports",
    "transport_instance": "transports",
    "tree_family": "spanning_trees",
    "trees": "spanning_trees",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surepick.problems' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"surepick.problems.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
