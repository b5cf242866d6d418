"""Stores: append-only logs of sessions in a SQLite file, a PostgreSQL database or memory.

A store keeps events without knowing what they mean, and proves that it returns what was written. It
imports `errors` and nothing else of surepick; `log` says what all stores do.
"""

from __future__ import annotations

from surepick.errors import StoreError
from surepick.store.log import START, Draft, Event, Head, Lease, Log, Snapshot, Store, View
from surepick.store.memory import MemoryStore

__all__ = [
    "START",
    "Draft",
    "Event",
    "Head",
    "Lease",
    "Log",
    "MemoryStore",
    "Snapshot",
    "Store",
    "View",
    "open_store",
]


def open_store(url: str, *, create: bool = True, read_only: bool = False) -> Store:
    """The store at this address: sqlite:///file.db, postgresql://..., memory://, or the path of a file.

    A store that is not there yet is made, unless `create` is false or it is opened for reading only.

    >>> open_store("memory://").names()
    []
    """
    if url.startswith("memory:"):
        return MemoryStore()
    from surepick.store.sql import SqlStore, database_at  # database packages are slow to import

    database = database_at(url, read_only=read_only)
    if not database.exists() and (read_only or not create):
        raise StoreError(
            f"there is no store at {database.place}; name one by --store, or make one with `surepick new`",
            field="store",
        )
    return SqlStore(database)
