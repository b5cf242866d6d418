"""MPS files of linear and integer programs, read strictly: what is not plain is refused with its line.

Read are the sections below, in this order, with fields between blanks. Readers disagree about what else is
found in such files (negative upper bounds, integer variables without bounds, a second set of right-hand
sides), so that is refused too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.errors import FileError, ProblemError
from surepick.problems.kinds.program import Program
from surepick.tables import refuse_endless

# By section: what a line of it looks like.
_LINES = {
    "NAME": "nothing",
    "OBJSENSE": "MAX or MIN",
    "ROWS": "L wood, of kind N, E, L or G",
    "COLUMNS": "x wood 2.5",
    "RHS": "RHS wood 8",
    "RANGES": "RNG wood 3",
    "BOUNDS": "UP BND x 4, its kind one of UP, LO, FX, LI, UI, or FR, MI, PL, BV without a number",
    "ENDATA": "nothing",
}
_GOALS = {"MAX": "largest", "MAXIMIZE": "largest", "MIN": "smallest", "MINIMIZE": "smallest"}
_MARKERS = {"'INTORG'": True, "'INTEND'": False}
_WITH_NUMBER, _WITHOUT = ("UP", "LO", "FX", "LI", "UI"), ("FR", "MI", "PL", "BV")
_WHOLE = ("BV", "LI", "UI")  # bounds that make a variable an integer one
_INFINITE = 1e30  # what other programs write for infinity


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file; an error names the file."""
    try:
        refuse_endless(path)
        return path.read_text(encoding="utf-8-sig")
    except ProblemError as error:
        raise FileError(str(error), field=error.field) from None
    except OSError as error:
        raise FileError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"{str(path)!r} is not UTF-8 text; save it as UTF-8") from None


def read_program(path: str | Path) -> Program:
    """Return the program in an MPS file, which solvers and modelling languages write.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two.mps"
    >>> text = "ROWS\\n N cost\\n G need\\nCOLUMNS\\n x cost 3 need 1\\nRHS\\n need 8\\nENDATA\\n"
    >>> _ = file.write_text(text)
    >>> program = read_program(file)
    >>> program.variable_names, program.objective.tolist(), program.row_lower.tolist(), program.goal
    (('x',), [3.0], [8.0], 'smallest')
    """
    file = Path(path)
    if file.suffix.lower() != ".mps":
        raise ProblemError(f"a program file ends in .mps, got {str(path)!r}; save the program as MPS")
    # By section, and in it by column or by the name of a set: what the lines say, as `_entries` reads them.
    found: dict[str, dict[str, dict[Any, Any]]] = {section: {} for section in _LINES}
    section, in_marker, whole = "", False, set[str]()
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        words = line.split()
        if not words or line.startswith("*"):
            continue
        try:
            if not line[0].isspace():
                section = _next_section(section, words)
                words = words[1:] if section == "OBJSENSE" else []
            if "'MARKER'" in words:
                if in_marker == _MARKERS[words[-1]]:  # it begins again, or ends without having begun
                    raise ValueError("markers come in pairs, 'INTORG' before 'INTEND'")
                in_marker, words = not in_marker, []
            if words:
                owner, entries = _entries(section, words)
                own = found[section].setdefault(owner, {})
                if own.keys() & entries.keys() or (own and in_marker and owner not in whole):
                    raise ValueError(f"{owner or words[-1]!r} was here before; say it once, in one place")
                own |= entries
                whole |= {owner} if in_marker else set()
        except (LookupError, ValueError) as error:
            raise FileError(
                f"line {number} of {str(file)!r} is {line.strip()!r} ({error}); a line of "
                f"{section or 'an MPS file'} is like {_LINES.get(section, 'ROWS')}"
            ) from None
        if section == "ENDATA":
            break
    else:
        raise FileError(f"{str(file)!r} ends without ENDATA; it may have been cut off")
    try:
        return _program(found, whole)
    except ValueError as error:
        raise FileError(f"{str(file)!r} cannot be read: {error}") from None


def _next_section(now: str, words: list[str]) -> str:
    order, section = list(_LINES), words[0].upper()
    if section not in order[order.index(now) + 1 if now else 0 :]:
        raise ValueError(f"sections are, in this order, {', '.join(order)}")
    if len(words) > 1 and section not in ("NAME", "OBJSENSE"):
        raise ValueError("a section has a line of its own")
    return section


