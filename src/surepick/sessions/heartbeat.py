"""Heartbeats: the leases of a worker that lives are prolonged, so that one that has died is soon noticed.

Without them a token is a worker's for the whole lease, which is as long as the longest measurement may take.
With them it is leased for seconds at a time, again and again, up to that same end. Losing a beat costs at
most one measurement that another worker makes as well.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import surepick.store.connections  # noqa: F401  # its fork hooks come before ours, see the end of this file
from surepick.errors import DeletedError, StoreError
from surepick.store import Store

_LOG = logging.getLogger(__name__)
BEATS = 3  # in the time after which a worker that is silent is taken for dead


class Hold(NamedTuple):
    """A token that is kept: whose it is, for how many seconds at a time, and until when at the longest."""

    worker: str
    seconds: float
    until: float


class Heartbeat:
    """Prolongs leases of one session from a thread of its own, which lives as long as there are some.

    It changes by `hold`, `dropped` and `beat`. Tokens are dropped when their value is recorded, when they
    are released, and when another worker holds them. A forked child has none: they are its parent's.
    """

    def __init__(self, store: Store, name: str, clock: Callable[[], float]) -> None:
        self._store = store
        self._name = name
        self._clock = clock
        self._holds: dict[str, Hold] = {}
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        _LIVING.add(self)

    def hold(self, tokens: Iterable[str], hold: Hold) -> None:
        """Prolong the leases of these tokens from now on; the worker holds them."""
        with self._lock:
            self._holds.update((token, hold) for token in tokens)
            self._set_timer()

    @contextmanager
    def dropped(self, token: str) -> Iterator[None]:
        """Stop prolonging this token while its value is recorded or it is released; resume if that fails.

        Stop first: otherwise a beat might lease a token again whose value was recorded a moment ago.
        """
        with self._lock:
            hold = self._holds.pop(token, None)
        try:
            yield
        except BaseException:
            if hold is not None:
                self.hold([token], hold)
            raise

    def beat(self) -> None:
        """Prolong all leases by as many seconds as they were asked for.

        Whatever goes wrong, with one worker's leases or with all, the next beat tries again.
        """
        with self._lock:
            try:
                now = self._clock()
                self._holds = {token: hold for token, hold in self._holds.items() if hold.until > now}
                alike: dict[Hold, list[str]] = defaultdict(list)
                for token, hold in self._holds.items():
                    alike[hold].append(token)
                for hold, tokens in alike.items():
                    self._prolong(hold, tokens, now)
                self._store.disconnect()  # a connection of this thread would be in the way of a fork
            except Exception:
                _LOG.warning("a heartbeat of session %r failed", self._name, exc_info=True)
            finally:
                self._timer = None
                self._set_timer()

    def _prolong(self, hold: Hold, tokens: list[str], now: float) -> None:
        """Prolong the leases on these tokens, and drop those that another worker has by now."""
        end = min(now + hold.seconds, hold.until)
        held: list[str] = []
        try:
            held = self._store.claim(self._name, tokens, worker=hold.worker, until=end, now=now)
        except DeletedError:
            pass  # all of them are dropped
        except StoreError:
            return  # a server that restarts, for example
        except Exception:
            _LOG.warning("a heartbeat of worker %r failed", hold.worker, exc_info=True)
            return
        for token in set(tokens) - set(held):
            del self._holds[token]

    def pause_for_fork(self) -> None:
        """Wait for a beat that is under way; none begins until `go_on`."""
        self._lock.acquire()

    def go_on(self) -> None:
        """Release the lock in the parent, after a fork."""
        self._lock.release()

    def begin_anew(self) -> None:
        """Drop all leases and the timer in the child, after a fork: they belong to the parent."""
        self._holds, self._timer, self._lock = {}, None, threading.Lock()

    def _set_timer(self) -> None:
        if self._holds and self._timer is None:
            pause = min(hold.seconds for hold in self._holds.values()) / BEATS
            self._timer = threading.Timer(pause, self.beat)
            self._timer.daemon = True
            self._timer.start()


_LIVING: weakref.WeakSet[Heartbeat] = weakref.WeakSet()
_PAUSED: list[Heartbeat] = []


def _before_fork() -> None:
    _PAUSED[:] = _LIVING
    for heart in _PAUSED:
        heart.pause_for_fork()


def _in_parent() -> None:
    for heart in _PAUSED:
        heart.go_on()
    _PAUSED.clear()


def _in_child() -> None:
    for heart in _PAUSED:
        heart.begin_anew()
    _PAUSED.clear()


# Hooks before a fork run in reverse order of registration. Ours must run before those of the store: a beat
# that is under way may be opening a connection, which waits for the lock that the store holds during a fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
