"""Advice is judged by its numbers: what it forecasts comes true, what it says is what was rehearsed."""

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app
from surepick.errors import ParameterError

ROUTES = str(Path(__file__).parent.parent.parent / "examples" / "routes.toml")
PLANS = [[2, 0, 1, 0], [0, 2, 0, 1], [1, 1, 1, 0], [0, 0, 2, 2]]
GUESS, SPREAD = [1.0, 0.7, 0.4, 0.3], 0.2


def advice(problem=None, **options):
    problem = problem or sp.Problem(PLANS, noise=1, goal="largest")
    return sp.advise(problem, GUESS, SPREAD, **{"n_worlds": 8, "budget": 50_000, **options})


def test_the_forecast_comes_true_in_other_worlds():
    problem, found = sp.Problem(PLANS, noise=1, goal="largest"), advice(n_worlds=8)
    rng = np.random.default_rng(99)
    taken = []
    for seed in range(14):
        means = np.array(GUESS) + SPREAD * rng.uniform(-1, 1, 4)
        outcome = sp.simulate(problem, found.policy, sp.Gaussian(means), seed=1000 + seed, budget=50_000)
        taken.append(outcome.n_measurements)
    assert found.low <= np.median(taken) <= found.high
    assert np.median(taken) == pytest.approx(found.expected, rel=0.6)
    assert found.limit < found.expected


def test_the_policy_that_takes_least_is_recommended_and_its_promise_is_proved():
    far_apart = sp.advise(
        sp.Problem(np.eye(2), noise=1, goal="largest"),
        [6.0, 0.0],
        delta=0.05,
        epsilon=0.0,
        n_worlds=4,
        budget=5000,
    )
    medians = {one.policy.name: one.price for one in far_apart.rehearsals}
    assert set(medians) == {"BetGapE", "CombGapE"}
    assert medians[far_apart.policy.name] == min(medians.values())
    assert not far_apart.policy.guarantee.startswith("none")


def test_what_is_given_is_kept():
    found = advice(delta=0.2, epsilon=0.5)
    assert (found.delta, found.epsilon) == (0.2, 0.5)
    assert found.policy.delta == 0.2
    assert found.reasons["delta"] == found.reasons["epsilon"]


def test_near_ties_lead_to_an_epsilon_and_a_smaller_budget_to_a_larger_one():
    problem = sp.Problem([[1, 0, 0], [0, 1, 0], [0, 0, 1]], noise=1, goal="largest")
    found = {
        budget: sp.advise(problem, [1.0, 0.9999, 0.0], 0.0, budget=budget, delta=0.05, n_worlds=5)
        for budget in (20_000, 100_000)
    }
    assert 0 < found[100_000].epsilon < found[20_000].epsilon < 1
    assert found[100_000].expected <= 100_000
    exact = found[100_000].rehearsals[0]
    assert exact.policy.epsilon == 0
    assert exact.quantile(0.5) == math.inf


def test_a_hopeless_problem_is_called_so():
    found = sp.advise(
        sp.Problem([[1, 0], [0, 1]], noise=1, goal="largest"),
        [1.0, 1.0],
        0.0,
        budget=150,
        n_worlds=2,
        delta=0.05,
    )
    assert found.expected == math.inf
    assert found.epsilon == 0.0  # one that does not help is not recommended
    assert found.explanation.count("150") == 1


def test_within_epsilon_the_limit_of_another_question_is_not_shown():
    found = advice(delta=0.2, epsilon=1.0)
    assert found.limit is None
    assert advice(delta=0.2, epsilon=0.0).limit <= advice(delta=0.2, epsilon=0.0).expected


def test_a_smaller_delta_takes_more_and_is_advised_while_it_is_cheap():
    found = advice(n_worlds=12)
    by_delta = {one.policy.delta: one for one in found.rehearsals if one.policy.name == found.policy.name}
    assert by_delta[0.001].times(by_delta[0.1]) > 1
    assert found.delta < 0.05
    assert by_delta[found.delta].times(by_delta[0.05]) <= 2


def test_a_batch_is_shared_among_the_workers():
    alone, four = advice(delta=0.05), advice(delta=0.05, workers=4)
    assert four.batch == math.ceil(alone.batch / 4)
    assert alone.batch > 1


