"""Readings between known bounds: a factor that learns the variance, and needs no noise scale and no shape.

Assumed: one use of probe o gives readings x, a vector with entries between known bounds, whose mean given all
uses before it is m_o. Nothing else: neither a variance nor a distribution, and any dependence within a use.

*Lemma 1.* Let counts n_o, weights w_o of one use, centres c_o between the bounds and lam >= 0 be fixed before
the batch, with sum_o n_o w_o.m_o = y.mu for every mu, and lam w_o.(x - c_o) >= -CAP > -1 for all x between
the bounds. Then

    F = exp(lam (sum_o n_o w_o.c_o + shift)) * product over uses of (1 + lam w_o.(x - c_o))

is at least 0, and E F <= exp(lam (y.mu + shift)) <= 1 if y.mu + shift <= 0. Proof: given the uses before it,
a use has the mean 1 + lam w_o.(m_o - c_o) <= exp(lam w_o.(m_o - c_o)), a constant that was fixed before the
batch. Multiply from the last use to the first. The product does not depend on the order of the uses.

*Lemma 2.* For even P and z >= -CAP: log(1 + z) >= z - z^2/2 + ... + z^(P-1)/(P-1) - k z^P, where k makes both
sides equal at -CAP. So P power sums of w_o.(x - c_o) settle the bets of all sizes on a contrast, and those of
each reading all contrasts where a use gives one reading; the smaller series keeps E F <= 1.

The factor learns the variance: E log F = lam gap - lam^2/2 sum_o n_o E[(w_o.(x - c_o))^2] + ...
has the true one in it, once the centre, the past mean, is near the mean. A centre in the middle gives the
rate of Hoeffding's inequality or better: a safe start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, as_dense
from surepick.core.probes import Probes
from surepick.inference.contrasts import Contrasts, DenseReadings, DiagonalReadings
from surepick.inference.factors import Factor, log_sum_exp
from surepick.inference.noise import Noise, recordable
from surepick.inference.steps import CENTRE_STEPS, are_steps

CAP = 0.75  # the largest part of a bet that one use can lose
YOUNG_CAP, YOUNG = 0.5, 30  # the cap of mixtures until every reading was made this often
POWERS = 6
_k = np.arange(1, POWERS)
_LAST = -(np.log1p(-CAP) + (CAP**_k / _k).sum()) / CAP**POWERS
SERIES = np.append((-1.0) ** (_k - 1) / _k, -_LAST)  # coefficients of z, z^2, ... in Lemma 2
_CENTRE_WORTH = 8.0  # readings in the middle of the bounds that a centre leans to
_PRIOR_FREEDOM = 2.0  # degrees of freedom of the widest variance in the common one, and of that in each
_TEST_SIZES = np.array([1.5, 2.25, 3.0, 4.0])  # standard deviations: bets whose mean gives a p-value


@dataclass(frozen=True, eq=False)
class PowerSums:
    """What a batch shows of contrasts: all that Lemma 1 needs, for every bet size. One entry per contrast."""

    base: FloatArray  # (n,) sum_r n_r w_r c_r + shift
    reach: FloatArray  # (n,) the most that w_r (x - c_r) can be in size, of any use
    sums: FloatArray  # (n, POWERS) sums over uses of (w_r (x - c_r))^p
    mixture_cap: float = CAP

    def __add__(self, shift: FloatArray | float) -> PowerSums:
        """Return what is shown of the gap + shift."""
        return replace(self, base=self.base + shift)

    def __getitem__(self, which: Any) -> PowerSums:
        """Return what is shown of some contrasts."""
        return PowerSums(self.base[which], self.reach[which], self.sums[which], self.mixture_cap)


class BoundedReadings(Factor):
    """Readings between bounds: the factor of Lemma 1 with the series of Lemma 2.

    `gap` holds power sums here, and `variance` is the one expected of the batch: a bet on a gap of size g has
    lam = g / variance, cut where a use could take more than the cap. A wrong variance costs measurements,
    never correctness.
    """

    def log_factors(self, gap: Any, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F_g, (n, k), where one use can lose at most `CAP` of a bet."""
        return self._logs(gap, variance, sizes, CAP)

    def log_mixed(self, gap: Any, variance: FloatArray, sizes: FloatArray) -> FloatArray:
        """Return log F_g, (n, k), for the bet sizes of a mixture.

        One use can lose at most `gap.mixture_cap` of a bet, which the decision fixed before the batch: less
        than `CAP` until every reading was made `YOUNG` times, since centres and variances are poor guesses
        before. Lemma 1 and Lemma 2 hold for every cap up to `CAP`.
        """
        return self._logs(gap, variance, sizes, gap.mixture_cap)

    def log_p(self, gap: Any, variance: FloatArray, *, gaussian: bool) -> FloatArray:
        """Return the log of 1 / F, for the mean F of a few sizes: P(F >= 1/p) <= p."""
        del gaussian  # nothing is assumed of the shape
        sizes = np.sqrt(variance)[:, None] * _TEST_SIZES
        log_mean = log_sum_exp(self.log_factors(gap, variance, sizes)) - np.log(len(_TEST_SIZES))
        return np.asarray(-np.maximum(log_mean, 0.0))

    def _logs(self, gap: PowerSums, variance: FloatArray, sizes: FloatArray, cap: float) -> FloatArray:
        """Return a lower bound on log F: lam base + the series of Lemma 2 at lam w.(x - c), over all uses."""
        lam: FloatArray = np.minimum(sizes / variance[:, None], cap / gap.reach[:, None])
        logs, power = lam * gap.base[:, None], np.ones_like(lam)
        for p in range(POWERS):
            power = power * lam
            logs += SERIES[p] * power * gap.sums[:, p, None]
        return logs


