"""Probes in problem files of every kind."""

import pytest

import surepick as sp
from common import refuses
from surepick.inputs.load import read_problem
from surepick.simulation import Gaussian

PATHS = """
kind = "paths"
edges = [["A", "B"], ["B", "C"], ["A", "D"], ["D", "C"], ["B", "D"]]
source = "A"
target = "C"
"""


def loaded(tmp_path, text):
    file = tmp_path / "routes.toml"
    file.write_text(text)
    return read_problem(file).problem


@pytest.mark.parametrize("kind", ["plan arms", "plans"])
def test_paths_are_driven_whole(tmp_path, kind):
    plain = loaded(tmp_path, PATHS)
    problem = loaded(tmp_path, PATHS + f'measure = "{kind}"\nnoise = 0.5\ncost = 3')
    assert problem.probe_names == plain.plan_names
    assert problem.costs.tolist() == [3.0] * problem.n_plans
    assert set(problem.noise_scale.tolist()) == {0.5}
    means = [1.0, 2.0, 2.5, 1.5, 0.2]
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(), seed=1)
    assert outcome.plan == problem.best(means)


def test_unknown_noise_and_the_default(tmp_path):
    problem = loaded(tmp_path, PATHS + 'measure = "plan arms"\nnoise = "unknown"')
    assert problem.probes.unknown
    assert loaded(tmp_path, PATHS + 'measure = "arms"\nnoise = [1, 2, 3, 4, 5]').probes is None


def test_a_probe_that_reads_no_road_of_the_network_is_refused(tmp_path):
    with refuses("measure"):
        loaded(tmp_path, PATHS + '[measure.loop]\nreads = ["A-X"]')


def test_plans_that_are_in_no_list_are_played_and_other_probes_say_what_to_do(tmp_path):
    played = loaded(tmp_path, PATHS + 'measure = "plan arms"\nlist_plans = false\nnoise = 2.0\ncost = 3')
    assert played.plays
    assert (played.noise_scale == 2.0).all()
    assert (played.costs == 3.0).all()
    with refuses("measure"):
        loaded(tmp_path, PATHS + 'measure = "plans"\nlist_plans = false')


def test_limits_of_every_reading_take_the_place_of_the_noise(tmp_path):
    driven = loaded(tmp_path, PATHS + 'measure = "plan arms"\nlow = 0\nhigh = 5')
    assert driven.bounds.tolist() == [[0.0, 5.0]] * driven.n_readings
    played = loaded(tmp_path, PATHS + 'measure = "plan arms"\nlist_plans = false\nlow = 0\nhigh = 5')
    assert played.bounds.tolist() == [[0.0, 5.0]] * played.n_arms
    totals = loaded(tmp_path, PATHS + 'measure = "plans"\nlow = 0\nhigh = 9')
    assert totals.bounds.tolist() == [[0.0, 9.0]] * totals.n_plans
    means = [1.0, 2.0, 2.5, 1.5, 0.2]
    for problem in (driven, totals):
        assert sp.simulate(problem, means, seed=1).plan == problem.best(means)
    with refuses("low"):  # of the total of a plan no number of an arm says anything
        loaded(tmp_path, PATHS + 'measure = "plans"\nlow = [0, 0, 0, 0, 1]\nhigh = 9')
    with refuses("plausible"):
        loaded(tmp_path, PATHS + 'measure = "plans"\nlow = 0\nhigh = 9\nplausible = [0, 5]')
