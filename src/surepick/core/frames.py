"""Data frames of any library: pandas by itself, others, such as polars and Arrow, through narwhals."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from surepick.core.arrays import FloatArray, labels_of
from surepick.core.tables import parse_cells
from surepick.errors import ParameterError, missing_extra

BACKENDS = ("pandas", "polars", "pyarrow")  # the first that is installed, unless one is asked for


def is_frame(given: object) -> bool:
    """Whether this is a data frame: a table whose columns have names.

    >>> is_frame([[1, 2]]), is_frame({"road": 1.0})
    (False, False)
    """
    if _is_pandas(given):
        return True
    has_columns = hasattr(given, "columns") or hasattr(given, "column_names")
    return has_columns and (hasattr(given, "__arrow_c_stream__") or hasattr(given, "__dataframe__"))


def frame_table(frame: Any) -> tuple[FloatArray, tuple[str, ...], tuple[str, ...] | None]:
    """The numbers of a data frame, the names of its columns, and those of its rows if it has any.

    Names of rows are the first column where that is text, unless the index of a pandas DataFrame has some.
    """
    columns, rows = frame_cells(frame)
    names = labels_of(frame) if _is_pandas(frame) else None
    if names is None and rows and isinstance(rows[0][0], str):
        names = tuple(str(row[0]) for row in rows)
        columns, rows = columns[1:], [row[1:] for row in rows]
    if names is None and _is_pandas(frame):
        names = tuple(map(str, frame.index))
    shown = names if names is not None else tuple(str(k) for k in range(len(rows)))
    return parse_cells(rows, columns, shown), columns, names


def make_frame(columns: Mapping[str, Sequence[Any]], backend: str | None) -> Any:
    """A data frame of these columns, of the library asked for, or else of the first that is installed."""
    known = [name for name in BACKENDS if importlib.util.find_spec(name) is not None]
    if backend is not None and backend not in BACKENDS:
        raise ParameterError(
            f"backend is one of {', '.join(map(repr, BACKENDS))}, got {backend!r}", field="backend"
        )
    chosen = backend or (known[0] if known else "pandas")
    if chosen not in known:
        raise ParameterError(
            f"a data frame of {chosen} needs that package; run: pip install {chosen}", field="backend"
        )
    if chosen == "pandas":
        import pandas as pd

        return pd.DataFrame(dict(columns))
    return (
        _narwhals()
        .from_dict({name: list(values) for name, values in columns.items()}, backend=chosen)
        .to_native()
    )


def _is_pandas(given: object) -> bool:
    return hasattr(given, "columns") and hasattr(given, "index") and hasattr(given, "to_numpy")


def frame_cells(frame: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The names of the columns of a data frame, and its rows as they are."""
    if _is_pandas(frame):
        return tuple(map(str, frame.columns)), [tuple(row) for row in frame.to_numpy(dtype=object)]
    table = _narwhals().from_native(frame, eager_only=True)
    return tuple(table.columns), list(table.rows())


def _narwhals() -> Any:
    try:
        import narwhals
    except ImportError:
        raise missing_extra("narwhals", "frames") from None
    return narwhals
