"""LinGapE: compare the leader with the plan that may still beat it, by ridge estimates.

Paper: Xu, Honda & Sugiyama (2018), A Fully Adaptive Algorithm for Pure Exploration in Linear Bandits. With V
= I + X'X and ridge means V^-1 X'y, the radius of a pair is |y| in V^-1 times sqrt(2 log(K^2 / delta) + log
det V) + S, in units of the noise. The rival is the plan that may be furthest ahead of the leader; stop when
it is not ahead by more than epsilon. Vectors are measured by the ratio rule: the one furthest behind its
share in the least sum of |w| with X'w = y. Single arms are measured greedily, argmax y_s^2 / ((T_s + 1)(T_s +
2)).

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
from surepick.peers.linear import arm_readings, probe_readings
from surepick.peers.sequential import SequentialRun, among
from surepick.policies.sound import WithinPolicy, check_setting

_LEAST_SHARE = 1e-9  # of the ratio rule: a smaller one is none


class RidgeRun(SequentialRun):
    """A run of LinGapE; plans are as given, since S bounds the norm of the arms' means."""

    def __init__(self, problem: Problem, policy: LinGapE) -> None:
        plans, probes = as_dense(problem.oriented), problem.probes
        self._norm_bound = policy.norm_bound
        self._costs: FloatArray | None = None  # of single arms
        if probes is not None:
            refuse_unknown(probes, policy.name)
            self._readings = probe_readings(probes, probes.whitened.toarray(), plans)
        else:
            scale = known_noise_scale(problem)
            arms = np.flatnonzero(problem.relevant)
            self._costs = problem.costs[arms]
            self._norm_bound /= float(scale.min())
            self._readings = arm_readings(problem, np.eye(len(arms)), plans[:, arms] * scale[arms])
        super().__init__(self._readings, self._readings.plans.shape[1])
        self._policy = policy
        self._now = Standing()  # by the last judgement
        self._ratios: dict[tuple[int, int], FloatArray] = {}

    def _judge(self) -> int | None:
        """Compare all plans with the leader; answer if none may be ahead by more than epsilon."""
        plans, policy = self._readings.plans, self._policy
        matrix = np.eye(plans.shape[1]) + self._readings.information(self._counts.astype(float))
        inverse = np.linalg.inv(matrix)
        values = plans @ (inverse @ self._sums)
        leader = int(np.argmax(values))
        contrasts = plans[leader] - plans
        length = np.sqrt(np.maximum(np.einsum("kd,kd->k", contrasts @ inverse, contrasts), 0.0))
        log_volume = float(np.linalg.slogdet(matrix)[1])
        width = math.sqrt(2 * math.log(len(values) ** 2 / policy.delta) + log_volume) + self._norm_bound
        ahead = width * length - (values[leader] - values)  # by how much each plan may be ahead
        ahead[leader] = -np.inf
        rival = int(np.argmax(ahead))
        gap = float(values[leader] - values[rival])
        remaining = np.append(np.flatnonzero(ahead > policy.epsilon), leader)
        self._now = among(Standing(leader, rival, gap, float(width * length[rival])), remaining)
        return leader if len(remaining) == 1 else None

    def _compare(self) -> Standing:
        return self._now

    def _choose(self, rng: np.random.Generator) -> IntArray:
        """Use the arm that takes most off the variance; of probes the one furthest behind its share."""
        leader, rival = self._now.leader, self._now.rival
        assert isinstance(leader, int)
        assert isinstance(rival, int)
        contrast = self._readings.plans[leader] - self._readings.plans[rival]
        if self._costs is not None:
            gains = contrast**2 / ((self._counts + 1.0) * (self._counts + 2.0) * self._costs)
            return self._once(int(np.argmax(gains)))
        if (leader, rival) not in self._ratios:
            self._ratios[leader, rival] = self._ratio(contrast)
        ratio = self._ratios[leader, rival]
        progress = np.where(ratio > _LEAST_SHARE, self._counts / np.maximum(ratio, _LEAST_SHARE), np.inf)
        return self._once(int(np.argmin(progress)))

    def _ratio(self, contrast: FloatArray) -> FloatArray:
        """Return the shares of the probes in the least sum of |w| with X'w = y."""
        from scipy.optimize import linprog

        rows, n = self._readings.rows, len(self._readings.rows)
        # w = u - v with u, v >= 0, of which the program takes the least sum
        found: Any = linprog(np.ones(2 * n), A_eq=np.hstack([rows.T, -rows.T]), b_eq=contrast)
        weights = self._readings.per_option(np.abs(found.x[:n] - found.x[n:]))
        return np.asarray(weights / weights.sum())


@dataclass(frozen=True)
class LinGapE(WithinPolicy, run=RidgeRun):
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
