"""How plans are given: as a table of numbers, a data frame, or sums such as "2*tea + coffee"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, as_float, as_floats, row_keys
from surepick.core.given.numbers import LARGEST, labels_of
from surepick.errors import MissingExtraError, ProblemError, suggestion


def read_plans(
    plans: Any, given_arms: Sequence[str] | None
) -> tuple[Any, Sequence[str] | None, Sequence[str] | None]:
    """Return a float matrix, and the names of arms and of plans that came with it."""
    arms: Sequence[str] | None = None
    names: Sequence[str] | None = None
    if isinstance(plans, str) or hasattr(plans, "__fspath__"):
        raise ProblemError(f"plans are a table, not a file; use sp.load({str(plans)!r})", field="plans")
    if hasattr(plans, "tocsr"):
        matrix = sparse_matrix(plans)
    elif is_frame(plans):
        matrix, arms, names = frame_table(plans)
    elif are_expressions(plans):
        matrix, arms, names = read_expressions(plans, given_arms)
    else:
        matrix = dense_matrix(plans)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ProblemError(
            f"plans must be a table of shape (n_plans, n_arms), got shape {matrix.shape}", field="plans"
        )
    if isinstance(matrix, np.ndarray):
        matrix = matrix + 0.0  # a copy in which -0.0 has become 0.0, so that equal rows have equal bytes
    return matrix, arms, names


def dense_matrix(plans: Any) -> FloatArray:
    """Return a table of numbers as an array; refuse cells that are none."""
    if isinstance(plans, np.ma.MaskedArray):
        plans = np.ma.filled(plans.astype(float), np.nan)  # a masked cell is a missing number
    if isinstance(plans, np.ndarray) and plans.dtype.kind == "c":
        raise ProblemError(
            f"plans must be real numbers, got {plans.dtype}; pass plans.real if that is meant", field="plans"
        )
    matrix = as_floats(plans)
    if matrix is None:
        raise ProblemError(_why_no_table(plans), field="plans")
    return np.asarray(matrix, order="C")


def sparse_matrix(plans: Any) -> Any:
    """Return a sparse table as a csr_array without stored zeros."""
    from scipy import sparse

    matrix = sparse.csr_array(plans, dtype=float, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _why_no_table(plans: object) -> str:
    """Return why plans are no table of numbers: which row is no list, or which cell no number."""
    if not isinstance(plans, Sequence | np.ndarray):
        return f"plans must be a table of numbers, got {plans!r:.80}"
    for k, row in enumerate(plans):
        if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray):
            return f"row {k} of plans must be a list of numbers, got {row!r}"
        for s, cell in enumerate(row):
            if as_float(cell) is None:
                return f"row {k}, column {s} of plans: expected a number, got {cell!r}"
    lengths = sorted({len(row) for row in plans})
    return f"all rows of plans must have one number per arm, got rows of lengths {lengths}"


def refuse_non_finite(matrix: Any, arms: Sequence[str], names: Sequence[str]) -> None:
    """Refuse amounts that are not finite or too large, naming row and column."""
    data = matrix if isinstance(matrix, np.ndarray) else matrix.data
    wrong = ~(np.abs(data) <= LARGEST)
    if not wrong.any():
        return
    if isinstance(matrix, np.ndarray):
        k, s = np.argwhere(wrong)[0]
    else:
        at = int(np.flatnonzero(wrong)[0])
        k, s = int(np.searchsorted(matrix.indptr, at, side="right")) - 1, matrix.indices[at]
    found = matrix[k, s]
    limit = f"at most {LARGEST:g} in size (use another unit)" if np.isfinite(found) else "finite"
    raise ProblemError(
        f"row {names[k]!r}, column {arms[s]!r}: plans must be {limit}, got {found}", field="plans"
    )


def merge_duplicates(matrix: Any) -> tuple[Any, list[int], list[tuple[int, int]]]:
    """Return the distinct rows in their order, their indices, and (dropped, kept) pairs of indices."""
    first_of: dict[bytes, int] = {}
    firsts = [first_of.setdefault(key, k) for k, key in enumerate(row_keys(matrix))]
    twins = [(k, first) for k, first in enumerate(firsts) if first != k]
    keep = list(first_of.values())
    return (matrix[keep] if twins else matrix), keep, twins


def is_frame(given: object) -> bool:
    """Return whether this is a data frame of pandas or polars."""
    return hasattr(given, "columns") and (_is_pandas(given) or hasattr(given, "rows"))


def frame_table(frame: Any) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...] | None]:
    """Return the numbers of a data frame, the names of its columns, and those of its rows if it has any.

    An empty cell is 0, as in a spreadsheet. Names of rows are the first column where that is text, unless the
    index of a pandas DataFrame has some.
    """
    columns, rows = frame_cells(frame)
    names = labels_of(frame) if _is_pandas(frame) else None
    if names is None and rows and isinstance(rows[0][0], str):
        names = tuple(str(row[0]) for row in rows)
        columns, rows = columns[1:], [row[1:] for row in rows]
    if names is None and _is_pandas(frame):
        names = tuple(map(str, frame.index))
    numbers = np.zeros((len(rows), len(columns)))
    for k, row in enumerate(rows):
        for s, cell in enumerate(row):
            # empty: None, pandas' own marks, and nan, which is not equal to itself
            if cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell):
                continue
            number = as_float(cell)
            if number is None:
                row_name = names[k] if names is not None else str(k)
                raise ProblemError(
                    f"row {row_name!r}, column {columns[s]!r}: expected a number, got {cell!r}", field="plans"
                )
            numbers[k, s] = number
    return numbers, columns, names


def make_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """Return a pandas data frame of these columns."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a data frame needs pandas; run: pip install pandas") from None
    return pd.DataFrame(dict(columns))


