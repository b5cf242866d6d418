"""Problems and policies as small JSON values: what a case is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.policy import Policy
from surepick.core.polytope import Polytope
from surepick.core.problem import Problem
from surepick.core.tables import Table, read_table
from surepick.errors import ParameterError, suggestion
from surepick.experiments import play_cases, probe_cases
from surepick.policies import policy_named
from surepick.problems import (
    knapsack_instance,
    matching_family,
    path_family,
    top_k_family,
    transport_instance,
    tree_family,
    whole_transport,
)
from surepick.problems.truth import Truth
from surepick.sessions import codec

Spec: TypeAlias = Mapping[str, Any]

# Values of policy parameters that stand for a property of the instance: Peace needs a bound on the largest
# gap, LinGapE one on the norm of the means. Both get the true value, which a user does not have.
LARGEST_GAP = "largest gap"
MEANS_NORM = "norm of the means"
TRUE_VALUES = (LARGEST_GAP, MEANS_NORM)
ALL_PLANS = "all"  # the `plans` of a transport that is about every plan, not about a list


def policy_spec(policy: Policy) -> dict[str, Any]:
    """Return the policy as JSON values: its name and its parameters.

    >>> from surepick.policies import CombGapE
    >>> policy_spec(CombGapE(delta=0.1))["policy"], policy_spec(CombGapE(delta=0.1))["delta"]
    ('CombGapE', 0.1)
    """
    settings = dataclasses.fields(policy)  # type: ignore[arg-type]
    return {"policy": policy.name, **{field.name: getattr(policy, field.name) for field in settings}}


def policy_from_spec(spec: Spec, instance: Truth | None = None) -> Policy:
    """Return the policy that the spec describes; `TRUE_VALUES` are filled in from the instance.

    >>> policy_from_spec({"policy": "CombGapE", "delta": 0.1}).delta
    0.1
    """
    kind = policy_kind(spec)
    parameters = {name: value for name, value in spec.items() if name != "policy"}
    for name, value in parameters.items():
        if value in TRUE_VALUES:
            parameters[name] = _true_value(value, instance, name)
    try:
        return kind(**parameters)
    except TypeError:
        known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        raise ParameterError(
            f"policy {kind.name} takes the parameters {', '.join(known)}; got {', '.join(parameters)}",
            field="policy",
        ) from None


def policy_kind(spec: Spec) -> type[Policy]:
    """Return the class of the policy that the spec names."""
    if "policy" not in spec:
        raise ParameterError(
            f"a policy spec names its policy, as in {{'policy': 'CombGapE'}}; got {spec!r}", field="policy"
        )
    return policy_named(str(spec["policy"]))


def _true_value(value: str, instance: Truth | None, name: str) -> float:
    if instance is None or instance.means is None or not instance.problem.is_listed:
        raise ParameterError(f"{name} = {value!r} needs an instance with a list of plans", field=name)
    if value == MEANS_NORM:
        return float(np.linalg.norm(instance.means))
    return float(np.ptp(instance.problem.values(instance.means)))


def instance_from_spec(spec: Spec) -> Truth:
    """Return the problem that the spec describes with its true means; noise has scale 1 unless stated.

    | kind | parameters | what it is |
    |---|---|---|
    | knapsack, transport | n_items, seed; seed, distances, n_draws, plans | the paper's instances |
    | top_k | n_arms, k, seed, spread, probes | the best k arms; means N(0, spread^2) |
    | network | shape, size, seed, plans | paths, trees or matchings, listed or behind an oracle |
    | rectangle | m, n, seed | all transports between m and n of the paper's cities |
    | mix | seed | a product mix: 10 products, 4 resources, all plans of a polytope |
    | soare, sphere, transductive | see `probe_cases` | vectors are measured |
    | published_tree | name | whole spanning trees are measured, each link is read |
    | given | plans, means, and whatever `Problem` takes | as it stands in the spec |

    >>> instance_from_spec({"kind": "knapsack", "n_items": 5, "seed": 3}).problem.n_arms
    5
    >>> instance_from_spec({"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}).problem.n_plans
    2
    """
    builder = problem_builder(spec)
    try:
        truth = builder(**{name: value for name, value in spec.items() if name != "kind"})
    except TypeError as error:
        raise ParameterError(
            f"the {spec['kind']} spec {codec.dumps(dict(spec))} is not right: {error}", field="problem"
        ) from None
    if truth.problem.noise_scale is None and truth.problem.probes is None:
        return Truth(truth.problem.with_noise(np.ones(truth.problem.n_arms)), truth.means, title=truth.title)
    return truth


def hours_spec(path: str | Path) -> dict[str, Any]:
    """Return the travel hours of a CSV file (header: demanders; first column: suppliers) for a spec."""
    table = read_table(path)
    return {
        "suppliers": list(table.row_names),
        "demanders": list(table.column_names),
        "numbers": table.numbers.tolist(),
    }


def _transport(*, distances: str | Spec = "great-circle", plans: str = "listed", **parameters: Any) -> Truth:
    hours: Any = distances
    if not isinstance(distances, str):
        numbers = np.array(distances["numbers"], dtype=float)
        hours = Table(numbers, tuple(distances["suppliers"]), tuple(distances["demanders"]))
    if plans == ALL_PLANS:
        return whole_transport(parameters["seed"], distances=hours)
    return transport_instance(distances=hours, **parameters)


def _given(*, plans: Any, means: Any, **parameters: Any) -> Truth:
    problem = Problem(plans, **{"noise": 1.0, **parameters}, goal="largest")
    return Truth(problem, problem.as_means(means), title=f"given, {problem.n_plans} plans")


def _top_k(*, n_arms: int, k: int, seed: int, spread: float = 0.5, probes: str = "arms") -> Truth:
    problem: Problem = top_k_family([f"arm {s}" for s in range(n_arms)], k, goal="largest").problem(
        every=True, noise=1
    )
    if probes != "arms":
        problem = Problem(problem.plans, arms=problem.arm_names, measure=probes, noise=1, goal="largest")
    means = spread * np.random.default_rng(seed).standard_normal(n_arms)
    return Truth(problem, means, title=f"best {k} of {n_arms} arms, seed {seed}")


def _network(*, shape: str, size: int, seed: int, plans: str = "listed") -> Truth:
    """Grid paths, spanning trees of a complete graph or matchings; means N(0, 1)."""
    names = [str(s) for s in range(size)]
    if shape == "paths":
        cells = [(i, j) for i in range(size) for j in range(size)]
        links = [(a, b) for a in cells for b in ((a[0] + 1, a[1]), (a[0], a[1] + 1)) if max(b) < size]
        family = path_family([(str(a), str(b)) for a, b in links], str(cells[0]), str(cells[-1]))
    elif shape == "trees":
        family = tree_family([(a, b) for k, a in enumerate(names) for b in names[k + 1 :]])
    elif shape == "matchings":
        family = matching_family(names, names, goal="smallest")
    else:
        raise ParameterError(f"shape is paths, trees or matchings, got {shape!r}", field="shape")
    problem = family.problem(every=True, noise=1) if plans == "listed" else family.oracle_problem(noise=1)
    means = np.random.default_rng(seed).standard_normal(problem.n_arms)
    return Truth(problem, means, title=f"{shape}, size {size}, seed {seed}")


def _rectangle(*, m: int, n: int, seed: int) -> Truth:
    """All transports between m and n cities; supplies and demands uniform, normalised."""
    from surepick.problems.cities import city_hours

    rng = np.random.default_rng(seed)
    supply, demand = rng.uniform(0, 1, m), rng.uniform(0, 1, n)
    hours = city_hours("great-circle").numbers[np.ix_(rng.permutation(9)[:m], rng.permutation(9)[:n])]
    rows = np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])
    totals = np.concatenate([supply / supply.sum(), demand / demand.sum()])
    problem = Polytope(A_eq=rows, b_eq=totals, goal="smallest", noise=1)
    return Truth(problem, hours.ravel(), title=f"transport {m} x {n}, seed {seed}")


def _mix(*, seed: int) -> Truth:
    rng = np.random.default_rng(seed)
    use = rng.uniform(0.1, 1, (4, 10))  # resources x products
    problem = Polytope(
        A_ub=use, b_ub=use.sum(1) * rng.uniform(0.2, 0.4, 4), upper=1.0, noise=1, goal="largest"
    )
    return Truth(problem, use.mean(0) * rng.uniform(0.7, 1.3, 10), title=f"product mix, seed {seed}")


def _literature(build: Callable[..., tuple[Any, FloatArray]], title: str) -> Callable[..., Truth]:
    """Return a builder of a published instance, whose parameters become part of its title."""

    def builder(**parameters: Any) -> Truth:
        words = ", ".join(f"{name} {value}" for name, value in parameters.items())
        return Truth(*build(**parameters), title=f"{title}, {words}")

    return builder


_KINDS: dict[str, Callable[..., Truth]] = {
    "knapsack": knapsack_instance,
    "transport": _transport,
    "top_k": _top_k,
    "network": _network,
    "rectangle": _rectangle,
    "mix": _mix,
    "soare": _literature(probe_cases.soare, "Soare"),
    "sphere": _literature(probe_cases.sphere, "vectors on a sphere"),
    "transductive": _literature(probe_cases.transductive, "transductive"),
    "published_tree": _literature(play_cases.published_tree, "spanning trees"),
    "given": _given,
}


def problem_builder(spec: Spec) -> Callable[..., Truth]:
    """Return the function that builds problems of the kind that the spec names."""
    kind = str(spec.get("kind"))
    if kind not in _KINDS:
        raise ParameterError(
            f"there is no kind of problem named {kind!r}; {suggestion(kind, _KINDS)}", field="problem"
        )
    return _KINDS[kind]
