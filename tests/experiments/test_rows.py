from __future__ import annotations

from pathlib import Path

import pytest

from surepick.errors import FileError
from surepick.experiments import Case, read_rows, run_case, run_cases
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
    assert found.torn == b""


def test_an_infinite_limit_survives_the_file() -> None:
    row = run_case(Case(problem(gap=0.0), PUBLISHED, budget=10))
    assert row_from_line(row_to_line(row)) == row
    assert row.limit == float("inf")


@pytest.mark.parametrize("kept", [1, 50, -2])
def test_a_torn_last_line_is_reported_and_cut_off(path: Path, kept: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:kept])
    found = read_rows(path)
    assert (len(found.rows), found.torn) == (3, lines[3][:kept])
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
    ("old", "new"),
    [(b'"status":', b'"status"'), (b'"counts":', b'"accounts":'), (b'"best":', b'"rest":'), (b"{", b"\xff{")],
)
def test_damage_in_the_middle_is_an_error_that_names_the_line(path: Path, old: bytes, new: bytes) -> None:
    _damage(path, 2, old, new)
    before = path.read_bytes()
    with pytest.raises(FileError) as caught:
        run_cases(quick_cases(4), path)
    assert caught.value.field == "line 2"
    assert path.read_bytes() == before


def test_two_runs_cannot_write_to_one_file(path: Path) -> None:
    pytest.importorskip("fcntl")
    with appending(path), pytest.raises(FileError) as caught:
        run_cases(quick_cases(5), path)
    assert caught.value.field == "out"
