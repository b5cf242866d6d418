"""CLUCB and LinGapE against their formulas, computed from scratch in every round."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.policies import CLUCB, LinGapE
from surepick.policy import Stop

DELTA = 0.1


def clucb(plans, counts, sums, scale):
    t = counts.sum() + 1
    values = plans @ (sums / counts)
    rad = scale * np.sqrt(2 * math.log(4 * len(counts) * t**3 / DELTA) / counts)
    lead = int(np.argmax(values))
    scores = values - values[lead] + np.abs(plans - plans[lead]) @ rad
    scores[lead] = -np.inf
    rival = int(np.argmax(scores))
    arm = int(np.argmax(np.abs(plans[lead] - plans[rival]) * rad))
    return lead, rival, arm, scores[rival] <= 0


def lin_gap_e(norm_bound):
    def step(plans, counts, sums, scale):
        values = plans @ (sums / (counts + 1))
        lead = int(np.argmax(values))
        y = plans - plans[lead]
        log_term = math.log(len(plans) ** 2 / DELTA) + 0.5 * np.log(1 + counts).sum()
        radius = np.sqrt((y**2 / (counts + 1)).sum(axis=1)) * (scale * math.sqrt(2 * log_term) + norm_bound)
        scores = values - values[lead] + radius
        scores[lead] = -np.inf
        rival = int(np.argmax(scores))
        arm = np.argmax(y[rival] ** 2 / ((counts + 1) * (counts + 2)))
        return lead, rival, int(arm), scores[rival] <= 0

    return step


CASES = [
    (CLUCB(delta=DELTA), clucb),
    (LinGapE(delta=DELTA, norm_bound=2.0), lin_gap_e(2.0)),
]


@pytest.mark.parametrize(("policy", "step"), CASES, ids=["CLUCB", "LinGapE"])
@pytest.mark.parametrize("scale", [1.0, 0.3])
@pytest.mark.parametrize("sparse", [False, True])
def test_decides_as_its_formulas(policy, step, scale, sparse):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(1)
    plans = rng.uniform(0, 3, (40, 6)) * (rng.random((40, 6)) < 0.6)
    means = rng.normal(size=6)
    problem = sp.Problem(csr_array(plans) if sparse else plans, noise=scale, goal="largest")
    run = policy.start(problem)
    counts, sums = np.zeros(6, dtype=np.int64), np.zeros(6)
    for n_round in range(400):
        decision = run.decide()
        if n_round:
            lead, rival, arm, stops = step(plans, counts, sums, scale)
            assert isinstance(decision, Stop) == stops
            if stops:
                assert decision.plan == lead
                return
            assert (run.standing().leader, run.standing().rival) == (lead, rival)
            assert np.flatnonzero(decision.counts).tolist() == [arm]
        seen = decision.counts * means + scale * np.sqrt(decision.counts) * rng.normal(size=6)
        run.absorb(decision.counts, seen)
        counts, sums = counts + decision.counts, sums + seen


@pytest.mark.parametrize("settings", [{"norm_bound": -1.0}, {"norm_bound": math.nan}])
def test_refuses_what_it_does_not_know(settings):
    with pytest.raises(sp.SurepickError):
        LinGapE(**settings)
