"""Problems and policies as JSON, and fingerprints of them."""

from __future__ import annotations

import base64
import copy
import dataclasses
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import numpy as np

from surepick.core.base_problem import SUB_GAUSSIAN_NOISE
from surepick.core.given.probes import ARMS, PLAN_ARMS
from surepick.core.oracle_problem import TRIAL_TOLERANCE, AnyProblem, Best, OracleProblem, Trial, absent
from surepick.core.policy import Policy
from surepick.core.polytopes.polytope import POLYTOPE, polytope_from
from surepick.core.probes import Entries, Probes
from surepick.core.problem import Problem
from surepick.errors import FileError, MissingFunctionError, ParameterError, SessionError, SurepickError
from surepick.policies import policy_named

SHORT = 16  # digits of a fingerprint where forgery is no concern, such as rows of experiments
COUNT_TOLERANCE = 1e-9  # of a number of plans: what another machine may round otherwise
_ARRAY = "ndarray"
FUNCTION = "function"  # the kind of oracle that no file keeps

Json = dict[str, Any]


# Compact JSON text: the same value gives the same text, and NaN or infinity are refused.
dumps = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False).encode


def fingerprint(value: object, digits: int | None = None) -> str:
    """Return SHA-256 of the value's JSON text in hexadecimal digits, all or the first of them.

    >>> fingerprint({"a": 1}) == fingerprint({"a": 1}), fingerprint({"a": 1}) == fingerprint({"a": 2})
    (True, False)
    """
    return digest(dumps(value).encode(), digits)


def digest(data: bytes, digits: int | None = None) -> str:
    """Return SHA-256 in hexadecimal digits, all or the first of them.

    >>> len(digest(b"a")), len(digest(b"a", SHORT)), digest(b"a") == digest(b"b")
    (64, 16, False)
    """
    return hashlib.sha256(data).hexdigest()[:digits]


def problem_to_json(problem: AnyProblem) -> Json:
    """The problem as JSON values; every number survives to the last bit.

    A family of plans is kept by its kind and parameters. A problem around a function of the user's own is
    kept without the function, with its answers to a few weights, by which it is known when it comes back.

    >>> problem = Problem([[1, 0], [0, 2.5]], arms=["road", "rail"], goal="largest")
    >>> problem_from_json(problem_to_json(problem)).plans.tolist()
    [[1.0, 0.0], [0.0, 2.5]]
    """
    scale, recipe = problem.noise_scale, None if problem.is_listed else problem.recipe()
    if problem.is_listed:
        plans: Json = {
            "plans": _rows_to_json(problem.plans),
            "plan_names": list(problem.plan_names),
            "duplicates": [list(pair) for pair in problem.duplicates],
        }
    elif recipe is not None:
        plans = {"n_plans": problem.n_plans, "oracle": dict(recipe)}
    else:
        trials = [{"weights": list(trial.weights), "plan": list(trial.plan)} for trial in problem.trials]
        within = {} if problem.best_within is None else {"best_within": True}
        plans = {"n_plans": problem.n_plans, "oracle": {"kind": FUNCTION, "probes": trials, **within}}
    found = {
        **plans,
        "noise_scale": None if scale is None else scale.tolist(),
        "costs": problem.costs.tolist(),
        "arm_names": list(problem.arm_names),
        "minimize": problem.minimize,
    }
    # the rest only where there is some: problems without it keep their fingerprints
    if problem.probes is not None:
        found["probes"] = _probes_to_json(problem.probes)
    if problem.plays:
        found["plays"] = True
    if problem.bounds is not None:
        found["bounds"] = problem.bounds.tolist()
    if problem.mean_bounds is not None:
        ends = zip(problem.arm_names, problem.mean_bounds.tolist(), strict=True)
        found["known"] = {name: pair for name, pair in ends if math.isfinite(pair[0])}
    if problem.noise_kind != SUB_GAUSSIAN_NOISE:
        found["noise"] = problem.noise_kind
    if problem.setup_cost:
        found["setup_cost"] = problem.setup_cost
    return found


def problem_from_json(data: Mapping[str, Any], oracle: Best | OracleProblem | None = None) -> AnyProblem:
    """The problem that these JSON values describe.

    Plans that were known by a function need it again as `oracle`: the function, or the whole problem. One
    that answers otherwise than the first, or has other settings, is refused.
    """
    with _readable("problem"):
        low, high = (None, None) if data.get("bounds") is None else zip(*data["bounds"], strict=True)
        limits: Json = {"noise": data["noise_scale"], "low": low, "high": high}
        goal = "smallest" if data["minimize"] else "largest"
        settings: Json = {"goal": goal, "arms": data["arm_names"], **limits}
        if "oracle" not in data:
            if oracle is not None:
                raise ParameterError("the plans of this problem are listed; leave best and problem out")
            return _listed_from_json(data, settings)
        measured: Json = {"cost": data["costs"]}
        if "plays" in data:  # every arm holds the cost of a play
            measured = {"cost": data["costs"][0], "measure": PLAN_ARMS}
        if needs_function(data) and not isinstance(oracle, OracleProblem):
            oracle = _with_function(data, oracle, {**settings, **measured})
        if isinstance(oracle, OracleProblem):
            return _same_problem(data, oracle)
        if oracle is not None:
            raise ParameterError("the plans of this problem need no function; leave best and problem out")
        return _family_from_json(data, settings, {**limits, **measured})


