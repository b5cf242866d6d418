"""Studies: the same instances for all methods, tables made of their rows, and which method enters where."""

import dataclasses
import json
import math

import pytest

from common import refuses
from surepick.errors import ParameterError
from surepick.experiments import STUDIES, Settings, run_case
from surepick.experiments.instances import instance_from_spec
from surepick.experiments.study import chosen, enters, refusal, result_of, running_order, study_cases
from surepick.experiments.tables import as_json, family_table, notes, write_outputs
from surepick.policies import POLICIES

ARENA, BUDGET, KNAPSACK, TRANSPORT = (STUDIES[name] for name in ("arena", "budget", "knapsack", "transport"))
PUBLISHED = "CombGapE:radius=published"
NAIVE = f"{PUBLISHED}:arm_rule=naive"
SMALL_KNAPSACK = Settings(runs=3, policies=("BetGapE", "Uniform"))
NAMES = ("BetGapE", "CombGapE", PUBLISHED, "RAGE", "NaiveGapElim", "EBTCI:radius=heuristic", "KN", "LUCB")
SMALL_ARENA = Settings(families=("monotone", "zone-two"), policies=NAMES, runs=3)


def run_all(study, settings):
    cells = study_cases(study, settings)
    rows = {case: run_case(case) for cases in cells.values() for case in cases}
    return cells, rows, result_of(study, settings, rows, cells)


@pytest.fixture(scope="module")
def table_1():
    """A small Table 1."""
    return run_all(KNAPSACK, SMALL_KNAPSACK)[2]


@pytest.fixture(scope="module")
def arena():
    return run_all(ARENA, SMALL_ARENA)


@pytest.fixture(scope="module")
def budgets():
    policies, families = ("Pick", "CSAR", "OCBA", "Uniform:delta=1e-9"), ("knapsack-5", "ten-arms")
    return run_all(BUDGET, Settings(families=families, policies=policies, runs=1, quick=True))


def family(name):
    return next(family for family in ARENA.families if family.name == name)


def entering(name, *named):
    """The methods that enter a family of the arena, by default or when some are named."""
    settings = Settings(policies=named or None)
    return {method.name for method in ARENA.methods if enters(method, family(name), settings)}


@pytest.mark.parametrize(
    ("study", "settings"),
    [
        (KNAPSACK, Settings(runs=4, seed=7)),
        (ARENA, SMALL_ARENA),
        (BUDGET, Settings(families=("knapsack-5",), runs=2, quick=True)),
    ],
)
def test_every_method_of_a_family_meets_the_same_instances_and_noise(study, settings):
    trials = {}
    for (name, _, _), cases in study_cases(study, settings).items():
        seen = [(c.problem.get("seed"), c.seed) for c in cases]
        assert trials.setdefault(name, seen) == seen
        assert len({seed for _, seed in seen}) == len(seen)


def test_the_paper_s_tables_have_the_paper_s_values_and_instances():
    cells = study_cases(KNAPSACK, Settings())
    assert {name for name, _, _ in cells} == {"d5", "d7", "d9"}
    assert len(cells["d5", "GenTSExplore", ""]) == 30
    assert [case.problem["seed"] for case in cells["d5", PUBLISHED, ""]] == list(range(30))
    assert [f.printed[NAIVE] for f in KNAPSACK.families] == [(2.6, 4.1), (3.0, 3.3), (2.2, 2.5)]
    printed = {NAIVE: (2.08, 1.55), "RAGE": (25.7, 16.6), "Peace:max_gap=largest gap": (29.7, 23.5)}
    assert TRANSPORT.families[0].printed == printed
    assert [family.name for family in chosen(TRANSPORT, Settings()).families] == ["d81"]
    assert not any(name == "GenTSExplore" for _, name, _ in study_cases(KNAPSACK, Settings(quick=True)))


def test_slow_methods_run_last_and_quick_ones_take_turns():
    settings = Settings(runs=2)
    cells = study_cases(KNAPSACK, settings)
    order = list(running_order(KNAPSACK, cells))
    assert [case.policy for case in order[-6:]] == ["GenTSExplore"] * 6
    quick = [case.problem["seed"] for case in order[:-6]]
    assert quick == sorted(quick)  # the first instance of every family before the second of any


def test_budgets_are_multiples_of_t_star_on_instances_that_are_neither_trivial_nor_endless(budgets):
    cells, _, _ = budgets
    for (_, _, label), cases in cells.items():
        for case in cases:
            limit = instance_from_spec(case.problem).limit
            multiple = float(label.split()[0])
            assert case.budget == max(math.ceil(multiple * limit.time.value), limit.once.n + 1)
            assert 4 * limit.once.n <= limit.time.value < 150_000
    assert ("knapsack-5", "CSAR", "1 T*") not in cells  # its plans are no sets of arms
    assert ("ten-arms", "OCBA", "1 T*") in cells


