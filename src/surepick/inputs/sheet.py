"""A spreadsheet as a problem: a row for each plan, a column for each arm, and rows that say more.

The sheet becomes the document that a TOML file of `kind = "table"` would be, so that all checks are the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surepick.core.wording import shortened
from surepick.errors import FileError, ParameterError, ProblemError
from surepick.tables import SHEETS, named_rows, numeral

SUFFIXES = (".csv", ".tsv", *SHEETS)
# Rows that are no plans, by the name in their first cell; each is a key of problem files.
ROWS = (
    *("goal", "unit", "low", "high", "noise", "guess", "spread", "cost", "known", "measure"),
    *("delta", "epsilon", "budget", "truth"),
)
_WORDS = {
    "goal": ("smallest", "largest"),
    "measure": ("arms", "plan arms", "plan", "plans"),
    "unit": (),
}
_ALONE = ("delta", "epsilon", "budget")  # one number for the whole problem
_EACH = ("guess", "truth")  # one number per arm: a single one does not hold for all
_SHARES = ("noise", "spread")


def read_sheet(path: Path, sheet: str | None = None) -> dict[str, Any]:
    """Return the keys of the problem file that this CSV or Excel file stands for.

    The first column names the plans, the header the arms, after a word for a plan ("route"). An empty cell of
    a plan is 0. Rows named in `ROWS` say more, in any order. Every cell that cannot be read is listed in one
    error, with what to write.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "ways.csv"
    >>> _ = file.write_text("way,bus,walk\\ngoal,smallest\\nnoise,4,1\\nby bus,1,2\\non foot,,7\\n")
    >>> read_sheet(file)["plans"], read_sheet(file)["noise"], read_sheet(file)["goal"]
    ([[1.0, 2.0], [0.0, 7.0]], [4.0, 1.0], 'smallest')
    """
    try:
        noun, arms, rows = named_rows(path, short=ROWS, sheet=sheet)
    except ProblemError as error:
        raise FileError(str(error), field=error.field) from None
    reader = _Reader(arms)
    for number, (name, *cells) in rows:
        reader.row(number, name, cells)
    if "goal" not in reader.said:
        reader.wrong("A1", 'no row "goal": write a row goal,smallest or goal,largest', "goal")
    if reader.mistakes:
        shown = "".join(f"\n  {cell:<5} {what}" for cell, what, _ in reader.mistakes)
        count = len(reader.mistakes)
        cells_are = "1 cell" if count == 1 else f"{count} cells"
        raise FileError(f"{str(path)!r} has {cells_are} to correct:{shown}", field=reader.mistakes[0][2])
    return {
        "kind": "table",
        **({"noun": noun.lower()} if noun.isalpha() else {}),
        "plans": list(reader.plans.values()),
        "arms": list(arms),
        "plan_names": list(reader.plans),
        **reader.said,
    }


class _Reader:
    """Reads the rows of a sheet, one by one; keeps what they say, the plans, and every mistake."""

    def __init__(self, arms: tuple[str, ...]) -> None:
        self.arms = arms
        self.said: dict[str, Any] = {}
        self.plans: dict[str, list[float]] = {}
        self.mistakes: list[tuple[str, str, str]] = []  # the cell, what is wrong, the key

    def wrong(self, cell: str, what: str, field: str) -> None:
        """Note a mistake: the cell ("B3"), what is wrong with it, and the key that it is about."""
        self.mistakes.append((cell, what, field))

    def row(self, number: int, name: str, cells: list[str]) -> None:
        """Read a row of this name: a setting, or a plan with its amount of each arm."""
        key = name.strip().lower()
        if key in ROWS:
            if key in self.said:
                self.wrong(f"A{number}", f"there is a row {name!r} already; rename one", key)
                return
            self.said[key] = self._setting(key, number, cells)
        elif not any(cells):
            plain = "".join(letter for letter in key if letter.isalpha())
            meant = f"did you mean {plain}? Else delete" if plain in ROWS else "delete"
            self.wrong(
                f"A{number}",
                f"{shortened(repr(name), 60)} has no number beside it, so it is no plan; {meant} the row, or "
                "write how much of each arm it takes",
                "plans",
            )
        elif name in self.plans:
            self.wrong(f"A{number}", f"there is a plan {name!r} already; rename one", "plan_names")
        else:
            amounts = [self._number("plans", number, s, cell or "0") for s, cell in enumerate(cells)]
            self.plans[name] = amounts

    def _setting(self, key: str, number: int, cells: list[str]) -> Any:
        """Return the value of a setting, as a problem file has it: a word, one number, or one per arm."""
        filled = [s for s, cell in enumerate(cells) if cell]
        if key in _WORDS:
            return self._word(key, number, {cells[s] for s in filled})
        if key == "known":
            return {self.arms[s]: self._known(number, s, cells[s]) for s in filled}
        if key == "noise" and {cells[s] for s in filled} == {"unknown"}:
            return "unknown"
        if key in _ALONE or (len(filled) == 1 and len(cells) > 1 and key not in _EACH):
            if len(filled) != 1:
                self.wrong(f"B{number}", f"{key} is one number", key)
                return 0.0
            value = self._number(key, number, filled[0], cells[filled[0]])
            return int(value) if key == "budget" and float(value).is_integer() else value
        missing = [s for s, cell in enumerate(cells) if not cell]
        for s in missing:
            one = "" if key in _EACH else ", or one alone for all arms"
            self.wrong(
                f"{_column(s)}{number}", f"{key} of {self.arms[s]!r} is missing; write a number{one}", key
            )
        found = [0.0 if not cell else self._number(key, number, s, cell) for s, cell in enumerate(cells)]
        return {"means": found} if key == "truth" else found

    def _word(self, key: str, number: int, said: set[str]) -> str:
        """Return the one word that a row says; it must be one of `_WORDS` where these are known."""
        known = _WORDS[key]
        word = next(iter(said)) if len(said) == 1 else ""
        if not word or (known and word.lower() not in known):
            shown = " or ".join(map(repr, sorted(said))) or "nothing"
            expected = " or ".join(known) if known else "one unit for all arms, such as min"
            self.wrong(f"B{number}", f"{key} is {shown}; write {expected}", key)
            return known[0] if known else ""
        if key == "measure":
            return "plans" if word.lower() == "plan" else word.lower()
        return word.lower() if known else word

    def _known(self, number: int, s: int, cell: str) -> float | list[float]:
        """Return the mean in this cell, or the two ends of "11 to 14"."""
        ends = [self._number("known", number, s, end) for end in cell.split(" to ")]
        return ends[0] if len(ends) == 1 else ends

    def _number(self, key: str, number: int, s: int, cell: str) -> Any:
        """Return the number in this cell; a share such as "10%" stays one where it is of the guess."""
        text, is_share = cell.strip(), cell.strip().endswith("%")
        try:
            value = numeral(text.removesuffix("%").strip())
        except ParameterError as error:
            hint = "write 1 where the plan takes it once, nothing where it does not" if key == "plans" else ""
            self.wrong(
                f"{_column(s)}{number}", "; ".join(filter(None, [f"{self.arms[s]}: {error}", hint])), key
            )
            return 0.0
        if is_share and key in _SHARES:
            return text
        return value / 100 if is_share else value


def _column(s: int) -> str:
    """Return the letters that spreadsheets give to the column of this arm: B for the first.

    >>> _column(0), _column(25)
    ('B', 'AA')
    """
    letters, left = "", s + 1
    while left >= 0:
        letters, left = chr(65 + left % 26) + letters, left // 26 - 1
    return letters
