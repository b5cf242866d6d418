"""Choices: the best arm, the best k arms, or the best of any given sets of arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from math import comb
from typing import Unpack

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import Plans
from surepick.core.given.numbers import Goal, names_for
from surepick.core.oracle_problem import AnyProblem
from surepick.core.problem import Problem
from surepick.core.wording import counted
from surepick.errors import ProblemError, suggestion
from surepick.problems.candidates import chosen, distinct_names
from surepick.problems.family import DrawOptions, Family, Measured
from surepick.problems.numbers import as_count

MOST_DENSE = 1_000_000  # numbers of a table of plans that is kept with its zeros


def choice(
    arms: Sequence[str],
    sets: Iterable[Iterable[str]] | None = None,
    *,
    goal: Goal,
    plan_names: Sequence[str] | None = None,
    **measured: Unpack[Measured],
) -> Problem:
    """Return the problem of choosing one arm, or one of these sets of arms by the sum of their means.

    - `arms`: the arms, by name
    - `sets`: the sets, each a list of names; None: each arm by itself
    - `goal`: the mean or sum of the best, "smallest" or "largest"
    - `plan_names`: names for the sets; the names of their arms
    - `measured`: `noise`, `cost`, `low`, `high`, `known` and `measure`, as for `Problem`

    >>> choice(["red", "green", "blue"], goal="largest").plan_names
    ('red', 'green', 'blue')
    >>> problem = choice(["tea", "coffee", "cocoa"], [["tea", "cocoa"], ["coffee"]], goal="largest")
    >>> problem.plan_names, problem.plans.tolist()
    (('tea + cocoa', 'coffee'), [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    names = names_for("arm", arms, len(arms))
    at = {name: s for s, name in enumerate(names)}
    rows = list[list[int]]()
    for k, members in enumerate([[name] for name in names] if sets is None else sets):
        own = [members] if isinstance(members, str) else list(members)
        for name in own:
            if name not in at:
                raise ProblemError(
                    f"set {k} names an unknown arm {name!r}; {suggestion(str(name), at)}", field="sets"
                )
            if own.count(name) > 1:
                raise ProblemError(f"set {k} names the arm {name!r} twice; name it once", field="sets")
        rows.append(sorted(at[name] for name in own))
    if plan_names is None:
        plan_names = distinct_names((" + ".join(names[s] for s in row) or "nothing" for row in rows), "set")
    plans: Plans
    if len(rows) * len(names) <= MOST_DENSE:
        plans = np.array([chosen(row, len(names)) for row in rows]).reshape(-1, len(names))
    else:
        from scipy import sparse

        ends, taken = np.cumsum([0, *map(len, rows)]), np.array(list(chain.from_iterable(rows)))
        plans = sparse.csr_array((np.ones(len(taken)), taken, ends), shape=(len(rows), len(names)))
    return Problem(plans, arms=names, plan_names=plan_names, goal=goal, **measured)


def top_k(
    arms: Sequence[str],
    k: int,
    guess: npt.ArrayLike | None = None,
    *,
    goal: Goal,
    **options: Unpack[DrawOptions],
) -> AnyProblem:
    """Return the problem of finding the k arms with the largest means.

    Every choice of k arms is a plan: in a list up to 1,000 of them, behind an oracle beyond. With a guess of
    the means, one per arm, and draws asked for, the plans are the best choices of draws near it. `options`
    are `DrawOptions`.

    >>> top_k(["a", "b", "c"], 2, goal="largest").plan_names
    ('a + b', 'a + c', 'b + c')
    >>> top_k([f"player {s}" for s in range(40)], 20, goal="largest")
    FamilyProblem(40 arms, number of plans at most 1.4e11, largest)
    """
    names = names_for("arm", arms, len(arms))
    size = as_count("k", k)
    if size >= len(names):
        raise ProblemError(f"k must be less than the number of arms, {len(names)}, got {size}", field="k")
    family = Family(
        lambda costs: chosen(np.argsort(costs, kind="stable")[:size], len(names)),
        arm_names=names,
        goal=goal,
        n_plans=comb(len(names), size),
        kind="top_k",
        noun="choice",
        count_is_exact=True,
        name_of=lambda plan: counted(names, plan),
        listed=lambda: (chosen(list(arms), len(names)) for arms in combinations(range(len(names)), size)),
        recipe={"arms": list(names), "k": size, "goal": goal},
    )
    return family.problem(guess, **options)
