"""A series of batches with a stake of its own: sums that its bets against every plan are functions of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.proofs import Inequality
from surepick.core.standard_form import ROUNDING


@dataclass(eq=False)
class Series:
    """Sums over the batches since a stake, of leaders x, weights h, means m, variances v; changed by its run.

    With the rate g the bets against a plan b have brought exp(g L(b) - g^2 Q(b) / 2),
    L = sum h ((x - b).m + epsilon), Q = sum h^2 v.(x - b)^2.
    """

    log_stakes: FloatArray  # (n_rates,)
    rates: FloatArray  # (n_rates,)
    weight: float  # sum h
    gain: float  # sum h x.m
    size: float  # sum h |x|.|m|: what rounding is a share of
    means: FloatArray  # sum h m
    leads: FloatArray  # sum h x
    square: float  # sum h^2 v.x^2
    crosses: FloatArray  # sum h^2 v x
    squares: FloatArray  # sum h^2 v

    @classmethod
    def begin(cls, log_stakes: FloatArray, rates: FloatArray, n_arms: int) -> Series:
        """A series before its first batch."""
        sums = [np.zeros(n_arms) for _ in range(4)]
        return cls(log_stakes, rates, 0.0, 0.0, 0.0, sums[0], sums[1], 0.0, sums[2], sums[3])

    @property
    def average(self) -> FloatArray:
        """The average of the leads: the answer, once every plan is ruled out."""
        return self.leads / self.weight

    def add(self, lead: FloatArray, weight: float, means: FloatArray, variance: FloatArray) -> None:
        """Add a batch with this leader and weight, by its own means."""
        self.weight += weight
        self.gain += weight * float(lead @ means)
        self.size += weight * float(np.abs(lead) @ np.abs(means))
        self.means = self.means + weight * means
        self.leads = self.leads + weight * lead
        squared = weight * weight * variance
        self.square += float(squared @ lead**2)
        self.crosses = self.crosses + squared * lead
        self.squares = self.squares + squared

    def inequality(self, epsilon: float, target: float, log_cash: float) -> Inequality:
        """Return what is to be shown of every plan, with sums divided by the weight; L is rounded down."""
        h = self.weight
        return Inequality(
            (self.gain - ROUNDING * self.size) / h + epsilon,
            -self.means / h,
            self.square / h**2,
            self.crosses / h**2,
            self.squares / h**2,
            target,
            log_cash,
            self.log_stakes,
            self.rates * h,
        )
