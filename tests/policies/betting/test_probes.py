"""BetGapE where probes are measured: whole runs on readings that mix arms or share noise, with controls."""

import numpy as np
import pytest

import probe_cases
import surepick as sp
from common import largest, refuses
from session_tools import answer, gaussian
from surepick.core.run import Stop
from surepick.errors import ParameterError, ProblemError
from surepick.inference.contrasts import arm_probes
from surepick.simulation import Bernoulli, Gaussian, Replay, State, UniformNoise
from surepick.simulation.fitting import fitted


def paired(covariance=((4.25, 4.0), (4.0, 4.25))):
    return largest(
        {"old": "a", "new": "b"},
        measure={"pair": sp.Probe(["a", "b"], covariance=[list(c) for c in covariance])},
    )


CASES = {
    "dense": probe_cases.soare(4, 0.4),
    "semi": probe_cases.top_k(5, 2, 3, "semi"),
    "paired": (paired(), np.array([1.0, 0.3])),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_the_best_plan_is_found(name, epsilon):
    problem, means = CASES[name]
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(epsilon=epsilon), seed=3)
    assert outcome.state is State.CONFIDENT
    assert problem.values(means)[outcome.plan] >= problem.values(means).max() - epsilon - 1e-12
    assert outcome.counts.shape == (problem.n_probes,)
    assert outcome.means.shape == (problem.probes.n_readings,)
    assert outcome.cost == outcome.n_measured
    assert outcome.standing.risk <= 0.05
    assert outcome.plan in outcome.standing.good


def test_environments_that_do_not_fit_probes_are_refused():
    problem, means = CASES["dense"]
    assert sp.simulate(problem, UniformNoise(means, 1.0), seed=1).plan == problem.best(means)
    unlike = UniformNoise(means, np.arange(len(means)) + 1.0)
    for environment in (Bernoulli(np.full(len(means), 0.5)), Gaussian(means, scale=2.0), unlike):
        with pytest.raises(ParameterError):
            sp.simulate(problem, environment, policy=sp.BetGapE())


def test_a_probe_that_shows_nothing_of_the_targets_does_not_end_the_run():
    """Its use comes out a little below 0, of which there is no root."""
    problem, means = probe_cases.grid_paths(4, 0, "full")
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(), seed=7_300_002)
    assert outcome.plan == problem.best(means)


def drawn(seed):
    """A problem with a few plans and probes of any kind, and means; None where no probe tells plans apart."""
    rng = np.random.default_rng(seed)
    n_arms, names = int(rng.integers(2, 9)), "abcdefghi"
    plans = np.unique(rng.integers(0, 2, (int(rng.integers(2, 14)), n_arms)), axis=0)
    rows = rng.integers(-1, 2, (int(rng.integers(1, 15)), n_arms)) * 10.0 ** rng.integers(-3, 4)
    probes = {f"probe {i}": dict(zip(names, row, strict=False)) for i, row in enumerate(rows) if row.any()}
    given = {"measure": "plans" if rng.random() < 0.5 else probes, "arms": list(names[:n_arms])}
    try:
        return sp.Problem(plans, noise=1, **given, goal="largest"), rng.normal(size=n_arms)
    except ProblemError:
        return None


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_whatever_the_probes_a_run_continues_until_it_is_confident_or_the_budget_is_spent():
    n_sure = n_wrong = 0
    for problem, means in filter(None, map(drawn, range(40))):
        outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(delta=0.1), seed=1, budget=300)
        n_sure += outcome.plan is not None
        n_wrong += outcome.plan not in (None, problem.best(means))
    assert n_sure > 10
    assert n_wrong <= 0.1 * n_sure


LISTED = np.random.default_rng(8).integers(0, 3, (700, 12)).astype(float)
BY_ARMS = {
    "many plans": (largest(LISTED), np.linspace(1, 0, 12)),
    "unknown noise": (sp.Problem(np.eye(5), noise=None, goal="largest"), np.linspace(1, 0, 5)),
}


