"""Problem files: TOML or JSON that says which kind of problem it is and gives its data, or a spreadsheet.

`docs/reference/problem-files.md` describes every key.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.about import plausible_pairs
from surepick.core.arrays import read_only
from surepick.core.given.numbers import per_arm
from surepick.core.given.plans import read_expressions
from surepick.core.oracle_problem import AnyProblem
from surepick.core.prior_data import PriorData
from surepick.errors import FileError, ProblemError, suggestion
from surepick.inputs.keys import COMMON, KEYS, LIMIT, SESSION, TRUTH
from surepick.inputs.kinds import AS_KEY, build
from surepick.inputs.section import Section, by_name
from surepick.inputs.sheet import SUFFIXES, read_sheet
from surepick.problems.candidates import Progress
from surepick.problems.mps import read_text
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
    values = _parse(path, sheet)
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in KEYS:
        said = "the key 'kind' is missing" if kind is None else f"unknown kind {kind!r}"
        raise FileError(f"{str(path)!r}: {said}; {suggestion(str(kind), KEYS)}", field="kind")
    document = Section(path, values, {**COMMON, **KEYS[kind]}, confined=confined)
    truth, part = document.part("truth", TRUTH), document.part("session", SESSION)
    try:
        problem = build(document, kind, progress)
        more = {key: document.get(key) for key in ("noise_kind", "setup_cost") if key in values}
        problem = problem.with_settings(**more)
        words: dict[str, Any] = {
            key: document.get(key) for key in ("title", "unit", "order", "noun") if key in values
        }
        if "plausible" in values:
            words["plausible"] = plausible_pairs(document.get("plausible"), problem.arm_names)
        problem = problem.with_about(**words)
    except ProblemError as error:
        raise document.error(str(error), AS_KEY.get(error.field or "", error.field)) from error
    means = scale = None
    if truth is not None:
        try:
            means = read_only(problem.as_means(_means(truth, problem, kind)))
            noise = truth.get("noise")
            scale = None if noise is None else per_arm("noise", noise, problem.arm_names)
        except ProblemError as error:
            raise truth.error(str(error), error.field) from None
    own: dict[str, Any] = {key: document.get(key) for key in ("delta", "epsilon", "budget") if key in values}
    if "budget" in KEYS[kind]:  # which is then no number of measurements
        own.pop("budget", None)
    spread = problem.spread
    if problem.guess is not None and spread is None:
        spread = np.full(problem.n_arms, float(KEYS[kind]["spread"].absent))
    return Truth(
        problem,
        means,
        scale,
        spread,
        title=values.get("title", path.stem),
        kind=kind,
        settings={**own, **({} if part is None else part.values), **_limit(document, problem)},
        prior=PriorData.of_problem(problem),
    )


def _limit(document: Section, problem: AnyProblem) -> dict[str, Any]:
    """Return the policy that keeps the limit of the file, by its settings; empty if it has none."""
    part = document.part("limit", LIMIT)
    if part is None:
        return {}
    load = part.get("load")
    if not problem.is_listed or set(load) != set(problem.plan_names):
        raise part.wrong("load", "a table with the load of each plan, such as {north = 'weight north'}")
    try:
        rows, _, names = read_expressions(load, problem.arm_names)
    except ProblemError as error:
        raise part.error(str(error), "load") from error
    loads = [rows[names.index(name)].tolist() for name in problem.plan_names]
    limits = {key: part.get(key) for key in ("at_most", "tolerance")}
    return {"policy": {"name": "Limited", **limits, "loads": loads}}


def _means(truth: Section, problem: AnyProblem, kind: str) -> Any:
    """Return the true means, one per arm or by name, from any of the forms a file may give them in."""
    given = truth.get("means")
    if isinstance(given, str):
        if problem.guess is None:
            raise truth.wrong("means", "numbers, since this problem has no guess")
        return problem.guess
    if isinstance(given, Table):
        if len(given.column_names) == 1:
            return by_name(given)
        pair = " -> " if kind == "transport" else ": "  # between the two names in the name of an arm
        return {
            f"{row}{pair}{column}": float(given.numbers[i, j])
            for i, row in enumerate(given.row_names)
            for j, column in enumerate(given.column_names)
            if not np.isnan(given.numbers[i, j])
        }
    return given if isinstance(given, dict) else np.ravel(np.array(given, dtype=float))


def _parse(path: Path, sheet: str | None) -> dict[str, Any]:
    """Return the keys and values of a TOML or JSON file, or those that a spreadsheet stands for."""
    parsers: dict[str, Callable[[str], Any]] = {
        ".toml": tomllib.loads,
        ".json": partial(json.loads, object_pairs_hook=_unique_keys),
    }
    if path.suffix.lower() in SUFFIXES:
        return read_sheet(path, sheet)
    if path.suffix.lower() not in parsers:
        hint = "; save it as .xlsx or .csv" if path.suffix.lower() in (".xls", ".ods", ".numbers") else ""
        if path.suffix.lower() in (".mps", ".lp"):
            hint = f'; write a .toml file with kind = "production" and program = "{path.stem}.mps"'
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
    return {key: value for key, value in document.items() if key != "$schema"}


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dictionary; refuse repeated keys, which JSON would silently drop."""
    known = dict(pairs)
    if len(known) < len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise json.JSONDecodeError(f"the key {twice!r} appears more than once", "", 0)
    return known
