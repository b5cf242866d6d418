"""How this project compiles its loops: cached on disk, most without reference counting.

It and `lean_compiler`, which has Numba do less, alone import Numba.

Most of the work is LLVM's, and Numba has it done for every function by itself, and again in each function
that calls it. Functions that no Python calls are spared that (`compiled_inner`): they are optimised, and made
machine code, only as parts of who calls them. It halves the wait for the first run.

Numba keeps machine code by the file that a function stands in, and does not see when a function that it
calls has changed in another file. So the cache is a folder of our own, named by a digest of every file that
compiled code may come from: any change there, or another Numba, means another folder. It lies in
NUMBA_CACHE_DIR if that is set, else in the package, or in the user's cache folder where the package cannot be
written. Where none can be written, each process compiles for itself.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.core.event

from surepick.kernels.lean_compiler import (
    TRIED,
    AllocatingCompiler,
    ExactCompiler,
    FastCompiler,
    InnerCompiler,
    Ours,
)

_F = TypeVar("_F", bound=Callable[..., Any])

_numba: Any = numba  # most of what is used here has no types
_settings: Any = numba.config
_PACKAGE = Path(__file__).parent.parent
_ROOMS = ("kernels", "policies", "peers", "problems", "simulation")  # those that may import this module
_NAME = "surepick."
_PREFIX = "surepick-"
_KEPT = 4  # cache folders of other versions that are left in place

# Sums may be reordered and multiply-adds fused; NaN, infinities and signed zeros do not occur.
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}
_INNER = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def compiled(function: _F) -> _F:
    """Compile with exact floating point; the function must not allocate.

    Reference counting is left out (`_nrt`): counting the arrays of a state in and out of every call would
    cost more than the work itself.
    """
    return _njit(function, _nrt=False, no_cfunc_wrapper=True, pipeline_class=ExactCompiler)


def compiled_allocating(function: _F) -> _F:
    """Compile a function that makes arrays of its own."""
    return _njit(function, no_cfunc_wrapper=True, pipeline_class=AllocatingCompiler)


def compiled_fast(function: _F) -> _F:
    """Compile a pass over long arrays so that it is vectorised; see `_FAST` for what that assumes."""
    lean = {"_nrt": False, "no_cfunc_wrapper": True, "pipeline_class": FastCompiler}
    return _njit(function, **lean, fastmath=_FAST)


def compiled_inner(function: _F) -> _F:
    """Compile for other compiled functions alone, which is sooner; Python must never call it."""
    return _linked(function)


def compiled_in_place(function: _F) -> _F:
    """Compile as a part of its caller: a step of a tight loop, called in one place.

    A loop over few plans is a third faster so; but of a function that is called in several places, there
    would be more to compile.
    """
    return _linked(function, forceinline=True)


def compiled_inner_fast(function: _F) -> _F:
    """Compile a pass over long arrays for other compiled functions alone.

    It is optimised by itself, so that the order of its sums does not depend on who calls it.
    """
    return _njit(function, **_INNER, pipeline_class=FastCompiler, fastmath=_FAST)


def is_compiling() -> bool:
    """Whether machine code was made in this process, or is being made, rather than read from the cache."""
    return _compilations.n > 0


class _Compilations(numba.core.event.Listener):
    """How often Numba has begun to compile something; Python's search for garbage rests meanwhile.

    Compiling makes a million small objects and no garbage worth a search, which took a tenth of the wait.
    Numba compiles one thing at a time, and within it what that calls.
    """

    n = 0
    _depth = 0
    _collects = False

    def on_start(self, event: Any) -> None:
        """Count it; with the first, stop the search."""
        self.n += 1
        if self._depth == 0:
            Ours.is_compiling = event.data["dispatcher"].py_func.__module__.startswith(_NAME)
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, _event: Any) -> None:
        """With the last, let the search go on if it was on."""
        self._depth -= 1
        if self._depth == 0:
            Ours.is_compiling = False
            if self._collects:
                gc.enable()


_compilations = _Compilations()
_numba.core.event.register("numba:compile", _compilations)


def kernel_sources(package: Path = _PACKAGE) -> list[Path]:
    """Every file whose text compiled code may depend on: all files of the folders that hold some."""
    files = [path for room in _ROOMS for path in (package / room).rglob("*.py")]
    folders = {path.parent for path in files if b"kernels.compiled" in path.read_bytes()}
    return sorted(path for path in files if path.parent in folders)


def _linked(function: _F, **options: Any) -> _F:
    """Compile for compiled functions that it will be linked into; it is not kept on disk, since they are."""
    options |= _INNER
    if not TRIED:
        return _njit(function, **options)
    return _numba.njit(pipeline_class=InnerCompiler, **options)(function)  # type: ignore[no-any-return]


def _njit(function: _F, **options: Any) -> _F:
    """Numba looks for the cache folder in its settings at the moment when a function is decorated."""
    folder, given = _cache_folder(), _settings.CACHE_DIR
    _settings.CACHE_DIR = str(folder or "")
    try:
        decorated: _F = numba.njit(cache=folder is not None, **options)(function)
    finally:
        _settings.CACHE_DIR = given
    return decorated


@functools.cache
def _cache_folder() -> Path | None:
    """Where machine code of these sources is kept; None if nowhere can be written."""
    for place in _places():
        folder = place / (_PREFIX + _digest())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            os.utime(folder)  # says when it was used, and fails where it cannot be written
        except OSError:
            continue
        _remove_stale(folder)
        return folder
    return None


def _places() -> Iterator[Path]:
    if _settings.CACHE_DIR:
        yield Path(_settings.CACHE_DIR)
        return
    yield _PACKAGE / "__pycache__"
    with contextlib.suppress(RuntimeError):  # there is no home
        own = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
        yield Path(own).expanduser() / "surepick"


def _digest() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for path in [_PACKAGE / "_version.py", *kernel_sources()]:
        digest.update(f"\0{path.relative_to(_PACKAGE).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _remove_stale(folder: Path) -> None:
    """Remove the folders of other sources but for the few last used."""
    with contextlib.suppress(OSError):  # another process may be removing them too
        others = [path for path in folder.parent.glob(f"{_PREFIX}*") if path != folder]
        for path in sorted(others, key=lambda path: path.stat().st_mtime)[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)
