"""A spreadsheet alone is a problem; tables of other files may be given by name."""

import tracemalloc

import openpyxl
import pytest

import surepick as sp
from common import refuses
from surepick import tables
from surepick.errors import FileError
from surepick.inputs.load import read_problem

ROWS = [
    ["plan", "bus", "train", "walk"],
    ["goal", "smallest", "", ""],
    ["unit", "min", "", ""],
    ["guess", 14, 11, 8],
    ["spread", 3, "", ""],
    ["noise", 4, 2, 1],
    ["cost", 1, 2, 1],
    ["truth", 14, 11.5, 8],
    ["bus and walk", 1, "", 1],
    ["train and walk", "", 1, 1],
    ["walk all the way", "", "", 3],
]


def write(path, rows=ROWS, separator=","):
    if path.suffix.lower() == ".xlsx":
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([cell if cell != "" else None for cell in row])
        book.save(path)
    else:
        path.write_text("\n".join(separator.join(map(str, row)) for row in rows) + "\n", encoding="utf-8")
    return path


def changed(name, *cells):
    """The rows with this one in place of that of its name."""
    return [[name, *cells] if row[0] == name else row for row in ROWS]


def refusal(path):
    with pytest.raises(FileError) as caught:
        read_problem(path)
    return caught.value


@pytest.mark.parametrize("name", ["ways.xlsx", "ways.csv", "ways.tsv", "WAYS.XLSX"])
def test_a_sheet_says_all_that_a_table_can(tmp_path, name):
    loaded = read_problem(write(tmp_path / name, separator="\t" if name.endswith("tsv") else ","))
    problem = loaded.problem
    assert problem.arm_names == ("bus", "train", "walk")
    assert problem.plan_names == ("bus and walk", "train and walk", "walk all the way")
    assert problem.plans.tolist() == [[1, 0, 1], [0, 1, 1], [0, 0, 3]]
    assert problem.minimize
    assert problem.noise_scale.tolist() == [4, 2, 1]
    assert problem.costs.tolist() == [1, 2, 1]
    assert loaded.guess.tolist() == [14, 11, 8]
    assert loaded.spread.tolist() == [3, 3, 3]
    assert loaded.means.tolist() == [14, 11.5, 8]
    assert (loaded.title, loaded.kind) == (name.split(".")[0], "table")


def test_plans_and_a_goal_are_enough_and_the_noise_is_then_unknown(tmp_path):
    loaded = read_problem(write(tmp_path / "ways.csv", [ROWS[0], ["goal", "largest", "", ""], *ROWS[-3:]]))
    assert loaded.problem.noise_scale is None
    assert loaded.problem.goal == "largest"
    assert refusal(write(tmp_path / "ways.csv", [ROWS[0], *ROWS[-3:]])).field == "goal"
    assert loaded.guess is loaded.means is None


def test_a_row_that_says_something_may_end_early_and_a_plan_may_not(tmp_path):
    text = "plan,bus,walk\ngoal,smallest\nunit,min\ncost,3\nby bus,1,2\non foot,,7\n"
    (tmp_path / "ways.csv").write_text(text)
    loaded = read_problem(tmp_path / "ways.csv")
    assert (loaded.problem.minimize, loaded.problem.about.unit) == (True, "min")
    (tmp_path / "ways.csv").write_text(text.replace("on foot,,7", "on foot,7"))
    refusal(tmp_path / "ways.csv")


def test_a_sheet_with_semicolons_and_decimal_commas_is_read(tmp_path):
    rows = changed("truth", "14", "11,5", "8,125")
    assert read_problem(write(tmp_path / "ways.csv", rows, ";")).means.tolist() == [14, 11.5, 8.125]


@pytest.mark.parametrize(
    ("row", "field", "named"),
    [
        (["goal", "quick", "", ""], "goal", "  B2 "),
        (["unit", "h", "km", ""], "unit", "  B3 "),
        (["guess", 14, "", 8], "guess", "  C4 "),
        (["noise", 4, "loud", 1], "noise", "  C6 "),
        (["noise", 4, 0, 1], "noise", "'train'"),
        (["bus and walk", 1, "1.234", "1;5"], "plans", "  D9 "),
    ],
)
def test_a_mistake_is_named_with_its_cell(tmp_path, row, field, named):
    refused = refusal(write(tmp_path / "ways.csv", changed(*row)))
    assert refused.field == field
    assert named in str(refused)


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_all_mistakes_are_listed_at_once(tmp_path, ending):
    rows = [["goal", "best", "", ""], *ROWS[2:-3], ["(unit)", "", "", ""], ["walk", "x", "", "y"]]
    refused = str(refusal(write(tmp_path / f"ways.{ending}", [ROWS[0], *rows])))
    assert all(cell in refused for cell in ("  B2 ", "  A9 ", "  B10 ", "  D10 "))