def power_sums(values: FloatArray) -> FloatArray:
    """Return the sums over the first axis of the powers 1, ..., POWERS, (POWERS, ...).

    >>> power_sums(np.array([-0.5, 0.5]))[:3].tolist()
    [0.0, 0.5, 0.0]
    """
    power, found = np.ones_like(values), []
    for _ in range(POWERS):
        power = power * values
        found.append(power.sum(axis=0))
    return np.array(found)


class BoundedNoise(Noise):
    """Means and covariances of bounded readings, as the past has them. Changed by `add`.

    They are the centres of bets and guide the design. Each variance leans to the one that all readings have
    in common, and that to the widest there can be. Readings of one use may depend in any way; their
    covariance is learned for planning.
    """

    STATE: ClassVar[tuple[str, ...]] = ("uses", "sums", "squares", "products")
    is_learned = needs_values = True

    def __init__(self, probes: Probes, bounds: FloatArray) -> None:
        self.uses, self.sums, self.squares = np.zeros((3, 0))  # of each reading, about the middle
        self.products: dict[int, FloatArray] = {}  # of the readings of a use, by probes with several
        super().__init__(probes, BoundedReadings())
        self.extend(probes, bounds)

    def extend(self, probes: Probes, bounds: FloatArray | None) -> None:
        """Continue with these probes, the old ones first."""
        assert bounds is not None
        super().extend(probes, bounds)
        self.low, self.high = bounds.T
        new = np.zeros(len(self.low) - len(self.uses))
        self.uses, self.sums, self.squares = (np.append(x, new) for x in (self.uses, self.sums, self.squares))
        for probe in np.flatnonzero(np.diff(probes.start) > 1).tolist():
            m = len(probes.reading_names[probe])
            self.products.setdefault(probe, np.zeros((m, m)))

    @property
    def middle(self) -> FloatArray:
        """The middle of the bounds of each reading."""
        return np.asarray((self.low + self.high) / 2)

    def terms(self, probes: Probes) -> dict[str, Any]:
        """Return noise, the centres of the next bets as parts of the bounds, and the cap of mixtures."""
        centres = self.middle + self.sums / (self.uses + _CENTRE_WORTH)
        parts = np.rint(CENTRE_STEPS * (centres - self.low) / (self.high - self.low)).astype(np.int64)
        is_young = self.uses[self.uses > 0].min(initial=np.inf) < YOUNG
        return super().terms(probes) | {"centres": parts, "cap": YOUNG_CAP if is_young else CAP}

    def checks(self, probes: Probes) -> dict[str, Callable[[Any], bool]]:
        """Return that centres lie between the bounds, and the cap is one for which Lemma 2 holds."""
        return super().checks(probes) | {
            "centres": lambda parts: are_steps(parts, len(self.low), 0) and max(parts) <= CENTRE_STEPS,
            "cap": lambda cap: type(cap) is float and 0 < cap <= CAP,
        }

    def shown(self, values: Mapping[int, FloatArray], terms: Mapping[str, Any]) -> BatchReadings:
        """Return the readings of a batch, with the centres and the cap that its decision has recorded."""
        share = np.asarray(terms["centres"], dtype=float) / CENTRE_STEPS
        return BatchReadings(self, values, self.low + share * (self.high - self.low), terms["cap"])

    def within(self, probe: int, values: FloatArray) -> FloatArray:
        """Return readings cut to their bounds: these hold up to rounding, and exactly in the proof."""
        here = self._given.readings_of(probe)
        return np.asarray(np.clip(values, self.low[here], self.high[here]))

    def add(self, uses: IntArray, averages: FloatArray, values: Mapping[int, FloatArray]) -> None:
        """Add the readings of a batch, (n_uses, m) by probe."""
        del uses, averages
        for probe, own in values.items():
            here = self._given.readings_of(probe)
            about = own - self.middle[here]
            self.uses[here] += len(own)
            self.sums[here] += about.sum(axis=0)
            self.squares[here] += (about * about).sum(axis=0)
            if probe in self.products:
                self.products[probe] = self.products[probe] + about.T @ about

    def probes(self) -> Probes:
        """Return the probes with the noise as it is estimated now."""
        widest = (self.high - self.low) ** 2 / 4
        around = np.maximum(self.squares - self.sums**2 / np.maximum(self.uses, 1), 0.0)
        freedom = np.maximum(self.uses - 1, 0)
        common = ((around / widest).sum() + _PRIOR_FREEDOM) / (freedom.sum() + _PRIOR_FREEDOM)
        variance = (around + _PRIOR_FREEDOM * common * widest) / (freedom + _PRIOR_FREEDOM)
        covariances = dict[int, FloatArray]()
        for probe, products in self.products.items():
            here = self._given.readings_of(probe)
            n, sums = float(self.uses[here][0]), self.sums[here]
            scatter = products - np.outer(sums, sums) / max(n, 1.0)
            prior = np.diag(_PRIOR_FREEDOM * common * widest[here])
            covariances[probe] = (scatter + prior) / (max(n - 1.0, 0.0) + _PRIOR_FREEDOM)
        return recordable(replace(self._given, noise_scale=np.sqrt(variance), covariances=covariances))


