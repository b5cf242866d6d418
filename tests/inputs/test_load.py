import json
import re
import tomllib
from pathlib import Path

import pytest

import surepick as sp
from common import refuses
from surepick import problems
from surepick.errors import FileError, ProblemError, SurepickError
from surepick.inputs import keys
from surepick.inputs.load import read_problem
from surepick.policies import policy_for
from surepick.simulation import Gaussian
from surepick.tables import read_table

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "reference" / "problem-files.md").read_text(encoding="utf-8")
FENCE = re.compile(r"```(toml|json)\n(.*?)```", re.DOTALL)
ATTACHMENT = re.compile(r"`(\w+\.csv)`\n\n```csv\n(.*?)```", re.DOTALL)

BARE = 'kind = "table"\ngoal = "largest"\n'
JSON = '{"kind": "table", "goal": "largest", '
TABLE = 'kind = "table"\ngoal = "largest"\nplans = [[1, 0], [0, 1]]\narms = ["road", "rail"]\n'
KNAPSACK = 'kind = "knapsack"\nweights = [4, 5]\nguess = [4, 5]\ncapacity = 10\n'
PATHS = 'kind = "paths"\nedges = [["A", "B", 4], ["B", "D", 5], ["A", "D", 3]]\nsource = "A"\ntarget = "D"\n'
TRANSPORT = 'kind = "transport"\nsupply = [3, 2]\ndemand = [4, 1]\nguess = [[2, 3], [2, 2]]\nn_draws = 50\n'


@pytest.fixture
def load(tmp_path):
    """Load a problem file with this text."""

    def load_text(text, name="case.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read_problem(tmp_path / name)

    return load_text


@pytest.mark.parametrize(("language", "text"), FENCE.findall(GUIDE))
def test_every_example_of_the_guide_loads(load, tmp_path, language, text):
    for name, rows in ATTACHMENT.findall(GUIDE):
        (tmp_path / name).write_text(rows, encoding="utf-8")
    loaded = load(text, f"case.{language}")
    assert loaded.means.shape == (loaded.problem.n_arms,)
    assert loaded.problem.knows_noise or loaded.noise_scale is not None  # so that it can be simulated
    document, schema = (tomllib if language == "toml" else json).loads(text), keys.schema()["oneOf"]
    (fits,) = [one for one in schema if one["properties"]["kind"]["const"] == document["kind"]]
    assert set(fits["required"]) <= document.keys() <= fits["properties"].keys()


def test_the_guide_has_examples_of_every_kind_in_both_languages():
    examples = FENCE.findall(GUIDE)
    assert {language for language, _ in examples} == {"toml", "json"}
    assert all(any(f'"{kind}"' in text for _, text in examples) for kind in keys.KEYS)


# Keys that several kinds have, listed once in the guide.
SHARED = {"goal": keys.GOAL, "guess": keys.GUESS, **keys.DRAWN, "n_best": keys.N_BEST}


@pytest.mark.parametrize(
    ("title", "table", "shared"),
    [
        ("Keys of every kind", keys.COMMON, SHARED),
        ("Keys of several kinds", SHARED, {}),
        *((f'`kind = "{kind}"`', table, SHARED) for kind, table in keys.KEYS.items()),
    ],
)
def test_the_guide_has_every_table_of_keys(title, table, shared):
    own = {name: key for name, key in table.items() if shared.get(name) != key}
    lines = ["| key | says | without it |", "|---|---|---|"]
    for key in dict.fromkeys(own.values()):
        names = ", ".join(f"`{name}`" for name in own if own[name] == key)
        lines.append(f"| {names} | {key.says} | {key.absent} |")
    if others := ", ".join(f"`{name}`" for name in table if name not in own):
        lines += ["", f"And {others}."]
    assert "\n".join(lines) in GUIDE.split(f"## {title}")[1].split("\n## ")[0]


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.toml")), ids=lambda path: path.name)
def test_every_example_file_loads_with_its_truth_and_title(path):
    loaded = read_problem(path)
    assert loaded.means is not None
    assert loaded.title != path.stem
    assert loaded.kind in keys.KEYS


def test_a_table_carries_all_that_the_file_says(load):
    loaded = load(
        TABLE.replace("largest", "smallest")
        + 'title = "T"\nnoise = [1, 2.5]\ncost = 3\nplan_names = ["a", "b"]'
    )
    problem = loaded.problem
    assert (loaded.kind, loaded.title, loaded.means) == ("table", "T", None)
    assert (problem.arm_names, problem.plan_names) == (("road", "rail"), ("a", "b"))
    assert problem.minimize
    assert problem.noise_scale.tolist() == [1, 2.5]
    assert problem.costs.tolist() == [3, 3]


def test_a_file_is_the_problem_that_its_builder_makes_of_its_values(load):
    packings = load(KNAPSACK + "spread = 2.0\nn_draws = 30\nseed = 4\nitem_names = ['tea', 'coffee']").problem
    expected = problems.knapsack([4, 5], [4, 5], 10, spread=2.0, n_draws=30, seed=4)
    assert (packings.plans == expected.plans).all()
    assert packings.arm_names == ("tea", "coffee")
    freight = load(TRANSPORT + 'seed = 2\nsupplier_names = ["X", "Y"]\ncost = 2.0').problem
    expected = problems.transport([3, 2], [4, 1], [[2, 3], [2, 2]], n_draws=50, seed=2)
    assert (freight.plans == expected.plans).all()
    assert (freight.minimize, freight.arm_names[1]) == (True, "X -> 1")
    assert freight.costs.tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("text", "means", "expected"),
    [
        *((TABLE, means, [3, 1]) for means in ("[3, 1]", "{ rail = 1, road = 3.0 }", '"means.csv"')),
        *((TRANSPORT, m, [1, 2, 3, 4]) for m in ("[[1, 2], [3, 4]]", "[1, 2, 3, 4]", '"hours.csv"')),
        (TRANSPORT, '"guess"', [2, 3, 2, 2]),
        (KNAPSACK, '"guess"', [4, 5]),
    ],
)
def test_means_come_in_every_form(load, tmp_path, text, means, expected):
    (tmp_path / "means.csv").write_text("arm,mean\nrail,1\nroad,3\n")
    (tmp_path / "hours.csv").write_text("from,1,0\n0,2,1\n1,4,3\n")
    assert load(text + f"[truth]\nmeans = {means}").means.tolist() == expected


