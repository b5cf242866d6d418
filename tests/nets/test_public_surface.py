"""Nothing that others rely on changes unnoticed: names, parameters, defaults, fields, commands, options."""

from __future__ import annotations

import difflib

from public_surface import KEPT, surface

HOW = (
    "the public surface has changed. If it is meant to, write a line in CHANGELOG.md and then run\n"
    "    python tests/nets/public_surface.py --write\n"
    "and look at the difference of tests/nets/public_surface.txt before you commit it."
)


def test_the_public_surface_is_the_one_that_was_written_down() -> None:
    kept = KEPT.read_text(encoding="utf-8").splitlines()
    changes = list(difflib.unified_diff(kept, surface(), "written down", "now", lineterm="", n=0))
    assert not changes, "\n".join([HOW, "", *changes])
