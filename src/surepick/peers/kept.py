"""The state of a run as the attributes that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from surepick.core.run import Standing, parts_of, standing_of


class Kept:
    """A run whose state is the attributes that its classes name in `_kept`."""

    _kept: ClassVar[tuple[str, ...]] = ()

    def state(self) -> dict[str, Any]:
        """Return the named attributes; a standing as its parts."""
        found = {name: getattr(self, name) for name in self._names()}
        return {name: parts_of(x) if isinstance(x, Standing) else x for name, x in found.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Set the named attributes of a fresh run."""
        for name in self._names():
            value = state[name]
            setattr(self, name, standing_of(value) if name == "_standing" else value)

    def _names(self) -> list[str]:
        return [name for cls in type(self).__mro__ for name in vars(cls).get("_kept", ())]
