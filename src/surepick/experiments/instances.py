"""Problems with known means from small JSON values (specs): what the cases of a study are drawn from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.measurable import BOUNDED_VARIANCE
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.errors import ParameterError, suggestion
from surepick.experiments import probe_cases
from surepick.limits.limit import limit
from surepick.limits.value import Limit
from surepick.problems import (
    knapsack_instance,
    matching_family,
    path_family,
    top_k_family,
    transport_instance,
    tree_family,
    whole_transport,
)
from surepick.problems.cities import city_hours
from surepick.problems.truth import Truth
from surepick.sessions import codec

Spec: TypeAlias = Mapping[str, Any]


def instance_from_spec(spec: Spec) -> Truth:
    """Return the problem that the spec describes with its true means; noise has scale 1 unless stated.

    | kind | parameters | what it is |
    |---|---|---|
    | knapsack, transport | n_items, seed; seed, distances, n_draws | the paper's instances |
    | all_transports | seed, distances | the same transports without a list of plans |
    | top_k | n_arms, k, seed, probes | the best k arms; means N(0, 1/4) |
    | network | shape, size, seed, plans | paths, trees or matchings, listed or behind an oracle |
    | rectangle | m, n, seed | all transports between m and n of the paper's cities |
    | mix | seed | a product mix: 10 products, 4 resources, all plans of a polytope |
    | soare, sphere, transductive, tree | see `probe_cases` | vectors or whole trees are measured |
    | given | plans, means, and whatever `Problem` takes | as it stands in the spec |

    With `bounded_variance` nothing but the variance of the noise is assumed to be known.

    >>> instance_from_spec({"kind": "knapsack", "n_items": 5, "seed": 3}).problem.n_arms
    5
    """
    parameters = dict(spec)
    builder = problem_builder(parameters.pop("kind", ""))
    unsure = parameters.pop("bounded_variance", False)
    try:
        truth = builder(**parameters)
    except TypeError as error:
        said = f"the spec {codec.dumps(dict(spec))} is wrong: {error}"
        raise ParameterError(said, field="problem") from None
    problem = truth.problem
    if problem.noise_scale is None and problem.probes is None:
        problem = problem.with_noise(np.ones(problem.n_arms))
    if unsure:
        problem = problem.with_settings(noise_kind=BOUNDED_VARIANCE)
    return Truth(problem, truth.true_means)


def problem_builder(kind: str) -> Callable[..., Truth]:
    """Return the function that builds problems of this kind."""
    if kind not in _KINDS:
        raise ParameterError(
            f"no kind of problem named {kind!r}; {suggestion(kind, _KINDS)}", field="problem"
        )
    return _KINDS[kind]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem built from its spec, with what no policy sees: its means, its limit, its second best plan."""

    problem: Any
    means: FloatArray
    limit: Limit
    second_gap: float | None  # of the best plan to the second best, where plans are listed
    fingerprint: str  # of plans and means


def prepared(spec: Spec) -> Prepared:
    """Return the instance of a spec; the last few are kept, since all policies meet the same one.

    >>> prepared({"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0.5]}).second_gap
    0.5
    """
    return _build(codec.dumps(dict(spec)))


@lru_cache(maxsize=8)
def _build(text: str) -> Prepared:
    truth = instance_from_spec(json.loads(text))
    problem, means, second_gap = truth.problem, truth.true_means, None
    content = codec.dumps(codec.problem_to_json(problem)).encode() + np.asarray(means, dtype=float).tobytes()
    if problem.is_listed:
        values = problem.sign * problem.values(means)
        second_gap = float(values.max() - np.partition(values, -2)[-2])
    return Prepared(problem, means, limit(problem, means), second_gap, codec.digest(content, codec.SHORT))


def _given(*, plans: Any, means: Any, **parameters: Any) -> Truth:
    problem = Problem(plans, **{"noise": 1.0, **parameters}, goal="largest")
    return Truth(problem, problem.as_means(means))


def _top_k(*, n_arms: int, k: int, seed: int, probes: str = "arms") -> Truth:
    family = top_k_family([f"arm {s}" for s in range(n_arms)], k, goal="largest")
    problem: Problem = family.problem(noise=1)
    if probes != "arms":
        problem = Problem(problem.plans, arms=problem.arm_names, measure=probes, noise=1, goal="largest")
    return Truth(problem, 0.5 * np.random.default_rng(seed).standard_normal(n_arms))


def _network(*, shape: str, size: int, seed: int, plans: str = "listed") -> Truth:
    """Return grid paths, spanning trees of a complete graph or matchings; means N(0, 1)."""
    names = [str(s) for s in range(size)]
    if shape == "paths":
        cells = [(i, j) for i in range(size) for j in range(size)]
        links = [(a, b) for a in cells for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)) if max(b) < size]
        family = path_family([(str(a), str(b)) for a, b in links], str(cells[0]), str(cells[-1]))
    elif shape == "trees":
        family = tree_family([(a, b) for k, a in enumerate(names) for b in names[k + 1 :]])
    else:
        family = matching_family(names, names, goal="smallest")
    problem = family.problem(noise=1) if plans == "listed" else family.oracle_problem(noise=1)
    return Truth(problem, np.random.default_rng(seed).standard_normal(problem.n_arms))


def _rectangle(*, m: int, n: int, seed: int) -> Truth:
    """Return all transports between m and n cities; supplies and demands uniform, normalised."""
    rng = np.random.default_rng(seed)
    supply, demand = rng.uniform(0, 1, m), rng.uniform(0, 1, n)
    hours = city_hours("great-circle").numbers[np.ix_(rng.permutation(9)[:m], rng.permutation(9)[:n])]
    rows = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    totals = np.concatenate([supply / supply.sum(), demand / demand.sum()])
    return Truth(Polytope(A_eq=rows, b_eq=totals, goal="smallest", noise=1), hours.ravel())


def _mix(*, seed: int) -> Truth:
    rng = np.random.default_rng(seed)
    use = rng.uniform(0.1, 1, (4, 10))  # resources x products
    stock = use.sum(1) * rng.uniform(0.2, 0.4, 4)
    problem = Polytope(A_ub=use, b_ub=stock, upper=1.0, noise=1, goal="largest")
    return Truth(problem, use.mean(0) * rng.uniform(0.7, 1.3, 10))


def _published(build: Callable[..., tuple[Any, FloatArray]]) -> Callable[..., Truth]:
    return lambda **parameters: Truth(*build(**parameters))


_KINDS: dict[str, Callable[..., Truth]] = {
    "knapsack": knapsack_instance,
    "transport": transport_instance,
    "all_transports": whole_transport,
    "top_k": _top_k,
    "network": _network,
    "rectangle": _rectangle,
    "mix": _mix,
    "soare": _published(probe_cases.soare),
    "sphere": _published(probe_cases.sphere),
    "transductive": _published(probe_cases.transductive),
    "tree": _published(probe_cases.published_tree),
    "given": _given,
}
