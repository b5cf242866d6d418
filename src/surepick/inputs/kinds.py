"""How a problem file of each kind becomes a problem: its keys are the arguments of a builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surepick.core.given.probes import ARMS
from surepick.core.oracle_problem import AnyProblem
from surepick.core.plan_sets import plan_set, play_finder, spanned
from surepick.core.probes import Probe
from surepick.core.problem import Problem
from surepick.errors import FileError, ProblemError
from surepick.inputs.keys import KEYS
from surepick.inputs.section import Section
from surepick.problems.candidates import Progress
from surepick.problems.kinds.assignment import assign
from surepick.problems.kinds.choice import choice, top_k
from surepick.problems.kinds.knapsack import knapsack
from surepick.problems.kinds.matching import matchings
from surepick.problems.kinds.path import paths
from surepick.problems.kinds.program import portfolio, production
from surepick.problems.kinds.transport import transport
from surepick.problems.kinds.tree import trees
from surepick.problems.mps import read_program
from surepick.problems.numbers import in_numbers
from surepick.tables import Table

_BUILDERS: dict[str, Callable[..., AnyProblem]] = {
    "table": Problem,
    "knapsack": knapsack,
    "transport": transport,
    "paths": paths,
    "trees": trees,
    "matchings": matchings,
    "choice": choice,
    "top-k": top_k,
    "assign": assign,
    "production": production,
    "portfolio": portfolio,
}
# By kind: the key that may be a table, and the keys with the names of its rows and columns.
_NAMES = {
    "table": ("plans", "plan_names", "arms"),
    "transport": ("guess", "supplier_names", "demander_names"),
    "matchings": ("guess", "row_names", "column_names"),
    "assign": ("prices", "slot_names", "option_names"),
    "production": ("use", None, "variable_names"),
}
_AS_ARGUMENT = {"edges": "graph", "program": "use"}  # keys whose argument has another name
_MEASURED = ("noise", "cost", "low", "high", "known")
AS_KEY = {"graph": "edges", "possible": "guess"}  # arguments that are blamed, and their keys


def build(document: Section, kind: str, progress: Progress | None) -> AnyProblem:
    """Return the problem of a file: its plans, how they are measured, and the guess of the arms."""
    given = {key: document.get(key) for key in KEYS[kind] if key in document.values and key != "noun"}
    for name, key in zip(_NAMES.get(kind, ())[1:], ("row_names", "column_names"), strict=False):
        table = given.get(_NAMES[kind][0])
        if name is not None and isinstance(table, Table):
            given.setdefault(name, list(getattr(table, key)))
    given = {key: value.numbers if isinstance(value, Table) else value for key, value in given.items()}
    if kind == "production":
        if ("program" in given) == ("use" in given):
            raise document.error("give either 'program' or 'use', exactly one of them", "use")
        if "program" in given:
            try:
                given["program"] = read_program(given["program"])
            except (FileError, ProblemError) as error:
                raise document.error(str(error), "program") from None
    if "groups" in given:
        given["groups"] = {name: (one["assets"], one["most"]) for name, one in given["groups"].items()}
    arguments = {_AS_ARGUMENT.get(key, key): value for key, value in given.items()}
    measured = {key: document.get(key) for key in _MEASURED if key in document.values}
    measured["measure"] = _probes(document)
    if measured.get("noise") == "unknown":
        measured["noise"] = None
    if kind in ("table", "choice"):
        if document.get("list_plans") is False:
            raise document.error(f"list_plans = false is not for kind = {kind!r}: it is a list", "list_plans")
        return _of_list(_BUILDERS[kind], arguments, measured)
    list_plans = document.get("list_plans")
    problem = _BUILDERS[kind](**arguments, **measured, list_plans=list_plans, progress=progress)
    if not problem.is_listed and problem.plays:
        plans = plan_set(problem)
        play_finder(plans, spanned(plans))  # which refuses plans that are not of zeros and ones
        return problem.with_about(plausible=None)
    return problem


def _of_list(builder: Callable[..., AnyProblem], arguments: dict[str, Any], measured: Any) -> AnyProblem:
    """Return the problem of plans that are a list: guess, spread and noise may be shares, by arm."""
    guess, spread = arguments.pop("guess", None), arguments.pop("spread", None)
    names = builder(**arguments).arm_names
    centre, width, noise = in_numbers(names, guess, 0.0 if spread is None else spread, measured.get("noise"))
    problem = builder(**arguments, **{**measured, "noise": noise})
    return problem.with_settings(guess=centre, spread=None if spread is None else width)


def _probes(document: Section) -> Any:
    """Return the argument `measure` of a problem from the key of this name; "arms" without it."""
    given = document.get("measure", ARMS)
    if given != ARMS and "plausible" in document.values:
        raise document.error("plausible is about single arms; leave it out with probes", "plausible")
    if isinstance(given, str):
        return given
    found = {}
    for name, entry in given.items():
        reads = [entry[key] for key in ("reads", "mix", "readings") if key in entry]
        if len(reads) != 1:
            raise document.error(
                f"measure.{name} needs one of 'reads', 'mix' and 'readings', got {entry!r}", f"measure.{name}"
            )
        found[name] = Probe(reads[0], entry.get("cost"), entry.get("noise"), entry.get("covariance"))
    return found
