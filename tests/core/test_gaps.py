"""Gaps between plans and their errors: all at once as pair by pair, and infinite where nothing is known."""

import math

import numpy as np
import pytest
from scipy import sparse

import surepick as sp
from surepick.core.evidence import Evidence, between, estimates

PLANS = np.array([[2.0, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 3], [0, 2, 1, 0], [1, 1, 1, 0]])


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("counts", [(3, 5, 2, 4), (3, 5, 2, 0), (0, 5, 0, 4), (0, 0, 0, 0)], ids=str)
def test_all_at_once_is_pair_by_pair_also_for_unmeasured_arms(counts, kind, minimize):
    problem = sp.Problem(kind(PLANS), noise=[0.5, 1.0, 2.0, 0.1], goal="smallest" if minimize else "largest")
    evidence = Evidence(np.array(counts), np.array(counts) * np.array([1.3, -2.0, 0.7, 5.0]))
    for plan in range(5):
        gap, error = estimates(problem, evidence).behind(problem, plan)
        for rival in range(5):
            one = between(problem, plan, rival, evidence)
            assert gap[rival] == pytest.approx(one[0])
            assert error[rival] == pytest.approx(one[1], abs=1e-7)
            unknown = (PLANS[plan] != PLANS[rival]) & (np.array(counts) == 0)
            assert math.isinf(error[rival]) == unknown.any()
