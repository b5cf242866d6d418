"""How many measurements are still to come, if the arms continue to be measured about as of late."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.evidence import EIGHT_OF_TEN, in_errors, quantile
from surepick.views.gaps import Weight
from surepick.views.look import Look
from surepick.views.view import Forecast

N_WORLDS = 48  # drawn from what the measurements leave open
LEAST_SHARE = 1e-3  # of an equal share, for arms that are hardly measured any more


def forecast(look: Look, weight: Weight | None) -> Forecast | None:
    """Forecast the measurements still needed if the arms are measured in about the same shares as lately.

    For each of many worlds drawn from the estimates and their errors: the evidence against every rival of
    that world's best plan grows by gap^2 / (2 variance) with each measurement; the last rival decides.
    """
    if look.status is not None or look.gaps is None or weight is None:
        return None
    if not np.isfinite(look.gaps.error).all():
        return None
    return over_worlds(_remaining(look, weight.needed))


def over_worlds(left: FloatArray) -> Forecast:
    """Return the forecast from the measurements that are left in each world; infinite where plans tie."""
    low, middle, high = (
        end if math.isfinite(end) else None for end in (quantile(left, q) for q in EIGHT_OF_TEN)
    )
    return Forecast(middle, low, high)


def _remaining(look: Look, needed: float) -> FloatArray:
    """The measurements that are still needed in each world; infinite where plans tie."""
    assert isinstance(look.leader, int)
    rng = np.random.default_rng(look.n_used)  # the same look gives the same forecast
    values = look.values(look.draw_means(N_WORLDS, rng))  # (N_WORLDS, n_plans)
    shares = _recent_shares(look)  # of one measurement in all
    best = values.argmax(axis=1)
    left = np.empty(N_WORLDS)
    for plan in np.unique(best).tolist():
        here = best == plan
        left[here] = _remaining_for(look, plan, values[here], shares, needed)
    if look.epsilon > 0:  # the leader will do as well, where it is close enough to that world's best plan
        left = np.minimum(left, _remaining_for(look, look.leader, values, shares, needed))
    return left


def _remaining_for(
    look: Look, plan: int, values: FloatArray, shares: FloatArray, needed: float
) -> FloatArray:
    """The same if this plan is to be the answer; infinite where it may not be."""
    unit_error = look.errors_after(plan, shares)
    missing = np.maximum(needed - _known(look, plan), 0.0)
    missing[plan] = 0.0
    gap = np.maximum(values[:, [plan]] - values + look.epsilon, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(missing > 0, 2 * missing * unit_error**2 / gap**2, 0.0)
    return np.asarray(np.nan_to_num(left, nan=0.0, posinf=np.inf).max(axis=1))


def _known(look: Look, plan: int) -> FloatArray:
    """The log of the evidence that there is against each plan as a rival of this one.

    What is proved, where the policy says it; against the leader itself, and with epsilon as rivals of another
    plan than the leader, that is nothing: measurements have been made, and no bet was won by them.
    """
    proved = look.log_evidence
    if proved is None:
        gap, error = look.comparing(plan)
        return np.asarray(in_errors(gap + look.epsilon, error).clip(0.0) ** 2 / 2)
    lead = look.leader
    assert isinstance(lead, int)
    if plan == lead:
        return proved
    rivals = np.zeros(len(proved)) if look.epsilon > 0 else proved.copy()
    rivals[lead] = 0.0
    return rivals


def _recent_shares(look: Look) -> FloatArray:
    """Return the expected shares of future measurements by arm or probe.

    They are the shares in the second half of the measurements so far, averaged with the best allocation if it
    is known: a policy that has neglected an arm turns to it when the last rival needs it.
    """
    half = [sample for sample in look.samples if 2 * sample.n_measurements <= look.n_used]
    before = half[-1].evidence.counts if half else np.zeros(len(look.problem.counted_names))
    recent = (look.evidence.counts - before).astype(float)
    shares = recent / max(recent.sum(), 1.0)
    if look.best_shares is not None:
        shares = (shares + look.best_shares) / 2
    return np.asarray(np.maximum(shares, LEAST_SHARE / len(look.problem.counted_names)))