def frame_cells(frame: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the names of the columns of a data frame, and its rows as they are."""
    rows = frame.to_numpy(dtype=object) if _is_pandas(frame) else frame.rows()
    return tuple(map(str, frame.columns)), [tuple(row) for row in rows]


def _is_pandas(given: object) -> bool:
    return hasattr(given, "columns") and hasattr(given, "index") and hasattr(given, "to_numpy")


_NUMBER = r"(?>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)"
_TIMES = r"(?>\s*(?:\*|·|×|x(?=[\s'\"`]))?\s*)"
_QUOTED = r"'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\"|`(?P<back>[^`]*)`"
_BARE = r"[^\W\d]\w*(?:[ .]+\w+)*"  # words, with single spaces or dots between them


def are_expressions(plans: object) -> bool:
    """Return whether plans are sums of arms: texts in a list, or by name texts or amounts of arms."""
    if isinstance(plans, Mapping):
        return bool(plans) and all(isinstance(plan, str | Mapping) for plan in plans.values())
    return isinstance(plans, list | tuple) and bool(plans) and all(isinstance(plan, str) for plan in plans)


def read_expressions(
    plans: Sequence[str] | Mapping[str, Any], arms: Sequence[str] | None
) -> tuple[FloatArray, list[str], list[str]]:
    """Return the amounts, one row per plan and one column per arm, the names of the arms and of the plans.

    If `arms` is None, the arms are all names that occur in a plan, in the order of their first occurrence.

    >>> amounts, arms, names = read_expressions(["2*tea + coffee", "coffee - 0.5 cocoa"], None)
    >>> amounts.tolist(), arms
    ([[2.0, 1.0, 0.0], [0.0, 1.0, -0.5]], ['tea', 'coffee', 'cocoa'])
    """
    given = plans.items() if isinstance(plans, Mapping) else zip(plans, plans, strict=True)
    named = {str(name): plan for name, plan in given}
    if len(named) < len(plans):
        raise ProblemError("two plans have the same name; leave one of them out", field="plans")
    read: dict[str, dict[str, float]] = {}
    for name, plan in named.items():
        try:
            if isinstance(plan, str):
                read[name] = amounts_in(name, plan, arms)
            else:
                read[name] = {str(arm): float(amount) for arm, amount in plan.items()}
        except ProblemError:  # it says what is wrong already, and is a ValueError
            raise
        except (TypeError, ValueError, OverflowError):
            raise ProblemError(
                f"plan {name!r} must have a number for each arm that it uses, got {plan!r}", field="plans"
            ) from None
    occurring = dict.fromkeys(arm for plan in read.values() for arm in plan)
    found = list(occurring if arms is None else arms)
    at = {arm: s for s, arm in enumerate(found)}
    matrix = np.zeros((len(read), len(found)))
    for k, (name, plan) in enumerate(read.items()):
        for arm, amount in plan.items():
            if arm not in at:
                raise ProblemError(
                    f"plan {name!r} names an unknown arm {arm!r}; {suggestion(arm, found)}", field="plans"
                )
            matrix[k, at[arm]] += amount
    return matrix, found, list(read)


def amounts_in(name: str, text: str, arms: Sequence[str] | None = None) -> dict[str, float]:
    """Return how often the plan uses each arm: numbers times names, added or subtracted.

    A name with other signs than letters, digits, spaces and dots stands in quotes; where the arms are known,
    their names are recognised as they are.

    >>> amounts_in("a", "2*tea + 'A -> B' - 0.5 tea")
    {'tea': 1.5, 'A -> B': 1.0}
    """
    longest_first = sorted(arms or (), key=len, reverse=True)
    known = rf"(?:{'|'.join(map(re.escape, longest_first))})(?!\w)" if longest_first else r"(?!)"
    number = rf"(?!{known})(?P<number>{_NUMBER}){_TIMES}"  # a known name may begin with digits
    term = re.compile(
        rf"\s*(?P<sign>[-+]?)\s*(?:{number})?(?:(?P<known>{known})|{_QUOTED}|(?P<bare>{_BARE}))\s*"
    )

    def expected(what: str, at: int) -> ProblemError:
        here = f"{text[at : at + 12]!r}" if at < len(text) else "its end"
        return ProblemError(
            f"plan {name!r}: expected {what} at {here} in {text!r}; a plan is written like 2*tea + coffee, "
            "and names with other signs than letters, digits and spaces stand in quotes",
            field="plans",
        )

    amounts: dict[str, float] = {}
    at = 0
    while at < len(text) or not amounts:
        found = term.match(text, at)
        if found is None:
            raise expected("a number times an arm", at)
        if amounts and not found["sign"]:
            raise expected("'+' or '-'", at)
        around = text[found.start("sign") - 1 : found.end("sign") + 1]
        if amounts and found["sign"] == "-" and not any(map(str.isspace, around)):
            raise expected("spaces around a minus that is not part of a name", at)
        named = (found[part] for part in ("known", "single", "double", "back", "bare"))
        arm = next(own for own in named if own is not None)
        amount = float(found["number"] or 1)
        amounts[arm] = amounts.get(arm, 0.0) + (-amount if found["sign"] == "-" else amount)
        at = found.end()
    return amounts
