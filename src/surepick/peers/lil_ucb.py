"""lil'UCB: measure the largest upper bound, and stop when one arm has most of the measurements.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.guarantee import Promise
from surepick.core.problem import Problem
from surepick.errors import ParameterError
from surepick.peers.sequential import ArmsRun
from surepick.policies.sound import SoundPolicy


@dataclass(frozen=True)
class LilUCB(SoundPolicy):
    """Upper bounds by the law of the iterated logarithm; `variant` is "paper" (proved) or "heuristic".

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise=1, goal="largest")
    >>> truth = sp.Gaussian([1.0, 0.4, 0.0])
    >>> sp.simulate(problem, truth, policy=sp.policies.LilUCB(variant="heuristic"), seed=1).plan
    0
    """

    variant: str = "paper"

    name: ClassVar[str] = "LilUCB"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant not in ("paper", "heuristic"):
            raise ParameterError(
                f"variant must be 'paper' or 'heuristic', got {self.variant!r}", field="variant"
            )

    @property
    def guarantee(self) -> str:
        """Return the guarantee and its assumption, or what is missing for one."""
        if self.variant == "paper":
            return super().guarantee
        return Promise.none("lil'UCB's heuristic constants have no proof").text

    def start(self, problem: Problem) -> LilUCBRun:
        """Return a fresh run on this problem, whose plans must be single arms."""
        return LilUCBRun(problem, self)


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
