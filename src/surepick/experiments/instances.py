"""Problems with known means from small JSON values (specs): what the cases of a study are drawn from.

Builders give a problem and its true means; noise has scale 1 unless stated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.polytopes.polytope import Polytope
from surepick.core.problem import Problem
from surepick.errors import ParameterError, suggestion
from surepick.limits.limit import limit
from surepick.limits.value import Limit
from surepick.problems import (
    knapsack_instance,
    matchings,
    paths,
    top_k,
    transport_instance,
    trees,
    whole_transport,
)
from surepick.problems.cities import city_hours
from surepick.sessions import codec

Spec: TypeAlias = Mapping[str, Any]
Built: TypeAlias = tuple[Any, FloatArray]  # a problem and its means


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem built from its spec, with what no policy sees: its means, its limit, its second best plan."""

    problem: Any
    means: FloatArray
    limit: Limit
    second_gap: float | None  # of the best plan to the second best, where plans are listed
    fingerprint: str  # of plans and means


def instance_from_spec(spec: Spec) -> Instance:
    """Return the problem that the spec describes; the last few are kept: all policies meet the same one.

    | kind | parameters | what it is |
    |---|---|---|
    | knapsack, transport | n_items, seed; seed, distances, n_draws | the paper's instances |
    | all_transports | seed, distances | the same transports without a list of plans |
    | top_k | n_arms, k, seed, probes | the best k arms; means N(0, 1/4) |
    | network | shape, size, seed, plans | paths, trees or matchings, listed or behind an oracle |
    | rectangle | m, n, seed | all transports between m and n of the paper's cities |
    | mix | seed | a product mix: 10 products, 4 resources, all plans of a polytope |
    | soare, sphere, transductive | d, angle; n, d, seed; d, angle | vectors are measured |
    | tree | name, probes | the published trees E20 and E25, which are played |
    | given | plans, means, and whatever `Problem` takes | as it stands in the spec |

    >>> found = instance_from_spec({"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0.5]})
    >>> found.problem.n_arms, found.second_gap
    (2, 0.5)
    """
    return _build(codec.dumps(dict(spec)))


@lru_cache(maxsize=8)
def _build(text: str) -> Instance:
    parameters = json.loads(text)
    builder = problem_builder(parameters.pop("kind", ""))
    try:
        found = builder(**parameters)
    except TypeError as error:
        raise ParameterError(f"the spec {text} is wrong: {error}", field="problem") from None
    problem, means = found if isinstance(found, tuple) else (found.problem, found.true_means)
    if problem.noise_scale is None and problem.probes is None:
        problem = problem.with_noise(np.ones(problem.n_arms))
    second_gap = None
    if problem.is_listed:
        values = problem.sign * problem.values(means)
        second_gap = float(values.max() - np.partition(values, -2)[-2])
    content = codec.dumps(codec.problem_to_json(problem)).encode() + np.asarray(means, dtype=float).tobytes()
    return Instance(problem, means, limit(problem, means), second_gap, codec.digest(content, codec.SHORT))


def problem_builder(kind: str) -> Callable[..., Any]:
    """Return the function that builds problems of this kind."""
    if kind not in _KINDS:
        raise ParameterError(
            f"no kind of problem named {kind!r}; {suggestion(kind, _KINDS)}", field="problem"
        )
    return _KINDS[kind]


def _given(*, plans: Any, means: Any, **parameters: Any) -> Built:
    problem = Problem(plans, **{"noise": 1.0, **parameters}, goal="largest")
    return problem, problem.as_means(means)


def _top_k(*, n_arms: int, k: int, seed: int, probes: str = "arms") -> Built:
    names = [f"arm {s}" for s in range(n_arms)]
    problem = top_k(names, k, goal="largest", list_plans=True, measure=probes, noise=1)
    return problem, 0.5 * np.random.default_rng(seed).standard_normal(n_arms)