def needs_function(data: Mapping[str, Any]) -> bool:
    """Return whether the plans of a problem in JSON are known by a function that is not kept with it.

    >>> needs_function(problem_to_json(Problem([[1, 0], [0, 1]], goal="largest")))
    False
    """
    return "oracle" in data and data["oracle"]["kind"] == FUNCTION


def _listed_from_json(data: Mapping[str, Any], settings: Json) -> Problem:
    plans = data["plans"]
    if plans["kind"] == "dense":
        rows = plans["rows"]
    else:
        from scipy import sparse  # slow to import, and most plans are dense

        parts = (plans["data"], plans["indices"], plans["indptr"])
        rows = sparse.csr_array(parts, shape=tuple(plans["shape"]))
    problem = Problem(
        rows,
        **settings,
        cost=data["costs"],
        plan_names=data["plan_names"],
        noise_kind=data.get("noise", SUB_GAUSSIAN_NOISE),
        setup_cost=data.get("setup_cost", 0.0),
        known=data.get("known"),
        measure=_probes_from_json(data["probes"]) if "probes" in data else ARMS,
    )
    problem.__dict__["duplicates"] = tuple((a, b) for a, b in data.get("duplicates", ()))
    return problem


def _probes_to_json(probes: Probes) -> Json:
    """Scales and costs stand beside, as those of single arms do."""
    shared = {str(o): covariance.tolist() for o, covariance in probes.covariances.items()}
    return {
        "names": list(probes.names),
        "reading_names": [list(names) for names in probes.reading_names],
        "rows": _rows_to_json(probes.entries),
        **({"covariances": shared} if shared else {}),
        **({"unknown": True} if probes.unknown else {}),
    }


def _probes_from_json(data: Mapping[str, Any]) -> Probes:
    rows, nothing = data["rows"], np.zeros(0)  # a problem has the numbers
    numbers = np.array(rows["data"], dtype=float)
    arms, starts = (np.array(rows[name], dtype=np.int64) for name in ("indices", "indptr"))
    n_rows, n_arms = map(int, rows["shape"])
    is_whole = len(starts) == n_rows + 1 and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
    is_whole = is_whole and starts[-1] == len(arms) == len(numbers)
    if not is_whole or ((arms < 0) | (arms >= n_arms)).any():
        raise ValueError("the rows of the probes do not fit their shape")
    return Probes(
        names=tuple(map(str, data["names"])),
        reading_names=tuple(tuple(map(str, own)) for own in data["reading_names"]),
        entries=Entries(numbers, arms, starts, (n_rows, n_arms)),
        costs=nothing,
        noise_scale=nothing,
        covariances={int(o): np.array(c) for o, c in data.get("covariances", {}).items()},
        unknown=bool(data.get("unknown", False)),
    )


def _family_from_json(data: Mapping[str, Any], settings: Json, measured: Json) -> OracleProblem:
    """The problem of a family of plans or of a polytope.

    The number of plans is the one that was kept: it enters decisions, and another machine may round it.
    """
    from surepick.problems.family import problem_from

    found: OracleProblem
    if data["oracle"]["kind"] == POLYTOPE:
        found = polytope_from(data["oracle"], cost=data["costs"], **settings)
    else:
        found = problem_from(data["oracle"], **measured)
    kept = data["n_plans"]
    if kept != found.n_plans and not math.isclose(kept, found.n_plans or math.nan, rel_tol=COUNT_TOLERANCE):
        raise FileError(
            f"the problem is said to have {kept} plans, and its family has {found.n_plans}", field="n_plans"
        )
    found.__dict__["n_plans"] = kept
    return found.with_settings(known=data.get("known"), noise_kind=data.get("noise", SUB_GAUSSIAN_NOISE))


def _with_function(data: Mapping[str, Any], oracle: Best | None, settings: Json) -> OracleProblem:
    if oracle is None:
        raise MissingFunctionError(
            "the plans are known by a Python function, which no file keeps: open it from Python with "
            "Session.load(..., problem=function); commands can only show it"
        )
    settings |= {name: data.get(name) for name in ("n_plans", "known")}
    if data["oracle"].get("best_within"):
        if oracle is not absent:
            raise MissingFunctionError(
                "the problem was kept with a best_within too; give all of it as problem="
            )
        settings["best_within"] = absent
    return OracleProblem(oracle, len(data["arm_names"]), **settings)


