"""What all pages share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from surepick.sessions.session import Session
from surepick.web.keys import Keys
from surepick.web.live import Hub
from surepick.web.session_cache import Shelf, name_of
from surepick.web.settings import Settings
from surepick.web.templating import Renderer
from surepick.web.uploads import Stash

T = TypeVar("T")


@dataclass(frozen=True)
class Desk:
    """Settings, secrets, sessions, streams and templates of one running dashboard."""

    settings: Settings
    keys: Keys
    shelf: Shelf
    hub: Hub
    renderer: Renderer
    stash: Stash = field(default_factory=Stash)
    upload_turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))

    async def with_session(self, slug: str, work: Callable[[Session], T]) -> T:
        """What `work` makes of the session at this part of a URL, in a thread of the shelf."""
        return await self.shelf.run(lambda: self.in_session(name_of(slug), work))

    def in_session(self, name: str, work: Callable[[Session], T]) -> T:
        """The same in this thread, by name."""
        with self.shelf.session(name) as session:
            return work(session)
