"""Methods side by side: what rows say about each method on each family of problems, for people to read."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from surepick.core.promise import Promise
from surepick.experiments.cases import Row
from surepick.experiments.summary import MethodSummary, summarize
from surepick.sessions import codec


@dataclass(frozen=True)
class Method:
    """A method on a family of problems; `least` marks the fewest measurements among those with a promise."""

    summary: MethodSummary
    promises: bool
    bar: float  # between 0 and 1: the logarithm of its median multiple beside the largest in the table
    least: bool


@dataclass(frozen=True)
class Family:
    """All methods on one family of problems."""

    name: str
    n_instances: int
    methods: tuple[Method, ...]


def families(rows: Sequence[Row]) -> list[Family]:
    """The rows by family of problems and by method; ratios are to the first method of each family."""
    by_family: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_family[_family(row.case.problem)][_label(row.case.policy)].append(row)
    return [_compare(name, methods) for name, methods in by_family.items()]


def _compare(name: str, methods: Mapping[str, Sequence[Row]]) -> Family:
    reference = next(iter(methods.values()))
    summaries = [summarize(label, rows, reference) for label, rows in methods.items()]
    medians = [s.multiple.median.number if s.multiple else math.inf for s in summaries]
    promises = [all(Promise.read(row.guarantee).proved for row in rows) for rows in methods.values()]
    least = min((m for m, promised in zip(medians, promises, strict=True) if promised), default=math.inf)
    longest = max((math.log1p(median) for median in medians if median < math.inf), default=1.0) or 1.0
    shown = tuple(
        Method(
            summary,
            promised,
            math.log1p(median) / longest if median < math.inf else 0.0,
            promised and median == least < math.inf,
        )
        for summary, median, promised in zip(summaries, medians, promises, strict=True)
    )
    return Family(name, len({row.instance for rows in methods.values() for row in rows}), shown)


def _family(problem: Mapping[str, Any]) -> str:
    """The problem without its seed, in words."""
    rest = {key: value for key, value in problem.items() if key not in ("kind", "seed")}
    words = ", ".join(f"{key} {value}" for key, value in rest.items() if isinstance(value, str | int | float))
    kind = str(problem.get("kind", "problem"))
    if kind == "given":
        return f"given {codec.fingerprint(dict(problem))[:8]}"
    return f"{kind}, {words}" if words else kind


def _label(policy: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in policy.items() if key not in ("policy", "version", "delta")}
    words = ", ".join(f"{key} {value}" for key, value in rest.items() if value)
    name = str(policy["policy"])
    return f"{name} ({words})" if words else name
