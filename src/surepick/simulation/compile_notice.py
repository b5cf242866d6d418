"""Saying, once, that a first start takes long because loops are compiled."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_started: set[type] = set()  # policies whose loops are compiled
_said = threading.Event()  # that loops are being compiled


def is_started(policy_type: type) -> bool:
    """Whether a policy of this kind was started before in this process."""
    return policy_type in _started


@contextmanager
def compile_notice(policy_type: type) -> Iterator[None]:
    """Say on standard error that loops are being compiled, if a first start takes more than a second."""
    if policy_type in _started:
        yield
        return
    done = threading.Event()
    threading.Thread(target=_say_when_it_compiles, args=(done,), daemon=True).start()
    try:
        yield
    finally:
        done.set()
    _started.add(policy_type)


def _say_when_it_compiles(done: threading.Event) -> None:
    while not done.wait(1.0):
        if _say_that_it_compiles():
            return


def _say_that_it_compiles() -> bool:
    """Once; what only takes long because the machine is busy compiles nothing, and says nothing."""
    is_compiling = getattr(sys.modules.get("surepick.kernels.compiled"), "is_compiling", None)
    if is_compiling is None or not is_compiling():  # it may be half imported
        return False
    if not _said.is_set():
        _said.set()
        notice = "surepick: compiling its loops for this machine (once; kept for next time) ..."
        print(notice, file=sys.stderr, flush=True)
    return True
