"""The arena: the same instances for all, tables that say what was seen, and who may enter where."""

import dataclasses

import pytest
from typer.testing import CliRunner

from surepick.cli import app
from surepick.errors import ParameterError
from surepick.experiments import arena
from surepick.experiments.arena import (
    ArenaSettings,
    arena_cases,
    chosen_families,
    entrants_for,
    summarize_arena,
)
from surepick.experiments.arena_entrants import ARENA_FAMILIES, ENTRANTS
from surepick.experiments.arena_tables import csv_text, markdown, table_rows
from surepick.experiments.budgets import budget_cases
from surepick.experiments.cases import prepared, run_case
from surepick.experiments.running import run_cases
from surepick.experiments.specs import instance_from_spec, policy_from_spec
from surepick.policies import POLICIES

NAMES = ("BetGapE", "CombGapE", "CombGapE-published", "RAGE", "NaiveGapElim", "EBTCI-heuristic", "KN", "LUCB")
SETTINGS = ArenaSettings(("exact", "epsilon"), ("monotone", "zone-two"), NAMES, runs=3)


@pytest.fixture(scope="module")
def found():
    cells = arena_cases(SETTINGS)
    rows = {case: run_case(case) for cases in cells.values() for case in cases}
    return cells, rows, summarize_arena(SETTINGS, (cells, {}), rows)


def test_every_method_of_a_family_meets_the_same_instances_and_noise(found):
    cells, _, _ = found
    for family in ("monotone", "zone-two"):
        trials = [
            [(case.problem, case.seed) for case in cases] for (of, _), cases in cells.items() if of == family
        ]
        assert len(trials) >= 5
        assert all(trial == trials[0] for trial in trials)


def test_every_entrant_can_start_on_the_families_that_it_enters():
    for family in ARENA_FAMILIES:
        if family.name == "transport":
            continue  # its plans are real amounts, as a knapsack's are
        problem = {"seed": 1, **family.problem} if family.is_drawn else family.problem
        instance = instance_from_spec(problem)
        for entrant in entrants_for(family, ArenaSettings()):
            policy_from_spec(entrant.spec, instance).start(instance.problem)


def test_every_entrant_is_a_policy_and_has_its_own_name():
    assert {entrant.spec["policy"] for entrant in ENTRANTS} <= set(POLICIES)
    assert len({entrant.name.lower() for entrant in ENTRANTS}) == len(ENTRANTS)
    assert len({entrant.label for entrant in ENTRANTS}) == len(ENTRANTS)


def test_methods_that_measure_one_by_one_are_cut_off_and_phases_are_not(found):
    cells, _, _ = found
    case = cells["monotone", "CombGapE"][0]
    least = prepared(case.problem).limit.measurements(0.05)
    assert 60 * least <= case.budget <= 60 * least + 1
    assert cells["monotone", "RAGE"][0].budget == 10**15


def test_zones_and_epsilons_are_those_of_the_question(found):
    cells, _, _ = found
    assert cells["zone-two", "KN"][0].policy["zone"] == 0.3
    assert cells["zone-two", "BetGapE"][0].policy["epsilon"] == 0.3
    assert "epsilon" not in cells["monotone", "BetGapE"][0].policy


def test_tables_are_sorted_and_say_who_has_a_proof(found):
    _, rows, seen = found
    text = markdown(seen)
    for table in seen.tables:
        multiples = [placing.summary.multiple.mean.number for placing in table.placings]
        assert multiples == sorted(multiples)
        lines = {line[0]: line for line in table_rows(table)}
        assert lines["BetGapE"][-1] == "yes"
        assert lines["CombGapE, published radius"][-1] == "no"
    assert "KN, KN++ and Rinott do not know the noise scale" in text
    assert csv_text(seen).count("\n") == 1 + sum(len(table.placings) for table in seen.tables)
    assert len(rows) == sum(placing.summary.n_runs for table in seen.tables for placing in table.placings)


