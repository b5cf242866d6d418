"""The doubt about stated limits of means: honest limits seldom raise it, wrong ones soon do."""

import numpy as np
import pytest
from scipy import stats

import surepick as sp
from surepick.noise.check import check_noise, powers
from surepick.noise.mean_limits import log_evidence_outside
from surepick.noise.record import ArmRecord
from surepick.sessions.session import Session

LOOKS, RUNS, P = 100, 300, 0.05


def rare(rng, n):
    """Values with the mean 0 and the variance 1, of which 1 in 100 is large."""
    return np.where(rng.random(n) < 0.01, 9.9499, -0.1005)


KINDS = {  # settings of a problem, and noise with the mean 0
    "stated noise": ({"noise": 1.0}, lambda rng, n: rng.standard_normal(n)),
    "limits of readings": ({"low": -50, "high": 50}, lambda rng, n: rng.integers(0, 2, n) * 19.0 - 9.5),
    "unknown noise": ({}, lambda rng, n: 7.0 * rng.standard_normal(n)),
    "bounded variance": ({"noise": 1.0, "noise_kind": "bounded variance"}, rare),
}


def two(kind, **known):
    return sp.Problem(["a", "b"], goal="largest", known=known, **KINDS[kind][0])


def kept(values):
    record = ArmRecord()
    for value in values:
        record.add(value)
    return record


def limit_doubts(problem, records):
    return [doubt for doubt in check_noise(problem, records) if doubt.code == "limits"]


def above_the_level(kind):
    problem = two(kind)
    scale = None if problem.noise_scale is None else float(problem.noise_scale[0])
    between = None if problem.bounds is None else problem.bounds[0].tolist()
    is_any_shape = kind == "bounded variance"

    def contradicts(record):
        found = log_evidence_outside(record, (-5.0, 0.0), scale, between, is_any_shape=is_any_shape)
        return found > np.log(1 / P)

    return contradicts


def above_a_quantile(record):
    """The control: the test of one look, made at every look."""
    error = np.sqrt(record.squares / (record.n - 1) / record.n)
    return record.mean > stats.norm.isf(P) * error


def is_contradicted(kind, seed, contradicts):
    """Whether a limit that is the true mean is contradicted after any of the values."""
    record = ArmRecord()
    for value in KINDS[kind][1](np.random.default_rng(seed), LOOKS).tolist():
        record.add(value)
        if record.n > 1 and contradicts(record):
            return True
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_true_limits_are_contradicted_no_more_often_than_the_level_however_often_one_looks(kind):
    def p_value(contradicts):
        n = sum(is_contradicted(kind, seed, contradicts) for seed in range(RUNS))
        return stats.binomtest(n, RUNS, P, alternative="greater").pvalue

    assert p_value(above_the_level(kind)) > 1e-3
    assert p_value(above_a_quantile) < 1e-6 or kind == "bounded variance"


@pytest.mark.parametrize(
    ("kind", "n", "off"),
    [
        ("stated noise", 12, 3.0),
        ("limits of readings", 200, 9.0),
        ("unknown noise", 60, 14.0),
        ("unknown noise", 15, 100.0),
        ("bounded variance", 20, 6.0),
    ],
)
@pytest.mark.parametrize("sign", [-1, 1])
def test_wrong_limits_are_found_soon_and_true_ones_pass(kind, n, off, sign):
    problem, draw = two(kind, a=(-1.0, 1.0)), KINDS[kind][1]
    for seed in range(100, 110):
        noise = draw(np.random.default_rng(seed), n)
        assert not limit_doubts(problem, [kept(noise), kept(noise + 50)]), "nothing is stated of b"
        (doubt,) = limit_doubts(problem, [kept(noise + sign * (1 + off)), ArmRecord()])
        assert (doubt.arm, doubt.n_measurements, doubt.stated) == ("a", n, sign)
        assert doubt.seen == pytest.approx(np.mean(noise) + sign * (1 + off))


def test_rounding_is_no_contradiction():
    problem = sp.Problem(["a", "b"], goal="largest", known={"a": (0.0, 0.3)})
    assert not limit_doubts(problem, [kept([0.1 + 0.2] * 50), ArmRecord()])
    assert limit_doubts(problem, [kept([0.1 + 0.21] * 50), ArmRecord()])


def test_noise_that_is_larger_than_stated_is_not_taken_for_wrong_limits():
    problem = two("stated noise", a=(-1.0, 0.0))
    for seed in range(200):
        noise = 5.0 * np.random.default_rng(seed).standard_normal(30)
        assert not limit_doubts(problem, [kept(noise), ArmRecord()])


def test_limits_of_arms_are_limits_of_what_probes_read():
    shared = sp.Probe({"x": {"a": 1, "c": -1}, "y": {"b": 1}}, covariance=[[1.0, 0.5], [0.5, 1.0]])
    plans = {"A": "a", "B": "b + c"}
    known = {"a": (1, 2), "c": 5}
    measure = {"p": shared, "q": ["a"]}
    problem = sp.Problem(plans, goal="largest", noise=1.0, measure=measure, known=known)
    rng = np.random.default_rng(1)
    for c, wrong in ((5.0, 0), (25.0, 1)):
        values = rng.multivariate_normal([1.5 - c, 7.0], [[1.0, 0.5], [0.5, 1.0]], 40).T
        records = [kept(row) for row in problem.probes.whiten_use(0, values)]
        assert len(limit_doubts(problem, [*records, kept(rng.normal(1.5, 1.0, 40))])) == wrong


def test_what_the_test_could_have_seen_is_what_it_sees():
    for kind in ("stated noise", "unknown noise"):
        problem, draw = two(kind, a=(-1.0, 0.0)), KINDS[kind][1]
        unit = 1.0 if kind == "stated noise" else 7.0
        size = powers(problem, [kept(draw(np.random.default_rng(0), 100)), ArmRecord()])["limits"].size
        shifted = ([kept(draw(np.random.default_rng(s), 100) + size * unit), ArmRecord()] for s in range(100))
        assert 80 <= sum(bool(limit_doubts(problem, one)) for one in shifted) <= 99
    assert "limits" not in powers(two("stated noise"), [kept([0.0, 1.0]), kept([0.0, 1.0])])


def ways(**known):
    plans = {"bridge": "bridge + toll", "tunnel": "tunnel", "ring": "2*ring"}
    return sp.Problem(plans, goal="smallest", noise=1.0, known={"toll": 3, **known}, unit="min")


def measure(session, n):
    rng, means = np.random.default_rng(0), {"bridge": 30.0, "tunnel": 36.0, "ring": 20.0}
    while session.view().n_measured < n and (requests := session.ask()):
        for request in requests:
            session.tell(request, means[request.arm] + rng.standard_normal())


def test_a_session_with_wrong_limits_says_so_and_one_with_others_begins_from_its_values():
    session = Session.create("memory://", "ways", ways(ring=(11, 14)))
    measure(session, 20)
    view = session.view()
    doubt = view.to_json()["doubts"][0]
    assert (view.trusted, doubt["code"], doubt["arm"], doubt["stated"]) == (False, "limits", "ring", 14.0)
    assert doubt["seen"] == pytest.approx(20, abs=2)
    assert "--prior ways" in view.next[0].command
    other = session.successor("wrong limits", problem=ways(ring=(11, 24)))
    certificate = session.certificate().to_json()
    assert (certificate["trusted"], session.verify(certificate).holds) == (False, True)
    measure(other, 200)
    assert (other.view().trusted, other.view().plan) == (True, "bridge")
