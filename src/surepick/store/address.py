"""Where a store is: the address that a user writes, taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote

from surepick.errors import StoreError

if TYPE_CHECKING:
    from surepick.store.connections import Database

EXAMPLES = "write sqlite:///trips.db, postgresql://user@host/database, or the path of a file"

_ADDRESS = re.compile(
    r"(?P<kind>\w+)(\+\w+)?://"  # what follows the plus names a Python driver, as SQLAlchemy writes it
    r"((?P<user>[^:/]*)(:(?P<password>[^@]*))?@)?"
    r"(?P<host>\[[^/?]+\]|[^/:?]*)(:(?P<port>\d*))?"
    r"(/(?P<database>[^?]*))?(\?(?P<options>.*))?"
)
_HOST_AND_PORT = re.compile(r"([\w.-]*):(\d*)")


@dataclass(frozen=True)
class Address:
    """The parts of an address; percent escapes are undone."""

    kind: str
    shown: str  # the address without its password
    database: str = ""
    host: str = ""
    login: dict[str, str] = field(default_factory=dict)  # of a server, by the names that libpq gives them


def parse(url: str) -> Address:
    """The parts of this address; without :// it is the path of a SQLite file.

    >>> parse("postgresql://ann:x%2Fy@db:5433/trips?sslmode=require").login
    {'user': 'ann', 'password': 'x/y', 'host': 'db', 'port': '5433', 'dbname': 'trips', 'sslmode': 'require'}
    >>> parse("postgresql://ann:secret@db/trips").shown
    'postgresql://ann:***@db/trips'
    """
    if "\0" in unquote(url):
        raise StoreError(f"the store address {_without_password(url)!r} has a NUL character; {EXAMPLES}")
    if "://" not in url:
        return Address("sqlite", url, url)
    found = _ADDRESS.fullmatch(url)
    if found is None:
        raise StoreError(f"the store address {_without_password(url)!r} cannot be read; {EXAMPLES}")
    text = {name: unquote(part or "") for name, part in found.groupdict().items()}
    host = text["host"].strip("[]")
    login = {
        "user": text["user"],
        "password": text["password"],
        "host": host,
        "port": text["port"],
        "dbname": text["database"],
        **_options(found["options"] or ""),
    }
    given = {name: part for name, part in login.items() if part}
    return Address(text["kind"], _without_password(url), text["database"], host, given)


def _options(query: str) -> dict[str, str]:
    """The options after the question mark; several hosts to try are given as host=a:5432&host=b:5432."""
    values = parse_qs(query)
    options = {name: found[-1] for name, found in values.items()}
    ends = [(_HOST_AND_PORT.fullmatch(host), host) for host in values.get("host", [])]
    if ends:
        options["host"] = ",".join(end[1] if end else host for end, host in ends)
    if any(end for end, _ in ends):
        options["port"] = ",".join(end[2] if end else "" for end, _ in ends)
    return options


def _without_password(url: str) -> str:
    hidden = re.sub(r"(://[^:/]*:)[^@]*@", r"\1***@", url, count=1)
    return re.sub(r"([?&]password=)[^&]*", r"\1***", hidden)


def database_at(url: str, *, read_only: bool) -> Database:
    """Return the database at this address; without :// it is the path of a SQLite file."""
    found = parse(url)  # database packages are imported when they are needed: that is slow
    if found.kind == "sqlite":
        from surepick.store.sqlite import Sqlite

        return Sqlite(found, read_only=read_only)
    if found.kind in ("postgresql", "postgres"):
        from surepick.store.postgres import Postgres

        return Postgres(found, read_only=read_only)
    raise StoreError(f"surepick has no store of kind {found.kind!r}; {EXAMPLES}")
