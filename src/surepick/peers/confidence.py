"""Confidence bounds of arms: LUCB, UGapE, LilUCB between single arms, GenLUCB between sets of arms.

LUCB: measure the leader and the arm that could still be better, until their bounds part.

Paper: Kalyanakrishnan, Tewari, Auer & Stone (2012), PAC Subset Selection in Stochastic Multi-Armed Bandits,
for one arm (LUCB1). In round t, with K arms and beta_i = R_i sqrt(2 log(5 K t^4 / (4 delta)) / n_i): lead h =
largest mean, l = largest mean + beta of the others; stop if mean_l + beta_l - (mean_h - beta_h) < epsilon,
else measure both.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem (paper: within [0, 1],
whose scale is 1/2). Proof status: proved: one tail for each arm, each count up to t and each round t adds up
to 4/5 of the sum of 1/t^3, below delta.

Deviations: with epsilon = 0 the bounds must part (the paper needs epsilon above 0 to stop on ties); t counts
measurements, which is more than rounds. Costs are not used.

Cost of a round: two passes over the arms.

UGapE: name the arm whose worst-case gap is smallest, and measure it or its strongest rival.

Paper: Gabillon, Ghavamzadeh & Lazaric (2012), Best Arm Identification: A Unified Approach to Fixed Budget and
Fixed Confidence, for one arm and fixed confidence (UGapEc). With K arms, t measurements so far, beta_k =
R_k sqrt(2 log(4 K t^3 / delta) / n_k), upper and lower bounds U_k, L_k = mean_k +- beta_k:

    1. B_k = the largest U_i of the other arms, less L_k: what naming k could cost at most;
    2. J = argmin B_k, u = the arm other than J with the largest U; stop with J if B_J < epsilon;
    3. measure the one of J and u with the wider bounds.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem (paper: within a range
b, whose scale is b/2). Proof status: proved: one tail for each arm, count up to t and round t adds up to
delta/2 times the sum of 1/t^2, below delta; while the bounds hold, naming J costs at most B_J.

Deviations: with epsilon = 0 the bounds must part (B_J <= 0); the paper's constant c is 1/2, as in its proof.
UGapEb, the variant for a budget, is left out: its bounds need the sum of the squared inverse gaps, which is
unknown (SuccessiveRejects needs no such thing). Reconstructed: the text of the paper could not be read here.
Costs are not used.

Cost of a round: a few passes over the arms.

lil'UCB: measure the largest upper bound, and stop when one arm has most of the measurements.

Paper: Jamieson, Malloy, Nowak & Bubeck (2014), lil'UCB: An Optimal Exploration Algorithm for Multi-Armed
Bandits. Measure the arm with the largest

    mean_i + (1 + beta) (1 + sqrt(eps)) R sqrt(2 (1 + eps) log(log((1 + eps) n_i)/d) / n_i)

and stop when some n_i >= 1 + lam sum of the other counts; that arm is the answer.

| variant | eps | beta | lam | d |
|---|---|---|---|---|
| `paper` | .01 | 1 | q (1 + log(2 log(q/d))/log(1/d)) | (sqrt(1 + delta) - 1)^2/(4 c) |
| `heuristic` | 0 | 1/2 | 1 + 10/K | delta/5 |

with q = ((2 + beta)/beta)^2 and c = (2 + eps)/eps (1/log(1 + eps))^(1 + eps).

Assumption: independent sub-Gaussian measurements; different noise scales count as the largest of them. Proof
status: `paper` is proved (their Theorem 2), `heuristic`, which their experiments run, is not.

Deviations: log log n is taken at n of 3 or more. Costs are not used. Cost of a round: a pass over the arms.

GenLUCB: the plan that is best at its worst against the plan that is best at its best.

Paper: Du, Kuroki & Chen (2021), Combinatorial Pure Exploration with Bottleneck Reward Function, in its form
for general rewards, as Nakamura & Sugiyama describe it (CombGapE, appendix B); here the reward is the sum.
With rad_s = R_s sqrt(2 log(4 d t^3 / delta) / T_s), t = measurements so far + 1: M = the plan with the
largest value at means - rad, M' = the other plan with the largest value at means + rad; stop when the first
of these values is at least the second, else measure the arm of largest rad among those that M or M' has.

Assumption: independent sub-Gaussian measurements with the noise scale of the problem.

Proof status: proved: every arm, every count up to t and every round t have their own share of delta, as in
CLUCB; while all intervals hold, M is at least as good as every other plan at the stop.

Deviations: d counts the arms on which plans differ, and the others are not measured. Plans must be sets of
arms: between real plans it is not clear what M, M' and their union are, as the paper says. Costs are not
used.

Cost of a round: one pass over all entries of the plans.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.guarantee import Promise
from surepick.core.plan_sets import check_zeros_and_ones
from surepick.core.problem import Problem
from surepick.core.run import Standing
from surepick.peers.sequential import ArmsRun, RelevantArmsRun
from surepick.policies.sound import SoundPolicy, WithinPolicy, check_choice


class BoundsRun(ArmsRun):
    """A run that stops when the leader's lower bound is above the upper bound of its strongest rival."""

    def __init__(self, problem: Problem, policy: WithinPolicy) -> None:
        super().__init__(problem, policy.name)
        self._policy = policy

    @abstractmethod
    def bounds(self) -> tuple[int, int, float]:
        """Return the leader, its rival, and the rival's upper bound minus the leader's lower bound."""

    def judge(self) -> int | None:
        """Return the leader once the bounds do not overlap, or by less than epsilon; None to continue."""
        leader, _, overlap = self.bounds()
        return leader if overlap <= 0 or overlap < self._policy.epsilon else None

    def compare(self) -> Standing:
        """Return the leader, its rival, their gap and the sum of their radii."""
        leader, rival, overlap = self.bounds()
        gap = float(self._means[leader] - self._means[rival])
        return Standing(leader, rival, gap, gap + overlap)

    def _radii(self, log_term: float) -> FloatArray:
        return np.asarray(self._scale * np.sqrt(2.0 * log_term / self._counts))


