"""Standard output is for answers: what libraries print there by themselves goes to standard error.

HiGHS, which solves the programs, writes to file descriptor 1 on some hard integer programs, whatever it is
told; one such line in front of an answer in JSON would spoil it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from surepick.errors import FileError


@contextmanager
def answers_only() -> Iterator[None]:
    """Let `sys.stdout` alone reach standard output; what else is written there goes to standard error.

    It moves a file descriptor of the whole process, so it is for the main function of a program.
    """
    given = sys.stdout
    if not _are_open():
        yield
        return
    given.flush()
    buffering = 1 if given.isatty() else -1
    answers = os.fdopen(os.dup(1), "w", encoding=given.encoding, errors=given.errors, buffering=buffering)
    sys.stdout = answers
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout = given
        os.dup2(answers.fileno(), 1)
        _close(answers)


def _close(answers: TextIO) -> None:
    """Write what is left; a reader who had enough, such as `head`, is no error that anybody wants to read."""
    try:
        answers.close()
    except BrokenPipeError:
        raise SystemExit(1) from None
    except OSError as error:
        raise FileError(
            f"the answer cannot be written to standard output ({error.strerror}); send it elsewhere; "
            "what the command recorded stays recorded"
        ) from None


def _are_open() -> bool:
    """Whether standard output and error are open, and the process's own rather than a test's."""
    try:
        return sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2
    except (AttributeError, OSError, ValueError):
        return False
