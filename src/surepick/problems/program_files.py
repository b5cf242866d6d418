"""MPS and LP files of linear and integer programs: read by HiGHS, after a check of every statement.

HiGHS takes much that it cannot read for something else, without a word: in an MPS file the number `six` for 0
and OBJSENSE MAXIMIZE for minimising, in an LP file `10 <= x + y <= 40` for two other constraints and a
variable `nancy` for nan times `cy`. So the text has to follow the grammar below first, and the variables of
its sums have to come back. Refused as well is what a `Program` cannot hold (quadratic terms, semi-continuous
variables, a constant in the objective), and everything that HiGHS warns of.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surepick.errors import FileError, ProblemError, missing_extra
from surepick.problems.kinds.program import Program
from surepick.tables import refuse_endless

_NUMBER = r"(?>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)"
_SIGNED = rf"[+-]?\s*(?:{_NUMBER}|inf(?:inity)?)"

# By section of an MPS file: what a line there holds, and an example.
_PAIRS = rf"\S+\s+{_SIGNED}(?:\s+\S+\s+{_SIGNED})?"
_SET = r"(?:(?P<set>\S+)\s+)?"
_MPS_LINES = {
    "OBJSENSE": (r"MAX(?:IMIZE)?|MIN(?:IMIZE)?", "MAX"),
    "ROWS": (r"[NELG]\s+\S+", "L wood"),
    "COLUMNS": (rf"\S+\s+'MARKER'\s+'(?P<marker>INT(?:ORG|END))'|(?P<column>\S+)\s+{_PAIRS}", "x wood 2.5"),
    "RHS": (_SET + _PAIRS, "RHS wood 8"),
    "RANGES": (_SET + _PAIRS, "RNG wood 3"),
    "BOUNDS": (
        rf"(?P<kind>FR|MI|PL|BV|(?P<value>UP|LO|FX|LI|UI))\s+{_SET}(?P<bounded>\S+)(?(value)\s+{_SIGNED})",
        "UP BND x 4, its kind one of UP, LO, FX, LI, UI, FR, MI, PL, BV",
    ),
}
_MPS_SECTION = r"OBJSENSE\s+(?:MAX|MIN)|\S+"

# By the words that open a section of an LP file: what a statement there looks like, and an example.
_NAME = r"(?!inf|nan|free\b)[^\W\d][\w.()#$%&!'@~{}|?,]*+"
_TERM = rf"(?:{_NUMBER}\s*)?{_NAME}"
_SUM = rf"(?:{_NAME}\s*:)?\s*(?P<sum>[+-]?\s*{_TERM}(?:\s*[+-]\s*{_TERM})*+)"
_LP_SECTIONS = {
    "max|maximum|maximize|min|minimum|minimize": (rf"{_SUM}\s*\Z", "profit: 3 x + 2 y"),
    r"subject\s+to|such\s+that|st|s\.t\.": (rf"{_SUM}\s*(?:<=|>=|=)\s*{_SIGNED}", "wood: x + 2 y <= 8"),
    "bounds?": (
        rf"{_SIGNED}\s*<=\s*{_NAME}(?:\s*<=\s*{_SIGNED})?|{_NAME}(?:\s*(?:<=|>=|=)\s*{_SIGNED}|\s+free)",
        "1 <= x <= 4",
    ),
    "generals?|gen|integers?": (rf"(?P<whole>{_NAME}(?:\s+{_NAME})*+)", "x y"),
    "binary|binaries|bin": (rf"(?P<binary>{_NAME}(?:\s+{_NAME})*+)", "x y"),
    "end": ("(?!)", "nothing"),
}
_OBJECTIVE, _END = next(iter(_LP_SECTIONS)), "end"


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, or a clear error that names it."""
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
    """The program in an MPS file (ending in .mps) or an LP file (.lp).

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two.lp"
    >>> _ = file.write_text("Maximize\\n yield: 3 x + 4 y\\nSubject To\\n wood: x + 2 y <= 8\\nEnd\\n")
    >>> program = read_program(file)
    >>> program.variable_names, program.objective.tolist(), program.row_upper.tolist(), program.goal
    (('x', 'y'), [3.0, 4.0], [8.0], 'largest')
    """
    file = Path(path)
    checks = {".mps": _check_mps, ".lp": _check_lp}
    if file.suffix.lower() not in checks:
        raise ProblemError(f"a program file ends in .mps or .lp, got {str(path)!r}")
    try:
        said = checks[file.suffix.lower()](read_text(file))
        return _program(_read_by_highs(file), said)
    except _UnreadError as error:
        raise FileError(f"{str(file)!r} cannot be read: {error}") from None


