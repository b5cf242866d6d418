"""LinGapE: compare the leader with the plan that may still beat it, by ridge estimates.

Paper: Xu, Honda & Sugiyama (2018), A Fully Adaptive Algorithm for Pure Exploration in Linear Bandits. With V
= I + X'X and ridge means V^-1 X'y, the radius of a pair is |y| in V^-1 times sqrt(2 log(K^2 / delta) + log
det V) + S, in units of the noise. The rival is the plan that may be furthest ahead of the leader; stop when
it is not ahead by more than epsilon. Vectors are measured by the ratio rule: the one furthest behind its
share in the least sum of |w| with X'w = y. Single arms are measured greedily, argmax y_s^2 / ((T_s + 1)(T_s +
2)), in the loop of CombGapE.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem, and true means whose
Euclidean norm is at most S = `norm_bound`. Proof status: proved then (self-normalised bound of
Abbasi-Yadkori, Pal & Szepesvari 2011, for all pairs and rounds at once); with larger means there is no
guarantee: ridge pulls estimates towards 0. Deviations: every arm or probe is measured once first; noise
scales of arms are taken out by measuring each in units of its own, S divided by the smallest; costs divide
the greedy gain. A round costs one pass over the plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.policy import known_noise_scale
from surepick.core.probes import refuse_unknown
from surepick.core.problem import Problem
from surepick.core.run import Standing
from surepick.peers.linear import probe_readings
from surepick.peers.sequential import SequentialRun
from surepick.policies.gap import radius as radii
from surepick.policies.gap.run import GapRun
from surepick.policies.sound import WithinPolicy, check_setting

_LEAST_SHARE = 1e-9  # of the ratio rule: a smaller one is none


class RidgeRun(SequentialRun):
    """A run of LinGapE on probes; plans are as given, since S bounds the norm of the arms' means."""

    def __init__(self, problem: Problem, policy: LinGapE) -> None:
        probes = problem.probes
        assert probes is not None
        refuse_unknown(probes, policy.name)
        plans = as_dense(problem.oriented)
        self._readings = probe_readings(probes, probes.whitened.toarray(), plans)
        super().__init__(self._readings, plans.shape[1])
        self._policy, self._now = policy, Standing()
        self._ratios: dict[tuple[int, int], FloatArray] = {}

    def _judge(self) -> int | None:
        """Compare all plans with the leader; answer if none may be ahead by more than epsilon."""
        plans, policy = self._readings.plans, self._policy
        matrix = np.eye(plans.shape[1]) + self._readings.information(self._counts.astype(float))
        inverse = np.linalg.inv(matrix)
        values = plans @ (inverse @ self._sums)
        lead = int(np.argmax(values))
        contrasts = plans[lead] - plans
        length = np.sqrt(np.maximum(np.einsum("kd,kd->k", contrasts @ inverse, contrasts), 0.0))
        log_volume = float(np.linalg.slogdet(matrix)[1])
        width = math.sqrt(2 * math.log(len(values) ** 2 / policy.delta) + log_volume) + policy.norm_bound
        above = width * length - (values[lead] - values)
        above[lead] = -np.inf
        rival = int(np.argmax(above))
        self._now = Standing(lead, rival, float(values[lead] - values[rival]), float(width * length[rival]))
        return lead if above[rival] <= policy.epsilon else None

    def _compare(self) -> Standing:
        return self._now

    def _choose(self) -> IntArray:
        """Use the probe that is furthest behind its share."""
        pair = lead, rival = self._now.leader, self._now.rival
        assert isinstance(lead, int)
        assert isinstance(rival, int)
        if pair not in self._ratios:
            from scipy.optimize import linprog

            rows, n, y = self._readings.rows, len(self._readings.rows), self._readings.plans[[lead, rival]]
            found: Any = linprog(np.ones(2 * n), A_eq=np.hstack([rows.T, -rows.T]), b_eq=y[0] - y[1])
            weights = self._readings.of_ways(np.abs(found.x[:n] - found.x[n:]))
            self._ratios[lead, rival] = weights / weights.sum()
        ratio = self._ratios[lead, rival]
        behind = np.where(ratio > _LEAST_SHARE, self._counts / np.maximum(ratio, _LEAST_SHARE), np.inf)
        return self._once(int(np.argmin(behind)))


@dataclass(frozen=True)
class LinGapE(WithinPolicy):
    """Compare the leader with the plan that may still beat it, all means being known to be small.

    `norm_bound` is the largest that the Euclidean norm of the true means can be; the default of 1 is that
    of the paper's experiments, and rarely true elsewhere.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest")
    >>> sp.simulate(problem, [1.0, 0.0], policy=sp.policies.LinGapE(delta=0.05), seed=1).plan
    0
    """

    norm_bound: float = 1.0

    takes_probes: ClassVar[bool] = True
    _besides: ClassVar[str] = " and a norm of the means of at most norm_bound"

    def __post_init__(self) -> None:
        super().__post_init__()
        right = self.norm_bound >= 0 and math.isfinite(self.norm_bound)
        meaning = "the largest norm of the true means, 0 or more"
        check_setting("norm_bound", self.norm_bound, right=right, meaning=meaning)

    def start(self, problem: Problem) -> GapRun | RidgeRun:
        """Return a fresh run on this problem."""
        if problem.probes is not None:
            return RidgeRun(problem, self)
        in_units = self.norm_bound / float(known_noise_scale(problem).min())
        return GapRun(problem, self, radii.RIDGE_RADIUS, "gap", norm_bound=in_units)
