"""A case: one problem, one policy, one seed of the noise and a budget, as data with a stable key."""

from __future__ import annotations

import contextlib
import io
import json
import math
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from surepick._version import __version__
from surepick.core.arrays import FloatArray
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import known_deviation
from surepick.errors import ParameterError
from surepick.experiments.specs import (
    Spec,
    check_specs,
    instance_from_spec,
    policy_from_spec,
    policy_spec,
)
from surepick.planning.comparison import is_error, loss, rounding_of
from surepick.planning.limit import limit
from surepick.planning.limit_value import Limit, fewest
from surepick.problems.truth import Truth
from surepick.sessions import codec
from surepick.simulation.environments import Gaussian
from surepick.simulation.outcome import Outcome, Status
from surepick.simulation.simulate import simulate


@dataclass(frozen=True, eq=False)
class Case:
    """A run to be made: everything that decides its outcome, and nothing else.

    `problem` and `policy` are specs (see `specs`); `seed` is that of the noise and of the policy's own draws.

    >>> case = Case({"kind": "knapsack", "n_items": 5, "seed": 3}, {"policy": "CombGapE"}, seed=1)
    >>> case == Case(case.problem, case.policy, seed=1), case == Case(case.problem, case.policy, seed=2)
    (True, False)
    """

    problem: Spec
    policy: Spec
    seed: int = 0
    budget: int = 10**7

    def check(self) -> None:
        """Refuse a case that cannot be run: an unknown name, a negative seed, no budget."""
        check_specs(self.problem, self.policy)
        if self.seed < 0 or self.budget < 1:
            raise ParameterError(
                f"a case needs a seed of 0 or more and a budget of 1 or more, got {self.seed} and "
                f"{self.budget}"
            )

    @cached_property
    def key(self) -> str:
        """Sixteen hexadecimal digits; equal for equal cases, on every machine."""
        return codec.fingerprint(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The case as JSON values."""
        return {
            "problem": dict(self.problem),
            "policy": dict(self.policy),
            "seed": self.seed,
            "budget": self.budget,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """The case that these JSON values describe."""
        return cls(data["problem"], data["policy"], data["seed"], data["budget"])


@dataclass(frozen=True)
class Row:
    """What came of a case; `correct` is None when the budget was spent before an answer.

    `instance` is a fingerprint of plans and means, so that rows of different builds are never compared
    unnoticed.
    """

    case: Case
    status: str
    plan: int | None
    lead: int | None
    best: int
    correct: bool | None
    n_measurements: int
    n_rounds: int
    counts: tuple[int, ...] = field(repr=False)
    n_plans: int
    n_arms: int
    n_relevant: int
    characteristic_time: tuple[float, float]  # certified bracket
    instance: str
    description: str
    parameters: Spec  # the policy as it ran, with instance-dependent values filled in
    guarantee: str
    versions: Spec
    seconds: float
    loss: float | None = None  # how much worse than the best the lead is; None without a lead
    second_gap: float | None = None  # how much worse than the best the second best plan is
    cpu_seconds: float | None = None  # of the run alone, without building the problem

    @property
    def cut_off(self) -> bool:
        """Whether the budget ended the run, so that its measurements are a lower bound."""
        return self.status != Status.CONFIDENT

    @property
    def limit(self) -> float:
        """What every method needs on average at this delta; infinite when rivals tie with the best plan.

        Computed, not kept: rows of earlier versions, which kept another unit, are compared in this one. NaN
        for a policy without a delta.
        """
        if "delta" not in self.parameters:
            return math.nan
        return fewest(self.characteristic_time[0], self.n_relevant, self.parameters["delta"])

    @property
    def multiple(self) -> float:
        """Measurements as a multiple of the limit."""
        return self.n_measurements / self.limit


def run_case(case: Case) -> Row:
    """Run the case here and now; the same case gives the same row, but for its seconds.

    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> row = run_case(Case(spec, {"policy": "CombGapE", "radius": "published"}))
    >>> row.status, row.correct, row.best
    ('confident', True, 0)
    """
    case.check()
    began = time.perf_counter()
    found = prepared(case.problem)
    policy = policy_from_spec(case.policy, found.instance)
    environment = _environment(found)
    cpu = time.process_time()
    outcome = simulate(found.instance.problem, policy, environment, seed=case.seed, budget=case.budget)
    cpu = time.process_time() - cpu
    row = _row(case, found, environment, outcome, time.perf_counter() - began)
    return replace(row, cpu_seconds=round(cpu, 6))


def _environment(found: Prepared) -> Gaussian:
    """Gaussian noise of the scale that the problem says; with probes that of their readings."""
    problem = found.instance.problem
    if problem.probes is not None:
        return Gaussian(found.means)
    return Gaussian(found.means, known_deviation(problem, plays=True))


def run_in_worker(case: Case) -> Row:
    """Run the case without a word: messages of a hundred workers would drown the progress of the run."""
    with contextlib.redirect_stderr(io.StringIO()):
        return run_case(case)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem that was built from its spec, with what no policy sees of it."""

    instance: Truth
    means: FloatArray
    limit: Limit
    second_gap: float | None  # of the best plan to the second best, where plans are listed
    fingerprint: str


def prepared(problem: Spec) -> Prepared:
    """The instance of a spec; the last few are kept, since all policies of a comparison see the same one.

    >>> prepared({"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0.5]}).second_gap
    0.5
    """
    return _build(codec.dumps(dict(problem)))


@lru_cache(maxsize=8)
def _build(problem: str) -> Prepared:
    instance = instance_from_spec(json.loads(problem))
    assert instance.means is not None
    second_gap = None
    if instance.problem.is_listed:
        values = instance.problem.sign * instance.problem.values(instance.means)
        second_gap = float(values.max() - np.partition(values, -2)[-2])
    least = limit(instance.problem, instance.means)
    return Prepared(instance, instance.means, least, second_gap, _fingerprint(instance))


def _fingerprint(instance: Truth) -> str:
    means = np.asarray(instance.means, dtype=float).tobytes()
    if not instance.problem.is_listed:
        return codec.digest(codec.dumps(codec.problem_to_json(instance.problem)).encode() + means)
    plans = instance.problem.plans
    dense = plans if isinstance(plans, np.ndarray) else plans.toarray()
    return codec.digest(dense.tobytes() + means)


def _row(case: Case, built: Prepared, environment: Gaussian, outcome: Outcome, seconds: float) -> Row:
    problem, found, policy = built.instance.problem, built.limit, outcome.policy
    return Row(
        case=case,
        status=str(outcome.status),
        plan=outcome.plan if isinstance(outcome.plan, int) else None,  # plans are listed here
        lead=outcome.lead if isinstance(outcome.lead, int) else None,
        best=found.best if isinstance(found.best, int) else -1,
        correct=None if outcome.plan is None else not is_error(problem, environment, outcome),
        n_measurements=outcome.n_measurements,
        n_rounds=outcome.n_rounds,
        counts=tuple(outcome.counts.tolist()),
        n_plans=problem.n_plans or 0,
        n_arms=problem.n_arms,
        n_relevant=found.n_relevant,
        characteristic_time=(found.lower, found.upper),
        instance=built.fingerprint,
        description=built.instance.description,
        parameters=policy_spec(policy),
        guarantee=outcome.guarantee,
        versions=_versions(),
        seconds=round(seconds, 6),
        loss=_loss(problem, environment, outcome),
        second_gap=built.second_gap,
    )


def _loss(problem: AnyProblem, environment: Gaussian, outcome: Outcome) -> float | None:
    """How much worse than the best the lead is; 0 for plans that tie with it up to rounding."""
    if outcome.lead is None:
        return None
    lost = loss(problem, outcome.lead, environment.means)
    return lost if lost > rounding_of(problem, environment, outcome.lead) else 0.0


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {"surepick": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "scipy", "numba", "POT"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