def test_a_file_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "case.toml").write_bytes('title = "Köln"'.encode("latin-1"))
    with pytest.raises(FileError):
        read_problem(tmp_path / "case.toml")


def test_an_error_in_an_attachment_names_both_files_and_the_cell(load, tmp_path):
    (tmp_path / "plans.csv").write_text("plan,x,y\na,1,0\nb,0,no\n")
    with pytest.raises(FileError) as caught:
        load(BARE + 'plans = "plans.csv"')
    assert all(name in str(caught.value) for name in ("case.toml", "plans.csv", "'b'", "'y'"))


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
@pytest.mark.parametrize(
    "text", [TABLE + '[truth]\nmeans = "/dev/zero"', 'kind = "table"\ngoal = "largest"\nplans = "/dev/zero"']
)
def test_what_has_no_end_is_refused_before_it_is_read(load, text):
    with pytest.raises(SurepickError):
        load(text)


def test_a_file_too_large_to_read_is_refused_by_its_size(tmp_path):
    with (tmp_path / "large.csv").open("wb") as stream:
        stream.truncate(2**28 + 1)  # of which the disk holds nothing
    with pytest.raises(ProblemError):
        read_table(tmp_path / "large.csv")


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (None, "kind = "),
        (None, "[1, 2]"),
        (None, JSON + '"kind": "table", "goal": "largest"}'),
        ("capacity", TABLE + "capacity = 3"),
        ("capacity", KNAPSACK.replace("10", "10.5")),
        ("cost", TABLE + 'cost = [1, "x"]'),
        ("cost", JSON + '"plans": [[1, 0], [0, 1]], "cost": null}'),
        ("cost", TABLE + "[cost]\nraod = 1\nrail = 2"),
        ("edges", 'kind = "paths"\nedges = [["A", "B"], ["C", "D"]]\nsource = "A"\ntarget = "C"\n'),
        ("edges", 'kind = "trees"\nedges = [["A", "B"], ["C", "D"]]\n'),
        ("goal", TABLE.replace("largest", "yes")),
        ("guess", TRANSPORT.replace("guess", "#")),
        ("guess", TRANSPORT.replace("[[2, 3], [2, 2]]", '"hours.csv"')),
        ("guess", 'kind = "matchings"\ngoal = "smallest"\nguess = [[1, nan], [1, nan]]\n'),
        ("kind", ""),
        ("prices", 'kind = "assign"\ngoal = "largest"\nbudget = 4\nprices = {mail = 3}\n'),
        ("kind", 'kind = "tabel"'),
        ("measure", TABLE + 'measure = "whole"\n'),
        ("n_draws", KNAPSACK + "n_draws = true"),
        ("n_draws", KNAPSACK + "n_draws = 500_000_000"),
        ("n_best", PATHS + "n_best = 500_000_000"),
        ("nois", TABLE + "nois = 1"),
        ("noise", TABLE + 'noise = "big"'),
        ("plan_names", TABLE + "plan_names = [1, 2]"),
        ("plans", 'kind = "table"\ngoal = "largest"'),
        ("plans", BARE + "plans = [[1, 0], [1]]"),
        ("plans", BARE + "plans = 7"),
        ("plans", BARE + 'plans = "absent.csv"'),
        ("plans", JSON + '"plans": [[1, NaN], [0, 1]]}'),
        ("program", 'kind = "production"\nprogram = "mix.txt"\n'),
        ("title", TABLE + "title = 5"),
        ("truth", TABLE + "truth = 3"),
        ("truth.mean", TABLE + "[truth]\nmean = [1]"),
        ("truth.means", TABLE + "[truth]"),
        ("truth.means", TABLE + "[truth]\nmeans = 4"),
        ("truth.means", TABLE + '[truth]\nmeans = "guess"'),
        ("truth.means", TABLE + "[truth]\nmeans = [1, 2, 3]\n"),
        ("truth.means", TABLE + "[truth]\nmeans = { road = 1 }"),
        ("truth.means", TABLE + '[truth]\nmeans = { road = 1, rail = "x" }'),
        ("truth.means", TABLE + "[truth]\nmeans = { road = 1, rial = 2 }"),
        ("truth.noises", TABLE + "[truth]\nmeans = [1, 2]\nnoises = 1\n"),
        ("weight", 'kind = "knapsack"\nweight = [1]'),
        ("weights", KNAPSACK.replace("[4, 5]", "4", 1)),
    ],
)
def test_an_error_in_a_file_names_the_key(load, field, text):
    with refuses(field, FileError):
        load(text, "case.json" if text.startswith(("{", "[")) else "case.toml")


