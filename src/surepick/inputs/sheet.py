"""A spreadsheet alone as a problem: a row for each plan, a column for each arm, and rows that say more.

The sheet becomes the document that a TOML file of `kind = "table"` would be, so that all checks are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surepick.core.tables import SHEETS, cell_number, named_rows
from surepick.core.wording import shortened
from surepick.errors import FileError, ParameterError, ProblemError

SUFFIXES = (".csv", ".tsv", *SHEETS)
# Rows that are no plans, by the name in their first cell: the key of a problem file that they stand for, and
# what they say.
ROWS = {
    "goal": ("goal", "smallest or largest is best"),
    "unit": ("unit", "of a measurement"),
    "guess": ("guess", "what each arm may be"),
    "spread": ("spread", "how far off that may be"),
    "noise": ("noise", "how much one measurement scatters"),
    "cost": ("cost", "of one measurement"),
    "low": ("low", "the least that a measurement can be"),
    "high": ("high", "the most that it can be: then no noise is needed"),
    "known": ("known", "means that need no measurement: 6, or 11 to 14"),
    "truth": ("truth", "means to rehearse with"),
}
GOALS = {"smallest", "largest"}

Row = list[str]


def read_sheet(path: Path, sheet: str | None = None) -> dict[str, Any]:
    """The keys of the problem file that this CSV or Excel file stands for.

    The first column names the plans, the header the arms; an empty cell of a plan is 0. Rows called goal,
    unit, guess, spread, noise, cost, low, high, known or truth, in any order, say more. Any other row without
    a number is refused. Without rows `noise`, or `low` and `high`, the noise scale is unknown and is learned.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "ways.csv"
    >>> _ = file.write_text("plan,bus,walk\\ngoal,smallest\\nnoise,4,1\\nby bus,1,2\\non foot,,7\\n")
    >>> read_sheet(file)["plans"], read_sheet(file)["noise"], read_sheet(file)["goal"]
    ([[1.0, 2.0], [0.0, 7.0]], [4.0, 1.0], 'smallest')
    """
    try:
        arms, rows = named_rows(path, short=ROWS, sheet=sheet)
    except ProblemError as error:
        raise FileError(str(error), field=error.field) from None
    said, plans = dict[str, Row](), dict[str, Row]()
    for number, (name, *cells) in rows:
        known = name.strip().lower() in ROWS
        key = name.strip().lower() if known else name
        if key in (said if known else plans):
            raise FileError(
                f"line {number} of {str(path)!r}: there is a row {name!r} already; rename one",
                field=ROWS[key][0] if known else "plan_names",
            )
        if not known and not any(cells):
            raise FileError(
                f"cell A{number} of {str(path)!r}: {shortened(repr(name), 60)} has no number beside it, "
                "so it is no plan. Delete the row, or write how much of each arm it takes (0 for none)",
                field="plans",
            )
        (said if known else plans)[key] = cells
    cells_of = _Sheet(path, arms)
    return {
        "kind": "table",
        "plans": [
            [cells_of.number("plans", name, s, cell, empty=0.0) for s, cell in enumerate(row)]
            for name, row in plans.items()
        ],
        "arms": list(arms),
        "plan_names": list(plans),
        "noise": "unknown",
        **{ROWS[key][0]: cells_of.meaning(key, row) for key, row in said.items()},
    }


class _Sheet:
    """Cells of one sheet; every mistake is named with file, row and column."""

    def __init__(self, path: Path, arms: tuple[str, ...]) -> None:
        self.path, self.arms = path, arms

    def meaning(self, key: str, row: Row) -> Any:
        """What the row of this name says."""
        if key in ("goal", "unit"):
            return self._word(key, row)
        if key == "noise" and self._said(row) == {"unknown"}:
            return "unknown"
        if key == "known":
            return {self.arms[s]: self._known(s, cell) for s, cell in enumerate(row) if cell}
        numbers = self._numbers(key, row)
        if key == "truth":
            return {"means": numbers}
        return numbers

    def number(self, field: str, name: str, s: int, cell: str, *, empty: float | None = None) -> float:
        """The number in this cell."""
        try:
            return cell_number(cell, empty)
        except ParameterError as error:
            amounts = (
                ""
                if empty is None
                else "; 1 says that the plan takes it once, an empty cell that it does not"
            )
            raise self._wrong(f"row {name!r}, column {self.arms[s]!r}: {error}{amounts}", field) from None

    def _known(self, s: int, cell: str) -> float | list[float]:
        """The mean in this cell, or the two ends of "11 to 14"."""
        ends = [self.number("known", "known", s, end) for end in cell.split(" to ")]
        return ends[0] if len(ends) == 1 else ends

    def _numbers(self, key: str, row: Row) -> float | list[float]:
        """A number for each arm, or the one that stands alone and is for all of them."""
        filled = [s for s, cell in enumerate(row) if cell]
        if len(filled) == 1 and len(row) > 1 and key not in ("guess", "truth"):
            return self.number(ROWS[key][0], key, filled[0], row[filled[0]])
        if len(filled) < len(row):
            missing = self.arms[next(s for s, cell in enumerate(row) if not cell)]
            one = "" if key in ("guess", "truth") else ", or one number alone for all of them"
            raise self._wrong(
                f"row {key!r} has no number for {missing!r}; it needs one for each arm{one}", ROWS[key][0]
            )
        return [self.number(ROWS[key][0], key, s, cell) for s, cell in enumerate(row)]

    def _word(self, key: str, row: Row) -> Any:
        said = self._said(row)
        if len(said) != 1:
            shown = ", ".join(map(repr, sorted(said))) or "nothing"
            hint = "'smallest' or 'largest'" if key == "goal" else "one unit for all arms, such as 'h'"
            raise self._wrong(
                f"row {key!r} says {shown}; it says {hint}, in one cell or in every one", ROWS[key][0]
            )
        word = said.pop()
        if key == "unit":
            return word
        if word.lower() not in GOALS:
            raise self._wrong(
                f"row 'goal' says {word!r}; it says 'smallest' or 'largest', whichever is best", ROWS[key][0]
            )
        return word.lower()

    def _said(self, row: Row) -> set[str]:
        return {cell for cell in row if cell}

    def _wrong(self, what: str, field: str) -> FileError:
        return FileError(f"{str(self.path)!r}: {what}", field=field)
