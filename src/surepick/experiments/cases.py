"""A case: one problem, one policy, one seed of the noise and a budget, as data with a stable key."""

from __future__ import annotations

import contextlib
import io
import json
import math
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from surepick._version import __version__
from surepick.core.guarantee import Promise
from surepick.core.policy import known_deviation
from surepick.errors import ParameterError
from surepick.experiments.specs import (
    Spec,
    instance_from_spec,
    policy_from_spec,
    policy_kind,
    policy_spec,
    problem_builder,
)
from surepick.limits.limit import limit
from surepick.limits.value import Limit, fewest
from surepick.problems.truth import Truth
from surepick.sessions import codec
from surepick.simulation.environments import Gaussian
from surepick.simulation.outcome import State
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
        """Refuse a case that cannot run: an unknown name, a negative seed, no budget."""
        problem_builder(self.problem)
        policy_kind(self.policy)
        if self.seed < 0:
            raise ParameterError(f"the seed of a case is 0 or more, got {self.seed}", field="seed")
        if self.budget < 1:
            raise ParameterError(f"the budget of a case is 1 or more, got {self.budget}", field="budget")

    @cached_property
    def key(self) -> str:
        """Sixteen hexadecimal digits; equal for equal cases, on every machine."""
        return codec.fingerprint(self.to_json(), codec.SHORT)

    def to_json(self) -> dict[str, Any]:
        """Return the case as JSON values."""
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
        """Return the case that these JSON values describe."""
        return cls(data["problem"], data["policy"], data["seed"], data["budget"])


@dataclass(frozen=True)
class Row:
    """The result of a case; `correct` is None when the budget was spent before an answer.

    `instance` is a fingerprint of plans and means: rows that are compared must share it.
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
    loss: float | None  # how much worse than the best plan the leader is; None without a leader
    second_gap: float | None  # how much worse than the best plan the second best is
    seconds: float
    cpu_seconds: float  # of the run alone, without building the problem

    @property
    def cut_off(self) -> bool:
        """Whether the budget ended the run, so that its measurements are a lower bound."""
        return self.status not in (State.CONFIDENT, State.DONE)

    @property
    def proved(self) -> bool:
        """Whether the policy's guarantee has a proof."""
        return Promise.read(self.guarantee).proved

    @property
    def limit(self) -> float:
        """The lower bound on average measurements at this delta; infinite for ties, NaN without a delta."""
        if "delta" not in self.parameters:
            return math.nan
        return fewest(self.characteristic_time[0], self.n_relevant, self.parameters["delta"])

    @property
    def multiple(self) -> float:
        """Measurements as a multiple of the limit."""
        return self.n_measurements / self.limit


def run_case(case: Case) -> Row:
    """Run the case in this process; the same case gives the same row, apart from its seconds.

    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> row = run_case(Case(spec, {"policy": "CombGapE", "radius": "published"}))
    >>> row.status, row.correct, row.best
    ('done', True, 0)
    """
    case.check()
    began = time.perf_counter()
    found = prepared(case.problem)
    truth, problem, means = found.instance, found.instance.problem, found.instance.true_means
    policy = policy_from_spec(case.policy, truth)
    # with probes the noise is that of their readings, and the environment knows it
    deviation = None if problem.probes is not None else known_deviation(problem, plays=True)
    environment = Gaussian(means) if deviation is None else Gaussian(means, deviation)
    cpu = time.process_time()
    outcome = simulate(problem, environment, policy=policy, seed=case.seed, budget=case.budget)
    cpu = time.process_time() - cpu
    return Row(
        case=case,
        status=str(outcome.state),
        plan=outcome.plan if isinstance(outcome.plan, int) else None,  # unlisted plans have no number
        lead=outcome.leader if isinstance(outcome.leader, int) else None,
        best=found.limit.best if isinstance(found.limit.best, int) else -1,
        correct=outcome.correct,
        n_measurements=outcome.n_measured,
        n_rounds=outcome.n_rounds,
        counts=tuple(outcome.counts.tolist()),
        n_plans=problem.n_plans or 0,
        n_arms=problem.n_arms,
        n_relevant=found.limit.once.n,
        characteristic_time=(found.limit.time.lower, found.limit.time.upper),
        instance=found.fingerprint,
        description=truth.title,
        parameters=policy_spec(outcome.policy),
        guarantee=outcome.guarantee,
        versions=_versions(),
        loss=outcome.loss,
        second_gap=found.second_gap,
        seconds=round(time.perf_counter() - began, 6),
        cpu_seconds=round(cpu, 6),
    )


def run_in_worker(case: Case) -> Row:
    """Run the case with standard error closed: messages of many workers would drown the progress."""
    with contextlib.redirect_stderr(io.StringIO()):
        return run_case(case)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A problem built from its spec, with what is known of it and no policy sees."""

    instance: Truth
    limit: Limit
    second_gap: float | None  # of the best plan to the second best, where plans are listed
    fingerprint: str


def prepared(problem: Spec) -> Prepared:
    """Return the instance of a spec; the last few are kept, since all policies meet the same one.

    >>> prepared({"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0.5]}).second_gap
    0.5
    """
    return _build(codec.dumps(dict(problem)))


@lru_cache(maxsize=8)
def _build(spec: str) -> Prepared:
    instance = instance_from_spec(json.loads(spec))
    problem, means = instance.problem, instance.true_means
    second_gap = None
    content = np.asarray(means, dtype=float).tobytes()
    if problem.is_listed:
        values = problem.sign * problem.values(means)
        second_gap = float(values.max() - np.partition(values, -2)[-2])
        plans = problem.plans
        content = (plans if isinstance(plans, np.ndarray) else plans.toarray()).tobytes() + content
    else:
        content = codec.dumps(codec.problem_to_json(problem)).encode() + content
    return Prepared(instance, limit(problem, means), second_gap, codec.digest(content, codec.SHORT))


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {"surepick": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "scipy", "numba", "POT"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