def test_methods_that_measure_one_by_one_are_cut_off_and_phases_are_not(arena):
    case = arena[0]["monotone", "CombGapE", ""][0]
    assert case.budget == math.ceil(60 * instance_from_spec(case.problem).limit.at(0.05))
    assert arena[0]["monotone", "BetGapE", ""][0].budget == 10**15
    assert arena[0]["zone-two", "BetGapE", ""][0].epsilon == 0.3
    assert arena[0]["zone-two", "KN", ""][0].policy == "KN:zone=0.3"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (Settings(families=("knapsak",)), "families"),
        (Settings(policies=("BetGapX",)), "policy"),
        (Settings(policies=("CombGapE:radius=wide",)), "radius"),
        (Settings(policies=("RAGE:size=3",)), "policy"),
        (Settings(policies=("KN",), families=("knapsack",)), "policy"),
        (Settings(policies=("CLUCB:epsilon=0.1",), families=("soare",)), "policy"),
    ],
)
def test_names_that_lead_nowhere_are_refused(settings, field):
    with refuses(field, ParameterError):
        study_cases(ARENA, settings)


def test_every_method_is_a_policy_with_a_name_of_its_own_that_enters_somewhere():
    for study in STUDIES.values():
        assert {method.text.partition(":")[0] for method in study.methods} <= set(POLICIES)
        assert len({method.name.lower() for method in study.methods}) == len(study.methods)
    everywhere = set().union(*(entering(family.name, "all") for family in ARENA.families))
    assert everywhere == {method.name for method in ARENA.methods}


def test_methods_enter_the_families_whose_plans_they_take():
    vectors = {"BetGapE", "RAGE:variant=authors", "XYAdaptive", "LinGame", "FWS:radius=heuristic"}
    assert vectors <= entering("soare")
    assert not {"CombGapE", "RAGE", "KN", "GenLUCB"} & entering("soare")
    assert entering("trees") == {"BetGapE", "PFWS", "CombGame"}
    assert entering("three-played") == {"BetGapE", "PFWS", "CombGame"}
    assert "ExactExpGap" in entering("three-of-ten")
    assert not {"LUCB", "KN", "TSExplore", "ExactExpGap", "NaiveGapElim"} & entering("knapsack", "all")


def test_a_guest_enters_where_it_can_start_and_the_notes_name_where_not():
    text = "CombGapE:radius=kaufmann-koolen"
    settings = Settings(families=("near-tie", "soare", "zone-two"), policies=("BetGapE", text), runs=1)
    cells, _, result = run_all(ARENA, settings)
    assert {name for name, method, _ in cells if method == text} == {"near-tie", "zone-two"}
    case = cells["zone-two", text, ""][0]
    assert (case.policy, case.epsilon) == (text, 0.3)
    assert case.problem == cells["zone-two", "BetGapE", ""][0].problem
    guest = next(method for method in result.study.methods if method.name == text)
    why = refusal(guest, family("soare"))
    assert any(why in note for note in notes(result))


def test_the_reference_is_one_everywhere_and_the_paper_s_values_are_kept(table_1, tmp_path):
    for name in ("d5", "d7", "d9"):
        relative = table_1.cells[name, PUBLISHED, ""].relative
        assert (relative.mean.number, relative.deviation, relative.largest.number) == (1.0, 0.0, 1.0)
    table = {(cell["family"], cell["method"]): cell for cell in as_json(table_1)["table"]}
    assert table["d5", "BetGapE"]["relative"]["high"]["number"] > 0
    json.dumps(as_json(table_1), allow_nan=False)
    pytest.importorskip("matplotlib")
    assert write_outputs(table_1, tmp_path)[-1].read_bytes().startswith(b"<?xml")


def test_a_method_that_errs_beyond_chance_is_named(arena):
    cells, rows, before = arena
    bad = {
        case: dataclasses.replace(row, correct=False) if case.policy == PUBLISHED else row
        for case, row in rows.items()
    }
    after = result_of(ARENA, SMALL_ARENA, bad, cells)
    more = [note for note in notes(after) if note not in notes(before)]
    assert len(more) == 2  # one for each family
    assert all(note.startswith(PUBLISHED) for note in more)


def test_wrong_leaders_and_losses_are_counted_from_the_rows(budgets):
    cells, rows, result = budgets
    for place, cell in result.cells.items():
        some = [rows[case] for case in cells[place]]
        assert all(row.n_measured <= row.case.budget for row in some)
        assert cell.wrong_leads == sum(row.loss != 0 for row in some)
        losses = [row.loss / row.second_gap for row in some]
        assert cell.loss == pytest.approx(sum(losses) / len(losses))
        assert all(loss == 0 or loss > 0.999 for loss in losses)  # a wrong plan is the second best or worse
    header, _ = family_table(result, result.study.families[0])
    assert len(header) == 1 + 2 * 5


@pytest.mark.parametrize(
    ("name", "first"), [("oracle", "trees-5"), ("polytope", "3x3"), ("radii", "three-.05")]
)
def test_our_own_studies_run(name, first):
    cells, rows, result = run_all(STUDIES[name], Settings(runs=2, families=(first,), quick=True))
    assert set(result.cells) == set(cells)
    assert all(row.correct is not None for row in rows.values())
    assert all(cell.wrong == 0 for cell in result.cells.values())