def test_a_run_that_is_interrupted_shows_what_there_is(monkeypatch, tmp_path):
    """Half of the cases have a row when somebody presses Ctrl-C."""

    def half(cases, path, **options):
        run_cases(list(cases)[: len(cases) // 2], path, workers=1)
        raise KeyboardInterrupt

    monkeypatch.setattr(arena, "run_cases", half)
    asked = ArenaSettings(("epsilon",), ("zone-two",), ("CombGapE", "CombGapE-published"), runs=4)
    seen = arena.run_arena(asked, tmp_path / "rows.jsonl")
    assert seen.n_missing == 4
    assert [placing.summary.n_runs for placing in seen.tables[0].placings] == [2, 2]
    assert "cut short: 4 of 8 runs; the same command goes on from here." in seen.footnotes
    monkeypatch.undo()
    whole = arena.run_arena(asked, tmp_path / "rows.jsonl", workers=1)
    assert whole.n_missing == 0
    assert not any("cut short" in note for note in whole.footnotes)


def test_who_errs_beyond_chance_is_named_with_its_counts(found):
    cells, rows, _ = found
    broken = {
        case: dataclasses.replace(row, correct=False) if case.policy.get("radius") == "published" else row
        for case, row in rows.items()
    }
    notes = summarize_arena(SETTINGS, (cells, {}), broken).footnotes
    assert any(
        note.startswith("CombGapE, published radius was wrong more often than delta allows on t")
        and "3 of 3" in note
        for note in notes
    )
    assert not any("BetGapE was wrong" in note for note in notes)


def test_a_policy_that_is_not_on_the_list_enters_when_it_is_named():
    """Other settings here; docs/adding-a-policy.md does it with a package of its own."""
    text = "CombGapE:radius=kaufmann-koolen"
    asked = ArenaSettings(None, ("near-tie", "soare", "zone-two"), ("BetGapE", text), runs=1)
    cells = arena_cases(asked)
    assert {family for family, name in cells if name == text} == {"near-tie", "zone-two"}
    case = cells["zone-two", text][0]
    assert (case.policy["radius"], case.policy["epsilon"]) == ("kaufmann-koolen", 0.3)
    assert case.problem == cells["zone-two", "BetGapE"][0].problem
    rows = {case: run_case(case) for cases in cells.values() for case in cases}
    seen = summarize_arena(asked, (cells, {}), rows)
    assert "kaufmann-koolen" in markdown(seen)
    assert any(note.startswith(f"{text} is not on Soare") and "probes" in note for note in seen.footnotes)


@pytest.mark.parametrize(
    ("policies", "families", "said"),
    [
        (("BetGapX",), None, r"no policy named 'BetGapX' in the arena; did you mean 'BetGapE'\? Known: BetG"),
        (("nobody",), None, "no policy named 'nobody' in the arena; known: BetGapE, CombGapE, "),
        (("CombGapE:radius=wide",), None, "no radius named 'wide'"),
        (("RAGE:size=3",), None, "RAGE has no setting 'size=3'"),
        (("KN",), ("knapsack",), "no policy that was named takes a family that was named"),
        (("CLUCB:epsilon=0.1",), ("soare",), "CLUCB:epsilon=0.1 is not on Soare.*measures single arms"),
    ],
)
def test_a_name_that_leads_nowhere_is_said(policies, families, said, tmp_path):
    with pytest.raises(ParameterError, match=said):
        arena.run_arena(ArenaSettings(None, families, policies, runs=1), tmp_path / "rows.jsonl")


def test_families_that_nobody_takes_have_no_table():
    asked = ArenaSettings(("exact",), None, ("KN", "LUCB"), runs=1)
    tables = summarize_arena(asked, (arena_cases(asked), {}), {}).tables
    assert {table.family.name for table in tables} == {"ten-arms", "slippage", "monotone", "near-tie"}


def test_where_vectors_are_measured_only_methods_enter_that_measure_them():
    soare = next(family for family in ARENA_FAMILIES if family.name == "soare")
    names = {entrant.name for entrant in entrants_for(soare, ArenaSettings())}
    assert {"BetGapE", "RAGE-authors", "LinGapE", "XYAdaptive", "LinGame", "FWS-heuristic"} <= names
    assert not {"CombGapE", "RAGE", "KN", "GenLUCB"} & names
    case = arena_cases(ArenaSettings(("vectors",), ("soare",), ("XYAdaptive", "LinGapE"), 1))
    row = run_case(case["soare", "XYAdaptive"][0])
    assert row.correct
    assert row.characteristic_time[0] == pytest.approx(224.349, rel=2e-3)
    assert len(row.counts) == 11
    told = policy_from_spec(case["soare", "LinGapE"][0].policy, instance_from_spec(soare.problem))
    assert told.norm_bound == pytest.approx(2.0)


def test_plays_are_a_question_of_their_own():
    trees, three = (
        next(family for family in ARENA_FAMILIES if family.name == name) for name in ("trees", "three-played")
    )
    of_trees, of_three = (
        {entrant.name for entrant in entrants_for(family, ArenaSettings())} for family in (trees, three)
    )
    assert of_trees == {"OBet", "PFWS", "PFWS-authors", "CombGame", "CombGame-authors"}
    assert of_three == {"BetGapE", "Uniform", "PFWS", "CombGame"}
    asked = ArenaSettings(("plays",), None, ("OBet", "BetGapE"), 1)
    cells = arena_cases(asked)
    rows = {case: run_case(case) for cases in cells.values() for case in cases}
    assert all(row.correct for row in rows.values())
    assert cells["trees", "OBet"][0].budget == pytest.approx(60 * 409.2 * 2.65, rel=0.01)
    text = markdown(summarize_arena(asked, (cells, {}), rows))
    assert "where whole plans are played?" in text


def test_methods_that_take_minutes_enter_when_they_are_named():
    family = next(family for family in ARENA_FAMILIES if family.name == "three-of-ten")
    usual = {entrant.name for entrant in entrants_for(family, ArenaSettings())}
    named = {entrant.name for entrant in entrants_for(family, ArenaSettings(policies=("TSExplore",)))}
    assert "ExactExpGap" in usual
    assert "TSExplore" not in usual
    assert named == {"TSExplore"}


def test_budgets_are_a_question_of_their_own():
    asked = ArenaSettings(("budget",), ("ten-arms",), ("OCBA", "Uniform"), runs=1)
    assert chosen_families(asked) == ()
    cells = budget_cases(asked.of_budgets)
    assert {family for family, _, _ in cells} == {"ten-arms"}
    rows = {case: run_case(case) for cases in cells.values() for case in cases if case.budget < 200}
    seen = summarize_arena(asked, ({}, cells), rows)
    text = markdown(seen)
    assert text.count("## What a budget buys") == 1
    assert "### One of ten arms: 1 instance" in text
    assert "No method promises anything here" in text
    assert ArenaSettings(("exact",)).of_budgets is None
    assert ArenaSettings(policies=("KN",)).of_budgets is None


def test_names_are_checked():
    assert [family.name for family in chosen_families(ArenaSettings(questions=("epsilon",)))] == [
        "zone-two",
        "zone-slippage",
        "zone-monotone",
    ]
    for wrong in ({"families": ("knapsak",)}, {"policies": ("KM",)}, {"questions": ("play",)}, {"runs": 0}):
        with pytest.raises(ParameterError):
            ArenaSettings(**wrong)


def test_the_command_writes_tables_and_goes_on_where_it_was(tmp_path):
    call = ["arena", "--families", "zone-two", "--policies", "KN,BetGapE", "--runs", "2", "--workers", "1"]
    call += ["--out", str(tmp_path)]
    first = CliRunner().invoke(app, call)
    assert first.exit_code == 0, first.output
    assert "two arms that differ by .3" in first.output
    written = {path.name for path in tmp_path.iterdir()}
    assert {"table.md", "table.csv", "summary.json", "arena.png"} <= written
    kept = (tmp_path / "rows.jsonl").read_bytes()
    again = CliRunner().invoke(app, [*call, "--json"])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "rows.jsonl").read_bytes() == kept
    refused = CliRunner().invoke(app, ["arena", "--families", "nothing"])
    assert isinstance(refused.exception, ParameterError)
