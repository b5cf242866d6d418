"""Live streams: what a page shows is sent again when it changes; browsers never poll.

While a session is viewed, its log is looked at twice a second, once for all viewers. Each viewer is sent the
parts that differ from what it was sent last, so a slow one skips what is out of date.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from html import escape

from surepick.errors import SurepickError
from surepick.sessions.session import Session
from surepick.web.session_cache import SessionCache

LOOK_SECONDS = 0.5  # between two looks at the log
REST = 4  # a look that took long is followed by a pause of this many times as long
HEARTBEAT_SECONDS = 15.0  # between comments in a quiet stream
RETRY_MILLISECONDS = 2000  # until a browser that lost the stream reconnects
MOST_VIEWERS = 600
VIEW = "view"  # the part that is sent as it is, under this name

Parts = Mapping[str, str]  # text by the name of the part: HTML, or the View as JSON
Render = Callable[[Session], Parts]


class TooManyViewersError(SurepickError):
    """The server allows no further live stream."""


@dataclass
class _Look:
    """The last look at a session, which all viewers of the same page share while it is fresh.

    - began, fresh_until: when it was taken, and until when no other look is needed
    - moment, parts: the `moment` of the session that it saw, and what the page shows of that
    - lock: held by the viewer that looks, while the others wait for what it sees
    """

    began: float = 0.0
    fresh_until: float = 0.0
    moment: object = None
    parts: Parts = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Live:
    """The streams of all viewers."""

    def __init__(self, sessions: SessionCache) -> None:
        self.n_viewers = 0
        self._sessions = sessions
        self._looks: dict[tuple[str, Render], _Look] = {}
        self._stopped = False

    def stream(self, name: str, render: Render) -> AsyncIterator[bytes]:
        """Return the messages for one viewer of a session, until it leaves or the server stops."""
        if self.n_viewers >= MOST_VIEWERS or self._stopped:
            raise TooManyViewersError(f"{MOST_VIEWERS} pages are live; reload this one to see changes")
        return self._messages(name, render)

    async def _messages(self, name: str, render: Render) -> AsyncIterator[bytes]:
        shown: Parts = {}
        since = time.monotonic()  # an older look may know less than the viewer's page
        last_sent = since
        self.n_viewers += 1
        try:
            yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
            while not self._stopped:
                parts = await self._look(name, render, since)
                since, now = 0.0, time.monotonic()
                if news := {name: text for name, text in parts.items() if shown.get(name) != text}:
                    shown, last_sent = parts, now
                    yield _message(news)
                elif now - last_sent > HEARTBEAT_SECONDS:
                    last_sent = now
                    yield b": alive\n\n"
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.n_viewers -= 1
            if self.n_viewers == 0:
                self._looks.clear()

    async def _look(self, name: str, render: Render, since: float) -> Parts:
        """Return the parts as of now: those of the last look if it is fresh and began after `since`."""
        last = self._looks.setdefault((name, render), _Look())

        def look(session: Session) -> None:
            now = moment(session)
            if last.moment != now:
                last.parts = {**render(session), "trouble": ""}
                last.moment = now

        async with last.lock:
            began = time.monotonic()
            if began > last.fresh_until or last.began < since:
                try:
                    await self._sessions.run(lambda: self._sessions.use(name, look))
                except Exception as error:  # viewers stay, and get the next look that succeeds
                    trouble = f"This page is not up to date: {escape(str(error))}"
                    last.moment, last.parts = None, {**last.parts, "trouble": trouble}
                took = time.monotonic() - began
                last.began = began
                last.fresh_until = began + max(LOOK_SECONDS / 2, REST * took)
            return last.parts

    def stop(self) -> None:
        """End all streams."""
        self._stopped = True


def moment(session: Session) -> object:
    """Return what the page of a session depends on: the log, and who is assigned what."""
    held = tuple(
        (lease.token, lease.worker, lease.expires > session.journal.clock()) for lease in session.leases()
    )
    return session.journal.log.head(), held


def _message(parts: Parts) -> bytes:
    """Return the parts as an event; the View is one of its own."""
    event, data = "update", json.dumps({"parts": parts}, ensure_ascii=False)
    if VIEW in parts:
        event, data = VIEW, parts[VIEW]
    return f"event: {event}\ndata: {data}\n\n".encode()
