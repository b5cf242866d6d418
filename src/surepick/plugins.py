"""What other installed packages add: policies and kinds of problem files, found by their entry points.

A package offers one by a line in its pyproject.toml,

    [project.entry-points."surepick.policies"]
    Mine = "my_package.mine:Mine"

and it is found by that name. Nothing of another package is imported until its name is asked for. Names of
surepick's own come first: no package can put something else in their place.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from surepick.errors import PluginError

POLICY_GROUP = "surepick.policies"
PROBLEM_GROUP = "surepick.problems"


def offered(group: str) -> dict[str, EntryPoint]:
    """What installed packages offer in this group, by name, without importing any of it.

    >>> offered("surepick.nothing")
    {}
    """
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise PluginError(
                f"two packages offer {entry.name!r} in {group!r}: {_source(other)} and {_source(entry)}; "
                "uninstall one of them"
            )
    return found


def load(entry: EntryPoint) -> Any:
    """The object that an entry point names, or an error that names the package it comes from."""
    try:
        return entry.load()
    except Exception as error:
        raise wrong(entry, f"could not be loaded ({type(error).__name__}: {error})") from error


def wrong(entry: EntryPoint, what: str) -> PluginError:
    """The error for something offered that is not what it should be."""
    return PluginError(f"{entry.name!r} of {_source(entry)} {what}; repair that package or uninstall it")


def _source(entry: EntryPoint) -> str:
    package = entry.dist
    where = "an unknown package" if package is None else f"the package {package.name!r} {package.version}"
    return f"{where} ({entry.value})"
