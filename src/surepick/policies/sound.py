"""What policies with a proof share: their settings, the checks of these, and the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.guarantee import SUB_GAUSSIAN, Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy, check_delta, check_epsilon
from surepick.core.polytopes.polytope import Polytope
from surepick.errors import ParameterError, ProblemError
from surepick.policies.gap import radius as radii


class Starting(Policy):
    """A policy whose runs are of one class, as in `class LUCB(WithinPolicy, run=LUCBRun)`.

    Its name is that of the class. `_sets_only` says why plans must be sets of arms, or what to use for
    others; it is empty where any amounts will do.
    """

    _run: ClassVar[type[Any]]
    _sets_only: ClassVar[str] = ""

    def __init_subclass__(cls, *, run: type[Any] | None = None) -> None:
        super().__init_subclass__()
        if "name" not in vars(cls):
            cls.name = cls.__name__
        if run is not None:
            cls._run = run

    def start(self, problem: Any) -> Any:
        """Return a fresh run on this problem, or refuse it."""
        if self._sets_only and problem.is_listed:  # plans behind an oracle cannot all be checked
            plans = problem.plans
            entries = plans if isinstance(plans, np.ndarray) else plans.data
            odd = entries[(entries != 0) & (entries != 1)]
            if odd.size:
                raise ProblemError(
                    f"{self.name} is for plans of zeros and ones, got {odd.flat[0]:g}; {self._sets_only}",
                    field="policy",
                )
        return self._run(problem, self)


def check_setting(name: str, value: object, *, right: bool, meaning: str) -> None:
    """Refuse a setting that is not right; `meaning` says what it is and which values it may have.

    >>> check_setting("first", 3, right=True, meaning="how often every arm is measured first, 1 or more")
    """
    if not right:
        raise ParameterError(f"{name} is {meaning}, got {value!r}", field=name)


def check_choice(name: str, value: object, *choices: str) -> None:
    """Refuse a setting that is none of these words.

    >>> check_choice("variant", "paper", "paper", "authors")
    """
    if value not in choices:
        words = " or ".join(repr(choice) for choice in choices)
        raise ParameterError(f"{name} must be {words}, got {value!r}", field=name)


@dataclass(frozen=True)
class SoundPolicy(Starting):
    """The best plan, wrong with probability at most delta, whatever the sub-Gaussian noise."""

    delta: float = 0.05

    _assumption: ClassVar[str] = SUB_GAUSSIAN
    _besides: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_delta(self.delta)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee and its assumption."""
        return Guarantee.best(self.delta, self._assumption, epsilon=self.epsilon, besides=self._besides)


@dataclass(frozen=True)
class WithinPolicy(SoundPolicy):
    """Base of the policies that find the best plan or, with `epsilon` > 0, one within epsilon of the best."""

    epsilon: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_epsilon(self.epsilon)


def check_max_batch(max_batch: int | None) -> None:
    """Refuse a batch of no measurement.

    >>> check_max_batch(None)
    """
    right = max_batch is None or max_batch >= 1
    meaning = "the most measurements to ask for at once, 1 or more"
    check_setting("max_batch", max_batch, right=right, meaning=meaning)


class BettingPolicy(Policy):
    """Base of the policies that bet in batches; each states its fields, these among them.

    `max_batch` limits how many measurements are asked for at once; larger batches are asked for in parts.
    """

    max_batch: int | None

    takes_probes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_epsilon(self.epsilon)
        check_max_batch(self.max_batch)

    @property
    def goal(self) -> str:
        """What an answer is, unless it is wrong."""
        return "the best plan" if self.epsilon == 0 else f"a plan within {self.epsilon:g} of the best"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee and its assumption."""
        return Guarantee(self.goal, self.delta, SUB_GAUSSIAN)

    def learns_noise(self, problem: AnyProblem) -> bool:
        """Return whether a run learns unknown noise while it measures: on every problem."""
        del problem
        return True

    def learns_variance(self, problem: AnyProblem) -> bool:
        """Return whether bounds on readings are all that the guarantee needs, neither scale nor shape.

        It takes bets on single gaps, or bets that are affine in a plan of zeros and ones.
        """
        if problem.bounds is None:
            return False
        if isinstance(problem, Polytope):
            return self.epsilon == 0
        return problem.is_listed or not (problem.plays or problem.best_within is not None)


@dataclass(frozen=True)
class RadiusPolicy(WithinPolicy):
    """Base of the policies that stop by a radius (`gap/radius`); the radius determines the guarantee."""

    radius: str = "normal-mixture"

    def __post_init__(self) -> None:
        super().__post_init__()
        radii.radius_named(self.radius)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee and its assumption, or what is missing for one."""
        return radii.guarantee(self.radius, self.delta, self.epsilon)
