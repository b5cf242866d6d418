"""Measuring sheets, tokens that spreadsheets leave alone, and numbers as people type them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import openpyxl
import pytest
from typer.testing import CliRunner, Result

from page_code import ROOT, blocks, lines
from surepick import Session
from surepick.cli import app
from surepick.errors import FileError

WAYS = """plan;bus;train;walk
goal;smallest;;
noise;0,5;0,5;0,5
bus and walk;1;;1
train and walk;;1;1
walk all the way;;;3
"""
HOURS = {"bus": 14.0, "train": 11.5, "walk": 8.0}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ways.csv").write_text(WAYS, encoding="utf-8")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, [*args])


def ok(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.stdout


def as_a_spreadsheet_saves(file: Path) -> None:
    """Change the cells of a CSV file as a spreadsheet does that opens and saves it: 3.10 becomes 3.1."""

    def shown(cell: str) -> str:
        try:
            return f"{float(cell):g}"
        except ValueError:
            return cell

    rows = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([*map(shown, row)] for row in rows)


def test_a_sheet_alone_goes_through_check_advise_new_and_simulate() -> None:
    assert json.loads(ok("check", "ways.csv", "--json"))["goal"] == "smallest"
    Path("ways.csv").write_text(WAYS + "truth;14;11,5;8\n", encoding="utf-8")
    assert json.loads(ok("limit", "ways.csv", "--json"))["best_plan"] == "train and walk"
    assert json.loads(ok("simulate", "ways.csv", "--json"))["plan"] == "train and walk"


def test_the_commands_of_the_guide_work_as_printed() -> None:
    guide = blocks(ROOT / "docs" / "problem-files.md")
    (sheet,) = (block.text for block in guide if block.file == "crossing.csv")
    Path("crossing.csv").write_text(sheet, encoding="utf-8")
    commands = [line for block in guide if block.language == "console" for line in lines(block)]
    assert len(commands) == 4
    for command in commands:
        ok(*command.split()[1:])


@pytest.mark.parametrize("name", ["sheet.xlsx", "sheet.csv"])
def test_a_sheet_is_filled_in_and_imported_until_the_answer_is_sure(name: str) -> None:
    ok("new", "ways.csv")
    for _ in range(100):
        result = run("sheet", "-o", name, "--worker", "Ann")
        if result.exit_code == 1:
            break
        assert f"surepick import {name}" in result.output
        fill_in(Path(name))
        ok("import", name)
        Path(name).unlink()
    assert json.loads(ok("status", "--json"))["answer"] == "train and walk"
    ok("verify")


def fill_in(file: Path) -> None:
    if file.suffix == ".xlsx":
        book = openpyxl.load_workbook(file)
        for row in book.active.iter_rows(min_row=2):
            row[2].value = HOURS[row[1].value]
        book.save(file)
        return
    rows = list(csv.reader(file.read_text(encoding="utf-8-sig").splitlines()))
    for row in rows[1:]:
        row[2] = str(HOURS[row[1]]).replace(".", ",")
    with file.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, delimiter=";").writerows(rows)


def test_a_sheet_to_print_names_every_measurement_and_escapes_names() -> None:
    Path("odd.csv").write_text("plan,<b>bus</b>,walk\na,1,\nb,,1\n", encoding="utf-8")
    ok("new", "odd.csv")
    ok("sheet", "-n", "2", "-o", "sheet.html")
    page = Path("sheet.html").read_text(encoding="utf-8")
    assert '<td class="token">t0.0</td><td class="arm">&lt;b&gt;bus&lt;/b&gt;</td>' in page
    assert "<b>bus" not in page
    for name in ("sheet.html", "sheet.pdf"):  # which is there already, and which is no format
        assert isinstance(run("sheet", "-o", name).exception, FileError)
    assert Path("sheet.html").read_text(encoding="utf-8") == page
    assert not Path("sheet.pdf").exists()


def test_rows_that_nobody_filled_in_are_left_out() -> None:
    ok("new", "ways.csv")
    Path("half.csv").write_text("token,arm,value\nt0.0,bus,14\nt1.0,train,\n", encoding="utf-8")
    assert json.loads(ok("import", "half.csv", "--json"))["n_told"] == 1


def test_tokens_of_an_export_survive_a_spreadsheet_and_plain_ones_do_not() -> None:
    ok("new", "ways.csv")
    session = Session.load("surepick.db")
    for request in session.ask(45):
        session.tell(request, HOURS[request.arm_name])
    told = [m.token for m in session.measurements()]
    assert any(token.endswith("0") for token in told)
    ok("export", "-o", "all.csv")
    plain = Path("plain.csv")
    plain.write_text(Path("all.csv").read_text().replace("\nt", "\n"))
    as_a_spreadsheet_saves(Path("all.csv"))
    as_a_spreadsheet_saves(plain)
    ok("new", "ways.csv", "--name", "again")
    ok("import", "all.csv", "-s", "again")
    assert sorted(m.token for m in Session.load("surepick.db", "again").measurements()) == sorted(told)
    ok("new", "ways.csv", "--name", "spoilt")
    assert run("import", "plain.csv", "-s", "spoilt").exit_code != 0  # the negative control


def test_both_forms_of_a_token_are_taken() -> None:
    ok("new", "ways.csv")
    ok("ask", "-n", "3")
    for token in ("t0.0", "T1.0", "2.0"):
        assert json.loads(ok("tell", token, "8", "--json"))["receipt"] == "recorded"


@pytest.mark.parametrize(
    ("typed", "value"), [("12,5", 12.5), ("12.5", 12.5), ("-0,125", -0.125), ("1e2", 100.0)]
)
def test_tell_takes_a_decimal_comma(typed: str, value: float) -> None:
    ok("new", "ways.csv")
    ok("tell", "bus", typed)
    assert [m.value for m in Session.load("surepick.db").measurements()] == [value]


@pytest.mark.parametrize("typed", ["1,234", "1.234,5", "12,5h", "1_000"])
def test_tell_refuses_what_may_be_two_numbers(typed: str) -> None:
    ok("new", "ways.csv")
    assert run("tell", "bus", typed).exit_code == 2
    assert not list(Session.load("surepick.db").measurements())


def test_remarks_on_a_sheet_become_notes_and_are_kept_once() -> None:
    ok("new", "ways.csv")
    ok("sheet", "-o", "monday.csv")
    rows = list(csv.DictReader(Path("monday.csv").read_text(encoding="utf-8-sig").splitlines()))
    rows[0] |= {"value": "14,5", "remarks": "Umleitung; Stau"}
    with Path("monday.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0], delimiter=";", lineterminator="\r\n")
        writer.writeheader()
        writer.writerows(rows)
    for receipt in ("recorded", "repeated"):
        assert json.loads(ok("import", "monday.csv", "--json"))["imported"][receipt] == 1
    log = ok("log")
    assert log.count(f"{rows[0]['arm']} ({rows[0]['token']}): Umleitung; Stau") == 1
    ok("verify")


def test_an_import_says_what_became_of_values_that_nobody_had_asked_for() -> None:
    ok("new", "ways.csv")
    Path("told.csv").write_text("arm;value\nbus;14,5\n", encoding="utf-8")
    assert json.loads(ok("import", "told.csv", "--json"))["imported"]["extra"] == 1
    ok("sheet", "-o", "empty.csv")
    assert not any(json.loads(ok("import", "empty.csv", "--json"))["imported"].values())
    ok("import", "empty.csv")


def test_a_column_with_neither_name_nor_cells_is_none() -> None:
    Path("gap.csv").write_text("plan;bus;;walk\nnoise;1;;\na;1;;\nb;;;1\n", encoding="utf-8")
    assert json.loads(ok("check", "gap.csv", "--json"))["arms_that_matter"] == ["bus", "walk"]
