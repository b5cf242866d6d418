"""Cases of the gallery are those of their sources, and end with as few measurements as its pages say."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import surepick as sp


@pytest.fixture
def gallery(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples" / "gallery")
    return importlib.import_module


def test_afiro_is_that_of_netlib_and_is_solved_within_twenty_measurements(gallery):
    problem, costs = gallery("afiro").afiro()
    assert (len(problem.rows.b_ub) + len(problem.rows.b_eq), problem.n_arms) == (27, 32)
    means = np.array(list(costs.values()))
    assert problem.best_plan(means) @ means == pytest.approx(-464.75314286, abs=1e-7)
    for seed in range(3):
        outcome = sp.simulate(problem, costs, policy=sp.BetGapE(delta=0.05), seed=seed)
        assert (outcome.state, outcome.correct) == ("confident", True)
        assert outcome.n_measured <= 20
        assert not outcome.counts[means == 0].any()


def test_models_are_routed_with_few_readings_and_fewer_examples(gallery):
    routing = gallery("model_routing")
    tables = routing.recorded()
    assert [len(table) for table in tables.values()] == [150, 178, 569, 1797]
    plans = sp.problems.assign(dict.fromkeys(tables, routing.PRICES), routing.BUDGET, goal="largest")
    assert plans.n_plans == 323
    whole = {name: [f"{name}: {model}" for model in routing.PRICES] for name in tables}
    given = {"arms": plans.arm_names, "goal": "largest", "low": 0, "high": 1, "measure": whole}
    problem, policy = sp.Problem(plans.plans, **given), sp.BetGapE(delta=0.05, epsilon=routing.EPSILON)
    found = [sp.simulate(problem, routing.Examples(tables), policy=policy, seed=s) for s in range(3)]
    assert all(outcome.correct for outcome in found)
    assert np.mean([outcome.n_measured for outcome in found]) < 1_100


def test_a_flow_line_is_simulated_as_its_markov_chain_says(gallery):
    line = gallery("throughput")
    assert [len(line.designs(total)) for total in (12, 20)] == [605, 3249]
    assert line.exact((6, 7, 7, 12, 8)) == pytest.approx(5.776, abs=5e-4)  # the best of 3,249
    lines = np.array([(4, 4, 4, 6, 6), (2, 5, 5, 3, 9)])
    runs = line.simulated(np.repeat(lines, 400, axis=0), np.random.default_rng(1)).reshape(2, 400)
    jobs_per_time = 1 / (1 / runs).mean(axis=1)  # the mean of a ratio is larger than the ratio of means
    assert jobs_per_time == pytest.approx([line.exact(one) for one in lines], rel=0.02)
