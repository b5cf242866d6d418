"""An unknown noise scale: the bound covers it as often as promised, and the whole answer holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surepick as sp
from policy_contract import CASES
from session_tools import MEANS, PLANS, Tapes, run_to_end, same_run
from surepick.core.evidence import Evidence
from surepick.core.pilot import Begun, Pilot, after_pilot, begin, hand_over
from surepick.core.policy import Policy
from surepick.errors import ParameterError, ProblemError
from surepick.policies import describe
from surepick.sessions.session import Session
from surepick.simulation.seeds import round_rng

UNKNOWN = sp.Problem(PLANS, noise_scale=None)
SCALES = np.array([0.5, 1.0, 2.0, 0.1])
N_RUNS = 4000


def misses(pilot: Pilot, delta: float, scales: np.ndarray, *, shrink: float = 1.0) -> int:
    """How often, of 4000 pilots, the bound (times shrink) is below the scale of some arm."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(N_RUNS):
        variances = (scales * rng.standard_normal((pilot.size, len(scales)))).var(axis=0, ddof=1)
        missed += bool((shrink * pilot.scale_bound(variances, UNKNOWN, delta) < scales).any())
    return missed


def is_rejected(n_missed: int, level: float) -> bool:
    """Whether so many misses refute that each run misses with probability at most this level."""
    return bool(stats.binomtest(n_missed, N_RUNS, level, alternative="greater").pvalue < 1e-4)


@pytest.mark.parametrize("pooled", [False, True])
def test_the_bound_covers_the_scale_as_often_as_promised(pooled: bool) -> None:
    pilot = Pilot(size=12, share=0.2, pooled=pooled)
    scales = np.full(4, 0.7) if pooled else SCALES
    level = pilot.share * 0.25
    assert not is_rejected(misses(pilot, 0.25, scales), level)
    assert is_rejected(misses(pilot, 0.25, scales, shrink=0.8), level)  # the control: this test can fail


def test_a_pooled_bound_is_wrong_when_the_scales_differ_and_the_test_sees_it() -> None:
    assert is_rejected(misses(Pilot(pooled=True), 0.25, SCALES), 0.05)


def test_a_pooled_bound_is_tighter() -> None:
    variances = np.ones(4)
    alone = Pilot().scale_bound(variances, UNKNOWN, 0.05)
    pooled = Pilot(pooled=True).scale_bound(variances, UNKNOWN, 0.05)
    assert (pooled > 1).all()
    assert (pooled < alone).all()


def test_the_policy_gets_the_rest_of_delta() -> None:
    assert after_pilot(sp.CombGapE(delta=0.1), Pilot(share=0.25)).delta == pytest.approx(0.075)


def test_a_session_without_a_noise_scale_begins_with_a_pilot_and_finds_the_plan() -> None:
    session = Session.create("memory://", UNKNOWN, sp.CombGapE(delta=0.1), name="mine", pilot=Pilot(size=5))
    requests = session.ask(100)
    assert sorted(r.token for r in requests if r.wanted) == sorted(
        f"{a}.{i}" for a in range(4) for i in range(5)
    )
    outcome = run_to_end(session, Tapes(scale=0.1))
    assert outcome.plan == int(np.argmax(PLANS @ MEANS))
    assert (session.problem.noise_scale > 0.1).all()
    certificate = session.certificate()
    assert "pilot of 5 measurements per arm at 0.2 of delta" in certificate.noise
    assert "delta = 0.08" in certificate.noise
    assert session.verify(certificate.to_json()).holds


def test_a_pilot_survives_restarts(sqlite_url: str) -> None:
    expected = run_to_end(Session.create("memory://", UNKNOWN, sp.CombGapE(), name="mine"), Tapes(scale=0.1))
    Session.create(sqlite_url, UNKNOWN, sp.CombGapE(), name="mine")
    tapes = Tapes(scale=0.1)
    while requests := (session := Session.load(sqlite_url)).ask(7):
        for request in reversed(requests):
            session.tell(request, tapes.value(request.token))
    assert session.status is not None
    assert session.outcome.counts.tolist() == expected.counts.tolist()
    assert session.outcome.plan == expected.plan


CLOSE = np.array([0.1, 0.0])
TWO = sp.Problem(np.eye(2), noise_scale=None)


def wrong_answers(policy: Policy, pilot: Pilot, *, delta: float, runs: int, plug_in: bool = False) -> float:
    """The p-value of "wrong at most with probability delta"; cut-off runs count as right.

    The control takes the pilot's standard deviation itself for the noise scale.
    """
    wrong, truth = 0, sp.Gaussian(CLOSE, 1.0)
    for seed in range(runs):
        if plug_in:
            variances = (
                truth.draw(2 * pilot.size, np.random.default_rng(seed)).reshape(-1, 2).var(axis=0, ddof=1)
            )
            scale = np.sqrt(variances.mean() if pilot.pooled else variances)
            outcome = sp.simulate(
                sp.Problem(np.eye(2), noise_scale=scale),
                policy,
                truth,
                seed=seed,
                budget=5000,
                allow_noisier=True,
            )
        else:
            outcome = sp.simulate(TWO, policy, truth, seed=seed, budget=5000, pilot=pilot)
        wrong += outcome.plan == 1
    return float(stats.binomtest(wrong, runs, delta, alternative="greater").pvalue)


