"""The largest and the smallest numbers that a session takes, for every policy; larger ones never get in."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from common import largest, refuses
from policy_contract import (
    CASES,
    FOR_MATROIDS,
    FOR_SETS,
    FOR_SINGLE_ARMS,
    OF_INCUMBENTS,
    OF_POLYTOPES,
    is_peer,
)
from surepick.core.given.numbers import LARGEST, MOST_SCALES, SMALLEST
from surepick.core.run import Decision
from surepick.errors import ParameterError, ProblemError, SessionError, SurepickError
from surepick.policies import CLUCB, POLICIES, Uniform, parse_policy, policy_named
from surepick.policies.betting.batch import Batch
from surepick.policy import Stop
from surepick.simulation import Gaussian

POLICY_TEXTS = (
    *("BetGapE", "CombGapE", "CombGapE:radius=published", "Uniform", "CLUCB", "LinGapE:norm_bound=3"),
    *("SignRace", "Tied:epsilon=1", "RAGE", "Peace", "GenTSExplore", "TSExplore"),
    *("MinimaxCombSAR:budget=300", "CSA:budget=300", "OCBA", "CSAR:budget=300"),
    *("SuccessiveRejects:budget=300", "UGapE", "LUCB", "EBTCI", "TTTS", "TTUCB", "TrackAndStop", "GenLUCB"),
    *("NaiveGapElim", "KN:zone=1", "Rinott:zone=1", "FWS", "LinGame", "XYAdaptive", "PolyALBA"),
    *("ExactExpGap", "Pick"),
)
REFUSED = (1e155, -1e155, 1e308, -1e308, 1.7976931348623157e308, math.inf, math.nan)
# Noise scale and size of the plans: the middle and the corners.
SIZES = ((1.0, 1.0), *itertools.product((SMALLEST, LARGEST), repeat=2))
BUDGET, PHASED_BUDGET = 30, 2_000
PHASED = ("RAGE", "Peace", "NaiveGapElim", "PolyALBA")  # they ask for thousands at once


def test_every_policy_is_among_the_cases():
    # polytopes; a plan, or loads, to be named; plays
    apart = {"CTnS", "CGE", "Challenge", "Limited", "PFWS", "CombGame"}
    assert {text.split(":")[0] for text in POLICY_TEXTS} == set(POLICIES) - apart


def allowed(scale):
    """Cycles of values that are allowed at this noise scale."""
    far = MOST_SCALES * scale
    yield [far, 0.0, -far, scale, 5e-324]
    yield [far, far, np.nextafter(far, 0.0)]
    yield [0.0, 5e-324, -5e-324]


def drive(session, cycle, scale):
    """Tell the cycle until the session ends; at the first request, values beyond the limit are refused."""
    values, beyond = itertools.cycle(cycle), [*REFUSED, MOST_SCALES * scale * 1.001]
    while requests := session.ask():
        for value, what in itertools.product(beyond, (requests[0], 0)):
            with refuses("value", SessionError):
                session.tell(what, value, sure=True)
        beyond = []
        n = max(1, requests[0].wanted)
        session.tell(requests[0], list(itertools.islice(values, n)), sure=True)
        session.state().standing()
    return session.state()


@pytest.mark.filterwarnings("default::RuntimeWarning")  # methods of others overflow on their own
@pytest.mark.parametrize("text", POLICY_TEXTS)
def test_no_allowed_value_breaks_a_session_and_no_larger_one_gets_in(text):
    name, n_tried = text.split(":")[0], 0
    for scale, factor in SIZES:
        if name in FOR_SETS and factor != 1.0:
            continue  # plans of zeros and ones
        if name == "XYAdaptive" and factor > 1.0:
            continue  # its greedy design then takes 200,000 steps
        plans = factor * np.array([[1, 0, 0], [0, 1, 0], [0, name not in FOR_SINGLE_ARMS + FOR_MATROIDS, 1]])
        for cycle in itertools.islice(allowed(scale), 1 if is_peer(policy_named(name)) else None):
            try:
                policy = parse_policy(text, delta=0.01)
                budget = PHASED_BUDGET if name in PHASED else BUDGET
                session = sp.Session.create(
                    "memory://", "s", largest(plans, noise=scale), policy=policy, budget=budget
                )
            except SurepickError:
                continue
            state = drive(session, cycle, scale)
            assert session.verify().holds
            json.dumps(session.certificate().to_json())
            risk = state.standing().risk
            assert None in (state.plan, risk) or risk <= policy.delta * (1 + 1e-9)
            n_tried += 1
    assert n_tried >= (1 if name in FOR_SETS else 3)


def two_arms(**options):
    return sp.Problem([[1, 0], [0, 1]], **{"noise": 1, **options}, goal="largest")


@pytest.mark.parametrize("value", [1e155, -1e155, 1e308, MOST_SCALES * 0.2 * 1.01])
def test_a_value_beyond_the_limit_is_refused_at_every_door(value):
    session = sp.Session.create("memory://", "s", two_arms(noise=0.2), policy=sp.BetGapE())
    (request,) = session.ask()
    before = session.journal.head
    for attempt in (
        lambda: session.tell(request, value),
        lambda: session.tell(request, [1.0, value]),
        lambda: session.tell(0, value),
    ):
        with refuses("value", SessionError):
            attempt()
    assert session.journal.head == before
    session.tell(request, 1.0)


def test_a_problem_with_numbers_that_would_overflow_is_refused():
    for options in ({"noise": 1e31}, {"noise": 1e-31}, {"cost": 1e-200}, {"low": 0, "high": 1e200}):
        with pytest.raises(ProblemError):
            two_arms(**options)
    with pytest.raises(ProblemError):
        sp.Problem([[1e31, 0], [0, 1]], goal="largest")
    with pytest.raises(ProblemError):
        two_arms(low=1e16, high=1e16 + 8)
    assert two_arms(noise=LARGEST).noise_scale is not None
    assert two_arms(noise=SMALLEST).noise_scale is not None


def test_unknown_noise_whose_values_lie_too_far_from_zero_says_so():
    session = sp.Session.create("memory://", "s", two_arms(noise=None), policy=sp.BetGapE())
    rng = np.random.default_rng(0)

    def measure():
        while requests := session.ask():
            session.tell(requests[0], 1e12 + rng.standard_normal())

    with pytest.raises(ProblemError):
        measure()
    assert session.verify().holds


@pytest.mark.parametrize(
    "value",
    [b"12", {1.0: 2.0}, {1.0}, "1_000", "1,234", "\u0661", "one", math.nan, math.inf, [1, math.nan], []],
)
def test_what_is_not_plainly_a_number_is_refused(value):
    session = sp.Session.create("memory://", "s", two_arms(), policy=sp.BetGapE())
    (request,) = session.ask()
    before = session.journal.head
    with refuses("value", SessionError):
        session.tell(request, value)
    assert session.journal.head == before


@pytest.mark.parametrize("value", ["12.5", np.float32(12.5), np.array(12.5), [12.5], np.array([12.5])])
def test_numbers_of_all_kinds_are_taken(value):
    session = sp.Session.create("memory://", "s", two_arms(), policy=sp.BetGapE())
    session.tell(session.ask()[0], value)
    assert [m.value for m in session.measurements()] == [12.5]


def test_texts_that_no_file_can_hold_are_refused():
    session = sp.Session.create("memory://", "s", two_arms(), policy=sp.BetGapE())
    (request,) = session.ask()
    before = session.journal.head
    for attempt in (
        lambda: session.rename("half a pair: \ud800"),
        lambda: session.release(request, reason="\udcff"),
        lambda: session.tell(request, 1.0, worker="\udcff"),
        lambda: session.tell(0, 1.0, key="\udcff"),
        lambda: sp.Session.create("memory://", "t", two_arms(arms=["a", "\udcff"]), policy=sp.BetGapE()),
    ):
        with pytest.raises(ParameterError):
            attempt()
    assert session.journal.head == before


FAR = (1e9, 0.99 * MOST_SCALES)
LISTED = [*CASES, *OF_INCUMBENTS]
PHASED = ("RAGE", "Peace")  # they ask for thousands at once


def rare(policy, far):
    bound = {"norm_bound": 2 * far} if policy.name == "LinGapE" else {}  # on the means, as they are
    return replace(policy, delta=1e-4, **bound)


@pytest.mark.parametrize("policy", [*LISTED, *OF_POLYTOPES], ids=str)
def test_a_tie_far_from_zero_is_not_called_confident(policy):
    problem = (
        sp.Polytope(A_eq=[[1, 1]], b_eq=[1], noise=1, goal="largest")
        if policy in OF_POLYTOPES
        else two_arms()
    )
    budget = 50_000 if policy.name in PHASED else 300
    for seed, far in enumerate(FAR):
        outcome = sp.simulate(
            problem, Gaussian([far, far]), policy=rare(policy, far), seed=seed, budget=budget
        )
        assert outcome.plan is None or "radius='published'" in str(policy)


def uneven_tie(far):
    """A plan of one arm against one of two, exactly as good; values that hardly vary are added up one by one.

    Their sums are rounded alike every time, by another amount for each arm.
    """
    part = math.floor(0.3 * far) + 0.125
    means = [far, part, far - part]
    assert means[1] + means[2] == means[0]
    return largest([[1, 0, 0], [0, 1, 1]]), Gaussian(means, scale=1e-3)


@pytest.mark.parametrize("policy", [sp.CombGapE(), sp.CombGapE(radius="kaufmann-koolen"), CLUCB()], ids=str)
def test_rounding_that_gathers_over_many_measurements_settles_no_tie(policy):
    problem, environment = uneven_tie(0.99 * MOST_SCALES + 5.1)
    outcome = sp.simulate(problem, environment, policy=policy, budget=2_200_000)
    assert outcome.plan is None
    assert outcome.remaining is None or len(outcome.remaining) == 2
    means = outcome.means
    assert abs(means[0] - means[1] - means[2]) > 0.005  # the rounding is there


def test_without_its_margin_the_same_tie_is_settled_by_rounding():
    problem, environment = uneven_tie(0.99 * MOST_SCALES + 5.1)
    run = sp.CombGapE().start(problem)
    run._arms.reach[:] = 0.0  # as if no rounding could gather
    rng = np.random.default_rng(0)
    run.absorb(np.ones(3, dtype=np.int64), np.array(environment.means))
    while not isinstance(run.decide(rng), Stop):
        assert run.drive(environment.feed(), environment.draw(4096, rng))
        assert run.evidence.n_measurements < 10**6


def test_parts_of_a_batch_are_added_up_without_loss():
    value, n = 0.99 * MOST_SCALES + 0.3, 100_000
    batch = Batch.open(Decision(0, np.zeros(0, dtype=np.int64), np.array([n]), 1), 1)
    plain = 0.0
    for _ in range(n):
        batch.add(np.array([1]), np.array([value]), np.array([0]))
        plain += value
    assert abs(plain / n - value) > 1e-3
    assert abs(batch.averages(np.array([0]))[0, 0] - value) < 1e-5
    assert batch.is_complete


@pytest.mark.parametrize("policy", [sp.CombGapE(), Uniform(), CLUCB()], ids=str)
def test_a_gap_policy_does_not_stop_where_its_radius_is_lost_in_rounding(policy):
    """Values of 1e16 noise scales, which no session takes: value + radius - value was 0, and 0 <= epsilon."""
    run = policy.start(two_arms())
    rng = np.random.default_rng(0)
    for _ in range(50):
        decision = run.decide(rng)
        assert not isinstance(decision, Stop)
        run.absorb(decision.counts, 1e16 * decision.counts)


NO_OFFSET = ("RAGE", "Peace", "LinGapE")  # seconds each; the last bounds the means themselves


@pytest.mark.parametrize("policy", [p for p in LISTED if p.name not in NO_OFFSET], ids=str)
def test_an_offset_changes_no_answer(policy):
    means = np.array([0.6, 0.0])
    near, far = (sp.simulate(two_arms(), Gaussian(means + offset), policy=policy) for offset in (0.0, 1e9))
    assert near.plan == far.plan
    if policy.name != "BetGapE":  # which lowers its gaps by more than rounding
        assert near.n_measured == far.n_measured


def test_simulations_far_from_zero_are_refused():
    with pytest.raises(ParameterError):
        sp.simulate(two_arms(), Gaussian([1e16, 1e16]), policy=sp.CombGapE())
