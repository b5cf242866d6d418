"""What a worker process of `decide` runs; it imports little, so that workers begin quickly."""

from __future__ import annotations

import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from surepick.errors import MeasureError


def serve(pipe: Connection, measure: Callable[[str], Any]) -> None:
    """Measure what comes through the pipe until its other end is closed; report first that it is ready.

    Ctrl-C reaches every process of a terminal. It is the caller's: what is under way here is awaited.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe.send(True)
    while True:
        try:
            probe = pipe.recv()
        except EOFError:
            return
        try:
            answer: tuple[Any, Exception | None] = (measure(probe), None)
        except Exception as error:
            answer = (None, error)
        try:
            pipe.send(answer)
        except Exception as error:  # what was raised, or given, cannot be sent
            pipe.send((None, MeasureError(f"{answer[1] or answer[0]!r} cannot be sent: {error}")))
