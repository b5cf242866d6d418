"""Arms that are added to a problem."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from surepick.core.arrays import FloatArray, as_float, brief
from surepick.core.wording import shortened
from surepick.errors import ProblemError

if TYPE_CHECKING:
    from surepick.core.problem import Problem

GivenArms: TypeAlias = "Iterable[str | NewArm]"


@dataclass(frozen=True)
class NewArm:
    """An arm that a problem did not have; what is left out is what all its other arms have alike.

    `noise` and `cost` are those of one measurement; `low` and `high` are for problems that have them, and
    take the place of the noise.
    """

    name: str
    noise: float | None = None
    cost: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def parse(cls, text: str) -> NewArm:
        """Return the arm that a text describes: its name, then settings if any.

        >>> NewArm.parse("Old ferry noise=2 cost=0,5")
        NewArm(name='Old ferry', noise=2.0, cost=0.5, low=None, high=None)
        """
        setting = r"\s*\b(noise|cost|low|high)=(\S+)"
        name, found = re.sub(setting, "", text).strip(), re.findall(setting, text)
        try:
            return cls(name, **{key: float(number.replace(",", ".")) for key, number in found})
        except ValueError:
            raise ProblemError(f"write a new arm as 'Ferry noise=2', got {text!r}", field="arms") from None

    def to_json(self) -> dict[str, Any]:
        """Return the settings that are known as JSON values; `NewArm(**kept)` inverts it."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def arm_settings(problem: Problem) -> dict[str, FloatArray]:
    """Return the numbers that each arm of this problem has, (n_arms,), by their names in `NewArm`."""
    settings = {"cost": problem.costs}
    if problem.bounds is not None:
        return settings | {"low": problem.bounds[:, 0], "high": problem.bounds[:, 1]}
    return settings if problem.noise_scale is None else settings | {"noise": problem.noise_scale}


def filled_in(problem: Problem, given: GivenArms) -> tuple[NewArm, ...]:
    """Return these arms, each with all settings that the problem's arms have.

    A setting that is left out is that of the other arms; it is refused where those differ.
    """
    if isinstance(given, str):
        raise ProblemError(f"new arms come as a list of names, got the text {given!r}", field="arms")
    arms = [one if isinstance(one, NewArm) else NewArm.parse(str(one)) for one in given]
    if arms and problem.probes is not None:
        raise ProblemError("arms that are measured by probes cannot be added", field="arms")
    of_others = arm_settings(problem)
    filled = []
    for arm in arms:
        if arm.name in problem.arm_names:
            raise ProblemError(f"there is an arm named {arm.name!r} already; it is not new", field="arms")
        if other := arm.to_json().keys() - {"name", *of_others}:
            wrong, right = ", ".join(sorted(other)), ", ".join(of_others)
            raise ProblemError(f"arm {arm.name!r} has {wrong}, and the others have {right}", field="arms")
        settings: dict[str, Any] = {what: _setting(arm, what, others) for what, others in of_others.items()}
        filled.append(replace(arm, **settings))
    return tuple(filled)


def _setting(arm: NewArm, what: str, others: FloatArray) -> float:
    """Return a setting of a new arm: its own, or the one that all others have."""
    value = getattr(arm, what)
    if value is None and (others != others[0]).any():
        raise ProblemError(
            f"say the {what} of the new arm {arm.name!r}: those of the others differ, {brief(others)}",
            field="arms",
        )
    number = as_float(others[0] if value is None else value)
    if number is None:
        raise ProblemError(
            f"the {what} of the new arm {arm.name!r} must be a number, got {shortened(repr(value), 60)}",
            field="arms",
        )
    return number
