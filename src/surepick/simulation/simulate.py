"""The one loop of simulations, and its compiled twin."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence, Moments
from surepick.core.oracle_problem import OracleProblem
from surepick.core.past import Past, fitting
from surepick.core.pilot import Pilot, begin, check_gaussian, hand_over, pilot_for, standing_after
from surepick.core.policy import Policy, delta_of, last_calling, n_asked, start
from surepick.core.problem import Problem
from surepick.core.promise import Promise
from surepick.core.ranging import named_ranging
from surepick.core.run import BudgetedRun, Measure, NoiseLearningRun, Run, Standing, Stop, ValueRun
from surepick.errors import ParameterError
from surepick.simulation.environments import (
    BoundedEnvironment,
    CompiledEnvironment,
    Environment,
    NoisyEnvironment,
    is_compiled,
    single_values,
)
from surepick.simulation.fitting import fitted, refuse_far_sums, refuse_outside_sums
from surepick.simulation.outcome import Outcome, Progress, end_of
from surepick.simulation.seeds import environment_rng, round_rng

if TYPE_CHECKING:
    from surepick.kernels.feed import Feed

CHUNK = 4096  # rounds the compiled driver runs before it looks up
PROGRESS_SECONDS = 0.1


@runtime_checkable
class CompiledRun(Run, Protocol):
    """A run that can take many single measurements in compiled code."""

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        ...

    def drive(self, feed: Feed, draws: FloatArray) -> int:
        """Measure and decide, one draw a round, until the draws are used or the run stops."""
        ...


def simulate(
    problem: Problem | OracleProblem,
    policy: Policy,
    environment: Environment,
    *,
    seed: int = 0,
    budget: int = 10**7,
    pilot: Pilot | None = None,
    allow_noisier: bool = False,
    progress: Callable[[Progress], None] | None = None,
    last_call: float | None = None,
    gaussian: bool = False,
    past: Past | None = None,
) -> Outcome:
    """Run the policy against the environment until it stops or the next request would exceed the budget.

    With `last_call=0.5` the last half of the budget is one block, settled as a test. If `gaussian` says that
    their noise is Gaussian, that proves more than bets with the same measurements do; if not, hardly more.

    With a `past`, guesses or a history, the run begins with it; it wins no bet, so that nothing is promised
    on its account.

    The same seed gives the same outcome. A problem with `noise_scale=None` begins with a pilot (`Pilot()`
    unless given), as a session does. An environment that is noisier than the problem says is refused, since
    no promise holds there; `allow_noisier=True` is for experiments that want to see it. `progress` is called
    about ten times a second.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 1, 0], [0, 1, 1]], arm_names=["road", "depot", "rail"], noise_scale=1)
    >>> outcome = sp.simulate(problem, sp.CombGapE(), sp.Gaussian([2.0, 0.0, 1.0]), seed=0)
    >>> outcome.status, outcome.plan_name, outcome.counts.tolist()[1]
    (<Status.CONFIDENT: 'confident'>, 'plan 0', 0)
    """
    if budget < 1:
        raise ParameterError(f"budget is a number of measurements, 1 or more, got {budget!r}", field="budget")
    if last_call is not None and not 0 < last_call < 1:
        raise ParameterError(
            f"last_call is a share of the budget, between 0 and 1, got {last_call!r}", field="last_call"
        )
    check_gaussian(problem, gaussian)
    environment = fitted(problem, environment, allow_noisier=allow_noisier)
    past = fitting(problem, past)
    loop = _Loop(problem, policy, environment, seed, budget, progress, last_call, gaussian, past)
    run = loop.start(pilot_for(problem, policy, pilot, budget))
    return loop.outcome(run, loop.run_to_end(run))


@dataclass
class _Loop:
    """One simulation: what was measured so far; changed by `run_to_end` alone."""

    problem: Problem | OracleProblem
    policy: Policy
    environment: Environment
    seed: int
    budget: int
    progress: Callable[[Progress], None] | None
    last_call: float | None
    gaussian: bool
    past: Past | None = None

    def __post_init__(self) -> None:
        self.rng = environment_rng(self.seed)
        self.idle_rng = round_rng(self.seed, 0)  # for policies that draw nothing
        self.evidence = Evidence.none_of(self.problem)
        self.apart = Evidence.none_of(self.problem)  # a pilot that the run may not take in
        self.pilot: Pilot | None = None
        self.noise_scale = self.problem.noise_scale
        self.n_pilot = self.n_rounds = 0
        self.called = False  # whether the last call was made
        # bounded measurements of an environment that does not say where its own lie
        self.watched = (
            self.problem.bounds is not None
            and self.problem.probes is None
            and not isinstance(self.environment, BoundedEnvironment)
        )
        # values of an environment that does not say how noisy it is
        self.doubted = self.problem.probes is None and not isinstance(self.environment, NoisyEnvironment)
        self.began = self.shown = time.perf_counter()

    def start(self, pilot: Pilot | None) -> Run:
        """A fresh run; after a pilot when the noise scale is unknown."""
        if pilot is None:
            return start(self.policy, self.problem, self.past)
        moments, seen = self._measure_pilot(pilot)
        self.noise_scale = pilot.scale_bound(moments.variances(), self.problem, delta_of(self.policy))
        begun = begin(self.problem, self.policy, pilot, self.noise_scale, self.past)
        if not hand_over(begun, seen):
            self.apart = seen
        self.pilot, self.evidence, self.n_pilot = pilot, seen, seen.n_measurements
        return begun.run

    def _measure_pilot(self, pilot: Pilot) -> tuple[Moments, Evidence]:
        """The spread and the sums of the pilot's single measurements, read arm by arm as a session does."""
        counts, moments = pilot.counts(self.problem), Moments(self.problem.n_arms)
        once = np.minimum(counts, 1)
        values = np.array([self._measure(once) for _ in range(pilot.size)])  # (size, n_arms)
        for arm in map(int, np.flatnonzero(once)):
            for value in values[:, arm].tolist():
                moments.add(arm, value)
        return moments, Evidence(counts, np.array([math.fsum(column) for column in values.T.tolist()]))

    def run_to_end(self, run: Run) -> Stop | None:
        """Decide, measure, absorb; the policy's stop, or None when the budget is spent."""
        randomized = self.policy.randomized
        driven = run if isinstance(run, CompiledRun) else None
        fast = self.environment if is_compiled(self.environment) and not self.watched else None
        budgeted = run if isinstance(run, BudgetedRun) else None
        if self.last_call is not None:
            last_calling(self.policy, run)
        while True:
            left = self._left()
            if budgeted is not None:
                budgeted.allow(left)
            decision = run.decide(round_rng(self.seed, self.n_rounds) if randomized else self.idle_rng)
            if isinstance(decision, Stop):
                return decision
            if n_asked(self.policy, decision) > left:
                if self.last_call is None or self.called:
                    return None
                self._call_last(run)
                continue
            if driven is not None and fast is not None and self.n_rounds > 0:
                self._drive(driven, fast, min(CHUNK, left))
            else:
                self._step(run, decision)
            self._show(run)

    def _left(self) -> int:
        """Measurements that are left, without those that are kept for a last call."""
        share = 0.0 if self.last_call is None or self.called else self.last_call
        return math.floor((1.0 - share) * self.budget) - self.evidence.n_measurements

    def _call_last(self, run: Run) -> None:
        """What is left of the budget is one block, and a test; after a pilot the noise is Gaussian anyway."""
        self.called = True
        gaussian = self.gaussian or self.pilot is not None
        last_calling(self.policy, run).call_last(self._left(), gaussian=gaussian)

    def _step(self, run: Run, decision: Measure) -> None:
        if isinstance(run, ValueRun) and run.needs_values:
            values = single_values(self.environment, decision.counts, self.rng)
            sums = np.zeros(len(self.evidence.sums))
            for s, own in values.items():
                sums[s] = math.fsum(own.tolist())
            self._refuse(decision.counts, sums)
            run.absorb(decision.counts, sums, values=values)
        else:
            sums = self._measure(decision.counts)
            run.absorb(decision.counts, sums)
        self.evidence = self.evidence + self.evidence.with_sums(
            decision.counts, sums, decision.n_measurements
        )
        self.n_rounds += 1

    def _measure(self, counts: IntArray) -> FloatArray:
        sums = self.environment.measure(counts, self.rng)
        self._refuse(counts, sums)
        return sums

    def _refuse(self, counts: IntArray, sums: FloatArray) -> None:
        """Refuse sums that the problem's bounds or noise rule out."""
        if self.watched:
            refuse_outside_sums(self.problem, counts, sums)
        if self.doubted:
            refuse_far_sums(self.problem, counts, sums)

    def _drive(self, run: CompiledRun, environment: CompiledEnvironment, n: int) -> None:
        self.n_rounds += run.drive(environment.feed(), environment.draw(n, self.rng))
        self.evidence = self.apart + run.evidence

    def _show(self, run: Run) -> None:
        now = time.perf_counter()
        if self.progress is None or now - self.shown < PROGRESS_SECONDS:
            return
        self.shown = now
        n = self.evidence.n_measurements
        self.progress(Progress(n, self.n_rounds, self.budget, self._standing(run), now - self.began))

    def _standing(self, run: Run) -> Standing:
        return standing_after(self.pilot, delta_of(self.policy), run.standing())

    def outcome(self, run: Run, stop: Stop | None) -> Outcome:
        """What to tell the caller."""
        standing = self._standing(run)
        if self.noise_scale is None and isinstance(run, NoiseLearningRun):
            self.noise_scale = run.noise_estimate()
        plan, status = end_of(stop, standing, self.policy)
        lead = standing.lead if plan is None else plan
        return Outcome(
            plan=plan,
            plan_name=self.problem.name_of(plan),
            status=status,
            lead=lead,
            lead_name=self.problem.name_of(lead),
            n_measurements=self.evidence.n_measurements,
            n_rounds=self.n_rounds,
            cost=self.problem.spent(
                self.evidence.cost(self.problem.costs), self.n_rounds + (self.pilot is not None)
            ),
            counts=self.evidence.counts,
            means=self.evidence.means,
            standing=standing,
            policy=self.policy,
            guarantee=Promise.of(self.policy, self.problem).if_gaussian(self.called and self.gaussian).text,
            seed=self.seed,
            seconds=time.perf_counter() - self.began,
            noise_scale=self.noise_scale,
            n_pilot=self.n_pilot,
            problem=self.problem
            if self.noise_scale is self.problem.noise_scale
            else self.problem.with_noise(self.noise_scale),
            ranging=named_ranging(self.problem, plan, self.evidence),
        )
