"""The door: every request passes it before anything else sees it, and every answer on its way out.

It checks the name by which the server was addressed, who asks, whether another site made the browser ask,
whether writing is allowed, and reads the body whole, up to a limit and within a time limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick.web.keys import COOKIE, Keys
from surepick.web.settings import Settings

BODY_SECONDS = 30.0  # in which a body has to arrive
DRAIN_SECONDS, DRAIN_BYTES = 1.0, 2**20  # of a refused body that are taken and thrown away
READING = ("GET", "HEAD")
JSON, FORM, UPLOAD = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # forms need the origin of their own server, nobody else gets any
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

Explain = Callable[[Scope, int, str], tuple[str, bytes]]


class RefusedError(Exception):
    """A request that goes no further; `location` sends a browser elsewhere."""

    def __init__(self, status: int, reason: str, *, location: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.location = location


class Guard:
    """An ASGI application around another one; `explain` turns a refusal into a content type and a body."""

    def __init__(self, app: ASGIApp, settings: Settings, keys: Keys, explain: Explain) -> None:
        self.app = app
        self._settings = settings
        self._keys = keys
        self._explain = explain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return None  # websockets: there are none
        guarded = _with_headers(send)
        try:
            self._check(scope)
            if scope["method"] not in READING:
                receive = _replay(await self._body(scope, receive))
        except RefusedError as refused:
            await _drain(receive)
            return await self._refuse(scope, guarded, refused)
        return await self.app(scope, receive, guarded)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        path, reads = scope["path"], scope["method"] in READING
        host = headers.get("host", "")
        if not self._settings.knows_host(_without_port(host)):
            raise RefusedError(
                421, f"this server does not go by the name {host!r}; start it with --allow-host to let it"
            )
        self._check_origin(headers, host, scope.get("scheme", "http"), reads=reads)
        if not path.startswith("/static/") and path not in ("/login", "/logout"):
            self._check_token(headers, path, reads=reads)
            if not reads and not self._settings.write:
                raise RefusedError(403, "this dashboard only shows; start it with --write to let it write")

    def _check_origin(self, headers: Headers, host: str, scheme: str, *, reads: bool) -> None:
        """Refuse what another site made the browser do; browsers say so, and other programs need not."""
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
        if reads:
            if site == "cross-site" and headers.get("sec-fetch-mode", "navigate") != "navigate":
                raise RefusedError(403, "another site may not read from this one")
            return
        if site not in ("same-origin", "none") or origin not in (None, f"{scheme}://{host}"):
            raise RefusedError(
                403, f"this request comes from another site ({origin or site}); nothing was done"
            )
        kind = _content_type(headers)
        if kind not in (JSON, FORM, UPLOAD):
            raise RefusedError(415, f"bodies are {JSON}, {FORM} or {UPLOAD}, got {kind or 'nothing'!r}")

    def _check_token(self, headers: Headers, path: str, *, reads: bool) -> None:
        if not self._keys.needed or self._keys.opens(_bearer(headers)) or self.is_known(headers):
            return
        if reads and not path.startswith("/api/") and "text/html" in headers.get("accept", ""):
            raise RefusedError(303, "log in first", location="/login")
        raise RefusedError(401, "this needs the token: send it as the header Authorization: Bearer TOKEN")

    def is_known(self, headers: Headers) -> bool:
        """Whether the request carries the cookie of somebody who gave the token."""
        return self._keys.remembers(_cookie(headers.get("cookie", "")))

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The whole body; refused as soon as it is too long, and when it takes too long."""
        headers = Headers(scope=scope)
        limit = self._settings.max_upload if _content_type(headers) == UPLOAD else self._settings.max_body
        if scope["path"] == "/login":
            limit = min(limit, 4096)
        declared = headers.get("content-length", "0")
        if not declared.isdigit() or int(declared) > limit:
            raise RefusedError(413, f"the body may have {limit} bytes, and {declared} were announced")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                return await _read(receive, limit)
        except TimeoutError:
            raise RefusedError(408, f"the body did not arrive within {BODY_SECONDS:g} seconds") from None

    async def _refuse(self, scope: Scope, send: Send, refused: RefusedError) -> None:
        kind, body = self._explain(scope, refused.status, str(refused))
        headers = {"content-type": kind, "content-length": str(len(body)), "connection": "close"}
        if refused.location is not None:
            headers["location"] = refused.location
        if refused.status == 401:
            headers["www-authenticate"] = "Bearer"
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": refused.status, "headers": raw})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _with_headers(send: Send) -> Send:
    """The same, adding the headers that every answer has; only files that never change may be kept."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            extra = {**SECURITY_HEADERS, "cache-control": "no-store"}
            message["headers"] = [*message["headers"], *_missing(extra, present)]
        await send(message)

    return guarded


def _missing(headers: dict[str, str], present: set[bytes]) -> Iterable[tuple[bytes, bytes]]:
    return ((n.encode(), v.encode()) for n, v in headers.items() if n.encode() not in present)


async def _read(receive: Receive, limit: int) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RefusedError(400, "the connection ended before the body did")
        body += message.get("body", b"")
        if len(body) > limit:
            raise RefusedError(413, f"the body is longer than {limit} bytes")
        if not message.get("more_body", False):
            return bytes(body)


async def _drain(receive: Receive) -> None:
    """Let a client finish sending, within reason: one that is cut off never reads the answer."""
    taken, more = 0, True
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while more and taken < DRAIN_BYTES:
                message = await receive()
                taken, more = taken + len(message.get("body", b"")), message.get("more_body", False)
    except TimeoutError:
        pass


def _replay(body: bytes) -> Receive:
    """A `receive` that gives the body that was read already."""
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _without_port(host: str) -> str:
    """The name in a Host header.

    >>> _without_port("localhost:8321"), _without_port("[::1]:8321"), _without_port("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _content_type(headers: Headers) -> str:
    return headers.get("content-type", "").split(";")[0].strip().lower()


def _bearer(headers: Headers) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value
