"""surepick: find the best plan with the fewest measurements, and know that it is best."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from surepick._version import __version__ as __version__

if TYPE_CHECKING:
    from surepick import policies as policies
    from surepick import problems as problems
    from surepick import simulation as simulation
    from surepick.core.oracle_problem import OracleProblem as OracleProblem
    from surepick.core.past import Past as Past
    from surepick.core.policy import Policy as Policy
    from surepick.core.polytope import Polytope as Polytope
    from surepick.core.probes import Probe as Probe
    from surepick.core.problem import NewArm as NewArm
    from surepick.core.problem import Problem as Problem
    from surepick.core.run import Measure as Measure
    from surepick.core.run import Run as Run
    from surepick.core.run import Standing as Standing
    from surepick.core.run import Stop as Stop
    from surepick.errors import SurepickError as SurepickError
    from surepick.inputs.load import load as load
    from surepick.limits.limit import limit as limit
    from surepick.limits.value import Limit as Limit
    from surepick.measure.decide import decide as decide
    from surepick.policies import CLUCB as CLUCB
    from surepick.policies import RAGE as RAGE
    from surepick.policies import BetGapE as BetGapE
    from surepick.policies import Challenge as Challenge
    from surepick.policies import CombGapE as CombGapE
    from surepick.policies import GenTSExplore as GenTSExplore
    from surepick.policies import LinGapE as LinGapE
    from surepick.policies import Peace as Peace
    from surepick.policies import Pick as Pick
    from surepick.policies import TSExplore as TSExplore
    from surepick.policies import Uniform as Uniform
    from surepick.sessions.session import Session as Session
    from surepick.simulation.environments import Bernoulli as Bernoulli
    from surepick.simulation.environments import Gaussian as Gaussian
    from surepick.simulation.environments import Replay as Replay
    from surepick.simulation.environments import UniformNoise as UniformNoise
    from surepick.simulation.forecast import Forecast as Forecast
    from surepick.simulation.forecast import forecast as forecast
    from surepick.simulation.outcome import Outcome as Outcome
    from surepick.simulation.outcome import State as State
    from surepick.simulation.simulate import simulate as simulate
    from surepick.views.view import View as View

# Loaded on first use, so that `import surepick` and `surepick --help` stay fast.
_OFFERED = {
    "core.oracle_problem": "OracleProblem",
    "core.past": "Past",
    "core.policy": "Policy",
    "core.run": "Measure Run Standing Stop",
    "core.polytope": "Polytope",
    "core.probes": "Probe",
    "core.problem": "NewArm Problem",
    "errors": "SurepickError",
    "inputs.load": "load",
    "measure.decide": "decide",
    "simulation.forecast": "Forecast forecast",
    "limits.limit": "limit",
    "limits.value": "Limit",
    "policies": "BetGapE CLUCB Challenge CombGapE GenTSExplore LinGapE Peace Pick RAGE TSExplore Uniform",
    "sessions.session": "Session",
    "simulation.environments": "Bernoulli Gaussian Replay UniformNoise",
    "simulation.outcome": "Outcome State",
    "simulation.simulate": "simulate",
    "views.view": "View",
    "": "policies problems simulation",
}
_HOME = {name: home for home, names in _OFFERED.items() for name in names.split()}

# What `dir` and the reference list: the page of everyday names; `policies`, `problems` and `simulation` have
# the rest, some of which are found here too.
__all__ = [
    *("BetGapE", "CombGapE", "OracleProblem", "Outcome", "Polytope", "Probe", "Problem", "Session"),
    *("SurepickError", "View", "__version__", "decide", "forecast", "limit", "load", "policies", "problems"),
    *("simulate", "simulation"),
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surepick' has no attribute {name!r}")
    home = _HOME[name]
    if not home:
        return importlib.import_module(f"surepick.{name}")
    value = getattr(importlib.import_module(f"surepick.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
