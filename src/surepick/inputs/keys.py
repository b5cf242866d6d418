"""The keys of problem files: one table that the reader, the guide and the JSON schema are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

SCHEMA_FILE = "surepick.schema.json"  # beside the problem files that name it in their first line


class Key(NamedTuple):
    """What a key of a problem file says, in which form, and what holds without it."""

    form: str  # one of FORMS
    says: str
    absent: str = "none"  # "required": the key cannot be left out


def _either(*forms: str) -> dict[str, Any]:
    return {"anyOf": [FORMS[form] for form in forms]}


def _list_of(form: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": form, "minItems": 1}


FORMS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "goal": {"enum": ["smallest", "largest"]},
    "number": {"type": "number"},
    "whole": {"type": "integer"},
    "flag": {"type": "boolean"},
    "share": {"type": "string", "pattern": r"^\s*[0-9]+([.,][0-9]+)?\s*%\s*$"},
    "section": {"type": "object"},
    "list": {"type": "array"},
}
FORMS["names"] = _list_of(FORMS["text"])
FORMS["numbers"] = _list_of(FORMS["number"])
FORMS["rows"] = _list_of(FORMS["numbers"])
FORMS["by name"] = {"type": "object", "additionalProperties": FORMS["number"]}
FORMS["pair"] = {**FORMS["numbers"], "minItems": 2, "maxItems": 2}
FORMS["per arm"] = _either("number", "numbers", "by name", "text")
FORMS["each"] = _either("numbers", "by name", "text")
FORMS["share or per arm"] = _either("share", "number", "numbers", "rows", "by name", "text")
FORMS["table"] = _either("rows", "text")
FORMS["plans"] = _either("rows", "names", "section", "text")
FORMS["prices"] = {
    "anyOf": [FORMS["rows"], FORMS["text"], {"type": "object", "additionalProperties": FORMS["by name"]}]
}
FORMS["known"] = {"type": "object", "additionalProperties": _either("number", "pair")}
FORMS["ranges"] = _either("pair", "rows", "section")
FORMS["measure"] = _either("text", "section")
FORMS["guess of edges"] = _either("numbers", "by name", "text")
FORMS["flags"] = {"anyOf": [FORMS["flag"], _list_of(FORMS["flag"])]}
FORMS["senses"] = _either("text", "names", "section")

REQUIRED = "required"
GOAL = Key("goal", '`"smallest"` or `"largest"`: the value of the best plan', REQUIRED)
SMALLEST, LARGEST = GOAL._replace(absent='`"smallest"`'), GOAL._replace(absent='`"largest"`')
GUESS = Key("each", "what you expect each arm to be; guides, never counts as evidence")
SPREAD = Key("share or per arm", 'how far off the guess may be: a number, one per arm, or `"10%"` of it', "1")
DRAWS = Key("whole", "list the best plans of this many draws within the spread", "all plans")
SEED = Key("whole", "of those draws", "0")
N_BEST = Key("whole", "list this many best plans under the guess")
EVERY = Key("flag", "list all plans, up to 20,000", "`false`")
NAMES = Key("names", "a list of names", "those of the CSV file, or numbers")

COMMON: dict[str, Key] = {
    "kind": Key("text", "the kind of problem: one of the sections below", REQUIRED),
    "title": Key("text", "a line for people", "the name of the file"),
    "unit": Key("text", 'of a measurement, such as `"min"`'),
    "low": Key("per arm", "the least that a measurement can be; with `high` no noise is needed"),
    "high": Key("per arm", "the most that a measurement can be: 100, a time-out; others are refused"),
    "noise": Key(
        "share or per arm", 'standard deviation of one measurement; `"5%"`: of guess plus spread', "learned"
    ),
    "noise_kind": Key("text", '`"bounded variance"`: noise may be skewed', '`"sub-Gaussian"`'),
    "cost": Key("per arm", "of one measurement", "1"),
    "setup_cost": Key("number", "of starting a batch of measurements", "0"),
    "known": Key("known", "means that need no measurement, `{toll = 3}`, or surely lie in `[11, 14]`"),
    "measure": Key(
        "measure",
        '`"arms"`; `"plan arms"` (a plan, with a value per arm); `"plans"` (its total); '
        "or a table for each [probe](../how-to/whole-plans.md)",
        '`"arms"`',
    ),
    "plausible": Key("ranges", "`[low, high]` of values that need no question, one pair or one per arm"),
    "order": Key("text", 'of measurements in a batch: `"balanced"` or `"listed"`', '`"balanced"`'),
    "list_plans": Key(
        "flag", "`true`: a list of candidates; `false`: all plans, no list", "a list up to 1,000"
    ),
    "delta": Key("number", "how often the answer may be wrong", "0.05"),
    "epsilon": Key("number", "the difference that you do not care about", "0"),
    "budget": Key("number", "the most measurements (of a portfolio: what is invested)"),
    "session": Key("section", "a table with `seed`, `lease` and `policy` of sessions"),
    "truth": Key("section", "what simulations draw from: `means`, and `noise` where it is unknown"),
}

_DRAWN = {"spread": SPREAD, "n_draws": DRAWS, "seed": SEED}
_EDGES = {
    "edges": Key(
        "measure",
        "a list of `[from, to]` or `[from, to, guess]`, or a file: CSV, .graphml, .edgelist",
        REQUIRED,
    ),
    "guess": Key("guess of edges", "one number per edge, or the name of a column", "the column `guess`"),
    "arms": Key("names", "columns: an edge weighs its numbers there times the means of these", "every edge"),
    **_DRAWN,
    "n_best": N_BEST,
    "every": EVERY,
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
        **_DRAWN,
        "spread": SPREAD._replace(absent="5"),
        "item_names": NAMES,
        "copies": Key("per arm", "the most copies of an item", "any number"),
    },
    "transport": {
        "supply": Key("each", "how much each supplier can send", REQUIRED),
        "demand": Key("each", "how much each demander receives; supply above demand stays", REQUIRED),
        "guess": Key("table", "the cost of every pair, a row per supplier", "this or `distances`"),
        "distances": Key("text", '`"great-circle"` or `"freeway"`: hours between the paper\'s cities'),
        "goal": SMALLEST,
        **_DRAWN,
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
        "guess": Key("table", "what every pair takes, a row per person; `nan`: cannot be", REQUIRED),
        "goal": GOAL,
        "row_names": NAMES,
        "column_names": NAMES,
        **_DRAWN,
        "n_best": N_BEST,
        "every": EVERY,
    },
    "choice": {
        "arms": NAMES._replace(absent=REQUIRED),
        "goal": GOAL,
        "sets": Key("list", "a list of sets, each a list of arms", "each arm by itself"),
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
        **_DRAWN,
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
        "program": Key("text", "an MPS or LP file that says all of this", "this or `use`"),
        **_DRAWN,
    },
    "portfolio": {
        "guess": GUESS._replace(absent=REQUIRED),
        "budget": Key("number", "what all amounts add up to", "1"),
        "lower": Key("per arm", "the least in each asset", "0"),
        "upper": Key("per arm", "the most in each asset", "the budget"),
        "groups": Key("section", "tables with `assets` and the `most` that they may hold together"),
        "asset_names": NAMES,
        **_DRAWN,
    },
}


def required(kind: str) -> tuple[str, ...]:
    """Return the keys that a file of this kind cannot do without.

    >>> required("choice")
    ('arms', 'goal')
    """
    return tuple(name for name, key in KEYS[kind].items() if key.absent == REQUIRED)


def markdown(keys: Mapping[str, Key]) -> str:
    """Return a table of these keys for the guide.

    >>> print(markdown({"unit": COMMON["unit"]}).splitlines()[-1])
    | `unit` | of a measurement, such as `"min"` | none |
    """
    rows = [f"| `{name}` | {key.says} | {key.absent} |" for name, key in keys.items()]
    return "\n".join(["| key | says | without it |", "|---|---|---|", *rows])


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
    properties = {name: {**FORMS[key.form], "description": key.says} for name, key in keys.items()}
    return {
        "type": "object",
        "properties": {**properties, "kind": {"const": kind}, "$schema": FORMS["text"]},
        "required": ["kind", *required(kind)],
        "additionalProperties": False,
    }
