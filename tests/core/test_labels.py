"""Numbers that carry labels are put in order by them, wherever numbers of arms are taken."""

import numpy as np
import pandas as pd
import pytest

import surepick as sp
from common import largest, refuses
from surepick.errors import ParameterError, ProblemError
from surepick.simulation import Bernoulli, Gaussian, Replay, UniformNoise
from surepick.simulation.fitting import fitted

ARMS = ["road", "rail", "ship"]
TURNED = {"ship": 3.0, "road": 1.0, "rail": 2.0}  # in another order than the arms
LABELLED = [TURNED, pd.Series(TURNED)]
PLANS = pd.DataFrame(np.eye(3), index=["by road", "by rail", "by ship"], columns=ARMS)


@pytest.mark.parametrize("given", LABELLED)
def test_noise_costs_and_means_go_by_their_labels(given):
    problem = sp.Problem(PLANS, noise=given, cost=given, goal="largest")
    assert problem.noise_scale.tolist() == problem.costs.tolist() == [1.0, 2.0, 3.0]
    assert sp.Problem(PLANS, low=0, high=given, goal="largest").bounds[:, 1].tolist() == [1.0, 2.0, 3.0]
    assert problem.values(given).tolist() == problem.as_means(given).tolist() == [1.0, 2.0, 3.0]


def test_the_positions_of_pandas_are_labels_only_where_they_are_the_names():
    costs = pd.Series([1.0, 2.0, 3.0])
    assert largest(PLANS, cost=costs).costs.tolist() == [1.0, 2.0, 3.0]
    assert largest(np.eye(3), arms=["2", "1", "0"], cost=costs).costs.tolist() == [3.0, 2.0, 1.0]


def test_a_series_that_was_sorted_is_not_taken_by_position():
    costs = pd.Series([3.0, 1.0, 2.0]).sort_values()
    with refuses("cost", ProblemError):
        sp.Problem(PLANS, cost=costs, goal="largest")
    assert largest(PLANS, cost=costs.to_numpy()).costs.tolist() == [1.0, 2.0, 3.0]


def test_labels_that_are_not_known_missing_or_repeated_are_refused():
    for wrong in (
        {**TURNED, "raod": 1.0},
        {"road": 1.0, "rail": 2.0},
        pd.Series([1.0, 2.0, 3.0, 4.0], index=[*ARMS, "road"]),
    ):
        with refuses("noise", ProblemError):
            sp.Problem(PLANS, noise=wrong, goal="largest")


@pytest.mark.parametrize("given", LABELLED)
def test_environments_by_name_measure_as_those_in_order(given):
    problem, counts = sp.Problem(PLANS, noise=3.0, goal="largest"), np.array([1, 2, 1])
    prior = {"ship": [3, 4], "road": [0, 2], "rail": [2, 2]}
    half = {name: value / 4 for name, value in TURNED.items()}
    for by_name, in_order in (
        (Gaussian(given, given), Gaussian([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])),
        (Bernoulli(half), Bernoulli([0.25, 0.5, 0.75])),
        (UniformNoise(given, given), UniformNoise([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])),
        (Replay({"ship": [3], "road": [0, 2], "rail": [2]}), Replay([[0, 2], [2], [3]])),
        (Replay(pd.DataFrame(prior)), Replay([prior[name] for name in ARMS])),
    ):
        one, other = (fitted(problem, env, allow_noisier=False) for env in (by_name, in_order))
        assert one.means.tolist() == other.means.tolist()
        rngs = np.random.default_rng(1), np.random.default_rng(1)
        assert one.measure(counts, rngs[0]).tolist() == other.measure(counts, rngs[1]).tolist()


def test_an_environment_with_other_arms_is_refused():
    with refuses("means", ProblemError):
        sp.simulate(largest(PLANS), Gaussian({"road": 1, "rail": 2, "boat": 3}), policy=sp.CombGapE())
    with refuses("scale", ParameterError):
        Gaussian([1.0, 2.0, 3.0], TURNED)


def test_a_knapsack_takes_its_names_and_order_from_labels():
    weights = pd.Series({"tea": 3, "coffee": 4})
    problem = sp.problems.knapsack(
        weights, {"coffee": 5.0, "tea": 4.0}, 10, copies={"coffee": 2, "tea": 1}, noise=1
    )
    same = sp.problems.knapsack([3, 4], [4.0, 5.0], 10, copies=[1, 2], item_names=["tea", "coffee"], noise=1)
    assert problem.arm_names == same.arm_names
    assert problem.plans.tolist() == same.plans.tolist()


def test_transport_keeps_the_names_of_a_data_frame_and_aligns_amounts():
    guess = pd.DataFrame([[2, 3], [2, 2]], index=["X", "Y"], columns=["north", "south"])
    supply, demand = pd.Series({"Y": 2, "X": 3}), pd.Series({"south": 1, "north": 4})
    problem = sp.problems.transport(
        supply, demand, guess, spread=guess.iloc[::-1, ::-1] / 4, n_draws=99, noise=1
    )
    same = sp.problems.transport(
        [3, 2],
        [4, 1],
        guess.to_numpy(),
        spread=guess.to_numpy() / 4,
        n_draws=99,
        supplier_names=["X", "Y"],
        demander_names=["north", "south"],
        noise=1,
    )
    assert problem.arm_names == same.arm_names == ("X -> north", "X -> south", "Y -> north", "Y -> south")
    assert problem.plans.tolist() == same.plans.tolist()
    with refuses("supply", ProblemError):
        sp.problems.transport({"Z": 2, "X": 3}, demand, guess)


def test_a_production_goes_by_the_labels_of_its_tables():
    use = pd.DataFrame({"bread": [1, 3], "cake": [2, 1]}, index=["flour", "hours"])
    problem = sp.problems.production(
        use, {"hours": 9, "flour": 8}, {"cake": 4.0, "bread": 3.0}, upper={"cake": 3.5, "bread": 9}, noise=1
    )
    same = sp.problems.production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0], upper=[9, 3.5], noise=1)
    assert problem.arm_names == ("bread", "cake")
    assert problem.recipe() == same.recipe()


def test_guesses_of_edges_go_by_their_names():
    edges = [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D")]
    guess = {"C - D": 4.0, "A - B": 2.0, "B - D": 2.0, "A - C": 1.0}
    problem = sp.problems.paths(edges, "A", "D", guess, n_best=2, noise=1)
    assert problem.plan_names == ("A -> B -> D", "A -> C -> D")
    with refuses("guess", ProblemError):
        sp.problems.paths(edges, "A", "D", {**guess, "A - D": 1.0})
