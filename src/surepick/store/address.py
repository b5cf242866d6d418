"""Where a store is: the address that a user writes, taken apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from surepick.errors import StoreError

if TYPE_CHECKING:
    from surepick.store.connections import Database

EXAMPLES = "write sqlite:///trips.db, postgresql://user@host/database, or the path of a file"
_ADDRESS = re.compile(
    r"(?P<kind>\w+)(\+\w+)?://(?P<host>[^/]*)/?(?P<rest>.*)"
)  # +: a driver, as in SQLAlchemy


def without_password(url: str) -> str:
    """Return the address as it may be shown.

    >>> without_password("postgresql://ann:secret@db/trips")
    'postgresql://ann:***@db/trips'
    """
    hidden = re.sub(r"(://[^:/]*:)[^@]*@", r"\1***@", url, count=1)
    return re.sub(r"([?&]password=)[^&]*", r"\1***", hidden)


def database_at(url: str, *, read_only: bool) -> Database:
    """Return the database at this address; without :// it is the path of a SQLite file."""
    shown = without_password(url)
    if "\0" in unquote(url):
        raise StoreError(f"the store address {shown!r} has a NUL character; {EXAMPLES}", field="store")
    found = _ADDRESS.fullmatch(url)
    if "://" not in url:
        kind, path = "sqlite", url
    elif found is None:
        raise StoreError(f"the store address {shown!r} cannot be read; {EXAMPLES}", field="store")
    else:
        kind = found["kind"]
        path = "" if found["host"] else unquote(found["rest"].split("?")[0])
    if kind == "sqlite":  # database packages are imported when they are needed: that is slow
        from surepick.store.sqlite import Sqlite

        if path in ("", ":memory:"):
            raise StoreError(
                f"a SQLite store needs a file, got {shown!r}; write sqlite:///name.db with three slashes, or "
                "memory:// for a store that ends with the program",
                field="store",
            )
        return Sqlite(path, read_only=read_only)
    if kind in ("postgresql", "postgres"):
        from surepick.store.postgres import Postgres

        return Postgres(re.sub(r"\+\w+(?=://)", "", url, count=1), shown, read_only=read_only)
    raise StoreError(f"surepick has no store of kind {kind!r}; {EXAMPLES}", field="store")
