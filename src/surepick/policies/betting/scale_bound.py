"""Unknown noise where bets need a known scale: bound it by replicates first, then bet with the bound.

Serves plans behind an oracle and polytopes within epsilon: the Student factor of replicates is not affine in
a plan, so that no oracle call or linear program could bound it over all plans at once.

The first batch is `REPLICATES` measurements of every arm on which plans differ. With Gaussian noise of scale
sigma, (n - 1) s^2 / sigma^2 of an arm is chi-square with n - 1 degrees of freedom, so that
s sqrt((n - 1) / q), with q its quantile at `SHARE` * delta / (number of arms), is below sigma with at most
that probability. A union over the arms costs `SHARE` * delta; the bets run with the rest of delta.

Theory: the bound is a function of the deviations s, which are independent of the means of the replicates. The
bets are chosen after the replicates and settled by later batches, given the bound; the replicates guide them
as prior data do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.given.numbers import MOST_SCALES, SMALLEST, furthest_values
from surepick.core.oracle_problem import AnyProblem
from surepick.core.prior_data import PriorData
from surepick.core.run import Decision, Standing
from surepick.errors import ParameterError, ProblemError
from surepick.inference.factors import SubGaussian
from surepick.policies.betting.batch import Batch
from surepick.policies.betting.batch_run import BatchRun, Sums
from surepick.policies.betting.question import Question
from surepick.policies.oracles.plan_probes import PlanProbeRun

REPLICATES = 24  # measurements of each arm; the bound is about 1.75 times the noise, 2.4 times with 12
SHARE = 0.2  # of delta, for the bounds


class Replicated(SubGaussian):
    """The batch that bounds the noise is measured in equal parts; it has no bets."""

    replicates: ClassVar[tuple[int, int]] = (REPLICATES, REPLICATES)


class ScaleBoundRun(BatchRun):
    """A run whose first batch is replicates that bound the noise of every arm; then bets follow.

    Until then it is a run with a guess of the noise, 1, which makes no bets.
    """

    STATE: ClassVar[tuple[str, ...]] = (*BatchRun.STATE, "_values", "_uses", "_later", "_delta", "_is_late")

    def __init__(
        self, problem: AnyProblem, policy: Any, ask: Callable[[AnyProblem, float], Question]
    ) -> None:
        """`ask` returns the question about a problem with known noise, for a part of delta."""
        self._unbounded, self._ask, self._delta = problem, ask, policy.delta
        self._values = np.zeros((0, problem.n_arms))  # (n, n_arms) averages of replicates
        self._uses = np.zeros(problem.n_arms, dtype=np.int64)  # of each arm in a replicate
        nothing = np.zeros(problem.n_arms)
        self._later = Sums(nothing, nothing)  # prior data, which guide the bets
        self._is_late = False  # whether a smaller delta waits for the end of a batch
        self._ask_with(policy, np.ones(problem.n_arms))
        self._factor = Replicated()

    def _ask_with(self, policy: Any, scale: FloatArray) -> None:
        known = self._unbounded.with_noise(scale)
        super().__init__(known, policy, self._ask(known, (1 - SHARE) * self._delta))

    @property
    def _is_bounded(self) -> bool:
        """Whether the replicates have been measured, so that bets are made."""
        return len(self._values) > 0

    @property
    def may_call_final_batch(self) -> bool:
        """Whether a final batch may be called now: not before bets are made."""
        return self._is_bounded

    @property
    def may_grow(self) -> bool:
        """Whether bets are made, and no batch is open: guides wait until then."""
        return self._is_bounded and super().may_grow

    def objection(self, decision: Decision) -> str | None:
        """Return why no run takes this decision here: every arm has to be in the replicates."""
        own = None if self._is_bounded else self.propose()
        if isinstance(own, Decision) and not np.array_equal(own.uses, decision.uses):
            return "it is not the replicates that bound the noise"
        return super().objection(decision)

    def settle(self, batch: Batch) -> None:
        """Bound the noise by the replicates, those without a removed value, or settle the bets."""
        if self._is_bounded:
            super().settle(batch)
            if self._is_late:
                self._start_bets(self._prior.plus(self.counts, self.sums))
            return
        whole = batch.without_removed(replicates=True)
        if whole is None:
            raise ParameterError("two replicates at least are needed to bound the noise", field="removed")
        self._values, self._uses = whole.averages(self._readings.owner).T, whole.uses
        sums = whole.uses * self._values.sum(axis=0)
        self._start_bets(self._later.plus(len(self._values) * whole.uses, sums))

    def _start_bets(self, guides: Sums) -> None:
        """Begin with the bound on the noise; everything measured so far guides, and settles no bet."""
        problem, self._is_late = self._unbounded, False
        scale = scale_bound(self._values * np.sqrt(self._uses), problem, self._delta, self._uses)
        means = np.abs(self._values.mean(axis=0))
        for arm in np.flatnonzero(problem.relevant).tolist():
            if means[arm] > furthest_values(scale, len(scale))[arm]:
                raise ProblemError(
                    f"measurements of {problem.arm_names[arm]!r} are {means[arm]:g} in size, over "
                    f"{MOST_SCALES:g} times their noise, {scale[arm]:.3g}; subtract a constant from them",
                    field="values",
                )
        self._ask_with(self._policy, scale)
        self._prior = guides
        self._join()

    def _numbers(self, leader: Any) -> tuple[float, float]:
        """Return what a decision records of the values before it, those that bounded the noise among them."""
        value_sum, wealth = super()._numbers(leader)
        return value_sum + float(self._values.sum()), wealth

    def lower_delta(self, policy: Any, delta: float) -> None:
        """Continue with a smaller delta: wider bounds, and bets that begin anew, guided by all values."""
        self._policy, self._delta, self._proposal = policy, delta, None
        if self.may_grow:
            self._start_bets(self._prior.plus(self.counts, self.sums))
        else:
            self._is_late = self._is_bounded

    def remember(self, prior: PriorData) -> None:
        """Begin the bets with prior data."""
        self._later = self._later.plus(prior.worth, prior.worth * prior.means)

    def call_final_batch(self, n: int, *, gaussian: bool) -> None:
        """Make these n measurements a final batch, of noise that is Gaussian by assumption."""
        del gaussian
        if not self._is_bounded:
            raise ParameterError(
                f"the noise is still being learned; call the final batch after {REPLICATES} measurements of "
                "each arm",
                field="final_batch",
            )
        super().call_final_batch(n, gaussian=True)

    def standing(self) -> Standing:
        """Return where the bets stand, with the risk that a bound is too small added to theirs."""
        standing = super().standing()
        if standing.risk is None:
            return standing
        return dataclasses.replace(standing, risk=min(1.0, standing.risk + SHARE * self._delta))

    def noise_estimate(self) -> FloatArray:
        """Return the bounds on the noise; nan before they are known."""
        return super().noise_estimate() if self._is_bounded else np.full(len(self._uses), np.nan)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._values, self._uses, self._delta = state["_values"], state["_uses"], state["_delta"]
        if self._is_bounded:
            self._start_bets(self._prior)
        super().restore(state)


class ScaleBoundPlanRun(ScaleBoundRun, PlanProbeRun):
    """The same, where requests are whole plans."""


def scale_bound(
    replicates: FloatArray, problem: AnyProblem, delta: float, uses: IntArray | None = None
) -> FloatArray:
    """Return a bound on the noise of each arm, too small anywhere with probability at most SHARE * delta.

    `replicates`, (n, n_arms), have the noise of one measurement of each arm that was used: all relevant ones
    unless it is said. The others get the largest bound.
    """
    from scipy.special import gammaincinv  # the chi-square quantile; scipy.stats is slow to import

    relevant = problem.relevant if uses is None else uses > 0
    freedom, variances = len(replicates) - 1, replicates.var(axis=0, ddof=1)
    constant = np.flatnonzero(relevant & ~(variances >= SMALLEST**2))
    if len(constant):
        name = problem.arm_names[int(constant[0])]
        raise ProblemError(
            f"all measurements of {name!r} are equal, so its noise cannot be learned; state noise",
            field="noise",
        )
    level = SHARE * delta / int(relevant.sum())
    factor = math.sqrt(freedom / (2.0 * float(gammaincinv(freedom / 2, level))))
    bound = factor * np.sqrt(variances)
    return np.where(relevant, bound, bound[relevant].max())