def test_prices_decide_where_they_differ():
    found = advice(sp.Problem(PLANS, cost=[100.0, 1.0, 1.0, 1.0], noise=1, goal="largest"), delta=0.05)
    prices = {one.policy.name: one.price for one in found.rehearsals}
    assert prices[found.policy.name] == min(prices.values()) > found.expected


def test_an_unknown_noise_scale_needs_a_rough_one():
    problem = sp.Problem(PLANS, noise=None, goal="largest")
    with pytest.raises(ParameterError):
        advice(problem)
    assert advice(problem, noise=1.0, delta=0.05).expected >= 4 * problem.n_arms  # four replicates


def test_without_a_guess_it_says_that_it_cannot_know():
    with pytest.raises(ParameterError) as caught:
        sp.advise(sp.Problem(PLANS, noise=0.1, goal="largest"), n_worlds=4)
    assert caught.value.field == "guess"
    assert caught.value.field == "guess"


def test_work_by_hand_gets_no_tiny_delta():
    by_program, by_hand = advice(n_worlds=4), advice(n_worlds=4, budget=1000)
    assert by_program.delta < 0.05 == by_hand.delta
    assert advice(n_worlds=2, budget=None).delta == 0.05


def test_the_command_asks_for_the_budget_and_for_what_the_file_does_not_say(tmp_path, monkeypatch):
    file = tmp_path / "ways.csv"
    file.write_text("plan,bus,walk\ngoal,smallest,\nnoise,2,2\na,1,\nb,,1\n")
    words = ["advise", str(file), "--worlds", "2"]
    assert "--means" in str(CliRunner().invoke(app, words).exception)
    monkeypatch.setattr(importlib.import_module("surepick.cli.advise"), "is_asked", lambda: True)
    asked = CliRunner().invoke(app, words, input="5\n12,5\n300\n")
    assert asked.exit_code == 0, asked.output
    assert "3.75" in asked.output  # half of the range
    assert "--budget 300" in " ".join(asked.output.split())
    given = CliRunner().invoke(app, [*words, "--means", "5", "12.5", "--budget", "300", "--json"])
    assert json.loads(given.stdout)["next"] in " ".join(asked.output.split())
    wrong = CliRunner().invoke(app, [*words, "--means", "5", "5", "--budget", "300"])
    assert isinstance(wrong.exception, ParameterError)


@pytest.mark.parametrize(
    "wrong", [{"budget": 0}, {"workers": 0}, {"n_worlds": 0}, {"delta": 2.0}, {"noise": -1}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ParameterError):
        advice(**wrong)


def towns(**settings):
    """Spanning trees of five towns: 125, and nobody lists them."""
    family = sp.problems.tree_family([(a, b) for a in "ABCDE" for b in "ABCDE" if a < b])
    return family.oracle_problem(**{"noise": 0.3, **settings}), np.linspace(1.0, 3.0, 10)


def test_plans_that_cannot_be_listed_are_rehearsed_with_the_policy_that_is_proved_there():
    problem, guess = towns()
    found = sp.advise(problem, guess, 0.5, n_worlds=4, delta=0.05, epsilon=0.0)
    assert [one.policy for one in found.rehearsals] == [sp.BetGapE(0.05)]
    outcomes = [
        sp.simulate(problem, found.policy, sp.Gaussian(guess + shift, 0.3), seed=s)
        for s, shift in enumerate(np.random.default_rng(5).uniform(-0.5, 0.5, (4, 10)))
    ]
    assert found.low / 5 < np.median([one.n_measurements for one in outcomes]) < found.high * 5
    assert 10 <= found.limit < found.expected
    assert found.batch > 1


def test_what_is_no_problem_is_refused():
    with pytest.raises(ParameterError) as caught:
        sp.advise([[1, 0], [0, 1]], [1, 2])
    assert caught.value.field == "problem"


def test_the_command_as_json_is_the_function():
    result = CliRunner().invoke(app, ["advise", ROUTES, "--worlds", "3", "--delta", "0.1", "--json"])
    data = json.loads(result.output)
    loaded = sp.problems.load(ROUTES)
    found = sp.advise(loaded.problem, loaded.means, n_worlds=3, delta=0.1)
    assert data["expected"] == found.expected
    assert data["batch"] == found.batch
    assert data["delta"] == 0.1
    assert data["reasons"] == found.reasons
