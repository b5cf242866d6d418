"""Single arms of unknown noise: learned from replicates."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.run import Stop
from surepick.testing import Tape

ROUTES = np.array([[float((s * 7 + j * 5) % 12 < 4) for s in range(12)] for j in range(6)])
CASES = {
    "2 arms": (np.eye(2), [0.5, 0.0]),
    "5 arms": (np.eye(5), [1.0, 0.5, 0.4, 0.2, 0.0]),
    "6 routes": (ROUTES, np.linspace(1.5, 0.0, 12)),
}


def measured(problem, tape):
    """How many measurements a run takes on this tape, and its answer."""
    run, n = sp.BetGapE(0.05).start(problem), 0
    while True:
        decision = run.decide()
        if isinstance(decision, Stop):
            return n, decision.plan
        run.absorb(decision.counts, tape.measure(decision.counts, None))
        n += decision.n_measurements


@pytest.mark.parametrize("name", CASES)
def test_not_knowing_the_noise_costs_at_most_a_third(name):
    """On paired tapes: the k-th use of an arm gives the same value to both."""
    plans, means = CASES[name]
    total, best = np.zeros(2), int(np.argmax(plans @ np.array(means)))
    for seed in range(12):
        for k, scale in enumerate((1.0, None)):
            keys = 1000 * (seed + 1) + np.arange(len(means))
            n, answer = measured(sp.Problem(plans, noise=scale, goal="largest"), Tape(means, keys.tolist()))
            total[k] += n
            assert answer == best
    assert total[1] <= 1.35 * total[0]


def test_it_estimates_the_noise():
    problem = sp.Problem([[1, 0, 1], [0, 1, 1]], noise=None, goal="largest")
    outcome = sp.simulate(problem, sp.Gaussian([30.0, 0.0, 0.0], 20.0), policy=sp.BetGapE())
    assert (outcome.plan, outcome.counts[2]) == (0, 0)
    assert outcome.noise_scale[:2] == pytest.approx(20.0, rel=0.4)


def test_readings_that_never_differ_are_refused():
    run = sp.BetGapE().start(sp.Problem(np.eye(2), noise=None, goal="largest"))

    def measure_constants():
        for _ in range(100):
            counts = run.decide().counts
            run.absorb(counts, counts * np.array([3.0, 2.0]))

    with pytest.raises(sp.SurepickError) as caught:
        measure_constants()
    assert caught.value.field == "noise"


def session_of(store="memory://", **settings):
    problem = sp.Problem(np.eye(3), noise=None, arms=["a", "b", "c"], goal="largest")
    return sp.Session.create(store, "learned", problem, policy=sp.BetGapE(0.1), **settings)


def tell_all(session, rng, most=10**6):
    while most > 0 and (batch := session.ask(4)):
        for one in batch:
            session.tell(one, float(5.0 * (one.probe == 1) + 2.0 * rng.normal()))
        most -= len(batch)


def test_a_session_learns_the_noise_and_verifies(sqlite_url):
    rng = np.random.default_rng(1)
    session = session_of(sqlite_url)
    tell_all(session, rng, 30)
    session = sp.Session.load(sqlite_url, "learned")
    tell_all(session, rng)
    assert session.outcome.plan == 1
    assert session.outcome.noise_scale == pytest.approx(2.0, rel=0.5)
    session.extend(delta=1e-4)
    tell_all(session, rng)
    assert session.outcome.plan == 1
    assert session.verify(session.certificate().to_json()).holds


def test_a_value_is_removed_and_the_session_goes_on():
    rng, session = np.random.default_rng(2), session_of()
    slip = session.ask()[0]
    session.tell(slip, 1e6)
    tell_all(session, rng, 20)
    session.remove(slip, "a slip")
    tell_all(session, rng)
    assert session.outcome.plan == 1
    assert session.verify().holds


def test_plans_arrive_and_a_final_batch_ends_a_session():
    session, rng = session_of(), np.random.default_rng(3)
    tell_all(session, rng, 12)
    session.add_plan("ac", "a + c")
    tell_all(session, rng, 24)
    session.final_batch(60)
    tell_all(session, rng)
    assert session.status != "running"
    assert session.outcome.plan in (1, None)
    assert session.verify().holds
