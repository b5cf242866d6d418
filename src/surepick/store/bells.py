"""Waking one who sleeps in another process: a datagram without content, where the system knows names for it.

On Linux a socket can have a name that is no file and is gone with the socket. Elsewhere, and between
containers that do not share a network, nobody is woken, and who sleeps wakes when its time is over: nothing
rests on a bell but how soon.
"""

from __future__ import annotations

import functools
import socket
import sys
import time
from contextlib import suppress

ARE_THERE = sys.platform == "linux"


class Bell:
    """Something to sleep by; anybody who knows its number may ring it."""

    def __init__(self, number: int) -> None:
        self._socket: socket.socket | None = None
        if ARE_THERE:
            with suppress(OSError):  # too many files are open: it will wake by itself
                bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                bound.bind(_name(number))
                self._socket = bound

    @property
    def can_ring(self) -> bool:
        """Whether somebody can wake who sleeps by it."""
        return self._socket is not None

    def sleep(self, seconds: float) -> None:
        """Sleep for so long, or until somebody rings."""
        if self._socket is None:
            time.sleep(seconds)
            return
        self._socket.settimeout(seconds)
        with suppress(OSError):  # TimeoutError
            self._socket.recv(1)

    def close(self) -> None:
        """It can be rung no more."""
        if self._socket is not None:
            self._socket.close()


def ring(number: int) -> None:
    """Wake whoever sleeps by the bell of this number, if there is one."""
    if ARE_THERE:
        with suppress(OSError):
            _caller().sendto(b"", socket.MSG_DONTWAIT, _name(number))


@functools.cache
def _caller() -> socket.socket:
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def _name(number: int) -> bytes:
    return b"\0surepick %016x" % number
