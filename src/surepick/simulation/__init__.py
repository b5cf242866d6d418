"""Rehearsal: one loop that runs any policy in any environment, and what comes of it.

It imports core, kernels, policies and problems, and knows no sessions.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surepick.simulation.environments import Bernoulli as Bernoulli
    from surepick.simulation.environments import Gaussian as Gaussian
    from surepick.simulation.environments import Replay as Replay
    from surepick.simulation.environments import UniformNoise as UniformNoise
    from surepick.simulation.forecast import Forecast as Forecast
    from surepick.simulation.outcome import State as State

_HOME = {
    **dict.fromkeys(("Bernoulli", "Gaussian", "Replay", "UniformNoise"), "environments"),
    "Forecast": "forecast",
    "State": "outcome",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surepick.simulation' has no attribute {name!r}")
    return getattr(importlib.import_module(f"surepick.simulation.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
