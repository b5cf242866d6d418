"""surepick: find the best plan with the fewest measurements, and know that it is best."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surepick._version import __version__ as __version__

if TYPE_CHECKING:
    from surepick import policies as policies
    from surepick import policy as policy
    from surepick import problems as problems
    from surepick import simulation as simulation
    from surepick.core.oracle_problem import OracleProblem as OracleProblem
    from surepick.core.polytopes.polytope import Polytope as Polytope
    from surepick.core.probes import Probe as Probe
    from surepick.core.problem import Problem as Problem
    from surepick.errors import SurepickError as SurepickError
    from surepick.inputs.load import load as load
    from surepick.limits.limit import limit as limit
    from surepick.measure.decide import decide as decide
    from surepick.policies import BetGapE as BetGapE
    from surepick.policies import CombGapE as CombGapE
    from surepick.sessions.session import Session as Session
    from surepick.simulation.forecast import forecast as forecast
    from surepick.simulation.outcome import Outcome as Outcome
    from surepick.simulation.simulate import simulate as simulate
    from surepick.views.view import View as View

# By module, loaded on first use, so that `import surepick` and `surepick --help` stay fast.
_OFFERED = {
    "core.oracle_problem": "OracleProblem",
    "core.polytopes.polytope": "Polytope",
    "core.probes": "Probe",
    "core.problem": "Problem",
    "errors": "SurepickError",
    "inputs.load": "load",
    "limits.limit": "limit",
    "measure.decide": "decide",
    "policies": "BetGapE CombGapE",
    "sessions.session": "Session",
    "simulation.forecast": "forecast",
    "simulation.outcome": "Outcome",
    "simulation.simulate": "simulate",
    "views.view": "View",
}
_MODULES = ("policies", "policy", "problems", "simulation")  # where all other names are
_HOME = {name: home for home, names in _OFFERED.items() for name in names.split()}
__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"surepick.{name}")
    if name not in _HOME:
        raise AttributeError(
            f"module 'surepick' has no attribute {name!r}; policies are in surepick.policies, environments "
            "in surepick.simulation, builders in surepick.problems"
        )
    value = getattr(importlib.import_module(f"surepick.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
