"""Plans known only through an oracle: a function that finds the best plan for given weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.base_problem import BaseProblem, arm_fields
from surepick.core.given.numbers import Goal, Known, Numbers, PerArm, names_for
from surepick.core.given.probes import ARMS, PLAN_ARMS, Limits
from surepick.core.plays import AskedPlays
from surepick.core.problem import Problem
from surepick.core.wording import counted, in_short, plural, shortened
from surepick.errors import ProblemError, SurepickError, hinted

Best = Callable[[FloatArray], npt.ArrayLike]
# The same among the plans within lower and upper bounds, one of each per arm; None where there is none.
BestWithin = Callable[[FloatArray, FloatArray, FloatArray], npt.ArrayLike | None]

MOST_ARMS = 10**7
N_TRIALS = 3
TRIAL_SEED = 271828
TRIAL_TOLERANCE = 1e-6  # of a plan's largest entry: two versions of one solver may differ by rounding


class Trial(NamedTuple):
    """Some weights, and the oracle's answer to them."""

    weights: tuple[float, ...]  # one per arm
    plan: tuple[float, ...]


class OracleProblem(BaseProblem):
    """A choice between plans that are too many to list, known by an oracle that maximises over them.

    `best(weights)` takes one weight per arm and returns the plan vector pi with the largest weights.pi; it
    must be exact. `n_plans`, a number that the plans do not exceed (such as 2**n_arms for 0/1 plans, a whole
    number of any size), is needed by policies that protect against all plans at once. With goal="smallest"
    the best plan is the one with the smallest weights.pi, and `best` returns that. `name_plan(plan)` gives a
    plan a name; without it a plan is called by its arms. The rest is as in `Problem`. An answer is a plan
    vector: a tuple of numbers.

    With measure="plan arms" whole plans are played, and one play gives a reading of every arm in its plan:
    plans are then of zeros and ones, `noise`, `low` and `high` are those of readings, `cost` is the price of
    one play, and `best` finds the plays too.

    `best_within(weights, lower, upper)` returns the best of the plans whose entries lie within bounds, or
    None when there is none. BetGapE needs it where plans are of whole numbers other than 0 and 1.

    >>> import numpy as np
    >>> problem = OracleProblem(
    ...     lambda weights: np.eye(3)[np.argmax(weights)], n_arms=3, n_plans=3, goal="largest"
    ... )
    >>> problem.best_plan([0.1, 0.9, 0.3]).tolist()
    [0.0, 1.0, 0.0]
    """

    best: Best
    n_plans: int | None
    name_plan: Callable[[FloatArray], str] | None
    best_within: BestWithin | None = None

    is_listed: ClassVar[Literal[False]] = False
    has_batches: ClassVar[bool] = False
    duplicates: ClassVar[tuple[tuple[str, str], ...]] = ()  # known of listed plans only

    @hinted
    def __init__(
        self,
        best: Best,
        n_arms: int,
        *,
        goal: Goal,
        arms: Sequence[str] | None = None,
        low: Numbers | float | None = None,
        high: Numbers | float | None = None,
        noise: PerArm | None = None,
        cost: PerArm | None = None,
        known: Known | None = None,
        measure: str = ARMS,
        n_plans: int | None = None,
        name_plan: Callable[[FloatArray], str] | None = None,
        best_within: BestWithin | None = None,
    ) -> None:
        if not callable(best):
            raise ProblemError(
                f"best must be a function from weights to a plan vector, got {best!r}", field="best"
            )
        if best_within is not None and not callable(best_within):
            raise ProblemError(
                "best_within must be a function from weights, lower and upper bounds to a plan vector or "
                f"None, got {best_within!r}",
                field="best_within",
            )
        is_whole = isinstance(n_arms, int | np.integer) and not isinstance(n_arms, bool)
        if not is_whole or not 1 <= n_arms <= MOST_ARMS:
            raise ProblemError(
                f"n_arms must be a whole number from 1 to {MOST_ARMS:,}, got {n_arms!r:.60}", field="n_arms"
            )
        if n_plans is not None and not (isinstance(n_plans, int | np.integer) and n_plans >= 2):
            raise ProblemError(
                f"n_plans is an upper bound on the number of plans, 2 or more, got {n_plans!r}",
                field="n_plans",
            )
        plays = _are_plays(measure, cost)
        self._set(
            **arm_fields(names_for("arm", arms, int(n_arms)), goal, Limits(noise, low, high), cost),
            best=best,
            n_plans=n_plans,
            name_plan=name_plan,
            best_within=best_within,
            plays=plays,
        )
        self._apply_known(known)

    def best_plan(self, weights: npt.ArrayLike) -> FloatArray:
        """Return the oracle's plan for these weights, checked to be one finite number per arm."""
        return self._checked("best", _asked("best", self.best, weights))

    def best_plan_within(
        self, weights: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike
    ) -> FloatArray | None:
        """Return the best plan for these weights within these bounds; None if there is none."""
        if self.best_within is None:
            raise ProblemError(
                "this problem has no best_within, the oracle that respects bounds", field="best_within"
            )
        answer = _asked("best_within", self.best_within, weights, lower, upper)
        return None if answer is None else self._checked("best_within", answer)

    def _checked(self, field: str, answer: Any) -> FloatArray:
        """Return the oracle's answer as an array of one finite number per arm."""
        try:
            plan = np.asarray(answer).astype(float, casting="same_kind")
        except (TypeError, ValueError, OverflowError):
            plan = np.zeros(())  # which has the wrong shape
        if plan.shape != (self.n_arms,) or not (math.isfinite(plan @ plan) or np.isfinite(plan).all()):
            raise ProblemError(
                f"the oracle must return one finite number for each of {self.n_arms} arms, 0 where the plan "
                f"does not use the arm, got {shortened(' '.join(repr(answer).split()), 80, '...')}",
                field=field,
            )
        plan += 0.0  # -0.0 becomes 0.0, so that equal plans have equal bytes
        return plan

    @property
    def can_decide(self) -> bool:
        """Whether the function is at hand; without it the problem can be looked at, not decided."""
        return self.best is not absent

    @property
    def completeness(self) -> str:
        """How many plans there are, and whether some may be missing, for people."""
        count = "plans" if self.n_plans is None else f"at most {in_short(self.n_plans)} plans"
        return f"{count}, none of them listed"

    def recipe(self) -> Mapping[str, Any] | None:
        """Numbers from which the function can be made again; None where it is the user's own."""
        return None

    @property
    def relevant(self) -> BoolArray:
        """Which arms may matter: all whose means are not known, as not all plans are listed."""
        return ~self.is_known

    def name_of(self, plan: npt.ArrayLike | None) -> str | None:
        """Return the name of this plan vector: the given one, or the arms that it uses."""
        if plan is None:
            return None
        vector = np.asarray(plan, dtype=float)
        return counted(self.arm_names, vector) if self.name_plan is None else self.name_plan(vector)

    def with_asked_plays(self, arms: Sequence[Sequence[int]]) -> Self:
        """Return the problem with plays of these arms added to the plays requested so far."""
        names = []
        for own in arms:
            plan = np.zeros(self.n_arms)
            plan[list(own)] = 1.0
            names.append(self.name_of(plan) or "")
        return self._with(asked_plays=self.asked_plays.with_new(arms, names))

    def without_asked_plays(self) -> Self:
        """Return the problem without any requested play."""
        return self._with(asked_plays=AskedPlays()) if len(self.asked_plays) else self

    def vector(self, plan: int | tuple[float, ...]) -> FloatArray:
        """Return a plan of an answer as an array, one number per arm."""
        vector = np.array(plan, dtype=float)
        if vector.shape != (self.n_arms,):
            raise ProblemError(f"a plan here is a vector with one number per arm, got {plan!r}", field="plan")
        return vector

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The oracle's plans for a few fixed weights, all positive: what tells one function from another."""
        drawn = np.random.default_rng(TRIAL_SEED).uniform(0.5, 1.5, (N_TRIALS, self.n_arms))
        return tuple(Trial(tuple(w.tolist()), tuple(self.best_plan(w).tolist())) for w in drawn)

    def __repr__(self) -> str:
        count = "unknown" if self.n_plans is None else f"at most {in_short(self.n_plans)}"
        arms = f"{self.n_arms} {plural(self.n_arms, 'arm')}"
        return f"{type(self).__name__}({arms}, number of plans {count}, {self.goal})"


