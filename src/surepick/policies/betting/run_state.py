"""The state of a run as arrays, numbers, text, lists and dictionaries: one codec for all objects.

An object that has state names its attributes in `STATE`. Their values are arrays, numbers, text, None, lists,
dictionaries, dataclasses of such values, or objects with a `STATE` of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

_KIND, _ITEMS = "kind", "items"


def state_of(thing: Any) -> dict[str, Any]:
    """Return the state of an object with a `STATE`."""
    return {name: _encode(getattr(thing, name)) for name in thing.STATE}


def restore(thing: Any, state: Mapping[str, Any], kinds: tuple[type, ...]) -> None:
    """Give the object this state; `kinds` are the dataclasses that may occur in it."""
    by_name = {kind.__name__: kind for kind in kinds}
    for name in thing.STATE:
        own = getattr(thing, name)
        if hasattr(own, "STATE"):
            restore(own, state[name], kinds)
        else:
            setattr(thing, name, _decode(state[name], by_name))


def _encode(value: Any) -> Any:
    if hasattr(value, "STATE"):
        return state_of(value)
    if is_dataclass(value):
        return {_KIND: type(value).__name__} | {
            f.name: _encode(getattr(value, f.name)) for f in fields(value)
        }
    if isinstance(value, dict):  # as pairs: keys may be numbers, and their order matters
        return {_KIND: "dict", _ITEMS: [[key, _encode(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else value


def _decode(value: Any, kinds: Mapping[str, type]) -> Any:
    if isinstance(value, Mapping):
        if value[_KIND] == "dict":
            return {key: _decode(item, kinds) for key, item in value[_ITEMS]}
        return kinds[value[_KIND]](**{name: _decode(v, kinds) for name, v in value.items() if name != _KIND})
    if isinstance(value, list):
        return [_decode(item, kinds) for item in value]
    return value.copy() if isinstance(value, np.ndarray) else value
