"""LP files: the part of the CPLEX LP format that linear and integer programs use.

Read are Maximize or Minimize, Subject To, Bounds, General (integer) and Binary sections and End; sums of
terms such as `3 x + 2.5 y`, with names for rows before a colon, comments after a backslash, and <=, >=, =
(also < and >) with a number on the right. Bounds are `x <= 4`, `x >= 1`, `1 <= x <= 4`, `x = 2` and `x free`.
Anything else (quadratic terms, constants in a sum, SOS, semi-continuous variables) is refused, never ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from surepick.errors import FileError
from surepick.problems.files.section import read_text
from surepick.problems.program import Program

SECTIONS = {
    "maximize": "max",
    "maximise": "max",
    "maximum": "max",
    "max": "max",
    "minimize": "min",
    "minimise": "min",
    "minimum": "min",
    "min": "min",
    "subject to": "rows",
    "such that": "rows",
    "st": "rows",
    "s.t.": "rows",
    "bounds": "bounds",
    "bound": "bounds",
    "general": "whole",
    "generals": "whole",
    "gen": "whole",
    "integer": "whole",
    "integers": "whole",
    "int": "whole",
    "binary": "binary",
    "binaries": "binary",
    "bin": "binary",
    "end": "end",
}
NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
NAME = r"[A-Za-z_!\"#$%&()/,;?@`'{}|~][\w!\"#$%&()/,;?@`'{}|~.]*"
TERM = re.compile(rf"\s*([+-]?)\s*({NUMBER})?\s*\*?\s*({NAME})")
ROW = re.compile(r"(?:(?P<name>[^:<>=]+):)?(?P<sum>[^<>=]+)(?P<sense><=|=<|>=|=>|<|>|=)(?P<right>[^<>=]+)$")
BOUND = re.compile(
    r"(?:(?P<low>[+-]?(?:[\d.]\S*|inf\w*))\s*(?:<=|=<|<)\s*)?(?P<name>[^\s<>=]+)\s*"
    r"(?:(?P<sense><=|=<|>=|=>|<|>|=)\s*(?P<high>\S+))?$"
)


def read_lp(path: str | Path) -> Program:
    """The program in an LP file.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two.lp"
    >>> _ = file.write_text("Maximize\\n yield: 3 x + 4 y\\nSubject To\\n wood: x + 2 y <= 8\\nEnd\\n")
    >>> program = read_lp(file)
    >>> program.variable_names, program.objective.tolist(), program.row_upper.tolist(), program.minimize
    (('x', 'y'), [3.0, 4.0], [8.0], False)
    """
    file = Path(path)
    return _Reader(file).read(read_text(file))


@dataclass
class _Reader:
    """What was read so far; changed statement by statement, by `read` alone."""

    path: Path
    minimize: bool | None = None
    objective: dict[str, float] = field(default_factory=dict)
    rows: list[tuple[dict[str, float], str, float]] = field(default_factory=list)
    lower: dict[str, float] = field(default_factory=dict)
    upper: dict[str, float] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)

    def read(self, text: str) -> Program:
        for section, statement in self._statements(text):
            if section in ("max", "min"):
                self.minimize = section == "min"
                self.objective = self._sum(statement.rpartition(":")[2])
            elif section == "rows":
                self._row(statement)
            elif section == "bounds":
                self._bound(statement)
            else:
                self._kinds(statement.split(), section)
        return self._program()

    def _statements(self, text: str) -> list[tuple[str, str]]:
        """The statements with their sections; a sum may run over several lines until its sense and number."""
        section, pending = "", ""
        found: list[tuple[str, str]] = []
        for raw in text.splitlines():
            line = raw.partition("\\")[0].strip()
            new = SECTIONS.get(" ".join(line.lower().split()))
            if new is not None:
                if pending:
                    found.append((section, pending))
                section, pending = new, ""
                if section == "end":
                    return found
            elif line and not section:
                raise self._wrong(f"it begins with {line!r} instead of Maximize or Minimize")
            elif line:
                pending = f"{pending} {line}".strip()
                if section in ("bounds", "whole", "binary") or (section == "rows" and ROW.match(pending)):
                    found.append((section, pending))
                    pending = ""
        raise self._wrong("it ends without End; it may have been cut off")

    def _wrong(self, what: str) -> FileError:
        return FileError(f"{str(self.path)!r} cannot be read as an LP file: {what}")

    def _sum(self, text: str) -> dict[str, float]:
        terms: dict[str, float] = {}
        at = 0
        while at < len(text.rstrip()):
            match = TERM.match(text, at)
            if match is None or (terms and not match[1]):
                raise self._wrong(f"expected a sum of terms such as 3 x + 2 y, got {text.strip()!r}")
            value = float(match[2] or 1) * (-1 if match[1] == "-" else 1)
            terms[match[3]] = terms.get(match[3], 0.0) + value
            at = match.end()
        return terms

    def _row(self, statement: str) -> None:
        match = ROW.match(statement)
        if match is None:
            raise self._wrong(f"expected a constraint such as wood: x + 2 y <= 8, got {statement!r}")
        self.rows.append((self._sum(match["sum"]), match["sense"], self._number(match["right"])))

    def _number(self, text: str) -> float:
        try:
            return float(text.replace(" ", ""))
        except ValueError:
            raise self._wrong(f"expected a number, got {text.strip()!r}") from None

    def _bound(self, statement: str) -> None:
        if statement.lower().endswith(" free"):
            name = statement[:-5].strip()
            self.lower[name], self.upper[name] = -np.inf, np.inf
            return
        match = BOUND.match(statement)
        if match is None or (match["low"] is None and match["high"] is None):
            raise self._wrong(f"expected a bound such as 1 <= x <= 4, got {statement!r}")
        name = match["name"]
        if match["low"] is not None:
            self.lower[name] = self._number(match["low"])
        if match["high"] is not None:
            value, sense = self._number(match["high"]), match["sense"]
            if "<" in sense or sense == "=":
                self.upper[name] = value
            if ">" in sense or sense == "=":
                self.lower[name] = value

    def _kinds(self, names: list[str], section: str) -> None:
        self.whole.update(names)
        if section == "binary":
            self.lower.update(dict.fromkeys(names, 0.0))
            self.upper.update(dict.fromkeys(names, 1.0))

    def _program(self) -> Program:
        if self.minimize is None or not self.objective:
            raise self._wrong("it has no objective; begin with Maximize or Minimize and a sum")
        terms = [self.objective, *(row for row, _, _ in self.rows)]
        names = tuple(dict.fromkeys(name for row in terms for name in row))
        unknown = [name for name in [*self.lower, *self.upper, *self.whole] if name not in names]
        if unknown:
            raise self._wrong(f"variable {unknown[0]!r} has a bound or a kind but is in no sum")
        matrix = np.array([[row.get(name, 0.0) for name in names] for row, _, _ in self.rows])
        return Program(
            matrix.reshape(len(self.rows), len(names)),
            np.array([-np.inf if "<" in sense else right for _, sense, right in self.rows]),
            np.array([np.inf if ">" in sense else right for _, sense, right in self.rows]),
            np.array([self.lower.get(name, 0.0) for name in names]),
            np.array([self.upper.get(name, np.inf) for name in names]),
            np.array([name in self.whole for name in names]),
            np.array([self.objective.get(name, 0.0) for name in names]),
            names,
            self.minimize,
        )
