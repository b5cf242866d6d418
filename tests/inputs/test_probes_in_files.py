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
