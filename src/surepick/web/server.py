"""Listening with uvicorn; connections that stall are closed."""

from __future__ import annotations

import asyncio
import socket
from types import FrameType
from typing import Any, NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from surepick.errors import ParameterError
from surepick.web.app import create_app
from surepick.web.live import Hub
from surepick.web.settings import Settings

HEADER_SECONDS = 15.0  # in which the headers of a request have to arrive
STALL_SECONDS = 30.0  # in which a client has to take what waits for it
MOST_CONNECTIONS = 1000
SEND_BUFFER = 128 * 1024  # bytes that the system keeps for one client; unset, a slow one could have megabytes


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that closes connections of clients that send no request or read no answer."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._asking: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the headers of the first request."""
        super().connection_made(transport)
        self._watch_asking()

    def data_received(self, data: bytes) -> None:
        """Read bytes; headers that are not complete yet have a deadline."""
        super().data_received(data)
        self._watch_asking()

    def pause_writing(self) -> None:
        """Start the timer for a client that does not read."""
        super().pause_writing()
        self._reading = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop that timer."""
        super().resume_writing()
        _cancel(self._reading)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        _cancel(self._asking)
        _cancel(self._reading)
        super().connection_lost(exc)

    def _watch_asking(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            _cancel(self._asking)
            self._asking = None
        elif self._asking is None:
            self._asking = self.loop.call_later(HEADER_SECONDS, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


class Server(uvicorn.Server):
    """A server that ends its live streams when it stops, instead of waiting for their viewers."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self.hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the streams, then stop."""
        self.hub.stop()
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
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)  # inherited by its connections
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


# Standard output keeps the address alone; requests and errors go to standard error.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "error": {"format": "%(asctime)s %(levelname)s %(message)s"},
        "request": {
            "()": "uvicorn.logging.AccessFormatter",
            "fmt": '%(asctime)s %(client_addr)s "%(request_line)s" %(status_code)s',
            "use_colors": False,
        },
    },
    "handlers": {
        "error": {"class": "logging.StreamHandler", "formatter": "error"},
        "request": {"class": "logging.StreamHandler", "formatter": "request"},
    },
    "loggers": {
        "uvicorn.error": {"handlers": ["error"], "level": "WARNING", "propagate": False},
        "uvicorn.access": {"handlers": ["request"], "level": "INFO", "propagate": False},
    },
}


def make_server(settings: Settings, *, log_level: str = "warning") -> Server:
    """Return a server for these settings, ready to `run` on a socket of `listen`.

    Errors are logged to standard error; each request too from the level "info" on.
    """
    guard, hub = create_app(settings)
    config = uvicorn.Config(
        guard,
        http=ImpatientProtocol,
        ws="none",
        log_config=LOGGING,
        access_log=log_level in ("debug", "info"),
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return Server(config, hub)
