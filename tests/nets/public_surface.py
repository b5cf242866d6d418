"""Everything of surepick that others may rely on, as lines of text: one fact each, for readable diffs.

`python tests/nets/public_surface.py --write` writes what the code has now into `public_surface.txt`.
Annotations are left out: where a type lives, or how it is spelled, may change.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import sys
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import typer

import surepick
import surepick.errors

KEPT = Path(__file__).with_name("public_surface.txt")
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"

LISTED = (  # what their `__all__` lists
    "surepick",
    "surepick.experiments",
    "surepick.plots",
    "surepick.policies",
    "surepick.problems",
    "surepick.store",
    "surepick.testing",
    "surepick.views",
)
DEFINED = (  # every public name that stands there: who writes a policy or a plug-in may import any of them
    "surepick.errors",
    "surepick.layout",
    "surepick.policy",
)
DOCUMENTED = (  # of other modules, what the reference in docs/ names and nothing above offers
    "surepick.planning.comparison.compare",
    "surepick.planning.theory.theory",
    "surepick.plots.screen.arms",
    "surepick.plots.screen.picture",
    "surepick.plots.screen.progress",
    "surepick.plots.screen.rivals",
    "surepick.report.report",
    "surepick.report.write_report",
)
_DECLARED = object()
GIVEN_BY_SESSIONS = ("ask", "certificate", "leases", "measurements", "tell", "verify")  # and what they hold


def surface() -> list[str]:
    """All facts, in their order."""
    return [*_of_modules(), *_given_by_sessions(), *_of_the_command_line(), *_of_the_package()]


def _of_modules() -> Iterator[str]:
    first: dict[int, str] = {}  # where each class and function was met first: it is described there
    for module in sorted((*LISTED, *DEFINED)):
        names = _listed(module) if module in LISTED else _defined(module)
        yield f"module {module}: {len(names)} names"
        for name in names:
            path, value = f"{module}.{name}", getattr(importlib.import_module(module), name)
            home = first.setdefault(id(value), path) if callable(value) else path
            yield from _described(path, value) if home == path else [f"{path} is {home}"]
    for path in DOCUMENTED:
        module, _, name = path.rpartition(".")
        yield from _described(path, getattr(importlib.import_module(module), name))


def _listed(module: str) -> list[str]:
    return sorted(importlib.import_module(module).__all__)


def _defined(module: str) -> list[str]:
    """The public names of a module that are its own, not imported for its own use."""
    found = importlib.import_module(module)
    if hasattr(found, "__all__"):
        return sorted(found.__all__)
    elsewhere = set() if module == "surepick.errors" else {"OracleProblem", "Problem", *vars(surepick.errors)}
    names = (name for name, value in vars(found).items() if not name.startswith("_") and _is_ours(value))
    return sorted(name for name in names if name not in elsewhere)


def _is_ours(value: Any) -> bool:
    """Whether it is no module and comes from surepick, as far as that can be seen."""
    if isinstance(value, types.ModuleType) or type(value).__module__ == "__future__":
        return False
    home = getattr(value, "__module__", None) if callable(value) else None
    return home is None or home.startswith("surepick")


def _described(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, types.ModuleType):
        yield f"{path}: module"
    elif isinstance(value, type):
        yield from _class(path, value)
    elif callable(value) and not isinstance(value, types.UnionType):
        yield f"{path}{_signature(value)}"
    elif isinstance(value, Mapping):
        yield f"{path}: dict of {', '.join(map(str, value))}"
    else:
        yield f"{path} = {_shown(value)}"


def _class(path: str, kind: type) -> Iterator[str]:
    yield f"{path}: class({', '.join(_bases(kind))})"
    if issubclass(kind, enum.Enum):
        yield from (f"{path}.{member.name} = {member.value!r}" for member in kind)
    elif not issubclass(kind, BaseException) and not getattr(kind, "_is_protocol", False):
        yield f"{path}{_signature(kind)}"
    if dataclasses.is_dataclass(kind):
        frozen = kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
        yield f"{path}: {'frozen ' if frozen else ''}dataclass"
        yield from (
            f"{path}.{field.name}: field{_field_default(field)}" for field in dataclasses.fields(kind)
        )
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    for name in sorted(_own_names(kind) - fields):
        yield f"{path}.{_member(name, inspect.getattr_static(kind, name, _DECLARED))}"


def _bases(kind: type) -> list[str]:
    """What an instance also is, for those who catch it or ask: not how the class is put together."""
    return [
        base.__name__
        for base in kind.__mro__[1:-1]
        if issubclass(base, BaseException) or base.__module__ in ("builtins", "enum", "typing")
        if base.__name__ != "Generic"
    ]


def _own_names(kind: type) -> set[str]:
    """Public names of the class that surepick gave it: none of `object`, exceptions, enums or tuples."""
    members = set(kind.__members__) if issubclass(kind, enum.Enum) else set()
    ours = [base for base in kind.__mro__ if base.__module__.startswith("surepick")]
    return {name for base in ours for name in _names_in(base) if not name.startswith("_")} - members


def _names_in(base: type) -> set[str]:
    """What stands in the body of the class; a protocol may also only declare something."""
    declared = inspect.get_annotations(base) if getattr(base, "_is_protocol", False) else {}
    return {*vars(base), *declared}


def _member(name: str, value: Any) -> str:
    if value is _DECLARED:
        return f"{name}: declared"
    if name.startswith("test_"):
        return f"{name}: test"
    if name == "version":
        return f"{name}: {type(value).__name__}"  # it rises with every change of a policy's decisions
    if isinstance(value, property):
        return f"{name}: property"
    if isinstance(value, classmethod | staticmethod):
        return f"{name}{_signature(value.__func__)}: {type(value).__name__}"
    if callable(value):
        return f"{name}{_signature(value)}"
    if type(value).__name__ in ("cached_property", "_tuplegetter", "member_descriptor"):
        return f"{name}: property"
    return f"{name} = {_shown(value)}"


def _field_default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {_shown(field.default)}"
    if field.default_factory is not dataclasses.MISSING:
        return f" = {_shown(field.default_factory)}()"
    return ""


def _signature(value: Any) -> str:
    found = inspect.signature(value)
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_Default.of(parameter.default))
        for parameter in found.parameters.values()
    ]
    return str(inspect.Signature(bare))


class _Default:
    """A default value that shows itself in the same way on every machine."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @classmethod
    def of(cls, value: Any) -> Any:
        return value if value is inspect.Parameter.empty else cls(value)

    def __repr__(self) -> str:
        return _shown(self._value)


