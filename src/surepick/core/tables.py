"""Tables of numbers with named rows and columns, from CSV files: the one module of core that opens a file."""

from __future__ import annotations

import csv
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, read_only
from surepick.errors import ProblemError

TablePath: TypeAlias = str | Path
LARGEST = 2**28  # bytes of a file of tables or problems that is read; in memory it takes ten times as much
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers with a name for every row and every column."""

    numbers: FloatArray  # (n_rows, n_columns)
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]


def read_table(path: TablePath) -> Table:
    """The numbers of a CSV file whose header names the columns and whose first column names the rows.

    Cells are separated, and lines skipped, as in `csv_lines`.
    """
    path = Path(path)
    lines = csv_lines(path)
    if len(lines) < 2 or len(lines[0][1]) < 2:
        raise ProblemError(
            f"{str(path)!r} needs a header that names the columns and then rows that begin with their name, "
            f"got {len(lines)} lines and a header of {len(lines[0][1]) if lines else 0} cells; commas, "
            "semicolons or tabs separate cells"
        )
    columns = tuple(cell.strip() for cell in lines[0][1][1:])
    for number, row in lines[1:]:
        if len(row) != len(columns) + 1:
            raise ProblemError(
                f"line {number} of {str(path)!r} has {len(row)} cells, the header has {len(columns) + 1}; "
                "every row needs its name and one number per column"
            )
    names = tuple(row[0].strip() for _, row in lines[1:])
    numbers = parse_cells([row[1:] for _, row in lines[1:]], columns, names, within=f" of {str(path)!r}")
    return Table(read_only(numbers), names, columns)


def csv_lines(path: Path) -> list[tuple[int, list[str]]]:
    """The lines of a CSV file that are not blank, with their numbers in the file.

    Commas separate cells; or semicolons or tabs, as spreadsheets write them where numbers have a comma, and
    then 2,5 is read as 2.5. A byte-order mark is skipped.
    """
    refuse_endless(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            separator = _separator(next((line for line in stream if line.strip()), ""))
            stream.seek(0)
            reader = csv.reader(stream, delimiter=separator)
            lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except OSError as error:
        raise ProblemError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ProblemError(f"{str(path)!r} is not UTF-8 text; save it as 'CSV UTF-8'") from None
    except csv.Error as error:
        raise ProblemError(f"{str(path)!r} is not a CSV file: {error}") from None
    if separator == ",":
        return lines
    return [*lines[:1], *((number, [*map(_with_point, row)]) for number, row in lines[1:])]


def refuse_endless(path: Path) -> None:
    """Refuse what has no end, such as /dev/zero, or is too large to be read whole, before it is read."""
    try:
        found = path.stat()
    except OSError:
        return  # whoever opens it says why
    if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
        raise ProblemError(f"{str(path)!r} is a device, not a file; name a file")
    if found.st_size > LARGEST:
        raise ProblemError(
            f"{str(path)!r} has {found.st_size:,} bytes, too many to read it whole; give a file of at most "
            f"{LARGEST:,} bytes"
        )


def _separator(header: str) -> str:
    """What separates the cells of this line.

    >>> [_separator(line) for line in ("plan,road", "plan;road, old;rail", "plan\\troad", "plan")]
    [',', ';', '\\t', ',']
    """
    return max(",;\t", key=header.count)  # of equals the first


def _with_point(cell: str) -> str:
    """The cell, with a decimal point where it is a number with a decimal comma."""
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def parse_cells(
    rows: Iterable[Sequence[object]], columns: Sequence[str], names: Sequence[str], *, within: str = ""
) -> FloatArray:
    """The cells as numbers; `within` says, in an error, which table they are of."""
    matrix = np.empty((len(names), len(columns)))
    for k, row in enumerate(rows):
        for s, cell in enumerate(row):
            try:
                matrix[k, s] = float(cell)  # type: ignore[arg-type]
            except (TypeError, ValueError):
                raise ProblemError(
                    f"row {names[k]!r}, column {columns[s]!r}{within}: expected a number, got {cell!r}"
                ) from None
    return matrix
