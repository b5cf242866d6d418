"""Listening with uvicorn."""

from __future__ import annotations

import copy
import socket
from types import FrameType
from typing import NamedTuple

import uvicorn

from surepick.errors import ParameterError
from surepick.web.app import create_app
from surepick.web.live import Live
from surepick.web.settings import Settings

MOST_CONNECTIONS = 1000


class Server(uvicorn.Server):
    """A server that ends its live streams when it stops, instead of waiting for their viewers."""

    def __init__(self, config: uvicorn.Config, live: Live) -> None:
        super().__init__(config)
        self.live = live

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, then stop."""
        self.live.stop()
        super().handle_exit(sig, frame)


class Listening(NamedTuple):
    """A listening socket, and the address to type into a browser."""

    socket: socket.socket
    url: str


def listen(settings: Settings) -> Listening:
    """Open the socket of these settings."""
    host = settings.host.removeprefix("[").removesuffix("]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        opened = socket.create_server((host, settings.port), family=family)
    except OSError as error:
        raise ParameterError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; choose another --port "
            "or --host",
            field="port",
        ) from None
    reached = _reached_at(host)
    name = f"[{reached}]" if ":" in reached else reached
    return Listening(opened, f"http://{name}:{opened.getsockname()[1]}")


def _reached_at(host: str) -> str:
    """Return the address that other machines use, for a host that means all addresses of this one."""
    if host not in ("0.0.0.0", "::"):
        return host
    family, elsewhere = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect((elsewhere, 9))  # chooses a route; nothing is sent
        except OSError:
            return "::1" if ":" in host else "127.0.0.1"
        return str(asking.getsockname()[0])


# Standard output keeps the address alone; requests and errors go to standard error, each with its time.
LOGGING = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
LOGGING["handlers"]["access"]["stream"] = "ext://sys.stderr"
LOGGING["loggers"]["uvicorn.error"]["level"] = "WARNING"
LOGGING["formatters"]["default"]["fmt"] = "%(asctime)s %(levelname)s %(message)s"
LOGGING["formatters"]["access"]["fmt"] = '%(asctime)s %(client_addr)s "%(request_line)s" %(status_code)s'


def make_server(settings: Settings, *, log_level: str = "warning") -> Server:
    """Return a server for these settings, ready to `run` on a socket of `listen`.

    Errors are logged to standard error; each request too from the level "info" on.
    """
    guard, live = create_app(settings)
    config = uvicorn.Config(
        guard,
        http="h11",
        ws="none",
        log_config=LOGGING,
        access_log=log_level in ("debug", "info"),
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return Server(config, live)
