"""Problems and policies as small JSON values: what a case is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from surepick.core.policy import Policy
from surepick.core.problem import Problem
from surepick.core.tables import Table, read_table
from surepick.errors import ParameterError, suggestion
from surepick.experiments import play_cases, probe_cases
from surepick.policies import policy_named
from surepick.problems import Instance, knapsack_instance, top_k_family, transport_instance, whole_transport
from surepick.problems.truth import Truth
from surepick.sessions import codec

Spec: TypeAlias = Mapping[str, Any]

# The value of a policy parameter that stands for the true largest gap of the instance: what Peace is told.
LARGEST_GAP = "largest gap"
# Likewise for the Euclidean norm of the true means: what LinGapE is told.
MEANS_NORM = "norm of the means"
TOLD = (LARGEST_GAP, MEANS_NORM)
ALL_PLANS = "all"  # the `plans` of a transport that is not about a list


def policy_spec(policy: Policy) -> dict[str, Any]:
    """The policy as JSON values: its name, its version and its parameters.

    >>> from surepick.policies import CombGapE
    >>> policy_spec(CombGapE(delta=0.1))["policy"], policy_spec(CombGapE(delta=0.1))["delta"]
    ('CombGapE', 0.1)
    """
    settings = dataclasses.fields(policy)  # type: ignore[arg-type]
    parameters = {field.name: getattr(policy, field.name) for field in settings}
    return {"policy": policy.name, "version": policy.version, **parameters}


def policy_from_spec(spec: Spec, instance: Truth | None = None) -> Policy:
    """The policy that the spec describes; what it is `TOLD` is filled in from the instance.

    >>> policy_from_spec({"policy": "CombGapE", "delta": 0.1}).delta
    0.1
    """
    kind = _policy_kind(spec)
    parameters = {name: value for name, value in spec.items() if name not in ("policy", "version")}
    for name, value in parameters.items():
        if value in TOLD:
            parameters[name] = _told(value, instance, f"{name} of {kind.name}")
    try:
        policy = kind(**parameters)
    except TypeError:
        known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        raise ParameterError(
            f"policy {kind.name} takes the parameters {', '.join(known)}; got {', '.join(parameters)}"
        ) from None
    asked = spec.get("version", policy.version)
    if asked != policy.version:
        raise ParameterError(
            f"the spec asks for version {asked} of {kind.name} and this surepick has version "
            f"{policy.version}, which decides differently; drop the version from the spec, or install the "
            "surepick that had it"
        )
    return policy


def _policy_kind(spec: Spec) -> type[Policy]:
    if "policy" not in spec:
        raise ParameterError(f"a policy spec names its policy, as in {{'policy': 'CombGapE'}}; got {spec!r}")
    return policy_named(str(spec["policy"]))


def _told(value: str, instance: Truth | None, what: str) -> float:
    if instance is None or instance.means is None or not instance.problem.is_listed:
        raise ParameterError(f"{what} is the {value!r} of an instance, and no instance was given")
    if value == MEANS_NORM:
        return float(np.linalg.norm(instance.means))
    return float(np.ptp(instance.problem.values(instance.means)))


def instance_from_spec(spec: Spec) -> Truth:
    """The problem that the spec describes, with its true means; the same for the same spec.

    Kinds: `knapsack` (n_items, seed) and `transport` (seed, distances, n_draws, plans) are the paper's;
    `top_k` (n_arms, k, seed, spread, probes) chooses k arms whose means are drawn from N(0, spread^2);
    `soare` (d, angle), `sphere` (n, d, seed) and `transductive` (d, angle) measure vectors; trees of a
    `published_tree` (name) are played; `given` has its plans and means in the spec, and whatever else
    `Problem` takes.

    >>> instance_from_spec({"kind": "knapsack", "n_items": 5, "seed": 3}).problem.n_arms
    5
    >>> instance_from_spec({"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}).problem.n_plans
    2
    """
    builder = _builder(spec)
    parameters = {name: value for name, value in spec.items() if name != "kind"}
    try:
        return builder(**parameters)
    except TypeError as error:
        raise ParameterError(
            f"the {spec['kind']} spec {codec.dumps(dict(spec))} is not right: {error}"
        ) from None


def hours_spec(path: str | Path) -> dict[str, Any]:
    """The travel hours of a CSV file (header: demanders; first column: suppliers), for a problem spec."""
    table = read_table(path)
    return {
        "suppliers": list(table.row_names),
        "demanders": list(table.column_names),
        "numbers": table.numbers.tolist(),
    }


def _transport(*, distances: str | Spec = "great-circle", plans: str = "listed", **parameters: Any) -> Truth:
    """The paper's transport; `distances` is the name of a table of hours, or the hours themselves.

    With `plans` "all" every transport is a plan, not those of the list alone.
    """
    if plans == ALL_PLANS:
        return whole_transport(parameters["seed"], distances=_hours(distances))
    return transport_instance(distances=_hours(distances), **parameters)


def _hours(distances: Any) -> Any:
    """The name of a table of hours, or the table that the spec holds."""
    if isinstance(distances, str):
        return distances
    numbers = np.array(distances["numbers"], dtype=float)
    return Table(numbers, tuple(distances["suppliers"]), tuple(distances["demanders"]))


def _given(*, plans: Any, means: Any, **parameters: Any) -> Instance:
    problem = Problem(plans, **parameters)
    return Instance(problem, problem.as_means(means), f"given, {problem.n_plans} plans")


def _top_k(*, n_arms: int, k: int, seed: int, spread: float = 0.5, probes: str = "arms") -> Instance:
    """The best k of arms with means from N(0, spread^2); noise N(0, 1)."""
    problem: Problem = top_k_family([f"arm {s}" for s in range(n_arms)], k).problem(every=True)
    if probes != "arms":
        problem = Problem(problem.plans, arm_names=problem.arm_names, probes=probes)
    means = spread * np.random.default_rng(seed).standard_normal(n_arms)
    return Instance(problem, means, f"best {k} of {n_arms} arms, seed {seed}")


def _soare(*, d: int, angle: float) -> Instance:
    return Instance(*probe_cases.soare(d, angle), f"Soare, d = {d}, angle {angle:g}")


def _sphere(*, n: int, d: int, seed: int) -> Instance:
    return Instance(*probe_cases.sphere(n, d, seed), f"{n} vectors on a sphere, d = {d}, seed {seed}")


def _transductive(*, d: int, angle: float = 0.1) -> Instance:
    return Instance(*probe_cases.transductive(d, angle), f"transductive, 2 x {d} vectors, angle {angle:g}")


def _published_tree(*, name: str) -> Truth:
    return Truth(*play_cases.published_tree(name), title=f"spanning trees of {name}, played")


_KINDS: dict[str, Callable[..., Truth]] = {
    "knapsack": knapsack_instance,
    "transport": _transport,
    "top_k": _top_k,
    "soare": _soare,
    "sphere": _sphere,
    "transductive": _transductive,
    "published_tree": _published_tree,
    "given": _given,
}


def _builder(spec: Spec) -> Callable[..., Truth]:
    kind = str(spec.get("kind"))
    if kind not in _KINDS:
        raise ParameterError(f"there is no kind of problem named {kind!r}; {suggestion(kind, _KINDS)}")
    return _KINDS[kind]


def check_specs(problem: Spec, policy: Spec) -> None:
    """Refuse names that do not exist before anything is built or run."""
    _builder(problem)
    _policy_kind(policy)
