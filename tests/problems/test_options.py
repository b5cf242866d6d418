import pytest

from surepick import problems
from surepick.problems import family
from surepick.problems.candidates import drawn_plans

EDGES = [("A", "B", 2), ("B", "D", 2), ("A", "C", 1), ("C", "D", 4)]
BUILDERS = {
    "knapsack": lambda **options: problems.knapsack([4, 5], [4.0, 5.0], 10, **options),
    "matchings": lambda **options: problems.matchings([[2, 3], [2, 2]], **{"goal": "smallest", **options}),
    "paths": lambda **options: problems.paths(EDGES, "A", "D", **options),
    "portfolio": lambda **options: problems.portfolio([5, 4, 3], upper=0.5, **options),
    "production": lambda **options: problems.production([[1, 2], [3, 1]], [8, 9], [3.0, 4.0], **options),
    "top_k": lambda **options: problems.top_k(
        ["a", "b", "c"], 2, [1.0, 1.5, 2.0], **{"goal": "largest", **options}
    ),
    "transport": lambda **options: problems.transport([3, 2], [4, 1], [[2, 3], [2, 2]], **options),
    "trees": lambda **options: problems.trees([("A", "B", 1), ("B", "C", 2), ("A", "C", 2)], **options),
}
LISTING = ("matchings", "paths", "trees")


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_takes_the_options_of_a_search(name, monkeypatch):
    seen, boxes = [], []
    monkeypatch.setattr(family, "drawn_plans", lambda *given: boxes.append(given) or drawn_plans(*given))
    options = {"spread": 3.0, "n_draws": 40, "seed": 7, "noise": None, "cost": 2.0, "low": -9, "high": 9}
    problem = BUILDERS[name](**options, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (40, 40)
    assert problem.candidates.n_draws == 40
    ((_, (low, high), *_, seed, _),) = boxes
    assert seed == 7
    assert (high - low == 6).all() or (name in ("paths", "trees") and low.min() == 0)  # lengths
    assert (problem.noise_scale == 9).all()
    assert (problem.costs == 2).all()


@pytest.mark.parametrize("name", BUILDERS)
def test_a_wrong_option_is_refused_with_the_right_one(name):
    with pytest.raises(TypeError, match=rf"{name}\(\) got .* 'n_drawz'; did you mean 'n_draws'\?"):
        BUILDERS[name](n_drawz=3)
    if name not in LISTING:
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'n_best'"):
            BUILDERS[name](n_best=2)
