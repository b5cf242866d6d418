"""The kinds of problem files: which keys each has, and how they become a problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from surepick import plugins
from surepick.core.arrays import FloatArray, names_for
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.problem import Problem
from surepick.core.tables import Table
from surepick.errors import FileError
from surepick.problems.candidates import Progress
from surepick.problems.cities import city_hours
from surepick.problems.family import Family
from surepick.problems.files.mps_lp import read_program
from surepick.problems.files.section import Section, is_list_of_numbers
from surepick.problems.kinds.choice import subsets, top_k, top_k_family
from surepick.problems.kinds.knapsack import knapsack, knapsack_family
from surepick.problems.kinds.matching import matching_family, matchings
from surepick.problems.kinds.path import path_family
from surepick.problems.kinds.portfolio import portfolio
from surepick.problems.kinds.production import production
from surepick.problems.kinds.transport import transport
from surepick.problems.kinds.tree import tree_family
from surepick.problems.network import Network, as_network
from surepick.problems.program import as_program, program_family


@dataclass(frozen=True, eq=False)
class Built:
    """A problem and what its file said beyond it."""

    problem: AnyProblem
    guess: npt.ArrayLike | None = None  # (n_arms,) what the means are thought to be
    spread: npt.ArrayLike = 0.0  # how far they may lie from it
    axes: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    pair: str = " -> "  # between the names of a row and a column in the name of their arm


@dataclass(frozen=True)
class Kind:
    """How one kind of file is read: `build` makes the problem of it, from keys that are there and known.

    `starter` is a commented example that runs, for `surepick init`. `needs_list` says why files of this kind
    cannot have `list_plans = false`; it is empty where `build` can do without a list of plans.
    """

    build: Callable[[Section, Progress | None], Built]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    starter: str = ""
    needs_list: str = "its plans are made as a list"


def _table(document: Section, _: Progress | None) -> Built:
    table = document.attachment("plans")
    arm_names, plan_names = document.names("arm_names"), document.names("plan_names")
    if table is not None:
        arm_names = arm_names or list(table.column_names)
        plan_names = plan_names or list(table.row_names)
    problem = Problem(
        document.rows("plans") if table is None else table.numbers,
        arm_names=arm_names,
        plan_names=plan_names,
        minimize=document.flag("minimize"),
        **measuring(document),
    )
    return Built(problem, _optional_guess(document), document.numbers("spread", 0.0))


def _knapsack(document: Section, progress: Progress | None) -> Built:
    guess = document.list_of_numbers("guess")
    spread = document.numbers("spread", 5.0)
    weights: Any = document.list_of_numbers("weights")  # checked to be whole where they are used
    if not lists_plans(document):
        family = knapsack_family(
            weights,
            document.whole("capacity", 0),
            copies=document.numbers("copies"),
            item_names=document.names("item_names"),
        )
        return Built(_all_plans(document, family), guess, spread)
    problem = knapsack(
        weights,
        guess,
        document.whole("capacity", 0),
        spread=spread,
        n_draws=document.whole("n_draws", 100),
        seed=document.whole("seed", 0),
        item_names=document.names("item_names"),
        copies=document.numbers("copies"),
        progress=progress,
        **measuring(document),
    )
    return Built(problem, guess, spread)


def _transport(document: Section, progress: Progress | None) -> Built:
    if ("guess" in document.values) == ("distances" in document.values):
        raise FileError(
            f"{str(document.path)!r}: give the costs either as 'guess' or as 'distances', exactly one of them"
        )
    suppliers, demanders = document.names("supplier_names"), document.names("demander_names")
    if "distances" in document.values:
        table: Table | None = city_hours(document.text("distances"))  # type: ignore[arg-type]
        guess, suppliers, demanders = _pairs(document, table, suppliers, demanders)
    else:
        guess, suppliers, demanders = _pairs(document, document.attachment("guess"), suppliers, demanders)
    supply, demand = document.list_of_numbers("supply"), document.list_of_numbers("demand")
    spread = document.numbers("spread", 1.0)
    problem = transport(
        supply,
        demand,
        guess,
        spread=spread,
        n_draws=document.whole("n_draws", 1000),
        seed=document.whole("seed", 0),
        supplier_names=suppliers,
        demander_names=demanders,
        progress=progress,
        **measuring(document),
    )
    axes = (
        tuple(suppliers or map(str, range(len(supply)))),
        tuple(demanders or map(str, range(len(demand)))),
    )
    return Built(problem, np.ravel(guess), np.ravel(np.broadcast_to(spread, guess.shape)), axes)


def _pairs(
    document: Section, table: Table | None, rows: list[str] | None, columns: list[str] | None
) -> tuple[FloatArray, list[str] | None, list[str] | None]:
    """The guess of every pair, and the names that came with it."""
    if table is None:
        return np.array(document.rows("guess"), dtype=float), rows, columns
    return table.numbers, rows or list(table.row_names), columns or list(table.column_names)


def _matchings(document: Section, progress: Progress | None) -> Built:
    guess, rows, columns = _pairs(
        document, document.attachment("guess"), document.names("row_names"), document.names("column_names")
    )
    spread = document.numbers("spread", 1.0)
    if not lists_plans(document):
        family = matching_family(
            names_for("row", rows, len(guess)),
            names_for("column", columns, guess.shape[1]),
            possible=~np.isnan(guess),
            minimize=document.flag("minimize", default=True),
        )
        return Built(_all_plans(document, family), guess[~np.isnan(guess)], spread, pair=": ")
    problem = matchings(
        guess,
        row_names=rows,
        column_names=columns,
        minimize=document.flag("minimize", default=True),
        progress=progress,
        **_search(document),
        **measuring(document),
    )
    return Built(problem, guess[~np.isnan(guess)], spread, pair=": ")


def _paths(document: Section, progress: Progress | None) -> Built:
    network = _network(document, directed=document.flag("directed"))
    family = path_family(
        network,
        document.text("source"),
        document.text("target"),
        minimize=document.flag("minimize", default=True),
    )
    return _over_edges(document, network, family, progress)


def _trees(document: Section, progress: Progress | None) -> Built:
    network = _network(document, directed=False)
    family = tree_family(network, minimize=document.flag("minimize", default=True))
    return _over_edges(document, network, family, progress)


def _network(document: Section, *, directed: bool) -> Network:
    file, value = document.beside("edges"), document.values["edges"]
    if file is not None:
        return as_network(file, directed=directed)
    if not (isinstance(value, list) and value and all(isinstance(edge, list) for edge in value)):
        raise document.wrong("edges", "a list of [from, to] or [from, to, guess], or the name of a CSV file")
    return as_network(value, directed=directed)


def _over_edges(document: Section, network: Network, family: Family, progress: Progress | None) -> Built:
    """The plans of a network; with `arms`, edges are made of these columns and are no arms themselves."""
    arms = document.names("arms")
    guess: npt.ArrayLike | None
    if arms is not None:
        coefficients = np.column_stack([np.asarray(network.numbers("arms", arm)) for arm in arms])
        family = family.through(coefficients, arms)
        guess = _optional_guess(document)
    else:
        given = document.values.get("guess")
        guess = network.guess(given if isinstance(given, str) else _optional_guess(document))
    spread = document.numbers("spread", 1.0)
    if not lists_plans(document):
        return Built(_all_plans(document, family), guess, spread)
    problem = family.problem(guess, progress=progress, **_search(document), **measuring(document))
    return Built(problem, guess, spread)


def _subsets(document: Section, progress: Progress | None) -> Built:
    arms = document.names("arms") or []
    guess = _optional_guess(document)
    minimize = document.flag("minimize")
    problem: AnyProblem
    if document.one_of("k", "sets") == "sets":
        sets = document.values["sets"]
        if not (isinstance(sets, list) and sets and all(isinstance(one, list) for one in sets)):
            raise document.wrong("sets", "a list of lists of arms")
        names = document.names("plan_names")
        if not lists_plans(document):
            raise FileError(
                f"{str(document.path)!r}: 'sets' is a list of plans; list_plans = false is for 'k'"
            )
        problem = subsets(arms, sets, minimize=minimize, plan_names=names, **measuring(document))
    elif not lists_plans(document):
        problem = _all_plans(document, top_k_family(arms, document.whole("k", 1), minimize=minimize))
    else:
        problem = top_k(arms, document.whole("k", 1), minimize=minimize, **measuring(document))
    return Built(problem, guess, document.numbers("spread", 1.0))


def _production(document: Section, progress: Progress | None) -> Built:
    file = document.beside("program")
    if document.one_of("program", "use") == "program":
        if file is None:
            raise document.wrong("program", "the name of an MPS or LP file")
        _refuse_beside_program(document)
        program = read_program(file)
    else:
        document.refuse_missing(("limits", "guess"))
        program = _matrices(document)
    guess = _optional_guess(document)
    centre = program.objective if guess is None else guess
    spread = document.numbers("spread", 1.0)
    if not lists_plans(document):
        if not program.whole.all():
            raise FileError(
                f"{str(document.path)!r}: list_plans = false is for programs whose variables are all whole "
                f"numbers: this one has amounts, {_NOT_WHOLE}"
            )
        return Built(_all_plans(document, program_family(program)), centre, spread)
    problem = production(
        program,
        guess=centre,
        spread=spread,
        n_draws=document.whole("n_draws", 1000),
        seed=document.whole("seed", 0),
        progress=progress,
        **measuring(document),
    )
    return Built(problem, centre, spread)


def _matrices(document: Section) -> Any:
    table = document.attachment("use")
    names = document.names("variable_names") or (None if table is None else list(table.column_names))
    senses = document.values.get("senses", "<=")
    whole = document.values.get("whole", False)
    if not (isinstance(whole, bool) or (isinstance(whole, list) and all(isinstance(x, bool) for x in whole))):
        raise document.wrong("whole", "true, false, or a list of them")
    return as_program(
        document.rows("use") if table is None else table.numbers,
        document.list_of_numbers("limits"),
        document.list_of_numbers("guess"),
        senses=senses,
        lower=document.numbers("lower", 0.0),
        upper=document.numbers("upper", np.inf),
        whole=whole,
        minimize=document.flag("minimize"),
        variable_names=names,
    )


def _refuse_beside_program(document: Section) -> None:
    clash = ("limits", "senses", "lower", "upper", "whole", "minimize", "variable_names")
    for key in clash:
        if key in document.values:
            raise FileError(f"{str(document.path)!r}: {key!r} comes from the program file; leave it out here")


def _portfolio(document: Section, progress: Progress | None) -> Built:
    guess = document.list_of_numbers("guess")
    spread = document.numbers("spread", 1.0)
    problem = portfolio(
        guess,
        budget=document.number("budget", 1.0),
        lower=document.numbers("lower", 0.0),
        upper=document.numbers("upper", np.inf),
        groups=_groups(document),
        spread=spread,
        n_draws=document.whole("n_draws", 1000),
        seed=document.whole("seed", 0),
        asset_names=document.names("asset_names"),
        progress=progress,
        **measuring(document),
    )
    return Built(problem, guess, spread)


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


def lists_plans(document: Section) -> bool:
    """Whether the plans are to be listed, as they are unless the file says otherwise."""
    return document.flag("list_plans", default=True)


def _all_plans(document: Section, family: Family) -> OracleProblem:
    """The problem of choosing between all plans of the family, none of which is listed."""
    for key in ("n_draws", "n_best", "every", "seed", "plan_names"):
        if key in document.values:
            raise FileError(
                f"{str(document.path)!r}: {key!r} is about a list of plans, and list_plans = false takes all "
                "plans without a list; leave one of the two out"
            )
    return family.oracle_problem(**measuring(document))


def measuring(document: Section) -> dict[str, Any]:
    """The options of every kind: noise scale and costs. Bounds come when the arms are known."""
    unknown = document.values.get("noise_scale") == "unknown"
    noise = None if unknown else document.numbers("noise_scale", 1.0)
    return {"noise_scale": noise, "costs": document.numbers("costs")}


def _search(document: Section) -> dict[str, Any]:
    """The options of kinds that can be listed in order."""
    return {
        "spread": document.numbers("spread", 1.0),
        "n_draws": document.whole("n_draws", 1000),
        "n_best": document.whole("n_best", 1) if "n_best" in document.values else None,
        "every": document.flag("every"),
        "seed": document.whole("seed", 0),
    }


def _optional_guess(document: Section) -> list[float] | None:
    given = document.values.get("guess")
    if given is None:
        return None
    if not is_list_of_numbers(given):
        raise document.wrong("guess", "a list of numbers")
    return list(given)


COMMON_KEYS = ("kind", "title", "truth", "noise_scale", "bounds", "costs", "list_plans")
_DRAWS = ("spread", "n_draws", "seed")
_LISTED = (*_DRAWS, "n_best", "every")
_NOT_WHOLE = "and without a list only plans of whole numbers are decided with a guarantee"
_PROGRAM = ("use", "limits", "senses", "lower", "upper", "whole", "variable_names", "minimize")

KINDS: dict[str, Kind] = {
    "table": Kind(
        _table,
        ("plans",),
        ("arm_names", "plan_names", "minimize", "guess", "spread"),
        needs_list="a table is a list of plans",
    ),
    "knapsack": Kind(
        _knapsack,
        ("weights", "guess", "capacity"),
        (*_DRAWS, "item_names", "copies"),
        needs_list="",
    ),
    "transport": Kind(
        _transport,
        ("supply", "demand"),
        (*_DRAWS, "guess", "distances", "supplier_names", "demander_names", "places"),
        needs_list=f"a transport sends amounts, {_NOT_WHOLE}",
    ),
    "paths": Kind(
        _paths,
        ("edges", "source", "target"),
        (*_LISTED, "guess", "arms", "directed", "minimize", "places"),
        needs_list="",
    ),
    "trees": Kind(_trees, ("edges",), (*_LISTED, "guess", "arms", "minimize", "places"), needs_list=""),
    "matchings": Kind(
        _matchings, ("guess",), (*_LISTED, "row_names", "column_names", "minimize", "places"), needs_list=""
    ),
    "subsets": Kind(
        _subsets, ("arms",), ("k", "sets", "plan_names", "minimize", "guess", "spread"), needs_list=""
    ),
    "production": Kind(
        _production,
        (),
        (*_DRAWS, *_PROGRAM, "program", "guess"),
        needs_list="",
    ),
    "portfolio": Kind(
        _portfolio,
        ("guess",),
        (*_DRAWS, "budget", "lower", "upper", "groups", "asset_names"),
        needs_list=f"a portfolio holds amounts, {_NOT_WHOLE}",
    ),
}


def kind_names() -> list[str]:
    """Every kind of problem file that can be read: this package's own, and those of other packages."""
    return [*KINDS, *(name for name in plugins.offered(plugins.PROBLEM_GROUP) if name not in KINDS)]


def kind_named(name: str) -> Kind:
    """How to read files of this kind, one of `kind_names`.

    >>> kind_named("subsets").required
    ('arms',)
    """
    if name in KINDS:
        return KINDS[name]
    entry = plugins.offered(plugins.PROBLEM_GROUP)[name]
    kind = plugins.load(entry)
    if not isinstance(kind, Kind):
        raise plugins.wrong(entry, f"must be a surepick.problems.Kind, got {kind!r}")
    return kind
