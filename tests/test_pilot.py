"""An unknown noise scale: the bound covers it as often as promised, and the whole answer holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import surepick as sp
from session_tools import MEANS, PLANS, Tapes, run_to_end
from surepick.errors import ParameterError, ProblemError
from surepick.pilot import Pilot, after_pilot
from surepick.session import Session

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
    assert session.outcome is not None
    assert session.outcome.counts.tolist() == expected.counts.tolist()
    assert session.outcome.plan == expected.plan


def test_the_whole_answer_is_wrong_no_more_often_than_delta() -> None:
    close = np.array([0.3, 0.0])
    two = sp.Problem(np.eye(2), noise_scale=None)
    wrong = 0
    for seed in range(60):
        session = Session.create("memory://", two, sp.CombGapE(delta=0.2), name="mine")
        wrong += run_to_end(session, Tapes(seed, means=close, scale=0.5), n=24).plan != 0
    assert stats.binomtest(wrong, 60, 0.2, alternative="greater").pvalue > 1e-4


def test_arms_that_nobody_needs_are_not_measured() -> None:
    plans = np.column_stack([np.eye(2), np.ones(2)])
    assert Pilot(size=3).counts(sp.Problem(plans, noise_scale=None)).tolist() == [3, 3, 0]


def test_measurements_without_any_noise_are_refused_with_advice() -> None:
    with pytest.raises(ProblemError, match=r"arm 0 \('arm 0'\) are equal.*give noise_scale"):
        Pilot().scale_bound(np.array([0.0, 1.0, 1.0, 1.0]), UNKNOWN, 0.1)


@pytest.mark.parametrize("options", [{"size": 1}, {"share": 0.0}, {"share": 1.0}])
def test_a_pilot_that_cannot_work_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        Pilot(**options)  # type: ignore[arg-type]
