"""Choices: the best arm, the best k arms, or the best of any given sets of arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import Bounds, FloatArray, names_for
from surepick.core.oracle_problem import counted
from surepick.core.problem import Problem
from surepick.errors import ProblemError, suggestion
from surepick.problems.candidates import Progress, as_count
from surepick.problems.family import MOST_LISTED, Family, FoundProblem, PerArm


def subsets(
    arm_names: Sequence[str],
    sets: Iterable[Iterable[str]],
    *,
    minimize: bool = False,
    noise_scale: PerArm = 1.0,
    costs: PerArm = None,
    bounds: Bounds | None = None,
    plan_names: Sequence[str] | None = None,
) -> Problem:
    """The problem of choosing the set of arms, out of those given, with the largest sum of means.

    `noise_scale`, `costs` and `bounds` are those of `Problem`, here and in the
    other builders.

    >>> problem = subsets(["tea", "coffee", "cocoa"], [["tea", "cocoa"], ["coffee"]])
    >>> problem.plan_names, problem.plans.tolist()
    (('tea + cocoa', 'coffee'), [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    names = names_for("arm", arm_names, len(arm_names))
    plans = np.array([_indicator(names, members, k) for k, members in enumerate(sets)]).reshape(
        -1, len(names)
    )
    if plan_names is None:
        plan_names = _numbered([counted(names, plan) for plan in plans])
    return Problem(
        plans,
        noise_scale=noise_scale,
        costs=costs,
        bounds=bounds,
        arm_names=names,
        plan_names=plan_names,
        minimize=minimize,
    )


def best_arm(
    arm_names: Sequence[str],
    *,
    minimize: bool = False,
    noise_scale: PerArm = 1.0,
    costs: PerArm = None,
    bounds: Bounds | None = None,
) -> Problem:
    """The problem of finding the arm with the largest mean.

    >>> best_arm(["red", "green", "blue"]).plan_names
    ('red', 'green', 'blue')
    """
    names = names_for("arm", arm_names, len(arm_names))
    sets = [[name] for name in names]
    return subsets(names, sets, minimize=minimize, noise_scale=noise_scale, costs=costs, bounds=bounds)


def top_k(
    arm_names: Sequence[str],
    k: int,
    guess: npt.ArrayLike | None = None,
    *,
    minimize: bool = False,
    spread: npt.ArrayLike = 1.0,
    n_draws: int = 1000,
    seed: int = 0,
    noise_scale: PerArm = 1.0,
    costs: PerArm = None,
    bounds: Bounds | None = None,
    progress: Progress | None = None,
) -> Problem | FoundProblem:
    """The problem of finding the k arms with the largest means: all choices, or the likely ones.

    >>> top_k(["a", "b", "c"], 2).plan_names
    ('a + b', 'a + c', 'b + c')
    """
    family = top_k_family(arm_names, k, minimize=minimize)
    if guess is not None:
        return family.problem(
            guess,
            spread=spread,
            n_draws=n_draws,
            seed=seed,
            noise_scale=noise_scale,
            costs=costs,
            bounds=bounds,
            progress=progress,
        )
    names = family.arm_names
    if comb(len(names), k) > MOST_LISTED:
        raise ProblemError(
            f"there are {family.n_plans:,} ways to choose {k} of {len(names)}, too many to list; give a "
            "guess, or "
            "use top_k_family(...).oracle_problem()"
        )
    return subsets(
        names, combinations(names, k), minimize=minimize, noise_scale=noise_scale, costs=costs, bounds=bounds
    )


def top_k_family(arm_names: Sequence[str], k: int, *, minimize: bool = False) -> Family:
    """All choices of k arms, known by the best for given means.

    >>> family = top_k_family(["a", "b", "c"], 2)
    >>> family.best([1.0, 3.0, 2.0]).tolist(), family.n_plans
    ([0.0, 1.0, 1.0], 3)
    """
    names = names_for("arm", arm_names, len(arm_names))
    size = as_count("k", k)
    if size >= len(names):
        raise ProblemError(f"k must be less than the number of arms, {len(names)}, got {size}")
    sign = 1.0 if minimize else -1.0

    def solve(means: FloatArray) -> FloatArray:
        plan = np.zeros(len(names))
        plan[np.argsort(sign * means, kind="stable")[:size]] = 1.0
        return plan

    def losses(means: FloatArray, plan: FloatArray) -> FloatArray:
        """An arm that joins drives out the worst of those chosen; one that leaves lets in the best other."""
        costs, chosen = sign * means, plan > 0
        return np.asarray(np.where(chosen, costs[~chosen].min() - costs, costs - costs[chosen].max()))

    return Family(
        solve=solve,
        losses=losses,
        piece_names=names,
        minimize=minimize,
        n_plans=comb(len(names), size),
        noun="choice",
        name_of=lambda plan: counted(names, plan),
        recipe=lambda: {"kind": "top k", "arm_names": list(names), "k": size, "minimize": minimize},
    )


def _indicator(names: tuple[str, ...], members: Iterable[str], k: int) -> FloatArray:
    chosen = [members] if isinstance(members, str) else list(members)
    plan = np.zeros(len(names))
    for name in chosen:
        if name not in names:
            raise ProblemError(f"set {k} names an unknown arm {name!r}; {suggestion(str(name), names)}")
        if plan[names.index(name)]:
            raise ProblemError(f"set {k} names the arm {name!r} twice; name it once")
        plan[names.index(name)] = 1.0
    return plan


def _numbered(names: list[str]) -> list[str]:
    """The names, with the number of the set where two are alike or one is very long."""
    short = [name if len(name) <= 100 else f"set {k}" for k, name in enumerate(names)]
    return [name if short.index(name) == k else f"{name} (set {k})" for k, name in enumerate(short)]
