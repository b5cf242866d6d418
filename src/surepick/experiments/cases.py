"""A case: one problem, one policy, one seed of the noise and a budget, as data with a stable key; its row."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import math
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from surepick._version import __version__
from surepick.core.policy import Policy, known_deviation
from surepick.errors import ParameterError
from surepick.experiments.instances import Instance, Spec, instance_from_spec, problem_builder
from surepick.policies import parse_policy, parse_settings, policy_named
from surepick.sessions import codec
from surepick.simulation.environments import Gaussian
from surepick.simulation.outcome import State
from surepick.simulation.simulate import simulate

# Values of policy parameters that stand for a property of the instance, which a user does not have: Peace
# needs a bound on the largest gap, LinGapE one on the norm of the means.
LARGEST_GAP, MEANS_NORM = "largest gap", "norm of the means"
PROPERTIES: Mapping[str, Callable[[Instance], Any]] = {
    LARGEST_GAP: lambda found: np.ptp(found.problem.values(found.means)),
    MEANS_NORM: lambda found: np.linalg.norm(found.means),
}


@dataclass(frozen=True, eq=False)
class Case:
    """A run to be made: everything that decides its outcome, and nothing else.

    - problem: a spec, as `instance_from_spec` takes it.
    - policy: its name, with settings: "CombGapE:radius=published".
    - seed: of the noise and of the policy's own draws.
    - delta, epsilon: of the policy, where the text does not state them.

    >>> case = Case({"kind": "knapsack", "n_items": 5, "seed": 3}, "CombGapE", seed=1)
    >>> case == Case(case.problem, case.policy, seed=1), case == Case(case.problem, case.policy, seed=2)
    (True, False)
    """

    problem: Spec
    policy: str
    seed: int = 0
    budget: int = 10**7
    delta: float = 0.05
    epsilon: float = 0.0

    def check(self) -> None:
        """Refuse a case that cannot run: an unknown name, a negative seed, no budget."""
        problem_builder(str(self.problem.get("kind")))
        policy_named(parse_settings(self.policy)[0])
        for name, least in (("seed", 0), ("budget", 1)):
            if getattr(self, name) < least:
                raise ParameterError(
                    f"the {name} of a case is {least} or more, got {getattr(self, name)}", field=name
                )

    @cached_property
    def key(self) -> str:
        """Sixteen hexadecimal digits; equal for equal cases, on every machine."""
        return codec.fingerprint(dataclasses.asdict(self), codec.SHORT)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Case) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class Row:
    """The result of a case; `correct` is None when the budget was spent before an answer."""

    case: Case
    state: str
    plan: int | None
    leader: int | None
    correct: bool | None
    n_measured: int
    counts: tuple[int, ...] = field(repr=False)
    limit: float | None  # least measurements on average at this delta; None for ties, or without a delta
    instance: str  # fingerprint of plans and means: rows that are compared must share it
    proved: bool  # whether the policy's guarantee has a proof
    loss: float | None  # how much worse than the best plan the leader is; None without a leader
    second_gap: float | None  # how much worse than the best plan the second best is
    versions: Spec
    seconds: float
    cpu_seconds: float  # of the run alone, without building the problem

    @property
    def cut_off(self) -> bool:
        """Whether the budget ended the run, so that its measurements are a lower bound."""
        return self.state not in (State.CONFIDENT, State.DONE)

    @property
    def wrong_lead(self) -> bool:
        """Whether the leader at the end is not the best plan."""
        return self.loss is None or self.loss > 0


def run_case(case: Case) -> Row:
    """Run the case in this process; the same case gives the same row, apart from its seconds.

    >>> spec = {"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]}
    >>> row = run_case(Case(spec, "CombGapE:radius=published"))
    >>> row.state, row.correct, row.plan
    ('done', True, 0)
    """
    case.check()
    began = time.perf_counter()
    found = instance_from_spec(case.problem)
    problem, means = found.problem, found.means
    policy = policy_of(case.policy, found, delta=case.delta, epsilon=case.epsilon)
    # with probes the noise is that of their readings, and the environment knows it
    deviation = None if problem.probes is not None else known_deviation(problem, plays=True)
    environment = Gaussian(means) if deviation is None else Gaussian(means, deviation)
    cpu = time.process_time()
    outcome = simulate(problem, environment, policy=policy, seed=case.seed, budget=case.budget)
    cpu = time.process_time() - cpu
    least = found.limit.at(policy.delta) if policy.delta < 1 else math.inf
    return Row(
        case=case,
        state=str(outcome.state),
        plan=outcome.plan if isinstance(outcome.plan, int) else None,  # unlisted plans have no number
        leader=outcome.leader if isinstance(outcome.leader, int) else None,
        correct=outcome.correct,
        n_measured=outcome.n_measured,
        counts=tuple(outcome.counts.tolist()),
        limit=least if math.isfinite(least) else None,
        instance=found.fingerprint,
        proved=outcome.policy.guarantee.proved,
        loss=outcome.loss,
        second_gap=found.second_gap,
        versions=_versions(),
        seconds=round(time.perf_counter() - began, 6),
        cpu_seconds=round(cpu, 6),
    )


def run_in_worker(case: Case) -> Row:
    """Run the case with standard error closed: messages of many workers would drown the progress."""
    with contextlib.redirect_stderr(io.StringIO()):
        return run_case(case)


def policy_of(text: str, found: Instance, *, delta: float, epsilon: float) -> Policy:
    """Return the policy that the text stands for, with the properties that it names of the instance.

    >>> found = instance_from_spec({"kind": "given", "plans": [[1, 0], [0, 1]], "means": [1, 0]})
    >>> policy_of("Peace:max_gap=largest gap", found, delta=0.1, epsilon=0.0)
    Peace(delta=0.1, max_gap=1.0)
    """
    for name, value in PROPERTIES.items():
        if name in text:
            if not found.problem.is_listed:
                raise ParameterError(f"the {name} is known where plans are listed", field="policy")
            text = text.replace(name, repr(float(value(found))))
    return parse_policy(text, delta=delta, epsilon=epsilon)


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    found = {"surepick": __version__, "python": platform.python_version(), "machine": platform.machine()}
    for package in ("numpy", "scipy", "numba"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
