"""Following the recorded decisions of a run gives its wealth and its answer; proposing changes nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import surepick as sp
from surepick.core.run import Stop
from surepick.policies.betting.question import Decision
from surepick.policies.betting.run_state import state_of

PLANS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
MANY = np.array(list(itertools.product([0.0, 1.0], repeat=7)))[1:70]
MEANS = np.array([0.9, 0.3, 0.5, 0.0, -0.4, 0.1, -0.2])

QUESTIONS = {
    "best": (sp.BetGapE(0.05), PLANS),
    "within, few": (sp.BetGapE(0.05, epsilon=0.3), PLANS),
    "within, many": (sp.BetGapE(0.05, epsilon=0.4), MANY),
    "keep or replace": (sp.Challenge(1, 0.05, epsilon=0.2), PLANS),
}
NOISE = {
    "known": {"noise_scale": 1.0},
    "bounded variance": {"noise_scale": 1.0, "noise": "bounded variance"},
    "unknown": {"noise_scale": None},
}
CASES = [
    (question, noise, probes)
    for question, noise, probes in itertools.product(QUESTIONS, NOISE, ["arms", "plans", "mixed"])
    if noise != "bounded variance" or probes == "arms"
]


def problem_of(question, noise, probes):
    plans = QUESTIONS[question][1]
    given = {"arms": {}, "plans": {"probes": "plans"}, "mixed": {"probes": np.eye(plans.shape[1]) + 0.25}}
    return sp.Problem(plans, **NOISE[noise], **given[probes])


def recorded(run, problem, final_at=None, n_batches=60):
    """Return the decisions of a run on noisy values, the sums of their readings, and how it ended."""
    rng, decisions, sums = np.random.default_rng(3), [], []
    probes = np.eye(problem.n_arms) if problem.probes is None else problem.probes.rows
    means = probes @ MEANS[: problem.n_arms]
    for k in range(n_batches):
        if k == final_at:
            run.call_last(120, gaussian=False)
        decision = run.propose()
        if isinstance(decision, Stop):
            return decisions, sums, decision
        run.follow(decision)
        decisions.append(decision)
        for _ in range(decision.n_replicates):
            n = decision.uses
            sums.append(n * means + np.sqrt(n) * rng.standard_normal(len(n)))
            run.absorb(n, sums[-1])
    return decisions, sums, None


def followed(run, decisions, sums, final_at=None):
    """Let a fresh run follow these decisions; every number that was recorded is found again."""
    values = iter(sums)
    for k, decision in enumerate(decisions):
        if k == final_at:
            run.call_last(120, gaussian=False)
        assert run.numbers() == pytest.approx((decision.mean_log_wealth, decision.least_evidence), rel=1e-9)
        run.follow(decision)
        for _ in range(decision.n_replicates):
            run.absorb(decision.uses, next(values))
    return run.propose() if len(decisions) < 60 else None


@pytest.mark.parametrize(("question", "noise", "probes"), CASES)
def test_following_gives_the_same_wealth_and_answer(question, noise, probes):
    policy, problem = QUESTIONS[question][0], problem_of(question, noise, probes)
    run, again = policy.start(problem), policy.start(problem)
    decisions, sums, end = recorded(run, problem)
    assert followed(again, decisions, sums) == end
    assert again.log_evidence() == pytest.approx(run.log_evidence(), rel=1e-9)
    assert again.standing().risk == pytest.approx(run.standing().risk, rel=1e-9)


@pytest.mark.parametrize(("question", "noise"), list(itertools.product(QUESTIONS, NOISE)))
def test_a_final_batch_is_followed(question, noise):
    policy, problem = QUESTIONS[question][0], problem_of(question, noise, "arms")
    run, again = policy.start(problem), policy.start(problem)
    decisions, sums, end = recorded(run, problem, final_at=2)
    assert decisions[-1].is_final
    assert followed(again, decisions, sums, final_at=2) == end
    assert again.log_evidence() == pytest.approx(run.log_evidence(), rel=1e-9)


@pytest.mark.parametrize(("question", "noise", "probes"), CASES)
def test_proposing_changes_nothing(question, noise, probes):
    problem = problem_of(question, noise, probes)
    run = QUESTIONS[question][0].start(problem)
    recorded(run, problem, n_batches=3)
    before = repr(state_of(run))
    for left in (10**6, 40, 10**6):
        run.allow(left)
        run.propose()
        run.standing()
        assert repr(state_of(run)) == before


def test_another_leader_may_be_followed_and_a_changed_value_shows():
    problem = problem_of("best", "known", "arms")
    run, other, changed = (sp.BetGapE().start(problem) for _ in range(3))
    decisions, sums, _ = recorded(run, problem, n_batches=4)
    for one in (other, changed):
        followed(one, decisions[:3], sums[:3])
    sums[3] = sums[3] + [1e-6, 0, 0, 0]
    changed.follow(decisions[3])
    changed.absorb(decisions[3].uses, sums[3])
    assert changed.numbers() != pytest.approx(run.numbers(), rel=1e-9)
    leader = next(int(plan) for plan in decisions[3].rivals)
    rivals = np.flatnonzero(np.arange(4) != leader)
    other.follow(Decision(leader, rivals, decisions[3].uses, 1))
    other.absorb(decisions[3].uses, sums[3])
    assert other.numbers()[0] < run.numbers()[0]
