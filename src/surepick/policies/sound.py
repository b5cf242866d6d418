"""What policies with a proof share: their settings, the checks of these, and the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from surepick.core.guarantee import SUB_GAUSSIAN, Guarantee
from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy, check_delta, check_epsilon
from surepick.errors import ParameterError
from surepick.policies.gap import radius as radii


class Starting(Policy):
    """A policy whose runs are of one class, made from the problem and the policy."""

    _run: ClassVar[type[Any]]

    def start(self, problem: Any) -> Any:
        """Return a fresh run on this problem, or refuse it."""
        return self._run(problem, self)


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
    if max_batch is not None and not max_batch >= 1:
        raise ParameterError(
            f"max_batch is the most measurements to ask for at once, 1 or more, got {max_batch!r}",
            field="max_batch",
        )


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
        """Return whether a run learns unknown noise while it measures."""
        return problem.is_listed

    def learns_variance(self, problem: AnyProblem) -> bool:
        """Return whether bounds on readings are all that the guarantee needs, neither scale nor shape."""
        return problem.bounds is not None


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
