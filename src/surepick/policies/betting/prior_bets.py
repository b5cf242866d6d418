"""Single bets that begin with an idea of the gap: it is probably some share of the noise of one measurement.

A mixture over gaps g ~ N(0, (share x unit)^2) above 0, given what the past says of the gap, for each of a few
shares. It is what a Bayesian with this prior would bet: little while the gap may be anything, and no more
than the data support later. Fair by step 3 of docs/theory.md: centre and spread are known before a block.
Beside a ladder over all sizes it costs one or two nats less where the guess is right within a factor of
three, and more where it is far off; the wide and the narrow shares bound that.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.policies.betting.wealth import Gaps


class Priors:
    """Mixtures for gaps about these shares of the noise; the last purse's has no prior at all."""

    def __init__(self, priors: tuple[tuple[float, float], ...], distrust: float) -> None:
        self._priors, self._distrust = priors, distrust
        self.n_first = len(priors)

    def first_stakes(self, share: float) -> FloatArray:
        """Logs of the parts of this share that the purses of the first stake get."""
        parts = np.array([part for _, part in self._priors])
        return np.asarray(math.log(share) + np.log(parts / parts.sum()))

    def factors(self, gaps: Gaps) -> FloatArray:
        """One column a prior, and the last without one."""
        from surepick.policies.betting.bets import settle_mixtures

        spread = np.maximum(gaps.prior, 1e-300)
        wide = (np.array([share for share, _ in self._priors])[:, None] * gaps.unit) ** 2
        centre = gaps.estimate - self._distrust * np.sqrt(gaps.old * spread)
        kept = wide / np.maximum(wide + spread, 1e-300)
        factors = np.zeros((len(centre), self.n_first + 1))
        centres, spreads = np.vstack([kept * gaps.estimate, centre]), np.vstack([kept * spread, spread])
        settle_mixtures(gaps.shown, gaps.spread, centres, spreads, factors)
        is_ripe = np.vstack([spread <= wide, centre >= 0])
        return np.where(is_ripe.T, factors, 0.0)
