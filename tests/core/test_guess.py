"""A guess of the means, said once: it guides sessions and forecasts, and never counts as evidence."""

import pickle

import surepick as sp
from common import refuses
from surepick.sessions import codec

PLANS = {"by bus": "bus + 2*walk", "on foot": "7*walk", "by train": "train + walk"}
GUESS = {"walk": 3.0, "bus": 20.0, "train": 25.0}


def problem(**given):
    return sp.Problem(PLANS, **{"goal": "smallest", "noise": 2.0, "guess": GUESS, "spread": 4.0, **given})


def test_a_guess_goes_by_name_and_makes_values_far_from_it_implausible():
    found = problem()
    assert found.arm_names == ("bus", "walk", "train")
    assert found.guess.tolist() == [20.0, 3.0, 25.0]
    assert found.spread.tolist() == [4.0] * 3
    assert found.about.plausible[0] == (4.0, 36.0)
    assert problem(plausible=(0, 90)).about.plausible[0] == (0.0, 90.0)
    again = pickle.loads(pickle.dumps(found))
    assert again.guess.tolist() == found.guess.tolist()
    assert codec.problem_to_json(found) == codec.problem_to_json(problem(guess=None, spread=None))


def test_a_session_begins_with_the_guess_where_its_spread_and_the_noise_are_stated():
    def worth(given, **settings):
        session = sp.Session.create("memory://", "trips", given, **settings)
        session.close("enough")
        prior = session.certificate().prior
        return None if prior is None else sorted(prior.values())

    assert worth(problem()) == [0.25] * 3  # (noise / spread)^2 measurements
    assert worth(problem(spread=None)) is None
    assert worth(problem(noise=None)) is None
    assert worth(problem(), policy=sp.CombGapE()) is None  # which cannot use prior data


def test_a_forecast_needs_no_guess_beside_the_problem_s_and_refuses_to_do_without():
    found = sp.forecast(problem(), rehearsals=3)
    said = sp.forecast(
        problem(guess=None, spread=None),
        GUESS,
        4.0,
        prior=sp.problems.PriorData.of_problem(problem()),
        rehearsals=3,
    )
    assert found.measurements.tolist() == said.measurements.tolist()
    with refuses("guess"):
        sp.forecast(problem(guess=None, spread=None))
