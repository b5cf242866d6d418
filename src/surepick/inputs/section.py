"""What a problem file says, key by key; every question names the file and the key when it fails."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surepick.errors import FileError, ProblemError, suggestion
from surepick.problems.program_files import read_text as read_text
from surepick.tables import Table, read_table


@dataclass(frozen=True)
class Section:
    """The keys of a file, or of a part of it; every question names the file and the key when it fails.

    A `confined` one may name no files but those in its own folder.
    """

    path: Path
    prefix: str
    values: Mapping[str, Any]
    confined: bool = False

    def error(self, what: str, field: str | None = None) -> FileError:
        """The error that says this of the file, and of this key of it."""
        return FileError(f"{str(self.path)!r}: {what}", field=field)

    def wrong(self, key: str, expected: str) -> FileError:
        """The error for a key whose value is not what it should be."""
        return self.error(
            f"{self.prefix}{key} must be {expected}, got {self.values[key]!r}", self.prefix + key
        )

    @contextmanager
    def blaming(self, key: str) -> Iterator[None]:
        """Let an error about what this key holds name it, unless it names another key that is there."""
        try:
            yield
        except ProblemError as error:
            named = error.field if error.field in self.values else None
            error.field = self.prefix + (named or key)
            raise

    def refuse_unknown(self, known: set[str]) -> None:
        """Refuse keys that are not among these, naming the closest."""
        for key in self.values:
            if key not in known:
                raise self.error(
                    f"unknown key {self.prefix + key!r}; {suggestion(key, sorted(known))}", self.prefix + key
                )

    def refuse_missing(self, required: tuple[str, ...]) -> None:
        """Refuse the absence of any of these keys."""
        for key in required:
            if key not in self.values:
                raise self.error(
                    f"the key {self.prefix + key!r} is missing; it is required", self.prefix + key
                )

    def section(self, key: str, *, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> Section | None:
        """The part of the file under this key; None if there is none."""
        if key not in self.values:
            return None
        if not isinstance(self.values[key], dict):
            raise self.wrong(key, f"a table with the key {(*keys, *optional)[0]!r}")
        part = Section(self.path, f"{key}.", self.values[key], self.confined)
        part.refuse_unknown({*keys, *optional})
        part.refuse_missing(keys)
        return part

    def in_order(self, names: Sequence[str], fits: Callable[[object], bool], expected: str) -> list[Any]:
        """The values of exactly these keys, in their order."""
        self.refuse_unknown(set(names))
        self.refuse_missing(tuple(names))
        for name in names:
            if not fits(self.values[name]):
                raise self.wrong(name, expected)
        return [self.values[name] for name in names]

    def text(self, key: str, default: str | None = None, *, options: Collection[str] | None = None) -> str:
        """Text, perhaps one of given options."""
        if default is None:
            self.refuse_missing((key,))
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        if options is not None and value not in options:
            raise self.error(
                f"unknown {self.prefix}{key} {value!r}; {suggestion(value, options)}", self.prefix + key
            )
        return value

    def whole(self, key: str, default: int) -> int:
        """A whole number."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, "a whole number")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """True or false."""
        value = self.values.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def names(self, key: str) -> list[str] | None:
        """A list of names; None if there is none."""
        value = self.values.get(key)
        if value is not None and not (isinstance(value, list) and all(isinstance(v, str) for v in value)):
            raise self.wrong(key, "a list of names")
        return value

    def numbers(self, key: str, default: Any = None) -> Any:
        """One number, a list of numbers, or numbers by name: a table, or a CSV file with one column."""
        value = self.values.get(key, default)
        if key not in self.values or is_number(value):
            return value
        if not (is_list_of_numbers(value) or isinstance(value, dict | str)):
            raise self.wrong(key, "a number, a list of numbers, a table of them or the name of a CSV file")
        return self.list_of_numbers(key)

    def number(self, key: str, default: float) -> float:
        """One number."""
        value = self.values.get(key, default)
        if not is_number(value):
            raise self.wrong(key, "a number")
        return float(value)

    def list_of_numbers(self, key: str) -> Any:
        """A list of numbers, at least one; or numbers by name: a table, or a CSV file with one column."""
        value = self.values[key]
        table = self.attachment(key) if isinstance(value, str) and Path(value).suffix else None
        if table is not None:
            if len(table.column_names) != 1:
                raise self.wrong(key, "the name of a CSV file with names in its first column and one more")
            return dict(zip(table.row_names, table.numbers[:, 0].tolist(), strict=True))
        if isinstance(value, dict) and value and all(map(is_number, value.values())):
            return value
        if not is_list_of_numbers(value):
            raise self.wrong(key, "a list of numbers, a table of them or the name of a CSV file")
        return list(value)

    def rows(self, key: str) -> list[list[float]]:
        """A list of lists of numbers, all of one length."""
        value = self.values[key]
        if not (isinstance(value, list) and value and all(is_list_of_numbers(row) for row in value)):
            raise self.wrong(key, "a list of lists of numbers, or the name of a CSV file")
        for number, row in enumerate(value):
            if len(row) != len(value[0]):
                raise self.error(
                    f"every row of {self.prefix}{key} must have as many numbers as the first, "
                    f"{len(value[0])}; row {number} has {len(row)}",
                    self.prefix + key,
                )
        return value

    def attachment(self, key: str, *, empty: float | None = None) -> Table | None:
        """The table in the CSV file that the key names, found beside this file; None if it is no name.

        An empty cell is `empty`, or refused.
        """
        file = self.beside(key)
        with self.blaming(key):
            return None if file is None else read_table(file, empty=empty)

    def beside(self, key: str) -> Path | None:
        """The file that the key names, found beside this one; None if it is no name."""
        value = self.values.get(key)
        if not isinstance(value, str):
            return None
        if self.confined and not (_is_plain_name(value) and (self.path.parent / value).is_file()):
            raise self.wrong(key, "the name of a file that came together with this one, without folders")
        return self.path.parent / value

    def one_of(self, *keys: str) -> str:
        """The one of these keys that the file has; both or none is an error."""
        given = [key for key in keys if key in self.values]
        if len(given) != 1:
            raise self.error(
                f"give either {' or '.join(map(repr, keys))}, exactly one of them", self.prefix + keys[0]
            )
        return given[0]


def _is_plain_name(name: str) -> bool:
    """Return whether this is the name of a file and not of a way to somewhere else.

    >>> [_is_plain_name(name) for name in ("hours.csv", "../hours.csv", "C:hours.csv", "..", "a\\0b")]
    [True, False, False, False, False]
    """
    return name not in ("", ".", "..") and not any(sign in name for sign in "/\\:\0")


def is_number(value: object) -> bool:
    """Return whether a file gives one number here."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_list_of_numbers(value: object) -> bool:
    """Return whether a file gives a list of numbers here, at least one."""
    return isinstance(value, list) and bool(value) and all(is_number(entry) for entry in value)
