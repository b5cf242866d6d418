"""Live streams: one watcher per session that is being viewed, shared by all its viewers.

The watcher looks where the log ends, twice a second; browsers never poll. When something has changed, the
view is rendered once, and every viewer is sent the parts that changed since its last message. A viewer has no
queue, only a position: a slow one skips what is out of date and cannot hold up the others.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from html import escape

from surepick.errors import SurepickError
from surepick.tables import count_in
from surepick.web.session_cache import SessionCache

LOOK_SECONDS = 0.5  # between two looks at the end of the log
REST = 4  # a look that took long is followed by a pause of this many times as long
HEARTBEAT_SECONDS = 15.0  # between comments in a quiet stream
RETRY_MILLISECONDS = 2000  # until a browser that lost the stream reconnects
MOST_VIEWERS = 600
VIEW = "view"  # the part that is sent as it is, under this name

Parts = Mapping[str, str]  # text by the name of the part: HTML, or the View as JSON


class TooManyViewersError(SurepickError):
    """The server allows no further live stream."""


@dataclass
class Edition:
    """The newest rendering of the parts, each with the number of the edition that last changed it.

    Messages are kept: most viewers need the same one.
    """

    number: int = 0
    parts: Parts = field(default_factory=dict)
    changed: Mapping[str, int] = field(default_factory=dict)
    _messages: dict[int, bytes] = field(default_factory=dict)

    def next(self, parts: Parts) -> Edition:
        """Return the edition with these parts; this one when nothing has changed."""
        news = [name for name, html in parts.items() if self.parts.get(name) != html]
        if not news:
            return self
        changed = {**self.changed, **dict.fromkeys(news, self.number + 1)}
        return Edition(self.number + 1, parts, changed)

    def since(self, seen: int, run: str) -> bytes:
        """Return the message for a viewer that has seen that edition: the parts that changed after it."""
        if seen not in self._messages:
            parts = {name: self.parts[name] for name, number in self.changed.items() if number > seen}
            event, data = "update", json.dumps({"parts": parts}, ensure_ascii=False)
            if VIEW in parts:
                event, data = VIEW, parts[VIEW]
            self._messages[seen] = f"id: {run}.{self.number}\nevent: {event}\ndata: {data}\n\n".encode()
        return self._messages[seen]


class Channel:
    """The watcher of one session and its viewers; `look` returns the parts to send."""

    def __init__(self, look: Callable[[], Parts], sessions: SessionCache) -> None:
        self.n_viewers = 0
        self._look, self._sessions = look, sessions
        self._run = secrets.token_hex(4)  # editions of another run mean nothing here
        self._edition = Edition()
        self._news = asyncio.Event()
        self._n_begun = self._n_looked = 0  # looks
        self._looked = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self._stopped = False

    async def view(self, last_id: str) -> AsyncIterator[bytes]:
        """Yield the messages for one viewer, until it leaves or the server stops."""
        seen = _edition_seen(last_id, self._run)
        self.n_viewers += 1
        if self._watcher is None or self._watcher.done():
            self._watcher = asyncio.create_task(self._watch())
        try:
            yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
            await self._look_again()
            while not self._stopped:
                if self._edition.number > seen:
                    message, seen = self._edition.since(seen, self._run), self._edition.number
                    yield message
                elif not await self._has_news():
                    yield b": alive\n\n"
        finally:
            self.n_viewers -= 1

    async def _look_again(self) -> None:
        """Wait for a look that begins from now on: an older one may know less than the viewer's page."""
        enough = self._n_begun + 1
        while self._n_looked < enough and not self._stopped:
            await self._looked.wait()

    async def _has_news(self) -> bool:
        """Return whether there is a new edition before the next heartbeat is due."""
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                return await self._news.wait()
        except TimeoutError:
            return False

    async def _watch(self) -> None:
        """Look, publish, wait; for as long as there are viewers."""
        while self.n_viewers > 0 and not self._stopped:
            began = time.monotonic()
            self._n_begun += 1
            try:
                parts = await self._sessions.run(self._look)
                trouble = ""
            except Exception as error:  # viewers stay, and get the next look that succeeds
                parts, trouble = self._edition.parts, f"This page is not up to date: {escape(str(error))}"
            self._publish(self._edition.next({**parts, "trouble": trouble}))
            self._end_look()
            await asyncio.sleep(max(LOOK_SECONDS, REST * (time.monotonic() - began)))

    def _publish(self, edition: Edition) -> None:
        if edition is not self._edition:
            self._edition = edition
            self._wake()

    def _end_look(self) -> None:
        self._n_looked = self._n_begun
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def stop(self) -> None:
        """End every stream."""
        self._stopped = True
        self._end_look()
        self._wake()


class Hub:
    """All channels by key."""

    def __init__(self, sessions: SessionCache) -> None:
        self._sessions = sessions
        self._channels: dict[str, Channel] = {}
        self._stopped = False

    @property
    def n_viewers(self) -> int:
        """Return how many streams are open."""
        return sum(channel.n_viewers for channel in self._channels.values())

    def channel(self, key: str, look: Callable[[], Parts]) -> Channel:
        """Return the channel with this key; the first call sets how to look."""
        if self.n_viewers >= MOST_VIEWERS or self._stopped:
            raise TooManyViewersError(f"{MOST_VIEWERS} pages are live; reload this one to see changes")
        for idle in [k for k, channel in self._channels.items() if channel.n_viewers == 0 and k != key]:
            del self._channels[idle]
        if key not in self._channels:
            self._channels[key] = Channel(look, self._sessions)
        return self._channels[key]

    def stop(self) -> None:
        """End all streams."""
        self._stopped = True
        for channel in self._channels.values():
            channel.stop()


def _edition_seen(last_id: str, run: str) -> int:
    """Return the edition that a returning viewer has seen; 0 if it is not of this run.

    >>> _edition_seen("ab.7", "ab"), _edition_seen("cd.7", "ab"), _edition_seen("<b>", "ab")
    (7, 0, 0)
    """
    before, _, number = last_id.partition(".")
    return (count_in(number) or 0) if before == run else 0