def test_the_whole_answer_is_wrong_no_more_often_than_delta_and_a_plug_in_scale_is() -> None:
    policy, pilot = sp.CombGapE(delta=0.01), Pilot(size=2, pooled=True)
    assert wrong_answers(policy, pilot, delta=0.01, runs=400) > 1e-4
    assert wrong_answers(policy, pilot, delta=0.01, runs=400, plug_in=True) < 1e-4  # the control


@pytest.mark.parametrize("policy", CASES, ids=describe)
def test_a_session_with_a_pilot_decides_as_the_simulation_does(policy: Policy) -> None:
    budget = 300 if policy.name == "Pick" else None  # it never stops by itself
    simulated = sp.simulate(UNKNOWN, policy, Tapes(scale=0.1), seed=4, budget=budget or 10**7, pilot=Pilot())
    session = Session.create("memory://", UNKNOWN, policy, name="mine", seed=4, budget=budget, pilot=Pilot())
    lived = run_to_end(session, Tapes(scale=0.1), n=500)
    assert same_run(lived, simulated)
    assert lived.noise_scale.tolist() == simulated.noise_scale.tolist()
    assert (lived.n_pilot, lived.guarantee) == (simulated.n_pilot, simulated.guarantee)
    assert session.verify(session.certificate().to_json()).holds


def after(policy: Policy, sums: list[float]) -> Begun[sp.Problem]:
    """A run after a pilot of ten measurements of each of two arms."""
    begun = begin(TWO, policy, Pilot(size=10), np.array([0.5, 0.5]))
    hand_over(begun, Evidence(np.array([10, 10]), np.array(sums)))
    return begun


def test_to_bet_gap_e_a_pilot_is_past_and_wins_no_bets() -> None:
    standing = after(sp.BetGapE(), [1000.0, 0.0]).run.standing()
    assert (standing.lead, standing.rival, standing.gap) == (0, 1, 100.0)
    assert standing.risk == 1.0


def test_gap_policies_pool_a_pilot_and_may_stop_on_it() -> None:
    for policy in (sp.CombGapE(), sp.CLUCB(), sp.Uniform(), sp.LinGapE(norm_bound=1.0)):
        assert after(policy, [1000.0, 0.0]).run.decide(round_rng(0, 0)) == sp.Stop(0)


def test_phased_policies_add_a_pilot_to_their_first_phase() -> None:
    run = after(sp.RAGE(variant="authors"), [1e6, 0.0]).run
    decision = run.decide(round_rng(0, 0))
    assert isinstance(decision, sp.Measure)
    run.absorb(decision.counts, np.array([0.0, 1.0]) * decision.counts)
    assert run.decide(round_rng(0, 1)) == sp.Stop(0)


def test_policies_that_promise_nothing_begin_without_the_pilot() -> None:
    for policy in (sp.CombGapE(radius="published"), sp.GenTSExplore()):
        decision = after(policy, [1000.0, 0.0]).run.decide(round_rng(0, 0))
        assert isinstance(decision, sp.Measure)
        assert decision.counts.tolist() == [1, 1]


def test_a_budget_below_the_pilot_is_refused_with_the_number_that_it_needs() -> None:
    for begin_it in (
        lambda: sp.simulate(TWO, sp.CombGapE(), sp.Gaussian(CLOSE, 1), budget=20),
        lambda: Session.create("memory://", TWO, sp.CombGapE(), name="mine", budget=20),
    ):
        with pytest.raises(ParameterError) as caught:
            begin_it()
        assert caught.value.field == "budget"


def test_a_pilot_for_a_known_scale_is_refused() -> None:
    with pytest.raises(ParameterError) as caught:
        sp.simulate(sp.Problem(np.eye(2), noise_scale=1), sp.BetGapE(), sp.Gaussian(CLOSE), pilot=Pilot())
    assert caught.value.field == "pilot"


def test_an_oracle_problem_has_a_pilot_of_every_arm() -> None:
    problem = sp.OracleProblem(lambda w: np.eye(3)[np.argmax(w)], 3, None, n_plans=3)
    outcome = sp.simulate(problem, sp.GenTSExplore(), sp.Gaussian([3.0, 0.0, 0.0], 0.1), pilot=Pilot(size=5))
    assert (outcome.n_pilot, outcome.plan) == (15, (1.0, 0.0, 0.0))


def test_arms_that_nobody_needs_are_not_measured() -> None:
    plans = np.column_stack([np.eye(2), np.ones(2)])
    assert Pilot(size=3).counts(sp.Problem(plans, noise_scale=None)).tolist() == [3, 3, 0]


def test_measurements_without_any_noise_are_refused_with_advice() -> None:
    with pytest.raises(ProblemError) as caught:
        Pilot().scale_bound(np.array([0.0, 1.0, 1.0, 1.0]), UNKNOWN, 0.1)
    assert caught.value.field == "noise_scale"


@pytest.mark.parametrize("options", [{"size": 1}, {"share": 0.0}, {"share": 1.0}])
def test_a_pilot_that_cannot_work_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        Pilot(**options)  # type: ignore[arg-type]
