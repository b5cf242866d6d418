"""Problem files: TOML or JSON that says which kind of problem it is and gives its data, or a spreadsheet.

`docs/reference/problem-files.md` describes every key.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.about import ORDERS, Range, plausible_range
from surepick.core.arrays import FloatArray, per_arm, read_only, scale_and_bounds
from surepick.core.measurable import NOISE_KINDS, SUB_GAUSSIAN_NOISE
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.errors import FileError, ProblemError
from surepick.inputs.kinds import (
    COMMON_KEYS,
    KINDS,
    known_means,
    lists_plans,
    probed,
)
from surepick.inputs.section import Section, is_list_of_numbers, is_number, read_text
from surepick.inputs.shares import with_shares
from surepick.inputs.sheet import SUFFIXES, read_sheet
from surepick.problems.candidates import Progress
from surepick.problems.truth import Truth
from surepick.tables import Table


def load(path: str | Path, *, sheet: str | None = None) -> AnyProblem:
    """Return the problem in a spreadsheet (.xlsx, .csv), TOML or JSON file; `sheet` names one of several.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "ways.csv"
    >>> _ = file.write_text("way,bus,walk\\ngoal,smallest\\nby bus,1,2\\non foot,,7\\n")
    >>> load(file)
    Problem(2 plans, 2 arms, noise=unknown, smallest)
    """
    return read_problem(path, sheet=sheet).problem


def read_problem(
    path: str | Path,
    *,
    sheet: str | None = None,
    progress: Progress | None = None,
    confined: bool = False,
) -> Truth:
    """Return the problem that a TOML or JSON file describes, or a spreadsheet of plans (.xlsx, .csv).

    With `confined` it may name no files but those in its own folder: for files that another person sent.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "routes.toml"
    >>> _ = file.write_text('kind = "table"\\ngoal = "largest"\\nplans = {A = "road", B = "rail"}')
    >>> read_problem(file).problem.arm_names
    ('road', 'rail')
    """
    path = Path(path)
    try:
        return _load(path, sheet, progress, confined)
    except (ArithmeticError, RecursionError) as error:
        why = "its values are nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise FileError(f"{str(path)!r} is no problem file: {why}; use plain lists of numbers") from None


def _load(path: Path, sheet: str | None, progress: Progress | None, confined: bool) -> Truth:
    document = Section(path, "", _parse(path, sheet), confined)
    name = document.text("kind", options=list(KINDS))
    kind = KINDS[name]
    document.refuse_unknown({*COMMON_KEYS, *kind.required, *kind.optional})
    document.refuse_missing(kind.required)
    document = with_shares(document)
    if kind.needs_list and not lists_plans(document):
        raise document.error(
            f"list_plans = false is not for kind = {name!r}: {kind.needs_list}", "list_plans"
        )
    truth = document.section("truth", keys=("means",), optional=("noise",))
    try:
        built = kind.build(document, progress)
        problem = built.problem
        if problem.mean_bounds is None and (known := known_means(document)):
            problem = problem.with_settings(known=known)
        problem = probed(document, problem)
        problem = _within_bounds(document, problem).with_settings(
            noise_kind=document.text("noise_kind", SUB_GAUSSIAN_NOISE, options=NOISE_KINDS),
            setup_cost=document.number("setup_cost", 0.0),
        )
        means = None if truth is None else _true_means(truth, built, problem)
    except ProblemError as error:
        raise document.error(str(error), error.field) from error
    guess, spread = built.guess, built.spread
    title, scale = document.text("title", path.stem), None if truth is None else _true_scale(truth, problem)
    problem = problem.with_about(
        title=document.text("title", ""),  # a session without one is called by its name
        unit=document.text("unit", ""),
        plausible=_plausible(document, problem, guess, spread),
        order=_order(document),
        noun=document.text("noun", ""),
    )
    past = _past(problem, guess, spread) if "spread" in document.values else None
    if guess is not None:
        width = spread if "spread" in document.values else None
        problem = problem.with_settings(guess=guess, spread=width)
    settings = _settings(document, name)
    return replace(
        built,
        problem=problem,
        means=means,
        noise_scale=scale,
        title=title,
        kind=name,
        past=past,
        settings=settings,
    )


def _settings(document: Section, kind: str) -> dict[str, Any]:
    """Return the file's settings for sessions: delta, epsilon, budget, seed, lease, policy."""
    found: dict[str, Any] = {}
    for key in ("delta", "epsilon"):
        if key in document.values:
            found[key] = document.number(key, 0.0)
    if "budget" in document.values and kind not in ("portfolio", "assign"):
        found["budget"] = document.whole("budget", 0)
    part = document.section("session", keys=(), optional=("seed", "lease", "policy"))
    if part is None:
        return found
    if "seed" in part.values:
        found["seed"] = part.whole("seed", 0)
    if "lease" in part.values:
        found["lease"] = part.number("lease", 0.0)
    return {**found, "policy": part.text("policy")} if "policy" in part.values else found


def _order(document: Section) -> str:
    order = document.text("order", "")
    if order and order not in ORDERS:
        raise document.error(f"order is {' or '.join(map(repr, ORDERS))}, got {order!r}", "order")
    return order


