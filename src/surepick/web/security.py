"""The door: every request passes it before anything else sees it, and every answer on its way out.

It checks the name by which the server was addressed, who asks, whether another site made the browser ask,
whether writing is allowed, and reads the body whole, up to a limit and within a time limit. Starlette's
TrustedHostMiddleware does not fit: any IP address is a safe name here, however the machine is reached.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick.core.tables import count_in
from surepick.web.settings import Settings

COOKIE = "surepick"
COOKIE_SECONDS = 12 * 3600
BODY_SECONDS = 30.0  # in which a body has to arrive
DRAIN_SECONDS, DRAIN_BYTES = 1.0, 2**20  # of a refused body that are taken and thrown away
LONGEST_LOGIN = 4096  # bytes
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
    "cache-control": "no-store",
}

Refusal = Callable[[str, int, str, Mapping[str, str]], Response]  # of a path: status, reason, headers


class Keys:
    """The token that lets people in, the cookies that remember them, the key that every form carries.

    Cookies change as people log in and out; they are random, so the token cannot be had from one, and they
    end with the server. Every comparison takes the same time whatever was given.

    >>> keys = Keys("a long enough token")
    >>> cookie = keys.new_cookie()
    >>> keys.opens("a long enough token"), keys.opens("another"), keys.remembers(cookie)
    (True, False, True)
    >>> keys.forget(cookie)
    >>> keys.remembers(cookie)
    False
    """

    def __init__(self, token: str | None) -> None:
        self.needed = token is not None
        self.form_key = secrets.token_urlsafe()  # a page of another origin cannot read it
        self._token = _digest(token or secrets.token_urlsafe())
        self._cookies: dict[bytes, float] = {}  # digest: until when it is good

    def opens(self, token: str) -> bool:
        """Whether this is the token."""
        return self.needed and hmac.compare_digest(self._token, _digest(token))

    def is_form_key(self, given: str) -> bool:
        """Whether a form was made by this server."""
        return hmac.compare_digest(_digest(self.form_key), _digest(given))

    def new_cookie(self) -> str:
        """A cookie for somebody who gave the token."""
        now, cookie = time.time(), secrets.token_urlsafe()
        self._cookies = {kept: until for kept, until in self._cookies.items() if until > now}
        self._cookies[_digest(cookie)] = now + COOKIE_SECONDS
        return cookie

    def remembers(self, cookie: str) -> bool:
        """Whether this is a cookie that has not ended."""
        return self._cookies.get(_digest(cookie), 0.0) > time.time()

    def forget(self, cookie: str) -> None:
        """End this cookie."""
        self._cookies.pop(_digest(cookie), None)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


class RefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Guard:
    """An ASGI application around another one; `refusal` is the answer to a request that goes no further."""

    def __init__(self, app: ASGIApp, settings: Settings, keys: Keys, refusal: Refusal) -> None:
        self.app = app
        self._settings = settings
        self._keys = keys
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return None  # websockets: there are none
        guarded = _with_headers(send)
        try:
            asked = HTTPConnection(scope)
            own = self._origin(asked)
            scope["scheme"] = own.split(":")[0]  # cookies go by it
            self._check(asked, own, reads=scope["method"] in READING)
            if scope["method"] not in READING:
                receive = _replay(await self._body(Request(scope, receive)))
        except RefusedError as refused:
            await _drain(receive)
            headers = {**refused.headers, "connection": "close"}
            answer = self._refusal(scope["path"], refused.status, str(refused), headers)
            return await answer(scope, receive, guarded)
        return await self.app(scope, receive, guarded)

    def _check(self, asked: HTTPConnection, own: str, *, reads: bool) -> None:
        host, path = asked.headers.get("host", ""), asked.scope["path"]
        name = _without_port(host)
        if not self._settings.knows_host(name):
            raise RefusedError(421, f"Host {name!r} is not allowed; restart with --allow-host {name}.")
        self._check_origin(asked.headers, own, reads=reads)
        if path.startswith("/static/") or path in ("/login", "/logout", "/healthz"):
            return
        self._check_token(asked, path, reads=reads)
        if not reads and not self._settings.write:
            raise RefusedError(403, "This dashboard is read-only; restart it with --write to allow changes.")

    def _origin(self, asked: HTTPConnection) -> str:
        """Where the browser believes to be."""
        headers, client = asked.headers, "" if asked.client is None else asked.client.host
        forwarded = tuple(
            headers.get(f"x-forwarded-{what}", "").strip().lower() for what in ("proto", "host")
        )
        scheme = asked.scope.get("scheme", "http")
        return self._settings.origin(scheme, headers.get("host", ""), client, (forwarded[0], forwarded[1]))

    def _check_origin(self, headers: Headers, own: str, *, reads: bool) -> None:
        """Refuse what another site made the browser do; browsers say so, and other programs need not."""
        site, origin = headers.get("sec-fetch-site", "none"), headers.get("origin")
        if reads:
            if site == "cross-site" and headers.get("sec-fetch-mode", "navigate") != "navigate":
                raise RefusedError(403, "Another site may not read from this one.")
            return
        if site not in ("same-origin", "none") or origin not in (None, own):
            came = f"This request comes from another site ({origin or site}); nothing was done."
            proxied = origin is not None and origin.partition("://")[2] == own.partition("://")[2]
            hint = f" Behind a proxy, restart with --public-url {origin}." if proxied else ""
            raise RefusedError(403, came + hint)
        kind = _content_type(headers)
        if kind not in (JSON, FORM, UPLOAD):
            raise RefusedError(415, f"A body is {JSON}, {FORM} or {UPLOAD}, got {kind or 'nothing'!r}.")

    def _check_token(self, asked: HTTPConnection, path: str, *, reads: bool) -> None:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if (
            not self._keys.needed
            or (scheme.lower() == "bearer" and self._keys.opens(token.strip()))
            or self._keys.remembers(asked.cookies.get(COOKIE, ""))
        ):
            return
        if reads and not path.startswith("/api/") and "text/html" in asked.headers.get("accept", ""):
            raise RefusedError(303, "Log in first.", location="/login")
        reason = "This needs the token: send it as the header Authorization: Bearer TOKEN."
        raise RefusedError(401, reason, www_authenticate="Bearer")

    async def _body(self, request: Request) -> bytes:
        """The whole body; refused as soon as it is too long, and when it takes too long."""
        is_upload = _content_type(request.headers) == UPLOAD
        limit = self._settings.max_upload if is_upload else self._settings.max_body
        if request.scope["path"] == "/login":
            limit = LONGEST_LOGIN
        declared = request.headers.get("content-length", "0")
        announced = count_in(declared)
        if announced is None or announced > limit:
            raise RefusedError(
                413, f"A body may have {limit} bytes here, and {declared[:20]} were announced."
            )
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise RefusedError(413, f"A body may have {limit} bytes here, and more came.")
        except TimeoutError:
            raise RefusedError(408, f"The body did not arrive within {BODY_SECONDS:g} seconds.") from None
        except ClientDisconnect:
            raise RefusedError(400, "The connection ended before the body did.") from None
        return bytes(body)


def _with_headers(send: Send) -> Send:
    """The same, adding the headers that every answer has."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


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
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        return next(messages, {"type": "http.disconnect"})

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