def _are_plays(measure: object, cost: PerArm | None) -> bool:
    """Return whether `measure` says that plans are played; raise if it is neither that nor single arms.

    Other probes need a list of the plans.
    """
    if isinstance(measure, str) and measure == ARMS:
        return False
    if not (isinstance(measure, str) and measure == PLAN_ARMS):
        raise ProblemError(
            f"where plans are not listed, measure is {ARMS!r} or {PLAN_ARMS!r}, got "
            f"{shortened(repr(measure), 60)}; other probes need the plans in a Problem",
            field="measure",
        )
    if not (cost is None or isinstance(cost, int | float | np.number)):
        raise ProblemError(
            f"with measure={PLAN_ARMS!r} cost is the price of one play, the same for all: one number, got "
            f"{shortened(repr(cost), 60)}",
            field="cost",
        )
    return True


def _asked(field: str, oracle: Callable[..., Any], *arguments: npt.ArrayLike) -> Any:
    """Call a user's function with copies of these numbers; turn what it raises into a ProblemError."""
    try:
        return oracle(*(np.array(numbers, dtype=float) for numbers in arguments))
    except SurepickError:
        raise
    except Exception as error:
        raise ProblemError(
            f"the oracle raised {type(error).__name__}: {error}; it must return a plan for any weights",
            field=field,
        ) from error


AnyProblem: TypeAlias = Problem | OracleProblem


def absent(weights: FloatArray, *bounds: FloatArray) -> FloatArray:
    """Stands for a function that was not given, in a problem that is only looked at."""
    raise ProblemError(
        "the function that finds the best plan is not at hand, so this problem can only be looked at",
        field="best",
    )
