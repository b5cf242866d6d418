import math

import numpy as np

from common import largest
from surepick.design.pairs import width_allocation
from surepick.policies import Peace
from surepick.policy import Stop
from surepick.simulation.seeds import round_rng

PLANS = np.array([[3.0, 0, 1], [0, 2, 2], [1, 1, 3], [2, 2, 0]])
MEANS = np.array([1.0, 0.5, 0.3])


def test_phases_have_the_papers_sizes_and_thresholds():
    policy = Peace(delta=0.1, max_gap=2.0)
    run = policy.start(largest(PLANS))
    for k in range(1, 5):
        plans = run.scaled_plans
        decision = run.decide(round_rng(0, k))
        if isinstance(decision, Stop):
            assert k > 1
            return
        tau = width_allocation(plans, log_term=math.log(2 * k**2 / 0.1), rng=round_rng(0, k)).value
        assert decision.counts.sum() == max(math.ceil(2.2 * tau * (2 ** (k + 1) / 2.0) ** 2), 300)
        run.absorb(decision.counts, decision.counts * MEANS)
        values = plans @ MEANS
        assert run.scaled_plans.tolist() == plans[values.max() - values < 2.0 / 2 ** (k + 1)].tolist()


def test_without_max_gap_every_arm_is_measured_once_first_and_sets_it():
    run = Peace(delta=0.1).start(largest(PLANS))
    assert run.decide(round_rng(0, 0)).counts.tolist() == [1, 1, 1]
    run.absorb(np.ones(3, dtype=np.int64), MEANS)
    values = PLANS @ MEANS
    assert run.max_gap > values.max() - values.min()