def _same_problem(data: Mapping[str, Any], given: OracleProblem) -> OracleProblem:
    """The given problem, refused if it is another than the one that was kept."""
    problem = copy.copy(given).without_asked_plays()
    if needs_function(data):
        kept = [Trial(tuple(trial["weights"]), tuple(trial["plan"])) for trial in data["oracle"]["probes"]]
        for weights, plan in kept if problem.can_decide else ():
            if len(plan) != problem.n_arms:
                raise ParameterError(
                    f"the problem that was kept has {len(plan)} arms, got one of {problem.n_arms}"
                )
            answer = problem.best_plan(weights)
            if np.abs(answer - plan).max() > TRIAL_TOLERANCE * max(1.0, float(np.abs(plan).max())):
                raise ParameterError(
                    "this is another function than the one that the problem was kept with: for the weights "
                    f"that were tried then it gave {problem.name_of(plan)!r}, and now it gives "
                    f"{problem.name_of(answer)!r}"
                )
        problem.__dict__["trials"] = tuple(kept)  # the fingerprint is that of the first function
    mine = problem_to_json(problem)
    for name in sorted(mine.keys() | data.keys()):
        if mine.get(name) != data.get(name):
            values = f"{data.get(name)!r}, got {mine.get(name)!r}"
            shown = f": {values}" if len(values) < 200 else ""
            raise ParameterError(
                f"the problem was kept with another {name}{shown}; give the one it began with"
            )
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
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"the parameters of {policy.name} must be numbers, text, lists or None to be kept in a file, "
            f"got {parameters!r}"
        ) from None
    return {"name": policy.name, "version": policy.version, "parameters": parameters}


class VersionError(SessionError):
    """This surepick has the policy in another version, which may decide otherwise."""


def policy_from_json(data: Mapping[str, Any]) -> Policy:
    """The policy that these JSON values describe; refused if this surepick has it in another version."""
    with _readable("policy"):
        kind, kept = policy_named(data["name"]), data["parameters"].items()
        try:
            policy = kind(
                **{name: tuple(value) if isinstance(value, list) else value for name, value in kept}
            )
            version = policy.version
        except (SurepickError, TypeError):  # its parameters may be of another version
            version = int(kind.version)
            if version == data["version"]:
                raise
        if version != data["version"]:
            raise VersionError(
                f"this was begun with {data['name']} version {data['version']}; this surepick has version "
                f"{version}, which may decide otherwise. Use the one that began it, or import its values "
                "into a new session"
            )
        return policy


def finite_or_none(value: Any) -> Any:
    """The value, with None for NaN and infinities, which JSON does not have, at any depth.

    >>> finite_or_none({"gap": float("inf"), "counts": (2, 3)})
    {'gap': None, 'counts': [2, 3]}
    """
    if isinstance(value, Mapping):
        return {key: finite_or_none(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rows_to_json(plans: Any) -> Json:
    if isinstance(plans, np.ndarray):
        return {"kind": "dense", "rows": plans.tolist()}
    parts = {name: getattr(plans, name).tolist() for name in ("data", "indices", "indptr")}
    return {"kind": "sparse", "shape": list(plans.shape), **parts}


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Within, JSON that is not what surepick writes is a `FileError`, whatever it is."""
    try:
        yield
    except SurepickError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FileError(
            f"this is no {what} as surepick writes it ({type(error).__name__}: {error}); it was changed",
            field=what,
        ) from None


def arrays_to_json(value: Any) -> Any:
    """Arrays and numbers at any depth of lists and of dictionaries with text as keys, as JSON values.

    >>> arrays_from_json(arrays_to_json({"counts": np.arange(3), "cash": 0.5}))
    {'counts': array([0, 1, 2]), 'cash': 0.5}
    """
    if isinstance(value, np.ndarray):
        text = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        return {_ARRAY: value.dtype.str, "shape": list(value.shape), "bytes": text}
    if isinstance(value, dict):
        return {str(name): arrays_to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [arrays_to_json(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a state holds arrays, numbers, text and containers of them, not {type(value).__name__}")


def arrays_from_json(kept: Any) -> Any:
    """Invert `arrays_to_json`; tuples come back as lists."""
    if isinstance(kept, list):
        return [arrays_from_json(item) for item in kept]
    if not isinstance(kept, Mapping):
        return kept
    if _ARRAY not in kept:
        return {name: arrays_from_json(item) for name, item in kept.items()}
    flat = np.frombuffer(base64.b64decode(kept["bytes"]), dtype=np.dtype(kept[_ARRAY]))
    return flat.reshape(kept["shape"]).copy()
