"""Problems, policies and outcomes as versioned JSON, and fingerprints of them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from scipy import sparse

from surepick.errors import FileError, ParameterError
from surepick.policies import policy_named
from surepick.policy import Policy
from surepick.problem import Problem
from surepick.simulation import Outcome

FORMAT = 1

Json = dict[str, Any]


def dumps(value: object) -> str:
    """Compact JSON text; the same value gives the same text, and NaN or infinity are refused.

    >>> dumps({"b": 1, "a": 0.1})
    '{"a":0.1,"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def fingerprint(value: object) -> str:
    """Sixteen hexadecimal digits that two different values share only by a miracle.

    >>> fingerprint({"a": 1}) == fingerprint({"a": 1}), fingerprint({"a": 1}) == fingerprint({"a": 2})
    (True, False)
    """
    return digest(dumps(value).encode())


def digest(data: bytes) -> str:
    """Sixteen hexadecimal digits of SHA-256.

    >>> len(digest(b"a")), digest(b"a") == digest(b"b")
    (16, False)
    """
    return hashlib.sha256(data).hexdigest()[:16]


def problem_to_json(problem: Problem) -> Json:
    """The problem as JSON values; every number survives to the last bit.

    >>> problem = Problem([[1, 0], [0, 2.5]], arm_names=["road", "rail"])
    >>> problem_from_json(problem_to_json(problem)).plans.tolist()
    [[1.0, 0.0], [0.0, 2.5]]
    """
    scale = problem.noise_scale
    return {
        "format": FORMAT,
        "plans": _plans_to_json(problem.plans),
        "noise_scale": None if scale is None else scale.tolist(),
        "costs": problem.costs.tolist(),
        "arm_names": list(problem.arm_names),
        "plan_names": list(problem.plan_names),
        "minimize": problem.minimize,
        "duplicates": [list(pair) for pair in problem.duplicates],
        # only where there are some: problems without bounds keep their fingerprints
        **({} if problem.bounds is None else {"bounds": problem.bounds.tolist()}),
    }


def problem_from_json(data: Mapping[str, Any]) -> Problem:
    """The problem that these JSON values describe."""
    _check_format(data, "problem")
    problem = Problem(
        _plans_from_json(data["plans"]),
        noise_scale=data["noise_scale"],
        costs=data["costs"],
        arm_names=data["arm_names"],
        plan_names=data["plan_names"],
        minimize=data["minimize"],
        bounds=data.get("bounds"),
    )
    object.__setattr__(problem, "duplicates", tuple((a, b) for a, b in data.get("duplicates", ())))
    return problem


def policy_to_json(policy: Policy) -> Json:
    """The policy as JSON values: its name, its version and its parameters.

    >>> from surepick.policies import CombGapE
    >>> policy_from_json(policy_to_json(CombGapE(delta=0.1))) == CombGapE(delta=0.1)
    True
    """
    parameters = {field.name: getattr(policy, field.name) for field in dataclasses.fields(cast(Any, policy))}
    try:
        dumps(parameters)
    except (TypeError, ValueError):
        raise ParameterError(
            f"the parameters of {policy.name} must be numbers, text, lists or None to be kept in a file, "
            f"got {parameters!r}"
        ) from None
    return {"format": FORMAT, "name": policy.name, "version": policy.version, "parameters": parameters}


def policy_from_json(data: Mapping[str, Any]) -> Policy:
    """The policy that these JSON values describe; its version may have changed since, see `version`."""
    _check_format(data, "policy")
    kind = policy_named(data["name"])
    parameters = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data["parameters"].items()
    }
    try:
        return kind(**parameters)
    except TypeError as error:
        raise FileError(
            f"policy {data['name']} does not take the parameters it was kept with: {error}"
        ) from None


def outcome_to_json(outcome: Outcome) -> Json:
    """The outcome as JSON values; means of arms that were not measured are null."""
    values = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    return {
        **values,
        "format": FORMAT,
        "status": str(outcome.status),
        "counts": outcome.counts.tolist(),
        "means": [finite_or_none(mean) for mean in outcome.means.tolist()],
        "noise_scale": None if outcome.noise_scale is None else outcome.noise_scale.tolist(),
        "standing": {
            name: finite_or_none(value) for name, value in dataclasses.asdict(outcome.standing).items()
        },
        "policy": policy_to_json(outcome.policy),
    }


def finite_or_none(value: Any) -> Any:
    """The value itself, or None for NaN and infinities, which JSON does not have.

    >>> finite_or_none(float("nan")) is None, finite_or_none(2)
    (True, 2)
    """
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plans_to_json(plans: Any) -> Json:
    if isinstance(plans, np.ndarray):
        return {"kind": "dense", "rows": plans.tolist()}
    return {
        "kind": "sparse",
        "shape": list(plans.shape),
        "data": plans.data.tolist(),
        "indices": plans.indices.tolist(),
        "indptr": plans.indptr.tolist(),
    }


def _plans_from_json(data: Mapping[str, Any]) -> Any:
    if data["kind"] == "dense":
        return data["rows"]
    return sparse.csr_array((data["data"], data["indices"], data["indptr"]), shape=tuple(data["shape"]))


def _check_format(data: Mapping[str, Any], what: str) -> None:
    if data.get("format") != FORMAT:
        raise FileError(
            f"this {what} has format {data.get('format')!r} and this surepick reads format {FORMAT}; "
            "upgrade surepick to read it"
        )
