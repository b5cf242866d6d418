"""Problem files: TOML or JSON that says which kind of problem it is and gives its data.

`docs/problem-files.md` describes every key.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surepick.errors import FileError, ProblemError, suggestion
from surepick.problem import FloatArray, Problem, Table, read_only, read_table
from surepick.problems.candidates import Progress
from surepick.problems.cities import city_hours
from surepick.problems.knapsacks import knapsack
from surepick.problems.transports import transport


@dataclass(frozen=True, eq=False)
class Loaded:
    """What a problem file says."""

    problem: Problem
    means: FloatArray | None = field(repr=False)  # (n_arms,) the truth for simulations, if it is given
    kind: str
    title: str
    # suppliers and demanders, when a plan is best shown as a table of amounts: plan.reshape of their lengths
    axes: tuple[tuple[str, ...], tuple[str, ...]] | None = None


def load(path: str | Path, *, progress: Progress | None = None) -> Loaded:
    """The problem that a TOML or JSON file describes.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "routes.toml"
    >>> _ = file.write_text('kind = "table"\\nplans = [[1, 0], [0, 1]]\\narm_names = ["road", "rail"]')
    >>> load(file).problem.arm_names
    ('road', 'rail')
    """
    path = Path(path)
    document = _Section(path, "", _parse(path))
    name = document.text("kind", options=KINDS)
    kind = KINDS[name]
    document.refuse_unknown({*COMMON_KEYS, *kind.required, *kind.optional})
    document.refuse_missing(kind.required)
    truth = document.section("truth", keys=("means",))
    try:
        built = kind.build(document, progress)
        means = None if truth is None else read_only(built.problem.as_means(_means(truth, built)))
    except ProblemError as error:
        raise FileError(f"{str(path)!r}: {error}") from error
    return Loaded(built.problem, means, name, document.text("title", path.stem), built.axes)


@dataclass(frozen=True, eq=False)
class _Built:
    problem: Problem
    guess: FloatArray | None = None  # (n_arms,) what the candidates were drawn around
    axes: tuple[tuple[str, ...], tuple[str, ...]] | None = None


@dataclass(frozen=True)
class _Section:
    """The keys of a file, or of a part of it; every question names the file and the key when it fails."""

    path: Path
    prefix: str
    values: Mapping[str, Any]

    def wrong(self, key: str, expected: str) -> FileError:
        """The error for a key whose value is not what it should be."""
        return FileError(
            f"{str(self.path)!r}: {self.prefix}{key} must be {expected}, got {self.values[key]!r}"
        )

    def refuse_unknown(self, known: set[str]) -> None:
        for key in self.values:
            if key not in known:
                hint = suggestion(key, sorted(known))
                raise FileError(f"{str(self.path)!r}: unknown key {self.prefix + key!r}; {hint}")

    def refuse_missing(self, required: tuple[str, ...]) -> None:
        for key in required:
            if key not in self.values:
                raise FileError(
                    f"{str(self.path)!r}: the key {self.prefix + key!r} is missing; it is required"
                )

    def section(self, key: str, *, keys: tuple[str, ...]) -> _Section | None:
        if key not in self.values:
            return None
        if not isinstance(self.values[key], dict):
            raise self.wrong(key, f"a table with the key {keys[0]!r}")
        part = _Section(self.path, f"{key}.", self.values[key])
        part.refuse_unknown(set(keys))
        part.refuse_missing(keys)
        return part

    def text(
        self, key: str, default: str | None = None, *, options: Mapping[str, object] | None = None
    ) -> str:
        if default is None:
            self.refuse_missing((key,))
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        if options is not None and value not in options:
            hint = suggestion(value, options)
            raise FileError(f"{str(self.path)!r}: unknown {self.prefix}{key} {value!r}; {hint}")
        return value

    def whole(self, key: str, default: int) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, "a whole number")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def names(self, key: str) -> list[str] | None:
        value = self.values.get(key)
        if value is not None and not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            raise self.wrong(key, "a list of names")
        return value

    def numbers(self, key: str, default: Any = None) -> Any:
        """One number or a list of numbers."""
        value = self.values.get(key, default)
        if key in self.values and not (_is_number(value) or _is_list_of_numbers(value)):
            raise self.wrong(key, "a number or a list of numbers")
        return value

    def list_of_numbers(self, key: str) -> list[float]:
        if not _is_list_of_numbers(self.values[key]):
            raise self.wrong(key, "a list of numbers")
        return list(self.values[key])

    def rows(self, key: str) -> list[list[float]]:
        """A list of lists of numbers, all of one length."""
        value = self.values[key]
        if not (isinstance(value, list) and value and all(_is_list_of_numbers(row) for row in value)):
            raise self.wrong(key, "a list of lists of numbers, or the name of a CSV file")
        for number, row in enumerate(value):
            if len(row) != len(value[0]):
                raise FileError(
                    f"{str(self.path)!r}: every row of {self.prefix}{key} must have as many numbers as the "
                    f"first, {len(value[0])}; row {number} has {len(row)}"
                )
        return value

    def attachment(self, key: str) -> Table | None:
        """The table in the CSV file that the key names, found beside this file; None if it is no name."""
        value = self.values.get(key)
        return read_table(self.path.parent / value) if isinstance(value, str) else None


@dataclass(frozen=True)
class _Kind:
    build: Callable[[_Section, Progress | None], _Built]
    required: tuple[str, ...]
    optional: tuple[str, ...]


def _table(document: _Section, _: Progress | None) -> _Built:
    table = document.attachment("plans")
    arm_names, plan_names = document.names("arm_names"), document.names("plan_names")
    if table is not None:
        arm_names = arm_names or list(table.column_names)
        plan_names = plan_names or list(table.row_names)
    problem = Problem(
        document.rows("plans") if table is None else table.numbers,
        noise_scale=_noise_scale(document),
        costs=document.numbers("costs"),
        arm_names=arm_names,
        plan_names=plan_names,
        minimize=document.flag("minimize"),
    )
    return _Built(problem)


def _knapsack(document: _Section, progress: Progress | None) -> _Built:
    guess = document.list_of_numbers("guess")
    problem = knapsack(
        document.list_of_numbers("weights"),  # type: ignore[arg-type]  # checked there to be whole
        guess,
        document.whole("capacity", 0),
        spread=document.numbers("spread", 5.0),
        n_draws=document.whole("n_draws", 100),
        seed=document.whole("seed", 0),
        noise_scale=_noise_scale(document),
        costs=document.numbers("costs"),
        item_names=document.names("item_names"),
        progress=progress,
    )
    return _Built(problem, np.array(guess, dtype=float))


def _transport(document: _Section, progress: Progress | None) -> _Built:
    guess, suppliers, demanders = _guess_per_pair(document)
    supply, demand = document.list_of_numbers("supply"), document.list_of_numbers("demand")
    problem = transport(
        supply,
        demand,
        guess,
        spread=document.numbers("spread", 1.0),
        n_draws=document.whole("n_draws", 1000),
        seed=document.whole("seed", 0),
        noise_scale=_noise_scale(document),
        costs=document.numbers("costs"),
        supplier_names=suppliers,
        demander_names=demanders,
        progress=progress,
    )
    axes = (
        tuple(suppliers or map(str, range(len(supply)))),
        tuple(demanders or map(str, range(len(demand)))),
    )
    return _Built(problem, np.ravel(guess), axes)


def _guess_per_pair(document: _Section) -> tuple[FloatArray, list[str] | None, list[str] | None]:
    """The guessed cost of every pair, and the names that came with it."""
    if ("guess" in document.values) == ("distances" in document.values):
        raise FileError(
            f"{str(document.path)!r}: give the costs either as 'guess' or as 'distances', exactly one of them"
        )
    suppliers, demanders = document.names("supplier_names"), document.names("demander_names")
    if "distances" in document.values:
        table: Table | None = city_hours(document.text("distances"))  # type: ignore[arg-type]  # checked there
    else:
        table = document.attachment("guess")
    if table is None:
        return np.array(document.rows("guess"), dtype=float), suppliers, demanders
    return table.numbers, suppliers or list(table.row_names), demanders or list(table.column_names)


def _noise_scale(document: _Section) -> Any:
    return None if document.values.get("noise_scale") == "unknown" else document.numbers("noise_scale", 1.0)


def _means(truth: _Section, built: _Built) -> FloatArray | list[float]:
    """The true means in the order of the arms, from any of the forms a file may give them in."""
    given = truth.values["means"]
    if given == "guess":
        if built.guess is None:
            raise truth.wrong("means", "numbers, since this kind of problem has no guess")
        return built.guess
    table = truth.attachment("means")
    if table is not None:
        given = _by_arm(table)
    if isinstance(given, dict):
        return _in_order(given, truth, built.problem.arm_names)
    if _is_list_of_numbers(given):
        return list(given)
    return [mean for row in truth.rows("means") for mean in row]


def _by_arm(table: Table) -> dict[str, float]:
    """The means of a CSV file by arm: a row per arm, or a table of pairs for arms named "row -> column"."""
    if len(table.column_names) == 1:
        return dict(zip(table.row_names, table.numbers[:, 0].tolist(), strict=True))
    return {
        f"{row} -> {column}": float(table.numbers[i, j])
        for i, row in enumerate(table.row_names)
        for j, column in enumerate(table.column_names)
    }


def _in_order(means: dict[str, Any], truth: _Section, arm_names: tuple[str, ...]) -> list[float]:
    part = _Section(truth.path, f"{truth.prefix}means.", means)
    part.refuse_unknown(set(arm_names))
    part.refuse_missing(arm_names)
    for name in arm_names:
        if not _is_number(means[name]):
            raise part.wrong(name, "a number")
    return [float(means[name]) for name in arm_names]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list_of_numbers(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_number(entry) for entry in value)


def _parse(path: Path) -> dict[str, Any]:
    """The document in the file, whichever of the two languages it is written in."""
    parsers: dict[str, Callable[[str], Any]] = {".toml": tomllib.loads, ".json": _parse_json}
    if path.suffix.lower() not in parsers:
        raise FileError(f"a problem file ends in .toml or .json, got {str(path)!r}")
    try:
        document = parsers[path.suffix.lower()](path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FileError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"{str(path)!r} is not UTF-8 text; save it as UTF-8") from None
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
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


COMMON_KEYS = ("kind", "title", "truth", "noise_scale", "costs")
_CANDIDATE_KEYS = ("spread", "n_draws", "seed")

KINDS: dict[str, _Kind] = {
    "table": _Kind(_table, ("plans",), ("arm_names", "plan_names", "minimize")),
    "knapsack": _Kind(_knapsack, ("weights", "guess", "capacity"), (*_CANDIDATE_KEYS, "item_names")),
    "transport": _Kind(
        _transport,
        ("supply", "demand"),
        (*_CANDIDATE_KEYS, "guess", "distances", "supplier_names", "demander_names"),
    ),
}
