"""An environment that fits its problem: the order of its arms, its noise, its bounds; else it is refused."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import MOST_SCALES, ROUNDING, FloatArray, IntArray, furthest_values, outside
from surepick.core.oracle_problem import OracleProblem
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.simulation.environments import (
    BoundedEnvironment,
    Environment,
    Gaussian,
    NamedEnvironment,
    NoisyEnvironment,
)
from surepick.simulation.probed import probed

REACH = 100.0  # noise scales that a simulated value may lie from its mean


def fitted(problem: Problem | OracleProblem, environment: Environment, *, allow_noisier: bool) -> Environment:
    """The environment for this problem: in the order of its arms, with its noise scale if it is to take that.

    >>> problem = Problem([[1, 0], [0, 1]], noise=[0.2, 0.3], goal="largest")
    >>> fitted(problem, Gaussian([1.0, 2.0]), allow_noisier=False).scale.tolist()
    [0.2, 0.3]
    """
    if isinstance(environment, NamedEnvironment) and environment.arm_names is not None:
        environment = environment.for_arms(problem.arm_names)
    if len(environment.means) != problem.n_arms:
        raise ParameterError(
            f"the environment has {len(environment.means)} arms and the problem {problem.n_arms}",
            field="environment",
        )
    problem.refuse_contrary(environment.means, "environment")
    if problem.is_listed and problem.probes is not None:
        return probed(problem, environment, allow_noisier=allow_noisier)
    if isinstance(environment, Gaussian) and environment.takes_scale:
        if problem.noise_scale is None:
            raise ParameterError(
                "the noise scale of the problem is unknown, so state one here: Gaussian(means, scale)",
                field="scale",
            )
        environment = environment.with_scale(problem.noise_scale)
    _refuse_outside(problem, environment)
    _refuse_far(problem, environment)
    if not allow_noisier:
        _refuse_noisier(problem, environment)
    return environment


def _refuse_outside(problem: Problem | OracleProblem, environment: Environment) -> None:
    """Refuse an environment that says that its measurements may lie outside the problem's bounds."""
    if problem.bounds is None or not isinstance(environment, BoundedEnvironment):
        return
    for arm, extremes in enumerate(environment.bounds.tolist()):
        if any(outside(problem.bounds, arm, value) for value in extremes):
            low, high = problem.bounds[arm].tolist()
            raise ParameterError(
                f"measurements of arm {arm} ({problem.arm_names[arm]!r}) lie within its bounds, {low:g} to "
                f"{high:g}, and this {type(environment).__name__} gives values from {extremes[0]:g} to "
                f"{extremes[1]:g}; use one within them, such as Bernoulli, UniformNoise or Replay",
                field="environment",
            )


def _refuse_noisier(problem: Problem | OracleProblem, environment: Environment) -> None:
    """Refuse an environment with more noise than the problem says: the guarantee would not hold in it."""
    if problem.noise_scale is None or not isinstance(environment, NoisyEnvironment):
        return
    here, stated = environment.noise_scale, problem.noise_scale
    for arm in np.flatnonzero(problem.relevant & (here > stated * (1 + ROUNDING)))[:1].tolist():
        raise ParameterError(
            f"arm {arm} ({problem.arm_names[arm]!r}) has noise of scale {here[arm]:.4g} in this "
            f"{type(environment).__name__}, and the problem says {stated[arm]:.4g}, on which the guarantee "
            "rests; give the problem a larger noise or the environment a smaller one, or, to see "
            "what happens without a guarantee, allow_noisier=True",
            field="environment",
        )


def _refuse_far(problem: Problem | OracleProblem, environment: Environment) -> None:
    """Refuse an environment whose values lie so far from zero that no session would take them."""
    reach = np.abs(environment.means)
    if isinstance(environment, NoisyEnvironment):
        reach = reach + REACH * environment.noise_scale
    furthest = furthest_values(problem.noise_scale, problem.n_arms)
    for arm in np.flatnonzero(reach > furthest)[:1].tolist():
        raise ParameterError(
            f"measurements of arm {arm} ({problem.arm_names[arm]!r}) may lie {reach[arm]:g} from zero in "
            f"this {type(environment).__name__}, and the limit is {furthest[arm]:g} ({MOST_SCALES:g} noise "
            "scales); beyond it rounding outweighs the noise; subtract a constant from all means",
            field="environment",
        )


def refuse_far_sums(problem: Problem | OracleProblem, counts: IntArray, sums: FloatArray) -> None:
    """Refuse sums that no session would take."""
    furthest = furthest_values(problem.noise_scale, problem.n_arms)
    for arm in np.flatnonzero((counts > 0) & ~(np.abs(sums) <= counts * furthest))[:1].tolist():
        raise ParameterError(
            f"the environment gave {sums[arm]:g} as the sum of {counts[arm]} measurements of arm {arm} "
            f"({problem.arm_names[arm]!r}); one may lie at most {furthest[arm]:g} from zero",
            field="environment",
        )


def refuse_outside_sums(problem: Problem | OracleProblem, counts: IntArray, sums: FloatArray) -> None:
    """Refuse sums that measurements within the problem's bounds cannot have."""
    assert problem.bounds is not None
    for arm in map(int, np.flatnonzero(counts)):
        n, total = int(counts[arm]), float(sums[arm])
        if outside(problem.bounds, arm, total, n):
            low, high = problem.bounds[arm].tolist()
            raise ParameterError(
                f"measurements of arm {arm} ({problem.arm_names[arm]!r}) must lie within its bounds, "
                f"{low:g} to {high:g}, and the environment gave {n} with a mean of {total / n:g}",
                field="environment",
            )
