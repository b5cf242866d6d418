"""Following the recorded decisions of a run gives its wealth and its answer; proposing changes nothing."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import surepick as sp
from hulls import hull
from surepick.core.run import Stop
from surepick.inference.contrasts import arm_probes
from surepick.policies import Challenge
from surepick.policies.betting.question import Decision

PLANS = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0]])
MANY = np.array(list(itertools.product([0.0, 1.0], repeat=7)))[1:70]
MEANS = np.array([0.9, 0.3, 0.5, 0.0, -0.4, 0.1, -0.2])
MOST = 200  # batches


def best_pair(weights):
    return PLANS[np.argmax(PLANS @ weights)]


KNOWN, UNKNOWN = {"noise": 1.0, "goal": "largest"}, {"noise": None, "goal": "largest"}
NOISE = {"known": KNOWN, "bounded variance": {**KNOWN, "noise_kind": "bounded variance"}, "unknown": UNKNOWN}
PROBES = {"arms": {}, "plans": {"measure": "plans"}, "mixed": {"measure": np.eye(4) + 0.25}}
BEST, WITHIN, KEEP = (sp.BetGapE(0.05), sp.BetGapE(0.05, epsilon=0.3), Challenge(1, 0.05, epsilon=0.2))
ORACLE, WHOLE = {"n_arms": 4, **KNOWN}, {"n_arms": 4, "measure": "plan arms"}
CASES = {
    f"{name}, {noise}, {probes}": (policy, sp.Problem(PLANS, **NOISE[noise], **PROBES[probes]))
    for name, policy in [("best", BEST), ("within", WITHIN), ("keep or replace", KEEP)]
    for noise, probes in itertools.product(NOISE, PROBES)
} | {
    "within, many plans": (sp.BetGapE(0.05, epsilon=0.4), sp.Problem(MANY, **KNOWN)),
    "vertex": (BEST, hull(PLANS)),
    "vertex, unknown noise": (BEST, hull(PLANS, noise=None)),
    "polytope within": (WITHIN, hull(PLANS)),
    "oracle": (BEST, sp.OracleProblem(best_pair, **ORACLE)),
    "oracle, unknown noise": (BEST, sp.OracleProblem(best_pair, 4, **UNKNOWN)),
    "polytope within, unknown noise": (WITHIN, hull(PLANS, noise=None)),
    "oracle within": (WITHIN, sp.OracleProblem(best_pair, **ORACLE)),
    "oracle, smallest": (BEST, sp.OracleProblem(lambda w: best_pair(-w), 4, noise=1.0, goal="smallest")),
    "plans of an oracle": (BEST, sp.OracleProblem(best_pair, **WHOLE, **KNOWN)),
    "plans of an oracle, unknown noise": (BEST, sp.OracleProblem(best_pair, **WHOLE, **UNKNOWN)),
    "plans of an oracle, within": (WITHIN, sp.OracleProblem(best_pair, **WHOLE, **KNOWN)),
}
SOME = ["best, known, arms", "within, unknown, arms", "keep or replace, known, arms", *list(CASES)[-12:]]


def absorb(run, counts, sums, removed=None):
    """Let a run absorb these sums, as values that scatter like N(0, 1) if it needs values."""
    values = None
    if run.needs_values:
        values = {s: norm.ppf((np.arange(n) + 0.5) / n)[:, None] for s, n in enumerate(counts) if n}
        values = {s: own - own.mean() + sums[s] / counts[s] for s, own in values.items()}
    run.absorb(counts, sums, removed, values)


def recorded(run, problem, final_at=None, n_batches=MOST):
    """Return the decisions of a run on noisy values, the sums of their readings, and how it ended."""
    rng, decisions, sums = np.random.default_rng(3), [], []
    means = arm_probes(problem).rows @ np.resize(MEANS, problem.n_arms)
    for k in range(n_batches):
        if k == final_at:
            run.call_final_batch(120, gaussian=False)
        decision = run.propose()
        if isinstance(decision, Stop):
            return decisions, sums, decision
        run.follow(decision)
        decisions.append(decision)
        for _ in range(decision.n_replicates):
            n = decision.uses
            sums.append(n * means + np.sqrt(n) * rng.standard_normal(len(n)))
            absorb(run, n, sums[-1])
    return decisions, sums, None


def followed(run, decisions, sums, final_at=None, removed=None):
    """Let a fresh run follow the recorded decisions; unless a value was removed it objects to none.

    `removed` is a batch and a probe: one use of it was no measurement.
    """
    values = iter(sums)
    for k, decision in enumerate(decisions):
        if k == final_at:
            run.call_final_batch(120, gaussian=False)
        again = run.recorded(json.loads(json.dumps(decision.to_json())))
        assert removed is not None or run.objection(again) is None
        run.follow(again)
        for replicate in range(decision.n_replicates):
            less = np.zeros_like(decision.uses)
            if (k, replicate) == (removed and removed[0], 0):
                less[removed[1]] = 1
            absorb(run, decision.uses - less, next(values) - 0.5 * less, less)
    return run


@pytest.mark.parametrize("case", CASES)
def test_following_gives_the_same_wealth_and_answer(case):
    policy, problem = CASES[case]
    run, again = policy.start(problem), policy.start(problem)
    decisions, sums, end = recorded(run, problem)
    followed(again, decisions, sums)
    assert again.numbers() == pytest.approx(run.numbers(), rel=1e-9)
    assert again.standing().risk == pytest.approx(run.standing().risk, rel=1e-9)
    if end is not None:
        assert again.propose() == end
        assert again.proves(end.plan)
        assert not run.proves(-1)


@pytest.mark.parametrize("case", SOME)
def test_a_final_batch_is_followed(case):
    policy, problem = CASES[case]
    run, again = policy.start(problem), policy.start(problem)
    decisions, sums, end = recorded(run, problem, final_at=2)
    assert decisions[-1].is_final
    assert followed(again, decisions, sums, final_at=2).propose() == end
    assert again.numbers() == pytest.approx(run.numbers(), rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_proposing_changes_nothing(case):
    policy, problem = CASES[case]
    run = policy.start(problem)
    recorded(run, problem, n_batches=3)
    before = repr(run.state())
    for left in (10**6, 40, 10**6):
        run.allow(left)
        run.propose()
        run.standing()
        assert repr(run.state()) == before


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_restored_run_continues_also_within_a_batch(case, final):
    """A run that is kept and restored after every request asks as its twin; requests are small."""
    policy, problem = replace(CASES[case][0], max_batch=7), CASES[case][1]
    run, twin, rng = policy.start(problem), policy.start(problem), np.random.default_rng(1)
    means = arm_probes(problem).rows @ np.resize(MEANS, problem.n_arms)
    for k in range(60):
        if final and k == 50:
            run.call_final_batch(30, gaussian=False)
            twin.call_final_batch(30, gaussian=False)
        kept, run = run.state(), policy.start(problem)
        run.restore(kept)
        request, other = run.decide(), twin.decide()
        if isinstance(request, Stop):
            assert request == other
            return
        assert np.array_equal(request.counts, other.counts)
        sums = request.counts * means + np.sqrt(request.counts) * rng.standard_normal(len(means))
        absorb(run, request.counts, sums)
        absorb(twin, request.counts, sums)
    assert run.numbers() == twin.numbers()
    assert repr(run.standing()) == repr(twin.standing())


@pytest.mark.parametrize("case", SOME)
def test_a_smaller_delta_continues(case):
    """The answer holds at the smaller delta, and takes no more than a run that begins with it, nearly."""
    policy, problem = CASES[case]
    run, afresh = policy.start(problem), replace(policy, delta=1e-4).start(problem)
    *_, end = recorded(run, problem)
    assert end is not None
    n_before = int(run.counts.sum())
    run.lower_delta(replace(policy, delta=1e-4), 1e-4)
    assert not run.proves(end.plan)
    assert isinstance(run.propose(), Decision)
    *_, end = recorded(run, problem, n_batches=400)
    recorded(afresh, problem, n_batches=400)
    assert end is not None
    assert run.standing().risk <= 1.001e-4
    assert int(run.counts.sum()) > n_before
    assert int(run.counts.sum()) < 2 * int(afresh.counts.sum())


@pytest.mark.parametrize("case", SOME)
def test_a_removed_value_is_settled_without_it(case):
    """Decisions stay, and the run continues to an answer."""
    policy, problem = CASES[case]
    run, again = policy.start(problem), policy.start(problem)
    decisions, sums, _ = recorded(run, problem, n_batches=40)
    probe = int(np.argmax(decisions[-1].uses))
    if problem.probes is None and getattr(problem, "plays", False):
        pytest.skip("a use of a plan is removed as a whole")
    followed(again, decisions, sums, removed=(len(decisions) - 1, probe))
    assert again.numbers() != pytest.approx(run.numbers(), rel=1e-9)
    assert again.counts[probe] == run.counts[probe] - (
        1 if decisions[-1].n_replicates == 1 else int(decisions[-1].uses[probe])
    )
    assert recorded(again, problem, n_batches=400)[2] is not None


@pytest.mark.parametrize("case", ["best, known, arms", "keep or replace, known, arms", "vertex", "oracle"])
def test_an_answer_stays_proved_when_all_values_of_an_arm_that_settled_no_bet_are_removed(case):
    policy, problem = CASES[case]
    run = policy.start(problem)
    *_, end = recorded(run, problem)
    run.counts[0], run.sums[0] = 0, 0.0
    run._join()
    assert not run._is_started
    assert run.propose() == end
    assert run.proves(end.plan)


def test_another_leader_may_be_followed_and_a_changed_value_shows():
    problem = CASES["best, known, arms"][1]
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
    other.follow(Decision(leader, rivals, decisions[3].uses, 1, more=decisions[3].more))
    other.absorb(decisions[3].uses, sums[3])
    assert other.numbers()[1] < run.numbers()[1]


@pytest.mark.parametrize("case", [case for case in SOME if not isinstance(CASES[case][1], sp.Problem)])
def test_every_value_moves_the_numbers_and_forged_decisions_are_refused(case):
    policy, problem = CASES[case]
    run = policy.start(problem)
    decisions, sums, _ = recorded(run, problem, n_batches=40)
    last = decisions[-1]
    for arm in np.flatnonzero(last.uses).tolist():
        other, values = policy.start(problem), [one.copy() for one in sums]
        values[-1][arm] += 1e-4
        followed(other, decisions, values)
        assert other.numbers() != pytest.approx(run.numbers(), rel=1e-9)
    other = policy.start(problem)
    followed(other, decisions[:-1], sums[: len(sums) - last.n_replicates])
    body = last.to_json()
    forged = [{**body, "leader": 0}, {**body, "leader": "2" * 9}, {**body, "leader": [0.5] * 4}]
    forged += [
        {**body, "uses": [], "plans": []},
        {**body, "value_sum": body["value_sum"] + 1e-3},
        {**body, "extra": 1},
    ]
    forged += [{**body, "free": []}] if "free" in body else []
    forged += [{**body, "sizes": [-1.0, 1.0]}] if "sizes" in body else []
    forged += [{**body, "rates": [0.0]}] if "rates" in body else []
    forged += [{**body, "rivals": []}] if body["rivals"] else []
    forged += (
        [{**body, "plans": [[[0, 1, 2], 1]], "uses": [[0, 1], [1, 1], [2, 1]]}] if "plans" in body else []
    )
    assert other.objection(other.recorded(body)) is None
    assert all(other.objection(other.recorded(one)) for one in forged)
