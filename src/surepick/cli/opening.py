"""Opening the store and the session that the options name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surepick.sessions.session import Session
    from surepick.store import Store


def open_session(store: str, name: str | None, *, read_only: bool = False) -> Session:
    """The session; one that is only looked at opens even where its plans need a Python function."""
    from surepick.sessions.session import Session

    return Session.load(open_to_read(store), name, read_only=read_only)


def open_to_read(url: str) -> Store:
    """The store, if it exists already."""
    from surepick.store import open_store

    return open_store(url, create=False)


def only_name(place: Store) -> str:
    """The name of the only session of a store, or an error that names them all."""
    from surepick.sessions.session import only_session

    return only_session(place)
