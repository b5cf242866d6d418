"""Whether measurements spread more than their noise scale allows, on which the guarantee rests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from surepick.core.evidence import Moments
from surepick.core.oracle_problem import AnyProblem

NOISE_LEVEL = 0.001  # how often the check may warn of nothing, over all arms together


@dataclass(frozen=True)
class NoiseFinding:
    """An arm whose measurements spread more than its noise scale allows."""

    arm: int
    arm_name: str
    n_measurements: int
    spread: float  # the sample standard deviation
    noise_scale: float

    def __str__(self) -> str:
        return (
            f"the {self.n_measurements} measurements of {self.arm_name!r} have a standard deviation of "
            f"{self.spread:.4g}, more than the noise scale {self.noise_scale:.4g} allows; the guarantee "
            "assumes the noise scale, so begin again with a larger one, or with noise_scale unknown"
        )


def check_noise(problem: AnyProblem, moments: Moments) -> tuple[NoiseFinding, ...]:
    """Arms whose measurements spread more than the noise scale allows, for Gaussian noise.

    Each arm's sum of squares is compared with its chi-square distribution; over all arms together the check
    warns of nothing with probability at most 0.001. Noise that is smaller than the scale is fine.
    """
    if problem.noise_scale is None:
        return ()
    counts, variances = moments.counts(), moments.variances()
    checked = np.flatnonzero(counts > 1)
    findings = []
    for arm in checked.tolist():
        scale, freedom = float(problem.noise_scale[arm]), int(counts[arm]) - 1
        limit = scale**2 * float(stats.chi2.isf(NOISE_LEVEL / len(checked), freedom)) / freedom
        if variances[arm] > limit:
            spread = float(np.sqrt(variances[arm]))
            findings.append(NoiseFinding(arm, problem.arm_names[arm], freedom + 1, spread, scale))
    return tuple(findings)
