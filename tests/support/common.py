"""What tests of every package share: the usual small problem, and that a refusal names its field."""

from contextlib import contextmanager

import numpy as np
import pytest

import surepick as sp
from surepick.core.run import Stop
from surepick.errors import SurepickError


def largest(plans, **settings):
    """Return the problem of the plan with the largest total, with noise of scale 1 unless it is given."""
    return sp.Problem(plans, **{"noise": 1, "goal": "largest", **settings})


def measured(run, means, rng, n=10**6, scale=1.0):
    """Answer this many decisions of a run, or all of them, by Gaussian values; the last decision."""
    for _ in range(n):
        decision = run.decide()
        if isinstance(decision, Stop):
            break
        counts = decision.counts
        noise = scale * np.sqrt(counts) * rng.standard_normal(len(counts))
        run.absorb(counts, counts * np.asarray(means) + noise)
    return decision


@contextmanager
def refuses(field, error=SurepickError):
    """Expect an error of this class about this field."""
    with pytest.raises(error) as caught:
        yield
    assert caught.value.field == field
