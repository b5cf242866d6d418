"""Studies: the same instances for all methods, tables made of their rows, and which method enters where."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest

from surepick.errors import ParameterError
from surepick.experiments import STUDIES, Case, Family, Result, Row, Settings, Study, run_case
from surepick.experiments.cases import prepared
from surepick.experiments.figures import write_figure
from surepick.experiments.specs import instance_from_spec, policy_from_spec
from surepick.experiments.studies import ARENA_FAMILIES, ARENA_METHODS, KNAPSACK, TRANSPORT, with_distances
from surepick.experiments.study import (
    Place,
    _running_order,
    enters,
    refusal,
    result_of,
    run_study,
    study_cases,
)
from surepick.experiments.tables import as_json, family_table, notes
from surepick.policies import POLICIES

ARENA, BUDGET = STUDIES["arena"], STUDIES["budget"]
SMALL_KNAPSACK = Settings(runs=3, policies=("CombGapE-naive", "Uniform"), budget=2000)
NAMES = ("BetGapE", "CombGapE", "CombGapE-published", "RAGE", "NaiveGapElim", "EBTCI-heuristic", "KN", "LUCB")
SMALL_ARENA = Settings(families=("monotone", "zone-two"), policies=NAMES, runs=3)


def run_all(study: Study, settings: Settings) -> tuple[dict[Place, list[Case]], dict[Case, Row], Result]:
    cells = study_cases(study, settings)
    rows = {case: run_case(case) for cases in cells.values() for case in cases}
    return cells, rows, result_of(study, settings, rows, cells=cells)


@pytest.fixture(scope="module")
def table_1() -> Result:
    """A small Table 1."""
    return run_all(KNAPSACK, SMALL_KNAPSACK)[2]


@pytest.fixture(scope="module")
def arena() -> tuple[dict[Place, list[Case]], dict[Case, Row], Result]:
    return run_all(ARENA, SMALL_ARENA)


@pytest.fixture(scope="module")
def budgets() -> tuple[dict[Place, list[Case]], dict[Case, Row], Result]:
    settings = Settings(
        families=("knapsack-5", "ten-arms"), policies=("Pick", "CSAR", "OCBA"), runs=1, quick=True
    )
    return run_all(BUDGET, settings)


def family(name: str) -> Family:
    return next(family for family in ARENA_FAMILIES if family.name == name)


def entering(name: str, *named: str) -> set[str]:
    """The methods that enter a family of the arena, by default or when some are named."""
    settings = Settings(policies=named or None)
    return {method.name for method in ARENA_METHODS if enters(method, family(name), settings)}


# Cases


@pytest.mark.parametrize(
    ("study", "settings"),
    [
        (TRANSPORT, Settings(runs=4, seed=7)),
        (ARENA, SMALL_ARENA),
        (BUDGET, Settings(families=("knapsack-5",), runs=2, quick=True)),
    ],
)
def test_every_method_of_a_family_meets_the_same_instances_and_noise(
    study: Study, settings: Settings
) -> None:
    trials: dict[str, list[object]] = {}
    for (name, _, _), cases in study_cases(study, settings).items():
        seen = [({k: x for k, x in c.problem.items() if k != "plans"}, c.seed) for c in cases]
        assert trials.setdefault(name, seen) == seen
        assert len({seed for _, seed in seen}) == len(seen)


def test_the_paper_s_tables_have_the_paper_s_columns_and_instances() -> None:
    cells = study_cases(KNAPSACK, Settings())
    assert {name for name, _, _ in cells} == {"d5", "d7", "d9"}
    assert len(cells["d5", "GenTSExplore", ""]) == 30
    assert [case.problem["seed"] for case in cells["d5", "CombGapE", ""]] == list(range(30))
    assert [f.printed["CombGapE-naive"] for f in KNAPSACK.families] == [(2.6, 4.1), (3.0, 3.3), (2.2, 2.5)]
    assert TRANSPORT.families[0].printed == {
        "CombGapE-naive": (2.08, 1.55),
        "RAGE": (25.7, 16.6),
        "Peace": (29.7, 23.5),
    }


def test_slow_methods_run_last_and_quick_ones_take_turns() -> None:
    cells = study_cases(KNAPSACK, Settings(runs=2))
    seconds = {m.name: m.seconds for m in KNAPSACK.methods}
    expected = {case: seconds[method] for (_, method, _), cases in cells.items() for case in cases}
    order = _running_order(cells, expected)
    assert [case.policy["policy"] for case in order[-6:]] == ["GenTSExplore"] * 6
    quick = [case.problem["seed"] for case in order[:-6]]
    assert quick == sorted(quick)  # the first instance of every family before the second of any


def test_budgets_are_multiples_of_t_star_on_instances_that_are_neither_trivial_nor_endless(
    budgets: tuple[dict[Place, list[Case]], dict[Case, Row], Result],
) -> None:
    cells, _, _ = budgets
    for (_, _, label), cases in cells.items():
        for case in cases:
            limit = prepared(case.problem).limit
            multiple = float(label.split()[0])
            assert case.budget == max(math.ceil(multiple * limit.time.value), limit.once.n + 1)
            assert 4 * limit.once.n <= limit.time.value < 150_000
    assert ("knapsack-5", "CSAR", "1 T*") not in cells  # its plans are no sets of arms
    assert ("ten-arms", "OCBA", "1 T*") in cells


def test_methods_that_measure_one_by_one_are_cut_off_and_phases_are_not(
    arena: tuple[dict[Place, list[Case]], dict[Case, Row], Result],
) -> None:
    case = arena[0]["monotone", "CombGapE", ""][0]
    assert case.budget == math.ceil(60 * prepared(case.problem).limit.at(0.05))
    assert arena[0]["monotone", "BetGapE", ""][0].budget == 10**15
    assert arena[0]["zone-two", "BetGapE", ""][0].policy["epsilon"] == 0.3
    assert arena[0]["zone-two", "KN", ""][0].policy["zone"] == 0.3


# Names


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (Settings(families=("knapsak",)), "families"),
        (Settings(policies=("BetGapX",)), "policy"),
        (Settings(policies=("CombGapE:radius=wide",)), "policy"),
        (Settings(policies=("RAGE:size=3",)), "policy"),
        (Settings(policies=("KN",), families=("knapsack",)), "policy"),
        (Settings(policies=("CLUCB:epsilon=0.1",), families=("soare",)), "policy"),
    ],
)
def test_names_that_lead_nowhere_are_refused(settings: Settings, field: str) -> None:
    with pytest.raises(ParameterError) as caught:
        study_cases(ARENA, settings)
    assert caught.value.field == field


def test_hours_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "hours.csv"
    path.write_text("from,Erie,Utica\nBuffalo,1.5,1.6\nAlbany,1.7,1.4\n")
    problem = with_distances(TRANSPORT, str(path)).families[0].problem
    truth = instance_from_spec({**problem, "n_draws": 50, "seed": 2})
    assert truth.means is not None
    assert truth.means.tolist() == [1.5, 1.6, 1.7, 1.4]
    for study, distances in ((TRANSPORT, "motorway"), (KNAPSACK, "freeway")):
        with pytest.raises(ParameterError) as caught:
            with_distances(study, distances)
        assert caught.value.field == "distances"


# Who enters where


def test_every_method_is_a_policy_with_a_name_of_its_own_and_starts_where_it_enters() -> None:
    for study in STUDIES.values():
        assert {method.policy["policy"] for method in study.methods} <= set(POLICIES)
        assert len({method.name.lower() for method in study.methods}) == len(study.methods)
    for found in ARENA_FAMILIES:
        if found.name == "transport":
            continue  # its plans are real amounts, as a knapsack's are
        problem = {**found.problem, "seed": found.first_seed} if found.drawn else found.problem
        instance = instance_from_spec(problem)
        for method in ARENA_METHODS:
            if enters(method, found, Settings()):
                policy_from_spec(method.policy, instance).start(instance.problem)


def test_methods_enter_the_families_whose_plans_they_take() -> None:
    assert {"BetGapE", "RAGE-authors", "LinGapE", "XYAdaptive", "LinGame", "FWS-heuristic"} <= entering(
        "soare"
    )
    assert not {"CombGapE", "RAGE", "KN", "GenLUCB"} & entering("soare")
    assert entering("trees") == {"BetGapE", "PFWS", "PFWS-authors", "CombGame", "CombGame-authors"}
    assert entering("three-played") == {"BetGapE", "Uniform", "PFWS", "CombGame"}
    assert "ExactExpGap" in entering("three-of-ten")
    assert "TSExplore" not in entering("three-of-ten")
    assert "TSExplore" in entering("three-of-ten", "TSExplore")
    assert "KN" not in entering("knapsack")


def test_a_guest_enters_where_it_can_start_and_the_notes_name_where_not() -> None:
    text = "CombGapE:radius=kaufmann-koolen"
    settings = Settings(families=("near-tie", "soare", "zone-two"), policies=("BetGapE", text), runs=1)
    cells, _, result = run_all(ARENA, settings)
    assert {name for name, method, _ in cells if method == text} == {"near-tie", "zone-two"}
    case = cells["zone-two", text, ""][0]
    assert (case.policy["radius"], case.policy["epsilon"]) == ("kaufmann-koolen", 0.3)
    assert case.problem == cells["zone-two", "BetGapE", ""][0].problem
    guest = next(method for method in result.methods if method.guest)
    why = refusal(guest, family("soare"))
    assert why is not None
    assert any(why in note for note in notes(result))


# Tables


def test_the_reference_is_one_everywhere_and_the_paper_s_values_are_kept(table_1: Result) -> None:
    for name in ("d5", "d7", "d9"):
        relative = table_1.cells[name, "CombGapE", ""].relative
        assert relative is not None
        assert (relative.mean.number, relative.deviation, relative.largest.number) == (1.0, 0.0, 1.0)
    table = {(cell["family"], cell["method"]): cell for cell in as_json(table_1)["table"]}
    assert table["d5", "CombGapE-naive"]["paper"] == (2.6, 4.1)
    assert table["d5", "CombGapE-naive"]["relative"]["high"]["number"] >= 0
    json.dumps(as_json(table_1), allow_nan=False)


def test_a_method_that_errs_beyond_chance_is_named(
    arena: tuple[dict[Place, list[Case]], dict[Case, Row], Result],
) -> None:
    cells, rows, before = arena
    bad = {
        case: dataclasses.replace(row, correct=False) if case.policy.get("radius") == "published" else row
        for case, row in rows.items()
    }
    after = result_of(ARENA, SMALL_ARENA, bad, cells=cells)
    more = [note for note in notes(after) if note not in notes(before)]
    assert len(more) == 2  # one for each family
    assert all(note.startswith("CombGapE, published radius") for note in more)


def test_wrong_leaders_and_losses_are_counted_from_the_rows(
    budgets: tuple[dict[Place, list[Case]], dict[Case, Row], Result],
) -> None:
    cells, rows, result = budgets
    for place, cell in result.cells.items():
        some = [rows[case] for case in cells[place]]
        assert all(row.n_measurements <= row.case.budget for row in some)
        assert cell.wrong_leads == sum(row.lead != row.best for row in some)
        losses = [row.loss / row.second_gap for row in some]  # type: ignore[operator]
        assert cell.loss == pytest.approx(sum(losses) / len(losses))
        assert all(loss == 0 or loss > 0.999 for loss in losses)  # a wrong plan is the second best or worse
    header, lines = family_table(result, result.families[0])
    assert len(header) == 1 + 2 * 5
    uniform = next(line for line in lines if line[0] == "Uniform")
    assert set(uniform[6:]) <= {"1.00", "-"}


def test_figures_are_svg(
    table_1: Result, budgets: tuple[dict[Place, list[Case]], dict[Case, Row], Result], tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    for result, name in ((table_1, "knapsack.svg"), (budgets[2], "budget.svg")):
        (path,) = write_figure(result, tmp_path)
        assert path.name == name
        assert path.read_bytes().startswith(b"<?xml")


# Runs


def test_an_interrupted_study_has_a_result_and_resumes(tmp_path: Path) -> None:
    settings = Settings(families=("zone-two",), policies=("CombGapE", "CombGapE-published"), runs=4)

    def interrupt(state: object) -> None:
        if getattr(state, "done") >= 3:  # noqa: B009
            raise KeyboardInterrupt

    announced: list[tuple[int, int, float]] = []
    path = tmp_path / "rows.jsonl"
    seen = run_study(ARENA, settings, path, jobs=1, progress=interrupt)
    assert 0 < seen.n_missing <= 5
    assert sum(cell.runs for cell in seen.cells.values()) == 8 - seen.n_missing
    whole = run_study(ARENA, settings, path, jobs=1, announce=lambda *it: announced.append(it))
    assert whole.n_missing == 0
    assert announced[0][:2] == (8, 8 - seen.n_missing)
    assert len(notes(seen)) == len(notes(whole)) + 1


@pytest.mark.parametrize(
    ("name", "first"), [("oracle", "trees-5"), ("polytope", "3x3"), ("radii", "three-.05")]
)
def test_our_own_studies_run(name: str, first: str) -> None:
    _, rows, result = run_all(STUDIES[name], Settings(runs=2, families=(first,)))
    assert len(rows) == 2 * len({method for found, method, _ in result.cells if found == first})
    assert all(row.correct is not None for row in rows.values())