class _UnreadError(ValueError):
    """What is wrong with the text; `read_program` adds the file."""


@dataclass
class _Variables:
    """What the text says of its variables, to be compared with what HiGHS has read in it."""

    in_sums: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    binary: set[str] = field(default_factory=set)


def _check_mps(text: str) -> _Variables:
    """Refuse the first line that its section does not have, and what HiGHS would take for something else."""
    said, bounded, sets = _Variables(), set[str](), dict[str, str]()
    section, order, in_whole = "", list(_MPS_LINES), False
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip()
        if not words or line.startswith("*"):
            continue
        if not line[0].isspace():
            section = _mps_section(words, number, order)
            if section == "ENDATA":
                break
            order = order if section == "NAME" else order[order.index(section) + 1 :]
            continue
        part = _mps_line(words, number, section)
        in_whole = part["marker"].upper() == "INTORG" if part.get("marker") else in_whole
        said.in_sums |= {part.get("column", "")} - {""}
        if in_whole or part.get("kind", "").upper() in ("BV", "LI", "UI"):
            said.whole |= {part.get("column", ""), part.get("bounded", "")} - {""}
        bounded.add(part.get("bounded", ""))
        name = part.get("set", "")
        if "set" in part and (name in said.in_sums or sets.setdefault(section, name) != name):
            raise _UnreadError(f"line {number}: {section} has a second set, {name!r}; keep one of them")
    else:
        raise _UnreadError("it ends without ENDATA; it may have been cut off")
    if open_ := said.whole - bounded:
        raise _UnreadError(
            f"the integer variable {min(open_)!r} has no bounds, which HiGHS takes for 0 or 1 and others for "
            "any number; give it a line in BOUNDS, such as PL for no upper bound"
        )
    return said


def _mps_section(words: str, number: int, order: list[str]) -> str:
    """The section that this line opens, if it may come now."""
    section = words.split()[0].upper()
    is_one = section in order and re.fullmatch(_MPS_SECTION, words, re.IGNORECASE)
    if section not in ("NAME", "ENDATA") and not is_one:
        raise _UnreadError(
            f"line {number}: section {words!r} is not read here; it reads, in this order, NAME, "
            f"{', '.join(_MPS_LINES)}, ENDATA"
        )
    return section


def _mps_line(words: str, number: int, section: str) -> dict[str, str]:
    """The parts of a line of this section, if it has its form."""
    form, example = _MPS_LINES.get(section, ("(?!)", "nothing"))
    match = re.fullmatch(form, words, re.IGNORECASE)
    if match is None or words.split()[0].upper() == "NAME":
        raise _UnreadError(f"line {number}: got {words!r}; a line of {section} is like {example}")
    return {key: text or "" for key, text in match.groupdict().items()}


