"""The problem: which plans there are, what can be measured, how noisy and how dear it is."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from surepick.core.layout import Layout, located
from surepick.core.wording import plural
from surepick.errors import ProblemError, suggestion

if TYPE_CHECKING:
    import pandas as pd
    from scipy import sparse

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
Plans: TypeAlias = "FloatArray | sparse.csr_array"
Bounds: TypeAlias = "Sequence[float] | Sequence[Sequence[float]] | FloatArray"
P = TypeVar("P")
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")

DEFAULT_NOISE_SCALE = 1.0
ROUNDING = 1e-9  # of the width: how far a mean of measurements may lie outside its bounds by rounding


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem:
    """A choice between plans whose value is linear in quantities (arms) that can be measured with noise.

    `plans` is an array of shape (n_plans, n_arms), a SciPy sparse array, a pandas DataFrame (columns are
    arms, index is plans) or the path of a CSV file (header: arm names; first column: plan names). The value
    of plan k is the sum over arms of `plans[k, s] * mean_s`; the best plan has the largest value, or the
    smallest with `minimize=True`.

    `noise_scale` is the sub-Gaussian scale of one measurement (for Gaussian noise its standard deviation,
    for measurements in an interval of width w at most w/2): one number, one per arm, or None when it is
    unknown. `costs` is the price of one measurement of each arm. `bounds=(low, high)`, or one such pair per
    arm, says that measurements lie between them; half the width is then the noise scale (Hoeffding's lemma),
    which is left out, and values outside are refused.

    Plans that are equal in every arm are merged into the first of them; `duplicates` says which. The order
    of arms, and of the plans that remain, is the caller's.

    >>> import surepick as sp
    >>> problem = sp.Problem([[1, 0, 2], [0, 1, 2]], arm_names=["road", "rail", "depot"])
    >>> problem.n_plans, problem.n_arms, problem.relevant.tolist()
    (2, 3, [True, True, False])
    """

    plans: Plans  # (n_plans, n_arms), read-only, as the caller gave them
    noise_scale: FloatArray | None  # (n_arms,)
    costs: FloatArray  # (n_arms,)
    arm_names: tuple[str, ...]
    plan_names: tuple[str, ...]
    minimize: bool
    bounds: FloatArray | None  # (n_arms, 2) low and high; None: measurements may be any number
    duplicates: tuple[tuple[str, str], ...]  # (name merged away, name kept)
    relevant: BoolArray = field(repr=False)  # (n_arms,) arms on which at least two plans differ
    layout: Layout | None = None  # how to draw a plan; decides nothing

    def __init__(
        self,
        plans: npt.ArrayLike | sparse.sparray | pd.DataFrame | str | Path,
        *,
        noise_scale: float | Sequence[float] | FloatArray | None = DEFAULT_NOISE_SCALE,
        costs: float | Sequence[float] | FloatArray | None = None,
        arm_names: Sequence[str] | None = None,
        plan_names: Sequence[str] | None = None,
        minimize: bool = False,
        bounds: Bounds | None = None,
        layout: Layout | None = None,
    ) -> None:
        matrix, found_arms, found_plans = _read_plans(plans)
        n_plans, n_arms = matrix.shape
        arms = names_for("arm", arm_names if arm_names is not None else found_arms, n_arms)
        names = names_for("plan", plan_names if plan_names is not None else found_plans, n_plans)
        _refuse_non_finite(matrix, arms, names)
        matrix, keep, twin_of = _merge_duplicates(matrix)
        if len(keep) < 2:
            raise ProblemError(
                f"a problem needs at least two distinct plans, got {len(keep)} (of {n_plans} rows); "
                "with one plan there is nothing to choose"
            )
        if layout is not None:
            layout.check_arms(n_arms)
        duplicates = tuple((names[k], names[first]) for k, first in twin_of)
        relevant = _relevant_arms(matrix)
        scale, limits = scale_and_bounds(noise_scale, bounds, arms)
        values: dict[str, object] = {
            "plans": matrix,
            "noise_scale": scale,
            "costs": per_arm("costs", 1.0 if costs is None else costs, arms),
            "arm_names": arms,
            "plan_names": tuple(names[k] for k in keep),
            "minimize": bool(minimize),
            "bounds": limits,
            "duplicates": duplicates,
            "relevant": relevant,
            "layout": layout,
        }
        for name, value in values.items():
            object.__setattr__(self, name, read_only(value))

    @property
    def n_plans(self) -> int:
        """The number of distinct plans."""
        return len(self.plan_names)

    @property
    def n_arms(self) -> int:
        """The number of quantities that can be measured."""
        return len(self.arm_names)

    @property
    def is_sparse(self) -> bool:
        """Whether the plans are kept as their non-zeros only."""
        return not isinstance(self.plans, np.ndarray)

    @property
    def oriented(self) -> Plans:
        """The plans with the sign that makes larger better, whatever `minimize` says."""
        return -self.plans if self.minimize else self.plans

    def name_of(self, plan: int | tuple[float, ...] | None) -> str | None:
        """The name of a plan by its index; None for None, and for a plan given as a vector.

        >>> Problem([[1, 0], [0, 2]], plan_names=["road", "rail"]).name_of(1)
        'rail'
        """
        return self.plan_names[plan] if isinstance(plan, int) else None

    def vector(self, plan: int | tuple[float, ...]) -> FloatArray:
        """One plan as a dense vector, one number per arm; a plan given as its vector is that vector.

        >>> Problem([[1, 0], [0, 2]]).vector(1).tolist()
        [0.0, 2.0]
        """
        if isinstance(plan, tuple):
            return np.array(plan)
        plans = self.plans
        return plans[plan] if isinstance(plans, np.ndarray) else np.asarray(plans[[plan]].todense()).ravel()

    def values(self, means: npt.ArrayLike) -> FloatArray:
        """The value of every plan, in the caller's sign, if the arms had these means.

        >>> Problem([[1, 0], [0, 2]]).values([3.0, 1.0]).tolist()
        [3.0, 2.0]
        """
        return np.asarray(self.plans @ self.as_means(means))

    def best(self, means: npt.ArrayLike) -> int:
        """The index of the best plan under these means; ties go to the lowest index.

        >>> Problem([[1, 0], [0, 2]], minimize=True).best([3.0, 1.0])
        1
        """
        values = self.values(means)
        return int(np.argmin(values) if self.minimize else np.argmax(values))

    def as_means(self, means: npt.ArrayLike) -> FloatArray:
        """These means as a checked array of one finite number per arm."""
        return checked_means(means, self.arm_names)

    def arm(self, name: str) -> int:
        """The index of the arm with this name.

        >>> Problem([[1, 0], [0, 1]], arm_names=["road", "rail"]).arm("rail")
        1
        """
        return index_of("arm", name, self.arm_names)

    def plan(self, name: str) -> int:
        """The index of the plan with this name; the name of a merged duplicate finds the plan kept."""
        return index_of("plan", dict(self.duplicates).get(name, name), self.plan_names)

    def with_bounds(self, bounds: Bounds) -> Self:
        """The same problem with measurements between these bounds, which also give the noise scale.

        >>> Problem([[1, 0], [0, 2]]).with_bounds((0, 5)).noise_scale.tolist()
        [2.5, 2.5]
        """
        return replaced(self, *scale_and_bounds(None, bounds, self.arm_names))

    def with_places(self, points: Mapping[str, Sequence[float]], *, geographic: bool = False) -> Self:
        """The same problem, drawn with its places at these points, by name; it decides nothing.

        A point is (x, y), x to the right and y up; with `geographic`, (longitude, latitude) in degrees.

        >>> import surepick as sp
        >>> problem = sp.problems.paths([("A", "B", 1), ("B", "C", 1), ("A", "C", 3)], "A", "C")
        >>> problem.with_places({"A": (0, 0), "B": (3, 2), "C": (6, 0)}).layout.points[1]
        (3.0, 2.0)
        """
        return drawn(self, located(self.layout, points, geographic=geographic))

    def __setstate__(self, state: dict[str, object]) -> None:
        # pickle and copy rebuild arrays as writeable ones; what was immutable stays so
        self.__dict__.update({name: read_only(value) for name, value in state.items()})

    def __repr__(self) -> str:
        noise = "unknown" if self.noise_scale is None else _brief(self.noise_scale)
        goal = "minimize" if self.minimize else "maximize"
        arms = f"{self.n_arms} {plural(self.n_arms, 'arm')}"
        return f"Problem({self.n_plans} plans, {arms}, noise_scale={noise}, {goal})"


@dataclass(frozen=True, eq=False)
class Table:
    """Numbers with a name for every row and every column."""

    numbers: FloatArray  # (n_rows, n_columns)
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]


def read_table(path: str | Path) -> Table:
    """The numbers of a CSV file whose header names the columns and whose first column names the rows.

    What separates cells, and what is skipped, is that of `csv_lines`.
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
    numbers = _parse_cells([row[1:] for _, row in lines[1:]], columns, names, within=f" of {str(path)!r}")
    return Table(read_only(numbers), names, columns)


def csv_lines(path: Path) -> list[tuple[int, list[str]]]:
    """The lines of a CSV file that are not blank, with their numbers in the file.

    Commas separate cells; or semicolons or tabs, as spreadsheets write them where numbers have a comma, and
    then 2,5 is read as 2.5. A byte-order mark is skipped.
    """
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


def _separator(header: str) -> str:
    """What separates the cells of this line.

    >>> [_separator(line) for line in ("plan,road", "plan;road, old;rail", "plan\\troad", "plan")]
    [',', ';', '\\t', ',']
    """
    return max(",;\t", key=header.count)  # of equals the first


def _with_point(cell: str) -> str:
    """The cell, with a decimal point where it is a number with a decimal comma."""
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def _read_plans(plans: Any) -> tuple[Any, Sequence[str] | None, Sequence[str] | None]:
    """A float matrix and the arm and plan names that came with it."""
    arms: Sequence[str] | None = None
    names: Sequence[str] | None = None
    if isinstance(plans, str | Path):
        table = read_table(plans)
        matrix, arms, names = table.numbers, table.column_names, table.row_names
    elif hasattr(plans, "tocsr"):
        matrix = _sparse_matrix(plans)
    elif hasattr(plans, "columns") and hasattr(plans, "index"):
        arms = [str(c) for c in plans.columns]
        names = [str(i) for i in plans.index]
        matrix = _parse_cells(plans.to_numpy(dtype=object), arms, names)
    else:
        matrix = _dense_matrix(plans)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ProblemError(f"plans must be a table of shape (n_plans, n_arms), got shape {matrix.shape}")
    if isinstance(matrix, np.ndarray):
        matrix = matrix + 0.0  # a copy in which -0.0 has become 0.0, so that equal rows have equal bytes
    return matrix, arms, names


def _dense_matrix(plans: Any) -> FloatArray:
    if isinstance(plans, np.ma.MaskedArray):
        plans = np.ma.filled(plans.astype(float), np.nan)  # a masked cell is a missing number
    if isinstance(plans, np.ndarray) and plans.dtype.kind == "c":
        raise ProblemError(f"plans must be real numbers, got {plans.dtype}; pass plans.real if that is meant")
    try:
        return np.array(plans, dtype=float, order="C")
    except (TypeError, ValueError) as error:
        raise ProblemError(_where_text_is(plans) or f"plans must be a table of numbers: {error}") from None


def _sparse_matrix(plans: Any) -> Any:
    from scipy import sparse

    matrix = sparse.csr_array(plans, dtype=float, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def _parse_cells(
    rows: Iterable[Sequence[object]], columns: Sequence[str], names: Sequence[str], *, within: str = ""
) -> FloatArray:
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


def _where_text_is(plans: object) -> str | None:
    """Say which cell of a nested list is not a number, if one is not."""
    if not isinstance(plans, Sequence | np.ndarray):
        return None
    lengths = set()
    for k, row in enumerate(plans):
        if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray):
            return f"row {k} of plans must be a list of numbers, got {row!r}"
        lengths.add(len(row))
        for s, cell in enumerate(row):
            try:
                float(cell)
            except (TypeError, ValueError):
                return f"row {k}, column {s} of plans: expected a number, got {cell!r}"
    return f"all rows of plans must have one number per arm, got rows of lengths {sorted(lengths)}"


def _refuse_non_finite(matrix: Any, arms: Sequence[str], names: Sequence[str]) -> None:
    data = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if np.isfinite(data).all():
        return
    if isinstance(matrix, np.ndarray):
        k, s = np.argwhere(~np.isfinite(matrix))[0]
    else:
        at = int(np.flatnonzero(~np.isfinite(data))[0])
        k, s = int(np.searchsorted(matrix.indptr, at, side="right")) - 1, matrix.indices[at]
    raise ProblemError(f"row {names[k]!r}, column {arms[s]!r}: plans must be finite, got {matrix[k, s]}")


def names_for(kind: str, given: Sequence[str] | None, count: int) -> tuple[str, ...]:
    """The names given, checked to be one for each arm or plan and all different; numbers where none are.

    >>> names_for("arm", None, 2)
    ('arm 0', 'arm 1')
    """
    if given is None:
        return tuple(f"{kind} {i}" for i in range(count))
    if isinstance(given, str):
        raise ProblemError(f"{kind}_names must be a list of names, got the text {given!r}; put it in a list")
    names = tuple(str(name) for name in given)
    if len(names) != count:
        raise ProblemError(
            f"{kind}_names must have one name for each of the {count} {kind}s, got {len(names)}"
        )
    if len(set(names)) < count:
        twice = Counter(names).most_common(1)[0][0]
        raise ProblemError(f"{kind} names must differ, got {twice!r} more than once; rename one of them")
    if "" in names:
        raise ProblemError(f"{kind} {names.index('')} has an empty name; give it one")
    return names


def per_arm(what: str, given: float | Sequence[float] | FloatArray, arms: Sequence[str]) -> FloatArray:
    """One positive number for each arm, from one number or one per arm.

    >>> per_arm("costs", 2.0, ["road", "rail"]).tolist()
    [2.0, 2.0]
    """
    try:
        array = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(f"{what} must be one number or one per arm, got {given!r}") from None
    if array.ndim == 0:
        array = np.full(len(arms), float(array))
    if array.shape != (len(arms),):
        raise ProblemError(
            f"{what} must be one number or one for each of the {len(arms)} arms, got shape {array.shape}"
        )
    bad = np.flatnonzero(~((array > 0) & np.isfinite(array)))
    if bad.size:
        s = int(bad[0])
        raise ProblemError(f"{what} of arm {s} ({arms[s]!r}) must be positive and finite, got {array[s]}")
    return array


def checked_means(means: npt.ArrayLike, arms: Sequence[str]) -> FloatArray:
    """These means as an array of one finite number for each arm.

    >>> checked_means([1, 2], ["road", "rail"]).tolist()
    [1.0, 2.0]
    """
    try:
        array = np.asarray(means, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(f"means must be one number per arm, got {means!r}") from None
    if array.shape != (len(arms),):
        raise ProblemError(
            f"means must be one number for each of the {len(arms)} arms, got shape {array.shape}"
        )
    if not np.isfinite(array).all():
        s = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ProblemError(f"the mean of arm {s} ({arms[s]!r}) must be finite, got {array[s]}")
    return array


def scale_and_bounds(
    noise_scale: float | Sequence[float] | FloatArray | None, bounds: Bounds | None, arms: Sequence[str]
) -> tuple[FloatArray | None, FloatArray | None]:
    """The noise scale of each arm, if it is known, and the bounds of its measurements, if there are any.

    >>> scale, bounds = scale_and_bounds(1.0, (0.0, 4.0), ["road", "rail"])
    >>> scale.tolist(), bounds.tolist()
    ([2.0, 2.0], [[0.0, 4.0], [0.0, 4.0]])
    """
    scale = None if noise_scale is None else per_arm("noise_scale", noise_scale, arms)
    if bounds is None:
        return scale, None
    limits = _pairs(bounds, arms)
    half = (limits[:, 1] - limits[:, 0]) / 2
    is_default = isinstance(noise_scale, float) and noise_scale == DEFAULT_NOISE_SCALE
    if scale is not None and not is_default and not np.array_equal(scale, half):
        raise ProblemError(
            f"bounds give the noise scale, {_brief(half)} (half of their width), and noise_scale says "
            f"{_brief(scale)}; leave noise_scale out, or, if you know that it is smaller, leave bounds out"
        )
    return half, limits


def _pairs(bounds: Bounds, arms: Sequence[str]) -> FloatArray:
    """Low and high for each arm, from one pair or one per arm."""
    try:
        array = np.array(bounds, dtype=float)
    except (TypeError, ValueError):
        raise ProblemError(f"bounds must be (low, high), or one such pair per arm, got {bounds!r}") from None
    if array.shape == (2,):
        array = np.tile(array, (len(arms), 1))
    if array.shape != (len(arms), 2):
        raise ProblemError(
            f"bounds must be (low, high), or one such pair for each of the {len(arms)} arms, "
            f"got shape {array.shape}"
        )
    bad = np.flatnonzero(~(np.isfinite(array).all(axis=1) & (array[:, 0] < array[:, 1])))
    if bad.size:
        s = int(bad[0])
        raise ProblemError(
            f"bounds of arm {s} ({arms[s]!r}) must be two finite numbers, the lower first, got "
            f"{array[s].tolist()}"
        )
    return array


def outside(bounds: FloatArray, arm: int, value: float, count: int = 1) -> bool:
    """Whether the sum of so many measurements of this arm says that one lay outside the bounds.

    >>> outside(np.array([[0.0, 1.0]]), 0, 1.5), outside(np.array([[0.0, 1.0]]), 0, 1.5, count=2)
    (True, False)
    """
    low, high = bounds[arm].tolist()
    room = ROUNDING * (high - low)
    return not low - room <= value / count <= high + room


def replaced(problem: P, noise_scale: FloatArray | None, bounds: FloatArray | None) -> P:
    """The same problem with another noise scale and other bounds of its measurements."""
    other = object.__new__(type(problem))
    other.__dict__.update(problem.__dict__)
    for name, value in (("noise_scale", noise_scale), ("bounds", bounds)):
        object.__setattr__(other, name, read_only(value))
    return other


def drawn(problem: P, layout: Layout) -> P:
    """The same problem with another layout."""
    other = object.__new__(type(problem))
    other.__dict__.update({**problem.__dict__, "layout": layout})
    return other


def _merge_duplicates(matrix: Any) -> tuple[Any, list[int], list[tuple[int, int]]]:
    """The distinct rows in their order, their old indices, and (dropped, kept) pairs of old indices."""
    first_of: dict[bytes, int] = {}
    keep: list[int] = []
    twins: list[tuple[int, int]] = []
    for k, key in enumerate(_row_keys(matrix)):
        if key in first_of:
            twins.append((k, first_of[key]))
        else:
            first_of[key] = k
            keep.append(k)
    return (matrix[keep] if twins else matrix), keep, twins


def _row_keys(matrix: Any) -> Iterable[bytes]:
    if isinstance(matrix, np.ndarray):
        return (row.tobytes() for row in matrix)
    matrix.sort_indices()
    bounds = zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    return (matrix.indices[a:b].tobytes() + b"|" + matrix.data[a:b].tobytes() for a, b in bounds)


def _relevant_arms(matrix: Any) -> BoolArray:
    if isinstance(matrix, np.ndarray):
        return np.asarray((matrix != matrix[0]).any(axis=0))
    high = np.asarray(matrix.max(axis=0).todense()).ravel()
    low = np.asarray(matrix.min(axis=0).todense()).ravel()
    return np.asarray(high != low)


def read_only(value: Any) -> Any:
    """The same array, dense or sparse, with writing to it refused; anything else unchanged.

    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    parts = (value.data, value.indices, value.indptr) if hasattr(value, "indptr") else (value,)
    for part in parts:
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return value


def index_of(kind: str, name: str, names: tuple[str, ...]) -> int:
    """The place of this arm or plan among its like.

    >>> index_of("arm", "rail", ("road", "rail"))
    1
    """
    try:
        return names.index(name)
    except ValueError:
        raise ProblemError(f"there is no {kind} named {name!r}; {suggestion(name, names)}") from None


def _brief(array: FloatArray) -> str:
    low, high = float(array.min()), float(array.max())
    return f"{low:g}" if low == high else f"{low:g}..{high:g}"
