"""BetGapE on probes decides alike on every machine: last bits that differ change nothing, with a control."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import surepick as sp
from surepick.core.run import Stop
from surepick.core.telling_apart import span
from surepick.design import information
from surepick.design.information import Dense
from surepick.design.probe_allocation import Effort, probe_allocation
from surepick.errors import ProblemError
from surepick.experiments import probe_cases
from surepick.policies.betting.block_estimates import DenseEstimator, estimator_for
from surepick.policies.betting.purses import Purses
from surepick.policies.betting.steady import Steady, steady_estimator
from surepick.sessions.verify import verify
from surepick.store import open_store


def other_machine(monkeypatch, seed):
    """What BLAS and logarithms give, as on a machine that rounds otherwise: off by a few of the last bits."""
    rng = np.random.default_rng(seed)

    def shaken(values):
        return values * (1 + 2e-16 * rng.integers(-4, 5, size=np.shape(values)))

    for kind, name in ((Dense, "matrix"), (DenseEstimator, "means"), (DenseEstimator, "spread")):
        own = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda *given, own=own: shaken(own(*given)))
    monkeypatch.setattr(information, "span", lambda rows: shaken(span(rows)))
    show, count = DenseEstimator.show, Purses.count

    def show_shaken(*given):
        shown = show(*given)
        return shown._replace(gap=shaken(shown.gap), variance=shaken(shown.variance))

    def count_shaken(self, *given):
        count(self, *given)
        self.now = shaken(self.now)

    monkeypatch.setattr(DenseEstimator, "show", show_shaken)
    monkeypatch.setattr(Purses, "count", count_shaken)


def counts_asked(problem, means, n_blocks=25):
    """The counts of the first blocks; readings are whole numbers, so that plans and probes tie."""
    run, probes = sp.BetGapE().start(problem), problem.probes
    rng, asked = np.random.default_rng(3), []
    for _ in range(n_blocks):
        request = run.decide()
        if isinstance(request, Stop):
            break
        n = request.counts[probes.owner]
        asked.append(request.counts.tolist())
        run.absorb(request.counts, np.rint(n * (probes.rows @ means) + np.sqrt(n) * rng.normal(size=len(n))))
    return asked


CASES = {
    "whole plans": lambda: probe_cases.top_k(6, 2, 0, "full"),
    "paths": lambda: (probe_cases.grid_paths(3, 0, "full")[0], 0.3 * probe_cases.grid_paths(3, 0, "full")[1]),
    "pairs": lambda: (
        sp.Problem(
            np.eye(4),
            arm_names=list("abcd"),
            probes={
                a + b: sp.Probe([a, b], covariance=[[1.0, 0.8], [0.8, 1.0]])
                for a, b in ("ab", "ac", "ad", "bc", "bd", "cd")
            },
            noise_scale=1,
        ),
        np.array([0.5, 0.0, 0.0, 0.0]),
    ),
    "semi": lambda: probe_cases.top_k(6, 2, 0, "semi"),
}


@pytest.mark.parametrize("name", CASES)
def test_last_bits_of_another_machine_change_no_decision(name, monkeypatch):
    problem, means = CASES[name]()
    here = counts_asked(problem, means)
    assert len(here) > 5
    other_machine(monkeypatch, 1)
    assert counts_asked(problem, means) == here


def told_to_the_end(session, means):
    truth, rng = session.problem.probes.rows @ means, np.random.default_rng(5)
    while session.status is None:
        for request in session.ask(200):
            session.tell(request, float(truth[request.probe] + rng.normal()))


def test_a_log_and_its_certificate_are_verified_on_another_machine(monkeypatch):
    problem, means = CASES["whole plans"]()
    store = open_store("memory://")
    session = sp.Session.create(store, problem, sp.BetGapE(delta=0.2), name="plans")
    told_to_the_end(session, 8 * means)
    certificate = session.certificate().to_json()
    other_machine(monkeypatch, 2)
    assert verify(store, "plans", certificate).objections == ()
    certificate["risk"] *= 0.999  # the control: a digit that was changed by hand
    assert verify(store, "plans", certificate).objections == (
        "the certificate's 'risk' is not what the log gives",
    )


def test_loops_of_our_own_agree_with_linear_algebra():
    problem, _ = probe_cases.sphere(60, 7, 2)
    ours, usual = steady_estimator(problem.probes, problem.plans), estimator_for(problem.probes)
    steady = ours.information
    assert isinstance(steady, Steady)
    counts = np.random.default_rng(0).integers(0, 4, 60).astype(float)
    rows = problem.probes.rows.toarray()
    matrix = steady.matrix(counts)
    np.testing.assert_allclose(matrix, rows.T @ (counts[:, None] * rows), rtol=1e-7, atol=1e-7)
    away, vector = problem.plans[0] - problem.plans[1:], ours.vector(np.arange(60.0))
    np.testing.assert_allclose(vector, np.arange(60.0) @ rows, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.means(matrix, vector), np.linalg.solve(matrix, vector), rtol=1e-5)
    wanted = np.einsum("jd,de,je->j", away, np.linalg.inv(matrix), away)
    np.testing.assert_allclose(ours.spread(matrix, away), wanted, rtol=1e-6)
    whole = counts.astype(np.int64)
    for mine, theirs in zip(ours.show(away, whole, counts, 1.0), _turned(usual, away, whole), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)


def _turned(usual, away, counts):
    """What the usual estimator shows, in its own coordinates."""
    return usual.show(usual.information.coordinates(away), counts, counts.astype(float), 1.0)


def test_a_division_comes_near_to_the_certified_one():
    problem, _ = probe_cases.sphere(120, 8, 4)
    steady, costs = steady_estimator(problem.probes, problem.plans).information, np.ones(120)
    away = problem.plans[0] - problem.plans[1:]
    start = np.full(120, 1 / 120), np.full(len(away), 1 / len(away))
    shares, dual = steady.divided(away, costs, start, (0.02, 60, 10))
    assert shares.sum() == pytest.approx(1)
    assert dual.sum() == pytest.approx(1)
    inverse = np.linalg.inv(steady.matrix(shares))
    value = np.einsum("jd,de,je->j", away, inverse, away).max()
    certified = probe_allocation(
        estimator_for(problem.probes).information, _own(problem), costs, Effort(0.01)
    )
    assert certified.lower * 0.999 <= value <= 1.1 * certified.upper


def _own(problem):
    return estimator_for(problem.probes).information.coordinates(problem.plans[0] - problem.plans[1:])


def test_a_probe_that_shows_nothing_of_the_targets_does_not_end_the_run():
    """Here its use comes out a little below 0, of which there is no root."""
    problem, means = probe_cases.grid_paths(4, 0, "full")
    outcome = sp.simulate(problem, sp.BetGapE(), sp.Gaussian(means), seed=7_300_002)
    assert outcome.plan == problem.best(means)


@pytest.mark.parametrize("n_plans", [3, 90])
def test_a_cover_shows_every_difference_of_few_and_of_many(n_plans):
    problem, _ = probe_cases.sphere(100, 6, 1)
    estimator = steady_estimator(problem.probes, problem.plans)
    away = problem.plans[0] - problem.plans[1 : n_plans + 1]
    chosen = estimator.information.cover(np.full(100, 0.01), np.ones(100), away)
    assert chosen.sum() <= 6
    assert estimator.show(away, chosen.astype(np.int64), np.zeros(100), 1.0).counts.all()


def test_readings_of_fewer_directions_than_arms_get_a_basis_of_these():
    rows = np.array([[1.0, -1, 0, 0], [0, 1, -1, 0]])
    probes = sp.Problem([[1, -1, 0, 0], [0, 0, 0, 0], [0, 1, -1, 0]], probes=rows, noise_scale=1)
    basis = steady_estimator(probes.probes, probes.plans).information.basis
    assert basis.shape == (2, 4)
    np.testing.assert_allclose(basis @ basis.T, np.eye(2), atol=1e-12)
    usual = span(csr_array(probes.probes.rows))
    np.testing.assert_allclose(basis.T @ basis, usual.T @ usual, atol=1e-12)


def drawn(seed):
    """A problem with a few plans and probes of any kind, and means; None where no probe tells plans apart."""
    rng = np.random.default_rng(seed)
    n_arms, names = int(rng.integers(2, 9)), "abcdefghi"
    plans = np.unique(rng.integers(0, 2, (int(rng.integers(2, 14)), n_arms)), axis=0)
    rows = rng.integers(-1, 2, (int(rng.integers(1, 15)), n_arms)) * 10.0 ** rng.integers(-3, 4)
    probes = {f"probe {i}": dict(zip(names, row, strict=False)) for i, row in enumerate(rows) if row.any()}
    given = {"probes": "plans" if rng.random() < 0.5 else probes, "arm_names": list(names[:n_arms])}
    try:
        return sp.Problem(plans, **{"noise_scale": 1, **given}), rng.normal(size=n_arms)
    except ProblemError:
        return None


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_whatever_the_probes_a_run_goes_on_until_it_is_sure_or_the_budget_is_spent():
    n_sure = n_wrong = 0
    for problem, means in filter(None, map(drawn, range(150))):
        outcome = sp.simulate(problem, sp.BetGapE(delta=0.1), sp.Gaussian(means), seed=1, budget=600)
        n_sure += outcome.plan is not None
        n_wrong += outcome.plan not in (None, problem.best(means))
    assert n_sure > 20
    assert n_wrong <= 0.1 * n_sure
