"""The kinds of problem files: which keys each has, and how they become a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import FloatArray, Goal, labels_of, names_for
from surepick.core.frames import are_expressions
from surepick.core.given_probes import ARMS, PLAN_ARMS
from surepick.core.oracle_problem import OracleProblem
from surepick.core.plan_sets import plan_set, play_finder, spanned
from surepick.core.problem import Problem
from surepick.errors import blaming
from surepick.inputs.keys import COMMON, KEYS, required
from surepick.inputs.probes import probes_in
from surepick.inputs.section import Section, is_number
from surepick.problems.candidates import Progress
from surepick.problems.cities import city_hours
from surepick.problems.family import Family, asks_for_list
from surepick.problems.kinds.assignment import assign_family
from surepick.problems.kinds.choice import choice, top_k_family
from surepick.problems.kinds.knapsack import PAPER_DRAWS, PAPER_SPREAD, knapsack_family
from surepick.problems.kinds.matching import matching_family
from surepick.problems.kinds.path import path_family
from surepick.problems.kinds.program import Program, as_program, portfolio_family, program_family
from surepick.problems.kinds.transport import transport
from surepick.problems.kinds.tree import tree_family
from surepick.problems.network import Network, as_network
from surepick.problems.program_files import read_program
from surepick.problems.truth import Truth
from surepick.tables import Table

Build: TypeAlias = Callable[[Section, Progress | None], Truth]


@dataclass(frozen=True)
class Kind:
    """How one kind of file is read: `build` makes the problem of it, from keys that are there and known.

    `needs_list` says why files of this kind cannot have `list_plans = false`; it is empty where `build` can
    do without a list of plans.
    """

    build: Build
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    needs_list: str = "its plans are made as a list"


def _table(document: Section, _: Progress | None) -> Truth:
    table = document.attachment("plans", empty=0.0)
    arm_names, plan_names = document.names("arms"), document.names("plan_names")
    if table is not None:
        arm_names = arm_names or list(table.column_names)
        plan_names = plan_names or list(table.row_names)
    given = document.values["plans"]
    sums = are_expressions(given)
    problem = Problem(
        given if sums else document.rows("plans") if table is None else table.numbers,
        arms=arm_names,
        plan_names=plan_names,
        goal=_goal(document),
        measure=probes_in(document),
        known=known_means(document),
        **measuring(document),
    )
    return Truth.guessed(problem, _optional_guess(document), document.numbers("spread", 0.0))


def _knapsack(document: Section, progress: Progress | None) -> Truth:
    weights: Any = document.list_of_numbers("weights")  # checked to be whole where they are used
    copies, names = document.numbers("copies"), document.names("item_names")
    family = knapsack_family(weights, document.whole("capacity", 0), copies=copies, item_names=names)
    options = {"n_draws": PAPER_DRAWS, **_search(document, progress, spread=PAPER_SPREAD)}
    return _of_family(document, family, document.list_of_numbers("guess"), options)


def _transport(document: Section, progress: Progress | None) -> Truth:
    if document.one_of("guess", "distances") == "distances":
        table: Table | None = city_hours(document.text("distances"))  # type: ignore[arg-type]
    else:
        table = document.attachment("guess")
    guess, suppliers, demanders = _pairs(document, table, "supplier_names", "demander_names")
    if _goal(document, "smallest") != "smallest":
        raise document.error("a transport has the goal smallest; write costs, not gains", "goal")
    supply, demand = document.list_of_numbers("supply"), document.list_of_numbers("demand")
    options = _search(document, progress)
    problem = transport(
        supply,
        demand,
        guess,
        supplier_names=suppliers,
        demander_names=demanders,
        list_plans=_list_plans(document),
        **options,
    )
    spread = np.ravel(np.broadcast_to(options["spread"], guess.shape))
    axes = (
        tuple(suppliers or map(str, range(len(supply)))),
        tuple(demanders or map(str, range(len(demand)))),
    )
    return Truth.guessed(problem, np.ravel(guess), spread, axes=axes)


def _pairs(
    document: Section, table: Table | None, rows: str, columns: str
) -> tuple[FloatArray, list[str] | None, list[str] | None]:
    """The guess of every pair, and the names of rows and columns: from these keys, or from the table."""
    row_names, column_names = document.names(rows), document.names(columns)
    if table is None:
        return np.array(document.rows("guess"), dtype=float), row_names, column_names
    return table.numbers, row_names or list(table.row_names), column_names or list(table.column_names)


def _matchings(document: Section, progress: Progress | None) -> Truth:
    guess, rows, columns = _pairs(
        document, document.attachment("guess", empty=np.nan), "row_names", "column_names"
    )
    possible = ~np.isnan(guess)
    with document.blaming("guess"):
        family = matching_family(
            names_for("row", rows, len(guess)),
            names_for("column", columns, guess.shape[1]),
            possible=possible,
            goal=_goal(document, "smallest"),
        )
    return replace(_of_family(document, family, guess[possible], _search(document, progress)), pair=": ")


def _paths(document: Section, progress: Progress | None) -> Truth:
    stated = document.flag("directed") if "directed" in document.values else None
    source, target = document.text("source"), document.text("target")
    with document.blaming("edges"):
        network = _network(document, directed=stated)
        family = path_family(network, source, target, goal=_goal(document, "smallest"))
    return _over_edges(document, network, family, progress)


def _trees(document: Section, progress: Progress | None) -> Truth:
    with document.blaming("edges"):
        network = _network(document, directed=False)
        family = tree_family(network, goal=_goal(document, "smallest"))
    return _over_edges(document, network, family, progress)


def _network(document: Section, *, directed: bool | None) -> Network:
    file, value = document.beside("edges"), document.values["edges"]
    if file is None and not (
        isinstance(value, list) and value and all(isinstance(edge, list) for edge in value)
    ):
        raise document.wrong("edges", "a list of [from, to] or [from, to, guess], or the name of a CSV file")
    return as_network(value if file is None else file, directed=directed)


def _over_edges(document: Section, network: Network, family: Family, progress: Progress | None) -> Truth:
    """The plans of a network; with `arms`, edges are made of these columns and are no arms themselves."""
    arms, named = document.names("arms"), document.values.get("guess")
    guess: npt.ArrayLike | None
    if arms is not None:
        coefficients = np.column_stack([np.asarray(network.numbers("arms", arm)) for arm in arms])
        family, guess = family.through(coefficients, arms), _optional_guess(document)
    else:
        guess = network.guess(named if isinstance(named, str) else _optional_guess(document))
    return _of_family(document, family, guess, _search(document, progress))


def _choice(document: Section, _: Progress | None) -> Truth:
    sets = document.values.get("sets")
    if sets is not None and not (isinstance(sets, list) and sets and all(isinstance(s, list) for s in sets)):
        raise document.wrong("sets", "a list of lists of arms")
    problem = choice(
        document.names("arms") or [],
        sets,
        goal=_goal(document),
        plan_names=document.names("plan_names"),
        **measuring(document),
    )
    return Truth.guessed(problem, _optional_guess(document), document.numbers("spread", 1.0))


def _top_k(document: Section, progress: Progress | None) -> Truth:
    family = top_k_family(document.names("arms") or [], document.whole("k", 1), goal=_goal(document))
    return _of_family(document, family, _optional_guess(document), _search(document, progress))


def _assign(document: Section, progress: Progress | None) -> Truth:
    table, prices = document.attachment("prices", empty=np.nan), document.values["prices"]
    slots, names = document.names("slot_names"), document.names("option_names")
    if table is not None:
        prices, slots, names = (
            table.numbers,
            slots or list(table.row_names),
            names or list(table.column_names),
        )
    elif isinstance(prices, dict):
        if not all(isinstance(own, dict) and all(map(is_number, own.values())) for own in prices.values()):
            raise document.wrong("prices", "a table of prices by option for every slot")
    else:
        prices = document.rows("prices")
    budget = document.number("budget", 0.0)
    family = assign_family(prices, budget, goal=_goal(document), slot_names=slots, option_names=names)
    return _of_family(document, family, _optional_guess(document), _search(document, progress))


def _production(document: Section, progress: Progress | None) -> Truth:
    file = document.beside("program")
    if document.one_of("program", "use") == "program":
        if file is None:
            raise document.wrong("program", "the name of an MPS or LP file")
        for key in ("limits", "senses", "lower", "upper", "whole", "variable_names", "goal"):
            if key in document.values:
                raise document.error(f"{key!r} comes from the program file; leave it out here", key)
        with blaming("program"):
            program = read_program(file)
    else:
        document.refuse_missing(("limits", "guess"))
        program = _matrices(document)
    guess = _optional_guess(document)
    centre = program.objective if guess is None else guess
    if not lists_plans(document) and program.whole.any() and not program.whole.all():
        raise document.error(
            "list_plans = false is for programs whose variables are all whole numbers or all amounts: this "
            "one has both, and without a list no policy decides between such plans with a guarantee",
            "list_plans",
        )
    return _of_family(document, program_family(program), centre, _search(document, progress))


def _matrices(document: Section) -> Program:
    table = document.attachment("use")
    names = document.names("variable_names") or (None if table is None else list(table.column_names))
    whole = document.values.get("whole", False)
    if not (isinstance(whole, bool) or (isinstance(whole, list) and all(isinstance(x, bool) for x in whole))):
        raise document.wrong("whole", "true, false, or a list of them")
    return as_program(
        document.rows("use") if table is None else table.numbers,
        document.list_of_numbers("limits"),
        document.list_of_numbers("guess"),
        senses=document.values.get("senses", "<="),
        lower=document.numbers("lower", 0.0),
        upper=document.numbers("upper", np.inf),
        whole=whole,
        goal=_goal(document),
        variable_names=names,
    )


def _portfolio(document: Section, progress: Progress | None) -> Truth:
    guess = document.list_of_numbers("guess")
    family = portfolio_family(
        names_for("asset", document.names("asset_names") or labels_of(guess), len(guess)),
        budget=document.number("budget", 1.0),
        lower=document.numbers("lower", 0.0),
        upper=document.numbers("upper", np.inf),
        groups=_groups(document),
    )
    return _of_family(document, family, guess, _search(document, progress))


def _groups(document: Section) -> dict[str, tuple[list[str], float]]:
    groups = document.values.get("groups", {})
    if not isinstance(groups, dict):
        raise document.wrong("groups", "a table of groups, each with the keys 'assets' and 'most'")
    found = {}
    for name, group in groups.items():
        if not isinstance(group, dict):
            raise Section(document.path, "groups.", groups).wrong(name, "a table with 'assets' and 'most'")
        part = Section(document.path, f"groups.{name}.", group)
        part.refuse_unknown({"assets", "most"})
        part.refuse_missing(("assets", "most"))
        found[name] = (part.names("assets") or [], part.number("most", 0.0))
    return found


def _goal(document: Section, natural: Goal = "largest") -> Goal:
    """Return the goal in the file, or the natural one of its kind."""
    said = document.text("goal", natural, options=("smallest", "largest"))
    return "smallest" if said == "smallest" else "largest"


def lists_plans(document: Section) -> bool:
    """Return whether the file allows that plans are listed."""
    return document.flag("list_plans", default=True)


def _list_plans(document: Section) -> bool | None:
    """Return whether the file asks for a list of plans; None if it says nothing."""
    return lists_plans(document) if "list_plans" in document.values else None


def measuring(document: Section) -> dict[str, Any]:
    """The options of every kind: noise scale and costs. Bounds come when the arms are known."""
    if probes_in(document) != ARMS and document.values.get("kind") != "table":
        return {"noise": None, "cost": None}  # those of arms; `probed` has those of probes
    return of_readings(document)


def known_means(document: Section) -> dict[str, Any]:
    """Return what the file knows of means, by arm: a number, or [low, high]."""
    given = document.values.get("known", {})
    if not isinstance(given, dict):
        raise document.wrong("known", "a table of means by arm, such as {toll = 3, tunnel = [11, 14]}")
    return given


def of_readings(document: Section) -> dict[str, Any]:
    """Noise scale and costs as the file gives them: of arms, or of readings and probes where it has some."""
    unknown = document.values.get("noise") == "unknown"
    noise = None if unknown else document.numbers("noise")
    return {"noise": noise, "cost": document.numbers("cost")}


def probed(document: Section, problem: Problem | OracleProblem) -> Problem | OracleProblem:
    """The problem measured by the file's probes, where it has some and its kind has not seen to it."""
    probes = probes_in(document)
    if probes == ARMS or problem.probes is not None:
        return problem
    if not problem.is_listed:
        return _played(document, problem, probes)
    return problem.with_probes(probes, **of_readings(document))


