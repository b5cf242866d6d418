"""The keys of problem files: one table that the reader, the guide and the JSON schema are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

SCHEMA_FILE = "surepick.schema.json"  # beside the problem files that name it in their first line


class Key(NamedTuple):
    """What a key of a problem file says, in which form, and what holds without it."""

    form: str  # one of FORMS
    says: str
    absent: str = "none"  # "required": the key cannot be left out


class Form(NamedTuple):
    """What a value looks like: as a JSON schema, in words, and whether text is the name of a file.

    `file` says what such a file becomes: its "path", a "table", numbers by name ("column"), or either of
    these where percentages are text too ("share"). An empty cell is `empty`, or refused; `words` are none.
    """

    schema: dict[str, Any]
    expected: str
    file: str | None = None
    empty: float | None = None
    words: tuple[str, ...] = ()


def _list_of(item: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1, **more}


def _by_name(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": item}


def _any(*schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


def _words(*words: str) -> Form:
    return Form({"enum": list(words)}, " or ".join(map(repr, words)))


_TEXT, _NUMBER, _FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}
_SHARE = {"type": "string", "pattern": r"^\s*[0-9]+([.,][0-9]+)?\s*%\s*$"}
_NUMBERS, _NAMES, _AMOUNT = _list_of(_NUMBER), _list_of(_TEXT), _any(_NUMBER, _SHARE)
_ROWS, _PAIR = _list_of(_NUMBERS), {**_NUMBERS, "minItems": 2, "maxItems": 2}
_PROBE = {
    "reads": _NAMES,
    "mix": _by_name(_NUMBER),
    "readings": _by_name(_by_name(_NUMBER)),
    "cost": _NUMBER,
    "noise": _any(_NUMBER, _NUMBERS, _by_name(_NUMBER)),
    "covariance": _ROWS,
}
_GROUP = {"assets": _NAMES, "most": _NUMBER}
_CSV = "the name of a CSV file"

FORMS: dict[str, Form] = {
    "text": Form(_TEXT, "text"),
    "goal": _words("smallest", "largest"),
    "noise kind": _words("sub-Gaussian", "bounded variance"),
    "order": _words("balanced", "listed"),
    "number": Form(_NUMBER, "a number"),
    "whole": Form({"type": "integer"}, "a whole number"),
    "flag": Form(_FLAG, "true or false"),
    "flags": Form(_any(_FLAG, _list_of(_FLAG)), "true, false, or a list of them"),
    "section": Form({"type": "object"}, "a table of keys"),
    "names": Form(_NAMES, "a list of names"),
    "sets": Form(_list_of({"type": "array", "items": _TEXT}), "a list of lists of arms"),
    "each": Form(
        _any(_NUMBERS, _by_name(_NUMBER), _TEXT), f"a list of numbers, a table of them or {_CSV}", "column"
    ),
    "per arm": Form(
        _any(_NUMBER, _NUMBERS, _by_name(_NUMBER), _TEXT),
        f"a number, a list of numbers, a table of them or {_CSV}",
        "column",
    ),
    "noise": Form(
        _any(_NUMBER, _TEXT, _list_of(_AMOUNT), _by_name(_AMOUNT)),
        f'"unknown", a number or a share such as "5%", one or one per arm, or {_CSV}',
        "share",
        words=("unknown",),
    ),
    "spread": Form(
        _any(_NUMBER, _TEXT, _list_of(_AMOUNT), _by_name(_AMOUNT), _ROWS),
        f'a number or a share such as "10%", one or one per arm, or {_CSV}',
        "share",
    ),
    "table": Form(_any(_ROWS, _TEXT), f"a list of lists of numbers, or {_CSV}", "table"),
    "pairs": Form(_any(_ROWS, _TEXT), f"a list of lists of numbers, or {_CSV}", "table", math.nan),
    "plans": Form(
        _any(_ROWS, _NAMES, _by_name(_TEXT), _TEXT),
        f"a list of lists of numbers, sums such as 2*tea + coffee, or {_CSV}",
        "table",
        0.0,
    ),
    "prices": Form(
        _any(_ROWS, _TEXT, _by_name(_by_name(_NUMBER))),
        f"prices by option for every slot, a list of lists of numbers, or {_CSV}",
        "table",
        math.nan,
    ),
    "means": Form(
        _any(_NUMBERS, _ROWS, _by_name(_NUMBER), _TEXT),
        f'one number per arm, a table of them, {_CSV}, or "guess"',
        "table",
        math.nan,
        ("guess",),
    ),
    "known": Form(
        _by_name(_any(_NUMBER, _PAIR)), "a table of means by arm, such as {toll = 3, tunnel = [11, 14]}"
    ),
    "ranges": Form(_any(_PAIR, _list_of(_PAIR), _by_name(_PAIR)), "[low, high], one pair or one per arm"),
    "measure": Form(
        _any(
            {"enum": ["arms", "plan arms", "plans"]},
            _by_name({"type": "object", "properties": _PROBE, "additionalProperties": False}),
        ),
        '"arms", "plan arms" or "plans", or a table for each probe with one of reads, mix and readings',
    ),
    "edges": Form(
        _any(_list_of({"type": "array", "minItems": 2, "maxItems": 3}), _TEXT),
        "a list of [from, to] or [from, to, guess], or the name of a file",
        "path",
    ),
    "column": Form(_any(_NUMBERS, _by_name(_NUMBER), _TEXT), "one number per edge, or the name of a column"),
    "program": Form(_TEXT, "the name of an MPS file", "path"),
    "senses": Form(_any(_TEXT, _NAMES, _by_name(_TEXT)), '"<=", ">=" or "=", one or one per resource'),
    "groups": Form(
        _by_name(
            {"type": "object", "properties": _GROUP, "required": [*_GROUP], "additionalProperties": False}
        ),
        "a table of groups, each with the keys assets and most",
    ),
}


def fits(schema: Mapping[str, Any] | bool, value: object) -> bool:
    """Return whether a value has the form of a JSON schema, of the words of it that are used here.

    >>> fits(FORMS["known"].schema, {"toll": 3, "tunnel": [11, 14]}), fits(FORMS["whole"].schema, True)
    (True, False)
    """
    if isinstance(schema, bool):
        return schema
    if "anyOf" in schema:
        return any(fits(one, value) for one in schema["anyOf"])
    if "enum" in schema:
        return isinstance(value, str) and value in schema["enum"]
    if schema["type"] == "array":
        return (
            isinstance(value, list)
            and schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
            and all("items" not in schema or fits(schema["items"], item) for item in value)
        )
    if schema["type"] == "object":
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        return (
            isinstance(value, dict)
            and value.keys() >= set(schema.get("required", ()))
            and all(fits(known.get(key, others), item) for key, item in value.items())
        )
    if schema["type"] == "string":
        return isinstance(value, str) and re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, bool):
        return bool(schema["type"] == "boolean")
    return isinstance(value, int) or (schema["type"] == "number" and isinstance(value, float))


REQUIRED = "required"
GOAL = Key("goal", '`"smallest"` or `"largest"`: the value of the best plan', REQUIRED)
SMALLEST, LARGEST = GOAL._replace(absent='`"smallest"`'), GOAL._replace(absent='`"largest"`')
GUESS = Key("each", "what you expect each arm to be; guides, never counts as evidence")
SPREAD = Key("spread", 'how far off the guess may be: a number, one per arm, or `"10%"` of it', "1")
DRAWS = Key("whole", "list the best plans of this many draws within the spread", "all plans")
SEED = Key("whole", "of those draws", "0")
N_BEST = Key("whole", "list this many best plans under the guess")
NAMES = Key("names", "a list of names", "those of the CSV file, or numbers")

COMMON: dict[str, Key] = {
    "kind": Key("text", "the kind of problem: one of the sections below", REQUIRED),
    "title": Key("text", "a line for people", "the name of the file"),
    "unit": Key("text", 'of a measurement, such as `"min"`'),
    "low": Key("per arm", "the least that a measurement can be; with `high` no noise is needed"),
    "high": Key("per arm", "the most that a measurement can be: 100, a time-out; others are refused"),
    "noise": Key("noise", 'standard deviation of one measurement; `"5%"`: of guess plus spread', "learned"),
    "noise_kind": Key("noise kind", '`"bounded variance"`: noise may be skewed', '`"sub-Gaussian"`'),
    "cost": Key("per arm", "of one measurement", "1"),
    "setup_cost": Key("number", "of starting a batch of measurements", "0"),
    "known": Key("known", "means that need no measurement, `{toll = 3}`, or surely lie in `[11, 14]`"),
    "measure": Key(
        "measure",
        '`"arms"`; `"plan arms"` (a plan, with a value per arm); `"plans"` (its total); '
        "or a table for each [probe](../how-to/whole-plans.md)",
        '`"arms"`',
    ),
    "plausible": Key("ranges", "`[low, high]`: other values are asked about first; one pair or one per arm"),
    "order": Key("order", 'of measurements in a batch: `"balanced"` or `"listed"`', '`"balanced"`'),
    "list_plans": Key(
        "flag", "`true`: a list of candidates; `false`: all plans, no list", "a list up to 1,000"
    ),
    "delta": Key("number", "how often the answer may be wrong", "0.05"),
    "epsilon": Key("number", "the difference that you do not care about", "0"),
    "budget": Key(
        "whole", "the most measurements; of `assign` and `portfolio` see there, and use `--budget`"
    ),
    "limit": Key(
        "section",
        "a [measured limit](../how-to/other-questions.md): `at_most`, `tolerance`, `load` of each plan",
    ),
    "session": Key("section", "a table with `seed`, `lease` and `policy` of sessions"),
    "truth": Key("section", "what simulations draw from: `means`, and `noise` where it is unknown"),
}

SESSION = {"seed": Key("whole", ""), "lease": Key("number", ""), "policy": Key("text", "")}
LIMIT = {
    "at_most": Key("number", "", REQUIRED),
    "tolerance": Key("number", "", REQUIRED),
    "load": Key("section", "", REQUIRED),
}
TRUTH = {"means": Key("means", "", REQUIRED), "noise": Key("per arm", "")}

DRAWN = {"spread": SPREAD, "n_draws": DRAWS, "seed": SEED}
_EDGES = {
    "edges": Key(
        "edges",
        "a list of `[from, to]` or `[from, to, guess]`, or a file: CSV, .graphml, .edgelist",
        REQUIRED,
    ),
    "guess": Key("column", "one number per edge, or the name of a column", "the column `guess`"),
    **DRAWN,
    "n_best": N_BEST,
    "goal": SMALLEST,
}

KEYS: dict[str, dict[str, Key]] = {
    "table": {
        "plans": Key("plans", "rows of numbers, sums such as `2*tea + coffee`, or a file", REQUIRED),
        "goal": GOAL,
        "arms": NAMES,
        "plan_names": NAMES,
        "noun": Key("text", 'a word for a plan, such as `"route"`', "plan"),
        "guess": GUESS,
        "spread": SPREAD._replace(absent="0"),
    },
    "knapsack": {
        "weights": Key("each", "of one copy of each item, whole numbers", REQUIRED),
        "capacity": Key("whole", "the total weight that fits", REQUIRED),
        "guess": GUESS._replace(absent=REQUIRED),
        **DRAWN,
        "spread": SPREAD._replace(absent="5"),
        "item_names": NAMES,
        "copies": Key("per arm", "the most copies of an item", "any number"),
    },
    "transport": {
        "supply": Key("each", "how much each supplier can send", REQUIRED),
        "demand": Key("each", "how much each demander receives; supply above demand stays", REQUIRED),
        "guess": Key("table", "the cost of every pair, a row per supplier", REQUIRED),
        "goal": SMALLEST,
        **DRAWN,
        "supplier_names": NAMES,
        "demander_names": NAMES,
    },
    "paths": {
        **_EDGES,
        "source": Key("text", "where paths begin", REQUIRED),
        "target": Key("text", "where they end", REQUIRED),
        "directed": Key("flag", "edges are used from -> to only", "`true` where both ways are listed"),
    },
    "trees": _EDGES,
    "matchings": {
        "guess": Key("pairs", "what every pair takes, a row per person; `nan`: cannot be", REQUIRED),
        "goal": GOAL,
        "row_names": NAMES,
        "column_names": NAMES,
        **DRAWN,
        "n_best": N_BEST,
    },
    "choice": {
        "arms": NAMES._replace(absent=REQUIRED),
        "goal": GOAL,
        "sets": Key("sets", "a list of sets, each a list of arms", "each arm by itself"),
        "plan_names": NAMES,
        "guess": GUESS,
        "spread": SPREAD,
    },
    "top-k": {
        "arms": NAMES._replace(absent=REQUIRED),
        "goal": GOAL,
        "k": Key("whole", "choose this many", REQUIRED),
        "guess": GUESS,
        "spread": SPREAD,
    },
    "assign": {
        "prices": Key(
            "prices", "the price of every option by slot, or a table with a row per slot", REQUIRED
        ),
        "budget": Key("number", "the most that the chosen options may cost together", REQUIRED),
        "goal": GOAL,
        "slot_names": NAMES,
        "option_names": NAMES,
        "guess": GUESS,
        **DRAWN,
    },
    "production": {
        "use": Key(
            "table", "what a unit of each variable (column) takes of a resource (row)", "this or `program`"
        ),
        "limits": Key("each", "one number per resource", "required with `use`"),
        "guess": GUESS._replace(absent="required with `use`"),
        "goal": LARGEST,
        "senses": Key("senses", '`"<="`, `">="` or `"="`, one or one per resource', '`"<="`'),
        "lower": Key("per arm", "the least of each variable", "0"),
        "upper": Key("per arm", "the most of each variable", "no limit"),
        "whole": Key("flags", "whether variables are whole numbers", "`false`"),
        "variable_names": NAMES,
        "program": Key("program", "an MPS file that says all of this", "this or `use`"),
        **DRAWN,
    },
    "portfolio": {
        "guess": GUESS._replace(absent=REQUIRED),
        "budget": Key("number", "what all amounts add up to", "1"),
        "lower": Key("per arm", "the least in each asset", "0"),
        "upper": Key("per arm", "the most in each asset", "the budget"),
        "groups": Key("groups", "tables with `assets` and the `most` that they may hold together"),
        "asset_names": NAMES,
        **DRAWN,
    },
}


def schema() -> dict[str, Any]:
    """Return the JSON schema of problem files, for editors: `#:schema ./surepick.schema.json` in TOML.

    >>> [one["properties"]["kind"]["const"] for one in schema()["oneOf"]][:2]
    ['table', 'knapsack']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A surepick problem file",
        "oneOf": [_schema_of(kind) for kind in KEYS],
    }


def _schema_of(kind: str) -> dict[str, Any]:
    keys = {**COMMON, **KEYS[kind]}
    properties = {name: {**FORMS[key.form].schema, "description": key.says} for name, key in keys.items()}
    return {
        "type": "object",
        "properties": {**properties, "kind": {"const": kind}, "$schema": _TEXT},
        "required": ["kind", *(name for name, key in KEYS[kind].items() if key.absent == REQUIRED)],
        "additionalProperties": False,
    }