def test_a_file_says_which_means_are_known(load):
    first, second, *_ = load(PATHS).problem.arm_names
    problem = load(PATHS + f'[known]\n"{first}" = 1.5\n"{second}" = [0, 2]\n').problem
    assert problem.mean_bounds[:2].tolist() == [[1.5, 1.5], [0, 2]]
    assert not problem.relevant[0]
    with refuses("known", FileError):
        load(PATHS + "known = 3\n")


def test_a_transport_may_have_known_costs_and_spreads_in_percent_or_as_a_table(load):
    head = 'kind = "transport"\nsupply = [40, 25]\ndemand = [30, 20]\nguess = [[10, 20], [30, 40]]\n'
    problem = load(head + 'noise = 2\nspread = "10%"\nknown = {"0 -> 0" = 10, "1 -> 1" = [35, 45]}\n').problem
    assert problem.spread.tolist() == [1, 2, 3, 4]
    assert problem.relevant.tolist() == [False, True, True, True]
    assert problem.best_plan([10.0, 20.0, 30.0, 40.0]).reshape(2, 2).sum() == 50  # 15 of the supply stay
    assert load(head + "spread = [[1, 2], [2, 1]]\n").problem.spread.tolist() == [1, 2, 2, 1]


LIMITED = """
kind = "table"
goal = "smallest"
epsilon = 2
plans = {cable = "price cable", radio = "price radio"}
arms = ["price cable", "price radio", "ms cable", "ms radio"]
noise = [2, 2, 20, 20]
[limit]
at_most = 200
tolerance = 20
"""


