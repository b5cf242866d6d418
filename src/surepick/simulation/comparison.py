"""Policies side by side on the same problem: how many measurements, how spread, how often wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surepick.core.oracle_problem import AnyProblem
from surepick.core.policy import Policy
from surepick.simulation.environments import Environment
from surepick.simulation.outcome import Outcome, State


@dataclass(frozen=True)
class Comparison:
    """The results of many runs of one policy on one problem.

    An error is a confident answer whose plan is worse than the best by more than the policy's epsilon. Runs
    cut off by the budget are counted, and their measurements are part of the mean: it is then a lower bound.
    """

    policy: Policy
    runs: int
    mean: float
    deviation: float
    median: float
    mean_cost: float
    errors: int
    error_interval: tuple[float, float]  # exact, 95%
    cut_off: int
    seconds: float  # a run


def knowing_noise(problem: AnyProblem, policy: Policy, environment: Environment) -> AnyProblem:
    """Return the problem, with the environment's noise where it is unknown and the policy cannot learn it."""
    scale = getattr(environment, "noise_scale", None)
    if policy.can_start(problem) or scale is None:
        return problem
    return problem.with_noise(np.broadcast_to(scale, (problem.n_arms,)))


def summary(policy: Policy, outcomes: Sequence[Outcome]) -> Comparison:
    """Return the comparison row of these outcomes."""
    measured = np.array([outcome.n_measured for outcome in outcomes], dtype=float)
    errors = sum(outcome.correct is False for outcome in outcomes)
    return Comparison(
        policy=policy,
        runs=len(outcomes),
        mean=float(measured.mean()),
        deviation=float(measured.std(ddof=1)) if len(outcomes) > 1 else 0.0,
        median=float(np.median(measured)),
        mean_cost=float(np.mean([outcome.cost for outcome in outcomes])),
        errors=errors,
        error_interval=binomial_interval(errors, len(outcomes)),
        cut_off=sum(outcome.state is State.BUDGET_SPENT for outcome in outcomes),
        seconds=float(np.mean([outcome.seconds for outcome in outcomes])),
    )


def binomial_interval(successes: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) interval for a probability seen `successes` times in `trials`.

    >>> low, high = binomial_interval(0, 100)
    >>> low, round(high, 4)
    (0.0, 0.0362)
    """
    from scipy.special import betaincinv  # the beta quantile; scipy.stats takes two seconds to import

    tail = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    return low, high