def _past(problem: AnyProblem, guess: FloatArray | None, spread: FloatArray | None) -> Past | None:
    """Return the guess as prior data, if the file says how far off it may be and the noise is stated.

    A spread of 0 does not say so. The noise converts a spread into a number of measurements.
    """
    if guess is None or spread is None or not spread.any():
        return None
    if problem.noise_scale is None or not problem.arms_alone:
        return None
    return Past.from_guess(problem, guess, np.where(spread > 0, spread, np.inf))


def _within_bounds(document: Section, problem: AnyProblem) -> AnyProblem:
    """The problem with the bounds that the file gives, if it does."""
    low, high = document.numbers("low"), document.numbers("high")
    if low is None and high is None:
        return problem
    unknown = document.values.get("noise", "unknown") == "unknown"
    scale = None if unknown else problem.noise_scale
    return problem.with_noise(*scale_and_bounds(scale, low, high, problem.arm_names))


def _ranges(document: Section, key: str, arm_names: tuple[str, ...]) -> Any:
    """Return the file's [low, high] under this key: one pair, or one per arm; None without the key."""
    given = document.values.get(key)
    if isinstance(given, dict):
        part = Section(document.path, f"{key}.", given)
        given = part.in_order(arm_names, is_list_of_numbers, "two numbers, [low, high]")
    pairs = isinstance(given, list) and all(map(is_list_of_numbers, given))
    if given is not None and not (is_list_of_numbers(given) or pairs):
        raise document.wrong(key, "[low, high], a list with one such pair per arm, or a table of them")
    return given


def _plausible(
    document: Section, problem: AnyProblem, guess: FloatArray | None, spread: FloatArray | None
) -> tuple[Range, ...] | None:
    """Return the plausible values: as given, or twice the spread and four noise scales of a guess."""
    given = _ranges(document, "plausible", problem.arm_names)
    if given is not None:
        pairs = np.broadcast_to(np.array(given, dtype=float), (problem.n_arms, 2))
        if not (pairs[:, 0] < pairs[:, 1]).all():
            raise document.wrong("plausible", "pairs [low, high] with low below high")
        return tuple((low, high) for low, high in pairs.tolist())
    if guess is None or spread is None or problem.probes is not None:
        return None
    return plausible_range(guess, spread, problem.noise_scale)


def _true_scale(truth: Section, problem: AnyProblem) -> FloatArray | None:
    """The noise that simulations draw with, where it is not the problem's own."""
    if "noise" not in truth.values:
        return None
    return per_arm("truth.noise", truth.numbers("noise"), problem.arm_names)


def _true_means(truth: Section, built: Truth, problem: AnyProblem) -> FloatArray:
    with truth.blaming("means"):
        means: FloatArray = read_only(problem.as_means(_means(truth, built)))
    return means


def _means(truth: Section, built: Truth) -> FloatArray | list[float]:
    """The true means in the order of the arms, from any of the forms a file may give them in."""
    given = truth.values["means"]
    if given == "guess":
        if built.guess is None:
            raise truth.wrong("means", "numbers, since this kind of problem has no guess")
        return built.guess
    table = truth.attachment("means")
    if table is not None:
        given = _by_arm(table, built.pair)
    if isinstance(given, dict):
        part = Section(truth.path, f"{truth.prefix}means.", given)
        return [float(mean) for mean in part.in_order(built.problem.arm_names, is_number, "a number")]
    if is_list_of_numbers(given):
        return list(given)
    return [mean for row in truth.rows("means") for mean in row]


def _by_arm(table: Table, pair: str) -> dict[str, float]:
    """The means of a CSV file by arm: a row per arm, or a table of pairs for arms named like both."""
    if len(table.column_names) == 1:
        return dict(zip(table.row_names, table.numbers[:, 0].tolist(), strict=True))
    return {
        f"{row}{pair}{column}": float(table.numbers[i, j])
        for i, row in enumerate(table.row_names)
        for j, column in enumerate(table.column_names)
        if not np.isnan(table.numbers[i, j])
    }


def _parse(path: Path, sheet: str | None) -> dict[str, Any]:
    """The document in the file, whichever language it is written in, or that a spreadsheet stands for."""
    parsers: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": _parse_json}
    if path.suffix.lower() in SUFFIXES:
        return read_sheet(path, sheet)
    if path.suffix.lower() not in parsers:
        hint = "; save it as .xlsx or .csv" if path.suffix.lower() in (".xls", ".ods", ".numbers") else ""
        if path.suffix.lower() in (".mps", ".lp"):
            hint = f'; write a .toml file with kind = "production" and program = "{path.name}"'
        raise FileError(
            f"a problem file ends in .toml, .json, .xlsx or .csv, got {str(path)!r}{hint}", field="path"
        )
    text = read_text(path)
    try:
        document = parsers[path.suffix.lower()](text)
    except ValueError as error:  # also for a number of thousands of digits
        raise FileError(f"{str(path)!r} is not valid {path.suffix[1:].upper()}: {error}") from None
    if not isinstance(document, dict):
        raise FileError(f"{str(path)!r} must hold keys and values, got a {type(document).__name__}")
    return document


def _parse_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_unique_keys)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A dictionary, refusing the repeated keys that JSON would silently drop; TOML refuses them itself."""
    known = dict(pairs)
    if len(known) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise json.JSONDecodeError(f"the key {twice!r} appears more than once", "", 0)
    return known
