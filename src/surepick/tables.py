"""Tables of numbers with named rows and columns, from CSV and Excel files: the one module that opens them.

CSV as spreadsheets write it, and `.xlsx` workbooks (openpyxl, in the extra `sheets`): their first sheet.
"""

from __future__ import annotations

import csv
import re
import stat
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from surepick.core.arrays import FloatArray, read_only
from surepick.errors import ParameterError, ProblemError, missing_extra, suggestion

_EXPONENT = r"(?:[eE][-+]?\d+)?"
_WITH_POINT = re.compile(rf"[-+]?(?:\d+\.?\d*|\.\d+){_EXPONENT}", re.ASCII)
_WITH_COMMA = re.compile(rf"[-+]?\d*,\d+{_EXPONENT}", re.ASCII)
_WITH_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}", re.ASCII)  # or three decimals: ambiguous
_COUNT = re.compile(r"\d{1,18}", re.ASCII)
_NO_NUMBER = re.compile(r"[-+]?(?:nan|inf|infinity)", re.IGNORECASE)


def numeral(text: str, *, comma_is_decimal: bool = False) -> float:
    """Return the number that this text is, with a decimal point or comma; refuse other text.

    12,5 is 12.5. 1,234 is refused, since it may be 1.234 or 1234, unless `comma_is_decimal` says what commas
    are; so is anything between thousands. "nan" and "inf" are read as Python reads them.

    >>> numeral("12.5"), numeral(" -0,125 "), numeral("1,234", comma_is_decimal=True)
    (12.5, -0.125, 1.234)
    """
    word = text.strip()
    if _WITH_POINT.fullmatch(word) or _NO_NUMBER.fullmatch(word):
        return float(word)
    if _WITH_THOUSANDS.fullmatch(word) and not comma_is_decimal:
        point, none = word.replace(",", "."), word.replace(",", "")
        raise ParameterError(f"{word!r} may be {point} or {none}; write one of these")
    if _WITH_COMMA.fullmatch(word):
        return float(word.replace(",", "."))
    raise ParameterError(
        f"expected a number, got {text!r}; write it like 1234.5, with nothing between thousands and no unit"
    )


def count_in(text: str) -> int | None:
    """Return the number that this text of up to 18 digits is; None for any other text.

    Python's tests for digits hold for a raised 2 and for thousands of digits, of which `int` makes nothing.
    """
    return int(text) if _COUNT.fullmatch(text) else None