def _shown(value: Any) -> str:
    """A value as text, without addresses and without the module that it comes from."""
    if isinstance(value, type) or inspect.isroutine(value):
        return str(value.__qualname__)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, Path):
        return f"Path({value.as_posix()!r})"
    text = repr(value)
    if isinstance(value, str):
        return "the version" if value == surepick.__version__ else text
    return type(value).__name__ if " at 0x" in text or "surepick." in text else text


def _given_by_sessions() -> Iterator[str]:
    """The classes of what the methods of a session give, by their own names."""
    found: dict[str, type] = {}
    for name in GIVEN_BY_SESSIONS:
        _collect(typing.get_type_hints(getattr(surepick.Session, name))["return"], found)
    for name in sorted(found):
        yield from _described(f"given by sessions: {name}", found[name])


def _collect(hint: Any, found: dict[str, type]) -> None:
    for part in typing.get_args(hint):
        _collect(part, found)
    if isinstance(hint, type) and hint.__module__.startswith("surepick") and hint.__name__ not in found:
        found[hint.__name__] = hint
        if dataclasses.is_dataclass(hint):
            for inner in typing.get_type_hints(hint).values():
                _collect(inner, found)


def _of_the_command_line() -> Iterator[str]:
    app = importlib.import_module("surepick.cli").app
    yield from _command("surepick", typer.main.get_command(app))


def _command(path: str, command: Any) -> Iterator[str]:
    yield f"$ {path}"
    for parameter in command.params:
        yield f"$ {path} {_option(parameter)}"
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _command(f"{path} {name}", inner)


def _option(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        words = f"<{parameter.name}>"
    else:
        words = "/".join((*parameter.opts, *parameter.secondary_opts))
    default = ", required" if parameter.required else f" = {_shown(parameter.default)}"
    several = ", several" if parameter.multiple or parameter.nargs == -1 else ""
    flag = ", flag" if getattr(parameter, "is_flag", False) else ""
    variable = f", or ${parameter.envvar}" if parameter.envvar else ""
    return f"{words}{default}{several}{flag}{variable}"


def _of_the_package() -> Iterator[str]:
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    yield from (f"script {name} = {target}" for name, target in sorted(project["scripts"].items()))
    yield from (f"extra {name}" for name in sorted(project["optional-dependencies"]))
    plugins = importlib.import_module("surepick.plugins")
    yield f"entry points for policies: {plugins.POLICY_GROUP}"
    yield f"entry points for kinds of problem files: {plugins.PROBLEM_GROUP}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        KEPT.write_text("\n".join(surface()) + "\n", encoding="utf-8")
    else:
        print("\n".join(surface()))