class LUCBRun(BoundsRun):
    """A run of LUCB."""

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the leader and the rival."""
        del rng  # nothing is drawn
        return self._once(*self.bounds()[:2])

    def bounds(self) -> tuple[int, int, float]:
        """Return h, l and mean_l + beta_l - (mean_h - beta_h)."""
        t, lead = float(self._counts.sum()), self._lead
        beta = self._radii(math.log(1.25 * len(self._means) * t**4 / self._policy.delta))
        upper = self._means + beta
        upper[lead] = -np.inf
        rival = int(np.argmax(upper))
        return lead, rival, float(upper[rival] - self._means[lead] + beta[lead])


@dataclass(frozen=True)
class LUCB(WithinPolicy):
    """Lower and upper confidence bounds: the leader and its strongest rival, two measurements a round."""

    name: ClassVar[str] = "LUCB"
    _run: ClassVar[type[Any]] = LUCBRun


class UGapERun(BoundsRun):
    """A run of UGapE."""

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the leader or its rival, whichever has the wider bounds."""
        del rng  # nothing is drawn
        leader, rival, _ = self.bounds()
        widths = self._scale / np.sqrt(self._counts)
        return self._once(leader if widths[leader] > widths[rival] else rival)

    def bounds(self) -> tuple[int, int, float]:
        """Return J, u and B_J."""
        t, means = float(self._counts.sum()), self._means
        beta = self._radii(math.log(4.0 * len(means) * t**3 / self._policy.delta))
        upper = means + beta
        first, second = np.argsort(-upper, kind="stable")[:2]
        rivals = np.where(np.arange(len(means)) == first, second, first)  # the best upper bound of the others
        costs = upper[rivals] - (means - beta)
        leader = int(np.argmin(costs))
        return leader, int(rivals[leader]), float(costs[leader])


@dataclass(frozen=True)
class UGapE(WithinPolicy):
    """Unified gap-based exploration: one measurement a round, of the leader or its strongest rival."""

    name: ClassVar[str] = "UGapE"
    _run: ClassVar[type[Any]] = UGapERun


