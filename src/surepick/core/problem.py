"""The problem: which plans there are, what can be measured, how noisy that is and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from surepick.core.about import About, plausible_pairs
from surepick.core.arrays import BoolArray, FloatArray, Plans, as_dense, read_only, row_keys, without_columns
from surepick.core.base_problem import SUB_GAUSSIAN_NOISE, BaseProblem, arm_fields
from surepick.core.given.arms import GivenArms, arm_settings, filled_in
from surepick.core.given.numbers import (
    Goal,
    Known,
    Numbers,
    PerArm,
    index_of,
    names_for,
)
from surepick.core.given.plans import (
    dense_matrix,
    merge_duplicates,
    read_expressions,
    read_plans,
    refuse_non_finite,
    sparse_matrix,
)
from surepick.core.given.probes import ARMS, GivenProbes, Limits, read_probes
from surepick.core.probes import refuse_inseparable
from surepick.core.wording import plural
from surepick.errors import ProblemError, hinted

if TYPE_CHECKING:
    import pandas as pd
    from scipy import sparse

_MOST_COMPARED = 256  # plans that all others are compared with over the box of means


class PlanParts(NamedTuple):
    """Plans, larger values being better, by what is known of them."""

    free: Plans  # (n_plans, n_arms) with zeros for arms whose means are known exactly
    constants: FloatArray  # (n_plans,) what the known arms add to the value
    may_be_best: BoolArray  # (n_plans,) false: another plan is surely at least as good


class Problem(BaseProblem):
    """A choice between plans whose value is linear in quantities (arms) that can be measured with noise.

    `plans` is an array of shape (n_plans, n_arms), a SciPy sparse array, a data frame of pandas or polars
    (columns are arms; the index, or a first column of text, plans), or sums such as "2*tea + coffee", in a
    list or by the names of the plans; `sp.load` reads files. The value of plan k is the sum over arms of
    `plans[k, s] * mean_s`. What is said of arms is one number for all of them, a list in their order, or a
    dictionary by their names.

    - `goal`: "smallest" or "largest", the value of the best plan
    - `arms`, `plan_names`: their names, where the plans do not come with them
    - `low`, `high`: limits of every measurement; values outside are refused. BetGapE then learns the variance
      and needs no shape; for other policies half the distance is the noise (Hoeffding's lemma)
    - `noise`: the standard deviation of one measurement (in general its sub-Gaussian scale); left out it is
      unknown, and learned
    - `noise_kind`: "bounded variance" where noise may be skewed and have long tails, and `noise` is no more
      than a bound on its standard deviation; "sub-Gaussian"
    - `guess`, `spread`: what you expect each mean to be, and how far off that may be: with both, sessions
      begin with the guess as prior data, which guide and never count as evidence
    - `cost`: the price of one measurement; 1
    - `known`: means that need no measurement, {"arm": value}, or that surely lie in between,
      {"arm": (low, high)}: plans that cannot be best are out at once
    - `measure`: what can be measured: each of the "arms" by itself; "plans", a whole plan giving one number,
      its value; "plan arms", a plan giving a reading of every arm in it; a dictionary of probes by name
      (lists of arms, mixes, named readings, `Probe`); or an array with a row for each. `noise`, `low`,
      `high` are then of readings, `cost` of probes. Where the noise of a reading is not stated, all is
      learned from replicates, and stated scales help to plan. Plans that no probe can tell apart are refused
    - `setup_cost`: the price of starting a batch of measurements; BetGapE then asks for fewer and larger ones
    - `unit`, `title`: for people; `plausible`: (low, high), other values are asked about first, one pair or
      one per arm. These decide nothing

    Plans that are equal in every arm are merged into the first of them; `duplicates` says which. The order
    of arms, and of the plans that remain, is the caller's.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 2], [0, 1, 2]], arms=["road", "rail", "depot"], goal="largest")
    >>> problem.n_plans, problem.n_arms, problem.relevant.tolist()
    (2, 3, [True, True, False])
    """

    plans: Plans  # (n_plans, n_arms), read-only, as the caller gave them
    plan_names: tuple[str, ...]
    duplicates: tuple[tuple[str, str], ...]  # (name merged away, name kept)

    is_listed: ClassVar[Literal[True]] = True
    can_decide: ClassVar[Literal[True]] = True  # an `OracleProblem` may have lost its function

    @hinted
    def __init__(
        self,
        plans: npt.ArrayLike | sparse.sparray | pd.DataFrame | Mapping[str, Any],
        *,
        goal: Goal,
        arms: Sequence[str] | None = None,
        plan_names: Sequence[str] | None = None,
        unit: str = "",
        low: Numbers | float | None = None,
        high: Numbers | float | None = None,
        noise: PerArm | None = None,
        noise_kind: str = SUB_GAUSSIAN_NOISE,
        guess: Numbers | None = None,
        spread: Numbers | None = None,
        cost: PerArm | None = None,
        known: Known | None = None,
        measure: GivenProbes = ARMS,
        setup_cost: float = 0.0,
        plausible: Any = None,
        title: str = "",
    ) -> None:
        matrix, found_arms, found_plans = read_plans(plans, arms)
        n_plans, n_arms = matrix.shape
        arm_names = names_for("arm", arms if arms is not None else found_arms, n_arms)
        names = names_for("plan", plan_names if plan_names is not None else found_plans, n_plans)
        refuse_non_finite(matrix, arm_names, names)
        matrix, keep, twin_of = merge_duplicates(matrix)
        if len(keep) < 2:
            raise ProblemError(
                f"a problem needs at least two distinct plans, got {len(keep)} (of {n_plans} rows); "
                "with one plan there is nothing to choose",
                field="plans",
            )
        by_arm = isinstance(measure, str) and measure == ARMS
        limits = Limits(noise, low, high)
        self._set(
            **arm_fields(arm_names, goal, limits if by_arm else Limits(), cost if by_arm else None),
            plans=matrix,
            plan_names=tuple(names[k] for k in keep),
            duplicates=tuple((names[k], names[first]) for k, first in twin_of),
            about=About(title, unit, None if plausible is None else plausible_pairs(plausible, arm_names)),
        )
        self._apply_known(known)
        if not by_arm:
            probes, bounds = read_probes(measure, self, limits, cost)
            self._set(probes=probes, noise_scale=probes.noise_scale, bounds=bounds, costs=probes.costs)
            self._refuse_inseparable()
        self._apply_guess(guess, spread)
        self._apply_noise_kind(noise_kind)
        self._apply_setup_cost(setup_cost)

    def _refuse_inseparable(self) -> None:
        """Refuse plans that the probes, where there are some, cannot tell apart."""
        if self.probes is not None:
            freed = self.probes.without_arms(self.is_known)
            refuse_inseparable(freed, self.plan_parts.free, self.plan_names, self.arm_names)

    @property
    def n_plans(self) -> int:
        """The number of distinct plans."""
        return len(self.plan_names)

    @property
    def completeness(self) -> str:
        """How many plans there are, and whether some may be missing, for people."""
        listing = self.about.listing
        return f"{self.about.plans(self.n_plans)}, as listed" if listing is None else listing.explanation

    @property
    def oriented(self) -> Plans:
        """The plans with the sign that makes larger better, whatever the goal."""
        return -self.plans if self.minimize else self.plans

    @property
    def plan_parts(self) -> PlanParts:
        """Return the oriented plans as what is measured of them, what is known, and which may be best."""
        plans, is_known = self.oriented, self.is_known
        if self.mean_bounds is None:
            return PlanParts(plans, np.zeros(self.n_plans), np.ones(self.n_plans, dtype=bool))
        free, constants = without_columns(plans, is_known), np.asarray(plans @ self.known_means)
        return PlanParts(free, constants, contenders(free, constants, self.mean_bounds))

    @cached_property
    def relevant(self) -> BoolArray:
        """Which arms have unknown means, and differ between plans that may be best, (n_arms,)."""
        parts = self.plan_parts
        rivals: Any = parts.free if parts.may_be_best.all() else parts.free[np.flatnonzero(parts.may_be_best)]
        high, low = (as_dense(ends).ravel() for ends in (rivals.max(axis=0), rivals.min(axis=0)))
        return read_only(high != low)  # type: ignore[no-any-return]

    def name_of(self, plan: int | tuple[float, ...] | None) -> str | None:
        """Return the name of a plan by its index; None for None, and for a plan given as a vector."""
        return self.plan_names[plan] if isinstance(plan, int) else None

    def vector(self, plan: int | tuple[float, ...]) -> FloatArray:
        """Return a plan, given by its index or as a vector, as an array of one number per arm."""
        return np.array(plan) if isinstance(plan, tuple) else as_dense(self.plans[[plan]])[0]

    def values(self, means: Numbers) -> FloatArray:
        """Return the value of every plan, in the caller's sign, if the arms had these means."""
        return np.asarray(self.plans @ self.as_means(means))

    def best(self, means: Numbers) -> int:
        """Return the index of the best plan under these means; ties go to the lowest index."""
        values = self.values(means)
        return int(np.argmin(values) if self.minimize else np.argmax(values))

    def best_plan(self, means: Numbers) -> FloatArray:
        """Return the best plan under these means as a vector; ties go to the lowest index."""
        return self.vector(self.best(means))

    def plan(self, name: str) -> int:
        """Return the index of the plan with this name; the name of a merged duplicate finds the plan kept."""
        return index_of("plan", dict(self.duplicates).get(name, name), self.plan_names)

    def with_plan(self, name: str, plan: Numbers | str) -> Problem:
        """Return the same problem with one more plan, the last of the list.

        The plan is a sum such as "2*tea + coffee", amounts by the names of arms, or one number per arm. One
        that is there already is refused.

        >>> problem = Problem([[1, 0], [0, 1]], arms=["tea", "coffee"], plan_names=["A", "B"], goal="largest")
        >>> problem.with_plan("both", "tea + coffee").values([2.0, 3.0]).tolist()
        [2.0, 3.0, 5.0]
        """
        if not isinstance(name, str) or not name.strip():
            raise ProblemError(f"a plan needs a name, got {name!r}", field="name")
        if name in self.plan_names or name in dict(self.duplicates):
            raise ProblemError(f"there is a plan named {name!r} already; choose another name", field="name")
        if isinstance(plan, str | Mapping):
            row = read_expressions({name: plan}, self.arm_names)[0] + 0.0
        else:
            row = dense_matrix([plan]) + 0.0
        if row.shape != (1, self.n_arms):
            raise ProblemError(
                f"a plan is one number for each of the {self.n_arms} arms, got {plan!r}", field="plan"
            )
        if isinstance(self.plans, np.ndarray):
            plans: Any = np.vstack([self.plans, row])
        else:
            from scipy import sparse

            plans = sparse_matrix(sparse.vstack([self.plans, sparse.csr_array(row)]))
        refuse_non_finite(plans, self.arm_names, (*self.plan_names, name))
        _, _, twins = merge_duplicates(plans)
        if twins:
            same = self.plan_names[twins[0][1]]
            raise ProblemError(f"plan {name!r} is the same as {same!r}, which is there already", field="plan")
        about = self.about
        if about.listing is not None:
            about = replace(about, listing=replace(about.listing, n_plans=self.n_plans + 1))
        other = self._with(plans=plans, plan_names=(*self.plan_names, name), about=about)
        other._refuse_inseparable()
        return other

    def with_arms(self, arms: GivenArms) -> Problem:
        """Return the same problem with more arms after its own, which no plan uses yet: names, or `NewArm`.

        A setting that a `NewArm` leaves out is that of all other arms, if they have the same one.

        >>> problem = Problem([[1, 0], [0, 1]], arms=["tea", "coffee"], noise=1, goal="largest")
        >>> problem.with_arms(["milk"]).relevant.tolist()
        [True, True, False]
        """
        new = filled_in(self, arms)
        n = len(new)
        if not n:
            return self
        names = names_for("arm", (*self.arm_names, *(arm.name for arm in new)), self.n_arms + n)
        of_all = {
            what: [*of_others.tolist(), *(getattr(arm, what) for arm in new)]
            for what, of_others in arm_settings(self).items()
        }
        cost = of_all.pop("cost")
        plans: Any = self.plans
        if isinstance(plans, np.ndarray):
            plans = np.hstack([plans, np.zeros((len(plans), n))])
        else:
            from scipy import sparse

            shape = plans.shape[0], plans.shape[1] + n
            plans = sparse.csr_array((plans.data, plans.indices, plans.indptr), shape=shape)
        means, plausible = self.mean_bounds, self.about.plausible
        anything = np.tile([-np.inf, np.inf], (n, 1))
        if plausible is not None:
            plausible = (*plausible, *((-np.inf, np.inf),) * n)
        return self._with(
            **arm_fields(names, self.goal, Limits(**of_all), cost),
            plans=plans,
            mean_bounds=None if means is None else np.vstack([means, anything]),
            guess=None if self.guess is None else np.append(self.guess, np.full(n, np.nan)),
            spread=None,
            about=replace(self.about, plausible=plausible),
        )

    def __repr__(self) -> str:
        noise = self._noise_words
        arms = f"{self.n_arms} {plural(self.n_arms, 'arm')}"
        ways = "" if self.probes is None else f"{self.probes.summary}, "
        return f"Problem({self.n_plans} plans, {arms}, {ways}noise={noise}, {self.goal})"


def contenders(plans: Any, constants: FloatArray, means: FloatArray) -> BoolArray:
    """Return which plans may still be the only best one, by what is known of the means.

    - `plans`: (n_plans, n_arms) larger is better, with zeros where a mean is known exactly
    - `constants`: (n_plans,) what the exactly known arms add
    - `means`: (n_arms, 2) lowest and highest mean

    Of plans that differ in exactly known arms alone the best one stays, the first of equals. Each plan that
    is out is no better than one that stays, whatever the means are.
    """
    n = int(plans.shape[0])
    stays = np.zeros(n, dtype=bool)
    best_of: dict[bytes, int] = {}
    for k, key in enumerate(row_keys(plans)):
        first = best_of.setdefault(key, k)
        if constants[k] > constants[first]:
            best_of[key] = k
    stays[list(best_of.values())] = True
    is_bounded = np.asarray(np.isfinite(means).all(axis=1))
    if not (means[is_bounded, 0] < means[is_bounded, 1]).any():
        return stays
    low, high = np.where(is_bounded[:, None], means, 0.0).T
    middle, half = (low + high) / 2, (high - low) / 2
    value = np.asarray(plans @ middle) + constants
    order = np.argsort(-np.where(stays, value, -np.inf), kind="stable")[:_MOST_COMPARED]
    for i in order[stays[order]].tolist():
        if not stays[i]:
            continue
        difference = abs(plans[[i] * n] - plans)
        # the least of (plan i - plan j).mu over the box, where both have the same amounts of unbounded arms
        least = value[i] - value - np.asarray(difference @ half)
        comparable = np.asarray(difference @ (~is_bounded).astype(float)) == 0
        beaten = comparable & (least > 0)
        beaten[i] = False
        stays &= ~beaten
    return stays
