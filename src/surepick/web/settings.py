"""What the server was started with, checked once."""

from __future__ import annotations

import ipaddress
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from surepick.errors import FileError, ParameterError
from surepick.store import Store

SHORTEST_TOKEN = 16  # characters; shorter ones could be guessed
ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"  # of tokens that are made here: 99 bits in 20 letters


@dataclass(frozen=True)
class Settings:
    """Where the sessions are, where the server listens, and what it allows.

    >>> Settings("memory://", token="correct horse battery").knows_host("localhost")
    True
    """

    store: str | Store
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    read_only: bool = False
    allowed_hosts: tuple[str, ...] = ()  # further names under which the server may be addressed
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded headers are believed

    def __post_init__(self) -> None:
        if len(self.token) < SHORTEST_TOKEN:
            raise ParameterError(
                f"the token has {len(self.token)} characters and needs at least {SHORTEST_TOKEN}; delete the "
                "token file and surepick makes a new one",
                field="token",
            )
        for proxy in self.trusted_proxies:
            try:
                ipaddress.ip_network(proxy, strict=False)
            except ValueError:
                raise ParameterError(
                    "a trusted proxy is an address or a network, such as 127.0.0.1 or 10.0.0.0/8, got "
                    f"{proxy!r}",
                    field="trust_proxy",
                ) from None

    def knows_host(self, name: str) -> bool:
        """Return whether the server may be addressed by this name.

        A page of another origin can point a name of its own at this server (DNS rebinding), but never an
        address or a name that it does not control.
        """
        known = {"localhost", self.host.lower(), *self.allowed_hosts}
        return _is_address(name) or name.lower() in known


def _is_address(name: str) -> bool:
    """Return whether this is an IP address, with or without the brackets of a URL.

    >>> _is_address("[::1]"), _is_address("example.org")
    (True, False)
    """
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def default_token_file() -> Path:
    """Return where the token of this user is kept."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "surepick" / "token"


def token_in(path: Path) -> str:
    """Return the token in this file, which only its owner can read; make both if there is no file yet.

    A token that is kept lets cookies hold over restarts. It has no letters that look alike, so that it can be
    typed on a phone.
    """
    try:
        if path.exists():
            return path.read_text(encoding="utf-8").strip()
        token = "-".join("".join(secrets.choice(ALPHABET) for _ in range(5)) for _ in range(4))
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token + "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"cannot keep a token in {str(path)!r}: {error}; name another with --token-file",
            field="token_file",
        ) from None
    return token
