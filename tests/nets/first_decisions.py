"""The first decisions of policies, with each of their rules, on one small problem and fixed measurements.

Those of BetGapE and Challenge may change as long as they need no more measurements (`sample_sizes.py`).

`python tests/nets/first_decisions.py --write` writes them into `first_decisions.json`. A policy whose
decisions change needs a higher version and a line in the changelog.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import numpy as np

import surepick as sp
from policy_contract import (
    CASES,
    FOR_MATROIDS,
    FOR_SETS,
    FOR_SINGLE_ARMS,
    OF_MATROIDS,
    OF_PLAYS,
    OF_POLYTOPES,
    OF_SETS,
    OF_SINGLE_ARMS,
    WITHOUT_DELTA,
    two_of,
)
from surepick.policies import describe
from surepick.problems import trees
from surepick.testing import Tape, decisions

KEPT = Path(__file__).with_name("first_decisions.json")
BY_SAMPLE_SIZE = ("BetGapE", "Challenge", "Limited", "Tied")
N_ROUNDS = 25
N_PHASES = 3  # each of them is several times as long as the one before
PHASED = ("ExactExpGap", "NaiveGapElim", "Peace", "PolyALBA", "RAGE", "XYAdaptive")
SETS = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 1, 1, 0], [1, 0, 0, 1, 1], [1, 0, 1, 0, 0]])
SHARES = [[3.1, 0, 1.3, 0, 0.4], [0, 2.2, 1.7, 0.9, 1], [1.2, 0.8, 3.3, 2.4, 0], [1.9, 2.6, 0, 0, 2]]
MEANS = [0.4, 0.5, 0.1, 0.2, 0.35]
TRIANGLES = [("A", "B"), ("B", "C"), ("C", "A"), ("C", "D"), ("D", "A")]


def cases() -> dict[str, tuple[Any, Any]]:
    """Policies and problems by name: sets of arms, shares of arms where the policy takes them, trees."""
    problem = sp.Problem(SETS, noise=[0.5, 0.4, 0.5, 0.6, 0.5], goal="largest")
    found: dict[str, tuple[Any, Any]] = {}
    for policy in [*CASES, *WITHOUT_DELTA, *OF_SETS, *OF_MATROIDS, *OF_SINGLE_ARMS]:
        if policy.name in BY_SAMPLE_SIZE:
            continue
        if policy.name in FOR_SINGLE_ARMS:
            found[describe(policy)] = (
                policy,
                sp.Problem(np.eye(5), noise=[0.5, 0.4, 0.5, 0.6, 0.5], goal="largest"),
            )
            dear = sp.Problem(np.diag([1, 2, 1, 3, 1.5]), cost=[1, 2, 1, 3, 1], goal="smallest", noise=1)
            found[f"{describe(policy)}, shares and costs"] = policy, dear
            continue
        name = describe(policy)
        name += f", epsilon {policy.epsilon:g}" if name in found else ""
        found[name] = (
            policy,
            sp.Problem(two_of(5), noise=0.5, goal="largest") if policy.name in FOR_MATROIDS else problem,
        )
        if policy.name not in FOR_SETS:
            dear = sp.Problem(SHARES, cost=[1, 2, 1, 3, 1], goal="smallest", noise=1)
            found[f"{name}, shares and costs"] = policy, dear
        if policy.takes_oracle:
            whole = trees(TRIANGLES, list_plans=False, noise=0.5)
            found[f"{describe(policy)}, trees"] = policy, whole
    for policy in OF_PLAYS:
        found[describe(policy)] = (
            policy,
            sp.OracleProblem(_best_set, 5, noise=0.5, measure="plan arms", goal="largest"),
        )
    for policy in OF_POLYTOPES:
        if policy.name in BY_SAMPLE_SIZE:
            continue
        rows = {"A_ub": [[1, 2, 1, 0, 1], [2, 1, 0, 3, 1]], "b_ub": [3, 4], "upper": 1.0}
        name = describe(policy) + (f" within {epsilon:g}" if (epsilon := policy.epsilon) else "")
        found[name] = policy, sp.Polytope(**rows, noise=0.5, goal="largest")
        dear = sp.Polytope(
            **rows, A_eq=[[1, 1, 1, 1, 1]], b_eq=[2.0], cost=[1, 2, 1, 3, 1], goal="smallest", noise=1
        )
        found[f"{name}, shares and costs"] = policy, dear
    return found


def _best_set(weights: Any) -> Any:
    return SETS[int(np.argmax(SETS @ weights))]


def first_decisions(name: str) -> dict[str, Any]:
    """The version of the policy and what it decides, as text: arms with how often, or the plan."""
    policy, problem = cases()[name]
    n_rounds = N_PHASES if policy.name in PHASED else N_ROUNDS
    taken = decisions(policy, problem, Tape(MEANS, keys=range(5), scale=0.3), n_rounds, seed=3)
    return {"version": policy.version, "decisions": [_shown(decision) for decision in taken]}


def _shown(decision: Any) -> str:
    if decision[0] == "stop":
        return f"stop: {decision[1]}"
    return " ".join(f"{arm}x{count}" for arm, count in enumerate(decision) if count)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        raise SystemExit(__doc__)
    everything = {name: first_decisions(name) for name in cases()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(taken)}" for name, taken in everything.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
