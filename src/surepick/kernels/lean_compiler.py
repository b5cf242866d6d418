"""Numba's compiler with less to do: it does not look for what our loops never hold, nor for anything twice.

A first run waits for it, and most of the wait is not for machine code: Numba tries dozens of forms of every
operator at every use of it, compares its settings option by option, and has LLVM unroll loops that are short
or wait for memory. All that is spared here changes nothing of what a function computes, to the last bit:
sums are reordered in functions compiled with `fastmath` alone, and those are optimised as Numba does it.

Parts of Numba are replaced, so each replacement looks first whether Numba is as it was when this was written;
where it is not, we wait longer. What a replacement chooses, it chooses for our functions alone: those that
others compile in the same process get Numba's own.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import numba
import numba.core.codegen
import numba.core.compiler
import numba.core.compiler_machinery
import numba.core.errors
import numba.core.registry
import numba.core.targetconfig
import numba.core.types.functions
import numba.core.untyped_passes
import numba.np.linalg

_machinery: Any = numba.core.compiler_machinery  # most of what is used here has no types
_compiler: Any = numba.core.compiler
_codegen: Any = numba.core.codegen
_cpu_target: Any = numba.core.registry.cpu_target
_llvm: Any = _codegen.ll
_settings: Any = numba.config
_JITCodeLibrary: Any = _codegen.JITCodeLibrary
_BaseFunction: Any = numba.core.types.functions.BaseFunction
_Dispatcher: Any = numba.core.types.functions.Dispatcher
_unliteral: Any = numba.core.types.unliteral
_TargetConfig: Any = numba.core.targetconfig.TargetConfig

TRIED = numba.version_info.short < (0, 69)  # this module was, with these versions of Numba
_MARKUP = "_markup"  # what puts colours into a message
_BUILDER = "create_pass_builder"
_COMPILER = "_compiler"  # of a compiled function
# No closures, no arithmetic of whole arrays (which allocates), no overloads that want to be inlined.
_NEEDLESS = {"InlineClosureLikes", "NopythonRewrites", "InlineOverloads"}


@contextlib.contextmanager
def _without_unrolling() -> Iterator[None]:
    """Have LLVM leave loops as they are; the caller holds Numba's lock.

    Copies of a loop's body are a third of the machine code, and half of the time that making it takes.
    """
    usual = getattr(_codegen, _BUILDER)
    setattr(_codegen, _BUILDER, _pass_builder)
    try:
        yield
    finally:
        setattr(_codegen, _BUILDER, usual)


def _pass_builder(machine: Any, opt: int = 2, *, loop_vectorize: bool, slp_vectorize: bool) -> Any:
    """Numba's, but for unrolling."""
    options = _llvm.create_pipeline_tuning_options()
    options.speed_level = opt
    options.slp_vectorization = slp_vectorize
    options.loop_vectorization = loop_vectorize
    options.loop_unrolling = False
    return _llvm.create_pass_builder(machine, options)


