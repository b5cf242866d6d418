"""Published instances in which whole plans are played and every arm of a play is read (semi-bandits)."""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import OracleProblem
from surepick.problems.kinds.tree import tree_family

PUBLISHED_DELTA = 0.1


@functools.cache
def _data() -> dict[str, Any]:
    text = (files("surepick.problems") / "data" / "semi_bandit_trees.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def published_tree(name: str, *, probes: str = "plan arms") -> tuple[OracleProblem, FloatArray]:
    """The spanning trees of E20 or E25 (`problems/data/README.md`), behind an oracle, and their true means.

    >>> problem, means = published_tree("E20")
    >>> problem.n_plans, problem.plays
    (20736, True)
    """
    instance = _data()[name]
    family = tree_family([(str(a), str(b)) for a, b in instance["edges"]], goal="largest")
    return family.oracle_problem(measure=probes, noise=1), np.array(instance["means"])


def published_results(name: str) -> dict[str, dict[str, float]]:
    """Return the published results of this instance by method: plays, share of wrong answers, seconds a run.

    >>> published_results("E20")["P-FWS"]["plays"]
    1176
    """
    found: dict[str, dict[str, float]] = _data()["published"][name]
    return found