def _check_lp(text: str) -> _Variables:
    """Refuse the first statement that its section does not have."""
    said, opened, flags = _Variables(), list[str](), re.IGNORECASE | re.MULTILINE
    plain = re.sub(r"\\.*", "", text)
    before, *parts = re.split(rf"^[ \t]*({'|'.join(_LP_SECTIONS)})[ \t]*$", plain, flags=flags)
    for word, body in zip(parts[::2], parts[1::2], strict=True):
        opened.append(next(head for head in _LP_SECTIONS if re.fullmatch(head, word, re.IGNORECASE)))
        form, example = _LP_SECTIONS[opened[-1]]
        statement, nothing, at = re.compile(rf"\s*(?:{form})[ \t]*$", flags), re.compile(r"\s*\Z"), 0
        while not nothing.match(body, at):
            match = statement.match(body, at)
            if match is None:
                line = body[at:].strip().splitlines()[0]
                raise _UnreadError(f"got {line!r}; a statement of {word} is like {example}")
            part, at = match.groupdict(), match.end()
            names = re.findall(rf"(?:{_NUMBER}\s*)?({_NAME})", part.get("sum") or "", re.IGNORECASE)
            if len(set(names)) < len(names):
                raise _UnreadError(f"a variable is twice in the sum {part['sum']!r}; add its numbers up")
            said.in_sums.update(names)
            said.binary.update((part.get("binary") or "").split())
            said.whole.update(said.binary, (part.get("whole") or "").split())
    if before.strip() or opened[:1] != [_OBJECTIVE] or opened.count(_OBJECTIVE) > 1 or not parts[1].strip():
        raise _UnreadError("it must begin with Maximize or Minimize and a sum such as 3 x + 2 y, once")
    if opened[-1] != _END or opened.count(_END) > 1:
        raise _UnreadError("it ends without End; it may have been cut off")
    return said


def _read_by_highs(file: Path) -> Any:
    """The model that HiGHS reads in the file, if it does so without a complaint."""
    try:
        import highspy
    except ImportError:
        raise missing_extra("highspy", "problems") from None
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    complaints: list[str] = []

    def listen(event: Any) -> None:
        if event.message.startswith(("WARNING", "ERROR")):
            complaints.append(" ".join(event.message.partition(":")[2].split()))

    highs.setOptionValue("log_to_console", False)
    highs.setOptionValue("log_file", os.devnull)  # without a place to log to, HiGHS before 1.14 says nothing
    highs.cbLogging.subscribe(listen)
    if highs.readModel(str(file)) != highspy.HighsStatus.kOk or complaints:
        raise _UnreadError(f"HiGHS says: {complaints[0] if complaints else 'not a program'}; correct it")
    return highs.getModel()


def _program(model: Any, said: _Variables) -> Program:
    """The model as a program, if it is one and has the variables that the text has."""
    import highspy
    from scipy.sparse import csc_array

    lp, table = model.lp_, model.lp_.a_matrix_
    names, kinds = tuple(lp.col_names_), [int(kind) for kind in lp.integrality_] or [0] * lp.num_col_
    shape = lp.num_row_, lp.num_col_
    program = Program(
        csc_array((table.value_, table.index_, table.start_), shape=shape).toarray(),
        np.array(lp.row_lower_, dtype=float),
        np.array(lp.row_upper_, dtype=float),
        np.array(lp.col_lower_, dtype=float),
        np.array(lp.col_upper_, dtype=float),
        np.array(kinds) == int(highspy.HighsVarType.kInteger),
        np.array(lp.col_cost_, dtype=float),
        names,
        "smallest" if lp.sense_ == highspy.ObjSense.kMinimize else "largest",
    )
    if not names:
        raise _UnreadError("it has no variables; there is nothing to choose")
    if unsaid := set(names) ^ said.in_sums:
        raise _UnreadError(f"the variable {min(unsaid)!r} has a bound or a kind but is in no sum")
    if model.hessian_.dim_ or not np.isfinite([*program.objective, *table.value_]).all():
        raise _UnreadError("a sum has quadratic terms or numbers that are not finite; leave them out")
    if max(kinds) > 1:
        name = names[int(np.argmax(kinds))]
        raise _UnreadError(f"{name!r} is semi-continuous or semi-integer; bound it instead")
    if unclear := {name for name, whole in zip(names, program.whole, strict=True) if whole} ^ said.whole:
        raise _UnreadError(f"it is not clear whether {min(unclear)!r} is an integer variable; say so once")
    if lp.offset_:
        raise _UnreadError("a constant in the objective is not read; it changes no decision, leave it out")
    if wide := {name for name, most in zip(names, program.upper, strict=True) if most > 1} & said.binary:
        raise _UnreadError(
            f"{min(wide)!r} is binary and has other bounds than 0 and 1; leave one of them out"
        )
    return program