class _ExactLibrary(_JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that Python calls, and of all that are linked into it."""

    def _optimize_functions(self, module: Any) -> None:
        with _without_unrolling():
            super()._optimize_functions(module)

    def _optimize_final_module(self) -> None:
        with _without_unrolling():
            super()._optimize_final_module()


class _NoEnvironment:
    """In place of the code generator of a library that has no machine code, which has no environment."""

    def set_env(self, _name: str, _environment: Any) -> None:
        """Do nothing."""


class _LinkedLibrary(_ExactLibrary):
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


@_machinery.register_pass(mutates_CFG=False, analysis_only=True)
class _KeepLoops(_machinery.AnalysisPass):  # type: ignore[misc]
    """Have the function's code made without unrolling."""

    _name = "surepick_keep_loops"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Numba makes a library only where there is none."""
        state.library = _ExactLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return False


class FastCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """Of a pass over long arrays: without looking for what our functions never hold."""

    def define_pipelines(self) -> list[Any]:
        """The usual passes but for those."""
        return [_passes(self.state, without=_NEEDLESS)]


class ExactCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """The same, without unrolling."""

    def define_pipelines(self) -> list[Any]:
        """Those passes and one more."""
        return [_passes(self.state, without=_NEEDLESS, library=_KeepLoops)]


class AllocatingCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """Of a function that makes arrays: Numba's passes, without unrolling."""

    def define_pipelines(self) -> list[Any]:
        """All passes and one more."""
        return [_passes(self.state, library=_KeepLoops)]


class InnerCompiler(_compiler.CompilerBase):  # type: ignore[misc]
    """Of a function that only compiled code calls, without making machine code."""

    def define_pipelines(self) -> list[Any]:
        """The passes that it needs and one more."""
        return [_passes(self.state, without=_NEEDLESS, library=_LinkLater)]


def _passes(state: Any, *, without: set[str] | frozenset[str] = frozenset(), library: Any = None) -> Any:
    passes = _compiler.DefaultPassBuilder.define_nopython_pipeline(state)
    passes.passes = [known for known in passes.passes if known[0].__name__ not in without]
    if library is not None and TRIED:
        passes.add_pass_after(library, numba.core.untyped_passes.IRProcessing)
    passes.finalize()
    return passes


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
        self._lists: list[Any] = []  # what each registry declares, by kind
        self._n_registries = 0

    def __call__(self) -> None:
        """Refresh if something was declared since the last time."""
        if self._n_declared() != self._seen:
            self._refresh()
            self._seen = self._n_declared()

    def _n_declared(self) -> int:
        if len(self._registries) != self._n_registries:
            self._n_registries = len(self._registries)
            kinds = [(registry, loader.registry_items) for registry, loader in self._registries.items()]
            self._lists = [getattr(registry, items) for registry, of in kinds for items in of]
        return sum(map(len, self._lists))


def _spare_refreshing() -> None:
    for context in (_cpu_target.typing_context, _cpu_target.target_context):
        if "_registries" in vars(context):
            context.refresh = _OnlyNews(context)


_spare_refreshing()


def _spare_comparing() -> None:
    """Compare the settings of two functions as wholes, not forty options one by one.

    They are part of the key under which Numba looks for an operator, at every use of it.
    """
    usual = _TargetConfig.__eq__

    def is_same(self: Any, other: Any) -> Any:
        if self is other or (type(self) is type(other) and vars_of(self) == vars_of(other)):
            return True
        return usual(self, other)

    def vars_of(settings: Any) -> Any:
        return getattr(settings, "_values")  # noqa: B009

    if "_values" in getattr(_TargetConfig, "__slots__", ()):
        _TargetConfig.__eq__ = is_same
        _TargetConfig.__hash__ = lambda self: hash(type(self))  # Numba's hash, too, is one for all of a type


class Ours:
    """Whether a function of ours is being compiled, with all that it calls; Numba does one at a time."""

    is_compiling = False


def _spare_choosing() -> None:
    """Look once for the form of an operator that fits types, and keep it.

    Only where the form is Numba's own: what an overload compiles depends on the settings of who calls it.
    """
    usual = _BaseFunction.get_call_type
    known: dict[Any, Any] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if not Ours.is_compiling:
            return usual(self, context, args, kws)
        key = (self, context, tuple(args), tuple(kws.items()))
        found = known.get(key)
        if found is None:
            found = usual(self, context, args, kws)
            if found is not None and self.get_impl_key(found) is self.typing_key:
                known[key] = found
        return found

    _BaseFunction.get_call_type = get_call_type


def _spare_literals() -> None:
    """Compile a function of ours once for whole numbers, not once more for a variable that begins as -1."""
    usual = _Dispatcher.get_call_type
    ours = {FastCompiler, ExactCompiler, AllocatingCompiler, InnerCompiler}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if getattr(getattr(self.dispatcher, _COMPILER, None), "pipeline_class", None) in ours:
            args = tuple(map(_unliteral, args))
            kws = {name: _unliteral(value) for name, value in kws.items()}
        return usual(self, context, args, kws)

    _Dispatcher.get_call_type = get_call_type


if TRIED:
    _spare_comparing()
    _spare_choosing()
    _spare_literals()