TablePath: TypeAlias = str | Path
LARGEST = 2**28  # bytes of a file of tables or problems that is read; in memory it takes ten times as much
Lines: TypeAlias = list[tuple[int, list[str]]]  # the cells of each line, with its number in the file
_FORMULA = re.compile(r"'*[=+\-@\t\r\n]")  # apostrophes before it were put there, or will be taken off
SHEETS = (".xlsx", ".xlsm")
MOST_CELLS = 10_000_000  # of a sheet, from its first column to its last
MOST_UNPACKED = 2**26  # bytes of a workbook's XML: openpyxl takes some fifty times as much memory


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers with a name for every row and every column."""

    numbers: FloatArray  # (n_rows, n_columns)
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]


def read_table(path: TablePath, *, empty: float | None = None) -> Table:
    """Return the numbers of a CSV or Excel file; header and first column name its columns and rows.

    Cells are separated, and lines skipped, as in `csv_lines`. An empty cell is `empty`, or refused.
    """
    _, columns, rows = named_rows(path)
    numbers = np.empty((len(rows), len(columns)))
    for k, (_, (name, *cells)) in enumerate(rows):
        for s, cell in enumerate(cells):
            try:
                numbers[k, s] = numeral(cell) if cell or empty is None else empty
            except ParameterError as error:
                where = f"row {name!r}, column {columns[s]!r} of {str(path)!r}"
                raise ProblemError(f"{where}: {error}") from None
    return Table(read_only(numbers), tuple(row[0] for _, row in rows), columns)


def named_rows(
    path: TablePath, *, short: Collection[str] = (), sheet: str | None = None
) -> tuple[str, tuple[str, ...], Lines]:
    """Return the first cell, the names of the columns, and the lines below, each its name and its cells.

    Lines of the names `short` may end early, as in files written by hand; empty cells follow.
    """
    lines = csv_lines(Path(path), sheet)
    if len(lines) < 2 or len(lines[0][1]) < 2:
        raise ProblemError(
            f"{str(path)!r} needs a header that names the columns and then rows that begin with their name, "
            f"got {len(lines)} lines and a header of {len(lines[0][1]) if lines else 0} cells; commas, "
            "semicolons or tabs separate cells"
        )
    width = max(max((i for i, cell in enumerate(row, 1) if cell.strip()), default=0) for _, row in lines)
    lines = [(number, row[: max(width, 2)]) for number, row in lines]  # empty columns at the end go
    first, header = lines[0]
    if not any(cell.strip() for cell in header[1:]):
        raise ProblemError(
            f"line {first} of {str(path)!r} has to name the columns, got {header[0]!r} alone; if that is a "
            "heading, delete the lines above the names of the columns"
        )
    nameless = {i for i, cell in enumerate(header) if i and not cell.strip()}
    for number, row in lines[1:]:
        for i, cell in enumerate(row):
            if i in nameless and cell.strip():
                raise ProblemError(
                    f"line {number} of {str(path)!r} has {cell!r} in column {i + 1}, which has no name in "
                    f"line {first}; name the column, or empty it"
                )
    lines = [(number, [cell for i, cell in enumerate(row) if i not in nameless]) for number, row in lines]
    columns = tuple(cell.strip() for cell in lines[0][1][1:])
    for number, row in lines[1:]:
        if row[0].strip().lower() in short:
            row += [""] * (len(columns) + 1 - len(row))
        if len(row) != len(columns) + 1:
            raise ProblemError(
                f"line {number} of {str(path)!r} has {len(row)} cells, the header has {len(columns) + 1}; "
                "end it with commas, so that every column has a cell; an empty one is 0"
            )
    return header[0].strip(), columns, [(number, [cell.strip() for cell in row]) for number, row in lines[1:]]


def csv_lines(path: Path, sheet: str | None = None) -> Lines:
    """Return the lines of a CSV or Excel file that are not blank, with their numbers in the file.

    Commas separate cells; or semicolons or tabs, as spreadsheets write them where numbers have a comma. A
    decimal comma becomes a point where it can be nothing else; where semicolons separate, it always does. A
    byte-order mark is skipped.
    """
    refuse_endless(path)
    if path.suffix.lower() in SHEETS:
        return _sheet_lines(path, sheet)
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            header = next((line for line in stream if line.strip()), "")
            separator = max(",;\t", key=header.count)  # of equals the first
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
    decimal = separator == ";"  # which stands between cells because the comma stands within numbers
    below = ((number, [_with_point(cell, decimal) for cell in row]) for number, row in lines[1:])
    return [*lines[:1], *below]


def as_cell(text: str) -> str:
    """Return the text as a cell that no spreadsheet takes for a formula; `from_cell` inverts it.

    What begins with = + - @ or white space gets an apostrophe before it; numbers are not to come here.

    >>> as_cell("=1+1"), as_cell("tea"), from_cell(as_cell("'=1+1"))
    ("'=1+1", 'tea', "'=1+1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def from_cell(cell: str) -> str:
    """Return the text that `as_cell` made this cell of, or a person wrote."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def refuse_endless(path: Path) -> None:
    """Refuse what has no end, such as /dev/zero, or is too large to be read whole, before it is read."""
    try:
        found = path.stat()
    except OSError:
        return  # opening it says why
    except ValueError:
        raise ProblemError(f"{str(path)!r} is no name of a file: it has a NUL character") from None
    if stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode):
        raise ProblemError(f"{str(path)!r} is a device, not a file; name a file")
    if found.st_size > LARGEST:
        raise ProblemError(
            f"{str(path)!r} has {found.st_size:,} bytes, too many to read it whole; give a file of at most "
            f"{LARGEST:,} bytes"
        )


def _with_point(cell: str, comma_is_decimal: bool) -> str:
    """Return the cell, with a decimal point where it is a number with a decimal comma."""
    try:
        numeral(cell, comma_is_decimal=comma_is_decimal)
    except ParameterError:
        return cell
    return cell.replace(",", ".")


def _sheet_lines(path: Path, name: str | None) -> Lines:
    """Return the lines of this sheet of a workbook, the first unless named, as a CSV file would have them."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_extra("openpyxl", "sheets") from None
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > MOST_UNPACKED:
            raise ProblemError(
                f"{str(path)!r} unpacks to {size / 1e6:,.0f} MB, more than the {MOST_UNPACKED / 1e6:,.0f} MB "
                "that a table may have; save the sheet as CSV"
            )
        books = [load_workbook(path, data_only=known) for known in (True, False)]
        if name is not None and name not in books[0].sheetnames:
            raise ProblemError(
                f"there is no sheet {name!r}; {suggestion(name, books[0].sheetnames)}", field="sheet"
            )
        values, formulas = (book.worksheets[0] if name is None else book[name] for book in books)
    except ProblemError:
        raise
    except OSError as error:
        raise ProblemError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except Exception as error:  # a workbook may be damaged in more ways than openpyxl has errors for
        raise ProblemError(f"{str(path)!r} is not an Excel workbook (.xlsx): {error}") from None
    if values.merged_cells.ranges:
        raise ProblemError(
            f"{str(path)!r} has merged cells, {next(iter(values.merged_cells.ranges))}, of which one has the "
            "value and the others are empty; unmerge them and fill each in"
        )
    # The cells that the file has, by row and column: `iter_rows` would make every cell up to the last one,
    # which may be a formatted blank cell in row 1,048,576.
    for where, cell in formulas._cells.items():
        if cell.data_type == "f" and (where not in values._cells or values._cells[where].value is None):
            raise ProblemError(
                f"cell {cell.coordinate} of {str(path)!r} is a formula without a computed value; open "
                "the file in a spreadsheet, save it, and try again"
            )
    filled = {where: text for where, cell in values._cells.items() if (text := _cell_text(cell))}
    rows = sorted({row for row, _ in filled})
    width = max((column for _, column in filled), default=0)
    if len(rows) * width > MOST_CELLS:
        raise ProblemError(
            f"{str(path)!r} has {len(rows):,} rows and {width:,} columns, more than {MOST_CELLS:,} cells; "
            "delete what is not part of the table"
        )
    return [(row, [filled.get((row, column), "") for column in range(1, width + 1)]) for row in rows]


def _cell_text(cell: Any) -> str:
    """Return a cell as text from which the same number is read; a share shown as 10% is "10%"."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, int | float) and "%" in (cell.number_format or ""):
        return f"{100 * value:.15g}%"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return value.strip() if isinstance(value, str) else str(value)
