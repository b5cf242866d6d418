"""Secrets: the token that lets people in, the cookie that remembers it, the key that every form carries."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

COOKIE = "surepick"
COOKIE_SECONDS = 12 * 3600


class Keys:
    """Makes and checks secrets; every comparison takes the same time whatever was given.

    >>> keys = Keys("a long enough token")
    >>> keys.opens("a long enough token"), keys.opens("another"), keys.remembers(keys.new_cookie())
    (True, False, True)
    """

    def __init__(self, token: str | None) -> None:
        self.needed = token is not None
        self._secret = secrets.token_bytes(32) if token is None else hashlib.sha256(token.encode()).digest()

    def opens(self, token: str) -> bool:
        """Whether this is the token."""
        return self.needed and hmac.compare_digest(self._secret, hashlib.sha256(token.encode()).digest())

    def new_cookie(self) -> str:
        """A cookie for somebody who gave the token; the token cannot be had from it."""
        until = str(int(time.time()) + COOKIE_SECONDS)
        return f"{until}.{self._sign('cookie', until)}"

    def remembers(self, cookie: str) -> bool:
        """Whether this is a cookie that has not expired."""
        until, _, signature = cookie.partition(".")
        signed = hmac.compare_digest(self._sign("cookie", until).encode(), signature.encode())
        return signed and float(until) > time.time()

    @property
    def form_key(self) -> str:
        """What a form of this server carries; a page of another origin cannot read it."""
        return self._sign("form", "")

    def is_form_key(self, given: str) -> bool:
        """Whether a form was made by this server."""
        return hmac.compare_digest(self.form_key.encode(), given.encode())

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()
