"""The one loop of simulations, and its compiled twin."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from surepick.core.answers import named_ranging
from surepick.core.arrays import FloatArray, IntArray
from surepick.core.evidence import Evidence
from surepick.core.given.numbers import Numbers
from surepick.core.oracle_problem import AnyProblem, OracleProblem
from surepick.core.policy import Policy, check_final_batch, check_gaussian, n_asked, start
from surepick.core.prior_data import PriorData, fitting
from surepick.core.problem import Problem
from surepick.core.run import Measure, Run, Stop
from surepick.errors import ParameterError, hinted
from surepick.policies import policy_for
from surepick.policies.betting.batch_run import BatchRun
from surepick.simulation.environments import Arms, Environment
from surepick.simulation.fitting import environment_of, fitted, refuse_sums, single_values
from surepick.simulation.outcome import Outcome, end_of
from surepick.simulation.seeds import environment_rng, round_rng

if TYPE_CHECKING:
    from surepick.kernels import Feed

CHUNK = 4096  # rounds the compiled driver runs before it looks up
MOST = 10**7  # measurements, unless a budget is given


@runtime_checkable
class CompiledRun(Protocol):
    """A run that can take many single measurements in compiled code."""

    @property
    def evidence(self) -> Evidence:
        """All that the run has absorbed."""
        ...

    def drive(self, feed: Feed, draws: FloatArray) -> int:
        """Measure and decide, one draw a round, until the draws are used or the run stops."""
        ...


@hinted
def simulate(
    problem: AnyProblem,
    truth: Environment | Numbers,
    *,
    noise: Numbers | None = None,
    policy: str | Policy | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    budget: int | None = None,
    seed: int = 0,
    prior: PriorData | None = None,
    final_batch: float | None = None,
    gaussian: bool = False,
    allow_noisier: bool = False,
) -> Outcome:
    """Simulate a decision until the policy stops or the next request would exceed the budget.

    - truth: the true means, or an `Environment`. Means are measured with normal noise; with uniform noise
      where the problem states `low` and `high`.
    - noise: standard deviation of that noise. Unless given, it is the problem's; within `low` and `high`, as
      much as they allow.
    - policy: a name, or an instance, which has its own delta and epsilon; BetGapE unless given.
    - delta, epsilon: how often the answer may be wrong (0.05), and the difference that does not matter (0).
    - budget: the most measurements; 10 million.
    - seed: the same seed gives the same outcome.
    - prior: prior data that guide the policy and never count as evidence.
    - final_batch, gaussian: the share of the budget for a final batch, which is settled as a test, and
      whether that test may rest on Gaussian noise.
    - allow_noisier: accept an environment noisier than the problem states, where no guarantee holds.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 1, 0], [0, 1, 1]], arms=["road", "depot", "rail"], noise=1, goal="largest")
    >>> outcome = sp.simulate(problem, sp.simulation.Gaussian([2.0, 0.0, 1.0]), policy=sp.CombGapE(), seed=0)
    >>> outcome.state, outcome.plan_name, outcome.counts.tolist()[1]
    (<State.CONFIDENT: 'confident'>, 'plan 0', 0)
    """
    budget = MOST if budget is None else budget
    if budget < 1:
        raise ParameterError(f"budget is a number of measurements, 1 or more, got {budget!r}", field="budget")
    if final_batch is not None and not 0 < final_batch < 1:
        raise ParameterError(
            f"final_batch is a share of the budget, between 0 and 1, got {final_batch!r}", field="final_batch"
        )
    check_gaussian(problem, gaussian=gaussian)
    policy = policy_for(policy, delta=delta, epsilon=epsilon)
    environment = fitted(problem, _environment(problem, truth, noise), allow_noisier=allow_noisier)
    prior = fitting(problem, prior)
    loop = _Loop(problem, policy, environment, seed, budget, final_batch, gaussian)
    run = start(policy, problem, prior)
    return loop.outcome(run, loop.run_to_end(run))


def _environment(problem: AnyProblem, truth: Environment | Numbers, noise: Numbers | None) -> Environment:
    """Return the given environment, or that of these means."""
    if isinstance(truth, Policy):
        raise TypeError("simulate(problem, truth, policy=...): the policy is given by name")
    if not isinstance(truth, Environment):
        return environment_of(problem, truth, noise)
    if noise is not None:
        raise ParameterError(f"{type(truth).__name__} has its own noise; leave noise out", field="noise")
    return truth


@dataclass
class _Loop:
    """One simulation: what was measured so far; changed by `run_to_end` alone."""

    problem: Problem | OracleProblem
    policy: Policy
    environment: Environment
    seed: int
    budget: int
    final_batch: float | None
    gaussian: bool

    def __post_init__(self) -> None:
        self.rng = environment_rng(self.seed)
        self.idle_rng = round_rng(self.seed, 0)  # for policies that draw nothing
        self.evidence = Evidence.none_of(self.problem)
        self.n_rounds = 0
        self.final_batch_began = False
        # an environment of the caller's own: its values are checked, which those of `Arms` need not be
        self.checks_values = self.problem.probes is None and not isinstance(self.environment, Arms)
        self.began = time.perf_counter()

    def run_to_end(self, run: Run) -> Stop | None:
        """Decide, measure, absorb; return the policy's stop, or None when the budget is spent."""
        randomized = self.policy.randomized
        # these two together take many rounds at once in compiled code
        compiled_run = run if isinstance(run, CompiledRun) else None
        arms = self.environment if isinstance(self.environment, Arms) else None
        if self.final_batch is not None:
            check_final_batch(self.policy, run)
        while True:
            left = self._left()
            run.allow(left)
            decision = run.decide(round_rng(self.seed, self.n_rounds) if randomized else self.idle_rng)
            if isinstance(decision, Stop):
                return decision
            if n_asked(self.policy, decision) > left:
                if self.final_batch is None or self.final_batch_began:
                    return None
                self.final_batch_began = True  # what is left of the budget is one batch, which is a test
                run.call_final_batch(self._left(), gaussian=self.gaussian)
                continue
            if compiled_run is not None and arms is not None and self.n_rounds > 0:
                self.n_rounds += compiled_run.drive(arms.feed(), arms.draw(min(CHUNK, left), self.rng))
                self.evidence = compiled_run.evidence
            else:
                self._step(run, decision)

    def _left(self) -> int:
        """Return the measurements left in the budget, without those reserved for a final batch."""
        share = 0.0 if self.final_batch is None or self.final_batch_began else self.final_batch
        return math.floor((1.0 - share) * self.budget) - self.evidence.n_measurements

    def _step(self, run: Run, decision: Measure) -> None:
        """Measure what is asked for, and let the run absorb it."""
        if isinstance(run, BatchRun) and run.needs_values:
            values = single_values(self.environment, decision.counts, self.rng, self.problem)
            sums = np.zeros(len(self.evidence.sums))
            for s, own in values.items():
                sums[self.problem.readings_counted(s)] = [math.fsum(column) for column in own.T.tolist()]
            run.absorb(decision.counts, self._checked(decision.counts, sums), values=values)
        else:
            sums = self._checked(decision.counts, self.environment.measure(decision.counts, self.rng))
            run.absorb(decision.counts, sums)
        self.evidence = self.evidence + self.evidence.with_sums(
            decision.counts, sums, decision.n_measurements
        )
        self.n_rounds += 1

    def _checked(self, counts: IntArray, sums: FloatArray) -> FloatArray:
        if self.checks_values:
            refuse_sums(self.problem, counts, sums)
        return sums

    def outcome(self, run: Run, stop: Stop | None) -> Outcome:
        """Return the outcome of the run as it stands."""
        standing = run.standing()
        scale = self.problem.noise_scale
        if scale is None and isinstance(run, BatchRun):
            scale = run.noise_estimate()
        is_gaussian = self.final_batch_began and self.gaussian
        guarantee = self.policy.guarantee_on(self.problem).if_gaussian(is_gaussian)
        plan, state = end_of(stop, standing, self.policy)
        leader = standing.leader if plan is None else plan
        return Outcome(
            plan=plan,
            plan_name=self.problem.name_of(plan),
            state=state,
            leader=leader,
            leader_name=self.problem.name_of(leader),
            n_measured=self.evidence.n_measurements,
            n_rounds=self.n_rounds,
            cost=self.problem.spent(self.evidence.cost(self.problem.costs), self.n_rounds),
            counts=self.evidence.counts,
            means=self.evidence.means,
            standing=standing,
            policy=self.policy,
            guarantee=guarantee.text,
            seed=self.seed,
            seconds=time.perf_counter() - self.began,
            noise_scale=scale,
            problem=self.problem if scale is self.problem.noise_scale else self.problem.with_noise(scale),
            ranging=named_ranging(self.problem, plan, self.evidence),
            true_means=np.asarray(self.environment.means, dtype=float),
        )
