from __future__ import annotations

import json
from pathlib import Path

import pytest

from surepick.errors import FileError
from surepick.experiments import Case, read_rows, run_case, run_cases, write_parquet
from surepick.experiments.rows import appending, row_from_line, row_to_line
from tiny_cases import PUBLISHED, problem, quick_cases


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of four rows."""
    path = tmp_path / "rows.jsonl"
    with appending(path) as writer:
        for case in quick_cases(4):
            writer.write(run_case(case))
    return path


def test_rows_survive_the_file(path: Path) -> None:
    found = read_rows(path)
    assert [row.case for row in found.rows] == quick_cases(4)
    assert (found.bad, found.torn) == ((), b"")


def test_an_infinite_limit_survives_the_file() -> None:
    row = run_case(Case(problem(gap=0.0), PUBLISHED, budget=10))
    assert row_from_line(row_to_line(row)) == row
    assert row.limit == float("inf")


def test_a_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "none.jsonl").rows == ()


@pytest.mark.parametrize("kept", [1, 50, -2])
def test_a_torn_last_line_is_reported_and_cut_off(path: Path, kept: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:kept])
    found = read_rows(path)
    assert (len(found.rows), found.bad, found.torn) == (3, (), lines[3][:kept])
    with appending(path) as writer:
        writer.write(run_case(quick_cases(4)[3]))
    assert [row.case for row in read_rows(path).rows] == quick_cases(4)


def test_a_last_row_that_lacks_its_line_end_only_is_kept(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])
    with appending(path) as writer:
        writer.write(run_case(quick_cases(5)[4]))
    assert [row.case for row in read_rows(path).rows] == quick_cases(5)


def _damage(path: Path, line: int, old: bytes, new: bytes) -> None:
    lines = path.read_bytes().split(b"\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (b'"status":', b'"status"', "it is not JSON"),
        (b'"format":', b'"formal":', "it is JSON but not a row"),
        (b'"format":1', b'"format":2', "another format"),
        (b"{", b"\xff{", "utf-8"),
    ],
)
def test_damage_in_the_middle_names_the_line_and_what_to_do(
    path: Path, old: bytes, new: bytes, reason: str
) -> None:
    _damage(path, 2, old, new)
    with pytest.raises(FileError, match=rf"line 2 of .*{reason}.*the other 3 rows are good.*Remove the line"):
        run_cases(quick_cases(4), path)
    assert len(read_rows(path).rows) == 3


def test_a_row_with_the_checksum_of_an_earlier_version_is_read(path: Path) -> None:
    before = read_rows(path).rows
    _damage(path, 2, b"{", b'{"crc":123,')
    assert read_rows(path).rows == before


def test_two_runs_cannot_write_to_one_file(path: Path) -> None:
    pytest.importorskip("fcntl")
    with appending(path), pytest.raises(FileError, match="another run is writing"):
        run_cases(quick_cases(5), path)


def test_rows_go_to_parquet(path: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = read_rows(path).rows
    write_parquet(rows, tmp_path / "rows.parquet")
    table = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [line["key"] for line in table] == [row.case.key for row in rows]
    assert [line["counts"] for line in table] == [list(row.counts) for row in rows]
    assert json.loads(table[0]["problem"]) == problem()
