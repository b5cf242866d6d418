"""What the dashboard was started with, checked once."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

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
    results: Path | None = None  # a folder with rows of experiments
    max_body: int = MEBI // 4  # bytes of a form or a JSON body
    max_upload: int = 8 * MEBI  # bytes of a problem file with its attachments

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise ParameterError(
                f"the token has {len(self.token)} characters and needs at least {SHORTEST_TOKEN}; make one "
                "with: python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        if self.results is not None and not self.results.is_dir():
            raise ParameterError(f"there is no folder of results at {str(self.results)!r}")
        if self.token is None and not self.is_local:
            raise ParameterError(
                f"listening on {self.host!r} lets others in, so it needs a token: give --token-file FILE or "
                "set SUREPICK_TOKEN, or listen on 127.0.0.1"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or (is_address(self.host) and _parse(self.host).is_loopback)

    def knows_host(self, name: str) -> bool:
        """Whether the server may be addressed by this name.

        A page of another origin can point a name of its own at this server (DNS rebinding), but never an
        address or a name it does not control.
        """
        return is_address(name) or name.lower() in {"localhost", self.host.lower(), *self.allowed_hosts}


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