@dataclass(frozen=True, eq=False)
class BatchReadings:
    """The readings of a complete batch, and the centres, which were fixed before it."""

    noise: BoundedNoise  # with the bounds
    values: Mapping[int, FloatArray]  # (n_uses, m) by probe
    centres: FloatArray  # (n_readings,)
    cap: float  # of mixtures

    def show(
        self,
        readings: DiagonalReadings | DenseReadings,
        contrasts: Contrasts,
        uses: IntArray,
        largest: float,
    ) -> tuple[PowerSums, FloatArray]:
        """Return what the batch shows of each contrast, and the variance expected: infinite if nothing."""
        weights, variance, bias = readings.use_weights(contrasts, uses, largest)
        centres, owner = self.centres, readings.owner
        # either end of the interval may be the far one, whichever sign a weight has
        far = np.maximum(centres - self.noise.low, self.noise.high - centres)
        base = np.asarray(weights @ (uses[owner] * centres)) - bias + contrasts.constant
        if contrasts.rounding:  # of the rows: a gap is lowered by what it may amount to
            largest_mean = np.maximum(np.abs(self.noise.low), np.abs(self.noise.high)).max()
            base = base - contrasts.rounding * np.asarray(abs(contrasts.rows).sum(axis=1)) * largest_mean
        if len(owner) == len(uses):  # one reading a use: powers of weights times power sums of readings
            sizes = abs(weights)
            reach = sizes * far if isinstance(sizes, np.ndarray) else sizes.multiply(far).tocsr()
            most = reach.max(axis=1) if isinstance(reach, np.ndarray) else reach.max(axis=1).toarray()
            powers = np.zeros((POWERS, len(owner)))
            for probe, own in self.values.items():
                powers[:, probe] = power_sums(own[:, 0] - centres[probe])
            sums = np.column_stack([np.asarray(_power(weights, p + 1) @ powers[p]) for p in range(POWERS)])
        else:
            weights = as_dense(weights)
            most = np.add.reduceat(np.abs(weights) * far, readings.probes.start[:-1], axis=1).max(axis=1)
            sums = np.zeros((len(weights), POWERS))
            for probe, own in self.values.items():
                here = readings.probes.readings_of(probe)
                sums += power_sums((own - centres[here]) @ weights[:, here].T).T
        return PowerSums(base, np.maximum(np.ravel(most), 1e-300), sums, self.cap), variance


def _power(weights: Any, p: int) -> Any:
    return weights**p if isinstance(weights, np.ndarray) else weights.power(p)