class LilUCBRun(ArmsRun):
    """A run of lil'UCB."""

    def __init__(self, problem: Problem, policy: LilUCB) -> None:
        super().__init__(problem, policy.name)
        self._eps, self._beta, self._lam, self._d = constants(policy, self._candidates.n_plans)

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the largest upper bound."""
        del rng  # nothing is drawn
        log_log = np.log(np.log((1.0 + self._eps) * np.maximum(self._counts, 3)) / self._d)
        width = (1.0 + self._beta) * (1.0 + math.sqrt(self._eps)) * float(self._scale.max())
        upper = self._means + width * np.sqrt(2.0 * (1.0 + self._eps) * log_log / self._counts)
        return self._once(int(np.argmax(upper)))

    def judge(self) -> int | None:
        """Answer when one arm has most of the measurements."""
        most = int(np.argmax(self._counts))
        others = int(self._counts.sum() - self._counts[most])
        return most if others and self._counts[most] >= 1.0 + self._lam * others else None


@dataclass(frozen=True)
class LilUCB(SoundPolicy):
    """Upper bounds by the law of the iterated logarithm; `variant` is "paper" (proved) or "heuristic"."""

    variant: str = "paper"

    name: ClassVar[str] = "LilUCB"
    _run: ClassVar[type[Any]] = LilUCBRun

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, "paper", "heuristic")

    @property
    def guarantee(self) -> str:
        """Return the guarantee and its assumption, or what is missing for one."""
        if self.variant == "paper":
            return super().guarantee
        return Promise.none("lil'UCB's heuristic constants have no proof").text


def constants(policy: LilUCB, n_plans: int) -> tuple[float, float, float, float]:
    """Return eps, beta, lam and d of the variant.

    >>> [round(value, 4) for value in constants(LilUCB(0.05, "heuristic"), 10)]
    [0.0, 0.5, 2.0, 0.01]
    """
    if policy.variant == "heuristic":
        return 0.0, 0.5, 1.0 + 10.0 / n_plans, policy.delta / 5.0
    eps, beta = 0.01, 1.0
    c = (2.0 + eps) / eps * (1.0 / math.log1p(eps)) ** (1.0 + eps)
    d = (math.sqrt(1.0 + policy.delta) - 1.0) ** 2 / (4.0 * c)
    ratio = ((2.0 + beta) / beta) ** 2
    lam = ratio * (1.0 + math.log(2.0 * math.log(ratio / d)) / math.log(1.0 / d))
    return eps, beta, lam, d


@dataclass(frozen=True)
class GenLUCB(SoundPolicy):
    """The plan with the largest pessimistic value against the largest optimistic one, for sets of arms."""

    name: ClassVar[str] = "GenLUCB"

    def start(self, problem: Problem) -> GenLUCBRun:
        """Return a fresh run on this problem, whose plans must be sets of arms."""
        check_zeros_and_ones(
            problem,
            self.name,
            "with real amounts it is not clear which arms two plans have in common; use CLUCB or CombGapE, "
            "which take any numbers",
        )
        return GenLUCBRun(problem, self)


class GenLUCBRun(RelevantArmsRun):
    """A run of GenLUCB."""

    def __init__(self, problem: Problem, policy: GenLUCB) -> None:
        super().__init__(problem)
        self._delta = policy.delta
        self._plans: FloatArray = np.ascontiguousarray(as_dense(problem.oriented)[:, self._arms])

    def choose(self, rng: np.random.Generator) -> IntArray:
        """Measure the widest arm of the two plans."""
        del rng  # nothing is drawn
        best, other, _, rad = self.bounds()
        united = (self._plans[best] != 0) | (self._plans[other] != 0)
        return self._once(int(np.argmax(np.where(united, rad, -np.inf))))

    def judge(self) -> int | None:
        """Answer with M when its worst is at least the best of M'."""
        best, _, apart, _ = self.bounds()
        return best if apart >= 0 else None

    def compare(self) -> Standing:
        """Return M, M', their gap, and how far their bounds are apart as its radius."""
        best, other, apart, _ = self.bounds()
        gap = float((self._plans[best] - self._plans[other]) @ self._means)
        return Standing(best, other, gap, gap - apart)

    def bounds(self) -> tuple[int, int, float, FloatArray]:
        """Return M, M', how far the worst of the one is above the best of the other, and the arms' radii."""
        t, d = float(self._counts.sum()) + 1.0, len(self._counts)
        rad = self._scale * np.sqrt(2.0 * math.log(4.0 * d * t**3 / self._delta) / self._counts)
        values, width = self._plans @ self._means, np.abs(self._plans) @ rad
        best = int(np.argmax(values - width))
        upper = values + width
        upper[best] = -np.inf
        other = int(np.argmax(upper))
        return best, other, float(values[best] - width[best] - upper[other]), rad