@pytest.mark.parametrize(("problem", "means"), [*CASES.values(), *BY_ARMS.values()], ids=[*CASES, *BY_ARMS])
def test_last_bits_of_values_change_no_decision(problem, means):
    """Sums are rounded differently by other linear algebra libraries; what decides is rounded first."""
    one, other = sp.BetGapE(delta=1e-4).start(problem), sp.BetGapE(delta=1e-4).start(problem)
    probes, rng = arm_probes(problem), np.random.default_rng(7)
    for _ in range(40):
        decision = one.decide()
        if isinstance(decision, Stop):
            break
        assert other.decide().counts.tolist() == decision.counts.tolist()
        n = decision.counts[probes.owner]
        sums = n * (probes.rows @ means) + np.sqrt(n) * rng.standard_normal(len(n))
        one.absorb(decision.counts, sums)
        other.absorb(decision.counts, sums * (1 + 1e-15 * rng.integers(-2, 3, len(n))))


def test_a_log_and_its_certificate_are_verified_where_last_bits_differ():
    problem, means = probe_cases.top_k(6, 2, 0, "full")
    session = sp.Session.create("memory://", "plans", problem, policy=sp.BetGapE(delta=0.2))
    answer(session, gaussian(problem.probes.rows @ (8 * means), seed=5), at_once=200)
    certificate = session.certificate().to_json()
    certificate["risk"] *= 1 + 1e-12
    assert session.verify(certificate).holds
    certificate["risk"] *= 0.999  # the control: a digit that was changed by hand
    assert not session.verify(certificate).holds


def prior(n=400):
    """Rows of a good and a bad day for both arms, a little better for the second: correlation above .9."""
    rng = np.random.default_rng(5)
    day = rng.normal(size=n)
    return np.column_stack([day, day + 0.2]) + 0.1 * rng.normal(size=(n, 2))


def test_rows_of_past_data_stay_together_and_pairs_need_fewer_uses():
    rows, plans = prior(), {"old": "a", "new": "b"}
    bounds = {"low": rows.min(), "high": rows.max(), "noise": None}
    pair, apart = largest(plans, measure={"pair": ["a", "b"]}, **bounds), largest(plans, **bounds)
    world = fitted(pair, Replay(rows), allow_noisier=False)
    values = world.uses(0, 1000, np.random.default_rng(1))
    assert {tuple(row) for row in values} <= {tuple(row) for row in rows}
    assert world.measure(np.array([1000]), np.random.default_rng(1)) == pytest.approx(values.sum(axis=0))
    together, alone = (
        [sp.simulate(problem, Replay(rows), policy=sp.BetGapE(), seed=seed) for seed in range(3)]
        for problem in (pair, apart)
    )
    assert {one.plan_name for one in together + alone} == {"new"}
    assert sum(one.n_measured for one in together) < 0.4 * sum(one.n_measured for one in alone)
    outcome = sp.simulate(pair, {"a": 0.0, "b": 0.2}, policy=sp.BetGapE(), seed=1)  # uniform within bounds
    assert outcome.plan_name == "new"
    stated = largest(plans, measure={"pair": sp.Probe(["a", "b"], noise=2.0)})
    for problem, refused in ((stated, Replay(rows)), (pair, Replay([[0.1, 0.2], [0.1]]))):
        with pytest.raises(ParameterError):
            sp.simulate(problem, refused, policy=sp.BetGapE())


def test_readings_of_one_use_see_the_same_toss():
    both = {"sum": {"a": 1, "b": 1}, "difference": {"a": 1, "b": -1}}
    problem = largest({"old": "a", "new": "b"}, measure={"both": sp.Probe(both)}, low=-1, high=2, noise=None)
    world = fitted(problem, Bernoulli([0.3, 0.6]), allow_noisier=False)
    values = world.uses(0, 20_000, np.random.default_rng(1))
    assert set(map(tuple, values)) == {(0, 0), (1, 1), (1, -1), (2, 0)}
    assert values.mean(axis=0) == pytest.approx([0.9, -0.3], abs=0.02)
    assert sp.simulate(problem, Bernoulli([0.3, 0.6]), policy=sp.BetGapE(), seed=1).plan_name == "new"
    narrow = largest({"old": "a", "new": "b"}, measure={"both": sp.Probe(both)}, low=0, high=2, noise=None)
    with refuses("environment", ParameterError):
        fitted(narrow, Bernoulli([0.3, 0.6]), allow_noisier=False)
