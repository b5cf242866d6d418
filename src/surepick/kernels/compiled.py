"""How this project compiles its loops: cached on disk, without reference counting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_F = TypeVar("_F", bound=Callable[..., Any])

# Sums may be reordered and multiply-adds fused; NaN, infinities and signed zeros do not occur.
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}


def compiled(function: _F) -> _F:
    """Compile with exact floating point; the function must not allocate.

    Reference counting is left out (`_nrt`): counting the arrays of a state in and out of every call would
    cost more than the work itself.
    """
    return numba.njit(cache=True, _nrt=False)(function)  # type: ignore[call-overload, no-any-return]


def compiled_fast(function: _F) -> _F:
    """Compile a pass over long arrays so that it is vectorised; see `_FAST` for what that assumes."""
    return numba.njit(cache=True, _nrt=False, fastmath=_FAST)(function)  # type: ignore[call-overload, no-any-return]


def compiled_inner(function: _F) -> _F:
    """Compile for other compiled functions alone: much sooner where the arguments are records of arrays."""
    return numba.njit(  # type: ignore[call-overload, no-any-return]
        cache=True, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
