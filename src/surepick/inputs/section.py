"""What a problem file says, key by key: checked against the table of keys, with errors that name the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surepick.errors import FileError, ProblemError, suggestion
from surepick.inputs.keys import FORMS, REQUIRED, Key, fits
from surepick.tables import Table, read_table


@dataclass(frozen=True)
class Section:
    """The keys of a file, or of a part of it, each there if it must be and of its form.

    A `confined` one may name no files but those in its own folder.
    """

    path: Path
    values: Mapping[str, Any]
    keys: Mapping[str, Key]
    prefix: str = ""
    confined: bool = False

    def __post_init__(self) -> None:
        for key, value in self.values.items():
            if key not in self.keys:
                raise self.error(f"unknown key {self.prefix + key!r}; {suggestion(key, self.keys)}", key)
            if not fits(FORMS[self.keys[key].form].schema, value):
                raise self.wrong(key, FORMS[self.keys[key].form].expected)
        for key, known in self.keys.items():
            if known.absent == REQUIRED and key not in self.values:
                raise self.error(f"the key {self.prefix + key!r} is missing; it is required", key)

    def error(self, what: str, key: str | None = None) -> FileError:
        """Return an error about this key of the file, or about the file."""
        return FileError(f"{str(self.path)!r}: {what}", field=None if key is None else self.prefix + key)

    def wrong(self, key: str, expected: str) -> FileError:
        """Return the error for a key whose value is not as expected."""
        return self.error(f"{self.prefix}{key} must be {expected}, got {self.values[key]!r}", key)

    def part(self, key: str, keys: Mapping[str, Key]) -> Section | None:
        """Return the table under this key as a section of its own; None if there is none."""
        if key not in self.values:
            return None
        return Section(self.path, self.values[key], keys, f"{self.prefix}{key}.", self.confined)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of this key; the name of a file becomes what is in the file.

        Depending on the key's form that is its path, a `Table`, or numbers by name from one column.
        """
        value, form = self.values.get(key, default), FORMS[self.keys[key].form]
        if key not in self.values or not isinstance(value, str):
            return value
        is_share = form.file == "share" and value.strip().endswith("%")
        if form.file is None or value in form.words or is_share:  # text that names no file
            return value
        if self.confined and not (_is_plain_name(value) and (self.path.parent / value).is_file()):
            raise self.wrong(key, "the name of a file that came together with this one, without folders")
        file = self.path.parent / value
        if form.file == "path":
            return file
        try:
            table = read_table(file, empty=form.empty)
        except ProblemError as error:
            raise self.error(str(error), key) from None
        if form.file == "table" or (form.file == "share" and len(table.column_names) > 1):
            return table
        if len(table.column_names) != 1:
            raise self.wrong(key, "the name of a CSV file with names in its first column and one more")
        return by_name(table)


def by_name(table: Table) -> dict[str, float]:
    """Return the numbers in the only column of a table by the names of its rows."""
    return dict(zip(table.row_names, table.numbers[:, 0].tolist(), strict=True))


def _is_plain_name(name: str) -> bool:
    """Return whether this is the name of a file and not of a way to somewhere else.

    >>> [_is_plain_name(name) for name in ("hours.csv", "../hours.csv", "C:hours.csv", "..", "a\\0b")]
    [True, False, False, False, False]
    """
    return name not in ("", ".", "..") and not any(sign in name for sign in "/\\:\0")
