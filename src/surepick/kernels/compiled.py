"""How loops are compiled: by Numba, kept on disk; without Numba every function runs as it is, slowly.

Functions other than `compiled_allocating` must not allocate: without reference counting (`_nrt`), calls
that pass a state of many arrays cost less. `NUMBA_CACHE_DIR` says where machine code is kept. Numba looks at
a function's own file alone: after a change in a file that others call into, remove the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

_INNER = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # Python never calls it


def is_compiling() -> bool:
    """Return whether Numba is there."""
    try:
        import numba
    except ImportError:
        return False
    return bool(numba)


def _decorator(**options: Any) -> Callable[[_F], _F]:
    """Return what compiles a function with these options, or leaves it as it is where there is no Numba."""
    if not is_compiling():
        return lambda function: function
    import numba

    found: Callable[[_F], _F] = numba.njit(**options)
    return found


def as_python(function: _F) -> _F:
    """Return the function as it was written, for arguments that compiled code cannot take."""
    return getattr(function, "py_func", function)


def compiled(function: _F) -> _F:
    """Compile with exact floating point."""
    return _decorator(cache=True, _nrt=False)(function)


def compiled_allocating(function: _F) -> _F:
    """Compile a function that makes arrays of its own."""
    return _decorator(cache=True)(function)


def compiled_inner(function: _F) -> _F:
    """Compile for other compiled functions alone."""
    return _decorator(**_INNER)(function)
