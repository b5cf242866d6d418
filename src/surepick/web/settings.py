"""What the dashboard was started with, checked once."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from surepick.errors import ParameterError
from surepick.store import Store

SHORTEST_TOKEN = 16  # characters; shorter ones could be guessed
MEBI = 2**20


@dataclass(frozen=True)
class Settings:
    """Where the dashboard looks, where it listens, and what it allows.

    >>> Settings("memory://").is_local
    True
    """

    store: str | Store
    host: str = "127.0.0.1"
    port: int = 8321
    write: bool = False
    token: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()  # names under which the server may be addressed, besides its own
    public_url: str | None = None  # where browsers find it, behind a proxy: https://plans.example.org
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose forwarded headers are believed
    max_body: int = MEBI // 4  # bytes of a form or a JSON body
    max_upload: int = 8 * MEBI  # bytes of a problem file with its attachments
    patience: float = 2.0  # seconds that a page waits for a session to be opened; then it is shown without

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ParameterError(
                f"the token has {len(self.token)} characters and needs at least {SHORTEST_TOKEN}; make one "
                "with: python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        if self.public_url is not None:
            object.__setattr__(self, "public_url", _checked_url(self.public_url))
        for proxy in self.trusted_proxies:
            _network(proxy)
        if self.token is None and not (self.is_local and self.public_url is None):
            where = f"listening on {self.host!r}" if self.public_url is None else f"{self.public_url!r}"
            raise ParameterError(
                f"{where} lets others in, so it needs a token: give --token-file FILE or "
                "set SUREPICK_TOKEN, or listen on 127.0.0.1"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def origin(self, scheme: str, host: str, client: str, forwarded: tuple[str, str]) -> str:
        """Where the browser that asks believes to be: scheme, name and port.

        That is what the request says, but for two cases: the name of `public_url`, and a request from a
        trusted proxy, whose `forwarded` scheme and host are believed. Nobody else's are.
        """
        if self.public_url is not None and host.lower() == urlsplit(self.public_url).netloc:
            return self.public_url
        trusted = is_address(client) and any(_parse(client) in _network(one) for one in self.trusted_proxies)
        if trusted and forwarded[0] in ("http", "https"):
            return f"{forwarded[0]}://{forwarded[1] or host}"
        return f"{scheme}://{host}"

    def knows_host(self, name: str) -> bool:
        """Whether the server may be addressed by this name.

        A page of another origin can point a name of its own at this server (DNS rebinding), but never an
        address or a name it does not control.
        """
        public = None if self.public_url is None else urlsplit(self.public_url).hostname
        known = {"localhost", self.host.lower(), public, *self.allowed_hosts}
        return is_address(name) or name.lower() in known


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or (is_address(host) and _parse(host).is_loopback)


def _checked_url(url: str) -> str:
    """The origin of this URL; refused if it has a path or is none."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        valid = False
    if not valid or parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ParameterError(
            f"the public URL is a scheme and a name, such as https://plans.example.org, got {url!r}; the "
            "dashboard needs a name of its own, not a path"
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ParameterError(
            f"a trusted proxy is an address or a network, such as 127.0.0.1 or 10.0.0.0/8, got {text!r}"
        ) from None


def is_address(name: str) -> bool:
    """Whether this is an IP address, with or without the brackets of a URL.

    >>> is_address("127.0.0.1"), is_address("[::1]"), is_address("example.org")
    (True, True, False)
    """
    try:
        _parse(name)
    except ValueError:
        return False
    return True


def _parse(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
