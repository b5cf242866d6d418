"""How this project compiles its loops: cached on disk, most without reference counting. Alone imports Numba.

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
import importlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numba
import numba.core.codegen
import numba.core.compiler
import numba.core.compiler_machinery
import numba.core.errors
import numba.core.event
import numba.core.registry
import numba.core.untyped_passes
import numba.np.linalg

_F = TypeVar("_F", bound=Callable[..., Any])

_numba: Any = numba  # most of what is used here has no types
_settings: Any = numba.config
_machinery: Any = numba.core.compiler_machinery
_compiler: Any = numba.core.compiler
_cpu_target: Any = numba.core.registry.cpu_target
_JITCodeLibrary: Any = numba.core.codegen.JITCodeLibrary
_PACKAGE = Path(__file__).parent.parent
_ROOMS = ("kernels", "policies", "problems", "simulation")  # those that may import this module
_PREFIX = "surepick-"
_KEPT = 4  # cache folders of other versions that are left in place

# Sums may be reordered and multiply-adds fused; NaN, infinities and signed zeros do not occur.
_FAST = {"nnan", "ninf", "nsz", "reassoc", "contract", "arcp"}
_MARKUP = "_markup"  # what puts colours into a message
# No closures, no arithmetic of whole arrays (which allocates), no overloads that want to be inlined.
_NEEDLESS = {"InlineClosureLikes", "NopythonRewrites", "InlineOverloads"}
_INNER = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_LINKS = numba.version_info.short < (0, 69)  # `_LinkedLibrary` was tried with; with newer ones we wait longer


def compiled(function: _F) -> _F:
    """Compile with exact floating point; the function must not allocate.

    Reference counting is left out (`_nrt`): counting the arrays of a state in and out of every call would
    cost more than the work itself.
    """
    return _njit(function, _nrt=False, no_cfunc_wrapper=True, pipeline_class=_LeanCompiler)


def compiled_allocating(function: _F) -> _F:
    """Compile a function that makes arrays of its own."""
    return _njit(function, no_cfunc_wrapper=True)


def compiled_fast(function: _F) -> _F:
    """Compile a pass over long arrays so that it is vectorised; see `_FAST` for what that assumes."""
    lean = {"_nrt": False, "no_cfunc_wrapper": True, "pipeline_class": _LeanCompiler}
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
    return _njit(function, **_INNER, pipeline_class=_LeanCompiler, fastmath=_FAST)


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

    def on_start(self, _event: Any) -> None:
        """Count it; with the first, stop the search."""
        self.n += 1
        if self._depth == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._depth += 1

    def on_end(self, _event: Any) -> None:
        """With the last, let the search go on if it was on."""
        self._depth -= 1
        if self._depth == 0 and self._collects:
            gc.enable()


_compilations = _Compilations()
_numba.core.event.register("numba:compile", _compilations)


class _NoEnvironment:
    """In place of the code generator of a library that has no machine code, which has no environment."""

    def set_env(self, _name: str, _environment: Any) -> None:
        """Do nothing."""


class _LinkedLibrary(_JITCodeLibrary):  # type: ignore[misc]
    """The code of an inner function as it was written, to be linked into the functions that call it."""

    codegen = _NoEnvironment()

    def _optimize_final_module(self) -> None:
        """Left to the function that Python calls, in which this will be inlined."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """None: Python never calls it."""
        return 0


@_machinery.register_pass(mutates_CFG=False, analysis_only=True)
class _LinkLater(_machinery.AnalysisPass):  # type: ignore[misc]
    """Have the function's code kept in a library that is only linked."""

    _name = "surepick_link_later"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Numba makes a library only where there is none."""
        state.library = _LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return False


class _LeanCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """Numba's compiler of functions, without the passes that look for what these functions never hold."""

    def define_pipelines(self) -> list[Any]:
        """The usual passes but for those."""
        passes = _compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.passes = [known for known in passes.passes if known[0].__name__ not in _NEEDLESS]
        passes.finalize()
        return [passes]


class _InnerCompiler(_LeanCompiler):
    """The same, but for the library."""

    def define_pipelines(self) -> list[Any]:
        """Those passes and one more."""
        (passes,) = super().define_pipelines()
        passes.add_pass_after(_LinkLater, numba.core.untyped_passes.IRProcessing)
        passes.finalize()
        return [passes]


def _spare_scipy() -> None:
    """Load Numba's array functions without scipy.linalg, which is a quarter of a second in every process.

    They import it to see whether there is a BLAS, and there is: scipy is required. Who compiles a product of
    matrices still gets it, checked when it is used.
    """
    linalg: Any = numba.np.linalg
    check = getattr(linalg, "ensure_blas", None)
    if check is None:
        return
    linalg.ensure_blas = lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = check


_spare_scipy()


def _spare_colours() -> None:
    """Have Numba make its messages without colorama, unless somebody has chosen a colour scheme.

    It makes thousands that nobody sees, one for each form of a function that does not fit; and colorama
    holds on to the standard output of that moment, which may be closed when it is reset at the exit.
    """
    scheme = getattr(numba.core.errors, "HighlightColorScheme", None)
    if scheme is not None and _settings.COLOR_SCHEME == "no_color":
        setattr(scheme, _MARKUP, _plain)


def _plain(_scheme: Any, message: str, *_colours: Any) -> str:
    return message


_spare_colours()


class _OnlyNews:
    """The `refresh` of one of Numba's contexts, left out while its registries are as it left them.

    Numba refreshes several times for every function that it compiles, a fifth of the wait for a first run.
    """

    def __init__(self, context: Any) -> None:
        self._registries, self._refresh, self._seen = vars(context)["_registries"], context.refresh, -1

    def __call__(self) -> None:
        """Refresh if something was declared since the last time."""
        if self._n_declared() != self._seen:
            self._refresh()
            self._seen = self._n_declared()

    def _n_declared(self) -> int:
        kinds = ((registry, loader.registry_items) for registry, loader in self._registries.items())
        return sum(len(getattr(registry, items)) for registry, of in kinds for items in of)


def _spare_refreshing() -> None:
    for context in (_cpu_target.typing_context, _cpu_target.target_context):
        if "_registries" in vars(context):
            context.refresh = _OnlyNews(context)


_spare_refreshing()


def kernel_sources(package: Path = _PACKAGE) -> list[Path]:
    """Every file whose text compiled code may depend on: all files of the folders that hold some."""
    files = [path for room in _ROOMS for path in (package / room).rglob("*.py")]
    folders = {path.parent for path in files if b"kernels.compiled" in path.read_bytes()}
    return sorted(path for path in files if path.parent in folders)


def _linked(function: _F, **options: Any) -> _F:
    """Compile for compiled functions that it will be linked into; it is not kept on disk, since they are."""
    options |= _INNER
    if not _LINKS:
        return _njit(function, **options)
    return _numba.njit(pipeline_class=_InnerCompiler, **options)(function)  # type: ignore[no-any-return]


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
