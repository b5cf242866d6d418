"""What tests of every package share: small problems, runs, error rates, and refusals that name a field."""

from contextlib import contextmanager

import numpy as np
import pytest
from scipy.stats import binom

import surepick as sp
from surepick.core.run import Stop
from surepick.errors import SurepickError
from surepick.policies.betting.question import PlannedBatch


def largest(plans, **settings):
    """Return the problem of the plan with the largest total, with noise of scale 1 unless it is given."""
    return sp.Problem(plans, **{"noise": 1, "goal": "largest", **settings})


def asked(plans, *, goal="largest", **settings):
    """Return these plans behind an oracle, which is all that is known of them; with noise of scale 1.

    Where entries are above 1 the oracle respects bounds.
    """
    sign = -1.0 if goal == "smallest" else 1.0

    def best(weights):
        return plans[np.argmax(sign * (plans @ weights))]

    def best_within(weights, lower, upper):
        inside = plans[((plans >= lower) & (plans <= upper)).all(axis=1)]
        return inside[np.argmax(sign * (inside @ weights))] if len(inside) else None

    within = best_within if plans.max() > 1 else None
    return sp.OracleProblem(best, plans.shape[1], goal=goal, best_within=within, **{"noise": 1, **settings})


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
        if run.needs_values:
            values = {s: means[s] + scale * rng.standard_normal((k, 1)) for s, k in enumerate(counts) if k}
            sums = np.array([values[s].sum() if s in values else 0.0 for s in range(len(counts))])
            run.absorb(counts, sums, values=values)
        else:
            run.absorb(counts, each * means + scale * np.sqrt(each) * rng.standard_normal(len(each)))
        used += int(counts.sum())
    return decision


def errs_more_often_than(delta, is_wrong, runs):
    """Return whether runs go wrong with a probability above delta, by an exact binomial test at 1e-4.

    `is_wrong(seed)` plays one run and says whether it went wrong. It may say so of several claims, and delta
    may have a level for each; the result then has one entry per claim.
    """
    n_wrong = sum(np.asarray(is_wrong(seed), dtype=int) for seed in range(runs))
    return binom.sf(n_wrong - 1, runs, delta) < 1e-4


def answers_wrongly(problem, truth, policy, budget=None, *, allow_noisier=False):
    """Return a function that says of a seed whether the run that is simulated with it answers wrongly."""
    given = {"policy": policy, "budget": budget, "allow_noisier": allow_noisier}
    return lambda seed: sp.simulate(problem, truth, seed=seed, **given).correct is False


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