def _network(*, shape: str, size: int, seed: int, plans: str = "listed") -> Built:
    """Return grid paths, spanning trees of a complete graph or matchings; means N(0, 1)."""
    names = [str(s) for s in range(size)]
    options: Any = {"list_plans": plans == "listed", "noise": 1}
    if shape == "paths":
        cells = [(i, j) for i in range(size) for j in range(size)]
        links = [(a, b) for a in cells for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)) if max(b) < size]
        edges = [(str(a), str(b)) for a, b in links]
        problem = paths(edges, str(cells[0]), str(cells[-1]), **options)
    elif shape == "trees":
        edges = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
        problem = trees(edges, **options)
    else:
        problem = matchings(row_names=names, column_names=names, goal="smallest", **options)
    return problem, np.random.default_rng(seed).standard_normal(problem.n_arms)


def rectangle(*, m: int, n: int, seed: int) -> Built:
    """Return all transports between m and n cities; supplies and demands uniform, normalised."""
    rng = np.random.default_rng(seed)
    supply, demand = rng.uniform(0, 1, m), rng.uniform(0, 1, n)
    hours = city_hours("great-circle").numbers[np.ix_(rng.permutation(9)[:m], rng.permutation(9)[:n])]
    rows = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    totals = np.concatenate([supply / supply.sum(), demand / demand.sum()])
    return Polytope(A_eq=rows, b_eq=totals, goal="smallest", noise=1), hours.ravel()


def product_mix(seed: int) -> Built:
    """Return all mixes of ten products that four resources allow; the dearer ones bring more."""
    rng = np.random.default_rng(seed)
    use = rng.uniform(0.1, 1, (4, 10))  # resources x products
    stock = use.sum(1) * rng.uniform(0.2, 0.4, 4)
    problem = Polytope(A_ub=use, b_ub=stock, upper=1.0, noise=1, goal="largest")
    return problem, use.mean(0) * rng.uniform(0.7, 1.3, 10)


def soare(d: int, angle: float) -> tuple[Problem, FloatArray]:
    """Return d unit vectors and one at a small angle to the best of them (Soare et al. 2014)."""
    close = np.zeros(d)
    close[:2] = np.cos(angle), np.sin(angle)
    vectors = np.vstack([np.eye(d), close])
    return Problem(vectors, measure=vectors, noise=1, goal="largest"), 2.0 * np.eye(d)[0]


def sphere(n: int, d: int, seed: int) -> tuple[Problem, FloatArray]:
    """Return random unit vectors, with the means near the closest two of them."""
    vectors = np.random.default_rng(seed).normal(size=(n, d))
    vectors /= np.linalg.norm(vectors, axis=1)[:, None]
    apart = 2 - 2 * vectors @ vectors.T + 9 * np.eye(n)
    i, j = np.unravel_index(apart.argmin(), apart.shape)
    means = vectors[i] + 0.01 * (vectors[j] - vectors[i])
    return Problem(vectors, measure=vectors, noise=1, goal="largest"), means


def transductive(d: int, angle: float = 0.1) -> tuple[Problem, FloatArray]:
    """Return 2d unit vectors to measure, d of them and d turned ones to choose from (Fiez et al. 2019)."""
    units = np.eye(2 * d)
    turned = np.cos(angle) * units[:d] + np.sin(angle) * units[d:]
    return Problem(np.vstack([units[:d], turned]), measure=units, noise=1, goal="largest"), units[0]


def published_tree(name: str, *, probes: str = "plan arms") -> Built:
    """Return the spanning trees of E20 or E25 (`problems/data/README.md`), behind an oracle; they are played.

    >>> problem, means = published_tree("E20")
    >>> problem.n_plans, problem.plays
    (20736, True)
    """
    data = json.loads((files("surepick.problems") / "data" / "semi_bandit_trees.json").read_text("utf-8"))
    edges = [(str(a), str(b)) for a, b in data[name]["edges"]]
    problem = trees(edges, goal="largest", list_plans=False, measure=probes, noise=1)
    return problem, np.array(data[name]["means"])


_KINDS: dict[str, Callable[..., Any]] = {
    "knapsack": knapsack_instance,
    "transport": transport_instance,
    "all_transports": whole_transport,
    "top_k": _top_k,
    "network": _network,
    "rectangle": rectangle,
    "mix": product_mix,
    "soare": soare,
    "sphere": sphere,
    "transductive": transductive,
    "tree": published_tree,
    "given": _given,
}