def _played(document: Section, problem: OracleProblem, probes: Any) -> OracleProblem:
    """The problem of plans that no list has, measured by playing them."""
    if probes != PLAN_ARMS:
        raise document.error(
            f"plans that are in no list can be played, with measure = {PLAN_ARMS!r}; for other "
            "probes ask for a list of candidates with n_draws or n_best",
            "measure",
        )
    played = problem.with_probes(probes, **of_readings(document))
    plans = plan_set(played)
    play_finder(plans, spanned(plans)[0])  # which refuses plans that are not of zeros and ones
    return played


def _of_family(
    document: Section, family: Family, guess: npt.ArrayLike | None, options: dict[str, Any]
) -> Truth:
    """The problem of all plans of the family, or of its candidates where the file asks for a list of them."""
    asked = asks_for_list(document.values)
    problem = family.choose(guess, options, list_plans=_list_plans(document), asked=asked)
    return Truth.guessed(problem, guess, options["spread"])


def _search(document: Section, progress: Progress | None, *, spread: float = 1.0) -> dict[str, Any]:
    """How candidates are searched and measured: the options of `Family.problem` that the file gives."""
    options = {"spread": _spread(document, spread), "progress": progress, **measuring(document)}
    for key in ("n_draws", "seed", "n_best"):
        if key in document.values:
            options[key] = document.whole(key, 1)
    return {**options, "every": document.flag("every")} if "every" in document.values else options


def _spread(document: Section, default: float) -> Any:
    """Return how far off the guess may be: one number, one per arm, or a table like the guess."""
    given = document.values.get("spread")
    if isinstance(given, list) and given and isinstance(given[0], list):
        return np.array(document.rows("spread"), dtype=float)
    table = document.attachment("spread") if isinstance(given, str) else None
    if table is not None and len(table.column_names) > 1:
        return table.numbers
    return document.numbers("spread", default)


def _optional_guess(document: Section) -> Any:
    return document.list_of_numbers("guess") if "guess" in document.values else None


COMMON_KEYS = tuple(COMMON)
_BUILDS: dict[str, Build] = {
    "table": _table,
    "knapsack": _knapsack,
    "transport": _transport,
    "paths": _paths,
    "trees": _trees,
    "matchings": _matchings,
    "choice": _choice,
    "top-k": _top_k,
    "assign": _assign,
    "production": _production,
    "portfolio": _portfolio,
}
KINDS: dict[str, Kind] = {
    name: Kind(
        build,
        required(name),
        tuple(key for key in KEYS[name] if key not in required(name)),
        needs_list="its plans are a list" if name in ("table", "choice") else "",
    )
    for name, build in _BUILDS.items()
}
