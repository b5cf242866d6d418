"""Builders: from a person's data to a `Problem`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surepick.problems.candidates import Candidates as Candidates
    from surepick.problems.candidates import Instance as Instance
    from surepick.problems.candidates import plans_from_oracle as plans_from_oracle
    from surepick.problems.cities import city_hours as city_hours
    from surepick.problems.files import Loaded as Loaded
    from surepick.problems.files import load as load
    from surepick.problems.knapsacks import best_packing as best_packing
    from surepick.problems.knapsacks import knapsack as knapsack
    from surepick.problems.knapsacks import knapsack_instance as knapsack_instance
    from surepick.problems.transports import cheapest_transport as cheapest_transport
    from surepick.problems.transports import transport as transport
    from surepick.problems.transports import transport_instance as transport_instance

# Loaded on first use: POT and Numba are slow to import. No module may be called like a name here, since
# importing it would put the module in the function's place.
_HOME = {
    "Candidates": "candidates",
    "Instance": "candidates",
    "Loaded": "files",
    "best_packing": "knapsacks",
    "cheapest_transport": "transports",
    "city_hours": "cities",
    "knapsack": "knapsacks",
    "knapsack_instance": "knapsacks",
    "load": "files",
    "plans_from_oracle": "candidates",
    "transport": "transports",
    "transport_instance": "transports",
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
