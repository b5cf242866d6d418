"""The guard: every request passes it before the application sees it, and every answer on its way out.

It checks the name by which the server was addressed, the token or cookie, whether another site made the
browser ask, whether writing is allowed, and reads the body whole, up to a limit and within a time limit.
Starlette's TrustedHostMiddleware does not fit: any IP address is a safe name here.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick.tables import count_in
from surepick.web.settings import Settings

COOKIE = "surepick"
COOKIE_SECONDS = 30 * 24 * 3600
BODY_SECONDS = 30.0  # in which a body has to arrive
DRAIN_SECONDS, DRAIN_BYTES = 1.0, 2**20  # of a refused body that are read and dropped
LONGEST_LOGIN, LONGEST_BODY, LONGEST_UPLOAD = (
    2**12,
    2**18,
    2**23,
)  # bytes; an upload is files, or a form with some
READING = ("GET", "HEAD")
JSON, FORM, UPLOAD = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
PUBLIC = ("/login", "/logout", "/healthz")  # and /static/: they show nothing of the sessions
# A read-only server allows everyone to check a file: that writes nothing.
NO_CHANGE = (*PUBLIC, "/api/check")

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # forms need the origin of their own server
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

# Makes the answer to a refused request from its scope, status, reason and headers.
Refusal = Callable[[Scope, int, str, Mapping[str, str]], Response]


class Keys:
    """The token, and the cookies that are signed with it.

    A cookie says until when it is good and is signed, so it holds over restarts as long as the token stays.
    The signing key is stretched from the token: a copied cookie does not give the token away. Logging out
    revokes a cookie until the server restarts. All comparisons take constant time.

    >>> keys = Keys("a long enough token")
    >>> cookie = keys.new_cookie()
    >>> keys.opens("a long enough token"), keys.opens("another"), keys.remembers(cookie)
    (True, False, True)
    >>> Keys("a long enough token").remembers(cookie), Keys("another long token").remembers(cookie)
    (True, False)
    >>> keys.revoke(cookie)
    >>> keys.remembers(cookie)
    False
    """

    def __init__(self, token: str) -> None:
        self._token = _digest(token)
        self._key = hashlib.scrypt(token.encode(errors="surrogatepass"), salt=b"surepick", n=2**14, r=8, p=1)
        self._revoked: set[bytes] = set()

    def opens(self, token: str) -> bool:
        """Return whether this is the token."""
        return hmac.compare_digest(self._token, _digest(token))

    def new_cookie(self) -> str:
        """Return a cookie for a browser that sent the token."""
        body = f"{int(time.time()) + COOKIE_SECONDS}.{secrets.token_urlsafe(12)}"
        return f"{body}.{self._sign(body)}"

    def remembers(self, cookie: str) -> bool:
        """Return whether this is a cookie of ours that has neither ended nor been revoked."""
        body, _, mark = cookie.rpartition(".")
        if not hmac.compare_digest(_digest(self._sign(body)), _digest(mark)):
            return False
        return (count_in(body.partition(".")[0]) or 0) > time.time() and _digest(cookie) not in self._revoked

    def revoke(self, cookie: str) -> None:
        """End this cookie."""
        if self.remembers(cookie):
            self._revoked.add(_digest(cookie))

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


class RefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Guard:
    """An ASGI application around another one; `refusal` answers a request that goes no further."""

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
            return None  # there are no websockets
        guarded = _with_headers(send)
        try:
            asked = HTTPConnection(scope)
            self._check(asked)
            if scope["method"] not in READING:
                receive = _replay(await self._body(Request(scope, receive)))
        except RefusedError as refused:
            await _drain(receive)
            headers = {**refused.headers, "connection": "close"}
            answer = self._refusal(scope, refused.status, str(refused), headers)
            return await answer(scope, receive, guarded)
        return await self.app(scope, receive, guarded)

    def _check(self, asked: HTTPConnection) -> None:
        path = asked.scope["path"]
        reads = asked.scope["method"] in READING
        name = _without_port(asked.headers.get("host", ""))
        if not self._settings.knows_host(name):
            raise RefusedError(421, f"Host {name!r} is not allowed; restart with --allow-host {name}.")
        self._check_origin(asked, reads=reads)
        if path.startswith("/static/") or path in PUBLIC:
            return
        self._check_token(asked, reads=reads)
        if not reads and self._settings.read_only and path not in NO_CHANGE:
            raise RefusedError(403, "This server is read-only; restart it without --read-only.")

    def _check_origin(self, asked: HTTPConnection, *, reads: bool) -> None:
        """Refuse what another site made the browser do; browsers say so, and other programs need not."""
        headers = asked.headers
        own = f"{asked.scope['scheme']}://{headers.get('host', '')}"
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site", "none")
        if reads:
            if site == "cross-site" and headers.get("sec-fetch-mode", "navigate") != "navigate":
                raise RefusedError(403, "Another site may not read from this one.")
            return
        if site not in ("same-origin", "none") or origin not in (None, own):
            came = f"This request comes from another site ({origin or site}); nothing was done."
            proxied = origin is not None and origin.partition("://")[2] == own.partition("://")[2]
            hint = " Behind a proxy, restart with --trust-proxy ADDRESS of the proxy." if proxied else ""
            raise RefusedError(403, came + hint)
        kind = _content_type(headers)
        if kind not in (JSON, FORM, UPLOAD):
            raise RefusedError(415, f"A body is {JSON}, {FORM} or {UPLOAD}, got {kind or 'nothing'!r}.")

    def _check_token(self, asked: HTTPConnection, *, reads: bool) -> None:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        # A page of another site can make a browser send its cookie, never this header.
        if scheme.lower() == "bearer" and self._keys.opens(token.strip()):
            return
        if self._keys.remembers(asked.cookies.get(COOKIE, "")):
            if reads or asked.headers.get("origin") is not None:
                return
            raise RefusedError(403, "A form names the page it comes from (header Origin); this one did not.")
        if reads and wants_html(asked):
            query = asked.scope.get("query_string", b"").decode("latin-1")
            page = quote(asked.scope["path"]) + (f"?{query}" if query else "")
            back = "" if page == "/" else f"?next={quote(page, safe='')}"
            raise RefusedError(303, "Log in first.", location=f"/login{back}")
        reason = "This needs the token: send it as the header Authorization: Bearer TOKEN."
        raise RefusedError(401, reason, www_authenticate="Bearer")

    async def _body(self, request: Request) -> bytes:
        """Return the whole body; refused as soon as it is too long, and when it takes too long."""
        is_upload = _content_type(request.headers) == UPLOAD
        limit = LONGEST_UPLOAD if is_upload else LONGEST_BODY
        if request.scope["path"] == "/login":
            limit = LONGEST_LOGIN
        declared = request.headers.get("content-length", "0")
        announced = count_in(declared)
        if announced is None or announced > limit:
            raise RefusedError(413, f"A body may have {limit} bytes here, {declared[:20]} were announced.")
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


def wants_html(asked: HTTPConnection) -> bool:
    """Return whether to answer with a page: browsers name HTML, programs do not."""
    return "text/html" in asked.headers.get("accept", "")


def is_form(asked: HTTPConnection) -> bool:
    """Return whether the body is what a form of a page sends."""
    return _content_type(asked.headers) in (FORM, UPLOAD)


def safe_path(path: str) -> str:
    """Return the path to open after logging in, if it is one of this server; otherwise the home page.

    >>> safe_path("/s/trips?a=1"), safe_path("//evil.example"), safe_path("https://evil.example")
    ('/s/trips?a=1', '/', '/')
    """
    plain = path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path.startswith("/") and not path.startswith("//") else "/"


def _with_headers(send: Send) -> Send:
    """Return a `send` that adds the headers that every answer has."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return guarded


async def _drain(receive: Receive) -> None:
    """Let a client finish sending, within limits: one that is cut off never reads the answer."""
    taken, more = 0, True
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while more and taken < DRAIN_BYTES:
                message = await receive()
                taken, more = taken + len(message.get("body", b"")), message.get("more_body", False)
    except TimeoutError:
        pass


def _replay(body: bytes) -> Receive:
    """Return a `receive` that gives the body that was read already."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Message:
        return next(messages, {"type": "http.disconnect"})

    return receive


def _without_port(host: str) -> str:
    """Return the name in a Host header.

    >>> _without_port("localhost:8000"), _without_port("[::1]:8000"), _without_port("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _content_type(headers: Headers) -> str:
    return headers.get("content-type", "").split(";")[0].strip().lower()
