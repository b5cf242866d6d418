"""MPS files: the part of the format that linear and integer programs use.

Read are the sections NAME, OBJSENSE, ROWS (N, E, L, G), COLUMNS with INTORG and INTEND markers, RHS, RANGES,
BOUNDS (UP, LO, FX, FR, MI, PL, BV, LI, UI) and ENDATA, with words separated by blanks (free format, or fixed
format whose names have no blanks), and comments that begin with *. The first N row is the objective, others
are dropped; of several right-hand sides, ranges or bound sets the first counts. Anything else (SOS, quadratic
terms, negative upper bounds without a lower one) is refused, never ignored. Integer variables without bounds
are 0 or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from surepick.errors import FileError
from surepick.problems.files.section import read_text
from surepick.problems.program import Program

SECTIONS = ("NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")


def read_mps(path: str | Path) -> Program:
    """The program in an MPS file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two.mps"
    >>> rows, columns = "ROWS\\n N yield\\n L wood\\n", "COLUMNS\\n x yield 3 wood 2\\n"
    >>> _ = file.write_text(rows + columns + "RHS\\n b wood 8\\nENDATA\\n")
    >>> program = read_mps(file)
    >>> program.variable_names, program.row_upper.tolist(), program.minimize
    (('x',), [8.0], True)
    """
    file = Path(path)
    return _Reader(file).read(read_text(file))


@dataclass
class _Reader:
    """What was read so far; changed line by line, by `read` alone."""

    path: Path
    minimize: bool = True
    objective: str | None = None
    senses: dict[str, str] = field(default_factory=dict)  # of the constraints, in their order
    dropped: set[str] = field(default_factory=set)  # N rows after the first
    columns: dict[str, dict[str, float]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    right: dict[str, float] = field(default_factory=dict)
    ranges: dict[str, float] = field(default_factory=dict)
    lower: dict[str, float] = field(default_factory=dict)
    upper: dict[str, float] = field(default_factory=dict)
    in_whole: bool = False
    number: int = 0
    first_set: dict[str, str] = field(default_factory=dict)  # the name of the set that counts, by section

    def read(self, text: str) -> Program:
        section = ""
        readers: dict[str, Callable[[list[str]], None]] = {
            "OBJSENSE": self._sense,
            "ROWS": self._row,
            "COLUMNS": self._column,
            "RHS": lambda words: self._amounts("RHS", self.right, words),
            "RANGES": lambda words: self._amounts("RANGES", self.ranges, words),
            "BOUNDS": self._bound,
        }
        for self.number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if not words or line.startswith("*"):
                continue
            if not line[0].isspace():
                section = self._section(words, readers)
                if section == "ENDATA":
                    return self._program()
            elif section in readers:
                readers[section](words)
            else:
                raise self._wrong(f"a line outside the sections {', '.join(SECTIONS)}: {line.strip()!r}")
        raise self._wrong("the file ends without ENDATA; it may have been cut off")

    def _wrong(self, what: str) -> FileError:
        return FileError(f"line {self.number} of {str(self.path)!r}: {what}")

    def _section(self, words: list[str], readers: dict[str, Callable[[list[str]], None]]) -> str:
        name = words[0].upper()
        if name not in SECTIONS:
            raise self._wrong(f"section {words[0]!r} is not read; known are {', '.join(SECTIONS)}")
        if name == "OBJSENSE" and len(words) > 1:
            self._sense(words[1:])
        return name

    def _sense(self, words: list[str]) -> None:
        if words[0].upper() not in ("MAX", "MAXIMIZE", "MIN", "MINIMIZE"):
            raise self._wrong(f"OBJSENSE is MAX or MIN, got {words[0]!r}")
        self.minimize = words[0].upper().startswith("MIN")

    def _row(self, words: list[str]) -> None:
        if len(words) != 2 or words[0].upper() not in ("N", "E", "L", "G"):
            raise self._wrong(f"a row is N, E, L or G and a name, got {' '.join(words)!r}")
        kind, name = words[0].upper(), words[1]
        if name in self.senses or name == self.objective or name in self.dropped:
            raise self._wrong(f"row {name!r} appears twice")
        if kind != "N":
            self.senses[name] = kind
        elif self.objective is None:
            self.objective = name
        else:
            self.dropped.add(name)

    def _column(self, words: list[str]) -> None:
        if len(words) == 3 and words[1].strip("'").upper() == "MARKER":
            self.in_whole = words[2].strip("'").upper() == "INTORG"
            return
        name, pairs = words[0], self._pairs(words[1:])
        entries = self.columns.setdefault(name, {})
        if self.in_whole:
            self.whole.add(name)
        for row, value in pairs:
            if row in entries:
                raise self._wrong(f"column {name!r} has two numbers in row {row!r}")
            entries[row] = value

    def _amounts(self, section: str, into: dict[str, float], words: list[str]) -> None:
        name, rest = (words[0], words[1:]) if len(words) % 2 else ("", words)
        if self.first_set.setdefault(section, name) != name:
            return
        for row, value in self._pairs(rest):
            if row == self.objective and value:
                raise self._wrong(
                    "a constant in the objective is not read; it changes no decision, leave it out"
                )
            into[row] = value

    def _pairs(self, words: list[str]) -> list[tuple[str, float]]:
        if not words or len(words) % 2:
            raise self._wrong(f"expected pairs of a row and a number, got {' '.join(words)!r}")
        rows, numbers = words[::2], words[1::2]
        for row in rows:
            if row not in self.senses and row != self.objective and row not in self.dropped:
                raise self._wrong(f"there is no row named {row!r}")
        return [
            (row, self._number(x)) for row, x in zip(rows, numbers, strict=True) if row not in self.dropped
        ]

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self._wrong(f"expected a number, got {text!r}") from None

    def _bound(self, words: list[str]) -> None:
        kind = words[0].upper()
        needs_value = kind in ("UP", "LO", "FX", "LI", "UI")
        if not needs_value and kind not in ("FR", "MI", "PL", "BV"):
            raise self._wrong(f"bounds of kind {words[0]!r} are not read")
        names = words[1:-1] if needs_value else words[1:]
        if len(names) not in (1, 2):
            raise self._wrong(f"a bound is its kind, a set, a column and a number, got {' '.join(words)!r}")
        if len(names) == 2 and self.first_set.setdefault("BOUNDS", names[0]) != names[0]:
            return
        column = names[-1]
        if column not in self.columns:
            raise self._wrong(f"there is no column named {column!r}")
        self._set_bound(kind, column, self._number(words[-1]) if needs_value else 0.0)

    def _set_bound(self, kind: str, column: str, value: float) -> None:
        if kind in ("BV", "LI", "UI"):
            self.whole.add(column)
        if kind in ("UP", "UI") and value < 0 and column not in self.lower:
            raise self._wrong(f"the upper bound of {column!r} is negative; say its lower bound before it")
        low = {"LO": value, "LI": value, "FX": value, "FR": -np.inf, "MI": -np.inf, "BV": 0.0}
        high = {"UP": value, "UI": value, "FX": value, "FR": np.inf, "PL": np.inf, "BV": 1.0}
        if kind in low:
            self.lower[column] = low[kind]
        if kind in high:
            self.upper[column] = high[kind]

    def _program(self) -> Program:
        if self.objective is None or not self.columns:
            raise self._wrong("a program needs an N row (the objective) and at least one column")
        rows, names = list(self.senses), tuple(self.columns)
        entries = [[self.columns[name].get(row, 0.0) for name in names] for row in rows]
        limits = [self._limits(row) for row in rows]
        return Program(
            np.array(entries, dtype=float).reshape(len(rows), len(names)),
            np.array([low for low, _ in limits]),
            np.array([high for _, high in limits]),
            np.array([self.lower.get(name, 0.0) for name in names]),
            np.array([self.upper.get(name, np.inf) for name in names]),
            np.array([name in self.whole for name in names]),
            np.array([self.columns[name].get(self.objective, 0.0) for name in names]),
            names,
            self.minimize,
        )

    def _limits(self, row: str) -> tuple[float, float]:
        """The limits of a row; a range widens an inequality to the other side, an equation by its sign."""
        kind, right, width = self.senses[row], self.right.get(row, 0.0), self.ranges.get(row)
        if kind == "E":
            span = 0.0 if width is None else width
            return right + min(span, 0.0), right + max(span, 0.0)
        if kind == "L":
            return (-np.inf if width is None else right - abs(width)), right
        return right, (np.inf if width is None else right + abs(width))
