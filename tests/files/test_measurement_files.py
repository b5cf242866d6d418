"""Measurements to and from files: names that a spreadsheet would take for formulas, both ways."""

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surepick as sp
from common import largest, refuses
from surepick.files.measurements import import_rows, read_rows, write_csv
from surepick.sessions.session import Session
from surepick.tables import as_cell, from_cell

FORMULAS = ["=1+1", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "=cmd|'/c calc'!A0", "'=1+1", "''@x", "-"]
PLAIN = ["tea", "a=b", "'quoted'", "1.0", "caf\u00e9", "t0.1"]
STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def session_of(names, store="memory://", name="s"):
    plans = [[float(i == j) for j in range(len(names))] for i in range(len(names))]
    problem = largest(plans, arms=names, plan_names=[f"{name}!" for name in names])
    return Session.create(store, name, problem, policy=sp.CombGapE())


def measured(session):
    return [(m.token, m.arm, m.value, m.worker) for m in session.measurements()]


def filled(session):
    for i, request in enumerate(session.ask(session.problem.n_arms)):
        session.tell(request, -1.5 - i, worker="=HYPERLINK(1)")
    for arm in session.problem.arm_names:
        session.tell(arm, -0.25)
    return session


def test_no_name_in_an_exported_file_is_a_formula_and_numbers_stay_numbers():
    stream = io.StringIO(newline="")
    write_csv(filled(session_of(FORMULAS + PLAIN)), stream)
    rows = list(csv.DictReader(io.StringIO(stream.getvalue(), newline="")))
    assert len(rows) == 2 * len(FORMULAS + PLAIN)
    for row in rows:
        assert not any(row[column].startswith(STARTS) for column in ("token", "arm", "worker", "time"))
        assert math.isfinite(float(row["value"]))
        assert row["value"].startswith("-")
    assert {row["arm"] for row in rows} >= set(PLAIN)  # as they are


def test_an_exported_file_is_read_back_into_another_session(tmp_path):
    names = [name for name in FORMULAS + PLAIN if name == name.strip()]  # cells are stripped on reading
    first, second = filled(session_of(names)), session_of(names)
    path = tmp_path / "all.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        write_csv(first, stream)
    counts = import_rows(second, read_rows(path), worker="")
    assert counts["recorded"] + counts["extra"] == 2 * len(names)
    assert measured(second) == measured(first)


@given(st.text())
def test_every_text_comes_back_from_its_cell(text):
    cell = as_cell(text)
    assert from_cell(cell) == text
    assert not cell.startswith(STARTS)
    assert all(as_cell(plain) == from_cell(plain) == plain for plain in PLAIN)


def imported(session, path, text):
    path.write_text(text, encoding="utf-8")
    counts = import_rows(session, read_rows(path), worker="")
    return {name: n for name, n in counts.items() if n}


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("arm,probe,value\na,b,1\n", "probe"),
        ("arm,value,value\na,1,2\n", "value"),
        ("arm,arm,value\na,b,2\n", "arm"),
        ("arm,value,count\na,1,4\n", "count"),
        ("arm,value,unit\na,1,km\n", "unit"),
        ("arm,value\na,1.2.3\n", "value"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused_with_its_cell(tmp_path, text, field):
    session = session_of(["a", "b"])
    before = session.journal.head
    with refuses(field):
        imported(session, tmp_path / "odd.csv", text)
    assert session.journal.head == before


def test_all_mistakes_of_a_file_are_listed_at_once(tmp_path):
    session = session_of(["a", "b"])
    with pytest.raises(sp.SurepickError) as caught:
        imported(session, tmp_path / "odd.csv", "arm,value\na,1.2.3\nb,2\na,high\n")
    assert len(str(caught.value).splitlines()) == 3
    with pytest.raises(sp.SurepickError, match="2 rows"):
        imported(session, tmp_path / "names.csv", "arm,value\nc,1\nb,2\nd,3\n")
    assert session.state().n_values == 0


def test_an_export_has_a_key_in_every_row_that_has_no_token(tmp_path):
    session, path = session_of(["a", "b"]), tmp_path / "all.csv"
    (request,) = session.ask()
    session.tell(request, 1.0, worker="me")
    session.tell(request.token, 2.0, worker="you")  # late
    session.tell("a", 3.0)
    session.tell("b", 4.0, key="sheet 7")
    with path.open("w", newline="", encoding="utf-8") as stream:
        write_csv(session, stream)
    rows = read_rows(path)
    assert all(row.token or row.key for row in rows)
    assert rows[-1].key == "sheet 7"
    head = session.journal.head
    assert import_rows(session, rows, worker="me")["repeated"] == 4
    assert session.journal.head == head
    other = session_of(["a", "b"], name="other")
    for expected in ({"recorded": 2, "extra": 2}, {"repeated": 4}):
        counts = import_rows(other, rows, worker="me")
        assert {name: n for name, n in counts.items() if n} == expected


def test_a_name_is_read_as_a_person_writes_it(tmp_path):
    session = session_of(["=tea", "coffee"])
    imported(session, tmp_path / "hand.csv", "arm,value\n=tea,1\n'=tea,2\ncoffee,3\n")
    assert [(m.arm, m.value) for m in session.measurements()] == [("=tea", 1), ("=tea", 2), ("coffee", 3)]


def test_a_file_is_counted_once_and_so_are_its_first_rows_when_it_grows(tmp_path):
    session, path = session_of(["a", "b"]), tmp_path / "mine.csv"
    text = "arm,value\na,1\nb,1\n"
    assert imported(session, path, text) == {"recorded": 2}
    head = session.journal.head
    assert imported(session, path, text) == {"repeated": 2}
    assert session.journal.head == head
    grown = imported(session, path, f"{text}a,1\n")
    assert grown.pop("repeated") == 2
    assert sum(grown.values()) == 1
    assert [m.value for m in session.measurements()] == [1.0, 1.0, 1.0]
    again = Session.load(session.store, "s")
    assert imported(again, path, f"{text}a,1\n") == {"repeated": 3}
    assert again.verify().holds


def test_an_extra_row_of_a_measuring_sheet_is_counted_once_when_more_of_the_sheet_is_filled_in(tmp_path):
    session, path = session_of(["a", "b"]), tmp_path / "sheet.csv"
    sheet = "token,arm,value\n0.0,a,{}\n1.0,b,4\n,b,7\n"
    assert sum(imported(session, path, sheet.format("")).values()) == 2
    assert imported(session, path, sheet.format("3")) == {"recorded": 1, "repeated": 2}
    assert sorted(m.value for m in session.measurements()) == [3.0, 4.0, 7.0]