def _entries(section: str, words: list[str]) -> tuple[str, dict[Any, Any]]:
    """Return whose line it is (a column, or a set of right-hand sides, ranges or bounds) and what it says."""
    if section == "OBJSENSE":
        (word,) = words
        return "", {"goal": _GOALS[word.upper()]}
    if section == "ROWS":
        kind, name = words
        if kind.upper() not in ("N", "E", "L", "G"):
            raise ValueError(f"there is no kind of row {kind!r}")
        return "", {name: kind.upper()}
    if section == "BOUNDS":
        kind, *rest = words
        if kind.upper() not in (*_WITH_NUMBER, *_WITHOUT):
            raise ValueError(f"there is no kind of bound {kind!r}")
        value = _number(rest.pop()) if kind.upper() in _WITH_NUMBER else 0.0
        owner, name = rest if len(rest) == 2 else ("", *rest)
        return owner, {(name, kind.upper()): value}
    if section == "COLUMNS" and len(words) % 2 == 0:
        raise ValueError("expected a variable before its rows")
    owner, pairs = (words[0], words[1:]) if len(words) % 2 else ("", words)
    entries = {row: _number(word) for row, word in zip(pairs[::2], pairs[1::2], strict=True)}
    if (
        section not in ("COLUMNS", "RHS", "RANGES")
        or len(pairs) not in (2, 4)
        or 2 * len(entries) != len(pairs)
    ):
        raise ValueError("expected one or two rows, each with its number")
    return owner, entries


def _number(word: str) -> float:
    number = float(word)
    if not np.isfinite(number) or "_" in word:
        raise ValueError(f"{word!r} is no number")
    return number


def _program(found: dict[str, dict[str, dict[Any, Any]]], whole: set[str]) -> Program:
    """Return the program that the lines describe; the first row of kind N is its objective.

    `found` is what `read_program` has read, `whole` are the variables between markers of integer variables.
    """
    for section in ("RHS", "RANGES", "BOUNDS"):
        if len(found[section]) > 1:
            raise ValueError(f"{section} has several sets, {', '.join(map(repr, found[section]))}; keep one")
    kinds, columns = found["ROWS"].get("", {}), found["COLUMNS"]
    right, widths, bounds = (next(iter(found[s].values()), {}) for s in ("RHS", "RANGES", "BOUNDS"))
    free = [row for row, kind in kinds.items() if kind == "N"]
    if not free or not columns:
        raise ValueError("it needs a row of kind N for the objective, and columns")
    in_columns = {row for own in columns.values() for row in own}
    if lost := {*right, *widths} - (kinds.keys() - set(free)) | in_columns - kinds.keys():
        raise ValueError(
            f"there is no row {min(lost)!r}, or it is an objective and has a number on the right"
        )
    if lost := {name for name, _ in bounds} - columns.keys():
        raise ValueError(f"the variable {min(lost)!r} has a bound but is in no column")
    whole = whole | {name for name, kind in bounds if kind in _WHOLE}
    if lost := whole - {name for name, _ in bounds}:
        raise ValueError(
            f"the integer variable {min(lost)!r} has no bounds, which some take for 0 or 1 and others for "
            "any number; give it a line in BOUNDS, such as PL for no upper bound"
        )
    rows = [row for row in kinds if row not in free]
    limits = [_row_limits(kinds[row], right.get(row, 0.0), widths.get(row)) for row in rows]
    row_lower, row_upper = np.array(limits).reshape(-1, 2).T
    lower, upper = _variable_limits(list(columns), bounds)
    matrix = np.array([[own.get(row, 0.0) for own in columns.values()] for row in rows])
    return Program(
        matrix=matrix.reshape(-1, len(columns)),
        row_lower=row_lower,
        row_upper=row_upper,
        lower=lower,
        upper=upper,
        whole=np.isin(list(columns), list(whole)),
        objective=np.array([own.get(free[0], 0.0) for own in columns.values()]),
        variable_names=tuple(columns),
        goal=found["OBJSENSE"].get("", {}).get("goal", "smallest"),
    )


def _row_limits(kind: str, right: float, width: float | None) -> tuple[float, float]:
    """Return the least and the most of a row: its right-hand side, or a range of this width."""
    if kind == "E" and width is not None:
        return right + min(width, 0.0), right + max(width, 0.0)
    room = np.inf if width is None else abs(width)
    return {"L": (right - room, right), "G": (right, right + room), "E": (right, right)}[kind]


def _variable_limits(names: list[str], bounds: dict[tuple[str, str], float]) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper bounds, 0 and none by default; `bounds` are numbers by variable and kind."""
    limits = {name: [0.0, np.inf] for name in names}
    for (name, kind), number in bounds.items():
        low, high = limits[name]
        lows = {"LO": number, "LI": number, "FX": number, "FR": -np.inf, "MI": -np.inf}
        highs = {"UP": number, "UI": number, "FX": number, "BV": 1.0, "FR": np.inf, "PL": np.inf}
        limits[name] = [lows.get(kind, low), highs.get(kind, high)]
    for name, (low, high) in limits.items():
        if low > high:  # readers disagree about a negative upper bound without a lower one
            raise ValueError(f"the bounds of {name!r} leave nothing between {low:g} and {high:g}")
    table = np.array(list(limits.values()))
    table[np.abs(table) >= _INFINITE] *= np.inf
    return table[:, 0], table[:, 1]
