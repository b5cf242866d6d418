"""What tests of every package share: the usual small problem, and that a refusal names its field."""

from contextlib import contextmanager

import numpy as np
import pytest

import surepick as sp
from surepick.core.run import Stop
from surepick.errors import SurepickError
from surepick.policies.betting.question import PlannedBatch


def largest(plans, **settings):
    """Return the problem of the plan with the largest total, with noise of scale 1 unless it is given."""
    return sp.Problem(plans, **{"noise": 1, "goal": "largest", **settings})


def measured(run, means, rng, n=10**6, scale=1.0, budget=np.inf):
    """Answer decisions of a run by Gaussian values, this many or until the budget; the last decision.

    Means are those of the readings, which are those of the arms unless probes are measured.
    """
    means, used = np.asarray(means), 0
    for _ in range(n):
        decision = run.decide()
        if isinstance(decision, Stop) or used >= budget:
            break
        counts = decision.counts
        each = counts if len(means) == len(counts) else counts[run._readings.owner]
        run.absorb(counts, each * means + scale * np.sqrt(each) * rng.standard_normal(len(each)))
        used += int(counts.sum())
    return decision


def told(session, value, n=50):
    """Answer all requests of a session by value(request) until it ends."""
    while requests := session.ask(n):
        for request in requests:
            session.tell(request, value(request))
    return session


@contextmanager
def refuses(field, error=SurepickError):
    """Expect an error of this class about this field."""
    with pytest.raises(error) as caught:
        yield
    assert caught.value.field == field


def terms_now(run, rivals):
    """What a decision of this run would record of bets on its leader against these rivals."""
    question, estimates = run._question, run._estimates
    targets = question.targets(estimates, rivals) if question.has_leader else None
    return question.terms(estimates, PlannedBatch(targets, run.counts, np.zeros(0), has_bets=True))