def test_a_file_says_which_limit_to_keep(tmp_path):
    file = tmp_path / "links.toml"
    file.write_text(LIMITED + 'load = {radio = "2*ms radio", cable = "ms cable"}')
    loaded = read_problem(file)
    policy = policy_for(loaded.policy(None), delta=0.1, epsilon=2.0)
    assert (policy.name, policy.delta, policy.at_most, policy.tolerance) == ("Limited", 0.1, 200, 20)
    assert policy.loads == ((0, 0, 1, 0), (0, 0, 0, 2))
    assert (policy_for(loaded.policy("Limited")).loads, loaded.policy("Tied")) == (policy.loads, "Tied")
    for wrong in ("", "load = 3", 'load = {radio = "ms radio"}', 'load = {radio = "x", cable = "ms cable"}'):
        file.write_text(LIMITED + wrong)
        with refuses("limit.load", FileError):
            read_problem(file)


ROUTES = """
kind = "paths"
edges = [["A", "B"], ["B", "C"], ["A", "D"], ["D", "C"], ["B", "D"]]
source = "A"
target = "C"
"""


def driven(load, more=""):
    """The problem of driving the routes, measured as the file says."""
    return load(ROUTES + more).problem


@pytest.mark.parametrize("kind", ["plan arms", "plans"])
def test_paths_are_driven_whole(load, kind):
    plain = driven(load)
    problem = driven(load, f'measure = "{kind}"\nnoise = 0.5\ncost = 3')
    assert problem.probe_names == plain.plan_names
    assert problem.costs.tolist() == [3.0] * problem.n_plans
    assert set(problem.noise_scale.tolist()) == {0.5}
    means = [1.0, 2.0, 2.5, 1.5, 0.2]
    outcome = sp.simulate(problem, Gaussian(means), policy=sp.BetGapE(), seed=1)
    assert outcome.plan == problem.best(means)


def test_unknown_noise_and_the_default(load):
    problem = driven(load, 'measure = "plan arms"\nnoise = "unknown"')
    assert problem.probes.unknown
    assert driven(load, 'measure = "arms"\nnoise = [1, 2, 3, 4, 5]').probes is None


def test_a_probe_that_reads_no_road_of_the_network_is_refused(load):
    with refuses("measure"):
        driven(load, '[measure.loop]\nreads = ["A-X"]')


def test_plans_that_are_in_no_list_are_played_and_other_probes_say_what_to_do(load):
    played = driven(load, 'measure = "plan arms"\nlist_plans = false\nnoise = 2.0\ncost = 3')
    assert played.plays
    assert (played.noise_scale == 2.0).all()
    assert (played.costs == 3.0).all()
    with refuses("measure"):
        driven(load, 'measure = "plans"\nlist_plans = false')


def test_limits_of_every_reading_take_the_place_of_the_noise(load):
    each_leg = driven(load, 'measure = "plan arms"\nlow = 0\nhigh = 5')
    assert each_leg.bounds.tolist() == [[0.0, 5.0]] * each_leg.n_readings
    played = driven(load, 'measure = "plan arms"\nlist_plans = false\nlow = 0\nhigh = 5')
    assert played.bounds.tolist() == [[0.0, 5.0]] * played.n_arms
    totals = driven(load, 'measure = "plans"\nlow = 0\nhigh = 9')
    assert totals.bounds.tolist() == [[0.0, 9.0]] * totals.n_plans
    means = [1.0, 2.0, 2.5, 1.5, 0.2]
    for problem in (each_leg, totals):
        assert sp.simulate(problem, means, seed=1).plan == problem.best(means)
    with refuses("low"):  # of the total of a plan no number of an arm says anything
        driven(load, 'measure = "plans"\nlow = [0, 0, 0, 0, 1]\nhigh = 9')
    with refuses("plausible"):
        driven(load, 'measure = "plans"\nlow = 0\nhigh = 9\nplausible = [0, 5]')
