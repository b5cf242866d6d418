"""What people and programs see of a session, as frozen dataclasses of plain values.

`build(session)` makes the one `View` (view.py has its fields and `to_json`). `look` is the only module that
reads a session's internals; `numbers` formats values, counts and durations; `chart` draws the chart of
all plans; `events` words the log; `sheet` is the measuring sheet.

May import `sessions` and the packages below it.
"""

from __future__ import annotations

from surepick.views.build import build
from surepick.views.view import View, to_json

__all__ = ["View", "build", "to_json"]
