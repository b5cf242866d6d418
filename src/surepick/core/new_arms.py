"""Arms that join a problem together with a plan that needs them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from surepick.core.arrays import FloatArray, brief, names_for, per_arm, scale_and_bounds
from surepick.core.frames import frame_table, is_frame
from surepick.core.tables import TablePath, read_table
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

    >>> NewArm("tram", noise=2.0).cost is None
    True
    """

    name: str
    noise: float | None = None
    cost: float | None = None
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the settings that are known as JSON values."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> NewArm:
        """Invert `to_json`.

        >>> arm = NewArm("tram", cost=2.0, low=0.0, high=90.0)
        >>> NewArm.from_json(arm.to_json()) == arm
        True
        """
        return cls(**kept)


def settled(problem: Problem, given: GivenArms) -> tuple[NewArm, ...]:
    """These arms with what was left out filled in from the others; refused where those are not all alike."""
    if isinstance(given, str):
        raise ProblemError(f"new arms come as a list of names, got the text {given!r}", field="arms")
    arms = [one if isinstance(one, NewArm) else NewArm(str(one).strip()) for one in given]
    for arm in arms:
        if arm.name in problem.arm_names:
            raise ProblemError(f"there is an arm named {arm.name!r} already; it is not new", field="arms")
    return tuple(_filled_in(problem, arm) for arm in arms)


def _filled_in(problem: Problem, arm: NewArm) -> NewArm:
    if problem.probes is not None:
        raise ProblemError("arms that are measured by probes cannot be added", field="arms")
    if problem.noise_scale is None:
        raise ProblemError(
            f"the noise of this session is unknown, so {arm.name!r} cannot be added; begin a new session",
            field="arms",
        )
    cost = _alike(arm.name, "cost", problem.costs[:, None])[0] if arm.cost is None else arm.cost
    cost = _number(arm.name, "cost", cost)
    if problem.bounds is None:
        if arm.low is not None or arm.high is not None:
            raise ProblemError(
                f"the other arms have no low and high; give the noise of {arm.name!r} instead",
                field="arms",
            )
        scales = problem.noise_scale[:, None]
        scale = _alike(arm.name, "noise", scales)[0] if arm.noise is None else arm.noise
        return replace(arm, noise=_number(arm.name, "noise", scale), cost=cost)
    if arm.noise is not None:
        raise ProblemError(
            f"the other arms have low and high instead of noise; give those of {arm.name!r}",
            field="arms",
        )
    low, high = arm.low, arm.high
    if low is None and high is None:
        low, high = _alike(arm.name, "low and high", problem.bounds)
    return replace(arm, cost=cost, low=_number(arm.name, "low", low), high=_number(arm.name, "high", high))


def _number(name: str, what: str, value: object) -> float:
    try:
        return float(cast(Any, value))
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"the {what} of the new arm {name!r} must be a number, got {shortened(repr(value), 60)}",
            field="arms",
        ) from None


def _alike(name: str, what: str, known: FloatArray) -> list[float]:
    """The row that all of these are; (n_arms, n_numbers)."""
    if (known != known[0]).any():
        raise ProblemError(
            f"say the {what} of the new arm {name!r}: those of the others differ, {brief(known)}",
            field="arms",
        )
    row: list[float] = known[0].tolist()
    return row


def joined(problem: Problem, arms: tuple[NewArm, ...]) -> dict[str, Any]:
    """The fields of a problem with these settled arms after its own; no plan uses them yet."""
    n = len(arms)
    names = names_for("arm", (*problem.arm_names, *(arm.name for arm in arms)), problem.n_arms + n)
    if problem.bounds is None:
        assert problem.noise_scale is not None
        own = [*problem.noise_scale.tolist(), *(arm.noise or 0.0 for arm in arms)]
        scale, bounds = scale_and_bounds(own, None, names)
    else:
        scale, bounds = scale_and_bounds(
            None, [*problem.bounds.tolist(), *([a.low, a.high] for a in arms)], names
        )
    plausible, means = problem.about.plausible, problem.mean_bounds
    anything = ((-math.inf, math.inf),) * n
    return {
        "plans": _wider(problem.plans, n),
        "arm_names": names,
        "noise_scale": scale,
        "bounds": bounds,
        "costs": per_arm("cost", [*problem.costs.tolist(), *(arm.cost or 0.0 for arm in arms)], names),
        "relevant": np.append(problem.relevant, np.zeros(n, dtype=bool)),
        "mean_bounds": None if means is None else np.vstack([means, np.tile([-np.inf, np.inf], (n, 1))]),
        "layout": None,  # which knows where the other arms are
        "about": replace(problem.about, plausible=None if plausible is None else (*plausible, *anything)),
    }


def _wider(plans: Any, n: int) -> Any:
    if isinstance(plans, np.ndarray):
        return np.hstack([plans, np.zeros((len(plans), n))])
    from scipy import sparse

    rows, columns = plans.shape
    return sparse.csr_array((plans.data, plans.indices, plans.indptr), shape=(rows, columns + n))


def plans_by_name(given: Any) -> dict[str, Any]:
    """New plans by their names: as they are, or from a table with a row for each and a column for each arm.

    >>> plans_by_name({"both": "tea + coffee"})
    {'both': 'tea + coffee'}
    """
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, TablePath):
        table = read_table(given, empty=0.0)
        numbers, columns, names = table.numbers, table.column_names, table.row_names
    elif is_frame(given):
        numbers, columns, found = frame_table(given)
        names = () if found is None else found
    else:
        raise ProblemError(
            f"new plans come by their names, or as a table with a row for each, got {type(given).__name__}",
            field="plan",
        )
    if len(set(names)) < len(numbers):
        raise ProblemError("every new plan needs a name of its own", field="name")
    return {
        name: dict(zip(columns, row, strict=True)) for name, row in zip(names, numbers.tolist(), strict=True)
    }
