"""Locks on single bytes of a file, held by processes; the kernel frees those of a process that dies."""

from __future__ import annotations

try:
    import fcntl
except ModuleNotFoundError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

ARE_THERE = fcntl is not None


def lock(handle: int, first: int, count: int) -> bool:
    """Whether these bytes are this process's now: nobody else had any of them."""
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, count, first)
    except OSError:
        return False
    return True


def unlock(handle: int, first: int, count: int) -> None:
    """Let go of these bytes."""
    if count:  # lockf takes 0 for everything from there on
        fcntl.lockf(handle, fcntl.LOCK_UN, count, first)