def test_spread_and_noise_in_percent_are_of_the_guess(tmp_path):
    settings = [["goal", "smallest"], ["guess", 10, 20, -40], ["spread", "10%"], ["noise", "5%", 2, "10%"]]
    loaded = read_problem(write(tmp_path / "ways.xlsx", [ROWS[0], *settings, *ROWS[-3:]]))
    assert loaded.spread.tolist() == pytest.approx([1, 2, 4])
    assert loaded.problem.noise_scale.tolist() == pytest.approx([0.55, 2, 4.4])
    without = [row for row in settings if row[0] != "guess"]
    assert refusal(write(tmp_path / "w.csv", [ROWS[0], *without, *ROWS[-3:]])).field == "spread"


def test_a_sheet_says_what_is_measured_and_how_sessions_begin(tmp_path):
    more = [["measure", "plan arms"], ["delta", 0.1], ["epsilon", 2], ["budget", 60]]
    loaded = read_problem(write(tmp_path / "ways.csv", [ROWS[0], ["goal", "smallest"], *more, *ROWS[-3:]]))
    assert loaded.problem.probes.reading_names[0] == ("bus", "walk")
    assert loaded.settings == {"delta": 0.1, "epsilon": 2.0, "budget": 60}


def test_one_sheet_of_several_is_chosen_by_name(tmp_path):
    path = write(tmp_path / "ways.xlsx")
    book = openpyxl.load_workbook(path)
    book.create_sheet("notes", 0).append(["do not read me"])
    book.save(path)
    assert sp.load(path, sheet="Sheet").plan_names[0] == "bus and walk"
    with refuses("sheet"):
        sp.load(path, sheet="Sheat")


def test_a_row_that_is_there_twice_is_refused(tmp_path):
    for row, field in ((["Goal", "largest", "", ""], "goal"), (ROWS[-3], "plan_names")):
        refused = refusal(write(tmp_path / "w.csv", [*ROWS, row]))
        assert refused.field == field
        assert f"'{row[0]}'" in str(refused)


@pytest.mark.parametrize(
    ("change", "cells"),
    [
        (lambda sheet: sheet.__setitem__("B9", "=1+1"), "B9"),  # a formula that was never computed
        (lambda sheet: sheet.merge_cells("B9:C9"), "B9:C9"),
    ],
)
def test_cells_without_a_value_of_their_own_are_refused(tmp_path, change, cells):
    path = write(tmp_path / "ways.xlsx")
    book = openpyxl.load_workbook(path)
    change(book.active)
    book.save(path)
    assert cells in str(refusal(path))


def test_what_is_no_workbook_is_refused(tmp_path):
    path = tmp_path / "ways.xlsx"
    path.write_bytes(b"PK\x03\x04 not really")
    assert "ways.xlsx'" in str(refusal(path))
    assert "absent.xlsx'" in str(refusal(tmp_path / "absent.xlsx"))
    assert refusal(write(tmp_path / "ways.ods")).field == "path"
    assert 'program = "mix.mps"' in str(refusal(write(tmp_path / "mix.lp")))


def toml(folder, text, **files):
    for name, content in files.items():
        (folder / f"{name}.csv").write_text(content)
    (folder / "case.toml").write_text(text)
    return read_problem(folder / "case.toml")


def test_supply_and_demand_may_be_csv_files_by_name(tmp_path):
    loaded = toml(
        tmp_path,
        'kind = "transport"\nsupply = "supply.csv"\ndemand = "demand.csv"\nguess = "hours.csv"',
        supply="site,tons\nY,2\nX,3\n",
        demand="site,tons\nsouth,1\nnorth,4\n",
        hours=",north,south\nX,2,3\nY,2,2\n",
    )
    assert loaded.problem.arm_names == ("X -> north", "X -> south", "Y -> north", "Y -> south")
    assert loaded.problem.best_plan([2, 3, 2, 2]).tolist() == [3, 0, 1, 1]


def far_away(folder, *, column, value=None):
    """Write a workbook of two plans with a formatted cell in the last row that Excel has."""
    book = openpyxl.Workbook()
    for row in (["route", "road", "rail"], ["goal", "largest"], ["North", 1, None], ["South", None, 1]):
        book.active.append(row)
    cell = book.active.cell(1_048_576, column, value)
    cell.number_format = "0.00"
    book.save(folder / "far.xlsx")
    return folder / "far.xlsx"


@pytest.mark.parametrize("column", [1, 16_384])
def test_a_blank_cell_far_away_costs_nothing(tmp_path, column):
    file = far_away(tmp_path, column=column)
    tracemalloc.start()
    assert read_problem(file).problem.plan_names == ("North", "South")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**25


def test_a_sheet_of_too_many_cells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "MOST_CELLS", 10_000)
    assert "16,384" in str(refusal(far_away(tmp_path, column=16_384, value=1)))


def test_a_row_says_which_means_are_known(tmp_path):
    problem = read_problem(
        write(tmp_path / "ways.csv", [*ROWS[:7], ["known", "", "11 to 14", 8], *ROWS[8:]])
    ).problem
    assert problem.mean_bounds[1:].tolist() == [[11, 14], [8, 8]]
    assert problem.is_known.tolist() == [False, False, True]
    wrong = refusal(write(tmp_path / "ways.csv", [*ROWS[:7], ["known", "", "11 till 14", 8], *ROWS[8:]]))
    assert wrong.field == "known"
