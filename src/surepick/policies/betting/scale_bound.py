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
from typing import Any

import numpy as np

from surepick.core.arrays import MOST_SCALES, SMALLEST, BoolArray, FloatArray, IntArray, furthest_value
from surepick.core.oracle_problem import AnyProblem
from surepick.core.past import Past
from surepick.core.plan_sets import plan_set, play_finder, spanned
from surepick.core.probes import Plays
from surepick.core.run import Answer, Decision, Measure, Standing, Stop
from surepick.design.play_allocation import covering_plays
from surepick.errors import ParameterError, ProblemError
from surepick.policies.betting.batch_run import BatchPolicy, BatchRun
from surepick.policies.betting.question import NO_LEADER
from surepick.policies.oracles.plan_probes import named_plans

REPLICATES = 12  # measurements of each arm that bound its noise
SHARE = 0.2  # of delta, for the bounds


class ScaleBoundRun:
    """A run whose first batch is replicates that bound the noise of every arm; then bets follow.

    Changed by the loop or session that started it.
    """

    can_follow = recalls_unasked = True

    def __init__(
        self, problem: AnyProblem, delta: float, begin: Callable[[AnyProblem, float], BatchRun]
    ) -> None:
        """`begin` starts the bets on the problem with its noise bounded, with the rest of delta."""
        self._problem, self._delta, self._begin = problem, delta, begin
        self._plans = _covering_plans(problem) if problem.plays else None
        once = problem.relevant.astype(np.int64) if self._plans is None else self._plans.counts
        self._once = once  # readings of each arm in a replicate
        self._values = np.zeros(
            (0, problem.n_arms)
        )  # (n, n_arms) averages of replicates without removed values
        self._n_asked = 0  # replicates that were measured, also those with a removed value
        self._is_open = False
        self._is_late = False  # whether a smaller delta waits for the end of a batch
        self._bets: BatchRun | None = None
        self._prior: Past | None = None
        self._extra = np.zeros(problem.n_arms, dtype=np.int64), np.zeros(problem.n_arms)

    # deciding

    def decide(self, rng: np.random.Generator | None = None) -> Measure | Stop:
        """Return the next replicate, or what the bets decide."""
        return self._replicate() if self._bets is None else self._bets.decide(rng)

    def _replicate(self) -> Measure:
        return Measure(self._once.copy(), self._plans)

    def propose(self) -> Decision | Stop:
        """Return the replicates, or the next batch of the bets."""
        if self._bets is not None:
            return self._bets.propose()
        more = {} if self._plans is None else {"plans": named_plans(self._plans)}
        nothing = np.zeros(0, dtype=np.int64)
        return Decision(NO_LEADER, nothing, self._once.copy(), REPLICATES, False, more)

    @property
    def is_open(self) -> bool:
        """Whether a batch is being measured."""
        return self._is_open if self._bets is None else self._bets.is_open

    def first_request(self, decision: Decision) -> Measure:
        """Return the first request of the batch that this decision opens."""
        return self._replicate() if self._bets is None else self._bets.first_request(decision)

    def recorded(self, body: Mapping[str, Any]) -> Decision:
        """Return the decision that was recorded like this; a ValueError if it is none."""
        return (
            Decision.from_json(body, 0, len(self._once)) if self._bets is None else self._bets.recorded(body)
        )

    def objection(self, decision: Decision) -> str | None:
        """Return why no run takes this decision here, or None."""
        if self._bets is not None:
            return self._bets.objection(decision)
        own = self.propose()
        assert isinstance(own, Decision)
        return (
            None if own.to_json() == decision.to_json() else "it is not the replicates that bound the noise"
        )

    def follow(self, decision: Decision) -> None:
        """Open the batch of this decision."""
        if self._bets is None:
            self._is_open = True
        else:
            self._bets.follow(decision)

    def proves(self, plan: Answer | None) -> bool:
        """Return whether this answer is proved, up to rounding."""
        return self._bets is not None and self._bets.proves(plan)

    def numbers(self) -> tuple[float, float]:
        """Return the two numbers of the bets, whose sizes every replicate moves."""
        return (0.0, 0.0) if self._bets is None else self._bets.numbers()

    def lower_delta(self, policy: BatchPolicy, delta: float) -> None:
        """Continue with a smaller delta: wider bounds, and bets that begin anew, guided by all values."""
        del policy
        self._delta = delta
        if self._bets is not None and self._bets.may_grow:
            self._start_again()
        else:
            self._is_late = self._bets is not None

    def _start_again(self) -> None:
        old, self._is_late = self._bets, False
        self._start_bets()
        assert old is not None
        assert self._bets is not None
        self._bets.restore_guides(old)

    # absorbing

    def absorb(self, counts: IntArray, sums: FloatArray, removed: IntArray | None = None) -> None:
        """Add a replicate, or an answer to the bets; after the last replicate the bets begin."""
        if self._bets is not None:
            self._bets.absorb(counts, sums, removed)
            if self._is_late and self._bets.may_grow:
                self._start_again()
            return
        gone = np.zeros_like(counts) if removed is None else removed
        is_whole = not gone.any()
        if not np.array_equal(counts + gone, self._once):
            raise ParameterError("a replicate measures every arm that matters once", field="counts")
        self._n_asked += 1
        if is_whole:
            self._values = np.vstack([self._values, sums / np.maximum(self._once, 1)])
        else:  # one with a removed value bounds nothing, and guides
            self._extra = self._extra[0] + counts, self._extra[1] + sums
        if self._n_asked == REPLICATES:
            self._start_bets()

    def _start_bets(self) -> None:
        if len(self._values) < 2:
            raise ParameterError("two replicates at least are needed to bound the noise", field="removed")
        scale = scale_bound(self._values * np.sqrt(self._once), self._problem, self._delta, self._once > 0)
        _refuse_far(self._problem, scale, self._values.mean(axis=0))
        self._bets = self._begin(self._problem.with_noise(scale), (1 - SHARE) * self._delta)
        if self._prior is not None:
            self._bets.remember(self._prior)
        counts, sums = self._extra
        self._bets.recall(
            len(self._values) * self._once + counts, self._once * self._values.sum(axis=0) + sums
        )

    def recall(self, counts: IntArray, sums: FloatArray) -> None:
        """Use measurements that were not asked for: they guide, and settle no bet."""
        if self._bets is not None:
            self._bets.recall(counts, sums)
        else:
            self._extra = self._extra[0] + counts, self._extra[1] + sums

    def remember(self, past: Past) -> None:
        """Begin the bets with prior data."""
        self._prior = past

    def allow(self, left: int) -> None:
        """Cut the next batch to this many measurements; replicates are never cut."""
        if self._bets is not None:
            self._bets.allow(left)

    @property
    def may_call_last(self) -> bool:
        """Whether the noise is bounded by now, so that bets are made."""
        return self._bets is not None

    def call_last(self, n: int, *, gaussian: bool) -> None:
        """Make these n measurements a final batch, of noise that is Gaussian by assumption."""
        del gaussian
        if self._bets is None:
            raise ParameterError(
                f"the noise is still being learned; call the final batch after {REPLICATES} measurements of "
                "each arm",
                field="last_call",
            )
        self._bets.call_last(n, gaussian=True)

    # looking, which changes nothing

    @property
    def counts(self) -> IntArray:
        """How often each arm was measured in complete batches."""
        replicates = len(self._values) * self._once
        return replicates if self._bets is None else replicates + self._bets.counts

    def standing(self) -> Standing:
        """Return where the bets stand, with the risk that a bound is too small added to theirs."""
        if self._bets is None:
            return Standing()
        standing = self._bets.standing()
        if standing.risk is None:
            return standing
        return dataclasses.replace(standing, risk=min(1.0, standing.risk + SHARE * self._delta))

    def proof(self) -> Mapping[str, Any] | None:
        """Return what proves the answer given the bounds, as JSON values."""
        return None if self._bets is None else self._bets.proof()

    def noise_estimate(self) -> FloatArray:
        """Return the bounds on the noise; before they are known, the deviation of the replicates so far."""
        if self._bets is not None:
            return self._bets.noise_estimate()
        n = len(self._values)
        return self._values.std(axis=0, ddof=1) if n > 1 else np.full(self._problem.n_arms, np.nan)

    def state(self) -> dict[str, Any]:
        """Return all that a fresh run needs to become this one."""
        kept: dict[str, Any] = {
            "values": self._values,
            "extra": list(self._extra),
            "n": self._n_asked,
            "open": self._is_open,
        }
        kept |= {"delta": self._delta, "late": self._is_late}
        return {**kept, "bets": None if self._bets is None else self._bets.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Become the run whose state this is."""
        self._values, self._extra, self._delta = state["values"], tuple(state["extra"]), state["delta"]
        self._n_asked, self._is_open, self._is_late = state["n"], state["open"], state["late"]
        if state["bets"] is not None:
            self._start_bets()
            assert self._bets is not None
            self._bets.restore(state["bets"])


def _covering_plans(problem: AnyProblem) -> Plays:
    """Return a few plans that together read every arm on which plans differ, each once."""
    plans = plan_set(problem)
    box, _ = spanned(plans)
    cover = covering_plays(play_finder(plans, box), box.lower < box.upper, np.zeros(problem.n_arms))
    return Plays(cover, np.ones(len(cover), dtype=np.int64))


def scale_bound(
    replicates: FloatArray, problem: AnyProblem, delta: float, measured: BoolArray | None = None
) -> FloatArray:
    """Return a bound on the noise of each arm, too small anywhere with probability at most SHARE * delta.

    `replicates`, (n, n_arms), have the noise of one measurement of each arm that was measured: all relevant
    ones unless it is said. The others get the largest bound.
    """
    from scipy.special import gammaincinv  # the chi-square quantile; scipy.stats is slow to import

    relevant = problem.relevant if measured is None else measured
    freedom, variances = len(replicates) - 1, replicates.var(axis=0, ddof=1)
    constant = np.flatnonzero(relevant & ~(variances >= SMALLEST**2))
    if len(constant):
        name = problem.arm_names[int(constant[0])]
        raise ProblemError(
            f"all measurements of {name!r} are equal, so that its noise cannot be learned; state noise=",
            field="noise",
        )
    level = SHARE * delta / int(relevant.sum())
    factor = math.sqrt(freedom / (2.0 * float(gammaincinv(freedom / 2, level))))
    bound = factor * np.sqrt(variances)
    return np.where(relevant, bound, bound[relevant].max())


def _refuse_far(problem: AnyProblem, scale: FloatArray, means: FloatArray) -> None:
    """Refuse values so far from zero that rounding outweighs their noise."""
    for arm in np.flatnonzero(problem.relevant).tolist():
        if abs(float(means[arm])) > furthest_value(scale, arm):
            raise ProblemError(
                f"measurements of {problem.arm_names[arm]!r} lie around {means[arm]:g} with noise of at most "
                f"{scale[arm]:.3g}, a ratio above {MOST_SCALES:g}; begin again with a constant subtracted",
                field="values",
            )
