"""The names of workers that were given none, and whether such a worker is still there.

Threads and processes that share a session must have different names, or they are given the same requests.
"""

from __future__ import annotations

import os
import re
import socket
import threading

_NAME = re.compile(
    r"(?:run on )?(?P<host>.*), process (?P<process>\d+)(?:, call \d+)?(?:, thread (?P<thread>\d+))?"
)


def default_worker() -> str:
    """Return the name of this thread as a worker: host, process and thread."""
    return f"{socket.gethostname()}, process {os.getpid()}, thread {threading.get_native_id()}"


def is_dead(worker: str) -> bool:
    """Return whether this names a process on this host, or a thread of this process, that has ended.

    >>> is_dead("truck 7"), is_dead(default_worker())
    (False, False)
    """
    found = _NAME.fullmatch(worker)
    if found is None or found["host"] != socket.gethostname() or os.name != "posix":
        return False
    if int(found["process"]) == os.getpid():
        living = {thread.native_id for thread in threading.enumerate()}
        return found["thread"] is not None and int(found["thread"]) not in living
    try:
        os.kill(int(found["process"]), 0)
    except ProcessLookupError:
        return True
    except OSError:  # it lives, and belongs to another user
        return False
    return False
